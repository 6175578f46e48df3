"""Conversions of JSON. Each function gets the values of a file, and yields an object per row.

A file has a value on each line, or a single one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from seqtrain.errors import ConfigError
from seqtrain.tables.blocks import UnreadableError, missing_name
from seqtrain.tables.json_lines import json_type, objects_by_column, rows_in
from seqtrain.text import quote

JsonObject: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[JsonObject, Any], Iterable[JsonObject]]
"""Returns the new objects for an object and the value of a field of it."""
TEXTS_OF_PARTS = ("content", "value", "text")
"""Names of the field with the text of a turn."""
NEW_LABEL = "label"
"""Name of the new field with the label."""
CERTAIN = 0.5
"""Smallest share of a class that is a label of a row."""


def fields(values: Iterable[Any], *, column: Sequence[str]) -> Iterator[JsonObject]:
    """Yield objects with the inner values of a field as fields of their own.

    Args:
        values: The values.
        column: The field. Of a list of objects, it remains a list, of objects without others in
            them. The values of another list are new fields, such as place_0 and place_1.
    """
    (name,) = column

    def change(row: JsonObject, value: Any) -> Iterator[JsonObject]:
        if isinstance(value, list) and any(isinstance(each, dict) for each in value):
            yield {**row, name: [_flat(each) for each in value]}
        elif isinstance(value, list | dict) and value:
            yield _without(row, name) | _flat(value, f"_{name}")
        else:
            yield row

    return _changed(values, name, change)


def label(values: Iterable[Any], *, column: Sequence[str]) -> Iterator[JsonObject]:
    """Yield objects with their label as a field.

    Args:
        values: The values.
        column: The field that tells the label: an object with a share of each class, of which those
            of at least `CERTAIN` are labels; a chat, whose last turn is the label; or annotations
            of a task of Label Studio, of which the first one has the label.
    """
    (name,) = column

    def change(row: JsonObject, value: Any) -> Iterator[JsonObject]:
        if isinstance(value, dict):
            labels = [each for each, share in value.items() if share >= CERTAIN]
            yield {**_without(row, name), NEW_LABEL: "|".join(labels)}
        elif value and "result" in value[0]:
            yield {**row["data"], **_choices(value[0]["result"])}
        elif value:
            last = value[-1]
            (text, *_) = [last[field] for field in TEXTS_OF_PARTS if field in last]
            yield {**row, name: value[:-1], NEW_LABEL: text.strip()}

    return _changed(values, name, change)


def rows(values: Iterable[Any], *, column: Sequence[str] = ()) -> Iterator[JsonObject]:
    """Yield an object for each row.

    Args:
        values: The values: a list of rows, one object with the rows by column or by label, or the
            rows of a file of another program.
        column: A list of each object, of which each item becomes a row.
    """
    if not column:
        yield from _rows_of_values(values)
        return
    (name,) = column

    def change(row: JsonObject, value: Any) -> Iterator[JsonObject]:
        for item in value or ():
            yield {**row, name: item}

    yield from _changed(values, name, change)


def steps(values: Iterable[Any], *, column: Sequence[str]) -> Iterator[JsonObject]:
    """Yield objects whose list of channels is a list of time steps.

    Args:
        values: The values.
        column: The field: a list for each channel, or a list of such lists, as strokes are. Those
            are joined, and each step has 1 as its last number if a stroke begins, or 0.
    """
    (name,) = column

    def change(row: JsonObject, value: Any) -> Iterator[JsonObject]:
        parts = value or ()
        has_parts = any(isinstance(each, list) for part in parts for each in part)
        if has_parts:
            found = [
                [*step, int(at == 0)]
                for part in parts
                for at, step in enumerate(zip(*part, strict=True))
            ]
        else:
            found = [list(step) for step in zip(*parts, strict=True)]
        yield {**row, name: found}

    return _changed(values, name, change)


def turns(
    values: Iterable[Any], *, column: Sequence[str], field: Sequence[str]
) -> Iterator[JsonObject]:
    """Yield objects with a list of turns of a chat.

    Args:
        values: The values.
        column: The list of objects.
        field: Fields of these objects that hold texts, or lists of texts. Each becomes a turn. If
            there are several, the name of the field is the role.
    """
    (name,) = column

    def turns_of(item: JsonObject) -> Iterator[JsonObject]:
        others = {key: value for key, value in item.items() if key not in field}
        for role in field:
            text = item.get(role)
            if isinstance(text, list):
                text = " ".join(text)
            if text and len(field) > 1:
                yield {**others, "role": role, "text": text}
            elif text:
                yield {**others, "text": text}

    def change(row: JsonObject, value: Any) -> Iterator[JsonObject]:
        yield {**row, name: [turn for item in value or () for turn in turns_of(item)]}

    return _changed(values, name, change)


def objects_in(values: Iterable[Any], column: str | None = None) -> Iterator[Any]:
    """Yield the objects of a file: one per value, or those in the only value.

    An object that has the field `column` itself is a row.
    """
    values = iter(values)
    first = list(islice(values, 2))
    found: Any = chain(first, values)
    if len(first) == 1:
        (value,) = first
        if isinstance(value, dict) and column not in value:
            found = rows_in(value) or first
        elif isinstance(value, list):
            found = value
    yield from found


def _rows_of_values(values: Iterable[Any]) -> Iterator[JsonObject]:
    """Yield the objects of a file, or those for rows that are written in another way."""
    values = iter(values)
    first = list(islice(values, 1))
    if first and isinstance(first[0], dict):
        found = objects_by_column(first[0])
        if found is not None:
            yield from found
            return
    yield from named_rows(objects_in(chain(first, values)))


def named_rows(rows: Iterable[Any]) -> Iterator[JsonObject]:
    """Yield objects for rows that are objects or lists.

    The first list has the names if it holds different texts, none of which comes again in its
    column. Without names, they are column_0, column_1 and so on.
    """
    rows = list(rows)
    lists = [row for row in rows if isinstance(row, list)]
    if not lists:
        yield from rows
        return
    names, *below = lists
    columns = zip(names, *below, strict=False)
    if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
        has_names = False
    else:
        has_names = len(below) > 0 and all(name not in cells for name, *cells in columns)
    if not has_names:
        names, below = [f"column_{at}" for at in range(len(names))], lists
    for row in below:
        yield dict(zip(names, row, strict=False))


def _changed(values: Iterable[Any], column: str, change: Change) -> Iterator[JsonObject]:
    """Yield the new objects for each object.

    Args:
        values: The values of the file.
        column: Field whose value decides.
        change: Returns the new objects for an object and this value, None if it lacks the field.

    Raises:
        ConfigError: If no object has the field.
        UnreadableError: If a row isn't an object.
    """
    is_found = False
    names: JsonObject = {}
    for row in objects_in(values, column):
        if not isinstance(row, dict):
            raise UnreadableError(None, f"expected a JSON object, found {json_type(row)}")
        is_found |= column in row
        if not is_found:
            names.update(row)
        try:
            found = list(change(row, row.get(column)))
        except (AttributeError, LookupError, TypeError, ValueError):
            shown = quote(json.dumps(row.get(column)), 60)
            raise UnreadableError(None, f"--column: can't convert {shown}") from None
        yield from found
    if not is_found:
        raise ConfigError(f"--column: {missing_name('field', column, names)}")


def _without(row: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in row.items() if key != name}


def _flat(value: Any, name: str = "") -> JsonObject:
    """Return the values inside of objects and lists by their names, such as place_x and place_0."""
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = {str(at): each for at, each in enumerate(value)}.items()
    else:
        return {name[1:]: value}
    found: JsonObject = {}
    for key, each in inner:
        found |= _flat(each, f"{name}_{key}")
    return found


def _choices(results: Iterable[JsonObject]) -> dict[str, str]:
    """Return the choices in an annotation of Label Studio by the name of the question."""
    found = {}
    for result in results:
        if "choices" in result["value"]:
            found[result["from_name"]] = "|".join(result["value"]["choices"])
    return found


def as_json(rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield a line with each object. Numbers that aren't finite are null."""
    for row in rows:
        try:
            text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
        except ValueError:
            value = json.loads(json.dumps(row, default=_plain), parse_constant=_null)
            text = json.dumps(value, ensure_ascii=False)
        yield f"{text}\n".encode()


def _plain(value: Any) -> Any:
    """Return a value that JSON has for one of another package, such as an array of numpy."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _null(name: str) -> None:
    """Return None for NaN and infinity."""
