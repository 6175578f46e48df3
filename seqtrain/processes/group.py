"""A group of processes: what they add up, send and tell one another.

A process alone is a group too, of size 1: then nothing is exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from seqtrain.processes.place import Place
from seqtrain.signals import STOPPING, StopSignals


class Group:
    """A process alone.

    Attributes:
        place: of this process.
        rank, size: its number, and how many there are.
        signals: what asks it to stop; None: nothing does.
        notes: what a user should know of how the processes run, a line each.
    """

    def __init__(self, place: Place | None = None) -> None:
        self.place = place or Place()
        self.rank, self.size = self.place.rank, self.place.size
        self.signals: StopSignals | None = None
        self.notes: list[str] = []

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that prints and writes."""
        return self.rank == 0

    def tell(self, value: Any, *, patiently: bool = False) -> list[Any]:
        """Tell all processes a JSON value; return those of all, by rank.

        Args:
            value: of this process.
            patiently: wait for the others without end: they may read data for hours.

        Raises:
            RunError: a process is lost.
        """
        return [value]

    def sum(self, values: Tensor) -> Tensor:
        """Add up tensors of one shape, each process's, in place; return the sum.

        Raises:
            RunError: a process is lost.
        """
        return values

    def send_from_first(self, tensors: Iterable[Tensor]) -> None:
        """Give tensors the content that the first process's have, in place.

        Raises:
            RunError: a process is lost.
        """

    def names(self, ranks: Iterable[int]) -> str:
        """Say which processes these are, and where."""
        return ", ".join(f"rank {rank}" for rank in ranks)

    def asked_to_stop(self) -> list[float]:
        """Return for each signal that stops a run whether it came to this process: 0 or 1."""
        came = None if self.signals is None else self.signals.noted
        return [float(number == came) for number in STOPPING]

    def heed(self, came: Sequence[float]) -> None:
        """Stop soon, where a signal came to any process.

        Args:
            came: sums of `asked_to_stop`.
        """
        for number, count in zip(STOPPING, came, strict=True):
            if count and self.signals is not None and self.signals.received is None:
                self.signals.received = number

    @contextmanager
    def together(self, *, patiently: bool = False) -> Iterator[None]:
        """Let all processes end with the errors that any of them has meanwhile.

        Args:
            patiently: as for `tell`.

        Raises:
            SeqtrainError: one of them failed; the first process tells it.
        """
        yield


ALONE = Group()
