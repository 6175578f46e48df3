"""Opens what the user named: files, .gz and .zst, standard input; refuses all else at once."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from seqtrain.errors import DataError, SeqtrainError
from seqtrain.files.compressed import compression_of, import_zstd
from seqtrain.files.reading import open_regular, path_problem
from seqtrain.text import display_name

COMPRESSIONS = {
    ".gz": ("gzip", re.compile(rb"\x1f\x8b")),
    ".zst": ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
}
"""What the data are called that each ending names, and how they begin."""
BUFFER = 1 << 18
BOMB_RATIO = 1000
BOMB_FREE_BYTES = 100_000_000
TOO_LONG = "the zstd data need a window over 128 MiB; compress the file again without --long"


def file_problem(path: str, error: OSError | ValueError) -> SeqtrainError:
    """Word the operating system's refusal of a path, or the machine's failure to read it."""
    return path_problem(path, error, DataError)


@contextmanager
def open_input(path: str, *, pipes: bool) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed where its name ends in .gz or .zst.

    Args:
        path: a file, or `-` for standard input.
        pipes: whether standard input and named pipes are welcome (they can be read once only).

    Yields:
        A buffered stream of bytes.

    Raises:
        DataError: for what is missing, unreadable, no file, or named .gz without being gzip.
        ConfigError: the package that reads .zst isn't installed.
    """
    if path == "-":
        if not pipes or sys.stdin is None:
            raise DataError("stdin: can't be read here; give a file")
        yield sys.stdin.buffer
        return
    with open_file(path, pipes=pipes) as stream:
        ending = compression_of(path)
        if not ending:
            yield stream
            return
        name, begin = COMPRESSIONS[ending]
        if not stream.seekable():
            raise DataError(f"{display_name(path)}: a pipe of {name} data; decompress it first")
        if not begin.match(stream.read(4)):
            raise DataError(f"{display_name(path)}: named {ending}, but the data are not {name}")
        stream.seek(0)
        yield io.BufferedReader(_Inflated(stream, name), BUFFER)


def open_file(path: str, *, pipes: bool) -> BinaryIO:
    """Open a regular file, or a named pipe where these are welcome, as it is.

    Raises:
        DataError: for what is missing, unreadable, or no file.
        RunError: the machine failed to open it, or, later, to read it.
    """
    try:
        if pipes and stat.S_ISFIFO(os.stat(path).st_mode):
            return io.BufferedReader(_File(path), BUFFER)
        return io.BufferedReader(_File(path, opener=open_regular), BUFFER)
    except (OSError, ValueError) as error:
        raise file_problem(path, error) from None


class _File(io.FileIO):
    """A file whose readers needn't tell damage in it from a fault of the machine."""

    def readinto(self, buffer: Any) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise file_problem(str(self.name), error) from None

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise file_problem(str(self.name), error) from None


class _Inflated(io.RawIOBase):
    """The bytes inside a compressed file; damage and bombs are OSErrors that say how far it came.

    A frame of zstd whose window is over 128 MiB is refused by the library.
    """

    def __init__(self, packed: BinaryIO, name: str) -> None:
        self._packed, self._name = packed, name
        self._unpacked: Any
        self._damage: tuple[type[Exception], ...]
        if name == "gzip":
            self._unpacked = gzip.GzipFile(fileobj=packed, mode="rb")
            self._damage = (EOFError, zlib.error, gzip.BadGzipFile)
        else:
            zstd = import_zstd()
            self._unpacked, self._damage = zstd.ZstdFile(packed), (EOFError, zstd.ZstdError)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = cast("memoryview[int]", memoryview(buffer))
        try:
            data = self._unpacked.read1(len(view))
        except self._damage as error:
            if "too much memory" in str(error):
                raise OSError(TOO_LONG) from None
            came = f"after {self._unpacked.tell()} bytes of content"
            state = "are cut off" if isinstance(error, EOFError) else "are damaged"
            raise OSError(f"the {self._name} data {state} {came}; copy the file again") from None
        size = self._unpacked.tell()
        if size > BOMB_FREE_BYTES and size > BOMB_RATIO * self._packed.tell():
            raise OSError(
                f"the {self._name} data expand more than {BOMB_RATIO} times; refused as a bomb"
            )
        view[: len(data)] = data
        return len(data)
