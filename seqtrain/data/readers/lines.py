"""Turns bytes to numbered lines of text, strictly UTF-8; and the prediction format `lines`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

from seqtrain.data.examples import BadRow, Example, RowProblems, Sequence
from seqtrain.data.readers.options import ReadOptions
from seqtrain.data.readers.rows import parse_rows
from seqtrain.data.readers.sequences import sequence_from_text
from seqtrain.errors import DataError

LINE_BYTES = 1 << 28
"""Bytes a line may have (256 MiB), and characters a quoted field."""
BLOCK_BYTES = 1 << 15
"""Bytes that are read at once."""

HEAD_BYTES = 4096
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = "UTF-16 text; save it as UTF-8"
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
    b"\xff\xfe": UTF_16,
    b"\xfe\xff": UTF_16,
}


def read_lines(
    stream: BinaryIO, problems: RowProblems, *, keep_ends: bool = False
) -> Iterator[tuple[int, str]]:
    r"""Yield each line with its number from 1; lines end with `\n` or `\r\n` and nothing else.

    Args:
        stream: buffered bytes; a byte order mark at their start is dropped.
        problems: where damage is reported.
        keep_ends: leave the line ends in the text.

    Raises:
        DataError: for data that are no UTF-8 text, hold a NUL, or can't be read to the end, and
            for a line over `LINE_BYTES`.
    """
    number = 1
    try:
        for block in _blocks(stream, problems):
            for text in _texts(block, number, problems, keep_ends):
                if text is not None:
                    yield number, text
                number += 1
    except OSError as error:
        problems.fail(number, error.strerror or str(error))


def _blocks(stream: BinaryIO, problems: RowProblems) -> Iterator[bytes]:
    """Yield the first line, then whole lines as they come, many at once."""
    yield _first_line(stream, problems)
    parts: list[bytes] = []
    size = 0
    while size <= LINE_BYTES and (part := stream.read1(BLOCK_BYTES)):  # type: ignore[attr-defined]
        end = part.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, part[:end]])
            parts, size = [], 0
        parts.append(part[end:])
        size += len(part) - end
    yield b"".join(parts)


def _texts(
    block: bytes, number: int, problems: RowProblems, keep_ends: bool
) -> Iterator[str | None]:
    """Yield the lines of a block; None for each that is noted as a bad row.

    Args:
        block: whole lines.
        number: of the first.
        problems: where damage is reported.
        keep_ends: as for `read_lines`.
    """
    if b"\0" not in block and len(block) <= LINE_BYTES:
        try:
            *lines, last = block.decode().split("\n")
        except UnicodeDecodeError:
            pass
        else:
            if keep_ends:
                lines = [line + "\n" for line in lines]
            elif b"\r" in block:
                lines = [line.removesuffix("\r") for line in lines]
            yield from lines
            if last:
                yield last
            return
    for place, line in enumerate(io.BytesIO(block), start=number):  # which one is it?
        if len(line) > LINE_BYTES:
            problems.fail(place, f"the line is longer than {LINE_BYTES} bytes")
        text = _decode(line, place, problems)
        yield text if text is None or keep_ends else without_end(text)


def without_end(text: str) -> str:
    r"""Drop the line end, `\n` or `\r\n`."""
    if text.endswith("\r\n"):
        return text[:-2]
    return text[:-1] if text.endswith("\n") else text


def _first_line(stream: BinaryIO, problems: RowProblems) -> bytes:
    """Read the first line, once its first bytes show that this is text."""
    head = stream.readline(HEAD_BYTES)
    for magic, found in MAGIC.items():
        if head.startswith(magic):
            problems.fail(1, f"expected UTF-8 text, found {found}")
    if b"\0\0" in (head[0:4:2], head[1:4:2]) and head[:4] != b"\0\0\0\0":
        problems.fail(1, f"expected UTF-8 text, found {UTF_16}")
    if b"\0" in head:
        problems.fail(1, _nul(head))
    if not head.endswith(b"\n"):
        head += stream.readline(LINE_BYTES)
    return head.removeprefix(BYTE_ORDER_MARK)


def _nul(raw: bytes) -> str:
    """Say where a NUL byte is, which no text holds."""
    return f"byte {raw.index(0) + 1} is NUL; expected UTF-8 text, found binary data"


def _decode(raw: bytes, number: int, problems: RowProblems) -> str | None:
    """Decode one line; never replaces a byte. None where it is noted as a bad row."""
    if b"\0" in raw:
        problem = _nul(raw)
    else:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            at = error.start
            problem = f"byte {at + 1} is not UTF-8 (0x{raw[at]:02x}); save the file as UTF-8"
    if not problems.keeps_places or number == 1:  # the first line may be a header
        problems.fail(number, problem)
    problems.add(number, problem)
    return None


def read_plain(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read unlabelled input, one sequence per line; an empty line is an empty sequence.

    Args:
        stream: the file's bytes.
        options: kind text takes the line as it is, tokens splits it at blanks, features reads a
            JSON list of vectors.
        problems: where rows are complained about.
        labelled: must be False, as this format is prediction's own.
    """
    if labelled:
        raise DataError("format lines holds no labels; it is for prediction alone")

    def parse(text: str) -> tuple[Sequence, None]:
        if options.kind == "features" and text.startswith("{"):
            raise BadRow("found an object, expected a list of vectors; --input-format jsonl?")
        return sequence_from_text(text, options.kind), None

    return parse_rows(read_lines(stream, problems), parse, problems)
