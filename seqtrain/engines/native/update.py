"""Adam in C++: one call clips the gradients by their norm and updates all weights."""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from seqtrain.engines.native.library import Update, Weight, address, load_library


def describe_weight(
    weight: Tensor, state: Mapping[str, Tensor], *, decay: float = 0.0, l2: float = 0.0
) -> Weight:
    """Return a `Weight` for the library, with the addresses of a weight and its state.

    Args:
        weight: the weight.
        state: torch's `exp_avg`, `exp_avg_sq` and `step`, which `adam` changes in place. The caller
            must keep weight and state alive.
        decay: decoupled weight decay (AdamW): an update scales the weight by 1 - lr * decay.
        l2: L2 penalty: l2 * weight is added to the gradient.

    Raises:
        ValueError: If the state doesn't have the weight's shape.
        TypeError: If a tensor isn't contiguous float32 on the CPU.
    """
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    if not weight.shape == mean.shape == square.shape:
        raise ValueError("exp_avg, exp_avg_sq: must have the weight's shape")
    rows = len(weight) if weight.ndim > 1 else 1
    return Weight(
        rows=rows,
        row_size=weight.numel() // max(1, rows),
        weight=address(weight),
        mean=address(mean),
        square=address(square),
        step=address(state["step"]),
        decay=decay,
        l2=l2,
    )


def adam(
    gradients: Iterable[tuple[Weight, Tensor]],
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    limit: float = math.inf,
) -> float | None:
    """Update weights and their state in place by one step of Adam.

    If a gradient is sparse, only the rows in the gradient are updated.

    Args:
        gradients: weights with their gradients, which aren't changed.
        lr: learning rate.
        betas: as in torch.
        eps: as in torch.
        limit: largest joint norm of the gradients. Larger gradients are scaled down to this norm.

    Returns:
        The joint norm of the gradients before scaling. If the norm is infinite or NaN, nothing has
        been updated.

        The result is None if the rows of a sparse gradient aren't ascending and unique. Then
        nothing has been updated either.

    Raises:
        TypeError: If a gradient isn't float32 on the CPU.
        ValueError: If a gradient doesn't have the number of values of its weight or rows.
        RuntimeError: If the compiled library can't be used.
    """
    weights = list[Weight]()
    read = list[Tensor]()  # keeps the tensors alive whose addresses the library gets

    def address_of(tensor: Tensor, dtype: torch.dtype = torch.float32) -> int:
        read.append(tensor.contiguous())
        return address(read[-1], dtype=dtype)

    for weight, gradient in gradients:
        weight.touched, weight.which = weight.rows, None
        if gradient.is_sparse:
            rows, gradient = gradient._indices()[0], gradient._values()
            weight.touched, weight.which = len(rows), address_of(rows, torch.int64)
        if gradient.numel() != weight.touched * weight.row_size:
            raise ValueError(f"gradient: shape {tuple(gradient.shape)}, doesn't fit its weight")
        weight.gradient = address_of(gradient)
        weights.append(weight)
    update = Update(torch.get_num_threads(), len(weights), (Weight * len(weights))(*weights))
    update.lr, update.eps, update.limit, (update.beta1, update.beta2) = lr, eps, limit, betas
    norm: float = load_library().adam(update)
    if norm < 0:
        return None
    return norm
