"""Column of steps: several columns of tokens and numbers per time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seqtrain.data.columns.column import CellEncoder, Encoded, FitOptions, Parts
from seqtrain.data.columns.column_table import ColumnTable, TableEncoder
from seqtrain.data.columns.scaling import STANDARDIZE
from seqtrain.data.examples import Features, Steps
from seqtrain.data.saved_values import saved_choice
from seqtrain.data.store import Array, SequenceStore, blocks, concatenate


class StepsEncoder:
    """Encoder of sequences of steps as vectors of ids and numbers."""

    is_ready = True

    def __init__(self, table: TableEncoder) -> None:
        self.table = table

    def prepare(self, cell: Any) -> None:
        """Do nothing: the columns are known."""

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Steps]:
        """Return the steps, and empty steps for each cell that can't be encoded."""
        return self.table.check(cells, problems)

    def encode(self, cells: Sequence[Steps]) -> Encoded:
        """Return the vectors of all steps."""
        return Encoded(self.table.encode(cells), [len(steps) for steps in cells])

    def blank(self) -> Features:
        """Return a step of unknown tokens and missing numbers."""
        return self.table.blank()

    def arrays(self, values: Array) -> dict[str, Array]:
        """Return the vectors as the values of a store."""
        return {"values": values}


@dataclass(frozen=True)
class StepsColumn:
    """A sequence of steps per example.

    Attributes:
        table: Columns of a step.
        standardize: "train", or "series" or "both" if the model also standardizes the numbers of
            each sequence by itself.
    """

    kind = "steps"
    table: ColumnTable
    standardize: str = "train"

    @property
    def channels(self) -> int:
        """Numbers of a step that encode number columns, without indicators."""
        return self.table.num_numbers

    @property
    def has_indicators(self) -> bool:
        """True if indicators of missing numbers follow the numbers."""
        return self.table.has_indicators

    @property
    def input_size(self) -> int:
        """Numbers of a step."""
        return self.table.width

    def encoder(self) -> CellEncoder:
        """Return an encoder of steps."""
        return StepsEncoder(self.table.encoder())

    def fit(
        self,
        encoder: StepsEncoder,
        parts: Parts,
        options: FitOptions,
        known: StepsColumn | None = None,
    ) -> tuple[StepsColumn, Parts, int]:
        """Fit the columns of a step."""
        values = {name: part.values for name, part in parts.items()}
        old = None if known is None else known.table
        table, finished, eligible = self.table.fit(encoder.table, values, options, old)
        found = {name: replace(part, values=finished[name]) for name, part in parts.items()}
        return replace(self, table=table), found, eligible

    def finish(self, store: SequenceStore, encoder: StepsEncoder) -> SequenceStore:
        """Return the store with final vectors."""
        return replace(store, values=concatenate(map(self.table.finish, blocks(store.values))))

    def settings(self) -> dict[str, Any]:
        """Return the keys of the data section that fix the meaning of numbers."""
        return {"missing": self.table.missing, "standardize": self.standardize}

    def pieces(self, cell: Any) -> list[str]:
        """Return each step as the texts of its cells, joined by commas."""
        return [",".join(cells) for cells in cell.cells()]

    def to_dict(self) -> dict[str, Any]:
        """Return the column without its vocabularies as JSON values."""
        return {"kind": self.kind, "standardize": self.standardize, **self.table.to_dict()}

    def vocabulary_dict(self) -> dict[str, list[str]]:
        """Return the tokens of each token column, by its name."""
        return self.table.vocabulary_dict()

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> StepsColumn:
        """Build a column from saved values: see `Column.from_dict`."""
        standardize = saved_choice("standardize", values["standardize"], STANDARDIZE)
        return cls(ColumnTable.from_dict(values, tokens), standardize)
