"""Progress of reading data files: a line about each step that takes more than a second."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

Row = TypeVar("Row")
Block = TypeVar("Block", bound=Sequence[Any])

FIRST_SECONDS, NEXT_SECONDS = 1.0, 10.0
"""Seconds after which a step is reported for the first time, and between further reports."""
ROWS_AT_ONCE = 1024
"""Number of rows after which the clock is checked again."""


class ReadingProgress:
    """Reports steps that take more than a second.

    Call `step` at the beginning of each step. Lines are only emitted during calls of `report`, or
    while `rows` or `blocks` are iterated.

    Args:
        emit: Receives each line, or None to report nothing.
    """

    def __init__(self, emit: Callable[[str], None] | None = None) -> None:
        self._emit = emit or (lambda _: None)
        self._step, self._next = "", 0.0

    def step(self, text: str) -> None:
        """Set the name of the current step, such as "reading a.csv", and restart its clock."""
        self._step, self._next = text, time.monotonic() + FIRST_SECONDS

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows unchanged, and report their number so far.

        The first report is due a second after the step began, and further ones every ten seconds.
        """
        for number, row in enumerate(rows):
            if number % ROWS_AT_ONCE == 0:
                self.report(number)
            yield row

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks of rows unchanged, and report the number of rows as `rows` does.

        A block is a list of columns of equal length, at least one.
        """
        number = 0
        for block in blocks:
            self.report(number)
            number += len(block[0])
            yield block

    def report(self, number: int = 0) -> None:
        """Report the current step if its next report is due.

        Args:
            number: Number of rows read so far, or 0 to report none.
        """
        if time.monotonic() >= self._next:
            self._emit(f"{self._step}: {number:,} rows so far" if number else f"{self._step} …")
            self._next = time.monotonic() + NEXT_SECONDS
