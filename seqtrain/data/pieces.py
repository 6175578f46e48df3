"""Files read and encoded one by one, by this process or by several at once.

A file's ids count its own tokens, labels and groups, in the order in which they first come. Joined
in the order of the files, they are those of one file that holds all: whoever read which.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.encoding import EncodingReport
from seqtrain.data.examples import RowProblems
from seqtrain.data.growing import GrowingArray, blocks
from seqtrain.data.joining import StoreJoiner
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.data.sources import FileLines
from seqtrain.data.store import SequenceStore
from seqtrain.data.vocabulary import GrowingIndex, provisional_index
from seqtrain.errors import DataError, RunError, SeqtrainError
from seqtrain.processes.child import start_child
from seqtrain.processes.place import cores
from seqtrain.text import display_name

WORTH_A_PROCESS = 2**24
"""Bytes of data files from which on each further process to read them pays."""
LOOK = 1.0
"""Seconds between two looks at whether the process that is worked for still lives."""

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


def read_pieces(reader: PieceReader, files: Files, readers: int | str) -> Iterator[Piece]:
    """Read files, and yield them in their order.

    Args:
        reader: how they are encoded.
        files: at least one.
        readers: how many processes read; auto: one per core, where the files are large.

    Raises:
        DataError: rows that can't be used, of the first file that has any.
        RunError: a process ended.
    """
    number = _processes(files, readers)
    if number == 1:
        for path, options in files:
            yield reader.read(path, options)
        return
    with ExitStack() as held:
        children = [
            held.enter_context(_Child(reader, files[first::number])) for first in range(number)
        ]
        for place, (path, _) in enumerate(files):
            yield children[place % number].receive(path)


def _processes(files: Files, readers: int | str) -> int:
    """Return how many processes read."""
    if sys.platform == "win32" or len(files) == 1:
        return 1
    if isinstance(readers, int):
        return min(readers, len(files))
    size = sum(os.path.getsize(path) for path, _ in files if os.path.isfile(path))
    return max(1, min(cores(), len(files), size // WORTH_A_PROCESS))


class _Child:
    """A process that reads every so many files, in order."""

    def __init__(self, reader: PieceReader, files: Files) -> None:
        self._process, self._connection = start_child(__name__)
        rules = replace(reader.rules)  # without what it remembers
        with suppress(OSError):  # one that is gone is noticed by `receive`
            self._connection.send((replace(reader, rules=rules), files))

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def receive(self, path: str) -> Piece:
        """Return the next file's rows: of large ones the steps are in a temporary file.

        Raises:
            SeqtrainError: that the process met.
            RunError: it ended.
        """
        try:
            found = self._connection.recv()
            if isinstance(found, SeqtrainError):
                raise found
            files, forms, *known = found
            arrays = {name: self._array(*form) for name, form in forms.items()}
        except (EOFError, OSError):
            code = self._process.wait()
            raise RunError(
                f"{display_name(path)}: the process that read it ended with code {code}; "
                "data.readers: 1 reads one file at a time"
            ) from None
        return Piece(replace(SequenceStore.from_arrays(arrays), files=files), *known)

    def _array(self, dtype: str, shape: tuple[int, ...], number: int) -> Any:
        whole = GrowingArray(dtype, shape)
        for _ in range(number):
            whole.append(np.frombuffer(self._connection.recv_bytes(), dtype=dtype))
        return whole.build()


def serve(descriptor: int) -> None:
    """Read files for another process, and end with it.

    Args:
        descriptor: of the connection.
    """
    connection = Connection(descriptor)
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        reader, files = connection.recv()
        for path, options in files:
            try:
                piece = reader.read(path, options)
            except SeqtrainError as error:
                connection.send(error)
                return
            except MemoryError:
                connection.send(RunError(f"{display_name(path)}: memory ran out as it was read"))
                return
            _send(connection, piece)


def _end_with(parent: int) -> None:
    """End this process soon after the one that it works for."""
    while os.getppid() == parent:
        threading.Event().wait(LOOK)
    os._exit(1)


def _send(connection: Connection, piece: Piece) -> None:
    """Send what was read, its arrays in parts."""
    arrays = piece.store.arrays()
    forms = {
        name: (str(array.dtype), array.shape[1:], sum(1 for _ in blocks(array)))
        for name, array in arrays.items()
    }
    known = (piece.report, piece.tokens, piece.labels, piece.groups)
    connection.send((piece.store.files, forms, *known))
    for array in arrays.values():
        for block in blocks(array):
            connection.send_bytes(block.tobytes())


def read_encoded(
    rules: Preprocessing, files: Files, readers: int | str = 1
) -> tuple[SequenceStore, EncodingReport]:
    """Read files as a fitted preprocessing does, one after another.

    Args:
        rules: fitted.
        files: at least one.
        readers: how many processes read, or auto.

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

    pieces = read_pieces(PieceReader(rules, fitted=True), files, readers)
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
