"""Examples from rows whose cells have column names, and the reader of format jsonl."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeAlias

from seqtrain.errors import DataError
from seqtrain.files.formats import columns_of_format
from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.sequences.examples import BadRow, Example, Numbered
from seqtrain.sequences.read_options import (
    EVERY_COLUMN,
    Column,
    column_names,
    keeps_all,
    missing_name,
)
from seqtrain.sequences.readers.row_source import RowSource, name_of
from seqtrain.sequences.readers.sequences import json_type, sequence_from_cells
from seqtrain.sequences.readers.step_cells import Rows, id_cells
from seqtrain.sequences.readers.time_steps import read_row_features
from seqtrain.text import quote

BY_COLUMNS = (
    "one JSON object; expected one object per row, as pandas writes with to_json(orient='records')"
)


MARKS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}
"""Maps each valid cell of a one-hot label column, in lower case, to True if its label applies."""
OBJECTS = {list, dict, bytes}
"""Types of cells that are neither texts nor numbers."""
GetterFactory: TypeAlias = Callable[..., Callable[[Any], Sequence[Any]]]
"""Function that takes a list of columns and returns a getter.

The getter takes a row and returns its cells of these columns, in order. For a column None it
returns None. It raises BadRow if the row lacks a cell. A factory called with `partial=True`
returns a getter that returns None for such a cell instead.
"""


def read_cells(
    source: RowSource, rows: Numbered, getter: GetterFactory
) -> Iterator[Example | Rows]:
    """Yield one Example per row or, if rows are time steps, blocks of rows as `Rows`.

    With `source.as_cells`, every block is a list of these columns: the line numbers, None for each
    row, and each column to keep. An unusable row is a block with only its line number and problem.

    Args:
        source: Input to which the rows belong. Its schema names the columns.
        rows: Line number and content of each row. The content of an unreadable row is a BadRow.
        getter: Function that takes a list of columns, and returns a function that selects their
            cells from a row.
    """
    parser = _RowParser(source, getter)
    if source.schema.steps is None and not source.as_cells:
        yield from source.examples(rows, parser.parse)
        return
    while part := [*islice(rows, source.at_once)]:
        try:
            yield parser.parse_columns(part)
        except (BadRow, NotJSONError):
            yield from map(parser.parse_step, part)


class _RowParser:
    """Parser of the rows of one input.

    Args:
        source: Input to which the rows belong. Its schema names the columns.
        getter: Function that takes a list of columns, and returns a function that selects their
            cells from a row.

    Raises:
        DataError: If the input must have labels and the schema names no label column.
    """

    def __init__(self, source: RowSource, getter: GetterFactory) -> None:
        self.source, schema = source, source.schema
        self.keep, self.static = [*map(str, source.keep)], schema.static or {}
        self.columns = schema.sequence_columns()
        self.one_hot = [*(schema.one_hot or ())] if source.labelled else []
        if source.labelled and not schema.label_columns:
            raise DataError(f"data.label: missing; format {source.format.name} needs a column")
        features = column_names(self.static)
        own = [*self.columns, *features, *self.one_hot]
        self.get = getter([schema.label, schema.group, *own, *source.keep])
        self.names = [*self.columns, *features]
        self.steps, self.count, self.end = len(self.columns), len(self.names), len(own)
        self.has_objects = columns_of_format(source.format.name) != "delimited"
        if schema.steps is not None:
            self.get_id = getter([schema.id, None], partial=True)

    def parse(self, row: Any) -> tuple[Any, ...]:
        """Return the fields of a row's Example, in the order that `RowSource.examples` expects.

        Raises:
            BadRow: If a cell is missing or can't be read.
        """
        label, group, *cells = self.get(row)
        source, decimal = self.source, self.source.format.decimal
        own, features = cells[: self.steps], cells[self.steps : self.count]
        for name, cell in zip(self.names[self.steps :], features, strict=True):
            _refuse_objects(name, [cell])
        return (
            sequence_from_cells(own, source.schema.kind, self.columns, decimal),
            source.labels(self._marked(cells[self.count : self.end]) if self.one_hot else label),
            None if group is None else name_of(group, "the group"),
            self._kept(cells[self.end :]),
            None,
            read_row_features(self.static, features, decimal) if features else None,
        )

    def parse_columns(self, rows: Sequence[tuple[int, Any]]) -> Rows:
        """Return a block of rows that are time steps, as the list of columns that `Rows` describes.

        With `source.as_cells`, the list has other columns: the line numbers, None for each row, and
        the cells of each column to keep.

        Args:
            rows: Line number and content of each row.

        Raises:
            BadRow: If one of the rows can't be used.
        """
        lines, contents = zip(*rows, strict=True)
        for content in contents:
            if isinstance(content, BadRow):
                raise content
        label: Any
        label, group, *cells = zip(*map(self.get, contents), strict=True)
        none: list[Any] = [None] * len(lines)
        if self.source.as_cells:
            return [lines, none, *cells[self.end :]]
        for name, column in zip(self.names, cells, strict=False) if self.has_objects else ():
            _refuse_objects(name, column)
        kept = none
        if self.keep:
            kept = [*map(self._kept, zip(*cells[self.end :], strict=True))]
        if self.one_hot:
            label = [*map(self._marked, zip(*cells[self.count : self.end], strict=True))]
        return [lines, none, label, group, kept, id_cells(cells[0]), *cells[1 : self.count]]

    def parse_step(self, row: tuple[int, Any]) -> Rows:
        """Return a block of one row, with the columns of `parse_columns`.

        The block of an unusable row contains the reason, the row's id, and None in every other
        column. The id is None if it is blank or can't be read.

        Args:
            row: Line number and content of the row.
        """
        try:
            return self.parse_columns([row])
        except (BadRow, NotJSONError) as bad:
            problem, (line, content), name = str(bad), row, None
        if self.source.as_cells:
            return [(line,), (problem,)]
        with suppress(BadRow, NotJSONError):
            if not isinstance(content, BadRow):
                name = id_cells(self.get_id(content)[:1])[0] or None
        nothing = [None]
        others = [nothing] * (self.count - 1)
        return [(line,), (problem,), nothing, nothing, nothing, [name], *others]

    def _marked(self, cells: Sequence[Any]) -> list[str]:
        """Return the labels of a row with one-hot label columns: the names of the marked columns.

        Args:
            cells: The row's cells of the one-hot columns.

        Raises:
            BadRow: If a cell isn't one of `MARKS`.
        """
        return [str(x) for x, cell in zip(self.one_hot, cells, strict=True) if is_mark(x, cell)]

    def _kept(self, cells: Sequence[Any]) -> dict[str, Any] | None:
        """Return a dict that maps each column to keep to its cell, or None without such columns.

        If all columns of a JSON object are to be kept, the object itself is returned.

        Args:
            cells: The row's cells of the columns to keep.
        """
        if not self.keep:
            return None
        found = dict(zip(self.keep, cells, strict=True))
        whole = found.get(EVERY_COLUMN) if keeps_all(self.keep) else None
        return whole if isinstance(whole, dict) else found


def _refuse_objects(name: Column, cells: Sequence[Any]) -> None:
    """Raise BadRow if a cell of a column is neither a text nor a number."""
    wrong = {*map(type, cells)} & OBJECTS
    if wrong:
        found = next(cell for cell in cells if type(cell) in OBJECTS)
        raise BadRow(f"{name}: expected a text or a number, found {json_type(found)}")


def is_mark(column: Column, cell: object) -> bool:
    """Return True if a cell of a one-hot label column means that the row has the label.

    Args:
        column: The column, for the message.
        cell: The cell.

    Raises:
        BadRow: If the cell is neither blank nor one of 1, 0, true, false, yes, no.
    """
    text = "" if cell is None or cell != cell else str(cell).strip().lower().removesuffix(".0")
    if text not in MARKS:
        expected = "1 or 0, true or false, yes or no, or a blank cell"
        raise BadRow(f"{column}: found {quote(text)}; expected {expected}")
    return MARKS[text]


def read_jsonl(source: RowSource) -> Iterator[Example | Rows]:
    """Yield the rows of a file of JSON objects: one object per line, or one array of objects.

    An array is read into memory as a whole. In an array, line numbers are the numbers of the
    objects, from 1.

    Raises:
        DataError: If the array isn't valid, or an object extends over several lines. Also if a
            labelled input is a single object that is a table by columns.
    """
    lines = source.lines()
    line, text = next((row for row in lines if row[1].strip()), (0, ""))
    if text.strip() == "{":
        source.problems.fail(line, "an object over several lines; expected one per line, or a list")
    if text.lstrip()[:1] != "[":
        following = [*islice(lines, int(source.labelled))]
        if source.labelled and not following:
            with suppress(NotJSONError):
                if is_by_columns(parse_json(text)):
                    source.problems.fail(line, BY_COLUMNS)
        found = chain([(line, text)] * bool(line), following, lines)
        return read_objects(source, source.good(found, blank_rows=False), parse_json)
    text = "\n".join([text, *(rest for _, rest in lines)])
    try:
        source.check(text)
        objects = parse_json(text)
    except (BadRow, NotJSONError) as error:
        source.problems.fail(line, str(error))
    assert isinstance(objects, list)
    return read_objects(source, enumerate(objects, start=1))


def is_by_columns(row: object) -> bool:
    """Return True if a JSON value looks like a table that is stored column by column.

    Such a table is an object with two or more fields. Every field is a list or an object. All have
    the same size, at least two.
    """
    values = [*row.values()] if isinstance(row, dict) else []
    sizes = {len(value) if isinstance(value, list | dict) else 0 for value in values}
    return len(values) > 1 and len(sizes) == 1 and max(sizes) > 1


def read_objects(
    source: RowSource,
    rows: Numbered,
    parse: Callable[[Any], object] = lambda row: row,
    *,
    with_indexes: bool = False,
) -> Iterator[Example | Rows]:
    """Yield the rows of an input whose rows are objects, as `read_cells` does.

    Args:
        source: Input to which the rows belong.
        rows: Line number and content of each row.
        parse: Function that converts a row's content to an object. It may raise BadRow or
            NotJSONError.
        with_indexes: True if a column may be named by a whole number, as in a DataFrame.

    Raises:
        DataError: If the schema names a column by index and `with_indexes` is false.
    """
    schema = source.schema

    def getter(
        columns: list[Column | None], *, partial: bool = False
    ) -> Callable[[Any], Sequence[Any]]:
        index = next((x for x in columns if isinstance(x, int)), None)
        if index is not None and not with_indexes:
            key = {schema.label: "label", schema.group: "group"}.get(index, "sequence")
            needed = f"format {source.format.name} needs a field's name"
            raise DataError(f"data.{key}: {index} is an index; {needed}")
        label, *names = [None if column is None else str(column) for column in columns]
        is_optional = partial or not source.labelled
        keep_row = keeps_all(source.keep) and not partial
        names = names[:-1] if keep_row else names

        def get(row: Any) -> list[Any]:
            fields = parse(row)
            if not isinstance(fields, dict):
                raise BadRow(f"expected a JSON object, found {json_type(fields)}")
            try:
                found = [fields[x] if x in fields else _field(fields, x) for x in names]
                label_found = _field(fields, label, is_optional=is_optional)
            except BadRow:
                needed = [*names, None if is_optional else label]
                raise BadRow("; ".join(_missing_fields(fields, needed))) from None
            return [label_found, *found, *([fields] if keep_row else [])]

        return get

    return read_cells(source, rows, getter)


def _missing_fields(row: dict[str, Any], names: Iterable[str | None]) -> Iterator[str]:
    """Yield an error message for each of the fields that a JSON object lacks."""
    for name in dict.fromkeys(names):
        try:
            _field(row, name)
        except BadRow as bad:
            yield str(bad)


def _field(
    row: dict[str, Any], name: str | None, outer: str = "", *, is_optional: bool = False
) -> Any:
    """Return a field of a JSON object. The name `a.b` means the field b of the object a.

    Args:
        row: The object.
        name: Name of the field, or None to return None.
        outer: Prefix of the names in messages, such as ``"a."`` inside the object a.
        is_optional: True to return None if the field is missing.

    Raises:
        BadRow: If the field is missing and not optional.
    """
    if name is None or name in row:
        return None if name is None else row[name]
    first, dot, rest = name.partition(".")
    nested = row.get(first)
    if dot and isinstance(nested, dict):
        return _field(nested, rest, f"{outer}{first}.", is_optional=is_optional)
    if is_optional:
        return None
    raise BadRow(missing_name("field", outer + name, [outer + each for each in row]))
