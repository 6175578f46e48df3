"""Arrays of steps that grow: in memory while they are small, beyond that in a temporary file."""

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

Steps = npt.NDArray[Any]


class GrowingArray:
    """Steps of any number, appended bit by bit, in bounded memory.

    Args:
        dtype: of a number.
        shape: of a step.
    """

    def __init__(self, dtype: npt.DTypeLike, shape: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._shape = shape
        self._content = bytearray()
        self._file: IO[bytes] | None = None

    def append(self, steps: Steps) -> None:
        """Append steps (T, …) of this type.

        Raises:
            RunError: there is no room for the temporary file.
        """
        self._content += steps.data
        if len(self._content) >= IN_MEMORY:
            self._move_to_file()

    def build(self) -> Steps:
        """Return what was appended, memory-mapped if large; append no more afterwards.

        Raises:
            RunError: there is no room for the temporary file.
        """
        if self._file is None:
            flat = np.frombuffer(self._content, dtype=self._dtype)
        else:
            self._move_to_file()
            with self._file as file:
                flat = np.memmap(file, dtype=self._dtype, mode="r")
        return flat.reshape(-1, *self._shape)

    def _move_to_file(self) -> None:
        try:
            if self._file is None:
                self._file = temporary_file()
            self._file.write(self._content)
            self._file.flush()
        except OSError as error:
            raise RunError(
                f"a temporary file for encoded data: {error.strerror}; "
                "set TMPDIR to a folder with more room"
            ) from None
        self._content.clear()


def temporary_file() -> IO[bytes]:
    """Return a new file without a name, where there is room for large ones.

    Raises:
        OSError: there is none.
    """
    folder = DISK if "TMPDIR" not in os.environ and DISK.is_dir() else None
    return TemporaryFile(dir=folder)


def blocks(steps: Steps) -> Iterator[Steps]:
    """Yield an array in parts, of BLOCK bytes or so; at least one."""
    size = max(1, BLOCK * len(steps) // max(1, steps.nbytes))
    for start in range(0, max(1, len(steps)), size):
        yield np.asarray(steps[start : start + size])


def joined(parts: Iterable[Steps]) -> Steps:
    """Return arrays, at least one and all of one type, as one: memory-mapped where it is large."""
    whole: GrowingArray | None = None
    for part in parts:
        whole = whole or GrowingArray(part.dtype, part.shape[1:])
        whole.append(np.ascontiguousarray(part))
    assert whole is not None
    return whole.build()
