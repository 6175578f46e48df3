"""Conversion and checks of the sequences and labels that scikit-learn passes to an estimator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from seqtrain.api.prediction_input import listed_sequences
from seqtrain.errors import DataError, SeqtrainError, warn
from seqtrain.runs.model_folder import Model
from seqtrain.tables.blocks import Array, Selection, as_list
from seqtrain.tables.memory import TableSource, columns_of
from seqtrain.tables.python_values import array_of, cells_of_values, python_value
from seqtrain.text import counted, quote, shorten

LAYOUTS = ("time_channels", "channels_time")
"""Orders of the axes of a series: (T, C) and (C, T)."""
NUMERIC = "biuf"
"""Kinds of NumPy's types of numbers."""
TYPES_OF_LABELS: dict[type, str] = {str: "text", int: "integer", bool: "boolean"}
"""Maps each type of labels that a label set can hold to its name there."""
ROWS_IN_MEMORY = re.compile(r"^(train|sequences):(?=[0-9])|^sequences: |^(?=sequence )")
"""Pattern of the start of an error message about data in memory, which `renamed` replaces."""


class InputError(DataError, ValueError):
    """Error: X, y or a parameter is wrong, or training or prediction failed.

    It is also a ValueError, because scikit-learn's tools expect one.
    """


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


def sequences_of(X: Any, sequence: str | None, layout: str, kind: str | None) -> list[Any]:
    """Return X as a list of sequences: texts, lists, arrays (T,) or (T, C), and None if missing.

    X is a table, an array (B, T, C) of series, an array (B, 1) of texts, or any iterable.

    Args:
        X: The sequences.
        sequence: Name of the column of the sequences in a table, or None for its only column.
        layout: Order of the axes of a series, one of LAYOUTS.
        kind: Value of data.kind, or None if the user didn't set it.

    Raises:
        DataError: If a column is missing, or X isn't iterable.
        InputError: If a sequence is of a type that isn't supported, or an array has an empty axis.
    """
    names = columns_of(X)
    if names is not None:
        cells: Any = sequence_column(X, list(map(str, names)), sequence)
    else:
        if hasattr(X, "detach"):
            X = array_of(X)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if 0 in shape[1:]:
            raise InputError(f"X: found an array of shape {shape}; expected no empty axis")
        if len(shape) == 3 and X.dtype.kind in NUMERIC:
            return padded_series(X, layout)
        cells = X[:, 0] if len(shape) == 2 and shape[1] == 1 else X
        cells = listed_sequences(cells)
    found = [sequence_of(cell) for cell in as_list(cells)]
    if layout == "channels_time":
        found = [x.T if getattr(x, "ndim", 1) == 2 else x for x in found]
    first = next(iter(found), None)
    if kind is None and isinstance(first, list) and first and all(type(x) is int for x in first):
        warn(
            "X: lists of whole numbers were read as series; if they are ids of tokens, set "
            "data__kind='tokens', and data__kind='features' if they are measurements",
        )
    return found


def sequence_of(cell: Any) -> Any:
    """Return a sequence of X as a text, a list, or an array; None if it is missing.

    Raises:
        InputError: If it is anything else, such as bytes or a number.
    """
    if isinstance(cell, str | list):
        return cell
    if not isinstance(cell, bytes):
        is_list = isinstance(cell, np.ma.MaskedArray) and cell.ndim == 1 and cell.dtype.kind in "iu"
        is_array = getattr(cell, "ndim", 0) and not is_list  # as lists, ids of tokens stay whole
        found = array_of(cell) if is_array else python_value(cell)
        if found is None or isinstance(found, str | list | np.ndarray):
            return found
    raise InputError(
        f"X: found {type(cell).__name__}; expected texts, lists of symbols or arrays. "
        "Reshape your data"
    )


def without_mask(X: Any, kind: str | None = None) -> Any:
    """Return a masked array without its mask, or a frame of nullable numbers with NumPy's types.

    Anything else is returned unchanged. Missing numbers become NaN. Rows of whole numbers that are
    tokens become lists, in which masked tokens are None; those at the end of a row are padding.

    Args:
        X: The sequences, or one number for each of them.
        kind: Value of data.kind, or None if the user didn't set it.
    """
    if not isinstance(X, np.ma.MaskedArray):
        return with_numpy_types(X)
    if kind != "tokens" or X.ndim != 2 or X.dtype.kind not in "iu":
        return array_of(X)
    used = ~np.ma.getmaskarray(X)
    ends = [1 + max(np.flatnonzero(row), default=-1) for row in used]
    return [row[:end].tolist() for row, end in zip(X, ends, strict=True)]


def with_numpy_types(X: Any) -> Any:
    """Return a data frame whose columns are nullable numbers with NumPy's types, else X itself."""
    is_frame = hasattr(X, "convert_dtypes") and X.ndim == 2
    dtypes = list(X.dtypes) if is_frame else []
    are_numbers = all(getattr(dtype, "kind", "O") in NUMERIC for dtype in dtypes)
    if not are_numbers or all(isinstance(dtype, np.dtype) for dtype in dtypes):
        return X
    whole = all(dtype.kind in "iu" for dtype in dtypes) and not X.isna().any(axis=None)
    return X.astype(np.int64 if whole else np.float64)


def given_labels(y: Any) -> Any:
    """Return y as a list of lists if its examples have lists of labels, else as it is.

    A column with a type of its own, such as a nullable or an Arrow type, becomes an array.

    Raises:
        InputError: If a label is masked.
    """
    if isinstance(y, np.ma.MaskedArray):
        if np.ma.is_masked(y):
            raise InputError("y: found masked values; expected a label for each sequence")
        return y.data
    if isinstance(getattr(y, "dtype", None), np.dtype) and y.dtype.kind != "O":
        return np.array(y.tolist()) if y.dtype.kind == "T" else y  # texts of any length
    if hasattr(y, "to_list") or hasattr(y, "dtype"):
        cells = as_list(cells_of_values(y))
        if are_lists(cells):
            return cells
        if not isinstance(getattr(y, "dtype", y), np.dtype):
            has_text = any(isinstance(cell, str) for cell in cells)
            return np.array(cells, dtype=object if has_text or None in cells else None)
    return y


def are_lists(y: Any) -> bool:
    """Return True if y is a list with a list of labels for each example, as in a multi-label task.

    Lists of equal length without any text don't count, because they may be rows of 0s and 1s.
    Tuples count as lists, and the labels of an example may also be a set.
    """
    is_list = isinstance(y, list | tuple)
    if not is_list or not all(isinstance(each, list | tuple | set) for each in y):
        return False
    return len(set(map(len, y))) > 1 or any(isinstance(label, str) for each in y for label in each)


def kind_of_sequences(sequences: list[Any]) -> str:
    """Return the value of the config key data.kind for sequences: "text", "tokens" or "features".

    It is the kind of the first sequence that isn't empty, or "text" if all are empty. A string is
    text. A list or array is tokens if its first item is a string, and features if not.
    """
    first = next((each for each in sequences if hasattr(each, "__len__") and len(each)), "")
    if isinstance(first, str):
        return "text"
    if isinstance(first[0], str):
        return "tokens"
    return "features"


def without_padding(series: Array) -> Array:
    """Return a series, (T,) or (T, C), without its last steps that are NaN in all channels.

    If all steps are NaN, the result is empty.
    """
    valid = ~np.isnan(series.reshape(len(series), -1)).all(axis=1)
    return series[: 1 + max(np.flatnonzero(valid), default=-1)]


def padded_series(array: Array, layout: str) -> list[Any]:
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
            f"X: its series have {counted(steps, 'step')} of {channels:,} channels; if the axes "
            f"are the other way round, set layout={other!r}",
        )
    return [without_padding(row) for row in array]


def sequence_column(table: Any, names: list[str], sequence: str | None) -> list[Any]:
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
    cells = []
    for block in TableSource(table, "X").blocks(Selection((name,))):
        cells += as_list(block.columns[name])
    return cells


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
    than `TYPES_OF_LABELS`, blank or padded with blanks, or with the separator of labels in them.

    Args:
        model: The model. Its labels are indices of `classes`, as text.
        classes: All labels of y.
    """
    label_set = model.preprocessing.label_set
    labels = [classes[int(index)] for index in label_set.classes]
    kind = type(labels[0])
    names = tuple(str(label).lower() if kind is bool else str(label) for label in labels)
    separator = label_set.separator
    is_clear = all(name.strip() == name != "" for name in names) and len(set(names)) == len(names)
    has_separator = separator is not None and any(separator in name for name in names)
    if (
        kind not in TYPES_OF_LABELS
        or set(map(type, labels)) != {kind}
        or has_separator
        or not is_clear
    ):
        return model
    kind_name: Any = TYPES_OF_LABELS[kind]
    named = replace(label_set, classes=names, type=kind_name)
    return replace(model, preprocessing=replace(model.preprocessing, label_set=named))
