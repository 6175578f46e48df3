"""Reading of inputs: blocks of cells become sequences with labels, groups, weights and places."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.content import read_content
from seqtrain.sequences.examples import Sequences, Steps, joined
from seqtrain.sequences.grouping import IdColumns, grouped
from seqtrain.sequences.inputs import Input
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.schema import Column, keeps_all, number_columns, token_columns
from seqtrain.tables.blocks import (
    FILE,
    FOLDER,
    TEXT,
    Block,
    Cells,
    CellsByName,
    Coded,
    Ints,
    Reasons,
    UnreadableError,
    as_list,
    located,
    missing_columns,
)
from seqtrain.tables.cells import (
    CodedColumn,
    items_of,
    name_of,
    note_problems,
    numbers_of,
    without_unit,
    without_values,
)
from seqtrain.tables.formats import FORMATS
from seqtrain.tables.json_lines import json_type
from seqtrain.tables.opening import is_pipe
from seqtrain.tables.series import without_items
from seqtrain.tables.time_column import TimeColumn
from seqtrain.text import listed, quote

BlockCheck = Callable[[Block], None]
"""Function that raises UnreadableError if rows aren't what the model reads."""
MISSING_TOKEN = "<unk>"
"""Token in place of a blank cell."""


class SequenceReader:
    """Reader of the sequences of an input.

    Args:
        given: The input.
        labels: Reader of the labels, or None to read neither labels nor weights.
        keep: Columns whose cells are copied to predictions.
        check: Check of the first block, or None.
    """

    def __init__(
        self,
        given: Input,
        labels: LabelReader | None = None,
        keep: Sequence[Column] = (),
        check: BlockCheck | None = None,
    ) -> None:
        self.source, self.schema, self.labels, self.keep = given.source, given.schema, labels, keep
        self._check = check
        schema = given.schema
        self._format = FORMATS[schema.format]
        self.roles = schema.roles(labelled=labels is not None, keep=keep)
        if schema.steps is not None:
            self._steps = FeatureReader(schema.steps, schema.decimal)
        if schema.id is not None:
            self._ids = IdColumns(schema.id_columns)
            self._times = self._time_columns()
        if schema.static is not None:
            self._static = FeatureReader(schema.static, schema.decimal)
        if schema.group is not None:
            self._groups = CodedColumn()
        self._files = list[str]()
        self._missing = dict[Column, frozenset[str]]()  # names in data.na_values, by column
        is_whole = schema.whole_files and labels is None
        self._has_files = self.source.has_files or (is_whole and schema.kind != "features")

    def read(self) -> Iterator[Sequences]:
        """Yield the sequences in order. One that can't be used has a problem.

        If rows are time steps, the whole input is in memory, except for pipes. From a pipe, the
        sequence of an id is yielded as soon as another id follows.

        Raises:
            DataError: If reading can't continue. If every row must have a label, also if there are
                no rows, or the format has no labels.
        """
        name = self.source.name
        if self.labels is not None and not self._format.labelled:
            format = self.schema.format
            raise DataError(f"format {format} holds no labels; it is for prediction only")
        self.schema.check_format(name, self.keep)
        blocks = self._checked(self.source.blocks(self.roles.selection))
        is_empty = True
        parts: Iterable[Sequences] = map(self._rows, blocks)
        if self.schema.id is not None:
            waits = not is_pipe(self.source.path)
            if waits:
                parts = self._grouped(parts)
            else:
                parts = self._arriving_ids(blocks)
        for part in parts:
            if len(part):
                is_empty = False
                yield part
        if self.labels is not None and is_empty:
            raise DataError(f"{name}: no rows; expected one labelled sequence per row")

    def _checked(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks after the check of the first one.

        Raises:
            DataError: If it isn't what the model reads.
        """
        for block in blocks:
            try:
                if self._check is not None:
                    self._check(block)
            except UnreadableError as error:
                raise located(block.file or self.source.name, error) from None
            self._check = None
            yield block

    def _grouped(self, rows: Iterable[Sequences]) -> Iterator[Sequences]:
        """Yield the sequences of all rows, if there are any."""
        parts = list(rows)
        if parts:
            yield grouped(joined(parts), self._times, self.schema)

    def _arriving_ids(self, blocks: Iterator[Block]) -> Iterator[Sequences]:
        """Yield the sequence of each id as soon as a row of another id follows."""
        first_lines = dict[str, int]()
        waiting = list[Sequences]()
        last = -1

        def finished() -> Iterator[Sequences]:
            for found in self._grouped(waiting):
                assert found.ids is not None
                own = dict[str, int]()  # an id has several windows
                for row, name in enumerate(found.ids.cells()):
                    own.setdefault(name, int(found.lines[row]))
                    before = first_lines.get(name)
                    if before is not None and name:
                        found.problems[row] = (
                            f"id {quote(name)} comes back, after line {before}; write the input "
                            "to a file and run seqtrain predict FILE, or sort the rows by "
                            f"{listed(list(map(str, self.schema.id_columns)))}"
                        )
                for name, line in own.items():
                    first_lines.setdefault(name, line)
                yield found
            self._times = self._time_columns()
            waiting.clear()

        for block in blocks:
            named = {name: block.columns[name] for name in self.schema.id_columns}
            ids, is_blank = self._ids.read(replace(block, columns=self._plain_cells(named)), {})
            starts = np.flatnonzero(np.diff(ids.codes, prepend=ids.codes[:1])).tolist()
            for start, end in zip([0, *starts], [*starts, len(block)], strict=True):
                id = int(ids.codes[start])
                is_named = not is_blank[start]
                if is_named and id != last:
                    yield from finished()
                last = id if is_named else last
                waiting.append(self._rows(block.at(np.arange(start, end))))
        yield from finished()

    def _plain_cells(self, columns: Mapping[Any, Cells]) -> dict[Any, Cells]:
        """Return columns without units, in which the cells of data.na_values are missing."""
        found = dict(columns)
        for name in found if self.schema.units else ():
            unit = (self.schema.units or {}).get(str(name))
            if unit is not None:
                found[name] = without_unit(found[name], unit)
        for name in found if self.schema.na_values else ():
            if name not in self._missing:
                self._missing[name] = self.schema.missing_names(name)
            if self._missing[name]:
                found[name] = without_values(found[name], self._missing[name])
                if self.schema.kind == "features" and name in self.roles.content:
                    found[name] = self._without_items(found[name], self._missing[name])
        return found

    def _without_items(self, cells: Cells, missing: frozenset[str]) -> Cells:
        """Return cells in which the items of lists that have some names are missing."""
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufb":
            return cells
        return [without_items(cell, missing, self.schema.decimal) for cell in as_list(cells)]

    def _rows(self, given: Block) -> Sequences:
        """Return the rows of a block. Each is a sequence, or a step of the sequence of its id."""
        block = replace(given, columns=self._plain_cells(given.columns))
        schema, columns, rows = self.schema, block.columns, len(block)
        problems = dict(block.problems)
        if self.keep and keeps_all(self.keep):
            self._check_columns(block)
        ids = None
        offsets = None
        if schema.id is not None:
            ids = self._ids.read(block, problems)[0]
            for name, times in zip(schema.order_columns, self._times, strict=True):
                note_problems(problems, name, self._add_times(name, times, block))
        if schema.steps is not None and ids is not None:
            content: Any = self._steps.read(columns, problems, rows)
        elif schema.steps is not None:
            content, offsets = self._objects(columns[self.roles.content[0]], problems)
        else:
            keys = (*schema.id_columns, *schema.order_columns)
            cells = {name: columns[name] for name in self.roles.content if name not in keys}
            content = read_content(
                cells or self._others(block),
                problems,
                kind=schema.kind,
                decimal=schema.decimal,
                separator=schema.symbol_separator,
                named=self._format.columns != "none",
                are_turns=schema.id is not None,
            )
        found = Sequences(content, block.lines, None, offsets, problems, ids=ids)
        if self.labels is not None:
            self._add_labels(self.labels, block, found)
        if schema.group in columns:
            found.groups = coded(self._groups, "the group", columns[schema.group], problems)
        if schema.static is not None:
            found.static = self._static.read(columns, problems, rows)
        if self.keep:
            names = columns if keeps_all(self.keep) else self.keep
            found.kept = {str(name): as_list(given.columns[name]) for name in names}
        if self._has_files and block.file is not None:
            if block.file not in self._files[-1:]:
                self._files.append(block.file)
            found.files = Coded(np.full(rows, len(self._files) - 1, np.int32), self._files)
        return found

    def _objects(self, cells: Cells, problems: Reasons) -> tuple[Steps, Ints]:
        """Return the time steps of cells that are lists of objects, and their offsets.

        Args:
            cells: The cells.
            problems: Maps the index of each row that can't be used to the reason. The method adds
                rows whose cells it can't read.
        """
        names = list(self.schema.steps or ())
        steps = []
        offsets = [0]
        owners = []
        for row, cell in enumerate(as_list(cells)):
            items = [] if row in problems or cell in (None, "") else items_of(cell)
            odd = "no list" if items is None else _odd_object(items, names)
            if odd is not None:
                problems[row] = (
                    f"{self.schema.sequence}: found {odd}; expected a list of objects with the "
                    f"fields {listed(names)}"
                )
            elif items is not None:
                steps += items
                owners += [row] * len(items)
            offsets.append(len(steps))
        columns: dict[Column, Cells] = {name: [step.get(name) for step in steps] for name in names}
        columns = self._plain_cells(columns)
        wrong = Reasons()
        found = self._steps.read(columns, wrong, len(steps))
        for step, reason in sorted(wrong.items()):
            row = owners[step]
            problems.setdefault(row, f"step {step - offsets[row] + 1}: {reason}")
        return found, np.array(offsets)

    def _check_columns(self, block: Block) -> None:
        """Raise DataError if a block of all columns lacks one that the schema names."""
        present = list(block.columns)
        needed = [name for name in self.roles.required if name not in present]
        if needed and len(block.problems) < len(block):
            missing = missing_columns(needed, present, self.schema.keys_of_columns)
            raise DataError(*(f"{self.source.name}: {each}" for each in missing))

    def _others(self, block: Block) -> CellsByName:
        """Return the columns without another meaning, which are the time steps of series."""
        others = {*self.schema.columns_beside_series, FILE, FOLDER}
        found = {name: cells for name, cells in block.columns.items() if name not in others}
        if not found and len(block.problems) == len(block):  # files that weren't read
            return {TEXT: [None] * len(block)}
        if not found:
            raise DataError(
                f"{block.file or self.source.name}:{block.lines[0]}: no column but the label's; "
                "expected a sequence"
            )
        return found

    def _add_labels(self, labels: LabelReader, block: Block, rows: Sequences) -> None:
        """Read the labels and weights of rows, and add their problems."""
        schema, columns, names = self.schema, block.columns, self.roles.labels
        if schema.one_hot is not None:
            codes, wrong = labels.read_marks({name: columns[name] for name in names})
        else:
            cells = columns.get(names[0], [None] * len(block))
            if schema.format == "fasttext" and labels.separator is None:
                lists = as_list(cells)
                cells = [[each for each in own if each.strip()] or None for own in lists]
            codes, wrong = labels.read(cells)
        for row, reason in wrong.items():
            rows.problems.setdefault(row, reason)
        rows.labels = Coded(codes, labels.combinations)
        if schema.weight in columns:
            weights, odd = numbers_of(columns[schema.weight], schema.decimal)
            for row in np.flatnonzero(~(weights >= 0)).tolist():
                odd.setdefault(row, "expected a weight of 0 or more")
            note_problems(rows.problems, schema.weight, odd)
            rows.weights = weights.astype(np.float32)

    def _time_columns(self) -> list[TimeColumn]:
        """Return a column of times without rows for each column of the order."""
        types = self.schema.order_types if self.schema.order_columns else ()
        return [TimeColumn(type, self.schema.decimal) for type in types]

    def _add_times(self, name: Column, times: TimeColumn, block: Block) -> Reasons:
        """Append the times of a block, and return the reason for each that can't be read.

        Args:
            name: Name of the column.
            times: Its times so far.
            block: The block.

        Raises:
            DataError: If only some dates of the column have a time zone.
        """
        try:
            return times.add(block.columns[name], block.lines)
        except UnreadableError as error:
            problems = [f"{name}: {problem}" for problem in error.problems]
            if self._has_files and block.file:
                name = block.file
            else:
                name = self.source.name
            raise located(name, UnreadableError(error.line, *problems)) from None


class FeatureReader:
    """Reader of token columns and number columns.

    Args:
        kinds: Kinds of the columns, as in data.steps or data.static. Columns of kind order are left
            out.
        decimal: Decimal mark of numbers in texts.
    """

    def __init__(self, kinds: dict[str, Any], decimal: str) -> None:
        self._decimal = decimal
        self._tokens = {name: CodedColumn(_token_of) for name in token_columns(kinds)}
        self._numbers = [name for name in number_columns(kinds) if kinds[name] != "order"]

    def read(self, columns: dict[Column, Cells], problems: Reasons, rows: int) -> Steps:
        """Return the cells of a block as steps, and add its bad rows to `problems`.

        Args:
            columns: The cells, by column.
            problems: Maps the index of each row that can't be used to the reason.
            rows: Number of rows.
        """
        tokens = [coded(own, name, columns[name], problems) for name, own in self._tokens.items()]
        numbers = np.empty((rows, len(self._numbers)), np.float32)
        for place, name in enumerate(self._numbers):
            numbers[:, place], wrong = numbers_of(columns[name], self._decimal)
            note_problems(problems, name, wrong)
        return Steps(tuple(tokens), numbers)


def coded(column: CodedColumn, name: Column, cells: Cells, problems: Reasons) -> Coded:
    """Return the cells of a column as codes, and add those that can't be read to the problems."""
    codes, wrong = column.codes_of(cells)
    note_problems(problems, name, wrong)
    return Coded(codes, column.known.names)


def _odd_object(items: list[Any], names: list[str]) -> str | None:
    """Return what was found in place of an object with one of some fields, or None."""
    for item in items:
        if not isinstance(item, dict):
            return json_type(item)
        if item.keys().isdisjoint(names):
            fields = listed([quote(str(name)) for name in item]) or "none"
            return f"an object with the fields {fields}"
    return None


def _token_of(text: str) -> str:
    return name_of(text) or MISSING_TOKEN
