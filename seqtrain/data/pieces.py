"""Files read and encoded one by one.

A file's ids count its own tokens, labels and groups, in the order in which they first come. Joined
in the order of the files, they are those of one file that holds all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import RowProblems
from seqtrain.data.joining import StoreJoiner
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.data.sources import FileLines
from seqtrain.data.store import SequenceStore
from seqtrain.data.vocabulary import GrowingIndex, provisional_index
from seqtrain.errors import DataError
from seqtrain.text import display_name

Files = Sequence[tuple[str, ReadOptions]]
"""Paths, each with how it is read."""


@dataclass(frozen=True)
class Piece:
    """What was read of one file.

    Attributes:
        store: its rows; groups by number, and where nothing is fitted ids and labels too.
        report: what encoding did to them.
        tokens, labels, groups: by number.
    """

    store: SequenceStore
    report: EncodingReport
    tokens: list[str]
    labels: list[str]
    groups: list[str]


@dataclass(frozen=True)
class PieceReader:
    """How files are read and encoded.

    Attributes:
        rules: the preprocessing.
        fitted: whether it knows its ids; else they are given as tokens and labels come.
        labelled: every row must have its label; else labels and groups are left out.
    """

    rules: Preprocessing
    fitted: bool = False
    labelled: bool = True

    def read(self, path: str, options: ReadOptions) -> Piece:
        """Read and encode a file.

        Raises:
            DataError: rows that can't be used, by line.
        """
        problems = RowProblems(display_name(path))
        examples = read_examples(path, options, labelled=self.labelled, problems=problems)
        if not self.labelled:
            examples = (example._replace(label=None) for example in examples)
        tokens, labels, groups = provisional_index(), GrowingIndex(), GrowingIndex()
        encode = self.rules.encode if self.fitted else self.rules.encoder(tokens, labels).encode
        store, report = encode(examples, path, groups=groups)
        report.unreadable, report.unreadable_rows = problems.count, problems.shown
        store = replace(store, files=FileLines((display_name(path),), (0,)))
        return Piece(store, report, list(tokens), list(labels), list(groups))


def read_pieces(reader: PieceReader, files: Files) -> Iterator[Piece]:
    """Read files, and yield them in their order.

    Raises:
        DataError: rows that can't be used, of the first file that has any.
    """
    for path, options in files:
        yield reader.read(path, options)


def read_encoded(rules: Preprocessing, files: Files) -> tuple[SequenceStore, EncodingReport]:
    """Read files as a fitted preprocessing does, one after another.

    Args:
        rules: fitted.
        files: at least one.

    Returns:
        The store of all rows, and what was done to them.

    Raises:
        DataError: rows that can't be used, by line.
    """
    groups = GrowingIndex()

    def numbered(piece: Piece) -> SequenceStore:
        if piece.store.groups is None:
            return piece.store
        known = np.append(numbers_in(piece.groups, groups), -1)
        return replace(piece.store, groups=known[piece.store.groups])

    pieces = read_pieces(PieceReader(rules, fitted=True), files)
    return joined_pieces((numbered(piece), piece.report) for piece in pieces)


def numbers_in(names: Sequence[str], index: GrowingIndex) -> npt.NDArray[np.int64]:
    """Return the number of each name in an index, which grows by those that it lacks."""
    return np.fromiter(map(index.__getitem__, names), dtype=np.int64, count=len(names))


def joined_pieces(
    pieces: Iterable[tuple[SequenceStore, EncodingReport]],
) -> tuple[SequenceStore, EncodingReport]:
    """Return the rows of files, at least one, as one store, and what was done to all of them."""
    whole, reports = StoreJoiner(grouped=True), []
    first: SequenceStore | None = None
    for store, report in pieces:
        reports.append(report)
        if first is None:
            first = store
            continue
        if len(reports) == 2:
            whole.add(first)
        _check_width(first, store)
        whole.add(store)
    assert first is not None
    return (
        (first, reports[0])
        if len(reports) == 1
        else (whole.build(), EncodingReport.joined(reports))
    )


def _check_width(first: SequenceStore, other: SequenceStore) -> None:
    """Refuse files of feature vectors of different widths."""
    if first.values.shape[1:] != other.values.shape[1:]:
        found, expected = other.values.shape[1], first.values.shape[1]
        raise DataError(
            f"{other.place(0)}: {found} channels; expected {expected}, as {first.place(0)} has"
        )
