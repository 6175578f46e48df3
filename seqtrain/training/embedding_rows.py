"""An optimizer's rule on some rows of an embedding: updates, and idle updates made up for.

Dense Adam also moves the rows that a batch doesn't touch: they go on by their momentum, which
fades. Here a row makes up for such idle updates at once, in closed form: learning rate and bias
corrections count as constant meanwhile. So this learns as dense Adam does, unlike
torch.optim.SparseAdam, which leaves idle rows where they are.

V rows of the embedding, U touched ones, E size of a row.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from seqtrain.model.engines import native

ALIKE = 1e-6
"""Factors of a geometric series nearer than this count as equal."""


def rows_of(weight: Tensor, state: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    """Return copies of some rows of a weight and of its state, by name."""
    parts = {name: values[rows] if values.ndim else values for name, values in state.items()}
    return {"weight": weight[rows], **parts}


def native_serves(weight: Tensor) -> bool:
    """Whether the native Adam can take a weight."""
    mine = weight.device.type == "cpu" and weight.dtype == torch.float32
    return mine and weight.is_contiguous() and not native.why_not()


@torch.no_grad()
def torch_adam_rows(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    gradient: Tensor,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Take a step of AdamW on some rows, as `native.adam` does, with torch's operations."""
    step = int(state["step"])
    mean = state["exp_avg"][rows].lerp_(gradient, 1 - betas[0])
    square = state["exp_avg_sq"][rows].mul_(betas[1])
    square.addcmul_(gradient, gradient, value=1 - betas[1])
    spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
    moved = weight[rows] * (1 - lr * weight_decay)
    weight[rows] = moved.addcdiv_(mean, spread, value=-lr / (1 - betas[0] ** step))
    state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
    state["up_to_date"][rows] = step


@torch.no_grad()
def torch_adam_idle(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Do what `native.adam_idle` does with torch's operations; why, stands in update.h."""
    step = int(state["step"])
    idle = (step - state["up_to_date"][rows]).double().unsqueeze(1)
    ratio, kept = betas[0] / betas[1] ** 0.5, 1 - lr * weight_decay
    fading = ratio**idle
    if abs(kept - ratio) < ALIKE:
        series = idle * fading
    else:
        series = ratio * (kept**idle - fading) / (kept - ratio)
    moves = (series * lr / (1 - betas[0] ** step)).to(weight.dtype)
    mean, square = state["exp_avg"][rows], state["exp_avg_sq"][rows]
    spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
    weight[rows] = weight[rows] * (kept**idle).to(weight.dtype) - moves * mean / spread
    state["exp_avg"][rows] = mean * (betas[0] ** idle).to(weight.dtype)
    state["exp_avg_sq"][rows] = square * (betas[1] ** idle).to(weight.dtype)
    state["up_to_date"][rows] = step


@torch.no_grad()
def sgd_rows(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    gradient: Tensor,
    *,
    lr: float,
    momentum: float,
) -> None:
    """Take a step of SGD with momentum on some rows."""
    velocity = state["momentum_buffer"][rows].mul_(momentum).add_(gradient)
    weight.index_add_(0, rows, velocity, alpha=-lr)
    state["momentum_buffer"][rows] = velocity
    state["up_to_date"][rows] = int(state["step"])


@torch.no_grad()
def sgd_idle(
    weight: Tensor, state: Mapping[str, Tensor], rows: Tensor, *, lr: float, momentum: float
) -> None:
    """Make up for idle steps, each of which moves on by the velocity that is left."""
    step = int(state["step"])
    fading = momentum ** (step - state["up_to_date"][rows]).float().unsqueeze(1)
    velocity = state["momentum_buffer"][rows]
    weight.index_add_(0, rows, velocity * (momentum * (1 - fading) / (1 - momentum)), alpha=-lr)
    state["momentum_buffer"][rows] = velocity * fading
    state["up_to_date"][rows] = step
