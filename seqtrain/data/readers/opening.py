"""Opens what the user named: files, .gz and .zst, standard input; and reads lines of UTF-8 text."""

import gzip
import hashlib
import io
import os
import re
import stat
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from seqtrain.data.examples import (
    BLANK_LABEL,
    BadRow,
    Example,
    Numbered,
    ReadOptions,
    RowProblems,
    Sequence,
)
from seqtrain.data.labels import Labels, label_tuple
from seqtrain.data.readers.sequences import json_type, sequence_from_text
from seqtrain.errors import DataError
from seqtrain.files.reading import (
    NotJSONError,
    compression_of,
    import_zstd,
    open_regular,
    path_problem,
)
from seqtrain.text import display_name

LINE_BYTES = 1 << 28
"""Bytes a line may have (256 MiB), and characters a quoted field."""
BLOCK_BYTES, BUFFER = 1 << 15, 1 << 18
"""Bytes of lines that are read at once, and of a file."""
BOMB_RATIO, BOMB_FREE_BYTES = 1000, 100_000_000
"""Content of more than so many times the bytes of its file, and of so many bytes, is a bomb."""
COMPRESSIONS = {
    ".gz": ("gzip", re.compile(rb"\x1f\x8b")),
    ".zst": ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
}
"""What the data are called that each ending names, and how they begin."""
DAMAGE, NUL = re.compile("[\udc00\udc80-\udcff]"), "\udc00"
"""What stands for bytes that are no text: surrogates, as Python's own for bytes; text has none."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
READ_FILES: ContextVar[dict[str, str] | None] = ContextVar("READ_FILES", default=None)
"""Gets the SHA-256 of each file that is read from its beginning to its end, by path."""
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


@dataclass(frozen=True)
class RowSource:
    """An open file, or a table in memory, and what its reader has to know.

    Attributes:
        at_once: rows that may be waited for before the first of them is used.
    """

    stream: Any
    options: ReadOptions
    problems: RowProblems
    labelled: bool = True
    at_once: int = 1

    def blocks(self) -> Iterator[list[str]]:
        r"""Yield the lines, many at once, with their ends: `\n` or `\r\n` and nothing else.

        A byte order mark at the start is dropped. A line that is no UTF-8 text, or holds a NUL, is
        damage; in prediction, where the options say blank, `check` refuses it.

        Raises:
            DataError: for damage, and for a line that is longer than `LINE_BYTES`.
        """
        number, encoding = 1, self.options.encoding
        try:
            for block in _blocks(self.stream, self.problems):
                try:
                    lines = [*io.StringIO(block.decode(), "\n")]
                except UnicodeDecodeError:
                    lines = []
                if b"\0" in block or not lines:  # which one is it?
                    lines = [_decode(line, encoding) for line in io.BytesIO(block)]
                    bad = next((i for i, x in enumerate(lines) if DAMAGE.search(x)), None)
                    if bad is not None and self.options.bad_rows != "blank":
                        yield lines[:bad]
                        number += bad
                        self.check(lines[bad])
                yield lines
                number += len(lines)
        except BadRow as bad_line:
            self.problems.fail(number, str(bad_line))
        except OSError as error:
            self.problems.fail(number, error.strerror or str(error))

    def lines(self) -> Numbered:
        """Yield each line with its number from 1, without its end."""
        number = 1
        for lines in self.blocks():
            yield from enumerate(map(without_end, lines), number)
            number += len(lines)

    def check(self, text: str) -> None:
        """Refuse, by BadRow, what is no text; its first such byte is named."""
        found = DAMAGE.search(text)
        if found is None:
            return
        at, byte = len(text[: found.start()].encode()) + 1, ord(found[0]) & 0xFF
        if not byte:
            raise BadRow(f"byte {at} is NUL; expected UTF-8 text, found binary data")
        advice = "save the file as UTF-8, or set data.encoding (--encoding), such as cp1252"
        raise BadRow(f"byte {at} is not {self.options.encoding.upper()} (0x{byte:02x}); {advice}")

    def good(self, rows: Numbered, *, blank_rows: bool = True) -> Numbered:
        """Yield rows, a BadRow in place of what is no text.

        Without blank_rows, blank rows at the end of the file are dropped, and all others are bad.
        """
        blanks = array("q")  # their lines, until it is known whether the file ends with them
        is_lenient = self.options.bad_rows == "blank"
        for line, row in rows:
            if not blank_rows and (row == [""] if type(row) is list else not row.strip()):
                blanks.append(line)
                continue
            for blank in blanks:
                yield blank, BadRow("the line is blank")
            del blanks[:]
            if is_lenient:
                try:
                    self.check(row if isinstance(row, str) else ",".join(row))
                except BadRow as bad:
                    row = bad
            yield line, row

    def examples(
        self, rows: Numbered, parse: Callable[[Any], tuple[Any, ...]]
    ) -> Iterator[Example]:
        """Yield the example of each row, in order; of a bad one with its problem.

        `parse` returns sequence and labels of a row, then its group, the columns to keep, its id
        and the facts beside it where there are some; or raises BadRow.
        """
        for line, row in rows:
            try:
                if isinstance(row, BadRow):
                    raise row
                sequence, labels, *more = parse(row)
            except (BadRow, NotJSONError) as bad:
                yield Example("", None, line, problem=str(bad))
            else:
                yield Example(sequence, labels, line, None, *more)

    def sequence(self, text: str) -> Sequence:
        """Return a cell of text as a sequence."""
        return sequence_from_text(text, self.options.kind)

    def labels(self, value: Any) -> Labels | None:
        """Return the labels of a row, or None if the cell is blank and the input is unlabelled.

        A list, and a text if data.label_separator is set, has any number of labels. A blank cell
        of a labelled input is a BadRow, unless rows are time steps: one row of each id suffices.
        """
        if value is None and not self.labelled:
            return None
        if isinstance(value, list):
            return label_tuple(filter(None, (name_of(each, "a label") for each in value)))
        text, separator = name_of(value, "the label"), self.options.label_separator
        if separator is not None:
            return label_tuple(filter(None, map(str.strip, (text or "").split(separator))))
        if text is None and self.labelled and self.options.steps is None:
            raise BadRow(BLANK_LABEL)
        return None if text is None else (text,)


def name_of(value: object, what: str) -> str | None:
    """Read a label or the name of a group, None where it is blank; integers as JSON has them."""
    if value is None or isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))  # pandas: a blank cell makes all others floats
    found = "a number with a fraction" if isinstance(value, float) else json_type(value)
    raise BadRow(f"{what}: expected a string, an integer, true or false, found {found}")


@contextmanager
def open_input(
    path: str,
    *,
    pipes: bool = False,
    raw: bool = False,
    encoding: str = "utf-8",
) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed where its name ends in .gz or .zst.

    Args:
        path: a file, or `-` for standard input.
        pipes: allow standard input and named pipes, which can be read once only.
        raw: don't decompress.
        encoding: utf-16 becomes UTF-8, in memory; all else stays.

    Raises:
        DataError: the file is missing, unreadable, or no gzip.
        ConfigError: the package that reads .zst isn't installed.
    """
    if path == "-":
        if not pipes or sys.stdin is None:
            raise DataError("stdin: can't be read here; give a file")
        yield sys.stdin.buffer
        return
    try:
        piped = pipes and stat.S_ISFIFO(os.stat(path).st_mode)
        file = _File(path) if piped else _File(path, opener=open_regular)
    except (OSError, ValueError) as error:
        raise path_problem(path, error, DataError) from None
    read_files = None if raw else READ_FILES.get()
    if read_files is not None:
        file.digest = hashlib.sha256()
    with io.BufferedReader(file, BUFFER) as stream:
        content = stream if raw else _decompressed(stream, path)
        kind = utf_16(content.peek(4)) if encoding == "utf-16" else None
        if kind is not None:
            try:
                content = io.BytesIO(content.read().decode(kind).encode())
            except (OSError, UnicodeError) as error:
                raise DataError(f"{display_name(path)}: not UTF-16 ({error})") from None
            content = io.BufferedReader(content)
        yield cast("BinaryIO", content)
        if read_files is not None and file.hashed == os.fstat(file.fileno()).st_size:
            read_files[path] = file.digest.hexdigest()


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


class _File(io.FileIO):
    """A file that words its own faults, and is hashed as it is read where `digest` is set.

    `hashed` are the bytes so far, or -1 once it was read with a jump.
    """

    digest: Any = None
    hashed = 0

    def readinto(self, buffer: Any) -> int | None:
        try:
            jumps = self.digest is not None and self.tell() != self.hashed
            size = super().readinto(buffer)
        except OSError as error:
            raise path_problem(str(self.name), error, DataError) from None
        if self.digest is not None and size:
            self.digest.update(memoryview(buffer)[:size])
            self.hashed = -1 if jumps else self.hashed + size
        return size


class _Inflated(io.RawIOBase):
    """The bytes inside a compressed file; damage and bombs are OSErrors that say where."""

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
        try:
            size: int = self._unpacked.readinto1(buffer)
        except self._damage as error:
            if "too much memory" in str(error):
                raise OSError(
                    "the zstd data need a window over 128 MiB; compress the file again without "
                    "--long"
                ) from None
            came = f"after {self._unpacked.tell()} bytes of content"
            state = "are cut off" if isinstance(error, EOFError) else "are damaged"
            raise OSError(f"the {self._name} data {state} {came}; copy the file again") from None
        refuse_bomb(f"the {self._name} data", self._unpacked.tell(), self._packed.tell())
        return size


def refuse_bomb(what: str, content: int, packed: int) -> None:
    """Raise OSError where bytes of content are too many for so many bytes of a file."""
    if content > BOMB_FREE_BYTES and content > BOMB_RATIO * packed:
        raise OSError(f"{what} expand more than {BOMB_RATIO} times; refused as a bomb")


def utf_16(head: bytes) -> str | None:
    """Return which UTF-16 a file begins with, by its mark or the zeros in its first letters."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    zeros = [name for at, name in enumerate(("be", "le")) if head[at:4:2] == b"\0\0"]
    return f"utf-16-{zeros[0]}" if len(zeros) == 1 else None


def _blocks(stream: Any, problems: RowProblems) -> Iterator[bytes]:
    """Yield whole lines, as many as there are, once the first bytes show that this is text."""
    parts, size, is_first = list[bytes](), 0, True
    while part := stream.read1(BLOCK_BYTES):
        if is_first:
            found = next((found for magic, found in MAGIC.items() if part.startswith(magic)), None)
            if utf_16(part) is not None:
                found = "UTF-16 text; set data.encoding (--encoding): utf-16"
            if found:
                problems.fail(1, f"expected UTF-8 text, found {found}")
            part, is_first = part.removeprefix(BYTE_ORDER_MARK), False
        end = part.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, part[:end]])
            parts, size = [], 0
        parts.append(part[end:])
        size += len(part) - end
        if size > LINE_BYTES:
            raise OSError(f"the line is longer than {LINE_BYTES} bytes")
    yield b"".join(parts)


def _decode(raw: bytes, encoding: str) -> str:
    """Decode one line; NUL, and bytes that are none of the encoding, are as `DAMAGE` has them."""
    for name in ("utf-8", "utf-8" if encoding == "utf-16" else encoding):
        with suppress(UnicodeDecodeError):
            return raw.decode(name).replace("\0", NUL)
    return raw.decode(errors="surrogateescape").replace("\0", NUL)


def without_end(line: str) -> str:
    r"""Drop the line end, `\n` or `\r\n`."""
    return line[:-1].removesuffix("\r") if line.endswith("\n") else line
