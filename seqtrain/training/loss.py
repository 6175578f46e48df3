"""The loss of each example, and the weights of the classes in it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig
from seqtrain.data.store import Ints
from seqtrain.errors import ConfigError
from seqtrain.text import quote


def example_losses(
    logits: Tensor, labels: Tensor, weights: Tensor | None, config: TrainingConfig
) -> Tensor:
    """Return the cross-entropy of each example in nats, times the weight of its class.

    A batch's loss is their plain mean (torch's weighted mean would divide by the batch's weights,
    so that an example counted differently beside other batch-mates).

    Args:
        logits: one row per example.
        labels: class index of each.
        weights: of each class, or None.
        config: label_smoothing.

    Shape:
        logits: (B, C). labels: (B,). weights: (C,). Returns: (B,) float32.
    """
    return functional.cross_entropy(
        logits.float(),
        labels,
        weight=weights,
        reduction="none",
        label_smoothing=config.label_smoothing,
    )


def class_weights(config: TrainingConfig, labels: Ints, names: Sequence[str]) -> Tensor | None:
    """Return the weight of each class in the loss, or None.

    Balanced weights are examples / (classes * examples of the class), as in scikit-learn, so that
    their mean over train's examples is 1.

    Args:
        config: class_weights.
        labels: class index of each example of train.
        names: label of each class index.

    Shape:
        labels: (B,). Returns: (C,) float32.

    Raises:
        ConfigError: given weights name a label that train lacks, or leave one out.
    """
    given = config.class_weights
    if given is None:
        return None
    if given == "balanced":
        counts = torch.bincount(torch.tensor(labels, device="cpu"), minlength=len(names))
        return counts.sum() / (len(names) * counts.clamp(min=1).float())
    weights = dict(given)
    allowed = ", ".join(quote(name) for name in names)
    problems = [
        f"training.class_weights: found label {quote(name)}; expected one of: {allowed}"
        for name in sorted(weights.keys() - set(names))
    ] + [
        f"training.class_weights: label {quote(name)} has no weight"
        for name in names
        if name not in weights
    ]
    if problems:
        raise ConfigError(*problems)
    return torch.tensor([weights[name] for name in names], dtype=torch.float32, device="cpu")
