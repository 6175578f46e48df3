"""Lines of text files: decoding, physical line numbers, and bytes that aren't text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import BinaryIO

from seqtrain.tables.blocks import UnreadableError
from seqtrain.tables.opening import utf_16

BLOCK_BYTES = 1 << 15
LINE_BYTES = 1 << 28
"""Largest number of bytes of a line (256 MiB), and of characters of a quoted field."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CARRIAGE_RETURN = re.compile(rb"\r(?!\n|\Z)")
"""A carriage return that isn't part of a line end ``\\r\\n``."""
MAGIC = {
    b"\x1f\x8b": "gzip data; name it NAME.gz",
    b"PK\x03\x04": "a zip archive (or npz, xlsx)",
    b"BZh91AY": "bzip2 data",
    b"\xfd7zXZ\0": "xz data",
    b"\x28\xb5\x2f\xfd": "zstd data; name it NAME.zst",
    b"PAR1\x15": "a parquet file",
    b"\x93NUMPY": "a numpy array",
    b"\x89HDF": "an HDF5 file",
    b"%PDF-": "a PDF",
}
"""Maps the first bytes of binary files to the name of their type, for messages."""


class TextLines:
    r"""The lines of a binary stream.

    A line that isn't UTF-8 is decoded in another encoding: files that several programs have
    written mix encodings, line by line. Lines end with ``\n``. In a file without ``\n``, as old
    versions of Excel write it on a Mac, they end with ``\r``.

    Args:
        stream: Stream of bytes.
        encoding: Encoding of lines that aren't UTF-8.

    Attributes:
        problems: Maps the number of each line that can't be decoded to the reason. It is filled
            while the lines are read.
    """

    def __init__(self, stream: BinaryIO, encoding: str = "utf-8") -> None:
        self.stream = stream
        self.encoding = "utf-8" if encoding == "utf-16" else encoding
        self.problems = dict[int, str]()
        self._ends_with_cr = False

    def blocks(self) -> Iterator[list[str]]:
        r"""Yield lists of consecutive lines, with their line ends.

        Only ``\n`` ends a line: a carriage return or U+2028 may be part of a cell.

        Raises:
            UnreadableError: If the file is binary or damaged, or a line is too long.
        """
        number = 1
        try:
            for data in self._whole_lines():
                if number == 1:
                    data = data.removeprefix(BYTE_ORDER_MARK)
                lines = self._decoded(data, number)
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
        parts, size, is_first = list[bytes](), 0, True
        while part := self.stream.read1(BLOCK_BYTES):  # type: ignore[attr-defined]
            if is_first:
                is_first = False
                _refuse_binary(part)
                self._ends_with_cr = b"\n" not in part and bool(CARRIAGE_RETURN.search(part))
            if self._ends_with_cr:
                part = part.replace(b"\r", b"\n")
            end = part.rfind(b"\n") + 1
            if end:
                parts.append(part[:end])
                yield b"".join(parts)
                parts, size = [], 0
            parts.append(part[end:])
            size += len(part) - end
            if size > LINE_BYTES:
                raise OSError(f"the line is longer than {LINE_BYTES} bytes")
        yield b"".join(parts)

    def _decoded(self, data: bytes, number: int) -> list[str]:
        if b"\0" not in data:
            try:
                return io.StringIO(data.decode(), "\n").readlines()
            except UnicodeDecodeError:
                pass
        return [self._decoded_line(raw, at) for at, raw in enumerate(io.BytesIO(data), number)]

    def _decoded_line(self, raw: bytes, number: int) -> str:
        text, problem = self._text_of(raw)
        at = raw.find(b"\0")
        if at >= 0 and (problem is None or b"\0" in raw[: problem[0]]):
            self.problems[number] = f"byte {at + 1} is NUL; expected UTF-8 text, found binary data"
        elif problem is not None:
            self.problems[number] = problem[1]
        return text

    def _text_of(self, raw: bytes) -> tuple[str, tuple[int, str] | None]:
        """Return a line as text, and the first byte that isn't text with a message, or None."""
        try:
            return raw.decode(), None
        except UnicodeDecodeError as error:
            at = error.start
        try:
            return raw.decode(self.encoding), None
        except UnicodeDecodeError:
            found = f"byte {at + 1} is not {self.encoding.upper()} (0x{raw[at]:02x})"
            advice = "save the file as UTF-8, or set data.encoding (--encoding), such as cp1252"
            return raw.decode(errors="replace"), (at, f"{found}; {advice}")


def without_end(line: str) -> str:
    r"""Return a line without its line end, `\n` or `\r\n`."""
    if line.endswith("\n"):
        return line[:-1].removesuffix("\r")
    return line


def _refuse_binary(data: bytes) -> None:
    if utf_16(data) is not None:
        found = "UTF-16 text; set data.encoding (--encoding): utf-16"
        raise UnreadableError(1, f"expected UTF-8 text, found {found}")
    for magic, found in MAGIC.items():
        if data.startswith(magic):
            raise UnreadableError(1, f"expected UTF-8 text, found {found}")
