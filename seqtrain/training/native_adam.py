"""Adam and AdamW as torch has them, computed by the native library."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import c_float

from torch import Tensor

from seqtrain.model.engines import native
from seqtrain.model.engines.native.library import Weight
from seqtrain.training.optimizer_state import OptimizerState

BETAS, EPSILON = (0.9, 0.999), 1e-8


class NativeAdam:
    """Clips gradients and updates all weights, each in one call.

    Args:
        state: the weights, and what is kept of each.
        decoupled: whether weight decay is apart from the gradient, as AdamW has it.
    """

    def __init__(self, state: OptimizerState, *, decoupled: bool) -> None:
        self._state = state
        self._decay = "decay" if decoupled else "l2"
        self._described: dict[Tensor, Weight] = {}
        self._gradients = native.Gradients([])
        self._scale = 1.0

    def clip(self, max_norm: float | None) -> float:
        """Remember the scale at which the joint norm of all gradients is at most max_norm.

        Args:
            max_norm: None: gradients stay as they are.

        Returns:
            The norm before scaling, rounded to float32.
        """
        weights = self._state.decay
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
        return c_float(norm).value  # infinite where float32 can't hold it, as gradients are

    def step(self, *, lr: float) -> None:
        """Update the weights by the gradients that `clip` saw, scaled as it found.

        Args:
            lr: learning rate of this update.
        """
        native.adam(self._gradients, lr=lr, betas=BETAS, eps=EPSILON, scale=self._scale)
        self._gradients = native.Gradients([])

    def forget(self) -> None:
        """Describe weights anew: their state was replaced."""
        self._described.clear()

    def _find(self, weights: Iterable[Tensor]) -> native.Gradients:
        found = ((weight, weight.grad) for weight in weights)
        return native.Gradients([(self._describe(w), g) for w, g in found if g is not None])

    def _describe(self, weight: Tensor) -> Weight:
        """Return what the library knows of a weight, once it has a gradient."""
        known = self._described.get(weight)
        if known is None or known.weight != weight.data_ptr():
            decay = {self._decay: self._state.decay[weight]}
            known = native.describe_weight(weight.detach(), self._state.begin(weight), **decay)
            self._described[weight] = known
        return known
