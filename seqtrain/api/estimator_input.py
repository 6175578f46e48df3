"""Sequences and labels as scikit-learn passes them: their kinds, and what can't be one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.read_options import Schema
from seqtrain.data.readers import TableSource
from seqtrain.data.readers.sequences import plain
from seqtrain.errors import DataError, SeqtrainError, warn
from seqtrain.text import quote

Array = npt.NDArray[Any]
LAYOUTS = ("time_channels", "channels_time")
"""Orders of the axes of a series: (T, C) and (C, T)."""
IN_MEMORY = re.compile(r"^(train|sequences):(?=[0-9])|^sequences: |^(?=sequence )")
"""Start of a message about a table or list in memory. Messages of the estimator name X instead."""


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
    """Return a sequence, or an empty one in place of None or NaN.

    Raises:
        InputError: If it is no text, list or array.
    """
    if not isinstance(sequence, str | Sequence | np.ndarray) and plain(sequence) is not None:
        raise InputError(
            f"X: found {type(sequence).__name__}; expected texts, lists of symbols or arrays. "
            "Reshape your data"
        )
    return plain(sequence) if isinstance(sequence, str) else sequence


def are_lists(y: Any) -> bool:
    """Return True if y has a list of labels for each example, and no table of 0s and 1s."""
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


def series_of(array: Array, layout: str) -> list[Any]:
    """Return the series of an array with three axes in the order (T, C), without padding.

    Args:
        array: One series per example, (B, T, C) or (B, C, T).
        layout: One of LAYOUTS.
    """
    if layout == "channels_time":
        array = array.transpose(0, 2, 1)
    steps, channels = array.shape[1:]
    if steps < channels:
        other = LAYOUTS[1 - LAYOUTS.index(layout)]
        warn(
            f"X: its series have {steps:,} steps of {channels:,} channels; if the axes are the "
            f"other way round, set layout={other!r}",
        )
    return [without_padding(row) for row in array]


def steps_first(series: list[Any], layout: str) -> list[Any]:
    """Return series with time as the first axis, (T, C); other sequences are unchanged.

    Args:
        series: Sequences. In the layout channels_time, arrays are (C, T).
        layout: One of LAYOUTS.
    """
    if layout != "channels_time":
        return series
    return [np.asarray(x).T if getattr(x, "ndim", 1) == 2 else x for x in series]


def whole_numbers(sequences: list[Any], kind: str | None, *, is_training: bool) -> list[Any]:
    """Return lists of whole numbers as symbols if they are ids of tokens.

    Args:
        sequences: Sequences, at least one.
        kind: Value of data.kind, or None if the user didn't set it. Then there is a warning.
        is_training: False for predictions, which give no warning.
    """
    if kind is None and is_training and are_whole_numbers(sequences[0]):
        warn(
            "X: lists of whole numbers were read as series; if they are ids of tokens, set "
            "data__kind='tokens', and data__kind='features' if they are measurements",
        )
    if kind != "tokens":
        return sequences
    return [[*map(str, x)] if are_whole_numbers(x) else x for x in sequences]


def column_of(table: Any, names: list[str], sequence: str | None) -> list[Any]:
    """Return the sequences of a table.

    Args:
        table: A table as `seqtrain.fit` takes it.
        names: Names of its columns.
        sequence: Column of the sequence, or None if the table has one column.
    """
    if sequence not in names and len(names) != 1:
        found = quote(", ".join(names))
        raise InputError(f"X: found the columns {found}; name the sequence's: sequence='NAME'")
    name = sequence or names[0]
    return list(TableSource(table, Schema(sequence=name), "X").values[name])


def weights_by_index(weights: Mapping[Any, float], classes: list[Any]) -> dict[str, float]:
    """Return class weights by the index of each label. Labels without a weight get 1."""
    by_name = {str(label): weight for label, weight in weights.items()}
    names = [str(label) for label in classes]
    unknown = [name for name in by_name if name not in names]
    if unknown:
        found = f"found {', '.join(unknown)}; expected the labels {', '.join(names)}"
        raise InputError(f"class_weight: {found}")
    return {str(index): by_name.get(name, 1.0) for index, name in enumerate(names)}
