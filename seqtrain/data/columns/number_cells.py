"""Number columns of a table: one number per step, standardized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from seqtrain.data.columns.scaling import Scale
from seqtrain.data.examples import Features
from seqtrain.data.saved_values import saved_text
from seqtrain.data.store import Array


@dataclass(frozen=True)
class NumberCells:
    """A column whose cells are numbers, scaled by their mean and deviation in train.

    Attributes:
        name: Name of the column.
        scale: Mean and standard deviation in train.
    """

    kind = "number"
    is_token = False
    name: str
    scale: Scale = field(default_factory=Scale)

    @property
    def width(self) -> int:
        """Numbers of the vector that encode a cell."""
        return 1

    def fit(self, cells: Mapping[str, Array]) -> NumberCells:
        """Fit the scale; `cells` holds the cells of all columns of the table in train, by name."""
        return replace(self, scale=Scale.fit(cells[self.name][:, None]))

    def finish(self, cells: Mapping[str, Array]) -> tuple[Features, Array]:
        """Return the numbers (N, width), and which cells are missing, (N, 1) bool."""
        return self.scale.apply(cells[self.name][:, None])

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        return {"kind": self.kind, "name": self.name, **self.scale.to_dict()}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> NumberCells:
        """Build a fitted column from saved values; raise ValueError if they aren't valid."""
        name = saved_text("name", values["name"])
        if name is None:
            raise ValueError("name: expected the name of a column")
        scale = Scale.from_dict(name, values)
        if len(scale) != 1:
            raise ValueError(f"{name}: expected one mean and one std")
        return cls(name, scale)
