"""Schema of an input: the form of its files, and the meaning of their columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from seqtrain.errors import DataError
from seqtrain.sequences.saved import Saved, refuse
from seqtrain.tables.blocks import FILE, FOLDER, LABEL, REST, TEXT, Selection
from seqtrain.tables.cells import name_of, text_of
from seqtrain.tables.conversions.forms import form_in_name
from seqtrain.tables.formats import FORMATS, IN_MEMORY, formats_holding, resolve_format
from seqtrain.tables.join import for_split
from seqtrain.tables.opening import STDIN
from seqtrain.tables.times import TIME_TYPES
from seqtrain.text import display_name, one_of

if TYPE_CHECKING:
    from seqtrain.config.schema import DataConfig

Column: TypeAlias = int | str
"""Name of a column, or its index from 0."""
ColumnKinds: TypeAlias = dict[str, Any]
"""Value of data.steps or data.static: maps the name of each column to its kind."""

OF_CONFIG = (
    "kind",
    "sequence",
    "group",
    "weight",
    "id",
    "order",
    "steps",
    "static",
    "window",
    "label_separator",
    "quoting",
    "delimiter",
    "encoding",
    "decimal",
    "bad_rows",
    "path",
    "sheet",
    "symbol_separator",
    "na_values",
    "units",
)
"""Attributes of `Schema` that are the keys of data with these names."""
EVERY = "*"
"""Name in data.na_values that stands for every column but the label's."""
EVERY_COLUMN = "\0"
"""The only entry of `keep` if every column of the input is copied. No column has this name."""


class ColumnRoles(NamedTuple):
    """Columns of an input by their meaning.

    Attributes:
        content: Columns of the sequence. Empty if it is in all columns without another meaning.
        labels: Column of the label, or one column per label.
        required: Columns that the input must have.
        selection: Columns to read.
    """

    content: tuple[Column, ...]
    labels: tuple[Column, ...]
    required: tuple[Column, ...]
    selection: Selection


@dataclass(frozen=True)
class Schema(Saved):
    """Form of the training files, and the meaning of their columns. It is saved with the model.

    Attributes:
        format: Name of the format, a key of `FORMATS`.
        kind: Kind of the sequences: text, tokens, features or steps.
        sequence: Column or columns of the sequence, or None if the format determines its place.
            With `steps` and without `id`, its cells are lists of objects, one for each time step.
            Several columns of text are joined. Several columns of features are channels or time
            steps. For features in a csv file, None means that all other columns are time steps.
        label: Column of the label, or None if the format determines its place.
        one_hot: One column per label, in place of `label`. None if a column has the labels.
        group: Column with the name of the row's group, or None.
        weight: Column with the weight of the row, or None.
        id: Column with the id of the sequence to which a row belongs, or several columns that are
            one id together. None if a row is a sequence. The row is a time step, or a text.
        order: Column or columns by which the rows of an id are sorted, or None if they are in order
            already.
        order_type: Type of the values in `order`, one of `TIME_TYPES`, or None if unknown. If
            `order` has several columns, the type of each of them.
        steps: Kinds of the columns of a time step, or None if a row is a sequence.
        static: Kinds of the columns of row features, or None.
        window: Number of steps of a window, distance of windows, and rule of the label, as in
            data.window. None if an id is one sequence.
        label_separator: Text between the labels of a multi-label row, or None if a row has one
            label.
        header: True if the first row of csv and tsv has the names of the columns.
        quoting: standard if double quotes enclose fields of csv and tsv, none if they are ordinary
            characters, auto for the custom of the format.
        delimiter: Delimiter of csv and tsv: comma, semicolon, tab or pipe. auto to detect it.
        encoding: Encoding of lines that aren't valid UTF-8. utf-16 applies to the whole file.
        decimal: Decimal mark of numbers in text.
        by_name: True if the name of another file determines its format. False if data.format set
            one format for all files.
        whole_files: True if each file in a folder and its sub-folders is one sequence.
        bad_rows: Policy for rows that can't be read: error or drop.
        path: Pattern whose named groups in a file's path are columns, or None.
        join: Further files whose columns are joined, as in data.join. A saved model has their names
            without folders, and joins files of these names in the folder of an input.
        sheet: Name of the sheet of a workbook, or None for the first one.
        symbol_separator: Text between the symbols of a cell, or None for blanks.
        na_values: Further cells that mean a missing value, by column, as in data.na_values.
        units: Text before or after the numbers of columns, by column, as in data.units.
        width: Number of columns of train, if they have no names, or None if it isn't known.
        converted: Form of `seqtrain convert` that wrote the file of train by its name, or None.
    """

    format: str = "jsonl"
    kind: Literal["text", "tokens", "features", "steps"] = "text"
    sequence: int | str | tuple[int | str, ...] | None = None
    label: int | str | None = None
    one_hot: tuple[int | str, ...] | None = None
    group: int | str | None = None
    weight: int | str | None = None
    id: int | str | tuple[int | str, ...] | None = None
    order: int | str | tuple[int | str, ...] | None = None
    order_type: str | tuple[str | None, ...] | None = None
    steps: dict[str, str | dict[str, bool | int | str]] | None = None
    static: dict[str, str | dict[str, bool | int | str]] | None = None
    window: dict[str, int | str] | None = None
    label_separator: str | None = None
    header: bool = True
    quoting: Literal["auto", "standard", "none"] = "auto"
    delimiter: Literal["auto", "comma", "semicolon", "tab", "pipe"] = "auto"
    encoding: str = "utf-8"
    decimal: Literal[".", ","] = "."
    by_name: bool = True
    whole_files: bool = False
    bad_rows: Literal["error", "drop", "blank"] = "error"
    path: str | None = None
    join: tuple[dict[str, str | bool | list[str] | dict[str, str | list[str]]], ...] = ()
    sheet: str | None = None
    symbol_separator: str | None = None
    na_values: dict[str, list[str | int | float]] | None = None
    units: dict[str, str] | None = None
    width: int | None = None
    converted: str | None = None

    def __post_init__(self) -> None:
        one_hot = self.one_hot
        grows = "order" in (self.steps or {}).values()
        is_step = self.steps is not None and self.sequence is None
        may_have_id = is_step or (self.kind == "text" and self.sequence is not None)
        faults = {
            f"format: expected {', '.join(FORMATS)}": self.format not in FORMATS,
            f"order_type: expected null, {', '.join(TIME_TYPES)}": (
                len(self.order_types) != max(1, len(self.order_columns))
                or not {*self.order_types} <= {None, *TIME_TYPES}
            ),
            "one_hot: expected columns in place of label, or null": (
                one_hot is not None and (self.label is not None or not one_hot)
            ),
            "steps: expected columns if kind is steps, or else null": (
                (self.steps is None) != (self.kind != "steps")
            ),
            "id: expected a column if rows are time steps": is_step and not self.id_columns,
            "id: expected null, because a row is a sequence": (
                self.id is not None and not may_have_id
            ),
            "order: expected null, because a row is a sequence": (
                self.id is None and self.order is not None
            ),
            "order: expected a column, because a column of steps grows by it": (
                grows and self.order is None
            ),
        }
        refuse(faults)

    @classmethod
    def from_config(cls, data: DataConfig, path: str, *, whole_files: bool = False) -> Schema:
        """Return the schema that a config describes for one of its files. `order_type` is None.

        Args:
            data: Section data of the config.
            path: Path of the file.
            whole_files: Attribute `whole_files` of the result.
        """
        named = {name: getattr(data, name) for name in OF_CONFIG}
        named["join"] = tuple(data.join or ())
        for key in ("sequence", "id", "order"):
            if isinstance(named[key], list):
                named[key] = tuple(named[key])
        if isinstance(data.label, list):
            named["one_hot"] = tuple(data.label)
        else:
            named["label"] = data.label
        format = saved_format(resolve_format(path, data.format) or data.format)
        if format == "txt" and data.id == FILE:  # a text has no columns that an id could join
            named["id"] = None
            whole_files = True
        schema = cls(
            **named,
            format=format,
            by_name=data.format == "auto",
            whole_files=whole_files,
            converted=form_in_name(path),
        )
        if data.header == "auto":
            header = schema.names_columns
        else:
            header = data.header
        return replace(schema, header=header)

    @property
    def names_columns(self) -> bool:
        """True if a column is identified by its name, False if all are by their index."""
        named = {*self.sequence_columns, *self.columns_beside_series} - {REST, ""}
        return any(isinstance(each, str) for each in named)

    @property
    def columns_beside_series(self) -> set[Column | None]:
        """Columns that aren't time steps where all other columns are: label, group and so on."""
        named = (*self.label_columns, self.group, self.weight, *(self.static or ()))
        return {"", *named}

    @cached_property
    def label_columns(self) -> tuple[Column, ...]:
        """Columns of the labels. Empty if the format determines their place."""
        return self.one_hot or _as_tuple(self.label)

    @cached_property
    def sequence_columns(self) -> tuple[Column, ...]:
        """Columns of the sequence. Empty if the format determines its place.

        If a row is a part of a sequence, they begin with id and order. Of time steps, token columns
        follow, then number columns.
        """
        keys = (*self.id_columns, *self.order_columns)
        if self.steps is not None and self.id is not None:
            own = [name for name in column_names(self.steps) if self.steps[name] != "order"]
            return (*keys, *own)
        if self.sequence is None:
            return ()
        return (*keys, *_as_tuple(self.sequence))

    @cached_property
    def id_columns(self) -> tuple[Column, ...]:
        """Columns whose cells are the id of a row together. Empty if a row is a sequence."""
        return _as_tuple(self.id)

    @cached_property
    def order_columns(self) -> tuple[Column, ...]:
        """Columns by which the rows of an id are sorted. Empty if they are in order already."""
        return _as_tuple(self.order)

    @cached_property
    def order_types(self) -> tuple[str | None, ...]:
        """Type of the values of each column of the order, or None if it is unknown."""
        if isinstance(self.order_type, tuple):
            return self.order_type
        return (self.order_type,) * max(1, len(self.order_columns))

    @cached_property
    def has_columns(self) -> bool:
        """True if the columns of the format have names or indexes."""
        return FORMATS[self.format].columns != "none"

    @cached_property
    def is_wide(self) -> bool:
        """True if all columns without another meaning are the time steps of a series."""
        return self.kind == "features" and self.sequence is None and self.has_columns

    @property
    def reads_tables(self) -> bool:
        """True if only a table can hold an example: it has several rows, or row features."""
        return self.id is not None or self.steps is not None or self.static is not None

    @property
    def keys_of_columns(self) -> dict[Column, str]:
        """The key of the config that names each column."""
        columns = {
            "sequence": self.sequence_columns,
            "steps": self.steps or (),
            "order": self.order_columns,
            "id": self.id_columns,
            "static": self.static or (),
            "group": _as_tuple(self.group),
            "weight": _as_tuple(self.weight),
            "label": self.label_columns,
        }
        found = {}
        for key, names in columns.items():
            found.update(dict.fromkeys(names, f"data.{key}"))
        return found

    def missing_names(self, column: Column) -> frozenset[str]:
        """Return the names of cells of a column that mean a missing value, besides blank ones."""
        found = self.na_values or {}
        own = found.get(str(column), [])
        if column not in (self.label_columns or (LABEL,)):
            own = [*own, *found.get(EVERY, [])]
        return frozenset(name_of(text_of(each).strip()) for each in own)

    def roles(self, *, labelled: bool, keep: Sequence[Column] = ()) -> ColumnRoles:
        """Return the columns that are read, by their meaning.

        Args:
            labelled: True if every row must have a label. False to read no labels and weights.
            keep: Columns that are copied to predictions.
        """
        columns = FORMATS[self.format].columns
        # Joined files and paths give columns to files of every format.
        are_named = self.has_columns or self.join or self.path or self.steps is not None
        labels = self.label_columns or (LABEL,)
        if self.one_hot is None and not (are_named or self.label in (FILE, FOLDER)):
            labels = (LABEL,)
        if self.is_wide:
            return ColumnRoles((), labels, (), Selection())
        content: tuple[Column, ...] = (TEXT,)
        if self.has_columns or self.steps is not None:
            content = self.sequence_columns or content
        names = [self.group, self.weight if labelled else None]
        others = [name for name in names if name is not None]
        required = list(content)
        if self.static is not None:
            required += column_names(self.static)
        if self.has_columns or self.join:  # only required columns are joined
            required = required + others
            others = []
        if labelled:
            required += labels
        may_lack = None
        if self.width is not None and not labelled and isinstance(self.label, int):
            may_lack = self.label, self.width
        selection = Selection(may_lack=may_lack)
        if not (keep and keeps_all(keep)):
            chosen = dict.fromkeys([*required, *keep])
            rest = REST in chosen and columns == "delimited"
            if rest:
                del chosen[REST]
            if rest and not labelled:  # they stand before the list
                others += [*self.label_columns, *_as_tuple(self.weight)]
            elif not (labelled or self.header) and isinstance(self.label, int):
                others.append(self.label)  # by it the order of the columns is checked
            used = {*required, *others}  # there may be thousands
            keys = {x: key for x, key in self.keys_of_columns.items() if x in used}
            advice = ""
            if self.header and not labelled:
                advice = "expected columns with the names of those of train"
            if self.converted is not None and not labelled:
                advice = (
                    f"if seqtrain convert --to {self.converted} wrote the file of train, as its "
                    "name says, run it for this one, too"
                )
            selection = Selection(tuple(chosen), tuple(others), rest, keys, advice, may_lack)
        return ColumnRoles(content, labels, tuple(required), selection)

    def for_input(
        self,
        path: str,
        *,
        input_format: str | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
    ) -> Schema:
        """Return the schema by which an input to predict is read.

        - Normally it is that of the training files. The arguments replace its values.
        - A known ending of the path determines the format.
        - Standard input and .txt files have a sequence per line. With a model of format txt or of
          whole files, .txt files are read as in training.

        Args:
            path: Path of the input, or STDIN.
            input_format: Name of the format, or None.
            delimiter: Delimiter of a csv file, or None to use that of training.
            encoding: Encoding of lines that aren't UTF-8, or None to use that of training.

        Raises:
            DataError: If the input is a config. If it is a folder and the model can't read folders.
        """
        format, whole_files = input_format or self.format, False
        if input_format is None:
            if path.lower().endswith((".yaml", ".yml")):
                name = display_name(path)
                raise DataError(
                    f"{name}: is a config by its name; expected sequences; to train it: "
                    f"seqtrain fit {name}"
                )
            found = resolve_format(path, "auto") if self.by_name else None
            format = found if found in FORMATS else format
            whole_files = self.whole_files and (format == "txt" or self.kind == "features")
            if whole_files and FORMATS[format].columns == "delimited":
                format = self.format  # a csv file of numbers is a sequence, as it was in training
            if path == STDIN and not self.reads_tables:
                format, whole_files = "lines", False
            elif format == "txt" and self.format != "txt" and not whole_files:
                if os.path.isdir(path) and self.reads_recordings:
                    format = self.format
                elif os.path.isdir(path):
                    raise DataError(
                        f"{display_name(path)}: is a folder; the model was trained on the rows of "
                        "a file, so give a file"
                    )
                else:
                    format = "lines"
        changed: dict[str, Any] = {
            "format": format,
            "whole_files": whole_files,
            "delimiter": delimiter or self.delimiter,
            "encoding": encoding or self.encoding,
        }
        schema = self
        if any(getattr(self, name) != value for name, value in changed.items()):
            schema = replace(self, **changed)
        if self.join:
            return schema.beside(path)
        return schema

    @property
    def reads_recordings(self) -> bool:
        """True if a file is a sequence, whose id is its path or a part of it."""
        return self.id is not None and (self.id == FILE or self.path is not None)

    def join_names(self) -> tuple[dict[str, Any], ...]:
        """Return `join` as a model keeps it: files without folders, for a model holds no paths."""
        return tuple({**each, "file": os.path.basename(str(each["file"]))} for each in self.join)

    def beside(self, path: str) -> Schema:
        """Return the schema of a file that isn't in the config.

        It joins files of its folder, or of the folder above if that has no such file, as recordings
        in a folder of their own beside a file about them.
        """
        folder = os.path.dirname(path)
        joins = []
        for each in self.join:
            name = str(each["file"])
            file = os.path.join(folder, name)
            above = os.path.join(os.path.dirname(folder), name)
            if folder and os.path.exists(above) and not os.path.exists(for_split(file, path)):
                file = above
            joins.append({**each, "file": file})
        return replace(self, join=tuple(joins))

    def check_format(self, name: str, keep: Sequence[Column] = ()) -> None:
        """Raise DataError if files of the format can't have sequences and columns of this schema.

        Args:
            name: Name of the file, for the message.
            keep: Columns that are copied to predictions.
        """
        columns = {"none", "named", "delimited"}
        if self.sequence is None and self.kind != "steps" and not keeps_all(keep):
            is_wide = self.kind == "features" and self.label_columns
            columns -= {"named"} if is_wide else {"named", "delimited"}
        found = FORMATS[self.format]
        holds_kind = self.kind in found.kinds or self.kind == "features"
        if not found.labelled or (holds_kind and found.columns in columns):
            return
        if self.whole_files:
            raise DataError(
                f"{name}: is a file; the labels of train are names of folders, so give a folder "
                "with a folder per class"
            )
        expected = [each for each in formats_holding(self.kind) if FORMATS[each].columns in columns]
        without = " without named columns" if self.sequence is None else ""
        raise DataError(
            f"{name}: found format {self.format}; the model reads {self.kind}{without}; "
            f"expected {one_of(expected)}"
        )


def _as_tuple(columns: Column | tuple[Column, ...] | None) -> tuple[Column, ...]:
    """Return one column, several columns or None as a tuple."""
    if isinstance(columns, tuple):
        return columns
    if columns is None:
        return ()
    return (columns,)


def saved_format(name: str) -> str:
    """Return the format that is saved: a table in memory and a file of word vectors have none."""
    if name == IN_MEMORY:
        return "jsonl"
    if name in FORMATS:
        return name
    return "lines"


def keeps_all(columns: Sequence[Column]) -> bool:
    """Return True if a value of `keep` means every column of the input."""
    return list(columns) == [EVERY_COLUMN]


def token_columns(columns: ColumnKinds | None) -> list[str]:
    """Return the names of the token columns of data.steps or data.static."""
    return [name for name, kind in (columns or {}).items() if "token" in kind]


def column_names(columns: ColumnKinds | None) -> list[str]:
    """Return the names of all columns of data.steps or data.static, token columns first."""
    return [*token_columns(columns), *number_columns(columns)]


def number_columns(columns: ColumnKinds | None) -> list[str]:
    """Return the names of the number columns of data.steps or data.static."""
    return [name for name, kind in (columns or {}).items() if "token" not in kind]
