"""Numbers of rows, in 32 bits each where they suffice: what planning and parting keep of a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqtrain.data.growing import blocks
from seqtrain.data.store import Ints

PARTS = 16
"""Parts, at most, that keys are compared in: for each of them all keys are read once."""
COMPARED = 2**20
"""Keys that are compared at once, or more where there are many, in about 50 bytes each."""


def row_type(count: int) -> npt.DTypeLike:
    """Return the type of the numbers of this many rows."""
    return np.int32 if count < 2**31 - 1 else np.int64


def row_numbers(count: int) -> Ints:
    """Return 0, 1, 2, … of this many rows."""
    numbers: Ints = np.arange(count, dtype=row_type(count))
    return numbers


def places(chosen: npt.NDArray[np.bool_]) -> Ints:
    """Return the rows for which this is true, ascending."""
    found: Ints = np.empty(np.count_nonzero(chosen), row_type(len(chosen)))
    end = start = 0
    for block in blocks(chosen):
        rows = np.flatnonzero(block)
        found[end : end + len(rows)] = rows + start
        end, start = end + len(rows), start + len(block)
    return found


def places_of_part(
    keys: Ints, part: int, parts: int, among: npt.NDArray[np.bool_] | None = None
) -> Ints:
    """Return the rows whose keys are of one part of all keys, ascending.

    Args:
        keys: one per row; equal keys are of one part.
        part: from 0.
        parts: how many there are.
        among: whether a row counts; None: each does.
    """
    found, start = [], 0
    for block in blocks(keys):
        chosen = block % parts == part
        if among is not None:
            chosen &= among[start : start + len(block)]
        found.append(np.flatnonzero(chosen) + start)
        start += len(block)
    return np.concatenate(found)


def first_alike(keys: Ints) -> Ints:
    """Return for each row the first one that has the same key.

    Args:
        keys: of any size; they are read several times, a part of them is in memory at a time.
    """
    first: Ints = np.empty(len(keys), row_type(len(keys)))
    parts = min(PARTS, 1 + len(keys) // COMPARED)
    for part in range(parts):  # equal keys are of one part
        rows = places_of_part(keys, part, parts)
        _, index, place = np.unique(keys[rows], return_index=True, return_inverse=True)
        first[rows] = rows[index][place]
    return first
