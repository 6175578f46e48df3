"""Inputs of rows: decoding of lines, checks of rows, and conversion of labels and sequences."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.sequences.examples import (
    BLANK_LABEL,
    BadRow,
    Example,
    Numbered,
    RowProblems,
)
from seqtrain.sequences.examples import Sequence as SequenceValue
from seqtrain.sequences.labels import Labels, label_tuple
from seqtrain.sequences.read_options import Column, FileFormat, Schema
from seqtrain.sequences.readers.opening import utf_16
from seqtrain.sequences.readers.sequences import json_type, sequence_from_text

LINE_BYTES = 1 << 28
"""Largest number of bytes of a line (256 MiB), and of characters of a quoted field."""
BLOCK_BYTES = 1 << 15
"""Approximate number of bytes that are read and decoded at once."""
NUM_BLOCKS = 40
"""Number of blocks of rows in a sample."""
UNDECODABLE = re.compile("[\udc00\udc80-\udcff]")
"""Characters that `_decode` writes for undecodable bytes and for NUL bytes."""
NUL = "\udc00"
"""Surrogate in place of a zero byte. No text contains surrogates."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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


@dataclass
class RowSample:
    """Blocks of rows, evenly spread over a large input, that are read in place of all rows.

    Attributes:
        most_rows: Number of rows up to which an input is read completely. About this number of
            rows is read from a larger input.
        total: Number of rows of the input that was read last, or 0 if it wasn't known beforehand.
        read: Number of its rows that were read, or 0 if `total` is 0.
    """

    most_rows: int
    total: int = 0
    read: int = 0

    def includes(self, row: int, total: int, size: int) -> bool:
        """Return True if some rows are in the sample, and count them.

        Args:
            row: Index of the first of these rows, from 0.
            total: Number of rows of the input.
            size: Number of these rows.
        """
        period, length = -(-total // NUM_BLOCKS), self.most_rows // NUM_BLOCKS
        if total > self.most_rows and row % period >= length:
            return False
        self.total, self.read = total, (self.read if row else 0) + (size if total else 0)
        return True


@dataclass(frozen=True)
class RowSource:
    """An input of rows with the options for reading it.

    Attributes:
        path: Path of the file or folder, or name of the table in memory.
        format: File format: encoding, delimiter, decimal mark, and so on.
        schema: Meaning of the columns: sequence, label, group, and so on.
        keep: Columns whose cells are copied to `Example.kept`.
        bad_rows: ``"error"``, ``"drop"`` or ``"blank"``. A row that can't be decoded raises
            DataError. With ``"blank"`` it is only a bad row, and reading continues.
        stream: Binary stream of the open file, or None before it is opened.
        problems: Collector of the problems with rows.
        labelled: True if every row must have a label.
        at_once: Number of rows that are parsed as one block. It is 1 for pipes, so that each row is
            processed as soon as it arrives.
        as_cells: True to yield blocks of the cells of `keep` as `Rows`, in place of examples.
        sample: Sample of the rows to read, or None to read all. It has no effect on formats that
            don't know their number of rows beforehand.
        digests: Maps the path of each file that was read from beginning to end to its SHA-256.
    """

    path: str
    format: FileFormat
    schema: Schema
    keep: Sequence[Column] = ()
    bad_rows: str = "error"
    stream: Any = None
    problems: RowProblems = field(default_factory=lambda: RowProblems(""), compare=False)
    labelled: bool = True
    at_once: int = 1
    as_cells: bool = False
    sample: RowSample | None = None
    digests: dict[str, str] = field(default_factory=dict, compare=False)

    def blocks(self) -> Iterator[list[str]]:
        r"""Yield the decoded lines as lists of consecutive lines, with line ends (`\n`, `\r\n`).

        A byte order mark at the start is dropped.

        Raises:
            DataError: If a line is longer than `LINE_BYTES`. Also if a line contains undecodable or
                NUL bytes, but not with `bad_rows` ``"blank"``.
        """
        number, encoding = 1, self.format.encoding
        try:
            for block in _whole_lines(self.stream, self.problems):
                if number == 1:
                    block = block.removeprefix(BYTE_ORDER_MARK)
                try:
                    lines = [*io.StringIO(block.decode(), "\n")]
                except UnicodeDecodeError:
                    lines = []
                if b"\0" in block or not lines:
                    lines = [_decode(line, encoding) for line in io.BytesIO(block)]
                    bad = next((i for i, x in enumerate(lines) if UNDECODABLE.search(x)), None)
                    if bad is not None and self.bad_rows != "blank":
                        yield lines[:bad]
                        number += bad
                        self.check(lines[bad])
                yield lines
                number += len(lines)
        except BadRow as bad_line:
            self.problems.fail(number, str(bad_line))
        except OSError as error:
            self.problems.fail(number, error.strerror or str(error))

    def is_read(self, row: int, total: int, size: int = 1) -> bool:
        """Return True if some rows are read, and False if the sample leaves them out.

        Args:
            row: Index of the first of these rows, from 0.
            total: Number of rows of the input.
            size: Number of these rows.
        """
        return self.sample is None or self.sample.includes(row, total, size)

    def lines(self) -> Numbered:
        """Yield pairs of the number of a line, from 1, and its text without line end."""
        number = 1
        for lines in self.blocks():
            yield from enumerate(map(without_end, lines), number)
            number += len(lines)

    def check(self, text: str) -> None:
        """Raise BadRow if a decoded line contained undecodable or NUL bytes."""
        found = UNDECODABLE.search(text)
        if found is None:
            return
        at, byte = len(text[: found.start()].encode()) + 1, ord(found[0]) & 0xFF
        if not byte:
            raise BadRow(f"byte {at} is NUL; expected UTF-8 text, found binary data")
        advice = "save the file as UTF-8, or set data.encoding (--encoding), such as cp1252"
        raise BadRow(f"byte {at} is not {self.format.encoding.upper()} (0x{byte:02x}); {advice}")

    def good(self, rows: Numbered, *, blank_rows: bool = True) -> Numbered:
        """Return the rows, with a BadRow in place of each row with undecodable or NUL bytes.

        Such rows only occur if `bad_rows` is ``"blank"``. Without this option, `blocks` raises
        DataError.

        Args:
            rows: Line number of each row, and its text or list of fields.
            blank_rows: True to also return blank rows, False to skip them.
        """
        if not blank_rows:
            rows = (x for x in rows if (x[1] != [""] if type(x[1]) is list else x[1].strip()))
        return self._checked(rows) if self.bad_rows == "blank" else rows

    def _checked(self, rows: Numbered) -> Numbered:
        for line, row in rows:
            try:
                self.check(row if isinstance(row, str) else ",".join(row))
            except BadRow as bad:
                yield line, bad
            else:
                yield line, row

    def examples(
        self, rows: Numbered, parse: Callable[[Any], tuple[Any, ...]]
    ) -> Iterator[Example]:
        """Yield the example of each row, in order.

        An unusable row is an empty example whose field `problem` has the reason.

        Args:
            rows: Line number and content of each row. The content of an unreadable row is a BadRow.
            parse: Function that takes a row's content and returns its sequence and its labels.
                Further values are the fields of `Example` from `group` on. It may raise BadRow or
                NotJSONError.
        """
        for line, row in rows:
            try:
                if isinstance(row, BadRow):
                    raise row
                sequence, label, *more = parse(row)
            except (BadRow, NotJSONError) as bad:
                yield Example("", None, line, problem=str(bad))
            else:
                yield Example(sequence, label, line, None, *more)

    def sequence(self, text: str) -> SequenceValue:
        """Return the sequence in a cell of text; see `sequence_from_text`.

        Raises:
            BadRow: If the cell isn't a sequence of this kind.
        """
        return sequence_from_text(text, self.schema.kind, self.format.decimal)

    def labels(self, value: Any) -> Labels | None:
        """Return the labels in the label cell of a row, or None if the cell is blank.

        - A text, integer, true or false is one label.
        - A list, or the text of a JSON list, has any number of labels.
        - With data.label_separator, a text is split into any number of labels. A blank text has
          none.

        In an unlabelled input, the result for a cell that can't be read is None.

        Args:
            value: The cell.

        Raises:
            BadRow: If the input is labelled and the cell can't be read. Also if it is blank, unless
                rows are time steps.
        """
        try:
            return None if value is None and not self.labelled else self._labels_in(value)
        except BadRow:
            if self.labelled:
                raise
            return None

    def _labels_in(self, value: Any) -> Labels | None:
        """Return the labels in a cell, or None if the cell is blank.

        Raises:
            BadRow: If the cell can't be read, also in an unlabelled input. Also if it is blank in a
                labelled input, unless rows are time steps.
        """
        if isinstance(value, str) and value[:1] == "[":
            value = self._label_list(value)
        if isinstance(value, list):
            return label_tuple(filter(None, (name_of(each, "a label") for each in value)))
        text, separator = name_of(value, "the label"), self.schema.label_separator
        if separator is not None:
            return label_tuple(filter(None, map(str.strip, (text or "").split(separator))))
        if text is None and self.labelled and self.schema.steps is None:
            raise BadRow(BLANK_LABEL)
        return None if text is None else (text,)

    def _label_list(self, text: str) -> Any:
        """Return the list in a label cell if its text is a JSON list, or the unchanged text.

        Without data.label_separator, a list without texts, such as ``[1, 2]``, is also returned as
        text, which is one label.

        Raises:
            BadRow: If data.label_separator is set and the list isn't valid JSON.
        """
        is_multi_label = self.schema.label_separator is not None
        try:
            found = parse_json(text)
        except NotJSONError as error:
            if is_multi_label and text.rstrip().endswith("]"):
                raise BadRow(f"the label looks like a list, but is {error}") from None
            return text
        has_texts = isinstance(found, list) and any(isinstance(each, str) for each in found)
        return found if has_texts or found == [] or is_multi_label else text


def name_of(value: object, what: str) -> str | None:
    """Return a label or the name of a group as text, or None if the value is blank.

    Args:
        value: Value of the cell.
        what: Name of the value for the message, such as "the label".

    Raises:
        BadRow: If the value isn't a text, an integer, true or false.
    """
    if value is None or isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))  # pandas turns integers into floats if a cell is blank
    found = "a number with a fraction" if isinstance(value, float) else json_type(value)
    raise BadRow(f"{what}: expected a string, an integer, true or false, found {found}")


def _whole_lines(stream: Any, problems: RowProblems) -> Iterator[bytes]:
    """Yield blocks of bytes, each of whole lines.

    Args:
        stream: Binary stream.
        problems: Collector of problems, for messages.

    Raises:
        DataError: If the file begins like UTF-16 or a binary file of `MAGIC`.
        OSError: If a line is longer than `LINE_BYTES`.
    """
    parts, size, is_first = list[bytes](), 0, True
    while part := stream.read1(BLOCK_BYTES):
        found = next((found for magic, found in MAGIC.items() if part.startswith(magic)), None)
        if utf_16(part) is not None:
            found = "UTF-16 text; set data.encoding (--encoding): utf-16"
        if is_first and found:
            problems.fail(1, f"expected UTF-8 text, found {found}")
        is_first = False
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
    """Decode a line as UTF-8 or, if this fails, in the given encoding.

    Undecodable bytes and NUL bytes become surrogates, which match `UNDECODABLE`.
    """
    for name in ("utf-8", "utf-8" if encoding == "utf-16" else encoding):
        with suppress(UnicodeDecodeError):
            return raw.decode(name).replace("\0", NUL)
    return raw.decode(errors="surrogateescape").replace("\0", NUL)


def without_end(line: str) -> str:
    r"""Return a line without its line end, `\n` or `\r\n`."""
    return line[:-1].removesuffix("\r") if line.endswith("\n") else line
