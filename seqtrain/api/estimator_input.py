"""Sequences and labels as scikit-learn passes them: their kinds, and what can't be one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.readers.sequences import plain
from seqtrain.errors import DataError, SeqtrainError

Array = npt.NDArray[Any]
IN_MEMORY = re.compile(r"^(train|sequences):(?=[0-9])|^sequences: |^(?=sequence )")
"""Start of a message about sequences in memory, which are X here."""


class InputError(DataError, ValueError):
    """X, y or a parameter is wrong. It is a ValueError too, as scikit-learn's tools expect."""


def without_padding(series: Array) -> Array:
    """Return a series without the steps at its end that are NaN in all channels."""
    valid = ~np.isnan(series.reshape(len(series), -1)).all(axis=1)
    return series[: 1 + max(np.flatnonzero(valid), default=-1)]


def renamed(error: SeqtrainError) -> list[str]:
    """Return an error's problems with X, and its row, in place of the table in memory."""
    return [
        IN_MEMORY.sub(lambda found: "X: row " if found[0].endswith(":") else "X: ", line)
        for line in error.problems
    ]


def checked_sequence(sequence: Any) -> Any:
    """Return a sequence, or raise an InputError if it can't be one. A missing one is empty."""
    if not isinstance(sequence, str | Sequence | np.ndarray) and plain(sequence) is not None:
        raise InputError(
            f"X: found {type(sequence).__name__}; expected texts, lists of symbols or arrays. "
            "Reshape your data"
        )
    return plain(sequence) if isinstance(sequence, str) else sequence


def are_lists(y: Any) -> bool:
    """Return True if each row has a list of labels, which aren't 0s and 1s."""
    is_list = isinstance(y, list | tuple)
    if not is_list or not all(isinstance(each, list | tuple | set) for each in y):
        return False
    return len({*map(len, y)}) > 1 or any(isinstance(label, str) for each in y for label in each)


def are_whole_numbers(sequence: Any) -> bool:
    """Return True for a list of whole numbers."""
    return (
        isinstance(sequence, list | tuple)
        and bool(sequence)
        and all(isinstance(value, int) and not isinstance(value, bool) for value in sequence)
    )


def kind_of_sequences(sequences: list[Any]) -> str:
    """Return text, tokens or features, by the content of the first sequence that isn't empty."""
    first = next((each for each in sequences if hasattr(each, "__len__") and len(each)), "")
    if isinstance(first, str):
        return "text"
    return "tokens" if isinstance(first[0], str) else "features"
