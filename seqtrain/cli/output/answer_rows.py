"""Answered examples as tables: mistakes, and rows where two runs differ."""

from __future__ import annotations

from collections.abc import Sequence

from seqtrain.cli.output.columns import Column, print_columns
from seqtrain.cli.output.console import stdout_console
from seqtrain.report import AnsweredExample


def show_errors(rows: Sequence[AnsweredExample]) -> None:
    """Print mistakes on stdout, a line each."""
    columns = [
        *place_columns(rows),
        Column("probability", [f"{row.probability:.2%}" for row in rows]),
        Column("label", [row.label for row in rows], "words"),
        Column("answer", [row.answer for row in rows], "words"),
        Column("sequence", [row.text for row in rows], "text", rank=1),
    ]
    if rows:  # else a note says that none is wrong
        print_columns(stdout_console(), columns)


def place_columns(rows: Sequence[AnsweredExample]) -> list[Column]:
    """Return where rows stand: their line, and their file where there are several."""
    lines = Column("line", [f"{row.line}" for row in rows])
    files = Column("file", [row.file or "" for row in rows], "words", rank=2)
    return [files, lines] if any(row.file for row in rows) else [lines]
