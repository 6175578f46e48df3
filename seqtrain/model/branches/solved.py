"""Solved branches: features of a sequence, times what a solver of scikit-learn found.

A solved branch has no gradient, no learning rate and no epochs. Only `solve` imports scikit-learn.
The solver's results are kept as buffers, so a model folder needs no scikit-learn and no pickle.

B sequences, F features, C classes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqtrain.model.branches.branch import Branch
from seqtrain.model.branches.logistic import Weights, solve_logistic
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Array


@dataclass(frozen=True)
class SolverInput:
    """Labelled rows for a solver.

    Attributes:
        store: Labelled rows.
        weights: Weight of each row, (B,), greater than 0. A row with a weight of 2 counts like two
            equal rows.
        seed: Seed of folds and other random choices.
        num_train: Number of rows of the training split. A refit has more, but keeps the choices
            that depend on it.
    """

    store: SequenceStore
    weights: Weights
    seed: int
    num_train: int


class SolvedBranch(Branch):
    """Branch whose arrays a solver sets at once, before the first update.

    In training mode the classifier leaves out such branches.
    """

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """Set all arrays that `solve` will set to zero."""
        for name in self.state_dict():
            self.get_buffer(name).zero_()

    @abstractmethod
    def solve(self, given: SolverInput) -> None:
        """Fit the arrays to labelled rows, in place."""


class LinearBranch(SolvedBranch):
    """Solved branch with one weight for each feature and class.

    Args:
        num_features: Number of features.
        num_classes: Number of classes.

    Attributes:
        weight: (F, C) float32.
        intercept: (C,) float32.
    """

    weight: Tensor
    intercept: Tensor

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(num_features, num_classes))
        self.register_buffer("intercept", torch.zeros(num_classes))

    @abstractmethod
    def features(self, store: SequenceStore) -> Any:
        """Return the features of each row, (B, F): float32, dense or a SciPy CSR matrix."""

    def solve(self, given: SolverInput) -> None:
        """Fit a logistic regression to the features of labelled rows."""
        features, labels = self.features(given.store), given.store.labels
        classes = len(self.intercept)
        found = solve_logistic(features, labels, given.weights, classes, given.seed)
        self.keep_coefficients(*found)

    def keep_coefficients(self, coefficients: Array, intercepts: Array) -> None:
        """Set weight and intercept to the coefficients of a linear model.

        Args:
            coefficients: One row for each class, (C, F).
            intercepts: (C,).
        """
        self.weight.copy_(torch.from_numpy(np.ascontiguousarray(coefficients.T)))
        self.intercept.copy_(torch.from_numpy(np.ascontiguousarray(intercepts)))


def class_matrix(labels: Array, num_classes: int) -> npt.NDArray[np.bool_]:
    """Return True for each class that a row has, (B, C).

    Args:
        labels: Class index of each row, (B,). In a multi-label task a matrix (B, C), with a
            positive number for each class that a row has.
        num_classes: Number of classes, C.
    """
    if labels.ndim == 2:
        return np.asarray(labels > 0)
    return np.asarray(labels[:, None] == np.arange(num_classes))
