"""Losses of a batch, and the one vector of weights of examples.

A weight of 2 counts as the row twice, and a weight of 0 as no row at all: in the loss, in every
solver, in calibration, and in thresholds.

B examples, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.errors import ConfigError, DataError
from seqtrain.sequences.store import Array, SequenceStore, joined_stores
from seqtrain.text import quote


class Losses(NamedTuple):
    """Losses of a batch.

    Attributes:
        each: Loss of each example, or of each predicted token, in nats, (B,).
        correct: Number of correct predictions, a scalar tensor.
    """

    each: Tensor
    correct: Tensor


def example_losses(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    settings: TrainingConfig,
    class_weights: Tensor | None = None,
) -> Tensor:
    """Return the cross-entropy of each example in nats, times its weight.

    In a multi-label task, the loss is the sum of the binary cross-entropies of all classes. The
    weight of a class then applies to examples that have the class.

    The loss of a batch is the plain mean of these losses. torch's weighted mean would depend on the
    other examples of the batch.

    Args:
        logits: Logits of each example, (B, C).
        labels: Encoded labels, (B,), or (B, C) in a multi-label task.
        weights: Weight of each example, (B,), or None for equal weights.
        settings: Section of the config with label_smoothing.
        class_weights: Weight of each class of a multi-label task, (C,), or None for equal weights.

    Returns:
        The losses, (B,) float32.
    """
    smooth = settings.label_smoothing
    if labels.ndim == 2:
        targets = (labels > 0) * (1 - smooth) + smooth / 2
        losses = functional.binary_cross_entropy_with_logits(
            logits.float(), targets, pos_weight=class_weights, reduction="none"
        ).sum(1)
    else:
        # torch's log_softmax wakes all threads however small the batch is. On a busy machine, this
        # takes longer than the rest of the update.
        logits = logits.float()
        of_classes = logits.logsumexp(1, keepdim=True) - logits
        of_labels = of_classes.gather(1, labels.unsqueeze(1)).squeeze(1)
        losses = (1 - smooth) * of_labels + smooth * of_classes.mean(1)
    if weights is None:
        return losses
    return losses * weights


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
    own: Array | None = None
    if any(store.weights is not None for store in stores):
        mean, given = 1.0, stores[0].weights
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
