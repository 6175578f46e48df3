"""Conversion and checks of the sequences and labels that scikit-learn passes to an estimator."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqtrain.errors import DataError, SeqtrainError, warn
from seqtrain.runs.model_folder import Model
from seqtrain.sequences.read_options import Schema
from seqtrain.sequences.readers import TableSource
from seqtrain.sequences.readers.sequences import plain
from seqtrain.sequences.store import Array
from seqtrain.text import quote, shorten

LAYOUTS = ("time_channels", "channels_time")
"""Orders of the axes of a series: (T, C) and (C, T)."""
TYPE_NAMES: dict[type, str] = {str: "text", int: "integer", bool: "boolean"}
"""Maps each type of labels that a label set can hold to its name there."""
ROWS_IN_MEMORY = re.compile(r"^(train|sequences):(?=[0-9])|^sequences: |^(?=sequence )")
"""Pattern of the start of an error message about data in memory, which `renamed` replaces."""


class InputError(DataError, ValueError):
    """Error: X, y or a parameter is wrong, or training or prediction failed.

    It is also a ValueError, because scikit-learn's tools expect one.
    """


def without_padding(series: Array) -> Array:
    """Return a series, (T,) or (T, C), without its last steps that are NaN in all channels.

    If all steps are NaN, the result is empty.
    """
    valid = ~np.isnan(series.reshape(len(series), -1)).all(axis=1)
    return series[: 1 + max(np.flatnonzero(valid), default=-1)]


def renamed(error: SeqtrainError, names: Mapping[str, str]) -> list[str]:
    """Return the lines of an error. Lines about data in memory are changed to lines about X.

    For example, "train:3: …" becomes "X: row 3: …".

    Args:
        error: The error.
        names: Maps each key of the config at the beginning of a line to the parameter that set it.
    """
    lines = [
        ROWS_IN_MEMORY.sub(lambda found: "X: row " if found[0].endswith(":") else "X: ", line)
        for line in error.problems
    ]
    parts = [line.partition(": ") for line in lines]
    return [f"{names.get(key, key)}{colon}{rest}" for key, colon, rest in parts]


def checked_sequence(sequence: Any) -> Any:
    """Return a sequence after checking its type.

    A NumPy string becomes a `str`. All other sequences, also None and NaN, are returned unchanged.

    Raises:
        InputError: If the sequence is neither a text, a list, an array, None, nor NaN.
    """
    if not isinstance(sequence, str | Sequence | np.ndarray) and plain(sequence) is not None:
        raise InputError(
            f"X: found {type(sequence).__name__}; expected texts, lists of symbols or arrays. "
            "Reshape your data"
        )
    return plain(sequence) if isinstance(sequence, str) else sequence


def are_lists(y: Any) -> bool:
    """Return True if y is a list with a list of labels for each example, as in a multi-label task.

    Lists of equal length without any text don't count, because they may be rows of 0s and 1s.
    Tuples count as lists, and the labels of an example may also be a set.
    """
    is_list = isinstance(y, list | tuple)
    if not is_list or not all(isinstance(each, list | tuple | set) for each in y):
        return False
    return len({*map(len, y)}) > 1 or any(isinstance(label, str) for each in y for label in each)


def are_whole_numbers(sequence: Any) -> bool:
    """Return True if a sequence is a list or tuple of whole numbers (`int`), at least one.

    Numbers of NumPy and bools aren't whole numbers here.
    """
    return (
        isinstance(sequence, list | tuple)
        and bool(sequence)
        and all(isinstance(value, int) and not isinstance(value, bool) for value in sequence)
    )


def kind_of_sequences(sequences: list[Any]) -> str:
    """Return the value of the config key data.kind for sequences: "text", "tokens" or "features".

    It is the kind of the first sequence that isn't empty, or "text" if all are empty. A string is
    text. A list or array is tokens if its first item is a string, and features if not.
    """
    first = next((each for each in sequences if hasattr(each, "__len__") and len(each)), "")
    if isinstance(first, str):
        return "text"
    return "tokens" if isinstance(first[0], str) else "features"


def series_of(array: Array, layout: str) -> list[Any]:
    """Return the series of an array as a list of arrays (T, C), without padding.

    Trailing steps that are NaN in all channels are padding. Warn if a series has fewer steps than
    channels, because the layout may be wrong.

    Args:
        array: One series per example, (B, T, C) or (B, C, T).
        layout: Order of the axes of a series, one of LAYOUTS.
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
    """Return sequences in which each array with two axes is (T, C).

    Args:
        series: Sequences. Arrays with two axes are (C, T) in the layout "channels_time". All other
            sequences are returned unchanged.
        layout: Order of the axes of an array, one of LAYOUTS.
    """
    if layout != "channels_time":
        return series
    return [np.asarray(x).T if getattr(x, "ndim", 1) == 2 else x for x in series]


def whole_numbers(sequences: list[Any], kind: str | None, *, is_training: bool) -> list[Any]:
    """Return sequences, with lists of whole numbers as lists of texts if `kind` is "tokens".

    For all other kinds, the sequences are returned unchanged. In training without a kind, warn if
    the first sequence is a list of whole numbers: they may be tokens or measurements.

    Args:
        sequences: Sequences, at least one.
        kind: Value of data.kind, or None if the user didn't set it.
        is_training: True in training, False in prediction.
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
    """Return the sequences of a table, one for each row.

    Args:
        table: A table as `seqtrain.fit` takes it.
        names: Names of all columns of the table.
        sequence: Name of the column of the sequences, or None if the table has one column.

    Raises:
        InputError: If no column has the name `sequence`. Also if `sequence` is None and the table
            doesn't have exactly one column.
    """
    if sequence not in names and (sequence is not None or len(names) != 1):
        found = quote(", ".join(names))
        raise InputError(f"X: found the columns {found}; name the sequence's: sequence='NAME'")
    name = sequence or names[0]
    return list(TableSource(table, Schema(sequence=name), "X").values[name])


def weights_by_index(weights: Mapping[Any, float], classes: list[Any]) -> dict[str, float]:
    """Return a dict that maps the index of each label, as text, to the label's weight.

    Labels are compared by value: 0, 0.0 and False are equal, and 1 and "1" aren't.

    Args:
        weights: Maps labels to weights. A label without a weight gets 1.
        classes: All labels.

    Raises:
        InputError: If `weights` has a label that isn't in `classes`.
    """
    unknown = [label for label in weights if label not in classes]
    if unknown:
        found, known = (shorten(", ".join(map(repr, each)), 60) for each in (unknown, classes))
        raise InputError(f"class_weight: found {found}; expected the labels {known}")
    return {str(index): weights.get(label, 1.0) for index, label in enumerate(classes)}


def with_labels(model: Model, classes: list[Any]) -> Model:
    """Return a model whose labels are those of y, in place of their indices.

    A model of labels that a file can't hold is returned unchanged: of several types, of other types
    than `TYPE_NAMES`, blank or padded with blanks, or with the separator of labels in them.

    Args:
        model: The model. Its labels are indices of `classes`, as text.
        classes: All labels of y.
    """
    label_set = model.preprocessing.label_set
    labels = [classes[int(index)] for index in label_set.classes]
    kind = type(labels[0])
    names = tuple(str(label).lower() if kind is bool else str(label) for label in labels)
    separator = label_set.separator
    is_clear = all(name.strip() == name != "" for name in names) and len({*names}) == len(names)
    has_separator = separator is not None and any(separator in name for name in names)
    if kind not in TYPE_NAMES or {*map(type, labels)} != {kind} or has_separator or not is_clear:
        return model
    named = replace(label_set, classes=names, type=TYPE_NAMES[kind])
    return replace(model, preprocessing=replace(model.preprocessing, label_set=named))
