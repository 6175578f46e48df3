"""Losses of the examples of a batch.

B examples, C classes.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import TrainingConfig


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
