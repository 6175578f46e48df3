"""Where a run stands: all that the loop needs to go on with the same bits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """Counters and sums of a run; with weights, optimizer and generators its whole state.

    Attributes:
        epoch: number of the epoch under way, from 0.
        step: updates made.
        batches_done: batches of this epoch already learned from.
        loss_sum, correct, examples, tokens: of this epoch so far.
        seconds: spent in this epoch so far.
        best_value: best monitored value so far, greater is better; None before the first.
        best_epoch: the epoch that had it, from 1.
        epochs_without_better: since then.
        plateaus: epochs without a better value in the whole run.
        pretrained_epochs: passes made before training; pretraining is saved when it is over.
    """

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
    pretrained_epochs: int = 0

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
    optimizer: torch.optim.Optimizer, progress: Progress, device: torch.device
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state beside the weights as named tensors and JSON values."""
    tensors: dict[str, Tensor] = {"generator.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        tensors["generator.cuda"] = torch.cuda.get_rng_state(device)
    for index, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            if value is not None:
                tensors[f"optimizer.{index}.{name}"] = torch.as_tensor(value)
    return tensors, asdict(progress)


def restore(
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    tensors: dict[str, Tensor],
    values: dict[str, Any],
) -> Progress:
    """Put back what `capture` returned; generators last."""
    states: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        kind, *rest = key.split(".")
        if kind == "optimizer":
            states.setdefault(int(rest[0]), {})[rest[1]] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": states, "param_groups": groups})
    for state in optimizer.state.values():
        if "up_to_date" in state:  # torch makes every state but `step` float, as the parameter is
            state["up_to_date"] = state["up_to_date"].long()
    torch.set_rng_state(tensors["generator.cpu"])
    if device.type == "cuda" and "generator.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["generator.cuda"], device)
    return Progress(**values)
