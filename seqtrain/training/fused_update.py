"""Updates of all weights of a model on a GPU: few kernel launches, and no wait for the device.

The rules are the same as in `training.optimizer`, to rounding. If a loss or gradient isn't finite,
the device notices it. Neither this update nor a later one then changes any weight. The host reads
the norm later and ends the run.

U touched rows of a table, V its rows, E size of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ADAM: dict[str, Callable[..., None]] = {"adam": torch._fused_adam_, "adamw": torch._fused_adamw_}
MOST_MASKED = 2**20
"""Numbers in a table, at most, for which a mask of touched rows replaces their list."""


@dataclass(frozen=True, eq=False)
class WeightUpdate:
    """A weight, its gradient, its state in the optimizer, and its weight decay.

    The gradient is dense, or sparse in its rows. `state` has the moments and "step", all on the
    weight's device.
    """

    weight: Tensor
    gradient: Tensor
    state: Mapping[str, Tensor]
    decay: float


class _Selection:
    """The rows of a weight that an update changes: all of them, some by number, or by a mask."""

    def __init__(self, gradient: Tensor) -> None:
        self.rows: Tensor | None = None
        self.mask: Tensor | None = None
        self.values = gradient
        if not gradient.is_sparse:
            return
        if not gradient.is_coalesced() and gradient.numel() <= MOST_MASKED:
            # To coalesce, the host would have to wait for the number of distinct rows.
            touched = torch.zeros(len(gradient), dtype=torch.bool, device=gradient.device)
            self.mask = touched.index_fill_(0, gradient._indices()[0], True).unsqueeze(1)
            self.values = gradient.to_dense()
            return
        gradient = gradient.coalesce()
        self.rows, self.values = gradient._indices()[0], gradient._values()

    def take(self, tensor: Tensor) -> Tensor:
        """Return the selected rows: the tensor itself, or a copy that `put` writes back."""
        if self.rows is not None:
            return tensor[self.rows]
        return tensor if self.mask is None else tensor.clone()

    def put(self, tensor: Tensor, changed: Tensor) -> None:
        """Write the selected rows back."""
        if self.rows is not None:
            tensor.index_copy_(0, self.rows, changed)
        elif self.mask is not None:
            torch.where(self.mask, changed, tensor, out=tensor)


@torch.no_grad()
def fused_update(
    rule: str,
    updates: Sequence[WeightUpdate],
    failed: Tensor,
    loss: Tensor,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    momentum: float,
    limit: float,
) -> Tensor:
    """Clip gradients by their joint norm and update all weights; return the norm before clipping.

    Args:
        rule: adamw, adam or sgd.
        updates: Weights with a gradient.
        failed: 1 if the run has failed, else 0; set to 1 if the loss or the norm isn't finite.
        loss: Loss of the batch.
        lr: Learning rate.
        betas: Decay rates of Adam's moments.
        eps: Added to the root of Adam's second moment.
        momentum: Momentum of SGD.
        limit: Largest norm, or infinity.

    Shape:
        failed, loss, and the returned norm: scalars on the device.
    """
    selections = [_Selection(update.gradient) for update in updates]
    gradients = [selection.values for selection in selections]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    total = norm + loss
    torch.maximum(failed, (total - total != 0).to(failed.dtype), out=failed)  # not 0: not finite
    scale = None if limit == math.inf else ((norm + 1e-6) / limit).clamp(min=1.0)
    steps = [update.state["step"] for update in updates]
    torch._foreach_add_(steps, [1 - failed] * len(steps))
    moments = [name for name in updates[0].state if name != "step"]
    changed = [
        [selection.take(tensor) for tensor in _tensors(update, moments)]
        for update, selection in zip(updates, selections, strict=True)
    ]
    for decay in sorted({update.decay for update in updates}):
        chosen = [i for i, update in enumerate(updates) if update.decay == decay]
        weights, *kept = ([changed[i][part] for i in chosen] for part in range(1 + len(moments)))
        options: dict[str, Any] = {"lr": lr, "weight_decay": decay, "maximize": False}
        options |= {"grad_scale": scale, "found_inf": failed}
        own = [gradients[i] for i in chosen]
        if rule == "sgd":
            options |= {"momentum": momentum, "dampening": 0.0, "nesterov": False}
            torch._fused_sgd_(weights, own, kept[0], is_first_step=False, **options)
        else:
            options |= {"beta1": betas[0], "beta2": betas[1], "eps": eps, "amsgrad": False}
            ADAM[rule](weights, own, *kept, [], [steps[i] for i in chosen], **options)
    for update, selection, parts in zip(updates, selections, changed, strict=True):
        for tensor, part in zip(_tensors(update, moments), parts, strict=True):
            selection.put(tensor, part)
    return norm


def _tensors(update: WeightUpdate, moments: Sequence[str]) -> list[Tensor]:
    return [update.weight, *(update.state[name] for name in moments)]


@torch.no_grad()
def add_gradient(weight: Tensor, gradient: Tensor, rate: float, failed: Tensor) -> None:
    """Add a gradient, dense or sparse in its rows, times a rate, unless the run has failed."""
    rows, values = None, gradient
    if gradient.is_sparse:
        rows, values = gradient._indices()[0], gradient._values()
    values = torch.where(failed > 0, 0.0, values)
    if rows is None:
        weight.add_(values, alpha=rate)
    else:
        weight.index_add_(0, rows, values, alpha=rate)
