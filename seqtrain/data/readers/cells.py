"""Rows with named cells: which of a table's cells are read, and the objects of format jsonl."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from seqtrain.data.examples import (
    EVERY_COLUMN,
    BadRow,
    Column,
    Example,
    Numbered,
    column_names,
    keeps_all,
    missing_name,
)
from seqtrain.data.readers.opening import RowSource, name_of
from seqtrain.data.readers.sequences import json_type, sequence_from_cells
from seqtrain.data.readers.time_steps import Rows, facts_of
from seqtrain.errors import DataError
from seqtrain.files.reading import NotJSONError, parse_json

BY_COLUMNS = (
    "one object; expected one for each row, as pandas writes them with to_json(orient='records')"
)
Getter = Callable[[Any], Sequence[Any]]
"""Takes cells out of a row; raises BadRow where it lacks one. None stands for no column."""


def read_cells(
    source: RowSource, rows: Numbered, cells_of: Callable[[list[Column | None]], Getter]
) -> Iterator[Example | Rows]:
    """Yield the example of each row; where rows are time steps, many rows at once.

    `cells_of` returns what takes the cells of columns out of a row: label, group, then others.
    """
    options, static = source.options, source.options.static or {}
    named, keep = options.sequence_columns(), [*map(str, options.keep)]
    steps, count = len(named), len(named) + len(static)
    label = options.label_column(source.labelled)
    get = cells_of([label, options.group, *named, *column_names(static), *options.keep])

    def kept(cells: Sequence[Any]) -> dict[str, Any]:
        found = dict(zip(keep, cells, strict=True))
        whole = found.get(EVERY_COLUMN) if keeps_all(keep) else None
        return whole if isinstance(whole, dict) else found

    def parse(row: Any) -> tuple[Any, ...]:
        label, group, *cells = get(row)
        sequence = sequence_from_cells(cells[:steps], options.kind, named)
        facts = facts_of(static, cells[steps:count]) if static else None
        group = None if group is None else name_of(group, "the group")
        copied = kept(cells[count:]) if keep else None
        return sequence, source.labels(label), group, copied, None, facts

    def columns(some: list[tuple[int, Any]]) -> Rows:
        lines, rows = zip(*some, strict=True)
        if BadRow in map(type, rows):
            raise next(row for row in rows if isinstance(row, BadRow))
        label, group, *cells = zip(*map(get, rows), strict=True)
        copied = [*map(kept, zip(*cells[count:], strict=True))] if keep else (None,) * len(lines)
        return [lines, label, group, copied, *cells[:count]]

    if options.steps is None:
        yield from source.examples(rows, parse)
        return
    while some := [*islice(rows, source.at_once)]:
        parts = [some]
        for part in parts:
            try:
                yield columns(part)
            except (BadRow, NotJSONError) as bad:
                if len(part) == 1:
                    yield Example("", None, part[0][0], problem=str(bad))
                else:
                    parts += [[row] for row in part]


def read_jsonl(source: RowSource) -> Iterator[Example | Rows]:
    """Read JSON objects; a label is a string, an integer, true or false, or a list of these.

    Of an array, which is held in memory, the line is the row, from 1.
    """
    lines = source.lines()
    line, text = next((row for row in lines if row[1].strip()), (0, ""))
    if text.strip() == "{":
        source.problems.fail(line, "an object over several lines; expected one per line, or a list")
    if text.lstrip()[:1] != "[":
        before = ((blank, "") for blank in range(1, line))
        following = [*islice(lines, int(source.labelled))]
        if source.labelled and not following:
            with suppress(NotJSONError):
                if is_by_columns(parse_json(text)):
                    source.problems.fail(line, BY_COLUMNS)
        found = chain(before, [(line, text)] * bool(line), following, lines)
        rows = source.good(found, blank_rows=False)
        return read_objects(source, rows, parse_json)
    text = "\n".join([text, *(rest for _, rest in lines)])
    try:
        source.check(text)
        array = parse_json(text)
    except (BadRow, NotJSONError) as error:
        source.problems.fail(line, str(error))
    assert isinstance(array, list)
    return read_objects(source, enumerate(array, start=1))


def is_by_columns(row: object) -> bool:
    """Return whether a JSON object is a table by columns: lists or objects, all of one length."""
    values = [*row.values()] if isinstance(row, dict) else []
    sizes = {len(value) if isinstance(value, list | dict) else 0 for value in values}
    return len(values) > 1 and len(sizes) == 1 and max(sizes) > 1


def read_objects(
    source: RowSource, rows: Numbered, parse: Callable[[Any], object] = lambda row: row
) -> Iterator[Example | Rows]:
    """Read rows that `parse` returns as objects."""
    options = source.options

    def cells_of(columns: list[Column | None]) -> Getter:
        index = next((x for x in columns if isinstance(x, int)), None)
        if index is not None and options.format != "memory":
            key = {options.label: "label", options.group: "group"}.get(index, "sequence")
            needed = f"format {options.format} needs a field's name"
            raise DataError(f"data.{key}: {index} is an index; {needed}")
        label, *names = [None if column is None else str(column) for column in columns]
        whole = keeps_all(options.keep)
        names = names[:-1] if whole else names

        def get(given: Any) -> list[Any]:
            row = parse(given)
            if not isinstance(row, dict):
                raise BadRow(f"expected a JSON object, found {json_type(row)}")
            found = [row[x] if x in row else _field(row, x) for x in names]
            label_found = _field(row, label, is_optional=not source.labelled)
            return [label_found, *found, *([row] if whole else [])]

        return get

    return read_cells(source, rows, cells_of)


def _field(
    row: dict[str, Any], name: str | None, outer: str = "", *, is_optional: bool = False
) -> Any:
    """Return a field that must be there; `a.b` is the field b of the object a."""
    if name is None or name in row:
        return None if name is None else row[name]
    first, dot, rest = name.partition(".")
    nested = row.get(first)
    if dot and isinstance(nested, dict):
        return _field(nested, rest, f"{outer}{first}.", is_optional=is_optional)
    if is_optional:
        return None
    raise BadRow(missing_name("field", outer + name, [outer + each for each in row]))
