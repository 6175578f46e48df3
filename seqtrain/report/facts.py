"""What a report is made of: the figures in a run's files, and its predictions for one split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from seqtrain.config.schema import Config
from seqtrain.data.labels import Labels, joined_labels
from seqtrain.data.sources import named_text
from seqtrain.files.reading import number_at
from seqtrain.runs.overview import summarize_run
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.text import listed, shorten

LONGEST = 400
"""Characters of a line of the model card at most."""
LABELS = 12
"""Labels that the card names at most."""
OF_LABEL_SET = "of the whole set of labels"
"""What a prediction's probability is of, where a row may have several labels."""


@dataclass(frozen=True)
class PredictedExample:
    """One example of a split and the predicted label.

    Attributes:
        text: the sequence, shortened for people.
        labels, predicted_labels: the true and the predicted labels, sorted.
        separator: text between labels in `label` and `predicted`, or None in a single-label task.
        probability: of the predicted label, in [0, 1]; of several, of the whole set of labels.
        length: time steps.
        file: the file that holds the row; None where the data is one file.
        weights: each time step as people read it, and how much it speaks for the prediction; None:
            not computed.
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


@dataclass(frozen=True)
class RunFacts:
    """One run: its files, and its predictions for one split.

    Attributes:
        config: the resolved config, as YAML.
        epochs: the "epoch" lines of metrics.jsonl.
        card: names and values of the model card, in order.
        scores, prefixes: as `eval --json` and `eval --steps --json` print them.
        precision_recall: of the largest classes, recall and precision at some thresholds.
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
    precision_recall: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


def model_card(
    run: RunDirectory,
    config: Config,
    epochs: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    scored: str,
    model: str,
) -> dict[str, str]:
    """Return names and values of the card, in order; `model` says what it is, in words."""
    data, summary, environment = config.data, summarize_run(run), run.environment()
    best = "-" if summary.best_epoch is None else summary.best_epoch
    again = ", then retrained on train and validation (training.refit)" if summary.refit else ""
    tokens = number_at(epochs[0], "tokens") if epochs else None
    validated = "nothing"
    if isinstance(data.validation, float):
        validated = f"{data.validation:.0%} of it, held out"
    elif isinstance(data.validation, dict):
        validated = "part {fold} of {of} of it, held out".format(**data.validation)
    elif data.validation:
        validated = named_text(data.validation)
    versions = [name for name in ("seqtrain", "torch", "python") if name in environment]
    card = {
        "trained on": named_text(data.train) + (f", {tokens:,.0f} time steps" if tokens else ""),
        "validated on": validated,
        "scored on": scored,
        "labels": f"{len(labels)}: {listed([shorten(name, 40) for name in labels], LABELS)}",
        "sequences": data.kind + (f", tokenizer {data.tokenizer}" if data.kind == "text" else ""),
        "model": model,
        "epochs": f"best {best} of {summary.epochs}{again}",
        "time": f"{summary.seconds:,.1f} s on {environment.get('device', 'an unknown device')}",
        "versions": ", ".join(f"{name} {environment[name]}" for name in versions),
        "repeat with": f"seqtrain fit {quote(str(run.path / CONFIG))}",
    }
    return {name: shorten(value, LONGEST) for name, value in card.items()}
