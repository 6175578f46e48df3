"""Arrays that grow: in memory while they are small, beyond that in a temporary file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import RunError

IN_MEMORY = 2**26
"""Bytes of an array from which on it is kept in a file."""
BLOCK = 2**24
"""Bytes that are worked on at a time."""
DISK = Path("/var/tmp")
"""Where temporary files go unless $TMPDIR says: /tmp is memory on many systems."""
COMPARED, PASSES = 2**20, 16
"""Keys compared at once, in about 50 bytes each; more where keys would be read too many times."""

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class GrowingArray:
    """An array of any length, appended bit by bit in bounded memory.

    Args:
        dtype: of a number.
        shape: of a row.
    """

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._content = bytearray()
        self._file: IO[bytes] | None = None

    def append(self, rows: Array) -> None:
        """Append rows; raises a RunError where there is no room for the temporary file."""
        self._content += np.ascontiguousarray(rows, dtype=self._dtype).data
        if len(self._content) >= IN_MEMORY:
            self._move_to_file()

    def build(self) -> Array:
        """Return what was appended, memory-mapped if large; append no more afterwards."""
        if self._file is None:
            return np.frombuffer(self._content, dtype=self._dtype).reshape(-1, *self._shape)
        self._move_to_file()
        with self._file as file:
            return np.memmap(file, dtype=self._dtype, mode="r+").reshape(-1, *self._shape)

    def _move_to_file(self) -> None:
        try:
            if self._file is None:
                folder = DISK if "TMPDIR" not in os.environ and DISK.is_dir() else None
                self._file = TemporaryFile(dir=folder)  # noqa: SIM115 # closed once it is mapped
            self._file.write(self._content)
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"a temporary file for encoded data: {error.strerror}; "
                "set TMPDIR to a folder with more room"
            ) from None
        self._content.clear()


def blocks(array: Array) -> Iterator[Array]:
    """Yield an array in parts of BLOCK bytes or so, at least one."""
    size = max(1, BLOCK * len(array) // max(1, array.nbytes))
    for start in range(0, max(1, len(array)), size):
        yield np.asarray(array[start : start + size])


def concatenate(parts: Iterable[Array]) -> Array:
    """Return arrays, at least one and all of one type, as one: memory-mapped where it is large."""
    whole: GrowingArray | None = None
    for part in parts:
        whole = whole or GrowingArray(part.dtype, part.shape[1:])
        whole.append(part)
    assert whole is not None
    return whole.build()


def row_numbers(count: int) -> Ints:
    """Return 0, 1, 2, … of so many rows, in 32 bits each where they suffice."""
    numbers: Ints = np.arange(count, dtype=np.int32 if count < 2**31 - 1 else np.int64)
    return numbers


def true_rows(chosen: npt.NDArray[np.bool_]) -> Ints:
    """Return the rows for which this is true, ascending."""
    found, start = [row_numbers(0)], 0
    for block in blocks(chosen):
        found.append((np.flatnonzero(block) + start).astype(row_numbers(0).dtype))
        start += len(block)
    return np.concatenate(found)


def equal_keys(keys: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield rows sorted by key, stable, and where each key begins; all of one key in one part."""
    parts = min(PASSES, 1 + len(keys) // COMPARED)
    for part in range(parts):
        rows = true_rows(concatenate(block % parts == part for block in blocks(keys)))
        order = np.argsort(keys[rows], kind="stable")
        ordered = keys[rows][order]
        yield rows[order], np.flatnonzero(np.append(ordered[:1] == ordered[:1], np.diff(ordered)))
