"""Adam, natively: the norm of all gradients, and all weights updated in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from seqtrain.model.engines.native.library import Update, Weight, address, load_library


def describe_weight(
    weight: Tensor, state: Mapping[str, Tensor], *, decay: float = 0.0, l2: float = 0.0
) -> Weight:
    """Describe a weight and its state as the library updates them; it goes by where they lie.

    Args:
        weight: a matrix, a vector, or any tensor.
        state: `exp_avg` and `exp_avg_sq`, running means of the gradient and of its square; `step`,
            float32, the updates made; of a table whose rows lie idle, `up_to_date`, int64, the
            update that each row has made last.
        decay: decoupled weight decay, a fraction of the learning rate.
        l2: factor of the weight that is added to its gradient.

    Shape:
        weight, exp_avg, exp_avg_sq (V, …); up_to_date (V,).

    Raises:
        TypeError: another type, device or layout than the library takes.
        ValueError: sizes that don't fit.
    """
    mean, square, up_to_date = state["exp_avg"], state["exp_avg_sq"], state.get("up_to_date")
    if not weight.shape == mean.shape == square.shape:
        raise ValueError("exp_avg, exp_avg_sq: must have the weight's shape")
    if up_to_date is not None and up_to_date.shape != weight.shape[:1]:
        raise ValueError(f"up_to_date: must have {len(weight)} rows")
    rows = len(weight) if weight.ndim > 1 else 1
    return Weight(
        rows=rows,
        row_size=weight.numel() // max(1, rows),
        weight=address(weight),
        mean=address(mean),
        square=address(square),
        step=address(state["step"]),
        up_to_date=address(up_to_date, dtype=torch.int64),
        decay=decay,
        l2=l2,
    )


class Gradients:
    """Gradients of some weights, in the order of an update.

    Args:
        weights: each as `describe_weight` does, with its gradient: dense, or sparse by rows.

    Raises:
        TypeError: a gradient of another type or device than the library takes.
        ValueError: a gradient that doesn't fit its weight.
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

    Args:
        gradients: of the weights.
        lr: learning rate.
        betas: factors of the running means.
        eps: added to the denominator.
        scale: factor of the gradients.

    Raises:
        ValueError: rows of a gradient are outside its weight or out of order; nothing was updated.
    """
    update = gradients.update(scale=scale)
    update.lr, update.eps, (update.beta1, update.beta2) = lr, eps, betas
    if load_library().adam(update) < 0:
        raise ValueError("rows of a gradient: must ascend, each once, within the weight")


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
    """Make up for the updates that rows had no gradient in: what dense AdamW would have done then.

    In closed form: learning rate and bias corrections count as constant meanwhile.

    Args:
        weight: as for `describe_weight`.
        state: as there, with `up_to_date`.
        rows: those to bring up to date, int64, ascending.
        lr: learning rate of the update to come.
        betas: as for `adam`.
        eps: as for `adam`.
        weight_decay: decoupled.

    Raises:
        TypeError: as for `describe_weight`.
        ValueError: as there, or rows are outside the weight or out of order; nothing was updated.
    """
    described = describe_weight(weight, state, decay=weight_decay)
    described.touched, described.which = len(rows), address(rows, dtype=torch.int64)
    weights = (Weight * 1)(described)
    update = Update(threads=torch.get_num_threads(), count=1, weights=weights, scale=1.0, lr=lr)
    update.eps, (update.beta1, update.beta2) = eps, betas
    if load_library().adam_idle(update) < 0:
        raise ValueError(f"rows: must ascend, each once, within 0 to {len(weight) - 1}")
