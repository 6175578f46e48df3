"""Format ts of the time-series archives: a header of `@key value`, then one series per line."""

from collections.abc import Iterator
from typing import Any

from seqtrain.data.examples import BadRow, Example, Numbered, parse_rows
from seqtrain.data.readers.opening import RowSource
from seqtrain.data.readers.sequences import features_from_columns
from seqtrain.text import quote

TRUE, LABELS = "true", "@classlabel"


def read_ts(source: RowSource) -> Iterator[Example]:
    """Read one series per line; `?` and NaN are missing values."""
    lines = (
        row for row in source.lines() if isinstance(row[1], BadRow) or row[1][:1] not in ("#", "%")
    )
    header = _read_header(lines, source)
    is_labelled, *labels = header.get(LABELS, [""])
    width = int(header["@dimensions"][0]) if "@dimensions" in header else 0

    def parse(text: str) -> tuple[Any, ...]:
        channels = text.split(":")
        label = source.label(channels.pop().strip()) if is_labelled.lower() == TRUE else None
        if label is not None and labels and label not in labels:
            raise BadRow(f"label {quote(label)} is not among those listed by @classLabel")
        if len(channels) != (width or len(channels)) or not channels:
            expected = width or "at least 1"
            raise BadRow(f"expected {expected} channels parted by ':', found {len(channels)}")
        return features_from_columns(channels), label

    yield from parse_rows(lines, parse, blank_rows=False)


def _read_header(lines: Numbered, source: RowSource) -> dict[str, list[str]]:
    """Return the words behind each key, in lower case; of one channel or several @dimensions."""
    header, problems, line = dict[str, list[str]](), source.problems, 0
    for line, text in lines:
        if isinstance(text, BadRow):
            problems.fail(line, str(text))
        key, *values = text.split() or [""]
        key, first = key.lower(), values[0].lower() if values else ""
        if key == "@data":
            if source.labelled and header.get(LABELS, [""])[0].lower() != TRUE:
                problems.fail(line, "no labels: expected '@classLabel true' before @data")
            return header
        if key in ("@timestamps", "@targetlabel") and first == TRUE:
            problems.fail(line, f"{key} true is not supported; expected plain values and classes")
        if key in ("@dimensions", "@dimension"):
            if not (first.isascii() and first.isdecimal() and 0 < len(first) < 10 and int(first)):
                problems.fail(line, f"@dimensions: expected a number from 1, found {quote(first)}")
            header["@dimensions"] = values
        elif key == "@univariate" and first == TRUE:
            header["@dimensions"] = ["1"]
        elif key and not key.startswith("@"):
            problems.fail(line, f"expected a header line @…, or @data; found {quote(text)}")
        elif values:
            header[key] = values
    if line:
        problems.fail(line, "the file ends before a line @data")
    return header
