"""Format fasttext: `__label__NAME text`, one example per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from seqtrain.data.examples import BadRow, Example, parse_rows, without_blank_rows
from seqtrain.data.readers.opening import RowSource
from seqtrain.text import quote

LABEL = re.compile(r"(?:^|(?<=[ \t]))__label__([^ \t]*)")


def read_fasttext(source: RowSource) -> Iterator[Example]:
    """Read lines that begin with their label; in prediction the label may be absent."""

    def parse(text: str) -> tuple[Any, ...]:
        found = list(LABEL.finditer(text))
        if len(found) > 1:
            names = quote(", ".join(match[1] for match in found))
            raise BadRow(f"{len(found)} labels, {names}; expected exactly one")
        if not found and not source.labelled:
            return source.sequence(text), None
        if not found or text[: found[0].start()].strip():
            raise BadRow("expected __label__NAME at the start of the line")
        return source.sequence(text[found[0].end() :].lstrip(" \t")), source.label(found[0][1])

    lines = source.lines()
    return parse_rows(without_blank_rows(lines) if source.labelled else lines, parse)
