"""Which files a key of the config names, and on which line of which file a row stands."""

from __future__ import annotations

import glob
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from seqtrain.config.formats import names_of
from seqtrain.data.examples import Example, RowProblems
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.errors import DataError
from seqtrain.text import listed, quote


@dataclass(frozen=True)
class FileLines:
    """Lines of several files, counted through all of them.

    Attributes:
        names: of the files, for messages.
        starts: how many lines stand before each file's first.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]

    def place(self, line: int) -> str:
        """Return FILE:LINE, the line counted in its own file.

        Args:
            line: counted through all files, from 1.
        """
        name, own = self.locate(line)
        return f"{name}:{own}"

    def locate(self, line: int) -> tuple[str, int]:
        """Return the name of the file that a line stands in, and the line counted in it."""
        number = bisect_left(self.starts, line) - 1
        return self.names[number], line - self.starts[number]

    @classmethod
    def joined(cls, each: Sequence[FileLines], counts: Sequence[int]) -> FileLines:
        """Return the files of all, at least one, one after another.

        Args:
            each: at least one.
            counts: lines of each.
        """
        begins = accumulate(counts, initial=0)
        starts = tuple(
            s + before for x, before in zip(each, begins, strict=False) for s in x.starts
        )
        return cls(tuple(name for x in each for name in x.names), starts)


def files_of(key: str, named: object) -> list[str]:
    """Return the files that a key names, in its order, those of a pattern in the order of names.

    Args:
        key: such as data.train, for messages.
        named: a path, a pattern such as part-*.jsonl, or a list of these; of others none.

    Raises:
        DataError: nothing matches a pattern, or a file is named twice.
    """
    files = [file for name in names_of(named) for file in _matching(key, name)]
    known: dict[str, str] = {}
    for file in files:
        if len(files) > 1 and known.setdefault(os.path.realpath(file), file) is not file:
            raise DataError(f"{key}: names {quote(file)} twice; expected each file once")
    return files


def _matching(key: str, name: str) -> list[str]:
    """Return the files of a pattern, sorted; a path that exists is none, whatever it looks like."""
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise DataError(
            f"{key}: no file matches {quote(name)} (looked for {os.path.abspath(name)})"
        )
    return found


def named_text(named: str | Sequence[str]) -> str:
    """Return how messages and screens name a path, a pattern, or a list of these."""
    return named if isinstance(named, str) else listed(list(named))


def numbered_examples(
    path: str, options: ReadOptions, start: int = 0, *, problems: RowProblems | None = None
) -> Iterator[tuple[int, Example]]:
    """Yield a file's examples, each with its line as the store of all files has it.

    Args:
        path: of the file.
        options: how it is read.
        start: lines of the files before it.
        problems: where bad rows are noted, and left out; None: they are errors.
    """
    for row, example in enumerate(read_examples(path, options, problems=problems), start=1):
        # Of a folder's many files, a row is known by its number through all of them.
        yield start + (example.line if example.file is None else row), example
