"""Tables of columns: the cells of a step in several columns, encoded together as one vector.

The vector of a step has four parts: the ids of all token columns, the numbers of all number
columns, the indicators of missing numbers, and the times since numbers were seen. The last two are
optional. Row features are encoded in the same way, as one step per example.

N steps (or rows), K values of the encoded vector. "Columns" in a shape is the number of provisional
values per step: ids and numbers as read. With data.missing: last, the blocks of `carry_forward`
replace the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from seqtrain.sequences.columns.column import CellEncoder, Column, FitOptions, Parts
from seqtrain.sequences.columns.number_cells import NumberCells
from seqtrain.sequences.columns.scaling import (
    LAST,
    MISSING,
    STANDARDIZE,
    Scale,
    carry_forward,
    refused_numbers,
)
from seqtrain.sequences.columns.token_cells import TokenCells
from seqtrain.sequences.examples import Features, Steps
from seqtrain.sequences.saved_values import saved_choice, saved_text, saved_texts
from seqtrain.sequences.store import Array, SequenceStore, blocks, concatenate
from seqtrain.sequences.vocabulary import UNK, Vocabulary

LARGEST_ID = 2**24
"""Ids below it are exact in float32."""
Cells: TypeAlias = Mapping[str, Array]
"""Maps the name of each column of a table to its cells, (N,): token ids, or numbers as read."""


KINDS: dict[str, type[TokenCells] | type[NumberCells]] = {
    column.kind: column for column in (TokenCells, NumberCells)
}
"""Maps the name of each kind of column of a table, as it is saved, to its class.

Each kind is one file in this folder.
"""
SomeTable = TypeVar("SomeTable", bound="ColumnTable")


@dataclass(frozen=True)
class ColumnTable(Column):
    """Base of `StepsColumn` and `RowFeatures`: token columns and number columns.

    Attributes:
        array: Name of the attribute of `SequenceStore` that holds the vectors.
        tokens: Token columns.
        numbers: Number columns.
        missing: Policy for missing numbers: "error", "mask" or "last".
        clock: Name of the number column with the time since the previous step, or None without such
            a column. It is used only with the policy "last".
        since: With the policy "last", the scale of the times since numbers were seen, one entry per
            number column. Empty with other policies.
    """

    kind = "steps"
    array: ClassVar[str] = "values"
    tokens: tuple[TokenCells, ...]
    numbers: tuple[NumberCells, ...]
    missing: str = "error"
    clock: str | None = None
    since: Scale = field(default_factory=Scale)

    @classmethod
    def from_kinds(
        cls: type[SomeTable], kinds: Mapping[str, Any], missing: str, **settings: Any
    ) -> SomeTable:
        """Build an unfitted table.

        Args:
            kinds: Value of data.steps or data.static: maps the name of each column to its kind.
            missing: Policy for missing numbers.
            **settings: Other attributes of the class.
        """
        tokens, numbers = list[TokenCells](), list[NumberCells]()
        for name, kind in kinds.items():
            options = kind if isinstance(kind, dict) else {}
            if "token" in kind:
                tokens.append(TokenCells(name, options.get("min_count")))
            else:
                numbers.append(NumberCells(name, by=options.get("by")))
        clock = None
        if missing == LAST:
            clock = next((name for name, kind in kinds.items() if kind == "order"), None)
        return cls(tuple(tokens), tuple(numbers), missing, clock, **settings)

    @property
    def columns(self) -> tuple[TokenCells | NumberCells, ...]:
        """All columns, in the order of the vector: token columns first."""
        return (*self.tokens, *self.numbers)

    @property
    def names(self) -> list[str]:
        """Names of `columns`, in the same order."""
        return [column.name for column in self.columns]

    @property
    def vocabularies(self) -> list[Vocabulary]:
        """Vocabulary of each token column. Empty before `fit`."""
        return [column.vocabulary for column in self.tokens if column.vocabulary is not None]

    @property
    def has_indicators(self) -> bool:
        """True if missing numbers are allowed: indicators of them follow the numbers."""
        return self.missing != "error"

    @property
    def carries(self) -> bool:
        """True if a missing number is replaced by the last one seen: see `Column.carries`."""
        return self.missing == LAST

    @property
    def channels(self) -> int:
        """Number of number columns."""
        return len(self.numbers)

    @property
    def input_size(self) -> int:
        """Number K of values of the vector."""
        return len(self.tokens) + self.channels * (1 + self.has_indicators + self.carries)

    def encoder(self) -> TableEncoder:
        """Return an encoder of the cells of steps."""
        return TableEncoder(self)

    def fit(
        self: SomeTable,
        encoder: TableEncoder,
        parts: Parts,
        options: FitOptions,
        known: ColumnTable | None = None,
    ) -> tuple[SomeTable, Parts, int]:
        """Fit all columns on train: see `Column.fit`.

        If `known` is given, the result keeps its scales and the ids of its tokens.
        """
        values = {name: self._vectors(part) for name, part in parts.items()}
        train, total = values["train"], 0
        tokens, final_ids = list[TokenCells](), list[Array]()
        for number, column in enumerate(self.tokens):
            index = encoder.indexes[number]
            counts = np.zeros(len(index.tokens), dtype=np.int64)
            for block in blocks(train):
                counts += np.bincount(block[:, number].astype(np.int64), minlength=len(counts))
            old = None if known is None else known.tokens[number].vocabulary
            fitted, ids, eligible = column.fit(index.tokens, counts, options, old)
            tokens.append(fitted)
            final_ids.append(ids)
            total += eligible

        def final(block: Features) -> Features:
            block = block.copy()
            for number, ids in enumerate(final_ids):
                block[:, number] = ids[block[:, number].astype(np.int64)]
            return block

        numbers, since = self.numbers, self.since
        if known is not None:
            numbers, since = known.numbers, known.since
        else:
            vectors = concatenate(map(final, blocks(train)))
            cells = self._cells(self._observed(vectors))
            sizes = {column.name: len(column.vocabulary or ()) for column in tokens}
            numbers = tuple(column.fit(cells, sizes, options.bins) for column in self.numbers)
            if self.carries:
                since = Scale.fit(vectors[:, -len(numbers) :])
        table = replace(self, tokens=tuple(tokens), numbers=numbers, since=since)
        finished: Any = {
            name: concatenate(table.vectors_of(final(block)) for block in blocks(part))
            for name, part in values.items()
        }
        found = {name: replace(x, **{self.array: finished[name]}) for name, x in parts.items()}
        return table, found, total

    def finish(self, store: SequenceStore, encoder: Any = None) -> SequenceStore:
        """Return the store with encoded vectors in the attribute `array`.

        Args:
            store: Rows that an encoder of this table encoded.
            encoder: Not used.
        """
        vectors: Any = concatenate(map(self.vectors_of, blocks(self._vectors(store))))
        return replace(store, **{self.array: vectors})

    def _vectors(self, store: SequenceStore) -> Features:
        found: Features = getattr(store, self.array)
        return found

    def vectors_of(self, values: Features) -> Features:
        """Return the encoded vectors, (N, K).

        Args:
            values: Final ids and numbers as read, (N, columns), as `TableEncoder.encode` returns
                them.
        """
        cells, count = self._cells(values), len(self.tokens)
        parts, indicators = [values[:, :count]], list[Array]()
        for column in self.numbers:
            numbers, absent = column.finish(cells)
            parts.append(numbers)
            indicators.append(absent)
        if self.carries:
            absent, since = np.split(values[:, len(self.columns) :], 2, axis=1)
            parts += [absent, self.since.apply(since)[0]]
        elif self.has_indicators:
            parts += indicators
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def _cells(self, values: Features) -> Cells:
        return dict(zip(self.names, values.T, strict=False))

    def _observed(self, values: Features) -> Features:
        """Return ids and numbers as read, with NaN for numbers that were carried forward."""
        if not self.carries:
            return values
        first, count = len(self.tokens), len(self.numbers)
        observed: Features = values[:, : first + count].copy()
        observed[:, first:][values[:, first + count : first + 2 * count] > 0] = np.nan
        return observed

    def erase(self, values: Features, column: int) -> None:
        """Mark a column as missing in encoded vectors, in place.

        A token becomes <unk>. A number becomes a missing number.

        Args:
            values: Encoded vectors, (N, K). The method changes them.
            column: Index of the column in `columns`.
        """
        if column < len(self.tokens):
            values[:, column] = UNK
            return
        values[:, column] = 0
        if self.has_indicators:
            values[:, column + self.channels] = 1

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return a dict that maps the name of each number column to its mean and std in train."""
        return {own.name: (own.scale.mean[0], own.scale.std[0]) for own in self.numbers}

    def rows(self, steps: Steps) -> list[dict[str, Any]]:
        """Return one dict per step, which maps the name of each column to its cell.

        A missing number is None.

        Args:
            steps: Steps of an example, as read.
        """
        cells = zip(*steps.tokens, *steps.numbers.T.tolist(), strict=True)
        return [
            {name: None if x != x else x for name, x in zip(self.names, row, strict=True)}
            for row in cells
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the table without its vocabularies as JSON values."""
        own = {"clock": self.clock, "since": self.since.to_dict()} if self.carries else {}
        columns = [column.to_dict() for column in self.columns]
        return {"columns": columns, "missing": self.missing, **own}

    def vocabulary_dict(self) -> dict[str, Any]:
        """Return {kind: {column: tokens}}, with the kind of the table and each token column."""
        named = zip(self.tokens, self.vocabularies, strict=False)
        return {self.kind: {column.name: list(known.tokens) for column, known in named}}

    @classmethod
    def from_dict(cls: type[SomeTable], values: Any, tokens: Any) -> SomeTable:
        """Build a fitted table from saved values: see `Column.from_dict`."""
        columns = [
            KINDS[saved_choice("kind", own["kind"], (*KINDS,))].from_dict(own, tokens[cls.kind])
            for own in values["columns"]
        ]
        saved_texts("columns", [column.name for column in columns], least=1)
        missing = saved_choice("missing", values["missing"], MISSING)
        first = tuple(column for column in columns if isinstance(column, TokenCells))
        others = tuple(column for column in columns if isinstance(column, NumberCells))
        if [*first, *others] != columns:
            raise ValueError("columns: expected token columns first")
        if {column.by for column in others} - {None, *(column.name for column in first)}:
            raise ValueError("by: expected the name of a token column")
        if missing != LAST:
            return cls(first, others, missing)
        since = Scale.from_dict("since", values["since"])
        if not len(others) == len(since) > 0:
            raise ValueError("since: expected one mean and one std for each column of numbers")
        clock = saved_text("clock", values["clock"])
        if clock is not None:
            saved_choice("clock", clock, tuple(column.name for column in others))
        return cls(first, others, missing, clock, since)


@dataclass(frozen=True)
class StepsColumn(ColumnTable):
    """Column with a sequence of steps per example.

    Attributes:
        standardize: "train" for numbers standardized by the training split. With "series" and
            "both" the model also standardizes the numbers of each sequence by itself.
    """

    standardize: str = "train"

    def settings(self) -> dict[str, Any]:
        """Return data.missing and data.standardize: see `Column.settings`."""
        return {"missing": self.missing, "standardize": self.standardize}

    def pieces(self, cell: Any) -> list[str]:
        """Return one text per step: its cells, joined by commas.

        Args:
            cell: Steps of an example.
        """
        return [",".join(cells) for cells in cell.cells()]

    def to_dict(self) -> dict[str, Any]:
        """Return the column without its vocabularies as JSON values."""
        return {"kind": self.kind, "standardize": self.standardize, **super().to_dict()}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> StepsColumn:
        """Build a fitted column from saved values: see `Column.from_dict`."""
        standardize = saved_choice("standardize", values["standardize"], STANDARDIZE)
        return replace(super().from_dict(values, tokens), standardize=standardize)


@dataclass(frozen=True)
class RowFeatures(ColumnTable):
    """Columns with one value per example, which the model joins with the pooled sequence."""

    kind = "static"
    array = "static"


class TableEncoder(CellEncoder):
    """Encoder of steps of several columns as provisional vectors of ids and numbers.

    Attributes:
        indexes: One object per token column that turns its tokens into ids.
    """

    def __init__(self, table: ColumnTable) -> None:
        self._table = table
        self._names = [column.name for column in table.numbers]
        self.indexes = [column.index() for column in table.tokens]
        numbers = np.zeros((0, len(self._names)), dtype=np.float32)
        self._nothing = Steps(((),) * len(self.indexes), numbers)

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Steps]:
        """Return the cells. Empty steps replace each cell that is empty or refused.

        A cell is refused if it has a wrong number of columns. With data.missing: error, it is also
        refused if a number is missing.

        Args:
            cells: One cell for each row: the steps of a sequence, or one step of row features.
            problems: Maps the index of each row that can't be used to the reason. Empty steps
                replace the cells of these rows without a check. The method adds an entry for each
                cell that it refuses.
        """
        checked = list[Steps]()
        for row, steps in enumerate(cells):
            if row in problems or not steps:
                checked.append(self._nothing)
                continue
            width, missing = len(self._names), self._table.missing
            problem = refused_numbers(steps.numbers, width, missing, self._names)
            if problem is not None:
                problems[row] = problem
            checked.append(self._nothing if problem else steps)
        return checked

    def encode(self, cells: Sequence[Steps]) -> tuple[Features, list[int]]:
        """Return the vectors of all steps, (N, columns), and the number of steps of each cell.

        A vector has the ids of the token columns, then the numbers as read. With
        data.missing: last, the three blocks of `carry_forward` replace the numbers.
        """
        parts = [self._nothing.numbers, *(steps.numbers for steps in cells)]
        numbers: Features = np.concatenate(parts)
        if self._table.carries:
            clock = self._table.clock
            growth = None if clock is None else numbers[:, self._names.index(clock)]
            numbers = carry_forward(numbers, [len(steps) for steps in cells], growth)
        count, lengths = len(self.indexes), [len(steps) for steps in cells]
        if not count:
            return numbers, lengths
        values = np.empty((len(numbers), count + numbers.shape[1]), dtype=np.float32)
        values[:, count:] = numbers
        for column, index in enumerate(self.indexes):
            tokens = index.ids(chain.from_iterable(steps.tokens[column] for steps in cells))
            ids = np.array(tokens, dtype=np.int64)
            values[:, column] = np.where(ids < LARGEST_ID, ids, UNK)
        return values, lengths

    def encode_rows(self, cells: Sequence[Steps]) -> Features:
        """Return one vector for each cell, (B, columns). An empty cell has the vector `blank`.

        Args:
            cells: Cells of at most one step, such as row features.
        """
        vectors, lengths = self.encode(cells)
        values = self.blank().repeat(len(cells), axis=0)
        values[np.array(lengths, dtype=bool)] = vectors
        return values

    def blank(self) -> Features:
        """Return the step that replaces an empty cell: <unk> and missing numbers, (1, columns)."""
        count = len(self._names)
        unknown = [UNK] * len(self.indexes) + [np.nan] * count
        unknown += [1] * count + [0] * count if self._table.carries else []
        return np.array([unknown], dtype=np.float32)
