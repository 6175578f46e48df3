"""Policy for the lengths of sequences: cutting, leaving out, or refusing them.

B sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from seqtrain.sequences.saved import Saved
from seqtrain.tables.blocks import Ints
from seqtrain.text import counted, duration

if TYPE_CHECKING:
    from seqtrain.config.schema import Config

NO_LIMIT = 2**62
"""Largest number of steps without data.max_length."""
EMPTY = "the sequence is empty"
LEARNED_PER_SECOND = 50_000
"""Time steps that a processor learns in a second, about: measured with 128 units, both ways."""
LONG_TRAINING = 1800
"""Seconds of training from which on long sequences are said."""
LONG_LENGTH = 1000
"""Number of steps that is advised for longer sequences."""
NOT_EMPTY = "; data.empty: drop or unk, set before training, accepts such rows"


@dataclass(frozen=True)
class LengthPolicy(Saved):
    """Policy for sequences that are too long or empty. The attributes are keys of data.

    Attributes:
        max_length: Largest number of steps, or None for no limit.
        overlong: Policy for an overlong sequence: "head", "tail" or "middle" is the part that is
            kept. "error" refuses the sequence.
        empty: Policy for an empty sequence: "error" refuses it, "drop" leaves it out, "unk" reads
            it as one <unk>. "blank" is for prediction only: the sequence gets no prediction.
    """

    max_length: int | None
    overlong: Literal["head", "tail", "middle", "error"]
    empty: Literal["error", "drop", "unk", "blank"]

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ValueError("max_length: expected a number from 1, or null")

    @property
    def most(self) -> int:
        """Largest number of steps; `NO_LIMIT` without a limit."""
        return self.max_length or NO_LIMIT

    def refusal(self, length: int) -> str | None:
        """Return the reason why a sequence with `length` steps is refused, or None."""
        if length > self.most and self.overlong == "error":
            return (
                f"{length} steps; data.max_length allows {self.max_length} (data.overlong: head, "
                "tail or middle cuts)"
            )
        if length:
            return None
        refusals = {"error": EMPTY + NOT_EMPTY, "blank": EMPTY}
        return refusals.get(self.empty)

    def starts(self, lengths: Ints) -> Ints:
        """Return the index of the first step that is kept of each sequence, (B,).

        Args:
            lengths: Number of steps of each sequence, (B,).
        """
        surplus = (lengths - self.most).clip(0)
        if self.overlong == "tail":
            return surplus
        if self.overlong == "middle":
            return surplus // 2
        return np.zeros_like(surplus)

    def cut(self, steps: Any) -> Any:
        """Return the part of a list of steps that is kept."""
        start = int(self.starts(np.array([len(steps)]))[0])
        return steps[start : start + self.most]


def doubts_about_time(steps: int, most: int, longest: int, config: Config) -> Iterator[str]:
    """Yield a warning if train has so many long sequences that training takes very long.

    Args:
        steps: Time steps of train.
        most: Length that 95 % of the sequences don't exceed.
        longest: Length of the longest one.
        config: The config, with the number of epochs and data.max_length.
    """
    epochs = config.training.max_epochs
    limit = config.data.max_length
    if epochs == "auto":
        epochs = 1
        repeated = "an epoch"
    else:
        repeated = f"at most {counted(epochs, 'epoch')}"
    seconds = steps * epochs / LEARNED_PER_SECOND
    if seconds < LONG_TRAINING or most <= LONG_LENGTH:
        return
    yield (
        f"train: {repeated} of {steps:,} time steps will take about {duration(round(seconds))} on "
        f"a processor; the longest sequence has {longest:,}, 95 % have up to {most:,}, and "
        f"data.max_length is {limit or 'null'}; to cut them: --set data.max_length={LONG_LENGTH}"
    )
