"""Rows of an embedding, natively: a batch's distinct ids, and Adam for the touched rows alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seqtrain.model.native.checks import check_type
from seqtrain.model.native.library import AdamRows, load_library


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
    ids = ids.contiguous()
    place = torch.empty(vocab_size, dtype=torch.int32)
    unique = torch.empty(min(len(ids), vocab_size), dtype=torch.int64)
    inverse = torch.empty_like(ids)
    pointers = (tensor.data_ptr() for tensor in (place, unique, inverse))
    count = library.distinct(ids.data_ptr(), len(ids), vocab_size, *pointers)
    if count < 0:
        raise ValueError(
            f"ids: {int(ids.min())} to {int(ids.max())}, must be 0 to {vocab_size - 1}"
        )
    return unique[:count], inverse


@torch.no_grad()
def adam_rows(
    weight: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    rows: Tensor,
    gradient: Tensor,
    *,
    step: int,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Take a step of AdamW on some rows of a matrix, in place.

    Unlike dense AdamW, the other rows stand still: their moments don't fade, they don't move on
    by them, and they don't decay.

    Args:
        weight: the matrix.
        exp_avg: running mean of the gradient.
        exp_avg_sq: running mean of the squared gradient.
        rows: the touched rows, int64, ascending.
        gradient: theirs.
        step: number of this step, from 1.
        lr: learning rate.
        betas: factors of the running means.
        eps: added to the denominator.
        weight_decay: decoupled decay, a fraction of lr.

    Shape:
        weight, exp_avg, exp_avg_sq (V, E); rows (U,); gradient (U, E).

    Raises:
        RuntimeError: the native library isn't there.
        TypeError: another type or device than the library takes.
        ValueError: sizes that don't fit, rows outside the matrix or out of order.
    """
    library = load_library()
    _check_rows(weight, exp_avg, exp_avg_sq, rows, gradient)
    rows, gradient = rows.contiguous(), gradient.contiguous()
    library.adam_rows(
        AdamRows(
            threads=torch.get_num_threads(),
            touched=len(rows),
            row_size=weight.shape[1],
            rows=rows.data_ptr(),
            gradient=gradient.data_ptr(),
            weight=weight.data_ptr(),
            mean=exp_avg.data_ptr(),
            square=exp_avg_sq.data_ptr(),
            lr=lr,
            beta1=betas[0],
            beta2=betas[1],
            eps=eps,
            weight_decay=weight_decay,
            correction1=1 - betas[0] ** step,
            root_correction2=math.sqrt(1 - betas[1] ** step),
        )
    )


def _check_rows(
    weight: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, rows: Tensor, gradient: Tensor
) -> None:
    check_type("rows", rows, torch.int64)
    check_type("gradient", gradient, torch.float32)
    for name, tensor in (("weight", weight), ("exp_avg", exp_avg), ("exp_avg_sq", exp_avg_sq)):
        check_type(name, tensor, torch.float32)
        if tensor.dim() != 2 or tensor.shape != weight.shape or not tensor.is_contiguous():
            raise ValueError(f"{name}: must be contiguous, (rows, size) as the weight is")
    if rows.dim() != 1 or gradient.shape != (len(rows), weight.shape[1]):
        raise ValueError(
            f"gradient: shape {tuple(gradient.shape)}, must be (rows, {weight.shape[1]})"
        )
    if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= len(weight)):
        raise ValueError(f"rows: must be 0 to {len(weight) - 1}")
    if len(rows) > 1 and not bool((rows.diff() > 0).all()):
        raise ValueError("rows: must ascend, each row once")
