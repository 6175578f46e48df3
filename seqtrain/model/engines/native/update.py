"""Adam, natively: the norm of all gradients, and all weights updated in one call."""

from collections.abc import Mapping, Sequence

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


class Gradients:
    """Gradients of some weights, in the order of an update: dense, or sparse by rows.

    Raises:
        TypeError, ValueError: of another type, device or shape than the library takes.
    """

    def __init__(self, weights: Sequence[tuple[Weight, Tensor]]) -> None:
        self._read: list[Tensor] = []  # lives as long as its address is known
        for weight, gradient in weights:
            weight.touched, weight.which = weight.rows, None
            if gradient.is_sparse:
                rows, gradient = gradient._indices()[0], gradient._values()
                weight.touched = len(rows)
                weight.which = self._address(rows, torch.int64)
            if gradient.numel() != weight.touched * weight.row_size:
                raise ValueError(f"gradient: shape {tuple(gradient.shape)}, doesn't fit its weight")
            weight.gradient = self._address(gradient, torch.float32)
        self._weights = (Weight * len(weights))(*(weight for weight, _ in weights))

    def update(self, *, scale: float = 1.0) -> Update:
        """Return an update by these gradients, each multiplied by `scale`."""
        threads = torch.get_num_threads()
        return Update(threads=threads, count=len(self._weights), weights=self._weights, scale=scale)

    def _address(self, tensor: Tensor, dtype: torch.dtype) -> int:
        self._read.append(tensor.contiguous())
        return address(self._read[-1], dtype=dtype)


def gradient_norm(gradients: Gradients) -> float | None:
    """Return the norm of all gradients together; None: rows of one don't ascend, each once."""
    norm: float = load_library().gradient_norm(gradients.update())
    return None if norm < 0 else norm


def adam(
    gradients: Gradients,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    scale: float = 1.0,
) -> None:
    """Update the weights, and of a table with a sparse gradient the touched rows alone.

    `betas` and `eps` are torch's; gradients are multiplied by `scale` first.

    Raises:
        ValueError: rows of a gradient are outside its weight or out of order; nothing was updated.
    """
    update = gradients.update(scale=scale)
    update.lr, update.eps, (update.beta1, update.beta2) = lr, eps, betas
    if load_library().adam(update) < 0:
        raise ValueError("rows of a gradient: must ascend, each once, within the weight")
