"""How train codes columns of tokens and numbers: as a vector of ids, then of scaled numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.examples import Columns, Features, Steps, column_names, token_columns
from seqtrain.data.store import Array, blocks, concatenate
from seqtrain.data.vocabulary import SPECIAL, UNK, Vocabulary, fit_vocabulary, growing_index
from seqtrain.errors import DataError

LARGEST_ID = 2**24
"""Ids below it are exact in float32."""
SMALLEST_STD = float(np.finfo(np.float32).tiny)
MASK = "mask"


@dataclass(frozen=True)
class ColumnCoding:
    """What stands for the cells of some columns, or for the channels of a series.

    Attributes:
        columns: what each is, by name, as data.steps or data.static has it; none of a series.
        missing: error or mask, for missing numbers.
        vocabularies: of each column of tokens, in the order of the columns.
        mean, std: of each column of numbers in train.
    """

    columns: Columns
    missing: str
    vocabularies: tuple[Vocabulary, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns in the order of the vector: tokens, then numbers."""
        return column_names(self.columns)

    @property
    def num_tokens(self) -> int:
        """How many are columns of tokens, whose ids come first."""
        return len(token_columns(self.columns))

    @property
    def width(self) -> int:
        """Width of the vector of a step."""
        return self.num_tokens + len(self.mean) * (2 if self.missing == MASK else 1)

    def encoder(self) -> CellEncoder:
        """Return what encodes cells; where nothing was fitted yet, with an index that grows."""
        count = self.num_tokens
        known = [vocabulary.index for vocabulary in self.vocabularies]
        channels = len(self.names) - count if self.columns else len(self.mean) or None
        return CellEncoder(self, known or [growing_index(SPECIAL) for _ in range(count)], channels)

    def scale(self, values: Features) -> Features:
        """Standardise the numbers of vectors (N, K), whose ids stay; missing: 0, or masked."""
        limit, count = np.finfo(np.float32).max, self.num_tokens
        exact = (values[:, count:] - np.array(self.mean)) / np.array(self.std)
        numbers: Features = np.clip(exact, -limit, limit).astype(np.float32)
        absent = np.isnan(numbers)
        numbers[absent] = 0
        parts = (values[:, :count], numbers, *([absent] if self.missing == MASK else []))
        return np.concatenate(parts, axis=1, dtype=np.float32)

    def erase(self, values: Features, column: int) -> None:
        """Let a column of vectors (N, K), by its number, say nothing: <unk>, or missing."""
        values[:, column] = UNK if column < self.num_tokens else 0
        if column >= self.num_tokens and self.missing == MASK:
            values[:, column + len(self.names) - self.num_tokens] = 1

    def rows(self, steps: Steps) -> list[dict[str, Any]]:
        """Return the cells of steps, each as a row by the names of its columns."""
        cells = zip(*steps.tokens, *steps.numbers.T.tolist(), strict=True)
        return [dict(zip(self.names, row, strict=True)) for row in cells]

    def to_json(self) -> dict[str, Any]:
        """Return all but the vocabularies as JSON values."""
        return {name: getattr(self, name) for name in ("columns", "missing", "mean", "std")}

    def tokens(self) -> dict[str, list[str]]:
        """Return the tokens of each vocabulary, by column."""
        return {x: list(v.tokens) for x, v in zip(self.names, self.vocabularies, strict=False)}

    @classmethod
    def from_json(cls, values: Any, tokens: Any) -> ColumnCoding:
        """Build from what `to_json` and `tokens` returned; raises where that can't be."""
        columns = values["columns"]
        mean, std = tuple(values["mean"]), tuple(values["std"])
        found = [Vocabulary(tuple(tokens[name])) for name in token_columns(columns)]
        coding = cls(columns, values["missing"], tuple(found), mean, std)
        if not len(mean) == len(std) == len(coding.names) - len(found):
            raise ValueError("columns: mean and std don't fit the columns")
        return coding


@dataclass
class CellEncoder:
    """Looks up the ids of cells, by an index for each column of tokens.

    Attributes:
        channels: numbers of a step; None: as many as the first series with steps has.
    """

    coding: ColumnCoding
    indexes: Sequence[Mapping[str, int]]
    channels: int | None

    def encode(self, found: Sequence[Steps | Features]) -> Features:
        """Return vectors of all steps (N, K): ids, and numbers that aren't scaled yet."""
        numbers: Features = np.concatenate([getattr(x, "numbers", x) for x in found])
        count = len(self.indexes)
        if not count:
            return numbers
        values = np.empty((len(numbers), count + numbers.shape[1]), dtype=np.float32)
        values[:, count:] = numbers
        for column, index in enumerate(self.indexes):
            cells = chain.from_iterable(x.tokens[column] for x in found if isinstance(x, Steps))
            ids = np.fromiter(map(index.__getitem__, cells), dtype=np.int64, count=len(numbers))
            values[:, column] = np.where(ids < LARGEST_ID, ids, UNK)
        return values

    def refusal(self, steps: Any) -> str | None:
        """Say how many numbers a step has, or which is missing, where that is refused."""
        numbers: Features = getattr(steps, "numbers", steps)
        if numbers.shape[1] != self.channels:
            return f"{numbers.shape[1]} channels; expected {self.channels}"
        absent = np.isnan(numbers)
        if self.coding.missing == MASK or not absent.any():
            return None
        step, column = (int(axis[0]) for axis in np.nonzero(absent))
        name = f" of {self.coding.names[len(self.indexes) + column]}" if self.coding.columns else ""
        where = f"step {step + 1}: " if len(steps) > 1 else ""
        return f"{where}missing value{name}; data.missing: mask accepts that"

    def nothing(self) -> Steps:
        """Return the cells of no steps."""
        return Steps(((),) * len(self.indexes), self.blank()[:0, len(self.indexes) :])

    def blank(self) -> Features:
        """Return the vector of a step of which nothing is known."""
        unknown = [UNK] * len(self.indexes) + [np.nan] * (self.channels or 0)
        return np.array([unknown], dtype=np.float32)


def fit_columns(
    cells: CellEncoder,
    parts: Mapping[str, Array],
    *,
    min_count: int,
    max_size: int,
    known: ColumnCoding | None,
) -> tuple[ColumnCoding, dict[str, Array], int]:
    """Fit vocabularies and scales on the values of train; return all parts' final values.

    Also returns how many tokens could be in the vocabularies. A coding that is `known` already
    keeps its ids and scales, and its vocabularies grow.
    """
    coding, final, total = cells.coding, [], 0
    vocabularies: list[Vocabulary] = []
    for column, name in enumerate(coding.names[: coding.num_tokens]):
        index, kind = cells.indexes[column], coding.columns[name]
        counts = np.zeros(len(index), dtype=np.int64)
        for block in blocks(parts["train"]):
            counts += np.bincount(block[:, column].astype(np.int64), minlength=len(index))
        vocabulary, ids, eligible = fit_vocabulary(
            [*index],
            counts,
            min_count=kind["min_count"] if isinstance(kind, dict) else min_count,
            max_size=max_size,
            known=None if known is None else known.vocabularies[column],
        )
        vocabularies.append(vocabulary)
        final.append(ids)
        total += eligible
    numbers = parts["train"][:, coding.num_tokens :]
    mean, std = statistics_of(numbers) if known is None else (known.mean, known.std)
    if len(mean) != numbers.shape[1]:
        found = f"{numbers.shape[1]} channels; the model to go on from has {len(mean)}"
        raise DataError(f"data.train: found {found}")
    fitted = replace(coding, vocabularies=tuple(vocabularies), mean=mean, std=std)

    def finished(values: Features) -> Features:
        values = values.copy()
        for column, ids in enumerate(final):
            values[:, column] = ids[values[:, column].astype(np.int64)]
        return fitted.scale(values)

    final_values = {x: concatenate(map(finished, blocks(part))) for x, part in parts.items()}
    return fitted, final_values, total


def statistics_of(values: Features) -> tuple[tuple[float, ...], ...]:
    """Mean and standard deviation of each channel's present values; constant channels keep 1."""
    count = np.sum([(~np.isnan(x)).sum(axis=0) for x in blocks(values)], axis=0).clip(1)
    total = np.sum([np.nansum(x, axis=0, dtype=np.float64) for x in blocks(values)], axis=0)
    mean = total / count
    squares = np.sum([np.nansum((x - mean) ** 2, axis=0) for x in blocks(values)], axis=0)
    lowest = np.fmin.reduce([np.fmin.reduce(x, initial=np.inf) for x in blocks(values)])
    highest = np.fmax.reduce([np.fmax.reduce(x, initial=-np.inf) for x in blocks(values)])
    std = np.where(lowest < highest, np.sqrt(squares / count).clip(SMALLEST_STD), 1.0)
    return tuple(mean.tolist()), tuple(std.tolist())
