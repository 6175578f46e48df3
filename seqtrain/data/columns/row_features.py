"""Row features: columns with one value per sequence (data.static)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqtrain.data.columns.column import FitOptions, Parts
from seqtrain.data.columns.column_table import ColumnTable, TableEncoder
from seqtrain.data.examples import Features, Steps
from seqtrain.data.store import SequenceStore, blocks, concatenate


class RowFeatureEncoder:
    """Encoder of row features, one vector per example."""

    def __init__(self, table: TableEncoder) -> None:
        self.table = table

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Steps]:
        """Return the row features, empty ones if they can't be encoded."""
        return self.table.check(cells, problems)

    def encode(self, cells: Sequence[Steps]) -> Features:
        """Return the vector of each example, (B, K). Missing row features have a blank one."""
        values = self.table.blank().repeat(len(cells), axis=0)
        values[[len(steps) > 0 for steps in cells]] = self.table.encode(cells)
        return values


@dataclass(frozen=True)
class RowFeatures:
    """Columns with one value per example, joined with the pooled sequence.

    Attributes:
        table: The columns.
    """

    table: ColumnTable

    def encoder(self) -> RowFeatureEncoder:
        """Return an encoder of row features."""
        return RowFeatureEncoder(self.table.encoder())

    def fit(
        self,
        encoder: RowFeatureEncoder,
        parts: Parts,
        options: FitOptions,
        known: RowFeatures | None = None,
    ) -> tuple[RowFeatures, Parts, int]:
        """Fit the columns: see `Column.fit`."""
        values = {name: _static(part) for name, part in parts.items()}
        old = None if known is None else known.table
        table, finished, eligible = self.table.fit(encoder.table, values, options, old)
        found = {name: replace(part, static=finished[name]) for name, part in parts.items()}
        return RowFeatures(table), found, eligible

    def finish(self, store: SequenceStore) -> SequenceStore:
        """Return the store with final vectors of row features."""
        return replace(store, static=concatenate(map(self.table.finish, blocks(_static(store)))))

    def to_dict(self) -> dict[str, Any]:
        """Return the columns without their vocabularies as JSON values."""
        return self.table.to_dict()

    def vocabulary_dict(self) -> dict[str, list[str]]:
        """Return the tokens of each token column, by its name."""
        return self.table.vocabulary_dict()

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> RowFeatures:
        """Build row features from saved values: see `Column.from_dict`."""
        return cls(ColumnTable.from_dict(values, tokens))


def _static(store: SequenceStore) -> Features:
    assert store.static is not None, "rows are encoded with row features"
    return np.asarray(store.static)
