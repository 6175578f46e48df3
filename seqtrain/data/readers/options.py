"""How files are read: the part of the configuration that travels with the model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from seqtrain.config.formats import ENDINGS, FIXED_COLUMNS, holds, resolve_format
from seqtrain.errors import DataError
from seqtrain.text import display_name, nearest, one_of, quote

Column: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How rows are read; saved with the model, so that predict reads as fit did.

    Attributes:
        format: csv, tsv, jsonl, fasttext, txt, ts, npz; in prediction also lines, a sequence each,
            and files, each of which is a sequence.
        kind: text, tokens or features.
        header: csv, tsv: whether the first row names the columns; auto: where one is named.
        quoting: csv, tsv: standard, none, or auto (standard for csv, none for tsv).
        delimiter: csv, tsv: comma, semicolon, tab, pipe, or auto (found from the first lines).
        sequence: column of the sequence, a name or an index from 0; several are joined.
        label: column of the label.
        group: column of the group that a row belongs to.
        bad_rows: what happens to rows that can't be read: error, or drop; in prediction error, or
            blank, where they keep their places without an answer.
        by_name: another file's format goes by its own name; else the format was set for all.
        whole_files: each of train's files was a sequence: a folder of folders of them.
        keep: columns that prediction copies to the answers.
    """

    format: str
    kind: str = "text"
    header: Literal["auto"] | bool = "auto"
    quoting: str = "auto"
    delimiter: str = "auto"
    sequence: Column | list[Column] | None = None
    label: Column | None = None
    group: Column | None = None
    bad_rows: str = "error"
    by_name: bool = True
    whole_files: bool = False
    keep: Sequence[Column] = ()

    def for_file(self, path: str) -> ReadOptions:
        """Return how another file is read: by its own name, unless a format was set for all."""
        if not self.by_name:
            return self
        return replace(self, format=resolve_format(path, "auto") or self.format)

    def for_input(self, source: str, format: str | None = None) -> ReadOptions:
        """Return how prediction reads a source: standard input and .txt as lines, else as training.

        A model trained on lines of label<TAB>text reads a .txt file so, where a line has a tab; one
        trained on files reads it, and each file of a folder, as one sequence.

        Args:
            source: path of a file, or "-".
            format: in place of what the name says.

        Raises:
            DataError: it is a folder, and the model's rows weren't in one; or a config.
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
        if source == "-":
            return replace(options, format="lines")
        if options.format == "txt" and self.whole_files:
            return replace(options, format="files")
        if options.format != "txt" or self.format == "txt":
            return options
        if os.path.isdir(source):
            raise DataError(
                f"{name}: is a folder; the model was trained on the rows of a file, so give a file"
            )
        return replace(options, format="lines")

    def check_format(self, name: str) -> None:
        """Refuse a file, by its name, whose format holds another kind or wants columns named.

        Raises:
            DataError: as said.
        """
        formats = [x for x in ENDINGS.values() if self.sequence is not None or x in FIXED_COLUMNS]
        is_held = self.kind == "features" or holds(self.format, self.kind)  # as JSON in any format
        if self.format in ENDINGS.values() and not (is_held and self.format in formats):
            columns = " without named columns" if self.sequence is None else ""
            expected = one_of([x for x in dict.fromkeys(formats) if holds(x, self.kind)])
            raise DataError(
                f"{name}: found format {self.format}; the model reads {self.kind}{columns}; "
                f"expected {expected}"
            )

    def sequence_columns(self) -> list[Column]:
        """Return the columns of the sequence as a list; none where a format fixes its place.

        Raises:
            DataError: several are given for features, which can't be joined.
        """
        if self.sequence is None:
            return []
        if not isinstance(self.sequence, list):
            return [self.sequence]
        if self.kind == "features" and len(self.sequence) > 1:
            raise DataError("data.sequence: several columns of features can't be joined; give one")
        return self.sequence

    def label_column(self, labelled: bool) -> Column | None:
        """Return the column of the label, which only prediction (not `labelled`) may lack.

        Raises:
            DataError: where none is given and one is needed.
        """
        if labelled and self.label is None:
            raise DataError(f"data.label: missing; format {self.format} needs a column")
        return self.label


def missing_name(what: str, name: str, present: Iterable[str]) -> str:
    """Word the complaint that a column or field is absent: those present, and the nearest."""
    names = list(present)
    near = nearest(name, names)
    hint = f"; did you mean {quote(near)}?" if near else ""
    return f"no {what} {quote(name)}; found {quote(', '.join(names))}{hint}"
