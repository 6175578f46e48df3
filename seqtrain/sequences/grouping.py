"""Sequences from tables with a row per time step: the rows of each id, in their order.

All columns of a table are held as codes and numbers, and one sort groups them. N rows, B ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.examples import Sequences, Steps
from seqtrain.sequences.labels import BLANK_LABEL, LabelReader
from seqtrain.sequences.schema import Column, Schema, number_columns, token_columns
from seqtrain.sequences.store import Ints
from seqtrain.sequences.windows import cut
from seqtrain.tables.blocks import Block, Cells, Coded, as_list
from seqtrain.tables.cells import CodedColumn, name_of, numbers_of
from seqtrain.tables.time_column import TimeColumn
from seqtrain.text import quote

MISSING_TOKEN = "<unk>"
"""Token in place of a blank cell."""


def token_of(text: str) -> str:
    """Return the token of a cell of text."""
    return name_of(text) or MISSING_TOKEN


class GrowingColumn:
    """A column that grows block by block, as codes into its distinct names.

    Args:
        name_of: Function that converts the text of a cell to a name.
    """

    def __init__(self, name_of: Callable[[str], str]) -> None:
        self._column = CodedColumn(name_of)
        self._parts = list[npt.NDArray[np.int32]]()

    @property
    def names(self) -> list[str]:
        """The distinct names, by code."""
        return self._column.known.names

    def code(self, name: str) -> int:
        """Return the code of a name, or -1 if no cell had this name."""
        return self._column.known.code(name)

    def add(self, cells: Cells) -> dict[int, str]:
        """Append cells, and return the reason for each that can't be read, by its index."""
        codes, problems = self._column.codes_of(cells)
        self._parts.append(codes)
        return problems

    def coded(self) -> Coded:
        """Return the cells since the last call of `clear`."""
        codes = np.concatenate([np.zeros(0, np.int32), *self._parts])
        return Coded(codes, self.names)

    def clear(self) -> None:
        """Forget the cells, but not the distinct names."""
        self._parts.clear()


class FeatureColumns:
    """Token columns and number columns that grow block by block.

    Args:
        kinds: Kinds of the columns, as in data.steps or data.static. Columns of kind order are left
            out.
        decimal: Decimal mark of numbers in texts.
    """

    def __init__(self, kinds: dict[str, Any] | None, decimal: str) -> None:
        self.decimal = decimal
        self.tokens = {name: GrowingColumn(token_of) for name in token_columns(kinds)}
        own = [name for name in number_columns(kinds) if (kinds or {})[name] != "order"]
        self.numbers: dict[str, list[Any]] = {name: [] for name in own}

    def add(self, columns: dict[Column, Cells], problems: dict[int, str]) -> None:
        """Append the cells of a block, and add its bad rows to `problems`."""
        for name, column in self.tokens.items():
            note(problems, name, column.add(columns[name]))
        for name, parts in self.numbers.items():
            numbers, wrong = numbers_of(columns[name], self.decimal)
            parts.append(numbers.astype(np.float32))
            note(problems, name, wrong)

    def features(self, rows: int) -> Steps:
        """Return the rows as steps.

        Args:
            rows: Number of rows.
        """
        tokens = tuple(column.coded() for column in self.tokens.values())
        return Steps(tokens, as_table([self.number(name) for name in self.numbers], rows))

    def number(self, name: str) -> npt.NDArray[np.float32]:
        """Return the numbers of a column so far, (N,)."""
        empty = np.zeros(0, np.float32)
        found: npt.NDArray[np.float32] = np.concatenate([empty, *self.numbers[name]])
        return found

    def clear(self) -> None:
        """Forget all rows, but not the distinct tokens."""
        for column in self.tokens.values():
            column.clear()
        for parts in self.numbers.values():
            parts.clear()


class StepTable:
    """The columns of a table with a row per time step, in the order of the file.

    A row that can't be read makes its sequence one that can't be used. If it has no id, it belongs
    to the sequence of the row before it, or at the start to that of the next row.

    Args:
        schema: Meaning of the columns.
        labels: Reader of the labels.
        keep: Columns that are copied to predictions, or None for all columns of a block.
        has_files: True if the table is in several files.
    """

    def __init__(
        self,
        schema: Schema,
        labels: LabelReader,
        keep: list[Column] | None,
        *,
        has_files: bool = False,
    ) -> None:
        self.schema, self.labels, self.keep = schema, labels, keep
        self.has_files = has_files
        self.ids = GrowingColumn(str.strip)
        self.groups = GrowingColumn(name_of)
        self.steps = FeatureColumns(schema.steps, schema.decimal)
        self.static = FeatureColumns(schema.static, schema.decimal)
        self.order_type = schema.order_type
        self.first_lines = dict[str, int]()
        self.clear()

    def clear(self) -> None:
        """Forget all rows. The distinct values and the type of the times stay."""
        self.size = 0
        self.problems = dict[int, str]()
        self.unreadable = list[int]()
        self._lines, self._codes = list[Ints](), list[Any]()
        self._weights = list[Any]()
        self._files = list[tuple[int, str]]()
        self._kept: dict[Column, list[Any]] = {name: [] for name in self.keep or ()}
        self.times = TimeColumn(self.order_type, self.schema.decimal)
        for column in (self.ids, self.groups, self.steps, self.static):
            column.clear()

    def add(self, block: Block) -> None:
        """Append the rows of a block."""
        schema, columns = self.schema, block.columns
        problems = dict(block.problems)
        self.unreadable += [self.size + row for row in block.problems]
        assert schema.id is not None
        note(problems, schema.id, self.ids.add(columns[schema.id]))
        codes, wrong = labels_of(block, schema, self.labels)
        if self.labels.labelled:
            for row, reason in wrong.items():
                problems.setdefault(row, reason)
        self._codes.append(codes)
        if schema.order is not None:
            note(problems, schema.order, self.times.add(columns[schema.order], block.lines))
        if schema.group is not None:
            note(problems, "the group", self.groups.add(columns[schema.group]))
        if schema.weight in columns and self.labels.labelled:
            weights, bad = weights_of(columns[schema.weight])
            note(problems, schema.weight, bad)
            self._weights.append(weights)
        self.steps.add(columns, problems)
        self.static.add(columns, problems)
        if self.keep is None and not self._kept:
            self._kept = {name: [] for name in columns}
        for name, kept in self._kept.items():
            kept += as_list(columns[name]) if name in columns else [None] * len(block)
        is_next = not self._files or self._files[-1][1] != block.file
        if self.has_files and block.file is not None and is_next:
            self._files.append((self.size, block.file))
        for row, reason in problems.items():
            self.problems[self.size + row] = reason
        self._lines.append(block.lines)
        self.size += len(block)

    def sequences(self, *, streamed: bool = False) -> Sequences:
        """Return the rows of each id, in the order in which the ids first occur.

        Args:
            streamed: True if earlier ids were returned before. An id that comes back is bad.
        """
        ids, names = self._ids()
        lines = np.concatenate([np.zeros(0, np.int64), *self._lines])
        problems = _Problems(ids, names, lines)
        for row, reason in sorted(self.problems.items()):
            problems.add(row, reason)
        labels = self._labels(problems)
        times = None if self.schema.order is None else self.times.times()
        order = sorted_rows(ids, times)
        offsets = np.searchsorted(ids[order], np.arange(len(names) + 1))
        static = self._static(problems)
        weights = self._weight(problems)
        steps = self._steps(order, offsets, times, problems)
        if streamed:
            self._refuse_returns(names, problems)
        kept_rows = order[offsets[:-1]]
        found = Sequences(
            content=steps,
            lines=problems.first_lines.copy(),
            offsets=offsets,
            labels=labels,
            ids=names,
            static=static,
            weights=weights,
            groups=self._groups(problems),
            kept=self._kept_cells(kept_rows),
            files=self._file_of(problems.first_rows),
        )
        for index, (row, reason) in problems.found.items():
            found.problems[index] = reason
            found.lines[index] = lines[row]
            if found.files is not None:
                found.files[index] = self._file_of(np.array([row]))[0]  # type: ignore[index]
        return found if self.schema.window is None else self._windows(found, order, lines)

    def _windows(self, found: Sequences, order: Ints, lines: Ints) -> Sequences:
        """Return the windows of sequences. A sequence that can't be used stays one sequence.

        Args:
            found: The sequences.
            order: The rows, sorted by sequence and time.
            lines: Line of each row, in the order of the file.
        """
        window, labelled = self.schema.window, self.labels.labelled
        assert window is not None
        assert found.offsets is not None
        codes = self.row_labels()[order]
        windows = cut(found.offsets, codes, window, labelled=labelled)
        is_first = np.append(True, windows.owners[1:] != windows.owners[:-1])[: len(windows.owners)]
        is_bad = np.isin(windows.owners, list(found.problems))
        windows = windows.at(np.flatnonzero(is_first | ~is_bad))
        owners, rows = windows.owners.tolist(), order[windows.starts]
        labels = windows.labels(codes, str(window.get("label", "last")))
        problems = {at: found.problems[owner] for at, owner in enumerate(owners)
                    if owner in found.problems}  # fmt: skip
        first_lines = lines[rows]
        for at in problems:
            first_lines[at] = found.lines[owners[at]]
        if labelled:
            for at in np.flatnonzero(labels < 0).tolist():
                problems.setdefault(at, BLANK_LABEL)
        ids = found.ids or []
        return Sequences(
            content=found.content[windows.steps()],
            lines=first_lines,
            offsets=windows.offsets,
            labels=Coded(labels, found.labels.values),
            problems=problems,
            ids=[ids[owner] for owner in owners],
            static=None if found.static is None else found.static[windows.owners],
            weights=None if found.weights is None else found.weights[windows.owners],
            # The windows of an id are held out together.
            groups=[(found.groups or ids)[owner] for owner in owners],
            kept=self._kept_cells(rows),
            files=self._file_of(rows),
            last_lines=lines[order[windows.ends - 1]],
        )

    def _kept_cells(self, rows: Ints) -> dict[str, Any] | None:
        """Return the cells to copy of some rows, or None if no cells are copied."""
        listed = rows.tolist()
        return {str(x): [kept[row] for row in listed] for x, kept in self._kept.items()} or None

    def row_labels(self) -> npt.NDArray[np.int32]:
        """Return the code of the labels of each row, (N,)."""
        found: npt.NDArray[np.int32] = np.concatenate(self._codes)
        return found

    def _ids(self) -> tuple[Ints, list[str]]:
        """Return the index of each row's sequence, and the ids, by their first occurrence."""
        codes = self.ids.coded().codes.copy()
        blank = self.ids.code("")
        without_id = set(np.flatnonzero(codes == blank).tolist())
        unknown = [row for row in sorted(self.unreadable) if row in without_id]
        for row in without_id.difference(unknown):
            self.problems.setdefault(row, f"{self.schema.id}: the id is blank")
        start = 0
        while start < len(codes) and start in unknown:
            start += 1
        for row in unknown:
            near = row - 1 if row > start else start
            if near < len(codes):
                codes[row] = codes[near]
        found, first, ids = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(first)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        return ranks[ids], [self.ids.names[code] for code in found[order].tolist()]

    def _labels(self, problems: _Problems) -> Coded:
        """Return the label of each id: that of its first row with a label."""
        codes, names = self.row_labels(), self.labels.combinations
        labels = np.full(len(problems.names), -1, np.int32)
        has_label = np.array([bool(each) for each in names] + [False])[codes]
        # Of equal indices, the last one counts: the first row, and a row with a label before it.
        for chosen in (codes >= 0, has_label):
            rows = np.flatnonzero(chosen)[::-1]
            labels[problems.ids[rows]] = codes[rows]
        if self.labels.labelled and self.schema.window is None:
            filled = np.where(has_label, codes, labels[problems.ids])
            texts = [", ".join(each) for each in names]
            problems.add_unequal(filled, "label ", texts)
        if self.labels.labelled:
            for row in problems.first_rows[labels < 0].tolist():
                problems.add(row, BLANK_LABEL)
        return Coded(labels, names)

    def _steps(
        self, order: Ints, offsets: Ints, times: npt.NDArray[Any] | None, problems: _Problems
    ) -> Steps:
        """Return the steps of all ids, sorted."""
        numbers = list[npt.NDArray[np.float32]]()
        for name in number_columns(self.schema.steps):
            if name in self.steps.numbers:
                numbers.append(self.steps.number(name)[order])
                continue
            assert times is not None  # the schema has an order if a column grows by it
            growth, too_large = self.times.growth(times[order], offsets[:-1])
            numbers.append(growth)
            for step, reason in too_large.items():
                problems.add(int(order[step]), f"{name}: {reason}")
        tokens = (column.coded().at(order) for column in self.steps.tokens.values())
        return Steps(tuple(tokens), as_table(numbers, self.size))

    def _static(self, problems: _Problems) -> Steps | None:
        """Return the row features of each id. They must be equal in all of its rows."""
        if self.schema.static is None:
            return None
        tokens, numbers = list[Coded](), list[npt.NDArray[np.float32]]()
        for name, column in self.static.tokens.items():
            coded = column.coded()
            problems.add_unequal(coded.codes, f"{name}: ", coded.values)
            tokens.append(coded.at(problems.first_rows))
        for name in self.static.numbers:
            values = self.static.number(name)
            problems.add_unequal(values, f"{name}: ")
            numbers.append(values[problems.first_rows])
        return Steps(tuple(tokens), as_table(numbers, len(problems.names)))

    def _weight(self, problems: _Problems) -> npt.NDArray[np.float32] | None:
        if not self._weights:
            return None
        weights = np.concatenate(self._weights)
        problems.add_unequal(weights, f"{self.schema.weight}: ")
        found: npt.NDArray[np.float32] = weights[problems.first_rows]
        return found

    def _groups(self, problems: _Problems) -> list[str] | None:
        if self.schema.group is None:
            return None
        coded = self.groups.coded()
        return [coded.values[code] for code in coded.codes[problems.first_rows].tolist()]

    def _file_of(self, rows: Ints) -> list[str] | None:
        if not self._files:
            return None
        starts = [start for start, _ in self._files]
        at = np.searchsorted(starts, rows, side="right") - 1
        return [self._files[index][1] for index in at.tolist()]

    def _refuse_returns(self, names: list[str], problems: _Problems) -> None:
        for index, name in enumerate(names):
            row = int(problems.first_rows[index])
            line = int(problems.lines[row])
            before = self.first_lines.setdefault(name, line)
            if before != line:
                problems.found[index] = (
                    row,
                    f"id {quote(name)} comes back, after line {before}; sort the rows by "
                    f"{self.schema.id}, or give a file",
                )


@dataclass
class _Problems:
    """The first bad row of each sequence.

    Attributes:
        ids: Index of each row's sequence, in the order of the file.
        names: Id of each sequence.
        lines: Line of each row.
        found: Maps the index of each bad sequence to its first bad row, and the reason.
    """

    ids: Ints
    names: list[str]
    lines: Ints

    def __post_init__(self) -> None:
        self.found = dict[int, tuple[int, str]]()
        self.first_rows = np.zeros(len(self.names), np.int64)
        self.first_rows[self.ids[::-1]] = np.arange(len(self.ids))[::-1]
        self.first_lines = self.lines[self.first_rows]

    def add(self, row: int, reason: str) -> None:
        """Add the problem of a row. Of two problems of one row, the first one stays."""
        index = int(self.ids[row])
        if index not in self.found or row < self.found[index][0]:
            self.found[index] = (row, reason)

    def add_unequal(
        self, values: npt.NDArray[Any], what: str, names: list[str] | None = None
    ) -> None:
        """Add a problem for each id whose rows don't all have the value of its first row.

        Args:
            values: Value of each row.
            what: Name of the column with a separator, for the message.
            names: Text of each value if values are codes, or None if they are numbers.
        """
        first = values[self.first_rows][self.ids]
        differs = values != first
        if names is None:
            differs &= ~(np.isnan(values) & np.isnan(first))
        for row in np.flatnonzero(differs).tolist():
            here, before = values[row], first[row]
            if names is not None:
                here, before = names[here], names[before]
            else:
                here, before = f"{here:g}", f"{before:g}"
            index = self.ids[row]
            found = f"id {quote(self.names[index])} has {what}{quote(here)} here"
            line = self.lines[self.first_rows[index]]
            self.add(row, f"{found}, but {quote(before)} on line {line}")


def sorted_rows(ids: Ints, times: npt.NDArray[Any] | None) -> Ints:
    """Return the rows sorted by id, then by time, then by their place in the file."""
    if times is None:
        return np.argsort(ids, kind="stable")
    if times.dtype == object:
        times = np.unique(times, return_inverse=True)[1]
    return np.lexsort((times, ids))


def weights_of(cells: Cells) -> tuple[npt.NDArray[np.float32], dict[int, str]]:
    """Return the weight in each cell, (N,), and the reason for each that can't be used."""
    numbers, problems = numbers_of(cells)
    for row in np.flatnonzero(~(numbers >= 0)).tolist():
        problems.setdefault(row, "expected a weight of 0 or more")
    return numbers.astype(np.float32), problems


def labels_of(
    block: Block, schema: Schema, labels: LabelReader
) -> tuple[npt.NDArray[np.int32], dict[int, str]]:
    """Return the code of the labels of each row of a block, and the reasons of bad cells."""
    if schema.one_hot is not None:
        if not labels.labelled:
            return np.full(len(block), -1, np.int32), {}
        return labels.read_marks({name: block.columns[name] for name in schema.one_hot})
    name = schema.label_column
    if name not in block.columns:
        return labels.read([None] * len(block))
    cells = block.columns[name]
    if schema.format == "fasttext" and schema.label_separator is None:
        cells = [[each for each in names if each.strip()] or None for names in as_list(cells)]
    return labels.read(cells)


def note(problems: dict[int, str], name: Column, found: dict[int, str]) -> None:
    """Add the problems of a column to those of the rows. The first problem of a row stays."""
    for row, reason in found.items():
        problems.setdefault(row, f"{name}: {reason}")


def as_table(columns: list[Any], rows: int) -> npt.NDArray[np.float32]:
    """Return columns of numbers as a table, (rows, columns)."""
    table: npt.NDArray[np.float32] = np.array(columns, np.float32).reshape(len(columns), rows).T
    return table
