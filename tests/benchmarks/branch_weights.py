"""Rules for branch weights, compared on rows that were left out.

    python tests/benchmarks/branch_weights.py TRAIN OTHERS... [--seeds 0,1,2] [--folds]
        [--init "--label COLUMN --sequence COLUMN"]

TRAIN is a random part of a training file, OTHERS are rows of the same file that aren't in it: draw
both yourself, and never from rows of test. `seqtrain init` writes a config for each pair. A model
learns TRAIN, as `seqtrain fit` trains it, and a refit follows. Each rule chooses weights by the
logits on validation. With --folds, three models also give logits of all rows, each on the third
that it didn't learn.

Rows are Markdown: accuracy in percent and log loss on OTHERS with the default weights, and the
difference of each rule, for the first model and for the refit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from common import pair_parser, prepared_pairs
from torch import Tensor
from torch.nn import functional

from seqtrain.config import Config
from seqtrain.evaluation.calibration import (
    branch_weight_grid,
    fit_branch_weights,
    fit_temperature,
)
from seqtrain.model.network import combined
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.store import joined_stores
from seqtrain.training import phases
from seqtrain.training.scoring import shared_logits
from seqtrain.training.trainer import Trainer

CPU = torch.device("cpu")
FOLDS = 3
Rule = Callable[[list[Tensor], Tensor, list[float]], list[float]]


def losses(logits: list[Tensor], labels: Tensor, weights: list[float], divisor: float) -> Tensor:
    """Return the log loss of each row, (B,)."""
    mixed = combined(logits, weights).double() / divisor
    return functional.cross_entropy(mixed, labels, reduction="none")


def by_errors(standard_errors: float) -> Rule:
    """Return the rule: the best weights, if they gain more than some standard errors."""

    def rule(logits: list[Tensor], labels: Tensor, default: list[float]) -> list[float]:
        divisor = fit_temperature(combined(logits, default), labels)
        best, least = default, losses(logits, labels, default, divisor)
        before = least
        for weights in branch_weight_grid(len(logits)):
            loss = losses(logits, labels, weights, divisor)
            if loss.sum() < least.sum():
                best, least = weights, loss
        gain = before - least
        return best if gain.sum() > standard_errors * gain.norm() else default

    return rule


def shrunk_by(rows: int) -> Rule:
    """Return the rule: the best weights, shrunk towards the default ones where rows are few."""

    def rule(logits: list[Tensor], labels: Tensor, default: list[float]) -> list[float]:
        best, share = by_errors(0)(logits, labels, default), len(labels) / (len(labels) + rows)
        return [share * b + (1 - share) * d for b, d in zip(best, default, strict=True)]

    return rule


def as_fit(logits: list[Tensor], labels: Tensor, default: list[float]) -> list[float]:
    """Return the weights that `seqtrain fit` chooses."""
    return fit_branch_weights(logits, labels, default) or default


RULES: dict[str, Rule] = {
    "best": by_errors(0),
    "one standard error": by_errors(1),
    "two": by_errors(2),
    "shrunk by 100 rows": shrunk_by(100),
    "as fit": as_fit,
}


def fold_logits(trainer: Trainer) -> tuple[list[Tensor], Tensor]:
    """Return the logits of each branch on rows that it didn't learn, and the rows' labels."""
    rows = joined_stores([trainer.data.splits[name] for name in ("train", "validation")])
    drawn = np.random.default_rng(trainer.config.seed).random(len(rows))
    fold = np.lexsort((drawn, rows.labels)).argsort() % FOLDS  # of each class a third
    parts = []
    for held in range(FOLDS):
        splits = {
            "train": rows.selection(np.flatnonzero(fold != held)),
            "validation": rows.selection(np.flatnonzero(fold == held)),
        }
        model = Trainer(trainer.config, replace(trainer.data, splits=splits), CPU)
        for _ in phases.train(model):
            pass
        parts.append(model.kept_logits)
    order = np.concatenate([np.flatnonzero(fold == held) for held in range(FOLDS)])
    return [*torch.cat(parts, dim=1)], torch.from_numpy(rows.labels[order])


def compared(
    name: str, chosen_on: tuple[list[Tensor], Tensor], trainer: Trainer, others: list[Tensor]
) -> str:
    """Return a row of the table: what the weights of each rule do on left-out rows."""
    logits, labels = chosen_on
    own = torch.from_numpy(trainer.data.splits["test"].labels)
    default = trainer.network.default_branch_weights or [1 / len(logits)] * len(logits)
    shift = torch.tensor(trainer.calibration.shift or [0.0])
    cells, base = [name, str(len(labels))], (0.0, 0.0)
    for rule in (lambda *_: default, *RULES.values()):
        weights = rule(logits, labels, default)
        divisor = fit_temperature(combined(logits, weights), labels)
        mixed = combined(others, weights) / divisor + shift
        accuracy = 100 * float((mixed.argmax(1) == own).double().mean())
        loss = float(functional.cross_entropy(mixed.double(), own))
        is_first = len(cells) == 2
        sign = "" if is_first else "+"
        cells.append(f"{accuracy - base[0]:{sign}.1f} / {loss - base[1]:{sign}.3f}")
        base = (accuracy, loss) if is_first else base
    return f"| {' | '.join(cells)} |"


def measure(config: Config, data: PreparedData, name: str, *, folds: bool) -> None:
    """Train a model and its refit, and print a row of the table for each."""
    trainer = Trainer(config, data, CPU)
    labels = torch.from_numpy(data.splits["validation"].labels)
    for _ in phases.train(trainer):
        pass
    kept = [*trainer.kept_logits]
    for _ in phases.calibrate(trainer):
        pass
    chosen_on = shared_logits(trainer, data.splits["validation"]), labels
    others = shared_logits(trainer, data.splits["test"])
    print(compared(f"{name}, first model", chosen_on, trainer, others))
    for _ in phases.refit(trainer):
        pass
    others = shared_logits(trainer, data.splits["test"])
    print(compared(f"{name}, refit", (kept, labels), trainer, others))
    if folds:
        print(compared(f"{name}, refit by folds", fold_logits(trainer), trainer, others))


def main() -> None:
    """Compare the rules for each pair of files and each seed."""
    parser = pair_parser(__doc__)
    parser.add_argument("--folds", action="store_true")
    arguments = parser.parse_args()
    print(f"| set | rows that choose | default | {' | '.join(RULES)} |")
    print("|---" * (3 + len(RULES)) + "|")
    for name, config, data in prepared_pairs(arguments):
        measure(config, data, name, folds=arguments.folds)


if __name__ == "__main__":
    main()
