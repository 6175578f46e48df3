"""Loading of inputs: their sequences are read, encoded, and put into one store."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from seqtrain.sequences.columns.tables import TableEncoder
from seqtrain.sequences.encoder import Encoder, EncodingReport
from seqtrain.sequences.examples import (
    MOST_DROPPED,
    SHOWN_ROWS,
    RowProblems,
    Sequences,
    joined,
    numbered,
)
from seqtrain.sequences.inputs import Input
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.reading import SequenceReader
from seqtrain.sequences.store import SequenceStore, stacked
from seqtrain.tables.blocks import FILE
from seqtrain.tables.cells import name_of
from seqtrain.tables.join import join_notices
from seqtrain.text import quote


@dataclass
class Loader:
    """Loading of inputs into one store.

    Attributes:
        encoder: Encoder of the sequences.
        labels: Reader of the labels, or None to read none.
        ids: Maps each id of a step table to the line of its first row in the store. The loader adds
            ids.
        learned: Ids of train. The report counts the sequences with one of these ids.
        lenient: True to leave out all rows that can't be used. False to raise an error for them,
            unless the schema drops bad rows.
    """

    encoder: Encoder
    labels: LabelReader | None
    ids: dict[str, int] = field(default_factory=dict)
    learned: Container[str] = ()
    lenient: bool = False
    _files: list[tuple[str, int]] = field(default_factory=list, init=False)
    """Name of each input so far, with the number of lines before it."""
    _divided: set[int] = field(default_factory=set, init=False)
    """Line of the first row of each id that is in two inputs."""

    def load(self, inputs: Sequence[Input]) -> tuple[SequenceStore, EncodingReport]:
        """Read at least one input and encode its rows.

        Returns:
            The encoded rows, and counts of them.

        Raises:
            DataError: If rows can't be used.
        """
        report, stores, end = EncodingReport(), list[SequenceStore](), 0
        for source in inputs:
            self._files.append((source.name, end))
            end = max(end, self._add(source, stores, report))
        report.remarks += [line for source in inputs for line in source.source.notices()]
        report.remarks += join_notices([source.source for source in inputs])
        whole = stacked(stores, tuple(self._files))
        if self._divided:
            left = whole.__getitems__(np.flatnonzero(~np.isin(whole.lines, list(self._divided))))
            report.unreadable += len(whole) - len(left)
            report.rows = len(left)
            whole = left
        return whole, report

    def _add(self, source: Input, stores: list[SequenceStore], report: EncodingReport) -> int:
        """Encode the rows of an input, and return the last line of the input in the store.

        The lines of rows that are left out count, too. Their ids are known by them.

        Args:
            source: The input, whose name is the last one of `_files`.
            stores: The encoded rows, part by part. The method adds to them.
            report: Counts, which the method increases.
        """
        name, end = self._files[-1]
        problems, left_out, refused = RowProblems(name), RowProblems(name), RowProblems(name)
        rows_before = report.rows
        drops = source.schema.bad_rows == "drop"
        has_unreadable = False
        for lines, part in numbered(self._parts(source), end):
            end = max(end, int(lines.max(initial=0)))
            if part.ids is not None:
                ids = list(map(name_of, part.ids.cells()))
                self._refuse_divided(part, ids)
                report.learned_ids += sum(each in self.learned for each in ids)
            unreadable = set(part.problems)
            has_unreadable |= bool(unreadable)
            stores.append(self.encoder.encode(part, lines, report, name=name))
            for row, reason in sorted(part.problems.items()):
                kept = problems
                if drops and row in unreadable:
                    kept = left_out
                elif self.lenient:
                    kept = refused
                file, _, line = part.place(row, name).rpartition(":")
                kept.add(int(line), reason, file)
            report.leave_out(part.labels, part.problems)
        advice = []
        read = report.rows - rows_before
        if has_unreadable and problems.count <= MOST_DROPPED * (problems.count + read):
            advice = ["to leave out rows that can't be read, train with data.bad_rows: drop"]
        problems.raise_if_any(advice)
        is_recording = source.schema.id == FILE  # the file is one sequence
        if report.rows == rows_before and not (is_recording and drops):
            left_out.raise_if_any()
            refused.raise_if_any()
        room = max(0, SHOWN_ROWS - report.unreadable)
        report.refused += refused.shown[:room]
        report.shown += [*left_out.shown, *refused.shown][:room]
        report.num_refused += refused.count
        report.unreadable += left_out.count + refused.count
        return end

    def _parts(self, source: Input) -> Iterator[Sequences]:
        """Yield the sequences of an input. The first part has a series with a step, if any has."""
        waiting = []
        column = self.encoder.sequence
        for part in SequenceReader(source, self.labels).read():
            waiting.append(part)
            has_width = not isinstance(column, TableEncoder) or column.width is not None
            if has_width or any(map(len, part.content)):
                yield joined(waiting)
                waiting = []
        if waiting:
            yield joined(waiting)

    def _refuse_divided(self, part: Sequences, ids: list[str]) -> None:
        """Add a problem for each id that is also in an earlier input."""
        start = self._files[-1][1]
        for row, name in enumerate(ids):
            if name:
                line = self.ids.setdefault(name, start + int(part.lines[row]))
            else:
                line = start + 1
            if line <= start:
                self._divided.add(line)
                other = [file for file, before in self._files if before < line][-1]
                part.problems.setdefault(
                    row, f"id {quote(name)} is in {other} too; put all its rows into one file"
                )


def load_inputs(
    rules: Preprocessing,
    inputs: Sequence[Input],
    *,
    learned: Container[str] = (),
    lenient: bool = False,
    groups: dict[str, int] | None = None,
) -> tuple[SequenceStore, EncodingReport]:
    """Read labelled inputs and encode their rows by a fitted preprocessing.

    Args:
        rules: The preprocessing.
        inputs: The inputs, at least one.
        learned: Ids of train. The report counts the sequences with one of these ids.
        lenient: True to leave out all rows that can't be used.
        groups: Maps the name of each group to its number, or None. New groups are added.

    Returns:
        The encoded rows, and counts of them.

    Raises:
        DataError: If rows can't be used.
    """
    encoder = Encoder(rules, groups=groups)
    labels = inputs[0].labels(rules.label_set)
    store, report = Loader(encoder, labels, learned=learned, lenient=lenient).load(inputs)
    report.remarks += labels.notices()
    return encoder.finalize(store), report
