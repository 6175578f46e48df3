"""Rows of an embedding, natively: a batch's distinct ids, and Adam for the touched rows alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from seqtrain.model.engines.native.buffers import address, new
from seqtrain.model.engines.native.checks import check_type
from seqtrain.model.engines.native.library import AdamRows, load_library


def distinct(ids: Tensor, vocab_size: int) -> tuple[Tensor, Tensor]:
    """Sort out repeated ids: what `torch.unique(ids, return_inverse=True)` does, by counting.

    Args:
        ids: int64, on the CPU.
        vocab_size: ids are below it.

    Shape:
        ids (N,) -> distinct ids, ascending (U,), and where each id stands among them (N,).

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: not int64 on the CPU.
        ValueError: not one-dimensional, or an id outside the vocabulary.
    """
    library = load_library()
    check_type("ids", ids, torch.int64)
    if ids.dim() != 1:
        raise ValueError(f"ids: shape {tuple(ids.shape)}, must be (tokens,)")
    place = new(vocab_size, dtype=torch.int32)
    unique = new(min(len(ids), vocab_size), dtype=torch.int64)
    inverse = new(len(ids), dtype=torch.int64)
    count = library.distinct(
        address(ids.contiguous(), dtype=torch.int64),
        len(ids),
        vocab_size,
        address(place, dtype=torch.int32),
        *(address(tensor, dtype=torch.int64) for tensor in (unique, inverse)),
    )
    if count < 0:
        raise ValueError(
            f"ids: {int(ids.min())} to {int(ids.max())}, must be 0 to {vocab_size - 1}"
        )
    return unique[:count], inverse


@torch.no_grad()
def adam_rows(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    gradient: Tensor,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Take a step of AdamW on some rows of a matrix, in place; the other rows stand still.

    Args:
        weight: the matrix.
        state: `exp_avg` and `exp_avg_sq`, running means of the gradient and of its square; `step`,
            the number of this step, from 1; `up_to_date`, int64, the step each row has made last.
        rows: the touched rows, int64, ascending.
        gradient: theirs.
        lr: learning rate.
        betas: factors of the running means.
        eps: added to the denominator.
        weight_decay: decoupled decay, a fraction of lr.

    Shape:
        weight, exp_avg, exp_avg_sq (V, E); up_to_date (V,); rows (U,); gradient (U, E).

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: another type or device than the library takes.
        ValueError: sizes that don't fit, rows outside the matrix or out of order.
    """
    check_type("gradient", gradient, torch.float32)
    if gradient.shape != (len(rows), *weight.shape[1:]):
        raise ValueError(
            f"gradient: shape {tuple(gradient.shape)}, must be (rows, {weight.shape[1]})"
        )
    call = _describe(weight, state, rows, lr, betas, eps, weight_decay)
    gradient = gradient.contiguous()
    call.gradient = address(gradient)
    load_library().adam_rows(call)


@torch.no_grad()
def adam_idle(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Make up for the steps that rows had no gradient in: what dense AdamW would have done then.

    In closed form: lr and the bias corrections count as constant meanwhile. Arguments, shapes and
    errors as for `adam_rows`, but that `step` is the number of steps already made.
    """
    load_library().adam_idle(_describe(weight, state, rows, lr, betas, eps, weight_decay))


def _describe(
    weight: Tensor,
    state: Mapping[str, Tensor],
    rows: Tensor,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> AdamRows:
    """Check what the library is about to read, and write it down as it reads it."""
    for name, tensor in (
        ("weight", weight),
        ("exp_avg", state["exp_avg"]),
        ("exp_avg_sq", state["exp_avg_sq"]),
    ):
        check_type(name, tensor, torch.float32)
        if tensor.dim() != 2 or tensor.shape != weight.shape or not tensor.is_contiguous():
            raise ValueError(f"{name}: must be contiguous, (rows, size) as the weight is")
    up_to_date = state["up_to_date"]
    for name, tensor in (("rows", rows), ("up_to_date", up_to_date)):
        check_type(name, tensor, torch.int64)
        if tensor.dim() != 1 or not tensor.is_contiguous():
            raise ValueError(f"{name}: must be contiguous, of one dimension")
    if len(up_to_date) != len(weight):
        raise ValueError(f"up_to_date: {len(up_to_date)} rows, must be {len(weight)}")
    if len(rows) > 1 and not bool((rows[1:] > rows[:-1]).all()):
        raise ValueError("rows: must ascend, each row once")
    if len(rows) and (int(rows[0]) < 0 or int(rows[-1]) >= len(weight)):
        raise ValueError(f"rows: must be 0 to {len(weight) - 1}")
    step = int(state["step"])
    return AdamRows(
        threads=torch.get_num_threads(),
        touched=len(rows),
        row_size=weight.shape[1],
        rows=address(rows, dtype=torch.int64),
        weight=address(weight),
        mean=address(state["exp_avg"]),
        square=address(state["exp_avg_sq"]),
        up_to_date=address(up_to_date, dtype=torch.int64),
        step=step,
        lr=lr,
        beta1=betas[0],
        beta2=betas[1],
        eps=eps,
        weight_decay=weight_decay,
        correction1=1 - betas[0] ** step,
        root_correction2=math.sqrt(1 - betas[1] ** step),
    )
