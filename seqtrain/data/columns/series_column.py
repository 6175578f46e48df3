"""Column of series: one vector of numbers per time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.data.columns.column import CellEncoder, Column, FitOptions, Parts
from seqtrain.data.columns.scaling import MASK, MISSING, STANDARDIZE, Scale, refused_numbers
from seqtrain.data.examples import Features
from seqtrain.data.saved_values import saved_choice
from seqtrain.data.store import SequenceStore, blocks, concatenate
from seqtrain.errors import DataError

NO_SERIES = "every sequence is empty; expected feature vectors"


class SeriesEncoder(CellEncoder):
    """Encoder of series (T, C), whose numbers aren't standardized yet.

    Args:
        missing: Policy for missing numbers.
        channels: Number of channels, or None to take it from the first series with steps.
    """

    def __init__(self, missing: str, channels: int | None) -> None:
        self._missing = missing
        self._channels = channels

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Features]:
        """Return the series, and an empty series for each one that can't be encoded."""
        if self._channels is None:
            self._channels = next((cell.shape[1] for cell in cells if len(cell)), None)
        if self._channels is None:
            for row in range(len(cells)):
                problems.setdefault(row, NO_SERIES)
        checked, nothing = [], self.blank()[:0]
        for row, series in enumerate(cells):
            if row in problems or not len(series):
                checked.append(nothing)
                continue
            problem = refused_numbers(series, self._channels or 0, self._missing, ())
            if problem is not None:
                problems[row] = problem
            checked.append(nothing if problem else series)
        return checked

    def encode(self, cells: Sequence[Features]) -> tuple[Features, list[int]]:
        """Return the numbers of all steps, (N, C), and the steps of each series."""
        return np.concatenate([self.blank()[:0], *cells]), [len(series) for series in cells]

    def blank(self) -> Features:
        """Return a step of missing numbers, as which an empty series is read."""
        return np.full((1, self._channels or 0), np.nan, dtype=np.float32)


@dataclass(frozen=True)
class SeriesColumn(Column):
    """A series per example, of C channels.

    A fitted step has C standardized numbers. With missing numbers allowed, C indicators follow.

    Attributes:
        missing: Policy for missing numbers, "error" or "mask".
        standardize: "train", or "series" or "both" if the model also standardizes each series by
            itself.
        scale: Mean and standard deviation of each channel in train.
    """

    kind = "features"
    missing: str = "error"
    standardize: str = "train"
    scale: Scale = field(default_factory=Scale)

    @property
    def channels(self) -> int:
        """Number of channels C."""
        return len(self.scale)

    @property
    def has_indicators(self) -> bool:
        """True if indicators of missing numbers follow the numbers."""
        return self.missing == MASK

    @property
    def input_size(self) -> int:
        """Numbers of a step."""
        return self.channels * (2 if self.has_indicators else 1)

    def encoder(self) -> CellEncoder:
        """Return an encoder of series."""
        return SeriesEncoder(self.missing, self.channels or None)

    def fit(
        self,
        encoder: SeriesEncoder,
        parts: Parts,
        options: FitOptions,
        known: SeriesColumn | None = None,
    ) -> tuple[SeriesColumn, Parts, int]:
        """Fit mean and standard deviation of each channel, or keep an earlier model's.

        See `Column.fit`. The number of tokens is 0.

        Raises:
            DataError: If the earlier model has another number of channels.
        """
        train = parts["train"].values
        scale = Scale.fit(train) if known is None else known.scale
        if len(scale) != train.shape[1]:
            found = (
                f"found {train.shape[1]} channels; expected the {len(scale)} of the earlier model"
            )
            raise DataError(f"data.train: {found}")
        fitted = replace(self, scale=scale)
        return fitted, {name: fitted.finish(part, encoder) for name, part in parts.items()}, 0

    def finish(self, store: SequenceStore, encoder: SeriesEncoder) -> SequenceStore:
        """Return the store with standardized numbers and indicators."""
        return replace(store, values=concatenate(map(self._scaled, blocks(store.values))))

    def _scaled(self, values: Features) -> Features:
        numbers, absent = self.scale.apply(values)
        if not self.has_indicators:
            return numbers
        return np.concatenate((numbers, absent), axis=1, dtype=np.float32)

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return mean and standard deviation of each channel in train, by its name for people."""
        pairs = zip(self.scale.mean, self.scale.std, strict=True)
        return {f"channel {number}": pair for number, pair in enumerate(pairs, start=1)}

    def settings(self) -> dict[str, Any]:
        """Return the keys of the data section that fix the meaning of numbers."""
        return {"missing": self.missing, "standardize": self.standardize}

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        rules = {"missing": self.missing, "standardize": self.standardize}
        return {"kind": self.kind, **rules, **self.scale.to_dict()}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> SeriesColumn:
        """Build a column from saved values: see `Column.from_dict`."""
        scale = Scale.from_dict("series", values)
        if not len(scale):
            raise ValueError("series.mean: expected at least one channel")
        return cls(
            missing=saved_choice("missing", values["missing"], MISSING),
            standardize=saved_choice("standardize", values["standardize"], STANDARDIZE),
            scale=scale,
        )
