"""Scores of a classifier on one split, each a mean over examples.

B examples, C classes. Definitions follow scikit-learn; the tests compare with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LENGTH_GROUPS = 5


@dataclass(frozen=True)
class Scores:
    """What `eval --json` and `test.json` hold.

    Attributes:
        loss: mean cross-entropy in nats, over examples whose label train has.
        accuracy, macro_f1, weighted_f1: fractions in [0, 1]; a label that train lacks is wrong.
        num_examples: examples scored.
        num_unknown_labels: examples among them whose label train lacks.
        labels: label of each class index.
        per_class: precision, recall, f1 and support by label.
        confusion_matrix: counts; rows true, columns predicted.
        by_length: accuracy in groups of like length, shortest first.
    """

    loss: float
    accuracy: float
    macro_f1: float
    weighted_f1: float
    num_examples: int
    num_unknown_labels: int
    labels: list[str]
    per_class: dict[str, dict[str, float | int]]
    confusion_matrix: list[list[int]]
    by_length: list[dict[str, float | int]]

    def monitored(self, name: str) -> float:
        """Return a metric in the sense that greater is better."""
        value: float = getattr(self, name)
        return -value if name == "loss" else value


def score(logits: Tensor, labels: Tensor, lengths: Tensor, names: Sequence[str]) -> Scores:
    """Score predictions.

    Args:
        logits: one row an example.
        labels: class index, -1 where train lacks the label.
        lengths: steps of each example.
        names: label of each class index.

    Shape:
        logits: (B, C). labels, lengths: (B,).

    Reference:
        F1 of a class that is neither true nor predicted anywhere is left out of the mean, as
        scikit-learn's `f1_score` does; labels that train lacks are one more class, of F1 0.
    """
    known = labels >= 0
    predicted = logits.argmax(dim=1)
    correct = (predicted == labels).double()
    classes = len(names)
    cells = labels[known] * classes + predicted[known]
    confusion = torch.bincount(cells, minlength=classes * classes).view(classes, classes)
    hits, support = confusion.diagonal().double(), confusion.sum(1).double()
    answers = torch.bincount(predicted, minlength=classes).double()
    precision, recall = _ratio(hits, answers), _ratio(hits, support)
    f1 = _ratio(2 * hits, support + answers)
    seen = (support + answers) > 0
    unknown = int((~known).sum())
    loss = functional.cross_entropy(logits[known].double(), labels[known])
    return Scores(
        loss=float(loss) if bool(known.any()) else 0.0,
        accuracy=float(correct.mean()),
        macro_f1=float(f1.sum() / (int(seen.sum()) + (unknown > 0))),
        weighted_f1=float((f1 * support).sum() / len(labels)),
        num_examples=len(labels),
        num_unknown_labels=unknown,
        labels=list(names),
        per_class={
            name: {
                "precision": float(precision[i]),
                "recall": float(recall[i]),
                "f1": float(f1[i]),
                "support": int(support[i]),
            }
            for i, name in enumerate(names)
        },
        confusion_matrix=confusion.tolist(),
        by_length=_by_length(correct, lengths),
    )


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp(min=1), torch.zeros_like(part))


def _by_length(correct: Tensor, lengths: Tensor) -> list[dict[str, Any]]:
    """Accuracy in at most five groups with like numbers of examples, cut between lengths."""
    shares = torch.linspace(0, 1, LENGTH_GROUPS + 1, dtype=torch.float64)[1:]
    ordered = lengths.sort().values
    places = (shares * len(ordered)).round().long().clamp(min=1) - 1
    groups, low = [], -1
    for high in sorted(set(ordered[places].tolist())):
        inside = (lengths > low) & (lengths <= high)
        low = high
        groups.append(
            {
                "min": int(lengths[inside].min()),
                "max": int(lengths[inside].max()),
                "num_examples": int(inside.sum()),
                "accuracy": float(correct[inside].mean()),
            }
        )
    return groups
