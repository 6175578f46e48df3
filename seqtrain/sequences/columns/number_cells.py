"""Number columns of a table: one number per step, standardized.

The meaning of a number may depend on a token of its step, such as the name of what was measured.
Such a number is standardized by the numbers of train at steps with the same token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.sequences.columns.scaling import Scale
from seqtrain.sequences.examples import Features
from seqtrain.sequences.saved_values import saved_numbers, saved_text
from seqtrain.sequences.store import Array

EDGE_ROWS = 200_000
"""Approximate largest number of steps that the edges of bins are computed from."""


@dataclass(frozen=True)
class NumberCells:
    """A column whose cells are numbers, scaled by their mean and deviation in train.

    Attributes:
        name: Name of the column.
        scale: Mean and standard deviation in train.
        by: Name of the token column on which the meaning depends, or None.
        scale_by_token: Mean and standard deviation for each id of the column `by`. None before
            `fit`, and without `by`.
        edges: Ascending edges of the bins of data.number_bins, as standardized numbers. Empty
            without bins.
    """

    kind = "number"
    name: str
    scale: Scale = field(default_factory=Scale)
    by: str | None = None
    scale_by_token: Scale | None = None
    edges: tuple[float, ...] = ()

    def fit(
        self, cells: Mapping[str, Array], vocabulary_sizes: Mapping[str, int], bins: int | None
    ) -> NumberCells:
        """Return a fitted copy of the column, with scales and edges of bins.

        Args:
            cells: Maps the name of each column of the table to its cells in train, (N,). Cells are
                token ids, or numbers with NaN for missing ones.
            vocabulary_sizes: Maps the name of each token column to its number of ids.
            bins: Largest number of bins, or None for no bins.
        """
        numbers = cells[self.name]
        scale = Scale.fit(numbers[:, None])
        by_token = None
        if self.by is not None:
            ids, size = cells[self.by].astype(np.int64), vocabulary_sizes[self.by]
            by_token = Scale.fit_groups(numbers, ids, scale, size)
        fitted = replace(self, scale=scale, scale_by_token=by_token)
        return fitted if bins is None else replace(fitted, edges=fitted._edges(cells, bins))

    def _edges(self, cells: Mapping[str, Array], bins: int) -> tuple[float, ...]:
        """Return the edges of at most `bins` bins, ascending, with both ends: up to `bins` + 1.

        The edges are quantiles of the standardized numbers, without missing ones. If there are no
        more distinct numbers than edges, these are the edges. About EDGE_ROWS steps are read at
        most.

        Args:
            cells: Cells of all columns of the table in train, as for `fit`.
            bins: Largest number of bins.
        """
        some = slice(None, None, -(-len(cells[self.name]) // EDGE_ROWS))
        numbers, absent = self.finish({name: column[some] for name, column in cells.items()})
        present = np.unique(numbers[~absent])
        if len(present) > bins + 1:
            present = np.unique(np.quantile(numbers[~absent], np.linspace(0, 1, bins + 1)))
        return tuple(present.tolist())

    def finish(self, cells: Mapping[str, Array]) -> tuple[Features, Array]:
        """Return the standardized numbers, (N, 1), and a mask of the missing ones.

        Missing numbers become 0.

        Args:
            cells: Cells of all columns of the table, as for `fit`.
        """
        numbers = cells[self.name][:, None]
        if self.by is None or self.scale_by_token is None:
            return self.scale.apply(numbers)
        return self.scale_by_token.apply(numbers, cells[self.by].astype(np.int64))

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        by_token = None if self.scale_by_token is None else self.scale_by_token.to_dict()
        own = {"kind": self.kind, "name": self.name, **self.scale.to_dict()}
        return {**own, "by": self.by, "by_token": by_token, "edges": list(self.edges)}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> NumberCells:
        """Build a fitted column from saved values.

        Args:
            values: Result of `to_dict`.
            tokens: Maps the name of each token column of the table to its tokens.

        Raises:
            ValueError: If the values aren't valid.
            KeyError: If a value is missing.
        """
        name = saved_text("name", values["name"])
        if name is None:
            raise ValueError("name: expected the name of a column")
        scale = Scale.from_dict(name, values)
        if len(scale) != 1:
            raise ValueError(f"{name}: expected one mean and one std")
        edges = saved_numbers(f"{name}.edges", values.get("edges", []))
        if list(edges) != sorted(set(edges)):
            raise ValueError(f"{name}.edges: expected ascending numbers")
        by = saved_text("by", values.get("by"))
        if by is None:
            return cls(name, scale, edges=edges)
        scale_by_token = Scale.from_dict(f"{name}.by_token", values["by_token"])
        if len(scale_by_token) != len(tokens[by]):
            raise ValueError(f"{name}: expected one mean and one std for each token of {by}")
        return cls(name, scale, by, scale_by_token, edges)
