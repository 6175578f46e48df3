"""Format jsonl: a JSON object per line, one array of objects, or an object with such a list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.tables.blocks import (
    EVERYTHING,
    LABEL,
    MOST_MISSING,
    ROWS,
    SPLIT_NAMES,
    SPLIT_VALUES,
    TEXT,
    Block,
    CellsByName,
    Dialect,
    Name,
    Reasons,
    Selection,
    UnreadableError,
    batched,
    missing_name,
)
from seqtrain.tables.conversions.forms import AdvisedConversion
from seqtrain.tables.opening import TextLines
from seqtrain.text import listed, quote

BY_COLUMNS = (
    "one JSON object; expected one object per row, as pandas writes with to_json(orient='records')"
)
LIST_PER_LINE = "a list per line; expected an object per line, or one list of all objects"
AS_TABLE = "if it is a table, give --input-format csv (to train, data.format: csv)"
SEPARATOR = re.compile(r"[,;\t|]")
"""What may separate the columns of a table."""
FEWEST_OF_A_COLUMN = 4
"""An object of objects holds columns if these have more than so many keys for each of them."""
AS_OBJECTS = AdvisedConversion("objects")
"""AdvisedConversion of a file that holds its rows in another form."""
CUT_OFF = "its end is missing: copy the file again"
SEVERAL_LINES = "an object over several lines; expected one per line, or a list"
OPENING = re.compile(r"\s*\{(.*[\[{,])?\s*")
"""A first line that opens an object which goes on in the next line."""
JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
ParsedRow: TypeAlias = tuple[int, Any, str | None]
"""Line of a row, its object, and the reason why it can't be read, or None."""


def read_json_lines(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of a file of JSON objects.

    Raises:
        UnreadableError: As in `open_objects`.
    """
    yield from blocks_of_objects(open_objects(stream, dialect, selection, rows), selection, rows)


def open_objects(
    stream: BinaryIO, dialect: Dialect, selection: Selection = EVERYTHING, rows: int = ROWS
) -> Iterator[ParsedRow]:
    """Return the rows of a file of JSON objects.

    A file that is one array, or one object with a single list of objects such as ``{"data": […]}``,
    is read as a whole. The line of a row is then the number of its object.

    Raises:
        UnreadableError: If the array isn't valid, an object extends over several lines, or the
            file is one object that holds a table column by column.
    """
    lines = TextLines(stream, dialect.encoding)
    texts = (row for row in lines.numbered() if row[1].strip())
    first = next(texts, None)
    if first is None:
        return iter(())
    line, text = first
    if text.lstrip().startswith("["):
        whole = _whole(lines, line, chain([first], texts))
        if whole and isinstance(whole[0], list) and _have_width(whole, len(whole[0])):
            raise UnreadableError(
                line,
                "a list of lists; expected objects; to write an object for each:",
                conversion=AS_OBJECTS,
            )
        found = _numbered(whole)
    elif OPENING.fullmatch(text):
        found = _listed_in(_whole(lines, line, chain([first], texts)), line)
    else:
        following = list(islice(texts, 1)) if rows > 1 else []
        found = _parsed(lines, chain([first], following, texts))
        if not following and rows > 1:
            found = _only_row(next(found), selection)
    return found


def json_values(stream: BinaryIO, dialect: Dialect, *others: str) -> Iterator[Any]:
    """Yield the values of a file of JSON, which is converted: one of each line, or the only one.

    Args:
        stream: The file.
        dialect: Form of the file.
        others: Endings of other files that the conversion takes, for the message about a table.

    Raises:
        UnreadableError: If the file isn't JSON.
    """
    lines = TextLines(stream, dialect.encoding)
    texts = (row for row in lines.numbered() if row[1].strip())
    first = next(texts, None)
    if first is None:
        return
    line, text = first
    if text.lstrip().startswith("[") or OPENING.fullmatch(text):
        yield _whole(lines, line, chain([first], texts))
        return
    advice = f"this form takes files of JSON, {', '.join(others)}"
    for line, value, problem in _parsed(lines, chain([first], texts), advice):
        if problem is not None:
            raise UnreadableError(line, problem)
        yield value


def blocks_of_objects(
    found: Iterable[ParsedRow], selection: Selection, rows: int
) -> Iterator[Block]:
    """Yield blocks of the fields of objects. The name `a.b` means the field b of the object a.

    A row that lacks a required field can't be read. If every column is selected, a field that only
    other rows have is None.

    Args:
        found: The objects.
        selection: Fields to read.
        rows: Largest number of rows of a block.
    """
    for part in batched(found, rows):
        lines, objects, reasons = zip(*part, strict=True)
        problems = {row: reason for row, reason in enumerate(reasons) if reason}
        for row, fields in enumerate(objects):
            if type(fields) is not dict and row not in problems:
                problems[row] = f"expected a JSON object, found {json_type(fields)}"
        if problems:
            objects = tuple({} if row in problems else x for row, x in enumerate(objects))
        columns = _columns(objects, selection, problems)
        yield Block(columns, np.array(lines, np.int64), problems)


def _columns(objects: Sequence[Any], selection: Selection, problems: Reasons) -> CellsByName:
    """Return the selected fields of objects, and note the rows that lack a required one."""
    columns: CellsByName = {}
    if selection.required is None:
        for name in dict.fromkeys(name for each in objects for name in each):
            columns[name] = [each.get(name) for each in objects]
    missing = dict[int, list[str]]()
    for name in selection.required or ():
        try:
            columns[name] = [each[name] for each in objects]
        except KeyError:
            columns[name] = _nested(objects, str(name), missing, selection.keys)
    for row, reasons in missing.items():
        if len(reasons) > MOST_MISSING:
            reasons[1:] = [f"{len(reasons) - 1} more fields are missing"]
        problems.setdefault(row, "; ".join(reasons))
    for name in selection.optional:
        absent = dict[int, list[str]]()
        cells = _nested(objects, str(name), absent)
        if name not in columns and len(absent) < len(objects):
            columns[name] = cells
    return columns


def _nested(
    objects: Sequence[Any],
    name: str,
    missing: dict[int, list[str]],
    keys: Mapping[Name, str] | None = None,
) -> list[Any]:
    """Return a field of each object, or None and an entry of `missing` where it isn't there."""
    cells = []
    for row, fields in enumerate(objects):
        try:
            cells.append(field_of(fields, name, keys=keys))
        except LookupError as error:
            cells.append(None)
            missing.setdefault(row, []).append(str(error.args[0]))
    return cells


def field_of(
    fields: Any, name: str, outer: str = "", keys: Mapping[Name, str] | None = None
) -> Any:
    """Return a field of an object.

    Args:
        fields: The object.
        name: Name of the field. A name that isn't a field itself, such as `a.b`, means the field b
            of the object a.
        outer: Names of the objects around this one, for messages.
        keys: Maps names to the keys of the config that name them, for messages, or None.

    Raises:
        LookupError: If there is no such field, with a message.
    """
    if name in fields:
        return fields[name]
    first, _, rest = name.partition(".")
    nested = fields.get(first)
    if rest and isinstance(nested, dict):
        return field_of(nested, rest, f"{outer}{first}.", keys)
    present = [outer + each for each in fields]
    raise LookupError(missing_name("field", outer + name, present, keys))


def has_cell(fields: Any, name: str) -> bool:
    """Return True if an object has a field that isn't an object itself."""
    try:
        return not isinstance(field_of(fields, name), dict)
    except LookupError:
        return False


def json_type(value: object) -> str:
    """Return the JSON name of a value's type for messages, such as "an object"."""
    return JSON_TYPES.get(type(value), f"a {type(value).__name__}")


def rows_in(value: dict[str, Any]) -> list[Any] | None:
    """Return the rows in one object, or None.

    They are the only list of objects in it, such as the value of "data"; the objects that it has by
    id; or a table as pandas writes it with `to_json`: by columns, which have a cell by row, split
    into columns and data, or with a schema.
    """
    names = value.get("columns")
    schema = value.get("schema")
    rows: Any = value.get("data")
    if isinstance(names, list) and _have_width(rows, len(names)):
        return [dict(zip(map(str, names), row, strict=True)) for row in rows]
    if isinstance(rows, list) and isinstance(schema, dict) and "pandas_version" in schema:
        return rows
    found = list(_lists_in(value))
    if len(found) == 1:
        return found[0]
    objects = list(value.values())
    if len(objects) < 2 or not all(isinstance(each, dict) for each in objects):
        inner = [rows_in(each) for each in objects if isinstance(each, dict)]
        tables = [rows for rows in inner if rows is not None]
        return tables[0] if len(tables) == 1 else None
    keys = objects[0].keys()
    if all(each.keys() == keys for each in objects):
        are_rows = all(map(str.isdigit, keys)) or len(keys) > FEWEST_OF_A_COLUMN * len(objects)
        if keys and are_rows:
            return [{name: cells[key] for name, cells in value.items()} for key in keys]
    if set(keys).intersection(*objects):
        return objects
    return None


def _lists_in(value: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the lists of objects in an object, and in the objects inside it."""
    for each in value.values():
        if isinstance(each, dict):
            yield from _lists_in(each)
        elif isinstance(each, list) and each and all(isinstance(item, dict) for item in each):
            yield each


def _have_width(rows: Any, width: int) -> bool:
    """Return True for a list of lists, each of so many values."""
    are_lists = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    return are_lists and all(len(row) == width for row in rows)


def _parsed(
    lines: TextLines, texts: Iterable[tuple[int, str]], advice: str = AS_TABLE
) -> Iterator[ParsedRow]:
    """Yield the row of each line. A problem of a table's first line ends with an advice."""
    for line, text in texts:
        problem = lines.problem(line, line)
        value = None
        if problem is None:
            try:
                value = parse_json(text)
            except NotJSONError as error:
                problem = str(error)
                if _is_cut_off(text):
                    problem += f"; {CUT_OFF}"
                if not text.lstrip().startswith("{"):
                    problem = f"expected a JSON object, found {quote(text, 40)}: {error}"
                    if line == 1 and SEPARATOR.search(text):
                        problem += f"; {advice}"
        yield line, value, problem


def _only_row(row: ParsedRow, selection: Selection) -> Iterator[ParsedRow]:
    """Yield the rows of a file with one line: the line's object, or those of a list inside it."""
    line, value, problem = row
    if problem is not None or not isinstance(value, dict):
        return iter([row])
    _refuse_splits(line, value)
    required = selection.required or ()
    is_row = bool(required) and all(has_cell(value, str(name)) for name in required)
    # One list per row, as of tokens, can be selected; two lists of one size are a table.
    is_by_columns = _is_by_columns(value) and not (is_row and len(required) == 1)
    if is_row and not is_by_columns:
        return iter([row])
    rows = rows_in(value)
    if rows is not None:
        return _numbered(rows)
    if is_by_columns or (not is_row and (_is_by_labels(value) or _has_objects_by_label(value))):
        raise _by_columns(line, value)
    return iter([row])


def _whole(lines: TextLines, line: int, texts: Iterable[tuple[int, str]]) -> Any:
    """Return the JSON value of all lines, or the first line's if they are no JSON value."""
    text = "\n".join(text for _, text in texts)
    for at, problem in lines.problems.items():
        raise UnreadableError(at, problem)
    try:
        return parse_json(text)
    except NotJSONError as error:
        if _is_cut_off(text):
            problem = f"{error}; {CUT_OFF}"
        elif text.lstrip().startswith("{"):
            problem = SEVERAL_LINES
        elif "\n[" in text:
            problem = LIST_PER_LINE
        else:
            problem = str(error)
        raise UnreadableError(line, problem) from None


def _is_cut_off(text: str) -> bool:
    """Return True for a list or an object that ends without its closing bracket, or a comma."""
    closing = {"[": "]", "{": "}"}.get(text.lstrip()[:1])
    return closing is not None and not text.rstrip().endswith((closing, ","))


def _numbered(objects: Iterable[Any]) -> Iterator[ParsedRow]:
    for number, each in enumerate(objects, start=1):
        yield number, each, None


def _listed_in(value: Any, line: int) -> Iterator[ParsedRow]:
    _refuse_splits(line, value)
    rows = rows_in(value)
    if rows is not None:
        return _numbered(rows)
    if _is_by_columns(value) or _is_by_labels(value) or _has_objects_by_label(value):
        raise _by_columns(line, value)
    found = listed([quote(name) for name in value])
    raise UnreadableError(line, f"{SEVERAL_LINES}; found one object with the fields {found}")


def _refuse_splits(line: int, value: dict[str, Any]) -> None:
    """Raise an UnreadableError if an object has a list of rows for each split.

    A row is an object or a list. The error has a command that writes each split to a file.
    """
    splits = [name for name in value if name.lower() in SPLIT_VALUES]
    rows = [value[name] for name in splits]
    has_train = not SPLIT_NAMES["train"].isdisjoint(map(str.lower, splits))
    if len(splits) < 2 or not has_train or not all(map(_are_rows, rows)):
        return
    others = [quote(name, 30) for name in value if name not in splits and _are_rows(value[name])]
    found = f"one JSON object with a list of rows for each of {listed(splits)}"
    if others:
        found += f"; {listed(others)} are written, too, but not read"
    raise UnreadableError(
        line,
        f"{found}; to write each to a file:",
        conversion=AdvisedConversion("tables", files=[f"{name}.jsonl" for name in splits]),
    )


def _are_rows(value: Any) -> bool:
    """Return True for a list of objects, or of lists."""
    types = set(map(type, value)) if isinstance(value, list) else set()
    return types in ({dict}, {list})


def _is_by_columns(value: dict[str, Any]) -> bool:
    """Return True if an object looks like a table column by column.

    All its fields are lists or objects of one size, at least two.
    """
    values = list(value.values())
    sizes = {len(each) if isinstance(each, list | dict) else 0 for each in values}
    return len(values) > 1 and len(sizes) == 1 and sizes.pop() > 1


def _by_columns(line: int, value: dict[str, Any]) -> UnreadableError:
    """Return the error about a table column by column, with a command if its columns are lists."""
    if objects_by_column(value) is None:
        return UnreadableError(line, BY_COLUMNS)
    if _is_by_labels(value) or _has_objects_by_label(value):
        return UnreadableError(
            line,
            "one JSON object of lists; if its keys are labels of what they hold, to write an "
            "object for each:",
            conversion=AS_OBJECTS,
        )
    return UnreadableError(line, f"{BY_COLUMNS}, or as this command does:", conversion=AS_OBJECTS)


def objects_by_column(value: dict[str, Any]) -> Iterator[dict[str, Any]] | None:
    """Return an object for each row of an object of lists by column or by label, or None."""
    if not value or not all(isinstance(each, list) for each in value.values()):
        return None
    if _is_by_labels(value):
        return ({LABEL: label, "sequence": item} for label, own in value.items() for item in own)
    if _has_objects_by_label(value):
        items = ((label, item) for label, own in value.items() for item in own)
        return ({LABEL: label, **_with_whole_text(item)} for label, item in items)
    if _is_by_columns(value):
        return (dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True))
    return None


def _with_whole_text(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the text of its parts, or the object if it has none."""
    if "data" in item:
        return {TEXT: "".join(part[TEXT] for part in item["data"])}
    return item


def _is_by_labels(value: dict[str, Any]) -> bool:
    """Return True if all fields are lists of lists, or of texts that don't repeat as labels do."""
    for items in value.values():
        types = set(map(type, items)) if isinstance(items, list) else set()
        if len(types) != 1 or len(items) < 2 or not types <= {str, list}:
            return False
        if types == {str} and 2 * len(set(items)) < len(items):
            return False
    return len(value) > 1


def _has_objects_by_label(value: dict[str, Any]) -> bool:
    """Return True if all fields are lists of objects with one field."""
    fields = set[tuple[str, ...]]()
    for rows in value.values():
        if not isinstance(rows, list) or not rows:
            return False
        fields.update(tuple(row) if isinstance(row, dict) else () for row in rows)
    return len(fields) == 1 and len(fields.pop()) == 1 and len(value) > 1
