"""Where a run stands: all that the loop needs to go on with the same bits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """Counters and sums of a run; with weights and optimizer its whole state.

    Attributes:
        epoch: number of the epoch under way, from 0.
        step: updates made.
        batches_done: batches of this epoch already learned from.
        pretraining: whether it stands before training; its examples are the predicted tokens.
        loss_sum, correct, examples, tokens: of this epoch so far.
        seconds: spent in this epoch so far.
        best_value: best monitored value so far, greater is better; None before the first.
        best_epoch: the epoch that had it, from 1.
        epochs_without_better: since then.
        plateaus: epochs without a better value in the whole run.
    """

    pretraining: bool = False
    epoch: int = 0
    step: int = 0
    batches_done: int = 0
    loss_sum: float = 0.0
    correct: int = 0
    examples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_value: float | None = None
    best_epoch: int = 0
    epochs_without_better: int = 0
    plateaus: int = 0

    def add_batch(self, loss: float, correct: int, examples: int, tokens: int) -> None:
        """Count one update.

        Args:
            loss: mean over the batch's examples.
            correct: examples whose label was answered.
            examples: of the batch.
            tokens: steps of its sequences.
        """
        self.step += 1
        self.batches_done += 1
        self.loss_sum += loss * examples
        self.correct += correct
        self.examples += examples
        self.tokens += tokens

    def note_value(self, value: float) -> bool:
        """Compare an epoch's monitored value, greater is better; say whether it is the best."""
        if self.best_value is None or value > self.best_value:
            self.best_value, self.best_epoch = value, self.epoch + 1
            self.epochs_without_better = 0
            return True
        self.epochs_without_better += 1
        self.plateaus += 1
        return False

    def begin_epoch(self, epoch: int) -> None:
        """Set the sums back for a new epoch."""
        self.epoch, self.batches_done = epoch, 0
        self.loss_sum, self.correct, self.examples, self.tokens = 0.0, 0, 0, 0
        self.seconds = 0.0


def capture(
    optimizer: torch.optim.Optimizer, progress: Progress
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state beside the weights as named tensors and JSON values."""
    tensors: dict[str, Tensor] = {}
    for index, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            if value is not None:
                tensors[f"optimizer.{index}.{name}"] = torch.as_tensor(value)
    return tensors, asdict(progress)


def restore(
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, Tensor],
    values: dict[str, Any],
) -> Progress:
    """Put back what `capture` returned.

    Raises:
        ValueError: it isn't what `capture` returns for this optimizer.
    """
    progress = checked_progress(values)
    states: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".")
            states.setdefault(int(index), {})[name] = tensor
    if states or progress.step:
        _check_states(optimizer, states, some=progress.pretraining)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    for state in optimizer.state.values():
        if "up_to_date" in state:  # torch makes every state but `step` float, as the parameter is
            state["up_to_date"] = state["up_to_date"].long()
    return progress


def checked_progress(values: dict[str, Any]) -> Progress:
    """Return counters that a run can have had: whole numbers from 0, finite sums, in proportion.

    Raises:
        ValueError: a run can't have had these.
    """
    wanted = asdict(Progress())
    if values.keys() != wanted.keys():
        raise ValueError(f"progress: expected {', '.join(wanted)}")
    if type(values["pretraining"]) is not bool:
        raise ValueError("progress.pretraining: expected true or false")
    for name, value in values.items():
        whole = isinstance(wanted[name], int)
        if name == "pretraining" or (name == "best_value" and value is None):
            continue
        if type(value) not in ((int,) if whole else (int, float)) or not math.isfinite(value):
            raise ValueError(f"progress.{name}: found {value!r}; expected a number")
        if value < 0 and name not in ("best_value", "loss_sum"):
            raise ValueError(f"progress.{name}: found {value!r}; expected a number from 0")
    progress = Progress(**values)
    sums = progress.examples, progress.tokens, progress.seconds
    if not (
        progress.step >= progress.batches_done
        and all(bool(value) == bool(progress.batches_done) for value in sums)
        and progress.correct <= progress.examples
        and (progress.pretraining or progress.examples <= progress.tokens)
        and progress.best_epoch <= progress.epoch
        and (progress.best_value is None) == (progress.best_epoch == 0)
    ):
        raise ValueError("progress: the counters contradict each other")
    return progress


def _check_states(
    optimizer: torch.optim.Optimizer, states: dict[int, dict[str, Tensor]], *, some: bool
) -> None:
    """Every parameter's moments and none more, each of its shape and type, and finite.

    In pretraining those of `some` will do: the head has none, nor words that no batch held yet.
    """
    sgd = isinstance(optimizer, torch.optim.SGD)
    dense = {"momentum_buffer"} if sgd else {"exp_avg", "exp_avg_sq", "step"}
    by_rows = dense | {"step", "up_to_date"}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = set(range(len(parameters)))
    if not (states.keys() == numbers or (some and states.keys() < numbers)):
        raise ValueError(f"optimizer: found state of {len(states)} of {len(parameters)} weights")
    for index in sorted(states):
        parameter = parameters[index]
        if states[index].keys() not in (dense, by_rows):
            raise ValueError(f"optimizer.{index}: expected {', '.join(sorted(dense))}")
        expected = {
            **dict.fromkeys(dense, (parameter.shape, torch.float32)),
            "step": (torch.Size(), torch.float32),
            "up_to_date": (parameter.shape[:1], torch.int64),
        }
        for name, tensor in states[index].items():
            check_tensor(f"optimizer.{index}.{name}", tensor, *expected[name])


def check_tensor(name: str, tensor: Tensor, shape: torch.Size, kind: torch.dtype) -> None:
    """Refuse a saved tensor of another shape or type, or with values that aren't finite.

    Raises:
        ValueError: as said.
    """
    if tensor.shape != shape or tensor.dtype != kind:
        raise ValueError(
            f"{name}: found {tensor.dtype} {list(tensor.shape)}, expected {kind} {list(shape)}"
        )
    if not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name}: holds values that aren't finite")
