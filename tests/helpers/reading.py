"""Reads the rows of a file that can be used; damages files."""

import random
from collections.abc import Iterator

from seqtrain.data.examples import Example, ReadOptions, RowProblems
from seqtrain.data.readers import read_rows
from seqtrain.text import display_name


def read_examples(path: str, options: ReadOptions, *, labelled: bool = True) -> Iterator[Example]:
    """Yield the rows that can be used, as `read_rows` reads them.

    Raises:
        DataError: also, at the end, for all bad rows together: the first five with their lines, and
            the total; where the options drop them, only if no row is left.
    """
    problems, rows = RowProblems(display_name(path)), 0
    for example in read_rows(path, options, problems, labelled=labelled):
        if example.problem is None:
            rows += 1
            yield example
        else:
            problems.add(example.line, example.problem, example.file)
    if options.bad_rows == "error" or not rows:
        problems.raise_if_any()


def damaged_copies(content: bytes) -> Iterator[bytes]:
    """Yield the content 300 times with other bytes in one, two or eight places."""
    draw = random.Random(0)
    for _ in range(300):
        copy = bytearray(content)
        for _ in range(draw.choice([1, 2, 8])):
            copy[draw.randrange(len(copy))] = draw.randrange(256)
        yield bytes(copy)


def only_label(row: Example) -> str | None:
    """Return the label of a single-label example, or None."""
    if row.labels is None:
        return None
    (label,) = row.labels
    return label
