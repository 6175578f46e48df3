"""Format jsonl: one JSON object per line, or one array of objects."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeAlias

from seqtrain.data.examples import (
    BadRow,
    Column,
    Example,
    column_names,
    is_blank,
    keeps_all,
    label_set,
    missing_name,
    parse_rows,
)
from seqtrain.data.readers.opening import RowSource
from seqtrain.data.readers.sequences import (
    json_type,
    sequence_from_cells,
)
from seqtrain.errors import DataError
from seqtrain.files.reading import NotJSONError, parse_json

Fields: TypeAlias = dict[str, object]


def read_jsonl(source: RowSource) -> Iterator[Example]:
    """Read JSON objects; a label is a string, an integer, true or false, or a list of these.

    Of an array, which is held in memory, the line is the row, from 1.
    """
    parse_object = object_parser(source)

    def parse(text: object) -> tuple[Any, ...]:
        row = parse_json(text) if isinstance(text, str) else text
        if not isinstance(row, dict):
            raise BadRow(f"expected a JSON object, found {json_type(row)}")
        return parse_object(row)

    lines = source.lines()
    line, first = next((row for row in lines if not is_blank(row[1])), (0, ""))
    text = first if isinstance(first, str) else ""
    if text.strip() == "{":
        source.problems.fail(line, "an object over several lines; expected one per line, or a list")
    if text.lstrip()[:1] != "[":
        before = ((blank, "") for blank in range(1, line))
        return parse_rows(chain(before, [(line, first)], lines), parse, blank_rows=False)
    try:
        rows = parse_json("\n".join([text, *(str(rest) for _, rest in lines)]))
    except NotJSONError as error:
        source.problems.fail(line, str(error))
    assert isinstance(rows, list)
    return parse_rows(enumerate(rows, start=1), parse)


def object_parser(source: RowSource) -> Callable[[Fields], tuple[Any, ...]]:
    """Return what reads one row, given as an object."""
    options = source.options

    def name_of(key: str, column: Column | None) -> str | None:
        if isinstance(column, int) and options.format != "memory":
            raise DataError(
                f"data.{key}: {column} is an index; format {options.format} needs a field's name"
            )
        return None if column is None else str(column)

    names = [str(name_of("sequence", column)) for column in options.sequence_columns()]
    label_name = name_of("label", options.label_column(source.labelled))
    group_name = name_of("group", options.group)

    static_names = column_names(options.static)

    def parse(row: Fields) -> tuple[Any, ...]:
        own = names
        if options.kind == "features" and not names:
            own = [name for name in row if name not in (label_name, group_name)]
        cells = [_field(row, name) for name in own]
        sequence = sequence_from_cells(cells, options.kind, own)
        label = group = None
        if label_name is not None and (
            source.labelled or {label_name, label_name.partition(".")[0]} & row.keys()
        ):
            found = _field(row, label_name)
            if isinstance(found, list):
                label = label_set(filter(None, (_name(each, label_name) for each in found)))
            else:
                label = source.label(_name(found, label_name) or "")
        if group_name is not None:
            group = _name(_field(row, group_name), group_name)
        keep = row if keeps_all(options.keep) else options.keep
        kept = {str(name): _field(row, str(name)) for name in keep} or None
        static = source.static([_field(row, name) for name in static_names])
        return sequence, label, group, kept, None, static

    return parse


def _field(row: Fields, name: str, outer: str = "") -> object:
    """Return a field that must be there; `a.b` is the field b of the object a."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    nested = row.get(first)
    if not dot or not isinstance(nested, dict):
        raise BadRow(missing_name("field", outer + name, [outer + each for each in row]))
    return _field(nested, rest, f"{outer}{first}.")


def _name(value: object, field: str) -> str | None:
    """Read a label or the name of a group, None where it is blank; integers as JSON has them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, int):
        return str(value)
    what = "a number with a fraction" if isinstance(value, float) else json_type(value)
    raise BadRow(f"{field}: expected a string, an integer, true or false, found {what}")
