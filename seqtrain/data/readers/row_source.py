"""Inputs of rows: lines as text, and what every reader does with rows and labels."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from seqtrain.data.examples import (
    BLANK_LABEL,
    BadRow,
    Example,
    Numbered,
    RowProblems,
)
from seqtrain.data.examples import Sequence as SequenceValue
from seqtrain.data.labels import Labels, label_tuple
from seqtrain.data.read_options import Column, FileFormat, Schema
from seqtrain.data.readers.opening import utf_16
from seqtrain.data.readers.sequences import json_type, sequence_from_text
from seqtrain.files.reading import NotJSONError, parse_json

LINE_BYTES = 1 << 28
"""Largest number of bytes of a line (256 MiB), and of characters of a quoted field."""
BLOCK_BYTES = 1 << 15
"""Bytes of lines that are decoded at once."""
UNDECODABLE = re.compile("[\udc00\udc80-\udcff]")
"""Surrogates that Python puts in place of bytes that are no text, and `NUL`."""
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
"""First bytes of files that are often taken for text."""


@dataclass(frozen=True)
class RowSource:
    """An input of rows, and how its rows are to be read.

    Attributes:
        path: Path, or name for messages.
        format: How the file is written.
        schema: Which columns mean what.
        keep: Columns that are copied to `Example.kept`.
        bad_rows: ``"error"``, ``"drop"`` or ``"blank"``. With ``"blank"`` a line that can't be
            decoded is a bad row; otherwise the file can't be read past it.
        stream: Binary stream of an open file, or None.
        problems: Collector of what is wrong with rows.
        labelled: True if every row must have a label.
        at_once: Largest number of rows that may be awaited before the first of them is used.
        digests: SHA-256, by path, of files that were read from beginning to end.
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
    digests: dict[str, str] = field(default_factory=dict, compare=False)

    def blocks(self) -> Iterator[list[str]]:
        r"""Yield lines, many at once, with their line ends (`\n` or `\r\n`).

        A byte order mark at the start is dropped.

        Raises:
            DataError: If a line is longer than `LINE_BYTES`, or, unless `bad_rows` is
                ``"blank"``, contains bytes that are no text.
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

    def lines(self) -> Numbered:
        """Yield each line with its number from 1, without its line end."""
        number = 1
        for lines in self.blocks():
            yield from enumerate(map(without_end, lines), number)
            number += len(lines)

    def check(self, text: str) -> None:
        """Raise BadRow if a line contained bytes that are no text."""
        found = UNDECODABLE.search(text)
        if found is None:
            return
        at, byte = len(text[: found.start()].encode()) + 1, ord(found[0]) & 0xFF
        if not byte:
            raise BadRow(f"byte {at} is NUL; expected UTF-8 text, found binary data")
        advice = "save the file as UTF-8, or set data.encoding (--encoding), such as cp1252"
        raise BadRow(f"byte {at} is not {self.format.encoding.upper()} (0x{byte:02x}); {advice}")

    def good(self, rows: Numbered, *, blank_rows: bool = True) -> Numbered:
        """Yield rows, with a BadRow in place of each row that isn't text.

        Args:
            rows: Line number and text, or fields, of each row.
            blank_rows: True if a blank line is a row; False if it is skipped.
        """
        is_lenient = self.bad_rows == "blank"
        for line, row in rows:
            if not blank_rows and (row == [""] if type(row) is list else not row.strip()):
                continue
            if is_lenient:
                try:
                    self.check(row if isinstance(row, str) else ",".join(row))
                except BadRow as bad:
                    yield line, bad
                    continue
            yield line, row

    def examples(
        self, rows: Numbered, parse: Callable[[Any], tuple[Any, ...]]
    ) -> Iterator[Example]:
        """Yield the example of each row, in order. A bad row's example holds its problem.

        Args:
            rows: Line number and content of each row.
            parse: Returns the sequence and the labels of a row, then, if there are any, the fields
                of `Example` from `group` on. Raises BadRow.
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
        """Return the sequence that a cell of text holds."""
        return sequence_from_text(text, self.schema.kind, self.format.decimal)

    def labels(self, value: Any) -> Labels | None:
        """Return the labels of a row, or None if the cell is blank and the input is unlabelled.

        A list has any number of labels, and so has a text if data.label_separator is set. A blank
        cell of a labelled input is a BadRow, unless rows are time steps: one row of each id needs
        a label.
        """
        if value is None and not self.labelled:
            return None
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
        """Return the labels in a cell that holds a JSON list, or the text of any other cell."""
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
    """Return a label, or the name of a group, as text, or None if it is blank.

    Raises:
        BadRow: If it is no text, integer, true or false. `what` names it in the message.
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
    """Yield blocks of whole lines, after checking that the first bytes are text."""
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
    """Return a line as text, with surrogates in place of what can't be decoded."""
    for name in ("utf-8", "utf-8" if encoding == "utf-16" else encoding):
        with suppress(UnicodeDecodeError):
            return raw.decode(name).replace("\0", NUL)
    return raw.decode(errors="surrogateescape").replace("\0", NUL)


def without_end(line: str) -> str:
    r"""Return a line without its line end, `\n` or `\r\n`."""
    return line[:-1].removesuffix("\r") if line.endswith("\n") else line
