"""Updates of all weights of a model on a GPU, with few kernel launches.

Except for rounding, the results equal the results of `training.optimizer`. If a loss or a gradient
isn't finite, the GPU sets a flag, and neither this update nor later ones change a weight. So the
host needn't wait for the GPU. The host reads the norm of the gradients later and ends the run.

A table is a weight with a row per token or n-gram. An update changes only the rows that a batch
uses: the touched rows.
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
"""Largest number of elements of a table whose touched rows are selected by a mask.

In larger tables, and with a coalesced gradient, they are selected by their indices.
"""


@dataclass(frozen=True, eq=False)
class WeightUpdate:
    """A weight, and all that an update of it needs. All tensors are on the same device.

    Attributes:
        weight: The weight.
        gradient: Gradient of the weight: dense, or a sparse COO tensor of rows.
        state: State of the optimizer for the weight. It maps "step" to the number of earlier
            updates, a scalar, and the name of each moment to a tensor of the weight's shape.
        decay: Weight decay.
    """

    weight: Tensor
    gradient: Tensor
    state: Mapping[str, Tensor]
    decay: float


class _SelectedRows:
    """The rows of a weight that an update changes.

    If the gradient is dense, all rows are selected. If it is sparse, the touched rows are selected,
    by their indices or by a mask.

    Args:
        gradient: Gradient of the weight.

    Attributes:
        values: Gradient of the selected rows. With a mask, it is the gradient of all rows, with
            zeros in rows that aren't selected.
        rows: Indices of the selected rows, or None.
        mask: True for selected rows, (V, 1) for a table of V rows, or None.
    """

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
        """Return the rows of a tensor to compute the update on.

        - If all rows are selected, this is the tensor itself.
        - If rows are selected by indices, it is a copy of these rows.
        - If rows are selected by a mask, it is a copy of the whole tensor.

        `put` writes a copy back.
        """
        if self.rows is not None:
            return tensor[self.rows]
        return tensor if self.mask is None else tensor.clone()

    def put(self, tensor: Tensor, changed: Tensor) -> None:
        """Write the selected rows back into a tensor.

        Args:
            tensor: The tensor that `take` received. It is changed.
            changed: The result of `take`, after the update.
        """
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
    """Scale down all gradients if their joint norm is too large, and update all weights.

    No weight is changed if the loss or the norm isn't finite, or if `failed` is already 1.

    Args:
        rule: "adamw", "adam" or "sgd".
        updates: The weights and their gradients, at least one. Weights and states are changed.
        failed: Scalar on the device, 0 at first. It becomes 1 if the loss or the norm isn't finite.
        loss: Loss of the batch, a scalar on the device.
        lr: Learning rate.
        betas: Decay rates of Adam's two moments.
        eps: Number that Adam adds to the root of its second moment.
        momentum: Momentum of SGD.
        limit: Largest norm of all gradients together, or infinity.

    Returns:
        The norm before scaling, a scalar on the device.
    """
    selections = [_SelectedRows(update.gradient) for update in updates]
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
    """Add `rate` times a gradient to a weight. Add nothing if `failed` is 1.

    Args:
        weight: The weight. It is changed.
        gradient: Gradient of the weight: dense, or a sparse COO tensor of rows.
        rate: Factor, negative to lower the loss.
        failed: Scalar on the device, see `fused_update`.
    """
    rows, values = None, gradient
    if gradient.is_sparse:
        rows, values = gradient._indices()[0], gradient._values()
    values = torch.where(failed > 0, 0.0, values)
    if rows is None:
        weight.add_(values, alpha=rate)
    else:
        weight.index_add_(0, rows, values, alpha=rate)
