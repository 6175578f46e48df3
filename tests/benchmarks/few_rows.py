"""Epochs, temperature and thresholds by few validation rows, compared on rows that were left out.

    python tests/benchmarks/few_rows.py TRAIN OTHERS... [--seeds 0,1,2]
        [--init "--label COLUMN --sequence COLUMN"]

TRAIN is a random part of a training file, OTHERS are rows of the same file that aren't in it: draw
both yourself, and never from rows of test. `seqtrain init` writes a config for each pair. A model
learns TRAIN, and a refit follows, which is as long as the first model was trained. Both are scored
after each epoch, with the default branch weights, so that each rule finds its epoch. Temperature
and thresholds are compared after the epoch that `seqtrain fit` chooses.

A row of Markdown for each model says how each rule changes the scores on OTHERS: accuracy in
points and log loss for epochs, log loss for temperature, accuracy and macro F1 in points for
thresholds (of the first model, if one of two classes is rare). The first rule of each choice is
that of `seqtrain fit`; a refit has the second one for its epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from common import pair_parser, prepared_pairs
from torch import Tensor
from torch.nn import functional

from seqtrain.config import Config
from seqtrain.evaluation.calibration import fit_temperature, rare_thresholds
from seqtrain.evaluation.scoring import score
from seqtrain.evaluation.thresholds import best_threshold
from seqtrain.model.network import combined
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.store import SequenceStore
from seqtrain.training import phases
from seqtrain.training.events import EpochEvent
from seqtrain.training.scoring import shared_logits
from seqtrain.training.stopping import History, StoppingRule, best_epoch, epochs_for_refit
from seqtrain.training.trainer import Trainer

CPU = torch.device("cpu")
NO_THRESHOLD = [0.5, 0.5]


def least_loss(history: History, rule: StoppingRule) -> int:
    """Return the epoch with the least validation loss, from 1."""
    return int(np.argmin([result.loss for result in history])) + 1


def last_epoch(history: History, rule: StoppingRule) -> int:
    """Return the last epoch before training ended."""
    return len(history)


EPOCHS: dict[str, Callable[[History, StoppingRule], int]] = {
    "best value": best_epoch,
    "last within an error": epochs_for_refit,
    "least loss": least_loss,
    "last": last_epoch,
}
"""Rules for the epoch. The first one is that of the first model, the second that of a refit."""
TEMPERATURES = {"fitted": 0.0, "shrunk by 50 rows": 50.0, "none": math.inf}
"""Number of rows by which the logarithm of the temperature is shrunk towards 0."""
THRESHOLDS = ["as often as validation", "none", "best F1"]


class LongRefit(Trainer):
    """Trainer whose refit has as many epochs as its training."""

    @property
    def refit_epochs(self) -> int:
        """Number of epochs of the refit."""
        return len(self.progress.history)


@dataclass
class Logits:
    """Combined logits after each epoch, (B, C) each."""

    validation: list[Tensor] = field(default_factory=list)
    others: list[Tensor] = field(default_factory=list)


class Scorer:
    """Scores on the left-out rows."""

    def __init__(self, rows: SequenceStore, labels: tuple[str, ...]) -> None:
        self.rows, self.labels = rows, labels
        self.targets = torch.from_numpy(rows.labels)

    def loss(self, logits: Tensor) -> float:
        """Return the log loss."""
        return float(functional.cross_entropy(logits.double(), self.targets))

    def rates(self, logits: Tensor, thresholds: list[float] | None = None) -> tuple[float, float]:
        """Return accuracy and macro F1 in percent."""
        found = score(logits, self.targets, self.rows.lengths, self.labels, thresholds)
        return 100 * found.accuracy, 100 * found.macro_f1


def recorded(trainer: Trainer, phase: Callable[[Trainer], object]) -> Logits:
    """Run a phase, and return the logits after each of its epochs."""
    default = trainer.network.default_branch_weights
    splits, found = trainer.data.splits, Logits()
    for event in phase(trainer):  # type: ignore[attr-defined]
        if isinstance(event, EpochEvent):
            branches = [shared_logits(trainer, splits[name]) for name in ("validation", "test")]
            found.validation.append(combined(branches[0], default))
            found.others.append(combined(branches[1], default))
    return found


def epoch_cells(
    own: int, trainer: Trainer, chosen: Logits, others: Logits, scorer: Scorer
) -> list[str]:
    """Return what each rule for the epoch changes."""
    labels = torch.from_numpy(trainer.data.splits["validation"].labels)

    def scored(epoch: int) -> tuple[float, float]:
        divisor = fit_temperature(chosen.validation[epoch - 1], labels)
        logits = others.others[epoch - 1] / divisor
        return scorer.rates(logits)[0], scorer.loss(logits)

    usual, cells = scored(own), list[str]()
    for rule in EPOCHS.values():
        accuracy, loss = scored(rule(trainer.progress.history, trainer.rule))
        cells.append(f"{accuracy - usual[0]:+.1f} / {loss - usual[1]:+.3f}")
    return [f"{usual[0]:.1f} / {usual[1]:.3f}", *cells]


def temperature_cells(chosen: Tensor, labels: Tensor, others: Tensor, scorer: Scorer) -> list[str]:
    """Return what each rule for the temperature changes."""
    divisor, cells = fit_temperature(chosen, labels), list[str]()
    usual = scorer.loss(others / divisor)
    for rows in TEMPERATURES.values():
        share = len(labels) / (len(labels) + rows)
        cells.append(f"{scorer.loss(others / divisor**share) - usual:+.3f}")
    return cells


def threshold_cells(
    trainer: Trainer, chosen: Tensor, labels: Tensor, others: Tensor, scorer: Scorer
) -> list[str]:
    """Return what each rule for the threshold of a rare class changes."""
    rare = trainer.weights.rare
    assert rare is not None
    divisor = fit_temperature(chosen, labels)
    shift = torch.tensor(trainer.calibration.shift or [0.0])
    chosen, others = chosen / divisor + shift, others / divisor + shift
    best = best_threshold(chosen.double().softmax(1)[:, rare], labels == rare)
    rules = [
        rare_thresholds(chosen, labels, rare) or NO_THRESHOLD,
        NO_THRESHOLD,
        [best if index == rare else 1 - best for index in range(2)],
    ]
    usual, cells = scorer.rates(others, rules[0]), list[str]()
    for thresholds in rules:
        accuracy, macro_f1 = scorer.rates(others, thresholds)
        cells.append(f"{accuracy - usual[0]:+.1f} / {macro_f1 - usual[1]:+.1f}")
    return cells


def measure(config: Config, data: PreparedData, name: str) -> None:
    """Train a model and its refit, and print a row of the table for each."""
    trainer = LongRefit(config, data, CPU)
    scorer = Scorer(data.splits["test"], trainer.labels)
    labels = torch.from_numpy(data.splits["validation"].labels)
    first = recorded(trainer, phases.train)
    history, rule = trainer.progress.history, trainer.rule
    for _ in phases.calibrate(trainer):
        pass
    second = recorded(trainer, phases.refit)
    for model, own, logits in (
        ("first model", best_epoch(history, rule), first),
        ("refit", epochs_for_refit(history, rule), second),
    ):
        chosen, others = first.validation[own - 1], logits.others[own - 1]
        cells = [
            f"{name}, {model}",
            f"{len(labels)}",
            *epoch_cells(own, trainer, first, logits, scorer),
            *temperature_cells(chosen, labels, others, scorer),
        ]
        if model == "first model" and trainer.weights.rare is not None:
            cells += threshold_cells(trainer, chosen, labels, others, scorer)
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Compare the rules for each pair of files and each seed."""
    arguments = pair_parser(__doc__).parse_args()
    columns = ["as fit"]
    for choice, rules in (("epoch", EPOCHS), ("temperature", TEMPERATURES)):
        columns += [f"{choice}: {rule}" for rule in rules]
    columns += [f"threshold: {rule}" for rule in THRESHOLDS]
    print(f"| set | rows that choose | {' | '.join(columns)} |")
    print("|---" * (2 + len(columns)) + "|")
    for name, config, data in prepared_pairs(arguments):
        measure(config, data, name)


if __name__ == "__main__":
    main()
