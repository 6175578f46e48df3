"""Opening of files: decompression, UTF-16, digests taken while reading, and bombs."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar, cast

from seqtrain.errors import DataError
from seqtrain.files.reading import compression_of, import_zstd, open_regular, path_problem
from seqtrain.text import display_name

STDIN = "-"
"""Name of standard input in place of a path."""
BUFFER = 1 << 18
"""Number of bytes of a file that are read at once."""
BOMB_RATIO = 1000
"""Largest allowed ratio of decompressed size to file size."""
BOMB_FREE_BYTES = 100_000_000
"""Decompressed size in bytes up to which the ratio isn't checked."""
GUESSED_BYTES = 1 << 20
"""Number of bytes from which an encoding is guessed."""


@contextmanager
def open_input(
    path: str, encoding: str = "utf-8", digests: dict[str, str] | None = None
) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if its name ends in .gz or .zst.

    Standard input and named pipes can be read once.

    Args:
        path: A file, or ``-`` for standard input.
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
    if path == STDIN:
        if sys.stdin is None:
            raise DataError("stdin: can't be read here; give a file")
        yield sys.stdin.buffer
        return
    file = _opened(path)
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


def is_pipe(path: str) -> bool:
    """Return True if a path is a pipe or a terminal, whose lines may arrive one by one."""
    if path == STDIN:
        return sys.stdin is not None and not sys.stdin.seekable()
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


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
    if head[0:4:2] == b"\0\0" and head[1:4:2] != b"\0\0":
        return "utf-16-be"
    if head[1:4:2] == b"\0\0" and head[0:4:2] != b"\0\0":
        return "utf-16-le"
    return None


def guess_encoding(path: str) -> str | None:
    """Return the most likely encoding of a text file that isn't UTF-8, or None without a guess.

    The guess is made by chardet from the lines that aren't UTF-8, at most `GUESSED_BYTES` of them.

    Raises:
        DataError: If the file can't be read.
    """
    import chardet

    lines, size = list[bytes](), 0
    with open_input(path) as stream:
        for line in stream:
            try:
                line.decode()
            except UnicodeDecodeError:
                lines.append(line)
                size += len(line)
            if size > GUESSED_BYTES:
                break
    found = chardet.detect(b"".join(lines))["encoding"]
    return None if found is None else found.lower()


def _opened(path: str) -> _HashedFile:
    try:
        if stat.S_ISFIFO(os.stat(path).st_mode):
            return _HashedFile(path)
        return _HashedFile(path, opener=open_regular)
    except (OSError, ValueError) as error:
        raise path_problem(path, error, DataError) from None


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
            size = super().readinto(buffer) or 0
        except OSError as error:
            raise path_problem(str(self.name), error, DataError) from None
        if not is_next:
            self.hashed = -1
        elif size:
            self.hash.update(memoryview(buffer)[:size])
            self.hashed += size
        return size


class _Unpacked(io.RawIOBase):
    """Stream of the decompressed content of a file.

    Reading raises OSError if the data are damaged, or expand so much that they may be a bomb.

    Args:
        packed: Stream of the compressed data.
    """

    name: ClassVar[str]
    beginnings: ClassVar[tuple[bytes, ...]]
    """First bytes of compressed data."""
    damage: tuple[type[Exception], ...]
    """Errors that damaged data raise."""

    def __init__(self, packed: Any) -> None:
        self._packed = packed
        self._content = self.unpacked(packed)
        self._problem: str | None = None  # raised once the content before it has been read

    def unpacked(self, packed: Any) -> Any:
        """Return a stream of the content, with `readinto1` and `tell`."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decompressed bytes, and return their number.

        The buffer is filled completely except by the last read, also across members of a file. The
        detection of formats needs full first blocks.
        """
        view, size = memoryview(buffer), 0
        while size < len(view) and self._problem is None:
            try:
                read = self._content.readinto1(view[size:])
                refuse_bomb(f"the {self.name} data", self._content.tell(), self._packed.tell())
            except self.damage as error:
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
        where = f"after {self._content.tell()} bytes of content"
        return f"the {self.name} data {state} {where}; copy the file again"


class _Gzip(_Unpacked):
    """Content of gzip data."""

    name = "gzip"
    beginnings = (b"\x1f\x8b",)
    damage = (EOFError, zlib.error, gzip.BadGzipFile)

    def unpacked(self, packed: Any) -> Any:
        return gzip.GzipFile(fileobj=packed, mode="rb")


class _Zstd(_Unpacked):
    """Content of zstd data, which may begin with a frame to skip."""

    name = "zstd"
    beginnings = (
        b"\x28\xb5\x2f\xfd",
        *(bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60)),
    )

    def unpacked(self, packed: Any) -> Any:
        zstd = import_zstd()
        self.damage = (EOFError, zstd.ZstdError)
        return zstd.ZstdFile(packed)


CODINGS: dict[str, type[_Unpacked]] = {".gz": _Gzip, ".zst": _Zstd}
"""Compression of a file, by the ending of its name."""


def _decompressed(stream: Any, path: str) -> Any:
    ending = compression_of(path)
    if not ending:
        return stream
    coding = CODINGS[ending]
    if not stream.seekable():
        raise DataError(f"{display_name(path)}: a pipe of {coding.name} data; decompress it first")
    if not stream.peek(4).startswith(coding.beginnings):
        found = f"named {ending}, but the data are not {coding.name}"
        raise DataError(f"{display_name(path)}: {found}")
    return io.BufferedReader(coding(stream), BUFFER)


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
