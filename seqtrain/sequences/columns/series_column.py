"""Column of series: one vector of numbers per time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.columns.column import CellEncoder, Column, FitOptions, Parts
from seqtrain.sequences.columns.scaling import MASK, MISSING, STANDARDIZE, Scale, refused_numbers
from seqtrain.sequences.examples import Features
from seqtrain.sequences.saved_values import saved_choice
from seqtrain.sequences.store import SequenceStore, blocks, concatenate

NO_SERIES = "every sequence is empty; expected feature vectors"


class SeriesEncoder(CellEncoder):
    """Encoder of series (T, C). It joins their numbers, which `SeriesColumn` standardizes later.

    Args:
        missing: Policy for missing numbers. With "error", series with missing numbers are refused.
        channels: Number of channels C, or None to take it from the first series that isn't empty.
    """

    def __init__(self, missing: str, channels: int | None) -> None:
        self._missing = missing
        self._channels = channels

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Features]:
        """Return the series. An empty series replaces each one that can't be encoded.

        A series is refused if it has a wrong number of channels. With the policy "error", it is
        also refused if a number is missing. If all series are empty and the number of channels
        isn't known, all are refused.

        Args:
            cells: One series for each row, (T, C).
            problems: As in `CellEncoder.check`.
        """
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
        """Return the numbers of all steps, (N, C), and the number of steps of each series."""
        return np.concatenate([self.blank()[:0], *cells]), [len(series) for series in cells]

    def blank(self) -> Features:
        """Return the step that replaces an empty series: missing numbers, (1, C)."""
        return np.full((1, self._channels or 0), np.nan, dtype=np.float32)


@dataclass(frozen=True)
class SeriesColumn(Column):
    """Column with a series of C channels per example.

    A step is encoded as C standardized numbers. If missing numbers are allowed, C indicators
    follow.

    Attributes:
        missing: Policy for missing numbers, "error" or "mask".
        standardize: "train" for numbers standardized by the training split. With "series" and
            "both" the model also standardizes each series by itself.
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
        """True if missing numbers are allowed: indicators of them follow the numbers of a step."""
        return self.missing == MASK

    @property
    def input_size(self) -> int:
        """Number of values per encoded step: C, or 2 C with indicators."""
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
        """Fit the mean and standard deviation of each channel: see `Column.fit`.

        If `known` is given, its means and deviations are kept. The returned number of tokens is 0.

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
        """Return the store with standardized numbers, and with indicators if they are used.

        Args:
            store: Rows that an encoder of this column encoded.
            encoder: Not used.
        """
        return replace(store, values=concatenate(map(self._scaled, blocks(store.values))))

    def _scaled(self, values: Features) -> Features:
        numbers, absent = self.scale.apply(values)
        if not self.has_indicators:
            return numbers
        return np.concatenate((numbers, absent), axis=1, dtype=np.float32)

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return a dict that maps "channel 1" and so on to the channel's mean and std in train."""
        pairs = zip(self.scale.mean, self.scale.std, strict=True)
        return {f"channel {number}": pair for number, pair in enumerate(pairs, start=1)}

    def settings(self) -> dict[str, Any]:
        """Return data.missing and data.standardize: see `Column.settings`."""
        return {"missing": self.missing, "standardize": self.standardize}

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        return {"kind": self.kind, **self.settings(), **self.scale.to_dict()}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> SeriesColumn:
        """Build a fitted column from saved values: see `Column.from_dict`."""
        scale = Scale.from_dict("series", values)
        if not len(scale):
            raise ValueError("series.mean: expected at least one channel")
        return cls(
            missing=saved_choice("missing", values["missing"], MISSING),
            standardize=saved_choice("standardize", values["standardize"], STANDARDIZE),
            scale=scale,
        )
