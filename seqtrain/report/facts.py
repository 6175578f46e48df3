"""What a report is made of: one run's figures, as they stand in its files, and its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AnsweredExample:
    """One example of the reported split and the model's answer.

    Attributes:
        line: line of the data file.
        text: the sequence in short, for people.
        label: the true one.
        answer: the model's.
        probability: of the answer, in [0, 1].
        length: time steps.
        file: the file inside the folder that was read, or None where the data is one file.
        weights: each time step as people read it, and how much it speaks for the answer; None: not
            asked for.
    """

    line: int
    text: str
    label: str
    answer: str
    probability: float
    length: int
    file: str | None = None
    weights: Sequence[tuple[str, float]] | None = None

    @property
    def is_correct(self) -> bool:
        """Whether the answer is the label."""
        return self.answer == self.label


@dataclass(frozen=True)
class RunFacts:
    """One run.

    Attributes:
        name: of its directory.
        config: the resolved config, as YAML.
        environment: what environment.json holds.
        epochs: the "epoch" lines of metrics.jsonl.
        card: names and values of the model card, in order.
        split: which split the scores and answers are of.
        scores: as `eval --json` has them.
        prefixes: scores after shares of each sequence, as `eval --steps --json` has them.
        answers: of every example of the split.
    """

    name: str
    config: str
    environment: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    card: Mapping[str, str]
    split: str
    scores: Mapping[str, Any]
    prefixes: Sequence[Mapping[str, Any]]
    answers: Sequence[AnsweredExample]
