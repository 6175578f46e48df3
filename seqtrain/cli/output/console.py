"""Notes, warnings and consoles. Colours and bars only on a terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from seqtrain.text import printable

WIDTH_OF_A_FILE = 120


def stderr_console() -> Console:
    """Return the console of progress and tables."""
    return _console(sys.stderr)


def stdout_console() -> Console:
    """Return the console of results."""
    return _console(sys.stdout)


def _console(file: TextIO) -> Console:
    """Leave out colours where it is no terminal, a dumb one, or NO_COLOR is set."""
    terminal = file.isatty()
    styled = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        file=file,
        highlight=False,
        color_system="auto" if styled else None,
        force_terminal=terminal,
        width=None if terminal else WIDTH_OF_A_FILE,
    )


def plain(text: str) -> Text:
    """Return the user's text as it is: brackets are no markup, control characters are escaped."""
    return Text(printable(text))


def say(line: str) -> None:
    """Print a line of results on stdout."""
    console = stdout_console()  # a terminal's lines end between words; a file's are whole
    console.print(plain(line), soft_wrap=not console.is_terminal)


def note(line: str) -> None:
    """Print a line of information on stderr."""
    console = stderr_console()
    console.print(plain(line), style="dim", soft_wrap=not console.is_terminal)


def warn(line: str) -> None:
    """Print a warning on stderr."""
    console = stderr_console()
    text = Text("warning: ", style="yellow") + plain(line)
    console.print(text, soft_wrap=not console.is_terminal)


def print_path(path: str | Path) -> None:
    """Print a path on stdout: as it is for a program, safe for a terminal that shows it."""
    print(printable(str(path)) if sys.stdout.isatty() else path)


def in_notebook() -> bool:
    """Whether this is a notebook's kernel, which shows bars though stderr is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
