"""Column of steps: several columns of tokens and numbers per time step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seqtrain.data.columns.column_table import ColumnTable
from seqtrain.data.columns.scaling import STANDARDIZE
from seqtrain.data.saved_values import saved_choice


@dataclass(frozen=True)
class StepsColumn(ColumnTable):
    """A sequence of steps per example.

    Attributes:
        standardize: "train", or "series" or "both" if the model also standardizes the numbers of
            each sequence by itself.
    """

    standardize: str = "train"

    def settings(self) -> dict[str, Any]:
        """Return the keys of the data section that fix the meaning of numbers."""
        return {"missing": self.missing, "standardize": self.standardize}

    def pieces(self, cell: Any) -> list[str]:
        """Return each step as the texts of its cells, joined by commas."""
        return [",".join(cells) for cells in cell.cells()]

    def to_dict(self) -> dict[str, Any]:
        """Return the column without its vocabularies as JSON values."""
        return {"kind": self.kind, "standardize": self.standardize, **super().to_dict()}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> StepsColumn:
        """Build a column from saved values: see `Column.from_dict`."""
        standardize = saved_choice("standardize", values["standardize"], STANDARDIZE)
        return replace(super().from_dict(values, tokens), standardize=standardize)
