"""Opening of files: decompression, encodings, lines, digests taken while reading, and bombs."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from seqtrain.errors import DataError, parameter
from seqtrain.files.reading import compression_of, import_zstd, open_regular, path_problem
from seqtrain.tables.blocks import UnreadableError
from seqtrain.text import display_name

STDIN = "-"
"""Name of standard input in place of a path."""
BUFFER = 1 << 18
"""Number of bytes of a file that are read at once."""
BLOCK_BYTES = 1 << 15
"""Number of bytes that are decoded at once."""
LINE_BYTES = 1 << 28
"""Largest number of bytes of a line (256 MiB), and of characters of a quoted field."""
BOMB_RATIO = 1000
"""Largest allowed ratio of decompressed size to file size."""
BOMB_FREE_BYTES = 100_000_000
"""Decompressed size in bytes up to which the ratio isn't checked."""
GUESSED_BYTES = 1 << 20
"""Number of bytes from which an encoding is guessed."""
MOST_BEYOND_ASCII = 0.5
"""Largest share of such letters in texts of languages that are written in Latin letters."""
OLD_ENCODINGS = ("cp4", "cp7", "cp8", "ibm", "mac")
"""Beginnings of the names of encodings of DOS and Mac, in which few files are written today."""
LETTER_BEYOND_ASCII = re.compile(r"(?![\x00-\x7f])[^\W\d_]")
MARK_IN_WORD = re.compile(
    r"(?<=[^\W\d_])(?![^\W\d_])[^\x00-\x7f’](?=[^\W\d_])|(?<=[a-z])[À-ÞŒŠŽŸˆ](?=[a-z])"
)
"""A mark, or a capital beyond ASCII, between letters."""
UTF_8_MARK = b"\xef\xbb\xbf"
CARRIAGE_RETURN = re.compile(rb"\r(?!\n|\Z)")
"""A carriage return that isn't part of a line end ``\\r\\n``."""


def _named_like(found: str, format: str) -> str:
    """Return the words for a file of a format that its name or an option must tell."""
    option = parameter("input_format", format)
    return f"{found}; name it NAME.{format}, or predict it with {option}"


MAGIC = (
    (b"\x1f\x8b", b"", "gzip data; name the file NAME.gz, or pipe it by zcat FILE"),
    (b"PK\x03\x04", b"xl/", _named_like("a workbook of Excel", "xlsx")),
    (b"PK\x03\x04", b".npy", _named_like("arrays of numpy", "npz")),
    (b"PK\x03\x04", b"", "a zip archive; unpack it first: unzip FILE"),
    (b"BZh91AY", b"", "bzip2 data; decompress it first: bunzip2 -k FILE"),
    (b"\xfd7zXZ\0", b"", "xz data; decompress it first: unxz -k FILE"),
    (b"\x28\xb5\x2f\xfd", b"", "zstd data; name the file NAME.zst, or pipe it by zstdcat FILE"),
    (b"PAR1", b"", _named_like("a parquet file", "parquet")),
    (b"ARROW1\0\0", b"", _named_like("an Arrow file", "arrow")),
    (b"\x93NUMPY", b"", "an array of numpy; name the file NAME.npy"),
    (b"\x89HDF", b"", "an HDF5 file; name it NAME.h5: init prints a command that converts it"),
    (b"\xd0\xcf\x11\xe0", b"", "an old file of Office; save it as .xlsx or .csv"),
    (b"%PDF-", b"", "a PDF; copy its table or text into a file of csv"),
)
"""Binary files: their first bytes, a part of their first block, and words for a message."""


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
        yield _from_utf_16(sys.stdin.buffer, path, encoding)
        return
    file = _HashedFile(path)
    with io.BufferedReader(file, BUFFER) as stream:
        ending = compression_of(path)
        if ending:
            content = _decompressed(stream, path, CODINGS[ending])
        else:
            content = stream
        yield _from_utf_16(content, path, encoding)
        if digests is not None and file.hashed == os.fstat(file.fileno()).st_size:
            digests[path] = file.hash.hexdigest()


def _from_utf_16(content: Any, path: str, encoding: str) -> BinaryIO:
    """Return a stream as it is, or as UTF-8 if the encoding is utf-16 and it begins so.

    Raises:
        DataError: If it isn't UTF-16 to its end.
    """
    variant = utf_16(content.peek(4)) if encoding == "utf-16" else None
    if variant is not None:
        try:
            text = content.read().decode(variant)
        except (OSError, UnicodeError) as error:
            raise DataError(f"{display_name(path)}: not UTF-16 ({error})") from None
        content = io.BufferedReader(io.BytesIO(text.encode()))
    return cast("BinaryIO", content)


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file's bytes in hexadecimal.

    Raises:
        DataError: If the file can't be read.
    """
    file = _HashedFile(path)
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
    even_are_zero = head[0:4:2] == b"\0\0"
    odd_are_zero = head[1:4:2] == b"\0\0"
    if even_are_zero == odd_are_zero:
        return None
    if even_are_zero:
        return "utf-16-be"
    return "utf-16-le"


def guess_encoding(path: str) -> str | None:
    """Return the most likely encoding of a text file that isn't UTF-8, or None without a guess.

    The guess is made by chardet from the lines that aren't UTF-8, at most `GUESSED_BYTES` of them.
    If these hold marks of cp1252 alone, such as €, – and ’, and no letters, it is cp1252: chardet
    knows languages by their letters. It is cp1252, too, in place of an encoding of DOS or Mac, if
    no mark stands between letters, as marks would for letters of these.

    Raises:
        DataError: If the file can't be read.
    """
    import chardet

    lines = []
    size = 0
    with open_input(path) as stream:
        for line in stream:
            try:
                line.decode()
            except UnicodeDecodeError:
                lines.append(line)
                size += len(line)
            if size > GUESSED_BYTES:
                break
    content = b"".join(lines)
    if not content:
        return None
    found = (chardet.detect(content)["encoding"] or "").lower()
    text = _in_windows(content)
    if text is not None:
        beyond = len(LETTER_BEYOND_ASCII.findall(text))
        letters = sum(map(str.isalpha, text))
        if beyond == 0 or (
            found.startswith(OLD_ENCODINGS) and beyond < MOST_BEYOND_ASCII * letters
        ):
            return "cp1252"
    return found or None


def _in_windows(content: bytes) -> str | None:
    """Return the text of cp1252, or None if it isn't cp1252.

    A mark between letters, other than an apostrophe, is a letter of another encoding.
    """
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return None if MARK_IN_WORD.search(text) else text


@dataclass
class TextLines:
    r"""The lines of a binary stream.

    A line that isn't UTF-8 is decoded in another encoding: files that several programs have
    written mix encodings, line by line. Lines end with ``\n``. In a file without ``\n``, as old
    versions of Excel write it on a Mac, they end with ``\r``.

    Attributes:
        stream: Stream of bytes.
        encoding: Encoding of lines that aren't UTF-8.
        problems: Maps the number of each line that can't be decoded to the reason. It is filled
            while the lines are read.
    """

    stream: BinaryIO
    encoding: str = "utf-8"
    problems: dict[int, str] = field(default_factory=dict)

    def blocks(self) -> Iterator[list[str]]:
        r"""Yield lists of consecutive lines, with their line ends.

        Only ``\n`` ends a line: a carriage return or U+2028 may be part of a cell.

        Raises:
            UnreadableError: If the file is binary or damaged, or a line is too long.
        """
        number = 1
        try:
            for data in self._whole_lines():
                lines = None
                if b"\0" not in data:
                    with suppress(UnicodeDecodeError):
                        lines = io.StringIO(data.decode(), "\n").readlines()
                if lines is None:
                    raw = enumerate(io.BytesIO(data), number)
                    lines = [self._decoded_line(line, at) for at, line in raw]
                yield lines
                number += len(lines)
        except OSError as error:
            raise UnreadableError(number, error.strerror or str(error)) from None

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text without line end."""
        number = 1
        for lines in self.blocks():
            for line in lines:
                yield number, without_end(line)
                number += 1

    def problem(self, first: int, last: int) -> str | None:
        """Return the reason why one of some lines can't be decoded, or None.

        The reason names the line if it isn't the first one.
        """
        if not self.problems:
            return None
        for line in range(first, last + 1):
            if line in self.problems:
                place = "" if line == first else f"line {line}, "
                return place + self.problems[line]
        return None

    def _whole_lines(self) -> Iterator[bytes]:
        """Yield blocks of bytes that end at the end of a line, or of the file."""
        read: Callable[[int], bytes] = self.stream.read1  # type: ignore[attr-defined]
        part = read(BLOCK_BYTES)
        found = [kind for start, mark, kind in MAGIC if part.startswith(start) and mark in part]
        if not found and utf_16(part) is not None:
            found = ["UTF-16 text; set data.encoding (--encoding): utf-16"]
        if found:
            raise UnreadableError(1, f"expected UTF-8 text, found {found[0]}")
        part = part.removeprefix(UTF_8_MARK)
        ends_with_cr = b"\n" not in part and CARRIAGE_RETURN.search(part) is not None
        parts = list[bytes]()
        size = 0
        while part:
            if ends_with_cr:
                part = part.replace(b"\r", b"\n")
            end = part.rfind(b"\n") + 1
            if end:
                yield b"".join([*parts, part[:end]])
                parts = []
                size = 0
            parts.append(part[end:])
            size += len(part) - end
            if size > LINE_BYTES:
                raise OSError(f"the line is longer than {LINE_BYTES} bytes")
            part = read(BLOCK_BYTES)
        yield b"".join(parts)

    def _decoded_line(self, raw: bytes, number: int) -> str:
        at = raw.find(b"\0")
        if at >= 0:
            self.problems[number] = f"byte {at + 1} is NUL; expected UTF-8 text, found binary data"
            raw = raw.replace(b"\0", b"?")  # the csv module of Python 3.10 stops at NUL
            return raw.decode(errors="replace")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            at = error.start
        encoding = self.encoding if self.encoding != "utf-16" else "utf-8"
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            self.problems[number] = (
                f"byte {at + 1} is not {encoding.upper()} (0x{raw[at]:02x}); save the file as "
                "UTF-8, or set data.encoding (--encoding), such as cp1252"
            )
            return raw.decode(errors="replace")


def without_end(line: str) -> str:
    r"""Return a line without its line end, `\n` or `\r\n`."""
    if line.endswith("\n"):
        return line[:-1].removesuffix("\r")
    return line


class _HashedFile(io.FileIO):
    """A file that is hashed while it is read.

    If opening or reading fails, a DataError with the path is raised.

    Attributes:
        hash: SHA-256 object of the bytes read so far.
        hashed: Number of bytes in `hash`, or -1 after a read that wasn't sequential.
    """

    def __init__(self, path: str) -> None:
        try:
            super().__init__(path, opener=None if is_pipe(path) else open_regular)
        except (OSError, ValueError) as error:
            raise path_problem(path, error, DataError) from None
        self.hash = hashlib.sha256()
        self.hashed = 0

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


@dataclass(frozen=True)
class _Coding:
    """A compression of files.

    Attributes:
        name: Name for messages.
        beginnings: First bytes of compressed data.
        unpacked: Function from a packed stream to a stream of the content.
    """

    name: str
    beginnings: tuple[bytes, ...]
    unpacked: Callable[[Any], Any]


CODINGS = {
    ".gz": _Coding("gzip", (b"\x1f\x8b",), lambda packed: gzip.GzipFile(fileobj=packed, mode="rb")),
    ".zst": _Coding(
        "zstd",
        # The data may begin with a frame to skip.
        (b"\x28\xb5\x2f\xfd", *(bytes([x, 0x2A, 0x4D, 0x18]) for x in range(0x50, 0x60))),
        lambda packed: import_zstd().ZstdFile(packed),
    ),
}
"""Compression of a file, by the ending of its name."""


class _Unpacked(io.RawIOBase):
    """Stream of the decompressed content of a file.

    Reading raises OSError if the data are damaged, or expand so much that they may be a bomb.

    Args:
        packed: Stream of the compressed data.
        coding: The compression.
    """

    def __init__(self, packed: Any, coding: _Coding) -> None:
        self._packed = packed
        self._name = coding.name
        self._content = coding.unpacked(packed)
        self._problem: str | None = None  # raised once the content before it has been read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with decompressed bytes, and return their number.

        The buffer is filled completely except by the last read, also across members of a file. The
        detection of formats needs full first blocks.
        """
        view = memoryview(buffer)
        size = 0
        while size < len(view) and self._problem is None:
            try:
                read = self._content.readinto1(view[size:])
                refuse_bomb(f"the {self._name} data", self._content.tell(), self._packed.tell())
            except (DataError, MemoryError):
                raise
            except Exception as error:  # zlib, gzip and zstd have classes of their own
                self._problem = self._described(error)
                break
            if not read:
                break
            size += read
        if self._problem is not None and not size:
            raise OSError(self._problem)
        return size

    def _described(self, error: Exception) -> str:
        if "bomb" in str(error):
            return str(error)
        if "too much memory" in str(error):
            return (
                "the zstd data need a window over 128 MiB; compress the file again without --long"
            )
        if isinstance(error, EOFError):
            state = "are cut off"
        else:
            state = "are damaged"
        return (
            f"the {self._name} data {state} after {self._content.tell()} bytes of content; copy "
            "the file again"
        )


def _decompressed(stream: Any, path: str, coding: _Coding) -> Any:
    if not stream.seekable():
        raise DataError(f"{display_name(path)}: a pipe of {coding.name} data; decompress it first")
    if not stream.peek(4).startswith(coding.beginnings):
        raise DataError(
            f"{display_name(path)}: named {compression_of(path)}, but the data are not "
            f"{coding.name}"
        )
    return io.BufferedReader(_Unpacked(stream, coding), BUFFER)
