"""Output to terminals and files: consoles, notes, warnings, JSON lines, and the progress bar."""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from tqdm import tqdm

from seqtrain.text import json_line, printable

FILE_WIDTH = 120
"""Width of tables in a file, unless the environment variable COLUMNS sets it."""


def stderr_console() -> Console:
    """Return the console for messages and tables on stderr."""
    return _console(sys.stderr)


def stdout_console() -> Console:
    """Return the console for results on stdout."""
    return _console(sys.stdout)


def _console(file: TextIO) -> Console:
    """Return a console that writes to a file, with colours only if it is a terminal with colours.

    The environment variable NO_COLOR switches them off.
    """
    is_terminal = file.isatty()
    has_width = re.fullmatch("[1-9][0-9]{0,3}", os.environ.get("COLUMNS", "")) is not None
    return Console(
        file=file,
        highlight=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        force_terminal=is_terminal,
        force_jupyter=False,
        width=None if is_terminal or has_width else FILE_WIDTH,
    )


def as_text(text: str) -> Text:
    """Return text for printing, with control characters escaped and without markup."""
    return Text(printable(text))


def say(*lines: str) -> None:
    """Print lines of results on stdout."""
    _print(stdout_console(), [as_text(line) for line in lines])


def say_json(value: Any) -> None:
    """Print a value as one line of JSON on stdout."""
    print(json_line(value))


def note(*lines: str) -> None:
    """Print lines of information on stderr."""
    _print(stderr_console(), [as_text(line) for line in lines], style="dim")


def show_warning(*lines: str) -> None:
    """Print warnings on stderr. A line that begins with a blank is a command of the one above."""
    heading = Text("warning: ", style="yellow")
    texts = [as_text(line) if line[:1] == " " else heading + as_text(line) for line in lines]
    _print(stderr_console(), texts)


def note_rows(run: Path, data: str, split: str | None, warnings: Iterable[str]) -> None:
    """Print on stderr which run is used on which data, and then warnings.

    Args:
        run: Path of the run.
        data: Name of the data.
        split: Split of the run's config, or None for other data.
        warnings: Warnings about the rows, one line each.
    """
    note(f"run: {run}, data: {data}" + (f" ({split})" if split else ""))
    show_warning(*warnings)


def _print(console: Console, lines: list[Text], style: str | None = None) -> None:
    """Print lines. On a terminal they are wrapped between words. In a file they aren't wrapped.

    The parts of a wrapped line are indented as its beginning is.
    """
    for line in lines:
        if not console.is_terminal:
            console.print(line, style=style, soft_wrap=True)
            continue
        indent = len(line.plain) - len(line.plain.lstrip())
        console.print(Padding(line[indent:], (0, 0, 0, indent), expand=False), style=style)


def print_path(path: str | Path) -> None:
    """Print a path on stdout. On a terminal, control characters are escaped."""
    print(printable(str(path)) if sys.stdout.isatty() else path)


class ProgressBar:
    """A bar on stderr, shown on a terminal only."""

    def __init__(self) -> None:
        self._bar: tqdm[Any] | None = None

    def __call__(self, task: str, share: float, detail: str = "") -> None:
        """Show the bar, or update it.

        Args:
            task: Name of the task.
            share: Completed share of the task, in [0, 1].
            detail: Text at the end, such as the loss.
        """
        if self._bar is None:
            self._bar = tqdm(
                desc=task,
                total=1.0,
                initial=share,
                bar_format="{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}{postfix}]",
                file=sys.stderr,
                disable=None,  # unless stderr is a terminal
                leave=False,
                dynamic_ncols=True,
            )
        self._bar.set_description_str(task, refresh=False)
        self._bar.set_postfix_str(detail, refresh=False)
        self._bar.update(share - self._bar.n)

    def close(self) -> None:
        """Remove the bar. The next call shows a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
