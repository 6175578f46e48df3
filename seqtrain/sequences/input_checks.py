"""Checks of the first rows of an input to predict: its format, and the order of its columns."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterator

from seqtrain.errors import parameter
from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.sequences.content import TURN
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.reading import BlockCheck
from seqtrain.sequences.schema import Schema
from seqtrain.tables.blocks import REST, TEXT, Block, UnreadableError, as_list
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.forms import AdvisedConversion
from seqtrain.tables.delimited import DELIMITERS, EXCEL_HINT
from seqtrain.tables.formats import FORMATS
from seqtrain.tables.json_lines import has_cell
from seqtrain.tables.lines import FASTTEXT_LABEL
from seqtrain.tables.opening import STDIN
from seqtrain.text import quote

LONGEST_SIGN = 100_000
"""Number of characters of the first line that can show a format."""
HEADERS = {"@relation": "arff", "@problemname": "ts"}
"""Maps the first word of a file to its format."""


def input_check(
    path: str,
    schema: Schema,
    fitted: Preprocessing,
    input_format: str | None,
    remarks: list[str],
) -> BlockCheck | None:
    """Return the check of the first rows of an input to predict, or None if it needs none.

    Two kinds of inputs need one: standard input that is read line by line without a format that the
    user gave, and tables whose columns are identified by index.

    Args:
        path: Path of the input.
        schema: Schema by which the input is read.
        fitted: Preprocessing of the model.
        input_format: Format that the user gave, or None.
        remarks: List that receives lines for the user about how the rows are read.
    """
    if path == STDIN and input_format is None and schema.format == "lines":
        return lambda block: _check_line(block, fitted)
    is_delimited = FORMATS[schema.format].columns == "delimited"
    if is_delimited and schema.sequence == REST:
        return lambda block: _check_label_before_list(block, schema, fitted)
    if is_delimited and not schema.header and isinstance(schema.label, int):
        return lambda block: _check_columns(block, schema, frozenset(fitted.labels), remarks)
    return None


def _check_line(block: Block, fitted: Preprocessing) -> None:
    """Raise UnreadableError if the first line begins a file of another format."""
    if 0 in block.problems:
        return
    line = str(as_list(block.columns[TEXT])[0])[:LONGEST_SIGN]
    sign = next(_signs(line, fitted), None)
    if sign is not None:
        found, advice = sign
        raise UnreadableError(1, f"the first line {found}; {advice}")


def _reading(format: str) -> str:
    """Return the advice to read the input in a format."""
    return f"give {parameter('input_format', format)}, or lines if it is a sequence"


def _a_sequence_per_line(fitted: Preprocessing, example: str = "") -> str:
    """Return the advice to give a sequence per line, or to say that a line is one."""
    advice = f"a sequence per line is expected{example}"
    if fitted.kind == "text":
        advice += f"; if this is one, give {parameter('input_format', 'lines')}"
    return advice


def _check_columns(
    block: Block, schema: Schema, classes: frozenset[str], remarks: list[str]
) -> None:
    """Raise UnreadableError if the columns have another order than in train, or names.

    Args:
        block: The first rows.
        schema: Schema by whose indexes they are read.
        classes: Classes of the model.
        remarks: List that receives a line if columns after that of the label are read without it.
    """
    place = schema.sequence
    at = schema.label
    if at not in block.columns:
        places = [int(each) for each in block.columns if str(each).isdecimal()]
        if isinstance(at, int) and max(places, default=0) > at:
            remarks.append(
                f"the rows have one column fewer than those of train, so column {at}, the label, "
                "is taken as missing"
            )
        return
    if not isinstance(place, int):
        return
    texts = [str(cell).strip() for cell in as_list(block.columns[place])]
    labels = [str(cell).strip() for cell in as_list(block.columns[at])]
    line = int(block.lines[0])
    start = 0 if texts[0] in classes or len(texts) < 3 else 1  # names of columns may come first
    own = texts[start:]
    others = labels[start:]
    if classes.issuperset(own) and all(others) and classes.isdisjoint(others):
        raise UnreadableError(
            line,
            f"column {place} holds labels, such as {quote(own[0])}; expected the columns of train "
            f"in their order: the label is column {at}, counted from 0",
        )
    are_words = [len(text.split()) < 2 for text in texts]
    is_name = labels[0] and labels[0] not in classes and are_words[0]
    if is_name and len(texts) > 1 and classes.issuperset(labels[1:]) and not all(are_words):
        raise UnreadableError(
            line,
            f"the first line seems to name the columns ({quote(labels[0])}, {quote(texts[0])}); "
            "train had no names; leave the line out",
            conversion=AdvisedConversion("table", {"line": 2}),
        )


def _check_label_before_list(block: Block, schema: Schema, fitted: Preprocessing) -> None:
    """Raise UnreadableError if an input lacks the column of the label, after which a list begins.

    A column without a name is no label if its cells are no classes, but symbols or numbers.

    Args:
        block: The first rows.
        schema: Schema by which they are read.
        fitted: Preprocessing of the model.
    """
    line = int(block.lines[0])
    vocabulary = fitted.vocabulary
    advice = "the list begins after the label, as in train: add it, its cells may be blank"
    if list(block.columns) == [REST] and schema.label_columns:
        raise UnreadableError(line, f"no column {quote(str(schema.label_columns[0]))}; {advice}")
    for place in schema.label_columns:
        cells = {str(cell).strip() for cell in as_list(block.columns.get(place, []))} - {""}
        if vocabulary is None:
            items = [cell for cell in cells if is_number(cell)]
        else:
            items = [cell for cell in cells if cell in vocabulary.index]
        if not schema.header and 2 * len(items) > len(cells) and cells.isdisjoint(fitted.labels):
            raise UnreadableError(
                line, f"column {place} holds {quote(min(items))}, which is no label; {advice}"
            )


def _signs(line: str, fitted: Preprocessing) -> Iterator[tuple[str, str]]:
    """Yield what shows that a line begins a file of some format, and what to do then."""
    start = line.lstrip()
    word = "".join(start.split(maxsplit=1)[:1])
    if word.lower() in HEADERS:
        yield f"begins with {word}", _reading(HEADERS[word.lower()])
    if EXCEL_HINT.fullmatch(line):
        yield f"is Excel's {line.strip()}", _reading("csv")
    if FASTTEXT_LABEL.match(start) and fitted.kind != "features":
        yield "begins with __label__", _reading("fasttext")
    if start[:1] == ">" and _begins_no_sequence(fitted):
        yield "begins a record of FASTA", _reading("fasta")
    yield from _signs_of_json(start, fitted)
    yield from _signs_of_columns(line, fitted)


def _begins_no_sequence(fitted: Preprocessing) -> bool:
    """Return True if no sequence of train can begin with the mark of a FASTA record, ">"."""
    if fitted.schema.format == "fasta":
        return True
    vocabulary = fitted.vocabulary
    tokenizer = fitted.sequence.tokenizer_name
    return tokenizer == "char" and vocabulary is not None and ">" not in vocabulary.index


def _signs_of_json(start: str, fitted: Preprocessing) -> Iterator[tuple[str, str]]:
    """Yield what shows that a line is an object of JSON, or begins a list of objects."""
    if start[:1] not in "{[" or not start:
        return
    schema = fitted.schema
    vocabulary = fitted.vocabulary
    names = _names(schema.roles(labelled=False).required)
    has_names = schema.has_columns and bool(names)
    if start.strip() in ("{", "[") and fitted.kind == "text":
        advice = _reading("jsonl") if has_names else _a_sequence_per_line(fitted)
        yield f"is {start.strip()}, as a file of JSON begins", advice
    try:
        found = parse_json(start)
    except NotJSONError:
        return
    is_list = isinstance(found, list)
    if isinstance(found, list):
        found = next(iter(found), None)
    if not isinstance(found, dict):
        return
    lacking = [name for name in names if not has_cell(found, name)]
    if has_names and not lacking:
        yield f"is an object of JSON with the field {quote(names[0])}", _reading("jsonl")
    if is_list and vocabulary is not None and TURN.strip() in vocabulary.index:
        return  # a chat, as those of train
    is_new = vocabulary is not None and "{" not in vocabulary.index  # train had no objects
    if FORMATS[schema.format].columns != "named" and not is_new:
        return
    if has_names and not is_list:
        yield "is an object of JSON", _renaming("field", lacking[0], "jsonl", schema)
        return
    field = max(found, key=lambda name: len(str(found[name])), default="")
    path = shlex.quote(f"{'.[]' if is_list else ''}.{json.dumps(field)}")
    output = "-r" if isinstance(found.get(field), str) else "-c"
    shown = "a list of objects" if is_list else "an object"
    yield f"is {shown} of JSON", _a_sequence_per_line(fitted, f", as jq {output} {path} writes it")


def _renaming(what: str, name: str, format: str, schema: Schema) -> str:
    """Return the advice to read a table in a format if it has a column that it lacks."""
    key = schema.keys_of_columns.get(name)
    return f"it lacks the {what} {quote(name)} ({key}): name one so and {_reading(format)}"


def _signs_of_columns(line: str, fitted: Preprocessing) -> Iterator[tuple[str, str]]:
    """Yield what shows that a line is a header, or a row with a label."""
    schema = fitted.schema
    sequence = _names(schema.sequence_columns)
    labels = _names(schema.label_columns)
    text = line.replace("\r", " ")  # the csv module refuses it outside of quotes
    width = schema.width or 0
    for mark in DELIMITERS.values():
        format = "tsv" if mark == "\t" else "csv"
        advice = _reading(format)
        fields = [field.strip() for field in next(csv.reader([text], delimiter=mark), [])]
        known = [name for name in fields if name in sequence]
        if len(fields) > 1:
            known += [name for name in fields if name in labels]
        if known:
            lacking = [name for name in sequence if name not in fields]
            if lacking:
                advice = _renaming("column", lacking[0], format, schema)
            yield f"names the column {quote(known[0])} of a table", advice
        if len(fields) > 1 and schema.is_wide and not any(map(is_number, fields)):
            yield "holds no numbers, as names of columns", advice
        classes = fitted.labels
        if schema.format == "txt" and mark == "\t" and fields[1:] and fields[0] in classes:
            yield f"begins with the label {quote(fields[0])} and a tab", _reading("txt")
        if schema.header or not schema.has_columns or not isinstance(schema.label, int):
            continue
        if schema.label < len(fields) > 1 and fields[schema.label] in classes:
            yield f"has the label {quote(fields[schema.label])} in column {schema.label}", advice
        if width > 2 and width - 1 <= len(fields) <= width:
            rows = "rows of train" if len(fields) == width else "rows of train without the label"
            yield f"has {len(fields)} fields, as {rows}", advice
    vocabulary = fitted.vocabulary
    if schema.has_columns and "\t" in line.strip() and vocabulary and "\t" not in vocabulary.index:
        yield "has a tab, as a row of a table", _reading("tsv")


def _names(columns: tuple[int | str, ...]) -> list[str]:
    """Return the names among names and indexes of columns."""
    return [column for column in columns if isinstance(column, str)]
