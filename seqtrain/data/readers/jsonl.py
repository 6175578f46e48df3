"""Format jsonl: one JSON object per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import BinaryIO

from seqtrain.data.examples import BadRow, Example, RowProblems, Sequence
from seqtrain.data.readers.lines import read_lines
from seqtrain.data.readers.options import Column, ReadOptions, missing_name
from seqtrain.data.readers.rows import (
    Parsed,
    checked_label,
    is_blank_line,
    parse_rows,
    without_blank_rows,
)
from seqtrain.data.readers.sequences import sequence_from_json
from seqtrain.data.readers.strict_json import json_type, parse_json
from seqtrain.errors import DataError


def read_jsonl(
    stream: BinaryIO, options: ReadOptions, problems: RowProblems, labelled: bool
) -> Iterator[Example]:
    """Read a file of JSON objects; a label is a string, an integer, true or false.

    Args:
        stream: the file's bytes.
        options: names of the fields, and kind.
        problems: where rows are complained about.
        labelled: whether the label's field must be there.
    """
    parse_object = object_parser(options, labelled)

    def parse(text: str) -> Parsed:
        row = parse_json(text)
        if not isinstance(row, dict):
            raise BadRow(f"expected a JSON object, found {json_type(row)}")
        return parse_object(row)

    rows = without_blank_rows(read_lines(stream, problems), is_blank_line, problems)
    return parse_rows(rows, parse, problems)


def object_parser(options: ReadOptions, labelled: bool) -> Callable[[dict[str, object]], Parsed]:
    """Return what reads one row, given as an object.

    Args:
        options: names of the fields, and kind.
        labelled: whether the label's field must be there.

    Raises:
        DataError: a field is named by an index.
    """
    names = [_field_name("sequence", column, options) for column in options.sequence_columns()]
    label_column = options.label_column(labelled)
    label_name = None if label_column is None else _field_name("label", label_column, options)

    group_name = None if options.group is None else _field_name("group", options.group, options)

    known = False  # whether a row before had all fields, so that their names are right

    def parse(row: dict[str, object]) -> Parsed:
        nonlocal known
        try:
            parsed = parse_fields(row)
        except BadRow as bad:
            raise BadRow(str(bad).partition("; did you mean")[0]) if known else bad from None
        known = True
        return parsed

    def parse_fields(row: dict[str, object]) -> Parsed:
        parts = [_sequence(row, name, options.kind) for name in names]
        label = None
        if label_name is not None and (labelled or label_name.partition(".")[0] in row):
            label = _label(_field(row, label_name), label_name, labelled)
        group = None
        if group_name is not None:
            group = _label(_field(row, group_name), group_name, labelled=False)
        kept = {str(name): _field(row, str(name)) for name in options.keep} or None
        return parts[0] if len(parts) == 1 else _joined(parts), label, group, kept

    return parse


def _field_name(key: str, column: Column, options: ReadOptions) -> str:
    """Refuse an index: the fields of an object have no order."""
    if isinstance(column, int):
        raise DataError(
            f"data.{key}: {column} is an index; format {options.format} needs a field's name"
        )
    return column


def _field(row: dict[str, object], name: str, outer: str = "") -> object:
    """Return a field that must be there; `a.b` is the field b of the object a."""
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    nested = row.get(first)
    if not dot or not isinstance(nested, dict):
        raise BadRow(missing_name("field", outer + name, [outer + each for each in row]))
    return _field(nested, rest, f"{outer}{first}.")


def _sequence(row: dict[str, object], name: str, kind: str) -> Sequence:
    """Read one field as a sequence."""
    value = _field(row, name)
    try:
        return sequence_from_json(value, kind)
    except BadRow as bad:
        raise BadRow(f"{name}: {bad}") from None


def _joined(parts: list[Sequence]) -> Sequence:
    """Join texts by a space, lists of symbols end to end."""
    texts = [part for part in parts if isinstance(part, str)]
    return " ".join(texts) if texts else list(chain.from_iterable(map(list, parts)))


def _label(value: object, name: str, labelled: bool) -> str | None:
    """Read a label; integers and truth values as JSON writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return checked_label(value, labelled)
    if value is None and not labelled:
        return None
    what = "a number with a fraction" if isinstance(value, float) else json_type(value)
    raise BadRow(f"{name}: expected a string, an integer, true or false, found {what}")
