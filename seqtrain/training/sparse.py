"""Updates of an embedding's touched rows alone: dense ones can cost more than the model.

A vocabulary has far more rows than a batch has distinct tokens, and torch's embedding can return
the gradient of these alone. Dense Adam moves the other rows too: they go on by their momentum,
which fades. Here a row makes up for such idle steps when its token comes up again (`catch_up`), in
closed form: learning rate and bias corrections count as constant meanwhile. So this learns as dense
Adam does, unlike torch.optim.SparseAdam, which leaves idle rows where they are.

V rows of the embedding, U touched ones, E size of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from seqtrain.model.encoder import distinct_ids
from seqtrain.model.engines import native


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


def update(optimizer: torch.optim.Optimizer, *, lr: float) -> None:
    """Take one step: sparse gradients by rows, all others as the optimizer does it.

    Args:
        optimizer: torch's Adam, AdamW, or SGD with momentum; it keeps the moments of all parameters
            under its own names. Sparse gradients must be coalesced, and are gone afterwards.
        lr: learning rate of this step.
    """
    for group in optimizer.param_groups:
        group["lr"] = lr
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


def catch_up_tokens(
    optimizer: torch.optim.Optimizer, embedding: nn.Module, ids: Tensor | None, *, lr: float
) -> None:
    """Make up for idle steps of tokens' vectors, before they are read.

    Args:
        optimizer: as for `update`.
        embedding: where its gradients aren't sparse, nothing is to be done.
        ids: the tokens (N,), repeated ones too; None: all.
        lr: learning rate meanwhile.
    """
    if isinstance(embedding, nn.Embedding) and embedding.sparse:
        rows = None if ids is None else distinct_ids(ids, embedding.num_embeddings)[0]
        catch_up(optimizer, embedding.weight, rows, lr=lr)


@torch.no_grad()
def catch_up(
    optimizer: torch.optim.Optimizer, parameter: Tensor, rows: Tensor | None, *, lr: float
) -> None:
    """Make up for the idle steps of rows, before they are read.

    Args:
        optimizer: as for `update`.
        parameter: the embedding's weight, (V, E).
        rows: which, ascending (U,); None: all.
        lr: learning rate meanwhile.
    """
    state = optimizer.state[parameter]
    if "up_to_date" not in state:
        return
    if rows is None:
        rows = torch.arange(len(parameter), device=parameter.device)
    (group,) = (g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    if isinstance(optimizer, torch.optim.SGD):
        _sgd_idle(parameter, state, rows, lr=lr, momentum=group["momentum"])
    else:
        idle = native.adam_idle if _native_serves(parameter) else _adam_idle
        idle(parameter, state, rows, **{**_adam_settings(optimizer, group), "lr": lr})


def _update_rows(
    optimizer: torch.optim.Optimizer,
    parameter: nn.Parameter,
    sparse: Tensor,
    group: dict[str, Any],
) -> None:
    """Apply the optimizer's rule to the rows of a parameter that have a gradient."""
    rows, gradient = sparse.indices()[0], sparse.values()
    is_sgd = isinstance(optimizer, torch.optim.SGD)
    state = optimizer.state[parameter]
    if not state:
        state["step"] = torch.zeros((), dtype=torch.float32)
        state["up_to_date"] = torch.zeros(len(parameter), dtype=torch.int64, device=rows.device)
        for name in ("momentum_buffer",) if is_sgd else ("exp_avg", "exp_avg_sq"):
            state[name] = torch.zeros_like(parameter)
    state["step"] += 1
    if group["weight_decay"] and not isinstance(optimizer, torch.optim.AdamW):
        gradient = gradient.add(parameter.detach()[rows], alpha=group["weight_decay"])
    if is_sgd:
        _sgd_rows(parameter, state, rows, gradient, lr=group["lr"], momentum=group["momentum"])
    else:
        by_rows = native.adam_rows if _native_serves(parameter) else _adam_rows
        by_rows(parameter, state, rows, gradient, **_adam_settings(optimizer, group))


def _adam_settings(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> dict[str, Any]:
    """Return lr, betas, eps and, where it is decoupled, weight decay."""
    decay = group["weight_decay"] if isinstance(optimizer, torch.optim.AdamW) else 0.0
    return {"weight_decay": decay, **{name: group[name] for name in ("lr", "betas", "eps")}}


def _native_serves(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and not native.why_not()


@torch.no_grad()
def _adam_rows(
    weight: Tensor,
    state: dict[str, Tensor],
    rows: Tensor,
    gradient: Tensor,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Do what `native.adam_rows` does (arguments there) with torch's operations."""
    step = int(state["step"])
    mean = state["exp_avg"][rows].lerp_(gradient, 1 - betas[0])
    square = state["exp_avg_sq"][rows].mul_(betas[1])
    square.addcmul_(gradient, gradient, value=1 - betas[1])
    spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
    moved = weight[rows] * (1 - lr * weight_decay)
    weight[rows] = moved.addcdiv_(mean, spread, value=-lr / (1 - betas[0] ** step))
    state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
    state["up_to_date"][rows] = step


def _adam_idle(
    weight: Tensor,
    state: dict[str, Tensor],
    rows: Tensor,
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> None:
    """Do what `native.adam_idle` does with torch's operations; why, stands in rows.h."""
    step = int(state["step"])
    idle = (step - state["up_to_date"][rows]).unsqueeze(1)
    ratio = betas[0] / math.sqrt(betas[1])
    moves = ratio * (1 - ratio**idle) / (1 - ratio) * (lr / (1 - betas[0] ** step))
    mean, square = state["exp_avg"][rows], state["exp_avg_sq"][rows]
    spread = (square / (1 - betas[1] ** step)).sqrt_().add_(eps)
    weight[rows] = (weight[rows] - moves * mean / spread) * (1 - lr * weight_decay) ** idle
    state["exp_avg"][rows] = mean * betas[0] ** idle
    state["exp_avg_sq"][rows] = square * betas[1] ** idle
    state["up_to_date"][rows] = step


@torch.no_grad()
def _sgd_rows(
    weight: Tensor,
    state: dict[str, Tensor],
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


def _sgd_idle(
    weight: Tensor, state: dict[str, Tensor], rows: Tensor, *, lr: float, momentum: float
) -> None:
    """Make up for idle steps, each of which moves on by the velocity that is left."""
    step = int(state["step"])
    fading = momentum ** (step - state["up_to_date"][rows]).unsqueeze(1)
    velocity = state["momentum_buffer"][rows]
    weight.index_add_(0, rows, velocity * (momentum * (1 - fading) / (1 - momentum)), alpha=-lr)
    state["momentum_buffer"][rows] = velocity * fading
    state["up_to_date"][rows] = step
