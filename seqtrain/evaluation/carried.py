"""The state that the last row of each group ended in: where the group's next row starts."""

import torch
from torch import Tensor

from seqtrain.data.store import Ints
from seqtrain.model.classifier import ClassifierNetwork


class CarriedStates:
    """Keeps one detached state per group; while `frozen` it stays where a batch is classified.

    B rows, G groups, S tensors of a state (h, and c of an LSTM), L layers, H hidden.
    """

    def __init__(self) -> None:
        self.frozen = False
        self._states: dict[int, Tensor] = {}

    def starts(self, groups: Ints | None, model: ClassifierNetwork) -> Tensor | None:
        """Return each row's state, (P, L, B, H): zeros for the first of a group, or -1 (alone)."""
        if groups is None:
            return None
        zeros = model.zero_state(1)[:, :, 0]
        return torch.stack([self._states.get(group, zeros) for group in groups.tolist()], dim=2)

    def keep(self, groups: Ints | None, states: Tensor) -> None:
        """Remember the states (P, L, B, H) that rows of these groups ended in, detached."""
        if groups is None or self.frozen:
            return
        for group, state in zip(groups.tolist(), states.detach().unbind(2), strict=True):
            if group >= 0:
                self._states[group] = state.clone()

    def forget(self) -> None:
        """Let every group start from zeros again."""
        self._states.clear()

    def tensors(self, model: ClassifierNetwork) -> dict[str, Tensor]:
        """Return what `load` takes: groups (G,) and their states (G, P, L, H)."""
        groups = torch.tensor([*self._states], dtype=torch.int64, device="cpu")
        zeros = model.zero_state(1)[:, :, 0]
        states = torch.stack([zeros, *self._states.values()])[1:]
        return {"carried.groups": groups, "carried.states": states}

    def load(self, tensors: dict[str, Tensor], model: ClassifierNetwork) -> None:
        """Put back what `tensors` returned; ValueError where they don't fit the model."""
        self.forget()
        groups, states = tensors.get("carried.groups"), tensors.get("carried.states")
        if groups is None or states is None:
            raise ValueError("carried: the states that groups ended in are missing")
        zeros = model.zero_state(1)[:, :, 0]
        if (
            groups.dtype != torch.int64
            or states.dtype != zeros.dtype
            or states.shape != (*groups.shape, *zeros.shape)
            or not bool(torch.isfinite(states).all())
            or not bool((groups >= 0).all())
            or len({*groups.tolist()}) < len(groups)
        ):
            raise ValueError(f"carried: expected groups (G,) and states (G, {[*zeros.shape]})")
        self._states = dict(zip(groups.tolist(), states.to(zeros.device).unbind(), strict=True))
