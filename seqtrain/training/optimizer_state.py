"""The weights that an optimizer updates, what it keeps of each, and how a checkpoint holds that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from seqtrain.training.state import check_tensor

NEVER_DECAYING = ("initial_state", "ngrams.weight")
MOMENTS = {
    "adamw": ("exp_avg", "exp_avg_sq"),
    "adam": ("exp_avg", "exp_avg_sq"),
    "sgd": ("momentum_buffer",),
}
"""What a rule keeps of each weight, of the weight's shape and under torch's names."""


class OptimizerState:
    """All weights that learn, in the order of a checkpoint's numbers, and the state of each.

    Args:
        decay: weight decay of each weight.
        by_rows: those that learn by the rows that a batch touches.
        rule: `training.optimizer`.
        of_each: state by weight, where torch's optimizer holds it.

    Attributes:
        decay: as given.
        of_each: state by weight, empty before its first update.
    """

    def __init__(
        self,
        decay: Mapping[Tensor, float],
        by_rows: list[Tensor],
        rule: str,
        of_each: defaultdict[Tensor, dict[str, Tensor]] | None = None,
    ) -> None:
        self.decay = decay
        self.of_each = defaultdict(dict) if of_each is None else of_each
        self._by_rows = {id(weight) for weight in by_rows}
        self._moments = MOMENTS[rule]
        self._counts = rule != "sgd"

    def begin(self, weight: Tensor) -> dict[str, Tensor]:
        """Return the state of a weight; before its first update, moments of zeros."""
        state = self.of_each[weight]
        if not state:
            state |= {name: torch.zeros_like(weight) for name in self._moments}
            state["step"] = torch.zeros((), dtype=torch.float32, device="cpu")
            if id(weight) in self._by_rows:
                device = weight.device
                state["up_to_date"] = torch.zeros(len(weight), dtype=torch.int64, device=device)
        return state

    def tensors(self) -> dict[str, Tensor]:
        """Return what `load` takes, by name."""
        return {
            f"optimizer.{number}.{name}": torch.as_tensor(value, device="cpu")
            for number, weight in enumerate(self.decay)
            for name, value in self.of_each.get(weight, {}).items()
            if value is not None
        }

    def load(
        self,
        tensors: Mapping[str, Tensor],
        *,
        some: bool,
        begun: bool,
        resting: Tensor | None = None,
    ) -> None:
        """Put back what `tensors` returned.

        Args:
            tensors: these among others.
            some: whether state of some weights will do.
            begun: whether updates were made, so that there is state.
            resting: a weight that stayed as it is, and has none.

        Raises:
            ValueError: it isn't what `tensors` returns for these weights.
        """
        states: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".")
                states.setdefault(int(index), {})[name] = tensor
        weights = list(self.decay)
        if states or begun:
            numbers = {i for i, weight in enumerate(weights) if weight is not resting}
            if not (states.keys() == numbers or (some and states.keys() < numbers)):
                raise ValueError(
                    f"optimizer: found state of {len(states)} of {len(weights)} weights"
                )
        for number in sorted(states):
            self._check(number, weights[number], states[number])
        self.of_each.clear()
        for number, state in states.items():
            for name, tensor in state.items():
                self._put(weights[number], name, tensor)

    def _check(self, number: int, weight: Tensor, state: Mapping[str, Tensor]) -> None:
        """A weight has its moments and none more, each of its shape and type, and finite."""
        expected: dict[str, tuple[torch.Size, torch.dtype]] = dict.fromkeys(
            self._moments, (weight.shape, torch.float32)
        )
        if id(weight) in self._by_rows:
            expected["up_to_date"] = (weight.shape[:1], torch.int64)
        if self._counts or id(weight) in self._by_rows:
            expected["step"] = (torch.Size(), torch.float32)
        if state.keys() != expected.keys():
            raise ValueError(f"optimizer.{number}: expected {', '.join(sorted(expected))}")
        for name, tensor in state.items():
            check_tensor(f"optimizer.{number}.{name}", tensor, *expected[name])
        step = state.get("step", torch.ones((), device="cpu"))
        done = state.get("up_to_date", step)
        if step < 1 or bool((done < 0).any() or (done > step).any()):
            raise ValueError(f"optimizer.{number}: no update can have left this state")

    def _put(self, weight: Tensor, name: str, tensor: Tensor) -> None:
        """Hold a tensor of a weight's state on the weight's device; torch wants the step there."""
        on_cpu = name == "step" and (weight.device.type == "mps" or id(weight) in self._by_rows)
        self.of_each[weight][name] = tensor.to("cpu" if on_cpu else weight.device)


def decay_of_each(model: nn.Module, weight_decay: float) -> dict[Tensor, float]:
    """Return the weight decay of each weight that learns, matrices that decay first.

    It spares biases, the learned initial state, and the weights of n-grams.
    """
    decaying: dict[Tensor, float] = {}
    others: dict[Tensor, float] = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad and weight.ndim > 1 and not name.endswith(NEVER_DECAYING):
            decaying[weight] = weight_decay
        elif weight.requires_grad:
            others[weight] = 0.0
    return {**decaying, **others}
