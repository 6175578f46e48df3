"""Progress of reading data files: a line about each step that takes more than a second."""

import time
from collections.abc import Callable, Iterable, Iterator

from seqtrain.tables.blocks import Block

FIRST_SECONDS, NEXT_SECONDS = 1.0, 10.0
"""Seconds after which a step is reported for the first time, and between further reports."""


class ReadingProgress:
    """Reports steps that take more than a second.

    Call `step` at the beginning of each step. Lines are only emitted while `blocks` is iterated.

    Args:
        emit: Receives each line, or None to report nothing.
    """

    def __init__(self, emit: Callable[[str], None] | None = None) -> None:
        self._emit = emit
        self._step, self._next = "", 0.0

    def step(self, text: str) -> None:
        """Set the name of the current step, such as "reading a.csv", and restart its clock."""
        self._step, self._next = text, time.monotonic() + FIRST_SECONDS

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks of rows unchanged, and report the number of rows so far."""
        rows = 0
        for block in blocks:
            if self._emit is not None and time.monotonic() >= self._next:
                self._emit(f"{self._step}: {rows:,} rows so far" if rows else f"{self._step} …")
                self._next = time.monotonic() + NEXT_SECONDS
            rows += len(block)
            yield block
