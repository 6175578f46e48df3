"""What a report is made of: the figures in a run's files, and its predictions for one split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from seqtrain.config.schema import Config
from seqtrain.data.sources import named_text
from seqtrain.evaluation.predicted_example import PredictedExample
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
class RunFacts:
    """One run: its files, and its predictions for one split.

    Attributes:
        config: the resolved config, as YAML.
        epochs: the "epoch" lines of metrics.jsonl.
        card: names and values of the model card, in order.
        figures: headings and values of the main metrics.
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
    figures: Mapping[str, str]
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
