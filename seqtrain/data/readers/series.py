"""Format ts of the time-series archives."""

from collections.abc import Iterator
from typing import Any

from seqtrain.data.examples import BadRow, Example, Numbered
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.sequences import features_from_columns
from seqtrain.text import quote


def read_ts(source: RowSource) -> Iterator[Example]:
    """Read a header of `@key value`, then a series per line: channels and label, separated by `:`.

    `?` and NaN are missing values.
    """
    lines = (row for row in source.lines() if row[1][:1] not in ("#", "%"))
    has_labels, channels_of_first = _read_header(lines, source), 0

    def parse(text: str) -> tuple[Any, ...]:
        nonlocal channels_of_first
        channels = text.split(":")
        labels = source.labels(channels.pop().strip()) if has_labels else None
        if not channels:
            raise BadRow("expected channels, then a label, separated by ':'; found one of them")
        channels_of_first = channels_of_first or len(channels)
        if len(channels) != channels_of_first:
            expected = f"expected {channels_of_first}, as in the first row"
            raise BadRow(f"{len(channels)} channels; {expected}")
        return features_from_columns(channels), labels

    yield from source.examples(source.good(lines, blank_rows=False), parse)


def _read_header(lines: Numbered, source: RowSource) -> bool:
    """Read up to the line @data; return True if the series have labels."""
    line, has_labels, fail = 0, False, source.problems.fail
    for line, text in lines:
        key, first = [*text.lower().split(), "", ""][:2]
        if key == "@data":
            if source.labelled and not has_labels:
                fail(line, "no labels: expected '@classLabel true' before @data")
            return has_labels
        if key in ("@timestamps", "@targetlabel") and first == "true":
            fail(line, f"{key} true is not supported; expected plain values and classes")
        elif key == "@classlabel":
            has_labels = first == "true"
        elif key and not key.startswith("@"):
            fail(line, f"expected a header line @…, or @data; found {quote(text)}")
    if line:
        fail(line, "the file ends before a line @data")
    return False
