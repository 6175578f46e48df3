"""Standardization of numbers by the mean and standard deviation of the training split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from seqtrain.sequences.saved import Saved
from seqtrain.sequences.store import blocks
from seqtrain.tables.blocks import Array, Float32s, Ints

Missing: TypeAlias = Literal["error", "mask", "last"]
Standardize: TypeAlias = Literal["train", "series", "both"]

SMALLEST_STD = float(np.finfo(np.float32).tiny)
LARGEST = np.finfo(np.float32).max
MASK = "mask"
"""Policy for missing numbers: they become 0, and an indicator column marks them."""
LAST = "last"
"""Policy for missing numbers: the last number seen in the sequence replaces them.

An indicator column marks them, as for "mask", and another column has the time since then.
"""


@dataclass(frozen=True)
class Scale(Saved):
    """Means and standard deviations of C columns of numbers, or of C groups of one column.

    Before a fit, `mean` and `std` are empty.

    Attributes:
        mean: Mean of the values that aren't missing, one entry per column.
        std: Standard deviation of these values, one entry per column. It is 1 if the values are
            constant.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std):
            raise ValueError("mean and std have different lengths")
        if not all(each > 0 for each in self.std):
            raise ValueError("std: expected finite positive numbers")

    def __len__(self) -> int:
        return len(self.mean)

    @classmethod
    def fit(cls, values: Array) -> Scale:
        """Return the scale of the columns of `values`, (N, C). Missing values are NaN.

        The values are read in blocks, so that memory is bounded.
        """
        count = np.sum([(~np.isnan(x)).sum(axis=0) for x in blocks(values)], axis=0).clip(1)
        total = np.sum([np.nansum(x, axis=0, dtype=np.float64) for x in blocks(values)], axis=0)
        mean = total / count
        squares = np.sum([np.nansum((x - mean) ** 2, axis=0) for x in blocks(values)], axis=0)
        lowest = np.fmin.reduce([np.fmin.reduce(x, initial=np.inf) for x in blocks(values)])
        highest = np.fmax.reduce([np.fmax.reduce(x, initial=-np.inf) for x in blocks(values)])
        std = np.where(lowest < highest, np.sqrt(squares / count).clip(SMALLEST_STD), 1.0)
        return cls(tuple(mean.tolist()), tuple(std.tolist()))

    @classmethod
    def fit_groups(cls, values: Array, groups: Array, default: Scale, size: int) -> Scale:
        """Return a scale with one entry per group of numbers.

        Args:
            values: Numbers (N,), NaN for missing ones.
            groups: Index of the group of each number, (N,).
            default: Scale with one entry, which is used for groups of fewer than two values.
            size: Number of groups.
        """
        present = ~np.isnan(values)
        groups = groups[present]
        numbers = values[present].astype(np.float64)
        count = np.bincount(groups, minlength=size)
        mean = np.bincount(groups, numbers, size) / count.clip(1)
        squares = np.bincount(groups, (numbers - mean[groups]) ** 2, size)
        std = np.sqrt(squares / count.clip(1))
        is_known = count > 1
        mean = np.where(is_known, mean, default.mean[0])
        std = np.where(is_known, np.where(std > SMALLEST_STD, std, 1.0), default.std[0])
        return cls(tuple(mean.tolist()), tuple(std.tolist()))

    def apply(self, values: Float32s, rows: Array | None = None) -> tuple[Float32s, Array]:
        """Return the standardized numbers, (N, C), and a mask of the missing ones.

        Missing numbers become 0.

        Args:
            values: Numbers (N, C), NaN for missing ones.
            rows: Index of the scale's entry for each row, (N,), if all numbers are in one column.
                None if the scale has one entry per column.

        Returns:
            The numbers as float32, clipped to the range of this type. Then the mask, (N, C) bool.
        """
        mean = np.array(self.mean)
        std = np.array(self.std)
        if rows is not None:
            mean = mean[rows, None]
            std = std[rows, None]
        exact = (values - mean) / std
        numbers: Float32s = np.clip(exact, -LARGEST, LARGEST).astype(np.float32)
        absent = np.isnan(numbers)
        numbers[absent] = 0
        return numbers, absent


def carry_forward(numbers: Float32s, lengths: Ints, growth: Array | None) -> Float32s:
    """Fill missing numbers with the last ones seen in the same sequence.

    Args:
        numbers: Numbers of the steps of all sequences, (N, F), NaN for missing ones.
        lengths: Number of steps of each sequence, (B,).
        growth: Time from the previous step to each step, (N,). None if every step takes time 1.

    Returns:
        Three blocks of F columns, (N, 3 F):

        - The filled numbers. They are NaN before the first number of a sequence.
        - Indicators: 1 for a missing number, else 0.
        - log(1 + time since the number was last seen). Before a number was seen, its time counts
          from the first step of the sequence.

    Reference:
        Che et al. 2018, "Recurrent Neural Networks for Multivariate Time Series with Missing
        Values", doi:10.1038/s41598-018-24271-9.
    """
    absent = np.isnan(numbers)
    row = np.arange(len(numbers))
    starts = np.cumsum(lengths) - lengths
    first = np.repeat(starts, lengths)
    times = (row - first).astype(np.float64)
    if growth is not None:
        # Each sequence is summed by itself, so that its times don't depend on others.
        for begin, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            own = growth[begin : begin + length].clip(0)
            times[begin : begin + length] = np.nancumsum(own, dtype=np.float64)
    seen = np.maximum.accumulate(np.where(absent, first[:, None], row[:, None]), axis=0)
    carried = np.take_along_axis(numbers, seen, axis=0)
    since = np.log1p(times[:, None] - times[seen])
    return np.concatenate((carried, absent, since), axis=1, dtype=np.float32)


def missing_value(step: int, steps: int, name: str) -> str:
    """Return the error message for a missing number.

    Args:
        step: Index of the time step, from 0.
        steps: Number of time steps of the sequence. If it is 1, the message names no step.
        name: Name of the column, or an empty string to name none.
    """
    where = f"step {step + 1}: " if steps > 1 else ""
    of_column = f" of {name}" if name else ""
    return (
        f"{where}missing value{of_column}; to allow missing values, train with data.missing: mask"
    )
