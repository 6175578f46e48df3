"""Format ts of the time-series archives: a header of `@key value`, then one series per line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seqtrain.data.examples import BadRow, Example, Numbered, parse_rows
from seqtrain.data.readers.opening import RowSource
from seqtrain.data.readers.sequences import features_from_columns
from seqtrain.text import quote


@dataclass
class _Header:
    has_label: bool = False
    labels: frozenset[str] = frozenset()
    channels: int | None = None


def read_ts(source: RowSource) -> Iterator[Example]:
    """Read one series per line; `?` and NaN are missing values."""
    lines = (
        row for row in source.lines() if isinstance(row[1], BadRow) or row[1][:1] not in ("#", "%")
    )
    header = _read_header(lines, source)

    def parse(text: str) -> tuple[Any, ...]:
        channels = text.split(":")
        label = source.label(channels.pop().strip()) if header.has_label else None
        if label is not None and header.labels and label not in header.labels:
            raise BadRow(f"label {quote(label)} is not among those listed by @classLabel")
        if len(channels) != (header.channels or len(channels)) or not channels:
            expected = header.channels or "at least 1"
            raise BadRow(f"expected {expected} channels parted by ':', found {len(channels)}")
        return features_from_columns(channels), label

    yield from parse_rows(lines, parse, blank_rows=False)


def _read_header(lines: Numbered, source: RowSource) -> _Header:
    header, problems, line = _Header(), source.problems, 0
    for line, text in lines:
        if isinstance(text, BadRow):
            problems.fail(line, str(text))
        key, *values = text.lower().split() or [""]
        first = values[0] if values else ""
        if key == "@data":
            if source.labelled and not header.has_label:
                problems.fail(line, "no labels: expected '@classLabel true' before @data")
            return header
        if key in ("@timestamps", "@targetlabel") and first == "true":
            problems.fail(line, f"{key} true is not supported; expected plain values and classes")
        if key == "@univariate" and first == "true":
            header.channels = 1
        elif key in ("@dimensions", "@dimension"):
            if not (first.isascii() and first.isdecimal() and 0 < len(first) < 10 and int(first)):
                problems.fail(line, f"@dimensions: expected a number from 1, found {quote(first)}")
            header.channels = int(first)
        elif key == "@classlabel":
            header.has_label = first == "true"
            header.labels = frozenset(text.split()[2:])
        elif key and not key.startswith("@"):
            problems.fail(line, f"expected a header line @…, or @data; found {quote(text)}")
    if line:
        problems.fail(line, "the file ends before a line @data")
    return header
