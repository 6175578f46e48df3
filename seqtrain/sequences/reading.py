"""Reading of inputs: blocks of cells become sequences with labels, groups, weights and places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.content import ContentReader
from seqtrain.sequences.examples import Sequences, chunked, joined
from seqtrain.sequences.grouping import (
    FeatureColumns,
    StepTable,
    labels_of,
    note,
    weights_of,
)
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.schema import Column, Schema, keeps_all
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    Block,
    Cells,
    Coded,
    Name,
    Source,
    UnreadableError,
    as_list,
    located,
    missing_name,
)
from seqtrain.tables.cells import BadCellError, name_of, text_of
from seqtrain.tables.formats import FORMATS
from seqtrain.tables.opening import is_pipe

CHUNK_ROWS = 4096
"""Largest number of sequences that are encoded or predicted together."""


class SequenceReader:
    """Reader of the sequences of an input.

    Args:
        source: The input.
        schema: Form and meaning of its columns.
        labels: Reader of the labels.
        keep: Columns whose cells are copied to predictions.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        labels: LabelReader,
        keep: Sequence[Column] = (),
    ) -> None:
        self.source, self.schema, self.labels, self.keep = source, schema, labels, keep
        self.content = ContentReader(schema.kind, schema.decimal, named=schema.has_columns)
        self.static = FeatureColumns(schema.static, schema.decimal)
        is_whole = schema.whole_files and not labels.labelled
        self._has_files = source.has_files or (is_whole and schema.kind != "features")

    def read(self) -> Iterator[Sequences]:
        """Yield the sequences in order. One that can't be used has a problem.

        If rows are time steps, the whole input is in memory, except for pipes. From a pipe, the
        sequence of an id is yielded as soon as another id follows.

        Raises:
            DataError: If reading can't continue. If every row must have a label, also if there are
                no rows, or the format has no labels.
        """
        name, labelled = self.source.name, self.labels.labelled
        form = FORMATS.get(self.schema.format)
        if labelled and form is not None and not form.labelled:
            raise DataError(f"format {form.name} holds no labels; it is for prediction only")
        self.schema.check_format(name, self.keep)
        blocks = self._blocks()
        parts = map(self._rows, blocks) if self.schema.steps is None else self._steps(blocks)
        is_empty = True
        for part in parts:
            is_empty = is_empty and not len(part)
            if len(part):
                yield part
        if labelled and is_empty:
            raise DataError(f"{name}: no rows; expected one labelled sequence per row")

    def chunks(self, rows: int | None = None) -> Iterator[Sequences]:
        """Yield the sequences of a file in parts of about `rows`, or CHUNK_ROWS.

        If reading fails, the sequences before the failure are yielded first.
        """
        rows = rows or CHUNK_ROWS
        waiting, count = list[Sequences](), 0
        try:
            for part in self.read():
                for piece in chunked(part, rows):
                    waiting.append(piece)
                    count += len(piece)
                    if count >= rows:
                        yield joined(waiting)
                        waiting, count = [], 0
        except DataError:
            if waiting:
                yield joined(waiting)
            raise
        if waiting:
            yield joined(waiting)

    def _blocks(self) -> Iterator[Block]:
        selection = self.schema.selection(labelled=self.labels.labelled, keep=self.keep)
        for block in self.source.blocks(selection):
            if keeps_all(self.keep):
                self._check_columns(block)
            yield block

    def _check_columns(self, block: Block) -> None:
        """Raise DataError if a block of all columns lacks one that the schema names."""
        needed = self.schema.selection(labelled=self.labels.labelled).required or ()
        missing = [each for each in needed if each not in block.columns]
        if missing and len(block.problems) < len(block):
            present = list(block.columns)
            raise DataError(
                *(f"{self.source.name}: {missing_name('column', x, present)}" for x in missing)
            )

    def _rows(self, block: Block) -> Sequences:
        """Return the sequences of a block whose rows are sequences."""
        schema, problems = self.schema, dict(block.problems)
        content = self.content.read(self._sequence_columns(block), len(block), problems)
        codes, wrong = labels_of(block, schema, self.labels)
        for row, reason in wrong.items():
            problems.setdefault(row, reason)
        found = Sequences(
            content=content,
            lines=block.lines,
            labels=Coded(codes, self.labels.combinations),
            problems=problems,
        )
        if schema.group in block.columns:
            found.groups = _names(block.columns[schema.group], problems)
        if schema.static is not None:
            self.static.clear()
            self.static.add(block.columns, problems)
            found.static = self.static.features(len(block))
        if schema.weight in block.columns and self.labels.labelled:
            found.weights, bad = weights_of(block.columns[schema.weight])
            note(problems, str(schema.weight), bad)
        if self.keep:
            names = block.columns if keeps_all(self.keep) else self.keep
            found.kept = {str(name): as_list(block.columns[name]) for name in names}
        if self._has_files and block.file is not None:
            found.files = [block.file] * len(block)
        return found

    def _sequence_columns(self, block: Block) -> dict[Name, Cells]:
        schema = self.schema
        if not schema.is_wide:
            return {name: block.columns[name] for name in schema.content_columns}
        others = {*schema.label_columns, schema.group, schema.weight, FILE, FOLDER, ""}
        found = {name: cells for name, cells in block.columns.items() if name not in others}
        if not found:
            place = f"{block.file or self.source.name}:{block.lines[0]}"
            raise DataError(f"{place}: no column but the label's; expected a sequence")
        return found

    def _steps(self, blocks: Iterable[Block]) -> Iterator[Sequences]:
        """Yield the sequences of a table with a row per time step."""
        keep = None if keeps_all(self.keep) else list(self.keep)
        table = StepTable(self.schema, self.labels, keep, has_files=self._has_files)
        if not is_pipe(getattr(self.source, "path", "")):
            for block in blocks:
                self._add(table, block)
            yield table.sequences()
            return
        last = None
        for block in blocks:
            for part in _runs(block, self.schema.id):
                name = _id_of(part, self.schema.id)
                if last is not None and name not in (None, last):
                    yield table.sequences(streamed=True)
                    table.clear()
                last = name or last
                self._add(table, part)
        if table.size:
            yield table.sequences(streamed=True)

    def _add(self, table: StepTable, block: Block) -> None:
        """Append the rows of a block to a table.

        Raises:
            DataError: If only some dates of the order have a time zone.
        """
        try:
            table.add(block)
        except UnreadableError as error:
            problems = [f"{self.schema.order}: {problem}" for problem in error.problems]
            name = block.file if self._has_files and block.file else self.source.name
            raise located(name, UnreadableError(error.line, *problems)) from None


def _runs(block: Block, id: Column | None) -> Iterator[Block]:
    """Yield the runs of rows of a block that have the same id."""
    assert id is not None
    ids = as_list(block.columns[id])
    start = 0
    for row in range(1, len(block) + 1):
        if row == len(block) or ids[row] != ids[start]:
            yield block.at(np.arange(start, row))
            start = row


def _id_of(block: Block, id: Column | None) -> str | None:
    """Return the id of the first row of a block, or None if it is blank or can't be read."""
    assert id is not None
    try:
        return text_of(as_list(block.columns[id])[0]).strip() or None
    except BadCellError:
        return None


def _names(cells: Cells, problems: dict[int, str]) -> list[str]:
    """Return the name of the group in each cell, or "" for a blank one."""
    found = list[str]()
    for row, cell in enumerate(as_list(cells)):
        try:
            found.append(name_of(text_of(cell)))
        except BadCellError as error:
            problems.setdefault(row, f"the group: {error}")
            found.append("")
    return found
