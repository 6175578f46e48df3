"""Predictions for labelled examples, with the text that people read."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqtrain.data.labels import Labels, joined_labels


@dataclass(frozen=True)
class PredictedExample:
    """One example of a split and the predicted labels.

    Attributes:
        line: Line or row number in its file, from 1.
        text: The sequence, as people read it.
        labels: The true labels, sorted; one unless the task is multi-label.
        predicted_labels: The predicted labels, sorted.
        separator: Text between labels in `label` and `predicted`, or None in a single-label task.
        probability: Probability of the prediction, in [0, 1]; if multi-label, that of the whole
            set of labels.
        length: Number of time steps.
        file: File that holds the row, or None if the split is one file.
        weights: Each time step as people read it and its weight for the prediction, in nats; or
            None if they weren't computed.
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
        """The true labels as one text."""
        return joined_labels(self.labels, self.separator)

    @property
    def predicted(self) -> str:
        """The predicted labels as one text."""
        return joined_labels(self.predicted_labels, self.separator)

    @property
    def is_correct(self) -> bool:
        """True if the predicted labels are the true ones."""
        return self.predicted_labels == self.labels


def most_confident_errors(rows: Sequence[PredictedExample]) -> list[PredictedExample]:
    """Return the wrong predictions, the most confident first."""
    return sorted((row for row in rows if not row.is_correct), key=lambda row: -row.probability)
