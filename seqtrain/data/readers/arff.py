"""Format arff: the archives' tables with a header of attributes."""

import csv
import re
from collections.abc import Iterator

from seqtrain.data.examples import Example, Numbered
from seqtrain.data.readers.delimited import read_records
from seqtrain.data.readers.row_source import RowSource
from seqtrain.data.readers.step_cells import Rows

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(\S+))""", re.IGNORECASE
)
ESCAPED = re.compile(r"\\(.)")


def read_arff(source: RowSource) -> Iterator[Example | Rows]:
    """Read the rows of the data section, with the attributes as names of the columns."""
    return read_records(source, _records(source), has_header=True)


def _records(source: RowSource) -> Numbered:
    """Yield the names of the attributes, then the fields of each row."""
    names, in_data = list[str](), False
    for line, text in source.lines():
        if not text.strip() or text.lstrip().startswith("%"):
            continue
        if in_data:
            if text.lstrip().startswith("{"):
                source.problems.fail(line, "a sparse row {index value, …}; expected every value")
            yield line, _fields(source, line, text)
            continue
        attribute = ATTRIBUTE.match(text.strip())
        if attribute is not None:
            name = next(each for each in attribute.groups() if each is not None)
            names.append(ESCAPED.sub(r"\1", name))
        elif text.lower().strip() == "@data":
            in_data = True
            yield line, names
    if not in_data and names:
        source.problems.fail(1, "no line @data; expected rows after it")


def _fields(source: RowSource, line: int, text: str) -> list[str]:
    """Return the fields of a row, separated by commas, or by tabs in files without commas."""
    first = text.lstrip()[:1]
    quote = first if first in "'\"" and first else ("'" if "'" in text else '"')
    delimiter = "," if "," in text or "\t" not in text else "\t"
    reader = csv.reader(
        [text], delimiter=delimiter, quotechar=quote, escapechar="\\", skipinitialspace=True
    )
    try:
        return [field.strip() for field in next(reader)]
    except csv.Error as error:
        source.problems.fail(line, str(error))
