"""Predictions for labelled examples, with the text that people read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seqtrain.evaluation.scores import Scores
from seqtrain.sequences.labels import Labels, joined_labels


@dataclass(frozen=True)
class PredictedExample:
    """One example of a split with its true and its predicted labels.

    Attributes:
        line: Number of the line or row in its file, from 1.
        text: The sequence as text for people.
        labels: The true labels, sorted: one, or any number (also none) if multi-label.
        predicted_labels: The predicted labels, sorted: one, or any number if multi-label.
        separator: Text between labels in `label` and `predicted`, or None in a single-label task.
        probability: Probability of the prediction, in [0, 1]. If multi-label, it is the probability
            of exactly this set of labels.
        length: Number of time steps.
        file: Path of the file with the example, or None if the split is one file.
        weights: For each time step, its text and its weight for the prediction in nats (see
            `occlusion_weights`). In a table of steps, each cell has a weight. Row features follow.
            None if the weights weren't computed.
    """

    line: int
    text: str
    labels: Labels
    predicted_labels: Labels
    separator: str | None
    probability: float
    length: int
    file: str | None = None
    weights: Sequence[tuple[str, float]] | None = None

    @property
    def label(self) -> str:
        """The true labels as one text, with `separator` between them."""
        return joined_labels(self.labels, self.separator)

    @property
    def predicted(self) -> str:
        """The predicted labels as one text, with `separator` between them."""
        return joined_labels(self.predicted_labels, self.separator)

    @property
    def is_correct(self) -> bool:
        """True if the predicted labels are exactly the true labels."""
        return self.predicted_labels == self.labels


def most_confident_errors(rows: Sequence[PredictedExample]) -> list[PredictedExample]:
    """Return the examples with a wrong prediction, the most confident first."""
    return sorted((row for row in rows if not row.is_correct), key=lambda row: -row.probability)


@dataclass(frozen=True)
class SplitResults:
    """Predictions of a run for one split or file, as `errors` and `report` show them.

    Attributes:
        data: Description of the data, such as the name of the file.
        split: Split of the run's config, or None for other data.
        digests: Maps the path of each data file to its SHA-256.
        warnings: Warnings about the rows, one line each.
        model: Description of the model for people.
        scores: Scores of the whole model.
        branches: Maps the name of each branch to its scores; empty if there is one branch.
        errors: The wrong predictions, the most confident first.
        reliability: Pairs of mean probability and accuracy, for predictions with a probability from
            0 to 0.1, from 0.1 to 0.2, and so on. Intervals without predictions have no pair.
        precision_recall: Maps the label of each large class to pairs of recall and precision at
            some thresholds.
        trained_on_rows: True if the model was trained on these rows, so the scores are too high.
    """

    data: str
    split: str | None
    digests: Mapping[str, str]
    warnings: Sequence[str]
    model: str
    scores: Scores
    branches: Mapping[str, Scores]
    errors: Sequence[PredictedExample]
    reliability: Sequence[tuple[float, float]]
    precision_recall: Mapping[str, Sequence[tuple[float, float]]]
    trained_on_rows: bool = False
