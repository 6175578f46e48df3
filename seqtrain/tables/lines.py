"""Formats of lines: a text per line with or without a label, FASTA records, and whole files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.tables.blocks import (
    LABEL,
    ROWS,
    TEXT,
    Block,
    CellsByName,
    Dialect,
    Selection,
    batched,
)
from seqtrain.tables.opening import TextLines, without_end
from seqtrain.text import quote

FASTTEXT_LABEL = re.compile(
    r"(?:^|(?<=[ \t,]))__label__((?:(?!,?__label__)[^ \t])*?),?(?=[ \t]|$|__label__)"
)
"""A label, and a comma after it: ``__label__a, __label__b``."""
FASTA_WORDS = re.compile(r"[\s|=]+")
"""Separator of the words in the first line of a FASTA record."""
FASTA_LABEL = re.compile(
    r"(?:^|[\s|;,\[])(?:class|label|category)\s?[=:]\s?([^\s|;,\]]+)", re.IGNORECASE
)
"""Field of the first line of a record that names its label, such as class=human."""
FASTA_ORGANISM = re.compile(r"\s\[([^\[\]=]+)\]\s*\Z")
"""End of the first line of a record of NCBI: an organism, such as [Homo sapiens]."""
OTHER_DELIMITERS = (",", ";", "|")
LineRow: TypeAlias = tuple[int, tuple[str, Any, str | None], str | None]
"""Line of a row, its text and label with the reason for a missing label, and its problem."""
Split: TypeAlias = Callable[[str], tuple[str, Any, str | None]]
"""Function that returns the text and the label of a line, and the reason why it isn't valid.

The label is None if the line has none.
"""


def read_lines(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the lines of a file as rows of the columns `text` and `label`."""
    split = SPLITTERS[dialect.format]
    lines = TextLines(stream, dialect.encoding)
    found = (row for row in lines.numbered() if dialect.blank_lines or row[1].strip())
    records = ((line, split(text), lines.problem(line, line)) for line, text in found)
    return _blocks(records, selection, rows)


def read_fasta(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield FASTA records: a line `>id label`, then lines of the sequence.

    The label is the field class=, label= or category= of the record's first line, or else its last
    word, or the words in brackets at its end. A blank, | or = precedes it.
    """
    lines = TextLines(stream, dialect.encoding)
    return _blocks(_fasta_records(lines), selection, rows)


def read_whole(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the whole file, without its last line end, as the text of one row."""
    lines = TextLines(stream, dialect.encoding)
    text = without_end("".join(chain.from_iterable(lines.blocks())))
    problem = None
    for line, reason in lines.problems.items():
        problem = f"line {line}: {reason}"
        break
    return _blocks(iter([(1, (text, None, None), problem)]), selection, rows)


def split_nothing(line: str) -> tuple[str, Any, str | None]:
    """Return the whole line as the text, without a label."""
    return line, None, None


def split_tab(line: str) -> tuple[str, Any, str | None]:
    """Return the parts of a line ``label<TAB>text``."""
    label, tab, text = line.partition("\t")
    if not tab:
        mark = next((mark for mark in OTHER_DELIMITERS if mark in line), None)
        problem = "no tab; expected label<TAB>text"
        if mark is not None:
            problem += (
                f"; if {quote(mark)} separates columns, name the file .csv (or to train: "
                "--format csv, data.format: csv)"
            )
        return line, None, problem
    return text, label, None


def split_fasttext(line: str) -> tuple[str, Any, str | None]:
    """Return the parts of a line ``__label__NAME text``, with a list of any number of labels."""
    found = list(FASTTEXT_LABEL.finditer(line))
    if not found:
        return line, [], None
    end = found[-1].end()
    if FASTTEXT_LABEL.sub("", line[:end]).strip(" \t,"):
        return line, [], "expected __label__NAME at the start of the line"
    names = [match[1] for match in found]
    return line[end:].lstrip(" \t"), names, None


SPLITTERS: dict[str, Split] = {
    "txt": split_tab,
    "fasttext": split_fasttext,
    "lines": split_nothing,
}
"""Function that takes a line apart, by the name of the format."""


def _fasta_records(lines: TextLines) -> Iterator[LineRow]:
    """Yield each record. Blank lines and comments, which begin with `;`, are left out."""
    start, end, record = 0, 0, list[str]()
    for line, text in lines.numbered():
        if text.startswith(">") and record:
            yield _fasta_row(lines, start, end, record)
            record = []
        if text.strip() and not text.startswith(";"):
            start = start if record else line
            record.append(text.strip())
        end = line
    if record:
        yield _fasta_row(lines, start, end, record)


def _fasta_row(lines: TextLines, start: int, end: int, record: list[str]) -> LineRow:
    words = FASTA_WORDS.split(record[0].strip(" \t>|="))
    label = words[-1] if len(words) > 1 else None
    named = FASTA_LABEL.search(record[0]) or FASTA_ORGANISM.search(record[0])
    if named is not None:
        label = named[1]
    missing = f"no label in {quote(record[0])}; expected a line such as >id label"
    problem = lines.problem(start, end)
    if problem is None and not record[0].startswith(">"):
        problem = missing
    return start, ("".join(record[1:]), label, None if label else missing), problem


def _blocks(records: Iterator[LineRow], selection: Selection, rows: int) -> Iterator[Block]:
    """Yield blocks of lines that were taken apart.

    A line without the label that the selection requires can't be read. A line that only lacks its
    label is a text in an input that needs none.

    Args:
        records: Line, parts and problem of each row.
        selection: Columns to read.
        rows: Largest number of rows of a block.
    """
    needs_label = LABEL in (selection.required or ())
    for part in batched(records, rows):
        lines, parts, problems = [], [], {}
        for row, (line, (text, label, reason), problem) in enumerate(part):
            lines.append(line)
            parts.append((text, label))
            lacks_label = label is None and not needs_label
            problem = problem or (None if lacks_label else reason)
            if problem is not None:
                problems[row] = problem
        texts, labels = map(list, zip(*parts, strict=True))
        columns: CellsByName = {TEXT: texts}
        if needs_label or any(label is not None for label in labels):
            columns[LABEL] = labels
        chosen = {name: columns[name] for name in selection.among(columns)}
        yield Block(chosen, np.array(lines, np.int64), problems)
