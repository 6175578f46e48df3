"""What a reader yields, the options by which it reads, and how it complains about rows."""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Listed
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.config.formats import (
    ENDINGS,
    FIXED_COLUMNS,
    MEMORY,
    WIDE_FORMATS,
    holds,
    resolve_format,
)
from seqtrain.errors import DataError
from seqtrain.text import display_name, nearest, one_of, quote

Features: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Steps:
    """Time steps of several columns: cells of each column of tokens, and numbers.

    Shape:
        tokens: K columns of T cells each. numbers: (T, F) float32, NaN where missing.
    """

    tokens: tuple[Listed[str], ...]
    numbers: Features

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def size(self) -> int:
        """Number of its cells."""
        return len(self) * len(self.tokens) + self.numbers.size

    def cells(self) -> list[list[str]]:
        """Return the cells of each step as texts for people: tokens, then numbers."""
        tokens = zip(*self.tokens, strict=True) if self.tokens else [()] * len(self)
        rows = zip(tokens, self.numbers.tolist(), strict=True)
        return [[*own, *(f"{number:g}" for number in numbers)] for own, numbers in rows]


Sequence: TypeAlias = str | list[str] | Features | Steps
"""A sequence as read: text, symbols already split, feature vectors of shape (T, C), or steps."""
Column: TypeAlias = int | str
Columns: TypeAlias = dict[str, Any]
"""What each column of data.steps or data.static is, as the config has it."""
Numbered: TypeAlias = Iterator[tuple[int, Any]]
"""Line number and content of each row of a file; a BadRow in place of a blank one."""

BLANK_LABEL = "the label is blank"
SHOWN_ROWS = 5
"""Bad rows of an input that are named; the rest is counted."""


class Example(NamedTuple):
    """One sequence and where it was read.

    Attributes:
        sequence: text, list of symbols, or feature vectors of shape (T, C), NaN where missing
            (an empty sequence of features read from JSON has shape (0, 0)).
        labels: as written, sorted if the task is multi-label; or None if the input has no labels.
        line: line of the file on which the row begins, from 1 (npz, parquet: row, from 1).
        file: the file inside the folder that was read, or None where the input is one file.
        kept: the columns to copy to its prediction, as `ReadOptions.keep` asks for them.
        problem: why it can't be used.
        static: the facts beside the sequence, as one step.
        id: of a sequence whose rows are time steps.
    """

    sequence: Sequence
    labels: tuple[str, ...] | None
    line: int
    file: str | None = None
    group: str | None = None
    kept: dict[str, Any] | None = None
    problem: str | None = None
    static: Steps | None = None
    id: str | None = None


class BadRow(ValueError):
    """One row can't be used."""


class RowProblems:
    """Gathers the complaints about one input's rows, to raise them together."""

    def __init__(self, name: str) -> None:
        self.name = self.file = name
        self.count = 0
        self._first: list[tuple[str, int, str]] = []

    @property
    def shown(self) -> list[str]:
        """The first complaints in the order of files by name, and of their lines."""
        return [said for _, _, said in self._first]

    def add(self, line: int, problem: str, file: str | None = None) -> None:
        """Note that the row that begins on `line` can't be used, of a file within the input."""
        self.count += 1
        file = file or self.name
        if len(self._first) < SHOWN_ROWS or (file, line) < self._first[-1][:2]:
            insort(self._first, (file, line, f"{file}:{line}: {problem}"))
            del self._first[SHOWN_ROWS:]

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise this complaint, after which the file can't be read on, and then all others."""
        self.count += 1
        self._first.insert(0, ("", 0, f"{self.file}:{line}: {problem}"))
        self.raise_if_any()
        raise AssertionError

    def raise_if_any(self) -> None:
        """Raise what was gathered as one DataError: the first five and the total."""
        if self.count:
            more = self.count - len(self._first)
            total = f"{self.name}: {self.count} rows can't be used ({more} not shown)"
            raise DataError(*self.shown, *([total] if more else []))


EVERY_COLUMN = "all"


def keeps_all(columns: Listed[Column]) -> bool:
    """Whether the columns to keep are all that the input has."""
    return [*columns] == [EVERY_COLUMN]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How rows are read; saved with the model, so that predict reads as fit did.

    Attributes:
        format: csv, tsv, jsonl, fasttext, txt, fasta, ts, npz, parquet, arrow; memory, of a table
            given from Python; in prediction also lines, a
            sequence each, and files, each of which is a sequence.
        header: csv, tsv: whether the first row names the columns; auto: where one is named.
        quoting: csv, tsv: standard, none, or auto (standard for csv, none for tsv).
        delimiter: csv, tsv: comma, semicolon, tab, pipe, or auto (found from the first lines).
        encoding: of lines that aren't UTF-8; utf-16: of the whole file.
        sequence: column, a name or an index from 0; several texts are joined, several columns of
            features are channels or time steps; None, of features in a csv file: all others, until
            train names them.
        id: column by which rows are one sequence, where a row is a time step.
        order: column that sorts the rows of an id; None: they stand as in the file.
        dated: whether train's order are dates; None: it isn't known yet, or none.
        steps, static: what is read of a time step and beside a sequence: token, number or order
            (growth of the column `order`), by column.
        label_separator: stands between the labels of a row; None: each row has one.
        bad_rows: error or drop; in prediction error or blank: a row without a prediction.
        by_name: another file's format goes by its own name; else the format was set for all.
        whole_files: each of train's files was a sequence: a folder of folders of them.
        keep: columns that prediction copies to its rows; `EVERY_COLUMN` alone: all.
    """

    format: str
    kind: str = "text"
    header: Literal["auto"] | bool = "auto"
    quoting: str = "auto"
    delimiter: str = "auto"
    encoding: str = "utf-8"
    sequence: Column | list[Column] | None = None
    label: Column | None = None
    group: Column | None = None
    id: Column | None = None
    order: Column | None = None
    dated: bool | None = None
    steps: Columns | None = None
    static: Columns | None = None
    label_separator: str | None = None
    bad_rows: str = "error"
    by_name: bool = True
    whole_files: bool = False
    keep: Listed[Column] = ()

    def for_file(self, path: str) -> ReadOptions:
        """Return how another file is read: by its own name, unless a format was set for all."""
        if not (self.by_name or path.startswith(MEMORY)):
            return self
        return replace(self, format=resolve_format(path, "auto") or self.format)

    def for_input(self, source: str, format: str | None = None) -> ReadOptions:
        """Return how prediction reads a source: standard input and .txt as lines, else as training.

        Lines of label<TAB>text and whole files are read as in training. A given format goes first.
        """
        if format is not None:
            return replace(self, format=format)
        name = display_name(source)
        if source.lower().endswith((".yaml", ".yml")):
            raise DataError(
                f"{name}: is a config by its name; expected sequences; to train it: "
                f"seqtrain fit {name}"
            )
        options = self.for_file(source)
        if source == "-" and self.steps is None and self.static is None:
            return replace(options, format="lines")
        if self.whole_files and (options.format == "txt" or self.kind == "features"):
            return replace(options, format="files")
        if options.format != "txt" or self.format == "txt":
            return options
        if os.path.isdir(source):
            raise DataError(
                f"{name}: is a folder; the model was trained on the rows of a file, so give a file"
            )
        return replace(options, format="lines")

    def check_format(self, name: str) -> None:
        """Refuse a file, by its name, whose format holds another kind or wants columns named."""
        is_named = self.sequence is not None or keeps_all(self.keep) or self.kind == "steps"
        is_wide = self.kind == "features" and self.label is not None
        fixed = (*FIXED_COLUMNS, *(WIDE_FORMATS if is_wide else ()))
        formats = [x for x in ENDINGS.values() if is_named or x in fixed]
        is_held = self.kind == "features" or holds(self.format, self.kind)  # as JSON in any format
        if self.format in ENDINGS.values() and not (is_held and self.format in formats):
            columns = " without named columns" if self.sequence is None else ""
            expected = one_of([x for x in dict.fromkeys(formats) if holds(x, self.kind)])
            raise DataError(
                f"{name}: found format {self.format}; the model reads {self.kind}{columns}; "
                f"expected {expected}"
            )

    def sequence_columns(self) -> list[Column]:
        """Return the columns of the sequence; none where a format fixes where it stands.

        Where a row is a time step: its id and order, then tokens and numbers.
        """
        if self.steps is not None:
            grown = [name for name, kind in self.steps.items() if kind == "order"]
            read = [name for name in column_names(self.steps) if name not in grown]
            return [x for x in (self.id, self.order) if x is not None] + read
        columns = [] if self.sequence is None else self.sequence
        return columns if isinstance(columns, list) else [columns]

    def columns_of(self, present: Listed[str]) -> list[str]:
        """Return those of a table's columns that are read."""
        if keeps_all(self.keep) or (self.kind == "features" and self.sequence is None):
            return [*present]
        wanted = [*self.sequence_columns(), self.label, self.group, *self.keep]
        wanted += column_names(self.static)
        found = {part for x in wanted for part in (str(x), str(x).partition(".")[0])}
        return [column for column in present if column in found]

    def label_column(self, labelled: bool) -> Column | None:
        """Return the column of the label, which only prediction (not `labelled`) may lack."""
        if labelled and self.label is None:
            raise DataError(f"data.label: missing; format {self.format} needs a column")
        return self.label


def token_columns(columns: Columns | None) -> list[str]:
    """Return the names of the columns of tokens of data.steps or data.static."""
    return [name for name, kind in (columns or {}).items() if kind not in ("number", "order")]


def column_names(columns: Columns | None) -> list[str]:
    """Return the names of all columns of data.steps or data.static, those of tokens first."""
    tokens = token_columns(columns)
    return [*tokens, *(name for name in columns or {} if name not in tokens)]


def missing_name(what: str, name: str, present: Iterable[str]) -> str:
    """Word the complaint that a column or field is absent: those present, and the nearest."""
    names = list(present)
    near = nearest(name, names)
    hint = f"; did you mean {quote(near)}?" if near else ""
    return f"no {what} {quote(name)}; found {quote(', '.join(names))}{hint}"
