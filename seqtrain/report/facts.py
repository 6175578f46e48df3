"""What a report is made of: the figures in a run's files, and its predictions for one split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PredictedExample:
    """One example of a split and the predicted label.

    Attributes:
        line: line of the data file.
        text: the sequence, shortened for people.
        label: the true label.
        predicted: the predicted label.
        probability: of the predicted label, in [0, 1].
        length: time steps.
        file: the file that holds the row; None where the data is one file.
        weights: each time step as people read it, and how much it speaks for the prediction; None
            where nobody asked for it.
    """

    line: int
    text: str
    label: str
    predicted: str
    probability: float
    length: int
    file: str | None = None
    weights: Sequence[tuple[str, float]] | None = None

    @property
    def is_correct(self) -> bool:
        """Whether the predicted label is the true one."""
        return self.predicted == self.label


def most_confident_errors(rows: Sequence[PredictedExample]) -> list[PredictedExample]:
    """Return the wrong predictions, the most confident first."""
    return sorted((row for row in rows if not row.is_correct), key=lambda row: -row.probability)


@dataclass(frozen=True)
class RunFacts:
    """One run.

    Attributes:
        name: of its directory.
        config: the resolved config, as YAML.
        environment: content of environment.json.
        epochs: the "epoch" lines of metrics.jsonl.
        card: names and values of the model card, in order.
        split: name of the split that was scored.
        scores: as `eval --json` prints them.
        prefixes: scores after shares of each sequence, as `eval --steps --json` prints them.
        predictions: one for each example of the split.
        warnings: what limits these figures, a line each.
    """

    name: str
    config: str
    environment: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    card: Mapping[str, str]
    split: str
    scores: Mapping[str, Any]
    prefixes: Sequence[Mapping[str, Any]]
    predictions: Sequence[PredictedExample]
    warnings: Sequence[str] = ()
