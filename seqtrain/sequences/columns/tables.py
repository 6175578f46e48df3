"""Tables of columns: the cells of a step in several columns, encoded together as one vector.

The vector of a step has four parts: the ids of all token columns, the numbers of all number
columns, the indicators of missing numbers, and the times since numbers were seen. The last two are
optional. A series is a table with a number column for each channel. Row features are encoded in the
same way, as one step per example.

N steps (or rows), K values of the encoded vector, F number columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.columns.scaling import (
    LAST,
    Missing,
    Scale,
    Standardize,
    carry_forward,
    missing_value,
)
from seqtrain.sequences.columns.tokens import Parts, VocabularyLimits
from seqtrain.sequences.examples import Sequences, Steps
from seqtrain.sequences.saved import Saved, refuse
from seqtrain.sequences.store import SequenceStore, blocks, counts_of
from seqtrain.sequences.vocabulary import (
    BUCKETS,
    UNFITTED,
    UNK,
    TokenIndex,
    Vocabulary,
    fit_vocabulary,
)
from seqtrain.tables.blocks import Array, Float32s, Ints, Reasons
from seqtrain.text import counted

LARGEST_ID = 2**24
"""Ids below it are exact in float32."""
EDGE_ROWS = 200_000
"""Approximate largest number of steps that the edges of bins are computed from."""
ColumnValues: TypeAlias = Mapping[str, Array]
"""Maps the name of each column of a table to its cells, (N,): token ids, or numbers as read."""


@dataclass(frozen=True)
class TokenColumn(Saved):
    """A column whose cells are tokens.

    Attributes:
        name: Name of the column.
        min_count: Smallest number of occurrences of a token in the vocabulary, or None to use
            data.min_count.
        vocabulary: Tokens of train, or None before the fit.
    """

    name: str
    min_count: int | None = None
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        if self.min_count is not None and self.min_count < 1:
            raise ValueError(f"{self.name}.min_count: expected a number from 1")

    def index(self) -> TokenIndex:
        """Return an object that turns tokens into ids.

        Before the fit it assigns a temporary id to each new token. Afterwards it uses the
        vocabulary.
        """
        if self.vocabulary is None:
            return TokenIndex(UNFITTED, inf)
        return TokenIndex(self.vocabulary)


@dataclass(frozen=True)
class NumberColumn(Saved):
    """A column whose cells are numbers, scaled by their mean and deviation in train.

    The meaning of a number may depend on a token of its step, such as the name of what was
    measured. Such a number is standardized by the numbers of train at steps with the same token.

    Attributes:
        name: Name of the column.
        scale: Mean and standard deviation in train.
        by: Name of the token column on which the meaning depends, or None.
        scale_by_token: Mean and standard deviation for each id of the column `by`. None before the
            fit, and without `by`.
        edges: Ascending edges of the bins of data.number_bins, as standardized numbers. Empty
            without bins.
    """

    name: str
    scale: Scale = field(default_factory=Scale)
    by: str | None = None
    scale_by_token: Scale | None = None
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.scale) > 1:
            raise ValueError(f"{self.name}: expected one mean and one std")
        if list(self.edges) != sorted(set(self.edges)):
            raise ValueError(f"{self.name}.edges: expected ascending numbers")

    def fit(
        self, cells: ColumnValues, vocabulary_sizes: Mapping[str, int], bins: int | None
    ) -> NumberColumn:
        """Return a fitted copy of the column, with scales and edges of bins.

        Args:
            cells: Cells of all columns of the table in train.
            vocabulary_sizes: Maps the name of each token column to its number of ids.
            bins: Largest number of bins, or None for no bins.
        """
        numbers = cells[self.name]
        scale = Scale.fit(numbers[:, None])
        by_token = None
        if self.by is not None:
            ids = cells[self.by].astype(np.int64)
            size = vocabulary_sizes[self.by]
            by_token = Scale.fit_groups(numbers, ids, scale, size)
        fitted = replace(self, scale=scale, scale_by_token=by_token)
        if bins is None:
            return fitted
        return replace(fitted, edges=fitted._edges(cells, bins))

    def _edges(self, cells: ColumnValues, bins: int) -> tuple[float, ...]:
        """Return the edges of at most `bins` bins, ascending, with both ends: up to `bins` + 1.

        The edges are quantiles of the standardized numbers, without missing ones. If there are no
        more distinct numbers than edges, these are the edges.
        """
        some = slice(None, None, -(-len(cells[self.name]) // EDGE_ROWS))
        numbers, absent = self.standardized({name: each[some] for name, each in cells.items()})
        present = np.unique(numbers[~absent])
        if len(present) > bins + 1:
            present = np.unique(np.quantile(numbers[~absent], np.linspace(0, 1, bins + 1)))
        return tuple(present.tolist())

    def standardized(self, cells: ColumnValues) -> tuple[Float32s, Array]:
        """Return the standardized numbers, (N, 1), and a mask of the missing ones, which are 0."""
        numbers = cells[self.name][:, None]
        if self.by is None or self.scale_by_token is None:
            return self.scale.apply(numbers)
        return self.scale_by_token.apply(numbers, cells[self.by].astype(np.int64))


@dataclass(frozen=True)
class ColumnTable(Saved):
    """Token columns and number columns of a step, of a series, or of row features.

    Attributes:
        kind: steps, features for a series, or static for row features.
        tokens: Token columns.
        numbers: Number columns. Those of a series are its channels. They are unknown before the
            fit.
        missing: Policy for missing numbers: "error", "mask" or "last".
        standardize: "train" for numbers standardized by the training split. With "series" and
            "both" the model also standardizes the numbers of each sequence by itself.
        clock: Name of the number column with the time since the previous step, or None without such
            a column. It is used only with the policy "last".
        since: With the policy "last", the scale of the times since numbers were seen, one entry per
            number column. Empty with other policies.
    """

    kind: Literal["steps", "features", "static"]
    tokens: tuple[TokenColumn, ...] = ()
    numbers: tuple[NumberColumn, ...] = ()
    missing: Missing = "error"
    standardize: Standardize = "train"
    clock: str | None = None
    since: Scale = field(default_factory=Scale)

    def __post_init__(self) -> None:
        names = self.names
        count = len(self.tokens)
        used = {column.by for column in self.numbers}
        faults = {
            "columns: expected different names": len(set(names)) < len(names),
            "by: expected the name of a token column": bool(used - {None, *names[:count]}),
            "columns: expected channels of numbers only": (
                self.kind == "features" and (count > 0 or self.missing == LAST)
            ),
            "clock: expected the name of a number column": (
                self.clock not in (None, *names[count:])
            ),
            "since: expected one mean and one std for each column of numbers": (
                len(self.since) not in (0, len(self.numbers))
            ),
        }
        refuse(faults)

    @classmethod
    def from_kinds(
        cls,
        kind: Literal["steps", "static"],
        kinds: Mapping[str, Any],
        missing: Missing,
        standardize: Standardize = "train",
    ) -> ColumnTable:
        """Return an unfitted table.

        Args:
            kind: Kind of the table.
            kinds: Value of data.steps or data.static: maps the name of each column to its kind.
            missing: Policy for missing numbers.
            standardize: Attribute of the table.
        """
        tokens = []
        numbers = []
        for name, own in kinds.items():
            options = own if isinstance(own, dict) else {}
            if "token" in own:
                tokens.append(TokenColumn(name, options.get("min_count")))
            else:
                numbers.append(NumberColumn(name, by=options.get("by")))
        clock = None
        if missing == LAST:
            clock = next((name for name, own in kinds.items() if own == "order"), None)
        return cls(kind, tuple(tokens), tuple(numbers), missing, standardize, clock)

    @property
    def names(self) -> list[str]:
        """Names of the columns, token columns first."""
        return [*(each.name for each in self.tokens), *(each.name for each in self.numbers)]

    @property
    def vocabularies(self) -> list[Vocabulary]:
        """Vocabulary of each token column. Empty before the fit."""
        return [column.vocabulary for column in self.tokens if column.vocabulary is not None]

    def token_lists(self) -> dict[str, Any]:
        """Return the tokens of each vocabulary, by column, under the name of the kind."""
        if self.kind == "features":
            return {}
        lists = {}
        for column, vocabulary in zip(self.tokens, self.vocabularies, strict=True):
            lists[column.name] = list(vocabulary.tokens)
        return {self.kind: lists}

    def with_vocabularies(self, lists: Mapping[str, Any]) -> ColumnTable:
        """Return the table with the vocabularies of `token_lists`.

        Raises:
            ValueError: If the list of a column is missing, or isn't a vocabulary.
        """
        own = lists.get(self.kind) or {}
        tokens = []
        for column in self.tokens:
            vocabulary = Vocabulary(tuple(own.get(column.name, ())))
            tokens.append(replace(column, vocabulary=vocabulary))
        return replace(self, tokens=tuple(tokens))

    @property
    def array(self) -> str:
        """Name of the attribute of `SequenceStore` that holds the vectors."""
        if self.kind == "static":
            return "static"
        return "values"

    @property
    def has_indicators(self) -> bool:
        """True if missing numbers are allowed: indicators of them follow the numbers."""
        return self.missing != "error"

    @property
    def carries(self) -> bool:
        """True if a missing number is replaced by the last one that was seen in its sequence.

        If True, a step also has the time since each number was seen, after the indicators.
        """
        return self.missing == LAST

    @property
    def channels(self) -> int:
        """Number of number columns."""
        return len(self.numbers)

    @property
    def input_size(self) -> int:
        """Number K of values of the vector."""
        return len(self.tokens) + self.channels * (1 + self.has_indicators + self.carries)

    # A table has no single vocabulary, no tokenizer, and no subwords.
    vocabulary = None
    tokenizer_name = None
    subwords = None
    words = None
    subword_rows = BUCKETS

    def encoder(self) -> TableEncoder:
        """Return an encoder of steps."""
        return TableEncoder(self)

    def fit(
        self,
        encoder: TableEncoder,
        parts: Parts,
        limits: VocabularyLimits,
        known: ColumnTable | None = None,
    ) -> tuple[ColumnTable, Parts]:
        """Fit all columns on train. If `known` is given, its scales and ids are kept.

        Args:
            encoder: Encoder that encoded all parts.
            parts: Stores with temporary vectors, by name.
            limits: Limits of vocabularies and bins.
            known: Table of an earlier model, or None.

        Returns:
            The fitted table, and the stores with final vectors.

        Raises:
            DataError: If the earlier model has another number of channels.
        """
        values = {name: getattr(part, self.array) for name, part in parts.items()}
        train = values["train"]
        tokens = []
        for number, column in enumerate(self.tokens):
            index = encoder.indexes[number]
            vocabulary, ids = fit_vocabulary(
                index,
                counts_of(train[:, number].astype(np.int64), index.size),
                min_count=limits.min_count if column.min_count is None else column.min_count,
                max_size=limits.max_size,
                known=None if known is None else known.tokens[number].vocabulary,
            )
            for own in values.values():  # temporary ids become final ones, in place
                own[:, number] = ids[own[:, number].astype(np.int64)]
            tokens.append(replace(column, vocabulary=vocabulary))
        numbers = self.numbers or encoder.channels()
        table = replace(self, tokens=tuple(tokens), numbers=numbers)
        if known is None:
            table = table._scaled(train, limits.bins)
        elif known.channels != table.channels:
            raise DataError(
                f"data.train: found {counted(table.channels, 'channel')}; expected "
                f"{known.channels}, as the earlier model has"
            )
        else:
            table = replace(table, numbers=known.numbers, since=known.since)
        return table, {name: table.finalize(part) for name, part in parts.items()}

    def _scaled(self, train: Float32s, bins: int | None) -> ColumnTable:
        """Return the table with the scales of train, whose vectors have final ids."""
        cells = self._cells(self.observed(train))
        sizes = {column.name: len(column.vocabulary or ()) for column in self.tokens}
        numbers = tuple(column.fit(cells, sizes, bins) for column in self.numbers)
        if self.carries:
            since = Scale.fit(train[:, -len(numbers) :])
        else:
            since = self.since
        return replace(self, numbers=numbers, since=since)

    def finalize(self, store: SequenceStore, encoder: Any = None) -> SequenceStore:
        """Return the store with encoded vectors in the attribute `array`.

        Args:
            store: Rows that an encoder of this table encoded.
            encoder: Not used.
        """
        values = getattr(store, self.array)
        vectors = np.empty((len(values), self.input_size), np.float32)
        end = 0
        for block in blocks(values):
            begin = end
            end = end + len(block)
            vectors[begin:end] = self.vectors_of(block)
        found: Any = {self.array: vectors}
        return replace(store, **found)

    def vectors_of(self, values: Float32s) -> Float32s:
        """Return the encoded vectors, (N, K).

        Args:
            values: Final ids and numbers as read, as `TableEncoder.encode` returns them.
        """
        cells = self._cells(values)
        count = len(self.tokens)
        parts = [values[:, :count]]
        indicators = []
        for column in self.numbers:
            numbers, absent = column.standardized(cells)
            parts.append(numbers)
            indicators.append(absent)
        if self.carries:
            absent, since = np.split(values[:, len(self.names) :], 2, axis=1)
            parts += [absent, self.since.apply(since)[0]]
        elif self.has_indicators:
            parts += indicators
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def _cells(self, values: Float32s) -> ColumnValues:
        return dict(zip(self.names, values.T, strict=False))

    def observed(self, values: Float32s) -> Float32s:
        """Return ids and numbers as read, with NaN for numbers that were carried forward."""
        if not self.carries:
            return values
        first = len(self.tokens)
        count = len(self.numbers)
        observed: Float32s = values[:, : first + count].copy()
        observed[:, first:][values[:, first + count : first + 2 * count] > 0] = np.nan
        return observed

    def erase(self, values: Float32s, column: int) -> None:
        """Mark a column as missing in encoded vectors, in place.

        A token becomes <unk>. A number becomes a missing number.

        Args:
            values: Encoded vectors, (N, K). The method changes them.
            column: Index of the column in `names`.
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
        """
        numbers = [[None if x != x else x for x in own] for own in steps.numbers.T.tolist()]
        columns = [*steps.token_texts(), *numbers]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def step_texts(self, cell: Any) -> list[str] | None:
        """Return one text per step: its cells, joined by commas. None for a series."""
        if self.kind == "features":
            return None
        return [",".join(cells) for cells in cell.cells()]

    def settings(self) -> dict[str, Any]:
        """Return the config settings that fix the meaning of the vectors: keys of data, values."""
        return {"missing": self.missing, "standardize": self.standardize}


class TableEncoder:
    """Encoder of steps of several columns as temporary vectors of ids and numbers.

    Attributes:
        indexes: One object per token column that turns its tokens into ids.
        width: Number of number columns, or None before the first series with a step.
    """

    def __init__(self, table: ColumnTable) -> None:
        self._table = table
        self.width = len(table.numbers) if table.kind != "features" else table.channels or None
        self.indexes = [column.index() for column in table.tokens]

    def channels(self) -> tuple[NumberColumn, ...]:
        """Return a number column for each channel of the series that were encoded."""
        return tuple(NumberColumn(f"channel {i + 1}") for i in range(self.width or 0))

    def encode(self, sequences: Sequences) -> tuple[Float32s, Ints]:
        """Return the vectors of all steps, (N, K), and the number of steps of each sequence."""
        steps = sequences.content
        problems = sequences.problems
        if sequences.offsets is None:
            steps, lengths = self._series(steps, problems)
        else:
            lengths = np.diff(sequences.offsets)
        return self.encode_steps(steps, lengths, problems), lengths

    def _series(self, cells: Sequence[Float32s], problems: Reasons) -> tuple[Steps, Ints]:
        """Return series, (T, C) each, as steps, and the number of steps of each series.

        A series with a wrong number of channels is added to the problems, and gets no steps.
        """
        if self.width is None:
            self.width = next((each.shape[1] for each in cells if len(each)), None)
        parts = [np.zeros((0, self.width or 0), np.float32)]
        lengths = np.zeros(len(cells), np.int64)
        for row, own in enumerate(cells):
            if self.width is None:
                problems.setdefault(row, "every sequence is empty; expected feature vectors")
            if row in problems or not len(own):
                continue
            if own.shape[1] != self.width:
                problems[row] = f"{counted(own.shape[1], 'channel')}; expected {self.width}"
                continue
            parts.append(own)
            lengths[row] = len(own)
        return Steps((), np.concatenate(parts)), lengths

    def encode_steps(self, steps: Steps, lengths: Ints, problems: Reasons) -> Float32s:
        """Return the vectors of all steps, (N, K).

        A vector has the ids of the token columns, then the numbers as read. With
        data.missing: last, the three blocks of `carry_forward` replace the numbers.

        Args:
            steps: The steps of all sequences.
            lengths: Number of steps of each sequence.
            problems: Maps the index of each sequence that can't be used to the reason. The method
                adds sequences with a missing number, if none is allowed.
        """
        table = self._table
        numbers = steps.numbers
        if table.missing == "error" and np.isnan(numbers).any():
            self._refuse_missing(numbers, lengths, problems)
        if table.carries:
            names = [column.name for column in table.numbers]
            if table.clock is None:
                growth = None
            else:
                growth = numbers[:, names.index(table.clock)]
            numbers = carry_forward(numbers, lengths, growth)
        if not self.indexes:
            return numbers
        count = len(self.indexes)
        values = np.empty((len(numbers), count + numbers.shape[1]), np.float32)
        values[:, count:] = numbers
        for column, (tokens, index) in enumerate(zip(steps.tokens, self.indexes, strict=True)):
            used = np.unique(tokens.codes)
            ids = np.zeros(len(tokens.values) + 1, np.int64)
            ids[used] = index.ids([tokens.values[code] for code in used.tolist()])
            values[:, column] = np.where(ids < LARGEST_ID, ids, UNK)[tokens.codes]
        return values

    def _refuse_missing(self, numbers: Float32s, lengths: Ints, problems: Reasons) -> None:
        """Add each sequence with a missing number to the problems, at its first one."""
        absent = np.isnan(numbers)
        ends = np.cumsum(lengths)
        rows = np.flatnonzero(absent.any(axis=1))
        owners, first = np.unique(np.searchsorted(ends, rows, side="right"), return_index=True)
        for owner, row in zip(owners.tolist(), rows[first].tolist(), strict=True):
            column = int(absent[row].argmax())
            length = int(lengths[owner])
            if self._table.kind == "features":
                name = ""
            else:
                name = self._table.numbers[column].name
            reason = missing_value(row - int(ends[owner]) + length, length, name)
            problems.setdefault(owner, reason)

    def blank(self) -> Float32s:
        """Return the step that replaces an empty cell: <unk> and missing numbers, (1, K)."""
        count = self.width or 0
        unknown = [UNK] * len(self.indexes) + [np.nan] * count
        unknown += [1] * count + [0] * count if self._table.carries else []
        return np.array([unknown], dtype=np.float32)
