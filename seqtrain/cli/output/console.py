"""Notes, warnings, consoles and the bar. Colours and bars only on a terminal."""

import os
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text
from tqdm import tqdm

from seqtrain.text import json_line, printable

WIDTH_OF_A_FILE = 120
"""Where COLUMNS doesn't say how wide a line may be."""


def stderr_console() -> Console:
    """Return the console of progress and tables; a notebook would show stderr in red."""
    return _console(sys.stdout if _in_notebook() else sys.stderr)


def stdout_console() -> Console:
    """Return the console of results."""
    return _console(sys.stdout)


def _console(file: TextIO) -> Console:
    """Leave out colours where it is no terminal, a dumb one, or NO_COLOR is set."""
    terminal = file.isatty()
    given = os.environ.get("COLUMNS", "")
    is_width = re.fullmatch("[1-9][0-9]{0,3}", given)
    styled = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Console(
        file=file,
        highlight=False,
        color_system="auto" if styled else None,
        force_terminal=terminal,
        force_jupyter=False,
        width=None if terminal else int(given) if is_width else WIDTH_OF_A_FILE,
    )


def plain(text: str) -> Text:
    """Return the user's text as it is: brackets are no markup, control characters are escaped."""
    return Text(printable(text))


def say(*lines: str) -> None:
    """Print lines of results on stdout."""
    _print(stdout_console(), [plain(line) for line in lines])


def say_json(value: Any) -> None:
    """Print a value as one line of JSON on stdout."""
    print(json_line(value))


def note(*lines: str) -> None:
    """Print lines of information on stderr."""
    _print(stderr_console(), [plain(line) for line in lines], style="dim")


def warn(*lines: str) -> None:
    """Print warnings on stderr."""
    _print(stderr_console(), [Text("warning: ", style="yellow") + plain(x) for x in lines])


def note_rows(run: Path, data: str, split: str | None, warnings: Iterable[str]) -> None:
    """Say on stderr which run is looked at, by which rows, and what limits that."""
    note(f"run: {run}, data: {data}" + (f" ({split})" if split else ""))
    warn(*warnings)


def _print(console: Console, lines: list[Text], style: str | None = None) -> None:
    """Print lines; a terminal's end between words, a file's are whole."""
    for line in lines:
        console.print(line, style=style, soft_wrap=not console.is_terminal)


def print_path(path: str | Path) -> None:
    """Print a path on stdout: as it is for a program, safe for a terminal that shows it."""
    print(printable(str(path)) if sys.stdout.isatty() else path)


class ProgressBar:
    """A bar on stderr, where that is a terminal, or in a notebook that has ipywidgets."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None

    def __call__(self, doing: str, share: float, detail: str = "") -> None:
        """Show what is being done, how much of all is over, in [0, 1], and how it goes."""
        if self._bar is None:
            kind: Any = tqdm
            if widgets := _in_notebook() and find_spec("ipywidgets") is not None:
                from tqdm.notebook import tqdm_notebook as kind
            self._bar = kind(
                desc=doing,
                total=1.0,
                initial=share,
                bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                disable=not (sys.stderr.isatty() or widgets),
                leave=False,
                dynamic_ncols=True,
            )
        if getattr(self._bar, "desc", doing) != doing:
            self._bar.set_description_str(doing)
        self._bar.set_postfix_str(detail, refresh=False)
        self._bar.update(share - self._bar.n)

    def close(self) -> None:
        """Remove the bar; the next call shows a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
