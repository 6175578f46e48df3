"""Opening of data files: decompression, UTF-16, digests, and protection against bombs."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from seqtrain.errors import DataError
from seqtrain.files.reading import compression_of, import_zstd, open_regular, path_problem
from seqtrain.text import display_name

BUFFER = 1 << 18
"""Bytes of a file that are read at once."""
BOMB_RATIO = 1000
"""Largest believable ratio of content to file size."""
BOMB_FREE_BYTES = 100_000_000
"""Bytes of content that are never taken for a bomb."""
COMPRESSIONS = {
    ".gz": ("gzip", re.compile(rb"\x1f\x8b")),
    ".zst": ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
}
"""Name of the compression of each ending, and the first bytes of such data."""


@contextmanager
def open_input(
    path: str,
    *,
    pipes: bool = False,
    encoding: str = "utf-8",
    digests: dict[str, str] | None = None,
) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if its name ends in .gz or .zst.

    Args:
        path: A file, or ``-`` for standard input.
        pipes: Allow standard input and named pipes, which can be read only once.
        encoding: With utf-16, the content is converted to UTF-8 in memory.
        digests: Receives the SHA-256 of the file under its path, if the block reads the file from
            beginning to end.

    Raises:
        DataError: If the file is missing or unreadable, or isn't compressed as its name says.
        ConfigError: If the package that reads .zst isn't installed.
    """
    if path == "-":
        if not pipes or sys.stdin is None:
            raise DataError("stdin: can't be read here; give a file")
        yield sys.stdin.buffer
        return
    file = _opened(path, pipes=pipes)
    with io.BufferedReader(file, BUFFER) as stream:
        content = _decompressed(stream, path)
        if encoding == "utf-16":
            content = _converted(content, path)
        yield cast("BinaryIO", content)
        if digests is not None and file.hashed == os.fstat(file.fileno()).st_size:
            digests[path] = file.hash.hexdigest()


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    file = _opened(path)
    with io.BufferedReader(file, BUFFER) as stream:
        while stream.read(BUFFER):
            pass
    return file.hash.hexdigest()


def _opened(path: str, *, pipes: bool = False) -> _HashedFile:
    try:
        is_pipe = pipes and stat.S_ISFIFO(os.stat(path).st_mode)
        return _HashedFile(path) if is_pipe else _HashedFile(path, opener=open_regular)
    except (OSError, ValueError) as error:
        raise path_problem(path, error, DataError) from None


def _decompressed(stream: Any, path: str) -> Any:
    ending = compression_of(path)
    if not ending:
        return stream
    name, begin = COMPRESSIONS[ending]
    if not stream.seekable():
        raise DataError(f"{display_name(path)}: a pipe of {name} data; decompress it first")
    if not begin.match(stream.peek(4)):
        raise DataError(f"{display_name(path)}: named {ending}, but the data are not {name}")
    return io.BufferedReader(_Inflated(stream, name), BUFFER)


def _converted(content: Any, path: str) -> Any:
    """Return UTF-16 text as UTF-8, and other content as it is."""
    variant = utf_16(content.peek(4))
    if variant is None:
        return content
    try:
        text = content.read().decode(variant)
    except (OSError, UnicodeError) as error:
        raise DataError(f"{display_name(path)}: not UTF-16 ({error})") from None
    return io.BufferedReader(io.BytesIO(text.encode()))


class _HashedFile(io.FileIO):
    """A file that is hashed while it is read, and raises DataError with its path.

    Attributes:
        hash: SHA-256 object of the bytes read so far.
        hashed: Number of these bytes, or -1 once a read wasn't sequential.
    """

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self.hash, self.hashed = hashlib.sha256(), 0

    def readinto(self, buffer: Any) -> int | None:
        try:
            is_next = not self.seekable() or self.tell() == self.hashed
            size = super().readinto(buffer)
        except OSError as error:
            raise path_problem(str(self.name), error, DataError) from None
        if is_next and size:
            self.hash.update(memoryview(buffer)[:size])
        self.hashed = self.hashed + (size or 0) if is_next else -1
        return size


class _Inflated(io.RawIOBase):
    """The content of a compressed file. Damage and bombs are OSErrors that give the place."""

    def __init__(self, packed: BinaryIO, name: str) -> None:
        self._packed, self._name = packed, name
        self._problem: str | None = None  # raised once the content before it has been read
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
        """Fill the buffer, so that what is guessed from it doesn't depend on gzip members."""
        view, size = memoryview(buffer), 0
        while size < len(view) and self._problem is None:
            try:
                read = self._unpacked.readinto1(view[size:])
                refuse_bomb(f"the {self._name} data", self._unpacked.tell(), self._packed.tell())
            except self._damage as error:
                self._problem = self._described(error)
                break
            if not read:
                break
            size += read
        if self._problem is not None and not size:
            raise OSError(self._problem)
        return size

    def _described(self, error: Exception) -> str:
        if "too much memory" in str(error):
            return (
                "the zstd data need a window over 128 MiB; compress the file again without --long"
            )
        state = "are cut off" if isinstance(error, EOFError) else "are damaged"
        where = f"after {self._unpacked.tell()} bytes of content"
        return f"the {self._name} data {state} {where}; copy the file again"


def refuse_bomb(what: str, content: int, packed: int) -> None:
    """Raise OSError if so much content can't come from an honest file of `packed` bytes."""
    if content > BOMB_FREE_BYTES and content > BOMB_RATIO * packed:
        raise OSError(f"{what} expand more than {BOMB_RATIO} times; refused as a bomb")


def utf_16(head: bytes) -> str | None:
    """Return the variant of UTF-16 in which a file begins, or None.

    It is detected by the byte order mark, or by the zeros in the file's first letters.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    zeros = [name for at, name in enumerate(("be", "le")) if head[at:4:2] == b"\0\0"]
    return f"utf-16-{zeros[0]}" if len(zeros) == 1 else None
