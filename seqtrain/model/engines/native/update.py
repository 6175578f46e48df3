"""Adam, natively: all weights updated in one call, by gradients clipped to a norm."""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from seqtrain.model.engines.native.library import Update, Weight, address, load_library


def describe_weight(
    weight: Tensor, state: Mapping[str, Tensor], *, decay: float = 0.0, l2: float = 0.0
) -> Weight:
    """Describe a weight and its state as the library updates them; it goes by where they lie.

    State is torch's `exp_avg`, `exp_avg_sq` and `step`. Decay is decoupled, a fraction of the
    learning rate; l2 is the factor of the weight that is added to its gradient.
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
    """Update weights, of a table with a sparse gradient the touched rows; return the norm.

    `betas` and `eps` are torch's; gradients are scaled so that their joint norm is at most `limit`.
    Nothing is updated where the norm isn't finite, or a table's rows don't ascend, each once: None.

    Raises:
        TypeError, ValueError: a gradient of another type, device or shape than its weight.
    """
    weights, read = list[Weight](), list[Tensor]()  # they live as long as their addresses are known

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
    return None if norm < 0 else norm
