"""Screen of `init`: how far files are read."""

import sys
import time

from seqtrain.cli.screens.console import ProgressBar, note

LINE_EVERY = 10.0
"""Seconds between lines where stderr is no terminal."""


class ReadingScreen:
    """A bar on stderr that shows how far a file is read. Without a terminal, lines are printed."""

    def __init__(self) -> None:
        self._bar = ProgressBar()
        self._next = 0.0

    def __call__(self, step: str, rows: int, share: float) -> None:
        """Show the state of a step.

        Args:
            step: Name of the step, such as "reading a.csv".
            rows: Number of rows so far.
            share: About which share was read, in [0, 1], or 0 if it isn't known.
        """
        if sys.stderr.isatty():
            self._bar(step, share, f", {rows:,} rows")
        elif time.monotonic() >= self._next:
            about = f", about {share:.0%}" if share else ""
            note(f"{step}: {rows:,} rows so far{about}")
            self._next = time.monotonic() + LINE_EVERY

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()
