"""Format fasttext: `__label__NAME text`, one example per line."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
from seqtrain.data.readers.sequences import sequence_from_text
from seqtrain.text import quote

_LABEL = re.compile(r"(?:^|(?<=[ \t]))__label__([^ \t]*)")


def read_fasttext(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read lines that begin with their label; in prediction the label may be absent.

    Args:
        stream: the file's bytes.
        options: kind of the text behind the label.
        problems: where rows are complained about.
        labelled: whether each line must have its label.
    """

    def parse(text: str) -> tuple[Sequence, str | None]:
        found = list(_LABEL.finditer(text))
        if len(found) > 1:
            names = quote(", ".join(match[1] for match in found))
            raise BadRow(f"{len(found)} labels, {names}; expected exactly one")
        if not found and not labelled:
            return sequence_from_text(text, options.kind), None
        if not found or text[: found[0].start()].strip():
            raise BadRow("expected __label__NAME at the start of the line")
        rest = text[found[0].end() :].lstrip(" \t")
        return sequence_from_text(rest, options.kind), checked_label(found[0][1], labelled)

    rows = read_lines(stream, problems)
    if labelled:
        rows = without_blank_rows(rows, is_blank_line, problems)
    return parse_rows(rows, parse, problems)
