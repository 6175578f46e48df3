"""Format arff of Weka: tables with a header that lists the attributes (columns)."""

import re
from collections.abc import Iterator

from seqtrain.sequences.examples import Example, Numbered
from seqtrain.sequences.readers.delimited import read_records
from seqtrain.sequences.readers.row_source import RowSource
from seqtrain.sequences.readers.step_cells import Rows

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))""", re.IGNORECASE
)
ESCAPED = re.compile(r"\\(.)")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
"""Maps each letter after a backslash to its character. Any other character means itself."""
COMMA_FIELD, TAB_FIELD = (
    re.compile(
        rf"""{blank}*(?:(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*(?={mark}|$)|([^{mark}]*))"""
    )
    for mark, blank in ((",", r"\s"), ("\t", " "))
)
"""A field in either kind of quotes, or any text up to the next separator."""


def read_arff(source: RowSource) -> Iterator[Example | Rows]:
    """Yield the rows of the data section. The attributes are the names of the columns."""
    return read_records(source, _records(source), has_header=True)


def _records(source: RowSource) -> Numbered:
    """Yield numbered records: the names of the attributes first, then the fields of each row.

    Raises:
        DataError: If a row is sparse, or the header isn't followed by ``@data``.
    """
    names, in_data = list[str](), False
    for line, text in source.lines():
        if not text.strip() or text.lstrip().startswith("%"):
            continue
        if in_data:
            if text.lstrip().startswith("{"):
                source.problems.fail(line, "a sparse row {index value, …}; expected every value")
            yield line, _fields(text)
            continue
        attribute = ATTRIBUTE.match(text.strip())
        if attribute is not None:
            name = next(each for each in attribute.groups() if each is not None)
            names.append(_unescaped(name))
        elif text.lower().strip() == "@data":
            in_data = True
            yield line, names
    if not in_data and names:
        source.problems.fail(1, "no line @data; expected rows after it")


def _fields(text: str) -> list[str]:
    """Return the fields of a row, separated by commas, or by tabs in files without commas."""
    field = COMMA_FIELD if "," in text or "\t" not in text else TAB_FIELD
    fields, end = list[str](), -1
    while end < len(text):
        found = field.match(text, end + 1)
        assert found is not None  # the pattern matches any text
        single, double, bare = found.groups()
        quoted = single if single is not None else double
        fields.append(bare.strip() if quoted is None else _unescaped(quoted))
        end = found.end()
    return fields


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: ESCAPES.get(found[1], found[1]), text)
