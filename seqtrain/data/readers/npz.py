"""Format npz: numpy arrays of all sequences, one after another.

`values` (N,) or (N, C); either `offsets` (B+1,), the borders of the sequences, or `lengths` (B,);
and `labels` (B,), integers or strings. Kind features takes numbers of any type; kind tokens takes
integers of shape (N,), each the symbol that spells it; kind text is refused.
"""

from __future__ import annotations

import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

import numpy as np

from seqtrain.data.examples import Example, parse_rows
from seqtrain.data.growing import Array
from seqtrain.data.readers.opening import BOMB_RATIO, RowSource, is_bomb
from seqtrain.data.readers.sequences import features_from_array
from seqtrain.errors import DataError

NAMES = ("values", "offsets", "lengths", "labels")
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
FEW_SYMBOLS = 1000
"""Distinct whole numbers of one channel that may still be symbols."""


def read_npz(source: RowSource) -> Iterator[Example]:
    """Read sequences out of flat arrays, which are held in memory; the line is the row, from 1."""
    name, kind = source.problems.name, source.options.kind
    arrays = _load(source.stream, name)
    values = _values(arrays, kind, name)
    offsets = _offsets(arrays, len(values), name)
    labels = _labels(arrays, len(offsets) - 1, source.labelled, name)

    def parse(row: int) -> tuple[Any, ...]:
        piece = values[offsets[row] : offsets[row + 1]]
        label = None if labels is None else source.label(labels[row])
        if kind == "tokens":
            return [str(symbol) for symbol in piece.tolist()], label
        return features_from_array(piece), label

    yield from parse_rows(((row + 1, row) for row in range(len(offsets) - 1)), parse)


def _load(stream: BinaryIO, name: str) -> dict[str, Array]:
    """Load the arrays we know; objects, which would be unpickled, are refused by numpy."""
    try:
        if not stream.seekable():  # as a compressed one isn't
            stream = io.BytesIO(stream.read())
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        sizes = sum(x.file_size for x in entries), sum(x.compress_size for x in entries)
        if is_bomb(*sizes):
            raise DataError(f"{name}: the arrays expand more than {BOMB_RATIO} times; refused")
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        twice = next((key for key in NAMES if names.count(key) > 1), None)
        if twice:
            raise DataError(f"{name}: the array {twice} occurs twice; save it once")
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            return {key: np.asarray(loaded[key]) for key in NAMES if key in loaded.files}
    except MemoryError:
        raise DataError(f"{name}: the arrays do not fit into memory") from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not a sound npz file of plain arrays ({reason})") from None


def _values(arrays: dict[str, Array], kind: str, name: str) -> Array:
    """Return the values of all sequences: (N, C) for features, (N,) for tokens."""
    values = _array(arrays, "values", name)
    if kind == "tokens":
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise DataError(f"{name}: values: expected integers (N,), found {_shown(values)}")
        return values
    if values.ndim not in (1, 2) or values.dtype.kind not in "iuf" or 0 in values.shape[1:]:
        raise DataError(
            f"{name}: values: expected numbers (N,) or (N, C), the time steps of all sequences one "
            f"after another, found {_shown(values)}"
        )
    return values if values.ndim == 2 else values[:, None]


def _offsets(arrays: dict[str, Array], total: int, name: str) -> list[int]:
    """Return the borders of the sequences, B + 1 of them."""
    if ("offsets" in arrays) == ("lengths" in arrays):
        raise DataError(f"{name}: expected exactly one of the arrays offsets and lengths")
    key = "offsets" if "offsets" in arrays else "lengths"
    array = arrays[key]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"{name}: {key}: expected integers (B,), found {_shown(array)}")
    offsets: list[int] = array.tolist()
    if key == "lengths":
        if min(offsets, default=0) < 0:
            raise DataError(f"{name}: lengths: {min(offsets)} is negative")
        offsets = [0, *accumulate(offsets)]
    if not offsets or offsets[0] != 0 or offsets[-1] != total:
        borders = f"{offsets[0]} to {offsets[-1]}" if offsets else "nothing"
        raise DataError(f"{name}: {key}: expected to cover 0 to {total}, the values; {borders}")
    for row, (start, end) in enumerate(pairwise(offsets), start=1):
        if end < start:
            raise DataError(f"{name}: offsets: row {row} ends at {end}, before its start {start}")
    return offsets


def _labels(arrays: dict[str, Array], rows: int, labelled: bool, name: str) -> list[str] | None:
    """Return the labels as text, or None where prediction's input has none."""
    if not labelled and "labels" not in arrays:
        return None
    labels = _array(arrays, "labels", name)
    if labels.shape != (rows,) or labels.dtype.kind not in "iuU":
        found = _shown(labels)
        raise DataError(f"{name}: labels: expected integers or strings ({rows},), found {found}")
    no_character = DataError(f"{name}: labels: a string holds what is no character")
    if labels.dtype.kind == "U" and labels.dtype.itemsize:
        # numpy itself fails with a SystemError on numbers that no character has
        codes = labels.view(np.dtype(np.uint32).newbyteorder(labels.dtype.byteorder))
        if codes.max(initial=0) > sys.maxunicode:
            raise no_character
    texts = [str(label) for label in labels.tolist()]
    try:
        "".join(texts).encode()
    except ValueError:
        raise no_character from None
    return texts


def _array(arrays: dict[str, Array], key: str, name: str) -> Array:
    if key not in arrays:
        found, wanted = ", ".join(arrays) or "none", "values, offsets or lengths, labels"
        raise DataError(f"{name}: no array {key}; found of {wanted}: {found}")
    return arrays[key]


def _shown(array: Array) -> str:
    return f"{array.dtype} {array.shape}"
