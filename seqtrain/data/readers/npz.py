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
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

import numpy as np

from seqtrain.data.examples import Example, parse_rows
from seqtrain.data.readers.opening import BOMB_RATIO, RowSource, is_bomb
from seqtrain.data.readers.sequences import features_from_array
from seqtrain.data.store import Array
from seqtrain.errors import DataError

NAMES = ("values", "offsets", "lengths", "labels")
X_NAMES, Y_NAMES = ("X", "x", "X_train", "x_train"), ("y", "Y", "y_train")
NPY = b"\x93NUMPY"
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
FEW_SYMBOLS = 1000
"""Distinct whole numbers of one channel that may still be symbols."""
VALUES = "numbers (N,) or (N, C), the time steps of all sequences one after another"


def read_npz(source: RowSource) -> Iterator[Example]:
    """Read sequences out of flat arrays, which are held in memory; the line is the row, from 1."""
    name, is_tokens = source.problems.name, source.options.kind == "tokens"
    arrays = _load(source.stream, name, labelled=source.labelled)
    values = _array(arrays, "values", name)
    fits = values.ndim in (1, 2) and values.dtype.kind in "iuf" and 0 not in values.shape[1:]
    if is_tokens:
        fits = values.ndim == 1 and values.dtype.kind in "iu"
    _check(fits, name, "values", "integers (N,)" if is_tokens else VALUES, values)
    borders, labels = _borders(arrays, len(values), name), None
    if source.labelled or "labels" in arrays:
        labels = _labels(_array(arrays, "labels", name), len(borders) - 1, name)

    def parse(row: int) -> tuple[Any, ...]:
        piece = values[borders[row] : borders[row + 1]]
        label = None if labels is None else source.label(labels[row])
        if is_tokens:
            return [str(symbol) for symbol in piece.tolist()], label
        return features_from_array(piece if piece.ndim == 2 else piece[:, None]), label

    return parse_rows(((row + 1, row) for row in range(len(borders) - 1)), parse)


def labels_beside(path: str) -> str:
    """Return the file of the labels for a file of X alone, empty where there is none."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, re.sub("(?<![a-zA-Z])[xX](?![a-zA-Z])", "y", name))
    return beside if beside != path and name.endswith(".npy") and os.path.isfile(beside) else ""


def _load(stream: BinaryIO, name: str, *, labelled: bool) -> dict[str, Array]:
    """Load the arrays we know; objects, which would be unpickled, are refused by numpy."""
    try:
        if not stream.seekable():  # as a compressed one isn't
            stream = io.BytesIO(stream.read())
        is_one = stream.read(6) == NPY
        stream.seek(0)
        if is_one:
            beside = labels_beside(getattr(stream, "name", ""))
            if labelled and not beside:
                how = "save them beside it, as y.npy beside X.npy, or write both"
                raise DataError(f"{name}: no labels; {how}: numpy.savez('data.npz', X=X, y=y)")
            y = np.load(beside, allow_pickle=False) if beside else None
            return _of_rectangle(np.load(stream, allow_pickle=False), y, name)
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        if is_bomb(sum(x.file_size for x in entries), sum(x.compress_size for x in entries)):
            raise DataError(f"{name}: the arrays expand more than {BOMB_RATIO} times; refused")
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        twice = [key for key in NAMES if names.count(key) > 1]
        if twice:
            raise DataError(f"{name}: the array {twice[0]} occurs twice; save it once")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            known = [key for key in (*NAMES, *X_NAMES, *Y_NAMES) if key in loaded.files]
            found = {key: np.asarray(loaded[key]) for key in known}
    except MemoryError:
        raise DataError(f"{name}: the arrays do not fit into memory") from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not a sound npz file of plain arrays ({reason})") from None
    x, y = (next((found[key] for key in keys if key in found), None) for keys in (X_NAMES, Y_NAMES))
    return found if x is None or "values" in found else _of_rectangle(x, y, name)


def _of_rectangle(x: Array, y: Array | None, name: str) -> dict[str, Array]:
    """Return the arrays that hold the same as X (B, T) or (B, T, C) and y (B,)."""
    fits = x.ndim in (2, 3) and x.dtype.kind in "iuf" and 0 not in x.shape[1:]
    _check(fits, name, "X", "numbers (B, T) or (B, T, C), a series per row", x)
    known = np.ones(x.shape[:2], dtype=bool)
    if x.dtype.kind == "f":
        missing = np.asarray(np.isnan(x).reshape(*x.shape[:2], -1).all(axis=2))
        known = np.cumsum(~missing[:, ::-1], axis=1)[:, ::-1] > 0
    found = {"values": x[known], "lengths": known.sum(axis=1)}
    if y is not None:
        whole = y.dtype.kind == "f" and np.array_equal(y, np.rint(y))
        found["labels"] = (y.astype(np.int64) if whole else y).reshape(-1)
    return found


def _borders(arrays: dict[str, Array], total: int, name: str) -> list[int]:
    if ("offsets" in arrays) == ("lengths" in arrays):
        raise DataError(f"{name}: expected exactly one of the arrays offsets and lengths")
    key = "offsets" if "offsets" in arrays else "lengths"
    array = arrays[key]
    _check(array.ndim == 1 and array.dtype.kind in "iu", name, key, "integers (B,)", array)
    borders = array.tolist() if key == "offsets" else [0, *accumulate(array.tolist())]
    if borders[:1] != [0] or borders[-1] != total:
        found = f"{borders[0]} to {borders[-1]}" if borders else "nothing"
        raise DataError(f"{name}: {key}: expected to cover 0 to {total}, the values; {found}")
    for row, (start, end) in enumerate(pairwise(borders), start=1):
        if end < start:
            raise DataError(f"{name}: {key}: row {row} ends at {end}, before its start {start}")
    return list(borders)


def _labels(labels: Array, rows: int, name: str) -> list[str]:
    fits = labels.shape == (rows,) and labels.dtype.kind in "iuU"
    _check(fits, name, "labels", f"integers or strings ({rows},)", labels)
    try:  # numpy itself fails with a SystemError on numbers that no character has
        found = [str(label) for label in labels.tolist()]
        "".join(found).encode()
    except (SystemError, ValueError):
        raise DataError(f"{name}: labels: a string holds what is no character") from None
    return found


def _array(arrays: dict[str, Array], key: str, name: str) -> Array:
    if key not in arrays:
        found, wanted = ", ".join(arrays) or "none", "values, offsets or lengths, labels"
        also = "; or X and y: numpy.savez('data.npz', X=X, y=y)"
        raise DataError(f"{name}: no array {key}; found of {wanted}: {found}{also}")
    return arrays[key]


def _check(fits: bool, name: str, key: str, expected: str, array: Array) -> None:
    if not fits:
        found = f"{array.dtype} {array.shape}"
        raise DataError(f"{name}: {key}: expected {expected}, found {found}")
