"""torch's Adam or AdamW, its weights updated by the native library; the state stays torch's."""

from __future__ import annotations

import torch
from torch import Tensor

from seqtrain.model.engines import native
from seqtrain.model.engines.native.library import Weight
from seqtrain.training.embedding_rows import new_state

MOMENTS = ("exp_avg", "exp_avg_sq")


class NativeAdam:
    """Clips gradients and updates all weights, each in one call.

    Args:
        optimizer: torch's, which owns weights, settings and state.
        by_rows: tables whose rows lie idle where a batch doesn't touch them.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, by_rows: list[Tensor]) -> None:
        self._torch = optimizer
        self._by_rows = {id(weight) for weight in by_rows}
        self._described: dict[Tensor, Weight] = {}
        self._gradients = native.Gradients([])
        self._scale = 1.0

    def clip(self, max_norm: float | None) -> Tensor:
        """Remember the scale at which the joint norm of all gradients is at most max_norm.

        Args:
            max_norm: None: gradients stay as they are.

        Returns:
            The norm before scaling, a scalar.
        """
        weights = [p for group in self._torch.param_groups for p in group["params"]]
        self._gradients = self._find(weights)
        norm = native.gradient_norm(self._gradients)
        if norm is None:  # a gradient names a row more than once
            for weight in weights:
                if weight.grad is not None and weight.grad.is_sparse:
                    weight.grad = weight.grad.coalesce()
            self._gradients = self._find(weights)
            norm = native.gradient_norm(self._gradients)
            assert norm is not None, "coalesced rows ascend"
        self._scale = 1.0 if max_norm is None else min(1.0, max_norm / (norm + 1e-6))
        return torch.tensor(norm, dtype=torch.float32, device="cpu")

    def step(self, *, lr: float) -> None:
        """Update the weights by the gradients that `clip` saw, scaled as it found.

        Args:
            lr: learning rate of this update.
        """
        group = self._torch.param_groups[0]
        native.adam(
            self._gradients, lr=lr, betas=group["betas"], eps=group["eps"], scale=self._scale
        )
        self._gradients = native.Gradients([])

    def forget(self) -> None:
        """Describe weights anew: their state was replaced."""
        self._described.clear()

    def _find(self, weights: list[Tensor]) -> native.Gradients:
        found = ((weight, weight.grad) for weight in weights)
        return native.Gradients([(self._describe(w), g) for w, g in found if g is not None])

    def _describe(self, weight: Tensor) -> Weight:
        """Return what the library knows of a weight, once it has a gradient."""
        known = self._described.get(weight)
        if known is None or known.weight != weight.data_ptr():
            known = self._described[weight] = self._describe_anew(weight)
        return known

    def _describe_anew(self, weight: Tensor) -> Weight:
        state = self._torch.state[weight]
        if not state:
            state |= new_state(weight, MOMENTS, idle=id(weight) in self._by_rows)
        (group,) = (g for g in self._torch.param_groups if any(p is weight for p in g["params"]))
        decoupled = isinstance(self._torch, torch.optim.AdamW)
        kind = "decay" if decoupled else "l2"
        return native.describe_weight(weight.detach(), state, **{kind: group["weight_decay"]})
