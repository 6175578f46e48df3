"""Predictions for labelled examples, with the text that people read."""

from collections.abc import Sequence
from dataclasses import dataclass

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
