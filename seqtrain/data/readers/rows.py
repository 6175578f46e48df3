"""What all formats share: from numbered rows to examples, one complaint per bad row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

from seqtrain.data.examples import BadRow, Example, RowProblems, Sequence

Row = TypeVar("Row")
Parsed: TypeAlias = (
    tuple[Sequence, str | None]
    | tuple[Sequence, str | None, str | None]
    | tuple[Sequence, str | None, str | None, dict[str, Any] | None]
)
"""Sequence and label of a row; its group; the columns to copy to its answer."""


def parse_rows(
    rows: Iterable[tuple[int, Row]],
    parse: Callable[[Row], Parsed],
    problems: RowProblems,
    file: str | None = None,
) -> Iterator[Example]:
    """Yield the example of each row that can be used, and note the problem of each that can't.

    Args:
        rows: line number and content of each row.
        parse: returns what a row holds, or raises BadRow.
        problems: where bad rows are noted.
        file: the file within a folder, for the examples.
    """
    for line, row in rows:
        if problems.waiting:
            yield from problems.taken()
        try:
            sequence, label, *more = parse(row)
        except BadRow as bad:
            problems.add(line, str(bad))
            yield from problems.taken()
        else:
            yield Example(sequence, label, line, file, *more)
    yield from problems.taken()


def checked_label(label: str, labelled: bool) -> str | None:
    """Return the label as it is; a blank one is None in prediction, else a bad row."""
    if label and not label.isspace():
        return label
    if labelled:
        raise BadRow("the label is blank")
    return None


def without_blank_rows(
    rows: Iterable[tuple[int, Row]], is_blank: Callable[[Row], bool], problems: RowProblems
) -> Iterator[tuple[int, Row]]:
    """Pass rows on, drop blank ones at the end of the file and complain about all others."""
    blanks: range | None = None
    for line, row in rows:
        if is_blank(row):
            blanks = range(blanks.start if blanks else line, line + 1)
            continue
        for blank in blanks or ():
            problems.add(blank, "the line is blank")
        blanks = None
        yield line, row


def is_blank_line(text: str) -> bool:
    """Tell whether a line holds nothing but blanks."""
    return not text or text.isspace()
