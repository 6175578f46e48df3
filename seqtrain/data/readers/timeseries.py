"""Format ts of the time-series archives (UEA and UCR, as sktime and aeon read it).

Header lines begin with `@`, comments with `#`; after `@data` each line is an example: channels
parted by `:`, their values by `,`, the label last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from seqtrain.data.examples import BadRow, Example, RowProblems, Sequence
from seqtrain.data.readers.lines import read_lines
from seqtrain.data.readers.options import ReadOptions
from seqtrain.data.readers.rows import (
    checked_label,
    is_blank_line,
    parse_rows,
    without_blank_rows,
)
from seqtrain.data.readers.sequences import features_from_columns
from seqtrain.text import quote

Lines = Iterator[tuple[int, str]]


@dataclass
class _Header:
    """What the header tells about the rows."""

    has_label: bool = False
    labels: frozenset[str] = frozenset()
    channels: int | None = None


def read_ts(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read one series per line; `?` and NaN are missing values.

    Args:
        stream: the file's bytes.
        options: the kind, which must be features.
        problems: where rows are complained about.
        labelled: whether the file must have labels (`@classLabel true`).
    """
    lines = ((line, text) for line, text in read_lines(stream, problems) if text[:1] != "#")
    header = _read_header(lines, problems, labelled)

    def parse(text: str) -> tuple[Sequence, str | None]:
        channels = text.split(":")
        label = _label(channels.pop().strip(), header, labelled) if header.has_label else None
        if len(channels) != (header.channels or len(channels)) or not channels:
            expected = header.channels or "at least 1"
            raise BadRow(f"expected {expected} channels parted by ':', found {len(channels)}")
        return features_from_columns(channels), label

    yield from parse_rows(without_blank_rows(lines, is_blank_line, problems), parse, problems)


def _read_header(lines: Lines, problems: RowProblems, labelled: bool) -> _Header:
    """Read the lines up to `@data`; those that tell nothing of use are passed over."""
    header = _Header()
    line = 0
    for line, text in lines:
        key, *values = text.lower().split() or [""]
        first = values[0] if values else ""
        if key == "@data":
            if labelled and not header.has_label:
                problems.fail(line, "no labels: expected '@classLabel true' before @data")
            return header
        if key in ("@timestamps", "@targetlabel") and first == "true":
            problems.fail(line, f"{key} true is not supported; expected plain values and classes")
        if key == "@univariate" and first == "true":
            header.channels = 1
        elif key in ("@dimensions", "@dimension"):
            header.channels = _parse_count(line, first, problems)
        elif key == "@classlabel":
            header.has_label = first == "true"
            header.labels = frozenset(text.split()[2:])
        elif key and not key.startswith("@"):
            problems.fail(line, f"expected a header line @…, or @data; found {quote(text)}")
    if line:
        problems.fail(line, "the file ends before a line @data")
    return header


def _parse_count(line: int, text: str, problems: RowProblems) -> int:
    """Read the number of channels."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text)):
        problems.fail(line, f"@dimensions: expected a number from 1, found {quote(text)}")
    return int(text)


def _label(text: str, header: _Header, labelled: bool) -> str | None:
    """Check a label against those that the header lists."""
    label = checked_label(text, labelled)
    if label is not None and header.labels and label not in header.labels:
        raise BadRow(f"label {quote(label)} is not among those listed by @classLabel")
    return label
