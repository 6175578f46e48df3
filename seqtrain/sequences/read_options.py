"""Options of reading: the format of a file, the schema of its rows, and options of prediction."""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Sequence as Listed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from seqtrain.errors import DataError
from seqtrain.files.formats import (
    FORMATS,
    IN_MEMORY,
    columns_of_format,
    formats_holding,
    resolve_format,
)
from seqtrain.text import display_name, listed, nearest, one_of, quote

if TYPE_CHECKING:
    from seqtrain.config.schema import DataConfig

Column: TypeAlias = int | str
"""Name of a column, or its index from 0."""
ColumnKinds: TypeAlias = dict[str, Any]
"""Value of data.steps or data.static: maps the name of each column to its kind."""

EVERY_COLUMN = "\0"
"""The only entry of `keep` if every column of the input is copied. No column has this name."""
STDIN = "-"
"""Name of standard input in place of a path."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of a data file. It is saved with the model, to read other files in the same way.

    Attributes:
        name: Name of the format, a key of `FORMATS`.
        header: For csv and tsv: True if the first row has the names of the columns. ``"auto"``
            means True if the schema gives the name of a column, False if it gives only indexes.
        quoting: For csv and tsv: ``"standard"`` if double quotes enclose fields, ``"none"`` if they
            are ordinary characters. ``"auto"`` means standard for csv and none for tsv. In a tsv
            file, records whose fields are all in quotes are still read as standard.
        delimiter: For csv and tsv: ``"comma"``, ``"semicolon"``, ``"tab"`` or ``"pipe"``.
            ``"auto"`` detects it from the first lines.
        encoding: Encoding of lines that aren't valid UTF-8. Only ``"utf-16"`` applies to the whole
            file.
        decimal: Decimal mark of numbers in text: ``"."`` or ``","``.
        by_name: True if the name of another file determines its format. False if data.format set
            one format for all files.
        whole_files: True if each file in a folder and its sub-folders is one sequence.
    """

    name: str
    header: Literal["auto"] | bool = "auto"
    quoting: str = "auto"
    delimiter: str = "auto"
    encoding: str = "utf-8"
    decimal: str = "."
    by_name: bool = True
    whole_files: bool = False

    @classmethod
    def from_config(cls, data: DataConfig, path: str, *, whole_files: bool = False) -> FileFormat:
        """Return the format of a file that a config names.

        Args:
            data: Section data of the config.
            path: Path of the file.
            whole_files: Attribute `whole_files` of the result.
        """
        return cls(
            name=resolve_format(path, data.format) or data.format,
            header=data.header,
            quoting=data.quoting,
            delimiter=data.delimiter,
            encoding=data.encoding,
            decimal=data.decimal,
            by_name=data.format == "auto",
            whole_files=whole_files,
        )

    def for_file(self, path: str) -> FileFormat:
        """Return the format of another labelled file.

        The ending of the path determines `name`. An unknown ending changes nothing. If `by_name` is
        False, the format stays the same for all paths.
        """
        if not self.by_name:
            return self
        return replace(self, name=resolve_format(path, "auto") or self.name)


@dataclass(frozen=True, slots=True)
class Schema:
    """Schema of the rows: the meaning of columns. It is saved with the model.

    Attributes:
        kind: Kind of the sequences: ``"text"``, ``"tokens"``, ``"features"`` or ``"steps"``.
        sequence: Column or columns of the sequence, or None if the format determines the place of
            the sequence. Several columns of text are joined. Several columns of features are
            channels or time steps. For features in a csv file, None means that all columns except
            the label's are time steps.
        label: Column of the label, or None if the format determines its place.
        one_hot: One column per label, with the name of the label. Its cell is 1 if the row has the
            label, else 0. These columns replace `label`. None if a column has the labels as text.
        group: Column with the name of the row's group, or None.
        id: Column with the id of the sequence to which a row belongs, or None if a row is a
            sequence.
        order: Column by which the rows of an id are sorted, or None if they are in order already.
        order_type: Type of the values in `order`, one of `ORDER_TYPES`, or None if unknown.
        steps: Kinds of the columns of a time step, or None if a row is a sequence.
        static: Kinds of the columns of row features, or None.
        label_separator: Text between the labels of a multi-label row, or None if a row has one
            label.
    """

    kind: str = "text"
    sequence: Column | list[Column] | None = None
    label: Column | None = None
    one_hot: list[Column] | None = None
    group: Column | None = None
    id: Column | None = None
    order: Column | None = None
    order_type: str | None = None
    steps: ColumnKinds | None = None
    static: ColumnKinds | None = None
    label_separator: str | None = None

    @classmethod
    def from_config(cls, data: DataConfig) -> Schema:
        """Return the schema that a config describes. `order_type` is None."""
        return cls(
            kind=data.kind,
            sequence=data.sequence,
            label=None if isinstance(data.label, list) else data.label,
            one_hot=data.label if isinstance(data.label, list) else None,
            group=data.group,
            id=data.id,
            order=data.order,
            steps=data.steps,
            static=data.static,
            label_separator=data.label_separator,
        )

    @property
    def label_columns(self) -> list[Column]:
        """Columns of the labels. Empty if the format determines their place."""
        return self.one_hot or ([] if self.label is None else [self.label])

    def sequence_columns(self) -> list[Column]:
        """Return the columns of the sequence. Empty if the format determines its place.

        If a row is a time step, they are id and order, then token columns, then number columns.
        """
        if self.steps is not None:
            growing = [name for name, kind in self.steps.items() if kind == "order"]
            own = [name for name in column_names(self.steps) if name not in growing]
            return [x for x in (self.id, self.order) if x is not None] + own
        columns = [] if self.sequence is None else self.sequence
        return columns if isinstance(columns, list) else [columns]

    def columns_read(self, present: Listed[str], keep: Listed[Column] = ()) -> list[str]:
        """Return the columns of a table that must be read.

        Args:
            present: Names of all columns of the table.
            keep: Columns that are copied to predictions.
        """
        if keeps_all(keep) or (self.kind == "features" and self.sequence is None):
            return [*present]
        needed = [*self.sequence_columns(), *self.label_columns, self.group, *keep]
        needed += column_names(self.static)
        names = {part for x in needed for part in (str(x), str(x).partition(".")[0])}
        return [column for column in present if column in names]

    def check_format(self, format: str, name: str, keep: Listed[Column] = ()) -> None:
        """Raise DataError if files of a format can't have sequences and columns of this schema.

        Args:
            format: Name of the format.
            name: Name of the file, for the message.
            keep: Columns that are copied to predictions.
        """
        is_named = self.sequence is not None or keeps_all(keep) or self.kind == "steps"
        is_wide = self.kind == "features" and bool(self.label_columns)
        expected = [
            each
            for each in formats_holding(self.kind)
            if is_named
            or columns_of_format(each) == "none"
            or (is_wide and columns_of_format(each) == "delimited")
        ]
        is_held = format in expected or self.kind == "features"  # JSON holds vectors everywhere
        columns_fit = is_named or format in expected or columns_of_format(format) == "none"
        if format == IN_MEMORY or not FORMATS[format].labelled or (is_held and columns_fit):
            return
        columns = " without named columns" if self.sequence is None else ""
        raise DataError(
            f"{name}: found format {format}; the model reads {self.kind}{columns}; "
            f"expected {one_of(expected)}"
        )


@dataclass(frozen=True)
class PredictionOptions:
    """Options of reading in one call of prediction. They aren't saved.

    Attributes:
        input_format: Name of the input's format, or None to derive it from the input's name.
        delimiter: Delimiter of a csv file, or None to use that of training.
        encoding: Encoding of lines that aren't UTF-8, or None to use that of training.
        keep: Columns that are copied to the predictions, as `Example.kept`.
        empty: Policy for empty sequences: ``"error"``, ``"unk"`` or ``"blank"``. None to use that
            of training.
        bad_rows: Policy for rows that can't be read: ``"error"``, or ``"blank"`` for a row
            without a prediction.
    """

    input_format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    keep: Listed[Column] = ()
    empty: str | None = None
    bad_rows: str = "error"

    def file_format(self, path: str, trained: FileFormat, schema: Schema) -> FileFormat:
        """Return the format in which an input file is read.

        - Normally it is the format of the training files. The options of this object replace its
          values.
        - A known ending of the path determines the format's `name`.
        - Standard input and .txt files have a sequence per line. With a model of format txt or of
          whole files, .txt files are read as in training.

        Args:
            path: Path of the input, or STDIN.
            trained: Format of the training files.
            schema: Schema of the model.

        Raises:
            DataError: If the input is a config. If it is a folder and the model can't read folders.
        """
        trained = replace(
            trained,
            delimiter=self.delimiter or trained.delimiter,
            encoding=self.encoding or trained.encoding,
        )
        if self.input_format is not None:
            return replace(trained, name=self.input_format, whole_files=False)
        name, found = display_name(path), trained.for_file(path)
        if path.lower().endswith((".yaml", ".yml")):
            raise DataError(
                f"{name}: is a config by its name; expected sequences; to train it: "
                f"seqtrain fit {name}"
            )
        if path == STDIN and schema.steps is None and schema.static is None:
            return replace(found, name="lines", whole_files=False)
        if trained.whole_files and (found.name == "txt" or schema.kind == "features"):
            return found
        found = replace(found, whole_files=False)
        if found.name != "txt" or trained.name == "txt":
            return found
        if os.path.isdir(path):
            raise DataError(
                f"{name}: is a folder; the model was trained on the rows of a file, so give a file"
            )
        return replace(found, name="lines")


def keeps_all(columns: Listed[Column]) -> bool:
    """Return True if a value of `keep` means every column of the input."""
    return [*columns] == [EVERY_COLUMN]


def token_columns(columns: ColumnKinds | None) -> list[str]:
    """Return the names of the token columns of data.steps or data.static."""
    return [name for name, kind in (columns or {}).items() if "token" in kind]


def column_names(columns: ColumnKinds | None) -> list[str]:
    """Return the names of all columns of data.steps or data.static, token columns first."""
    tokens = token_columns(columns)
    return [*tokens, *(name for name in columns or {} if name not in tokens)]


def missing_name(what: str, name: str, present: Iterable[str]) -> str:
    """Return the error message for a missing column or field.

    Args:
        what: What is missing, such as "column".
        name: Name of the missing column or field.
        present: Names that were found instead. The message lists them.
    """
    names = list(present)
    near = nearest(name, names)
    hint = f"; did you mean {quote(near)}?" if near else ""
    found = listed([*map(quote, names)], 20) or "none"
    return f"no {what} {quote(name)}; found {found}{hint}"
