"""First lines of text files, which tell their form."""

import re
from collections.abc import Iterator
from dataclasses import replace

from seqtrain.tables.blocks import TEXT, Block, Dialect, Selection, as_list
from seqtrain.tables.cells import is_number
from seqtrain.tables.opening import guess_encoding
from seqtrain.tables.sources import open_source

FIRST_LINES = 4096
"""Number of first lines that tell the form of a text file without columns."""
PROFILED_ROWS = 1024
"""Number of rows of a block."""
DATE_OR_TIME = re.compile("[0-9]+[-.:/][0-9]+[-.:/0-9TZ ]*(?:UTC|GMT|[AaPp][Mm])?")
LINES = Dialect("lines")
"""Form of a file whose lines are read as they are."""


def first_blocks(path: str, dialect: Dialect, rows: int = PROFILED_ROWS) -> Iterator[Block]:
    """Yield the first rows of a file in blocks of `rows`, about `FIRST_LINES` in all."""
    count = 0
    for block in open_source(path, dialect).blocks(Selection(), rows):
        yield block
        count += len(block)
        if count >= FIRST_LINES:
            return


def first_lines(path: str, dialect: Dialect = LINES) -> list[str]:
    """Return the first lines of a text file without line ends, about `FIRST_LINES`.

    Lines that can't be decoded are read in the likeliest encoding, for messages print them.
    """
    dialect = replace(dialect, format="lines")
    blocks = list(first_blocks(path, dialect))
    if any(block.problems for block in blocks):
        encoding = guess_encoding(path) or dialect.encoding
        blocks = list(first_blocks(path, replace(dialect, encoding=encoding)))
    return [line for block in blocks for line in as_list(block.columns[TEXT])]


def filled_lines(path: str, dialect: Dialect = LINES) -> list[str]:
    """Return those of the first lines of a text file that aren't blank."""
    return [line for line in first_lines(path, dialect) if line.strip()]


def holds_numbers(path: str) -> bool:
    """Return True if lines of a text file have fields, of which two and half are numbers or times.

    A number and a text are a label and its example.
    """
    lines = filled_lines(path)
    fields = re.split("[,;\t|]", lines[-2]) if len(lines) > 2 else []
    numbers = [field for field in fields if is_number_or_time(field.strip())]
    return len(numbers) > 1 and 2 * len(numbers) >= len(fields)


def is_number_or_time(field: str) -> bool:
    """Return True for a field of a number, a date or a time of day."""
    return is_number(field) or DATE_OR_TIME.fullmatch(field) is not None


def begin_with_labels(path: str, labels: str) -> bool:
    """Return True if lines of a text file begin with most labels in another file, and a tab."""
    known = {line.strip() for line in first_lines(labels)} - {""}
    lines = first_lines(path)
    first = {line.partition("\t")[0].strip() for line in lines if "\t" in line}
    return 2 * len(known & first) > len(known)
