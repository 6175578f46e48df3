"""Format npz: numpy arrays of all sequences, one after another.

`values` (N,) or (N, C); either `offsets` (B+1,), the borders of the sequences, or `lengths` (B,);
and `labels` (B,), integers or strings. Kind features takes numbers of any type; kind tokens takes
integers of shape (N,), each the symbol that spells it; kind text is refused. In place of these,
`X` (B, T) or (B, T, C) and `y` (B,); missing values at the end of a row are no time steps. A .npy
file is X alone, whose labels stand beside it: y.npy beside X.npy, y_train.npy beside X_train.npy.
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

from seqtrain.data.examples import Example
from seqtrain.data.readers.opening import RowSource, refuse_bomb
from seqtrain.data.readers.sequences import features_from_array
from seqtrain.data.store import Array
from seqtrain.errors import DataError

FLAT = ("values", "offsets", "lengths", "labels")
NAMES = {
    **dict.fromkeys(("X", "x", "X_train", "x_train"), "X"),
    **dict.fromkeys(("y", "Y", "y_train"), "labels"),
    **{name: name for name in FLAT},
}
"""What each array of a file is; of several that are the same, the first. `values` go before X."""
NPY = b"\x93NUMPY"
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
FEW_SYMBOLS = 1000
"""Distinct whole numbers of one channel that may still be symbols."""


def read_npz(source: RowSource) -> Iterator[Example]:
    """Read sequences out of flat arrays, which are held in memory; the line is the row, from 1."""
    name, is_tokens = source.problems.name, source.options.kind == "tokens"
    arrays = _load(source.stream, name)
    values, borders = _rectangle(arrays, name) if "X" in arrays else _flat(arrays, name)
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

    return source.examples(enumerate(range(len(borders) - 1), start=1), parse)


def labels_beside(path: str) -> str:
    """Return the file of the labels for a file of X alone, empty where there is none."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, re.sub("(?<![a-zA-Z])[xX](?![a-zA-Z])", "y", name))
    return beside if beside != path and name.endswith(".npy") and os.path.isfile(beside) else ""


def _load(stream: BinaryIO, name: str) -> dict[str, Array]:
    """Load the arrays we know; objects, which would be unpickled, are refused by numpy."""
    try:
        if not stream.seekable():  # as a compressed one isn't
            stream = io.BytesIO(stream.read())
        is_one = stream.read(6) == NPY
        stream.seek(0)
        if is_one:
            beside = labels_beside(getattr(stream, "name", ""))
            files: dict[str, Any] = {"X": stream, **({"labels": beside} if beside else {})}
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
        raise DataError(f"{name}: not a sound npz file of plain arrays ({reason})") from None


def _rectangle(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the steps of X (B, T) or (B, T, C), one after another, and where each row begins."""
    x = arrays["X"]
    if x.ndim not in (2, 3) or x.dtype.kind not in "iuf" or 0 in x.shape[1:]:
        raise _unfit(name, "X", "numbers (B, T) or (B, T, C), a series per row", x)
    known = np.ones(x.shape[:2], dtype=bool)
    if x.dtype.kind == "f":
        missing = np.asarray(np.isnan(x).reshape(*x.shape[:2], -1).all(axis=2))
        known = np.cumsum(~missing[:, ::-1], axis=1)[:, ::-1] > 0
    return x[known], [0, *known.sum(axis=1).cumsum().tolist()]


def _flat(arrays: dict[str, Array], name: str) -> tuple[Array, list[int]]:
    """Return the values, and where each sequence begins in them; the last border is their end."""
    values, key = _array(arrays, "values", name), "offsets" if "offsets" in arrays else "lengths"
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf" or 0 in values.shape[1:]:
        raise _unfit(name, "values", "numbers (N,) or (N, C), the steps of all sequences", values)
    if "offsets" in arrays and "lengths" in arrays:
        raise DataError(f"{name}: expected exactly one of the arrays offsets and lengths")
    given = _array(arrays, key, name)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise _unfit(name, key, "integers (B,)", given)
    borders = given.tolist() if key == "offsets" else [0, *accumulate(given.tolist())]
    if borders[:1] != [0] or borders[-1] != len(values) or (np.diff(borders) < 0).any():
        wanted = f"expected to cover 0 to {len(values)}, the values, row by row"
        raise DataError(f"{name}: {key}: {wanted}; found {borders[:1]} to {borders[-1:]}")
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
        found, wanted = ", ".join(arrays) or "none", "values, offsets or lengths, labels"
        also = "or X and y: numpy.savez('data.npz', X=X, y=y), or y.npy beside X.npy"
        raise DataError(f"{name}: no array {key}; found {found}; expected {wanted}; {also}")
    return arrays[key]


def _unfit(name: str, key: str, expected: str, array: Array) -> DataError:
    found = f"{array.dtype} {array.shape}"
    return DataError(f"{name}: {key}: expected {expected}, found {found}")
