"""Formats npz and npy: numpy arrays of all sequences, one after another.

An npz file contains either

- `values` (N,) or (N, C); `offsets` (B + 1,), the borders of the sequences, or `lengths` (B,); and
  `labels` (B,), integers or strings; or
- `X` (B, T) or (B, T, C), and `y` (B,). Missing values at the end of a row aren't time steps.

For data.kind features, the values are numbers of any type. For kind tokens they are whole numbers
of shape (N,). A .npy file contains `X`. Its labels are in another file: y.npy next to X.npy, or
y_train.npy next to X_train.npy.
"""

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, BinaryIO

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.examples import Example
from seqtrain.sequences.readers.opening import refuse_bomb
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.sequences import features_from_array
from seqtrain.sequences.readers.step_cells import LARGEST_EXACT
from seqtrain.sequences.store import Array

FLAT = ("values", "offsets", "lengths", "labels")
NAMES = {
    **dict.fromkeys(("X", "x", "X_train", "x_train"), "X"),
    **dict.fromkeys(("y", "Y", "y_train"), "labels"),
    **{name: name for name in FLAT},
}
"""Maps each accepted name of an array to its meaning.

If a file has arrays of several names with one meaning, the first name here is used.
"""
NPY = b"\x93NUMPY"
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
OBJECTS = (
    "an array of Python objects can't be read; save values=np.concatenate(sequences), "
    "lengths=[*map(len, sequences)] and labels=labels.astype(str)"
)
"""Message about arrays whose dtype is object."""
FEW_SYMBOLS = 1000
"""Largest number of distinct whole numbers of one channel that may be symbols."""


def read_npz(source: RowSource) -> Iterator[Example]:
    """Yield the sequences of a file of arrays, which is read into memory as a whole.

    The line number of an example is the number of its sequence, from 1.

    Raises:
        DataError: If the file is damaged, lacks an array, or has one of a wrong type or shape.
    """
    name, is_tokens = source.problems.name, source.schema.kind == "tokens"
    arrays = _load(source.stream, name)
    values, borders = _rectangle(arrays, name) if "X" in arrays else _flat(arrays, name)
    if is_tokens and values.ndim == 1 and (np.abs(values) < LARGEST_EXACT).all():
        values = values.astype(np.int64) if np.array_equal(values, np.rint(values)) else values
    if is_tokens and (values.ndim > 1 or values.dtype.kind == "f"):
        raise _unfit(name, "values", "integers (N,)", values)
    labels = None
    if source.labelled or "labels" in arrays:
        labels = _labels(_array(arrays, "labels", name), len(borders) - 1, name)

    def parse(row: int) -> tuple[Any, ...]:
        piece = values[borders[row] : borders[row + 1]]
        label = None if labels is None else source.labels(labels[row])
        if is_tokens:
            return [str(symbol) for symbol in piece.tolist()], label
        return features_from_array(piece if piece.ndim == 2 else piece[:, None]), label

    total = len(borders) - 1
    rows = (row for row in range(total) if source.is_read(row, total))
    return source.examples(((row + 1, row) for row in rows), parse)


def labels_file(path: str) -> str:
    """Return the path of the file with the labels of a .npy file, or "" if it doesn't exist."""
    folder, name = os.path.split(path)
    found = os.path.join(folder, re.sub("(?<![a-zA-Z])[xX](?![a-zA-Z])", "y", name))
    return found if found != path and name.endswith(".npy") and os.path.isfile(found) else ""


def _load(stream: BinaryIO, name: str) -> dict[str, Array]:
    """Return a dict of the arrays in a file, named X, values, offsets, lengths and labels.

    `NAMES` maps other usual names, such as x_train or y, to these names. Arrays of Python objects
    are refused, as their loading could run code.

    Args:
        stream: The open file.
        name: Name of the file for messages.

    Raises:
        DataError: If the file is damaged, too large for memory, or contains Python objects.
    """
    try:
        if not stream.seekable():  # as a compressed one isn't
            stream = io.BytesIO(stream.read())
        is_one = stream.read(6) == NPY
        stream.seek(0)
        if is_one:
            labels = labels_file(getattr(stream, "name", ""))
            files: dict[str, Any] = {"X": stream, **({"labels": labels} if labels else {})}
            return {key: np.load(file, allow_pickle=False) for key, file in files.items()}
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        refuse_bomb("the arrays", sum(entry.file_size for entry in entries), packed)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            names = FLAT if "values" in loaded.files else NAMES
            known = [key for key in names if key in loaded.files]
            return {NAMES[key]: np.asarray(loaded[key]) for key in reversed(known)}
    except MemoryError:
        raise DataError(f"{name}: the arrays do not fit into memory") from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "allow_pickle" in reason:
            raise DataError(f"{name}: {OBJECTS}") from None
        raise DataError(f"{name}: not a sound npz file of plain arrays ({reason})") from None


def _rectangle(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the time steps of all rows of the array X, and the borders of the rows.

    Missing values at the end of a row are left out.

    Args:
        arrays: Result of `_load`.
        name: Name of the file for messages.

    Returns:
        The steps of all rows one after another, (N,) or (N, C); and B + 1 borders. Row b has the
        steps from ``borders[b]`` to ``borders[b + 1] - 1``.
    """
    x = arrays["X"]
    if x.ndim not in (2, 3) or x.dtype.kind not in "iuf" or 0 in x.shape[1:]:
        raise _unfit(name, "X", "numbers (B, T) or (B, T, C), a series per row", x)
    known = np.ones(x.shape[:2], dtype=bool)
    if x.dtype.kind == "f":
        missing = np.asarray(np.isnan(x).reshape(*x.shape[:2], -1).all(axis=2))
        known = np.cumsum(~missing[:, ::-1], axis=1)[:, ::-1] > 0
    return x[known], [0, *known.sum(axis=1).cumsum().tolist()]


def _flat(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the array `values`, (N,) or (N, C), and the B + 1 borders of its sequences.

    Args:
        arrays: Result of `_load`.
        name: Name of the file for messages.

    Raises:
        DataError: If an array is missing or has a wrong type or shape, or the borders don't cover
            all values.
    """
    values, key = _array(arrays, "values", name), "offsets" if "offsets" in arrays else "lengths"
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf" or 0 in values.shape[1:]:
        raise _unfit(name, "values", "numbers (N,) or (N, C), the steps of all sequences", values)
    if "offsets" in arrays and "lengths" in arrays:
        raise DataError(f"{name}: found the arrays offsets and lengths; remove one of them")
    found = _array(arrays, key, name)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise _unfit(name, key, "integers (B,)", found)
    borders = found.tolist() if key == "offsets" else [0, *accumulate(found.tolist())]
    if borders[:1] != [0] or borders[-1] != len(values) or (np.diff(borders) < 0).any():
        expected = f"expected to cover 0 to {len(values)}, the values, row by row"
        raise DataError(f"{name}: {key}: {expected}; found {borders[:1]} to {borders[-1:]}")
    return values, borders


def _labels(labels: Array, rows: int, name: str) -> list[str]:
    if labels.dtype.kind == "f" and np.array_equal(labels, np.rint(labels)):
        labels = labels.astype(np.int64)
    if labels.size != rows or labels.dtype.kind not in "iuU":
        raise _unfit(name, "labels", f"integers or strings ({rows},)", labels)
    try:  # numpy itself fails with a SystemError on numbers that no character has
        found = [str(label) for label in labels.ravel().tolist()]
        "".join(found).encode()
    except (SystemError, ValueError):
        raise DataError(f"{name}: labels: a string holds what is no character") from None
    return found


def _array(arrays: dict[str, Array], key: str, name: str) -> Array:
    if key not in arrays:
        found = ", ".join(arrays) or "none"
        expected = "values, offsets or lengths, labels"
        other = "or X and y: numpy.savez('data.npz', X=X, y=y), or y.npy next to X.npy"
        raise DataError(f"{name}: no array {key}; found {found}; expected {expected}; {other}")
    return arrays[key]


def _unfit(name: str, key: str, expected: str, array: Array) -> DataError:
    found = f"{array.dtype} {array.shape}"
    return DataError(f"{name}: {key}: expected {expected}, found {found}")
