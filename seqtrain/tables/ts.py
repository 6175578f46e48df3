"""Formats ts of the time-series archives, and arff of Weka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from seqtrain.tables.blocks import (
    LABEL,
    ROWS,
    TEXT,
    BadCellError,
    Block,
    CellsByName,
    Dialect,
    Selection,
    UnreadableError,
    batched,
)
from seqtrain.tables.delimited import Form, Record, blocks_of_records
from seqtrain.tables.opening import TextLines
from seqtrain.tables.series import series_of_channels
from seqtrain.text import counted, quote

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))""", re.IGNORECASE
)
RELATIONAL = re.compile(r".*\srelational", re.IGNORECASE)
"""Declaration of an attribute whose cells have a line of numbers for each channel."""
END_OF_RELATION = re.compile(r"@end\b", re.IGNORECASE)
"""End of the attributes of a relational one: those of the time steps."""
ESCAPED = re.compile(r"\\(.)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
"""Maps each letter after a backslash to its character. Any other character means itself."""
FIELD = r"""{blank}*(?:(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(?={mark}|$)|([^{mark}]*))"""
COMMA_FIELD = re.compile(FIELD.replace("{mark}", ",").replace("{blank}", r"\s"))
TAB_FIELD = re.compile(FIELD.replace("{mark}", r"\t").replace("{blank}", " "))
"""A field in either kind of quotes, or any text up to the next separator."""


def read_ts(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the series of a .ts file as arrays (T, C) in the column `text`.

    A header of lines `@key value` comes first. Each further line is a series: its channels,
    separated by `:`. The label follows as the last field if the header declares labels. `?` and NaN
    are missing values.

    Raises:
        UnreadableError: If the header isn't valid.
    """
    lines = TextLines(stream, dialect.encoding)
    texts = (row for row in lines.numbered() if row[1].strip() and row[1][0] not in "#%")
    has_labels = _read_header(texts, selection)
    names = selection.among([TEXT, LABEL] if has_labels else [TEXT])
    num_channels = 0
    for part in batched(texts, rows):
        series, labels, problems = [], [], {}
        for row, (line, text) in enumerate(part):
            channels = text.split(":")
            labels.append(channels.pop().strip() if has_labels else None)
            num_channels = num_channels or len(channels)
            problem = lines.problem(line, line)
            if problem is None and not channels:
                problem = "expected channels, then a label, separated by ':'; found one of them"
            elif problem is None and len(channels) != num_channels:
                found = counted(len(channels), "channel")
                problem = f"{found}; expected {num_channels}, as in the first row"
            series.append(np.zeros((0, 1), np.float32))
            try:
                if problem is None:
                    series[-1] = series_of_channels(channels)
            except BadCellError as error:
                problem = str(error)
            if problem is not None:
                problems[row] = problem
        columns: CellsByName = {TEXT: series, LABEL: labels}
        chosen = {name: columns[name] for name in names}
        yield Block(chosen, np.array([line for line, _ in part], np.int64), problems)


def _read_header(lines: Iterator[tuple[int, str]], selection: Selection) -> bool:
    """Read the header of a .ts file up to the line @data, and return True if it declares labels.

    Raises:
        UnreadableError: If the header isn't valid, or lacks the labels that are selected.
    """
    line = 0
    has_labels = False
    for line, text in lines:
        key, first = [*text.lower().split(), "", ""][:2]
        if key == "@data":
            if not has_labels and LABEL in (selection.required or ()):
                raise UnreadableError(line, "no labels: expected '@classLabel true' before @data")
            return has_labels
        if key in ("@timestamps", "@targetlabel") and first == "true":
            raise UnreadableError(
                line, f"{key} true is not supported; expected plain values and classes"
            )
        if key == "@classlabel":
            has_labels = first == "true"
        elif key and not key.startswith("@"):
            raise UnreadableError(line, f"expected a header line @…, or @data; found {quote(text)}")
    if line:
        raise UnreadableError(line, "the file ends before a line @data")
    return False


def read_arff(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the rows of the data section. The attributes are the names of the columns.

    A cell of a relational attribute has a line of numbers for each channel of a series. It becomes
    a list of time steps.

    Raises:
        UnreadableError: If a row is sparse, or the header isn't followed by ``@data``.
    """
    records = _arff_records(TextLines(stream, dialect.encoding))
    return blocks_of_records(records, selection, rows, True, Form())


def _arff_records(lines: TextLines) -> Iterator[Record]:
    """Yield the names of the attributes, then the fields of each row."""
    names = list[str]()
    series = list[int]()  # places of relational attributes
    in_data, in_series = False, False
    for line, text in lines.numbered():
        if not text.strip() or text.lstrip().startswith("%"):
            continue
        problem = lines.problem(line, line)
        if in_data and text.lstrip().startswith("{"):
            raise UnreadableError(line, "a sparse row {index value, …}; expected every value")
        if in_data:
            fields = _fields(text)
            try:
                for place in [each for each in series if each < len(fields)]:
                    fields[place] = _steps_of(fields[place])
            except BadCellError as error:
                problem = problem or str(error)
            yield line, fields, problem
            continue
        attribute = ATTRIBUTE.match(text.strip())
        if END_OF_RELATION.match(text.strip()):
            in_series = False
        elif attribute is not None and not in_series:
            in_series = RELATIONAL.fullmatch(text.strip()) is not None
            if in_series:
                series.append(len(names))
            name = next(each for each in attribute.groups() if each is not None)
            names.append(_unescaped(name))
        elif text.lower().strip() == "@data":
            in_data = True
            yield line, names, None
    if not in_data and names:
        raise UnreadableError(1, "no line @data; expected rows after it")


def _fields(text: str) -> list[str]:
    """Return the fields of a row, separated by commas, or by tabs in files without commas."""
    field = COMMA_FIELD if "," in text or "\t" not in text else TAB_FIELD
    fields = []
    end = -1
    while end < len(text):
        found = field.match(text, end + 1)
        assert found is not None  # the pattern matches any text
        single, double, bare = found.groups()
        quoted = single if single is not None else double
        fields.append(bare.strip() if quoted is None else _unescaped(quoted))
        end = found.end()
    return fields


def _steps_of(channels: str) -> str:
    """Return the list of time steps of a series, as JSON, from a line of numbers for each channel.

    Steps at the end without any number are padding.

    Raises:
        BadCellError: If the lines have different lengths.
    """
    rows = [line.replace("?", "null").split(",") for line in channels.splitlines()]
    if len({*map(len, rows)}) > 1:
        raise BadCellError("the channels have different lengths; expected equal ones")
    steps = list(zip(*rows, strict=True))
    while steps and {*map(str.strip, steps[-1])} == {"null"}:
        del steps[-1]
    vectors = ",".join(f"[{','.join(step)}]" for step in steps)
    return f"[{vectors}]"


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: ESCAPES.get(found[1], found[1]), text)
