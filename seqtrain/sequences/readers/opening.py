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
"""Number of bytes of a file that are read at once."""
BOMB_RATIO = 1000
"""Largest allowed ratio of decompressed size to file size."""
BOMB_FREE_BYTES = 100_000_000
"""Decompressed size in bytes up to which the ratio isn't checked."""
COMPRESSIONS = {
    ".gz": ("gzip", re.compile(rb"\x1f\x8b")),
    ".zst": ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
}
"""Maps each ending to the name of its compression and a pattern of the first bytes."""


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
        pipes: True to allow standard input and named pipes, which can be read only once.
        encoding: Encoding of the file. UTF-16 is converted to UTF-8 in memory. Content in any
            other encoding is passed unchanged.
        digests: Dict that receives the file's SHA-256 under its path, or None. The digest is added
            at the end of the `with` statement, if the whole file was read in order.

    Yields:
        A buffered stream of bytes, which has `peek`.

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
    """Return the SHA-256 of a file's bytes in hexadecimal.

    Raises:
        DataError: If the file can't be read.
    """
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
    """Return a stream of the content. UTF-16 is converted to UTF-8, and other content is unchanged.

    Raises:
        DataError: If the content begins as UTF-16 but can't be decoded.
    """
    variant = utf_16(content.peek(4))
    if variant is None:
        return content
    try:
        text = content.read().decode(variant)
    except (OSError, UnicodeError) as error:
        raise DataError(f"{display_name(path)}: not UTF-16 ({error})") from None
    return io.BufferedReader(io.BytesIO(text.encode()))


class _HashedFile(io.FileIO):
    """A file that is hashed while it is read.

    If reading fails, a DataError with the path is raised.

    Attributes:
        hash: SHA-256 object of the bytes read so far.
        hashed: Number of bytes in `hash`, or -1 after a read that wasn't sequential.
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
    """Stream of the decompressed content of a file.

    Reading raises OSError if the data are damaged, or expand so much that they may be a bomb.

    Args:
        packed: Stream of the compressed data.
        name: Name of the compression: gzip or zstd.
    """

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
        """Fill the buffer with decompressed bytes, and return their number.

        The buffer is filled completely except by the last read, also across gzip members. The
        detection of formats needs full first blocks.
        """
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
    """Raise OSError if content may be a decompression bomb: far larger than its file.

    Args:
        what: Name of the content for the message, such as "the arrays".
        content: Size of the decompressed content in bytes.
        packed: Size of the compressed file in bytes.
    """
    if content > BOMB_FREE_BYTES and content > BOMB_RATIO * packed:
        raise OSError(f"{what} expand more than {BOMB_RATIO} times; refused as a bomb")


def utf_16(head: bytes) -> str | None:
    """Return "utf-16", "utf-16-le" or "utf-16-be" if a file is in UTF-16, or None.

    The encoding is detected by the byte order mark, or by the zero bytes of the first letters.

    Args:
        head: The first bytes of the file, at least four if it has so many.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    zeros = [name for at, name in enumerate(("be", "le")) if head[at:4:2] == b"\0\0"]
    return f"utf-16-{zeros[0]}" if len(zeros) == 1 else None
