"""Updates of an embedding's touched rows alone: dense ones can cost more than the model.

A vocabulary has far more rows than a batch has distinct tokens. torch's embedding returns a sparse
gradient that holds the batch's rows; here the optimizer's rule is applied to them, and the other
rows stand still: their moments don't fade, they don't move on by them, and they don't decay. Dense
optimizers differ in just that (as torch.optim.SparseAdam does from Adam).

V rows of the embedding, U touched ones, E size of a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from seqtrain.model import native


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float | None) -> Tensor:
    """Scale gradients, dense and sparse, so that their joint norm is at most max_norm.

    Sparse gradients come out coalesced: each row once, in ascending order.

    Args:
        parameters: those with gradients; others are passed over.
        max_norm: None: leave them as they are.

    Returns:
        The norm before scaling, as torch.nn.utils.clip_grad_norm_ computes it; a scalar.
    """
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = _coalesce(parameter.grad)
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm: Tensor = torch.linalg.vector_norm(norms)
    if max_norm is not None:
        scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale)
    return norm


def update(optimizer: torch.optim.Optimizer) -> None:
    """Take one step: sparse gradients by rows, all others as the optimizer does it.

    Args:
        optimizer: torch's Adam, AdamW, or SGD with momentum; it keeps the moments of all parameters
            under its own names. Sparse gradients must be coalesced, and are gone afterwards.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and parameter.grad.is_sparse:
                _update_rows(optimizer, parameter, parameter.grad, group)
                parameter.grad = None
    optimizer.step()


def _coalesce(gradient: Tensor) -> Tensor:
    """Sum the entries of each row; for nothing where the rows ascend, as those of distinct ids."""
    rows = gradient._indices()[0]
    if not bool((rows[1:] > rows[:-1]).all()):
        return gradient.coalesce()
    values = gradient._values()
    return torch.sparse_coo_tensor(
        rows[None], values, gradient.shape, is_coalesced=True, check_invariants=False
    )


@torch.no_grad()
def _update_rows(
    optimizer: torch.optim.Optimizer,
    parameter: nn.Parameter,
    sparse: Tensor,
    group: dict[str, Any],
) -> None:
    """Apply the optimizer's rule to the rows of a parameter that have a gradient."""
    rows, gradient = sparse.indices()[0], sparse.values()
    state = optimizer.state[parameter]
    decoupled = isinstance(optimizer, torch.optim.AdamW)
    if group["weight_decay"] and not decoupled:
        gradient = gradient.add(parameter[rows], alpha=group["weight_decay"])
    if isinstance(optimizer, torch.optim.SGD):
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        moment = state["momentum_buffer"][rows].mul_(group["momentum"]).add_(gradient)
        state["momentum_buffer"][rows] = moment
        parameter.index_add_(0, rows, moment, alpha=-group["lr"])
        return
    if not state:
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["exp_avg"] = torch.zeros_like(parameter)
        state["exp_avg_sq"] = torch.zeros_like(parameter)
    state["step"] += 1
    by_rows = native.adam_rows if _native_serves(parameter) else _adam_rows
    by_rows(
        parameter,
        state["exp_avg"],
        state["exp_avg_sq"],
        rows,
        gradient,
        step=int(state["step"]),
        lr=group["lr"],
        betas=group["betas"],
        eps=group["eps"],
        weight_decay=group["weight_decay"] if decoupled else 0.0,
    )


def _native_serves(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not native.why_not()


def _adam_rows(
    weight: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    rows: Tensor,
    gradient: Tensor,
    *,
    step: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Do what `native.adam_rows` does (arguments there) with torch's operations."""
    mean = exp_avg[rows].lerp_(gradient, 1 - betas[0])
    square = exp_avg_sq[rows].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    exp_avg[rows], exp_avg_sq[rows] = mean, square
    spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
    moved = weight[rows] * (1 - lr * weight_decay)
    weight[rows] = moved.addcdiv_(mean, spread, value=-lr / (1 - betas[0] ** step))
