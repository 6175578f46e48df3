"""Conversions of lines of text. Each function gets lines without their ends, and yields lines."""

from collections.abc import Iterable, Iterator
from itertools import islice


def table(lines: Iterable[str], *, line: int) -> Iterator[str]:
    """Yield the lines from one on, counted from 1, such as that with the names of columns."""
    return islice(lines, line - 1, None)
