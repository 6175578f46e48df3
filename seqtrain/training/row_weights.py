"""The one vector of weights of rows: their own weights times those of their classes.

A weight of 2 counts as the row twice, and a weight of 0 as no row at all: in the loss, in every
solver, in calibration, and in thresholds.

B rows, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import TrainingConfig
from seqtrain.errors import ConfigError, DataError
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.labels import rare_class
from seqtrain.sequences.store import SequenceStore, joined_stores
from seqtrain.tables.blocks import Array
from seqtrain.text import quote


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of the classes of a run, and of the rows of train and validation.

    Attributes:
        class_counts: Number of rows of train of each class, (C,), counted by their own weights.
        of_classes: Weight of each class, (C,), or None for equal weights.
        of_labels: The same in a multi-label task, else None. The loss has these weights; with one
            label, the weights of rows have the weights of classes in them.
        of_rows: Maps "train" and "validation" to the weight of each row, (B,), or None.
        rare: Index of the rare one of two classes of train, or None if no class is rare. There is
            none with more classes, or if the task is multi-label.
    """

    class_counts: Array
    of_classes: Tensor | None
    of_labels: Tensor | None
    of_rows: dict[str, Array | None]
    rare: int | None

    @classmethod
    def of(cls, settings: TrainingConfig, data: PreparedData) -> RowWeights:
        """Return the weights for the splits of a run.

        Raises:
            ConfigError: If class weights name a label that train lacks, or leave out a label of
                train.
        """
        train = data.splits["train"]
        labels = data.preprocessing.labels
        counts = weighted_counts(train.labels, len(labels), train.weights)
        total = None
        rare = None
        if train.labels.ndim == 1:
            rare = rare_class(counts.tolist())
        elif train.weights is None:
            total = float(len(train))
        else:
            total = float(train.weights.sum())
        of_classes = class_weights(settings, counts, labels, total=total)
        of_rows = {
            name: example_weights(store.labels, store.weights, of_classes)
            for name, store in data.splits.items()
            if name in ("train", "validation")
        }
        of_labels = of_classes if train.labels.ndim == 2 else None
        return cls(counts, of_classes, of_labels, of_rows, rare)

    def rows_of_train(self, data: PreparedData) -> tuple[SequenceStore, Array | None]:
        """Return the rows of train that have a weight above 0, and their weights.

        Raises:
            DataError: If all weights are 0.
        """
        return rows_with_weight(data.splits["train"], self.of_rows["train"])

    def rows_of_refit(self, data: PreparedData) -> tuple[SequenceStore, Array | None]:
        """Return the rows of train and validation with known labels, as `rows_of_train` does."""
        stores = [data.splits[name] for name in ("train", "validation")]
        return rows_with_weight(*joined_rows(stores, self.of_classes))


def with_mean_of_1(weights: Array | None) -> Tensor | None:
    """Return weights divided by their mean, (B,) float32, or None for equal weights.

    So the learning rate suits them as it suits equal weights.
    """
    if weights is None:
        return None
    return torch.from_numpy(weights / weights.mean()).float()


def weighted_counts(labels: Array, classes: int, weights: Array | None) -> Array:
    """Return the sum of the weights of the rows that have each class, (C,).

    Args:
        labels: Encoded labels, (B,) or (B, C).
        classes: Number of classes C.
        weights: Weight of each row, (B,), or None if all are 1.
    """
    if weights is None:
        weights = np.ones(len(labels))
    else:
        weights = weights.astype(np.float64)
    if labels.ndim == 2:
        return weights @ (labels > 0)
    known = labels >= 0
    return np.bincount(labels[known], weights[known], minlength=classes)


def class_weights(
    settings: TrainingConfig, counts: Array, names: Sequence[str], *, total: float | None = None
) -> Tensor | None:
    """Return the weight of each class, (C,) float32, or None for equal weights.

    Balanced weights are as in scikit-learn: number of examples / (number of classes * number of
    examples of the class). In a multi-label task they are the number of examples without the class
    / the number of examples with it.

    Args:
        settings: Section of the config with class_weights.
        counts: Number of examples of each class in train, (C,).
        names: Names of the classes.
        total: Number of examples of a multi-label task. None with one label for each example.

    Raises:
        ConfigError: If the config's weights name a label that `names` lacks, or leave out a label
            of `names`.
    """
    given = settings.class_weights
    if given is None:
        return None
    if given == "balanced":
        divisors = np.where(counts > 0, counts, 1.0)
        if total is None:
            shares = counts.sum() / len(names)
        else:
            shares = total - counts
        return torch.from_numpy(shares / divisors).float()
    found = dict(given)
    allowed = ", ".join(quote(name) for name in names)
    problems = [
        f"training.class_weights: found label {quote(name)}; expected one of: {allowed}"
        for name in sorted(found.keys() - set(names))
    ] + [
        f"training.class_weights: label {quote(name)} has no weight"
        for name in names
        if name not in found
    ]
    if problems:
        raise ConfigError(*problems)
    return torch.tensor([found[name] for name in names], dtype=torch.float32, device="cpu")


def example_weights(labels: Array, own: Array | None, classes: Tensor | None) -> Array | None:
    """Return the weight of each example: its own times that of its class, (B,) float32, or None.

    An unknown label has the weight 1. Classes of a multi-label task are weighted in the loss.

    Args:
        labels: Encoded labels, (B,) or (B, C).
        own: Weight that the user gave to each example, (B,), or None.
        classes: Weight of each class, (C,), or None for equal weights.
    """
    if classes is None or labels.ndim == 2:
        return own
    of_class: Array = np.append(classes.numpy(), np.float32(1))[labels]
    if own is None:
        return of_class
    return of_class * own


def rows_with_weight(
    store: SequenceStore, weights: Array | None
) -> tuple[SequenceStore, Array | None]:
    """Return the rows that have a weight above 0, and their weights.

    Raises:
        DataError: If all weights are 0.
    """
    if weights is None or bool((weights > 0).all()):
        return store, weights
    rows = np.flatnonzero(weights > 0)
    if not len(rows):
        raise DataError("data.train: every row has the weight 0; give some rows a greater weight")
    return store.selection(rows), weights[rows]


def joined_rows(
    stores: Sequence[SequenceStore], classes: Tensor | None
) -> tuple[SequenceStore, Array | None]:
    """Return the rows of train and validation with known labels as one store, and their weights.

    If only train has weights of rows, those of validation get the mean of train, without rows of
    weight 0. So weights that are equal change nothing, whatever their size.

    Args:
        stores: Train and validation.
        classes: Weight of each class, (C,), or None for equal weights.
    """
    rows = joined_stores(stores)
    known = np.flatnonzero(rows.labels.reshape(len(rows), -1).min(axis=1) >= 0)
    own = None
    if any(store.weights is not None for store in stores):
        mean = 1.0
        given = stores[0].weights
        if given is not None and given.any():
            mean = float(given[given > 0].mean())
        parts = []
        for store in stores:
            if store.weights is None:
                parts.append(np.full(len(store), mean, np.float32))
            else:
                parts.append(store.weights)
        own = np.concatenate(parts)[known].astype(np.float32)
    rows = rows.selection(known)
    return rows, example_weights(rows.labels, own, classes)
