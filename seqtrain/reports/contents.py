"""Contents of a report: data from the files of a run, and its predictions for one split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from seqtrain.config.schema import Config
from seqtrain.evaluation.predicted_example import SplitResults
from seqtrain.files.reading import number_at
from seqtrain.runs.overview import summarize_run
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.sequences.sources import named_text
from seqtrain.text import duration, listed, shorten

LOSSES = (
    "the loss above is that of calibrated probabilities; in the curves, train loss is the mean of "
    "the model's branches during the epoch, with dropout and label smoothing, and validation loss "
    "is measured before calibration"
)
LONGEST_ENTRY = 400
"""Largest number of characters of an entry of the model card."""
LABELS = 12
"""Largest number of labels that the model card names."""
OF_LABEL_SET = "of the whole set of labels"
"""Words that follow "probability" in a multi-label task."""


@dataclass(frozen=True)
class RunReport:
    """What a report shows of one run: its files, and its predictions for one split or file.

    Attributes:
        name: Name of the run directory.
        config: The resolved config, as YAML.
        environment: Content of environment.json.
        epochs: The "epoch" lines of metrics.jsonl.
        card: The model card, as `model_card` returns it.
        split: Name of the split or file that was scored.
        shown: Predictions for the split, and their scores.
        headline: Texts of the main scores, by the metric's title: of the split; or, for a run
            without test that was refitted, of the model before the refit on validation.
        prefixes: Scores after each tenth of the sequences, as `score_prefixes` returns them. Empty
            if they weren't computed.
    """

    name: str
    config: str
    environment: Mapping[str, Any]
    epochs: Sequence[Mapping[str, Any]]
    card: Mapping[str, str]
    split: str
    shown: SplitResults
    headline: Mapping[str, str]
    prefixes: Sequence[Mapping[str, Any]]


def model_card(
    run: RunDirectory,
    config: Config,
    epochs: Sequence[Mapping[str, Any]],
    shown: SplitResults,
) -> dict[str, str]:
    """Return the model card: a description of a run for people, in short entries.

    Args:
        run: The run.
        config: Config of the run.
        epochs: The "epoch" lines of the run's metrics.jsonl.
        shown: Predictions of the run for the split that was scored.

    Returns:
        Maps the name of each entry, such as "trained on", to its text, in order. Texts are cut to
        `LONGEST_ENTRY` characters.

    Raises:
        ConfigError: If the run's config is wrong.
        CheckpointError: If environment.json can't be read, or metrics.jsonl is damaged.
    """
    data, summary, environment = config.data, summarize_run(run), run.environment()
    labels = shown.scores.labels
    best = "-" if summary.best_epoch is None else summary.best_epoch
    if summary.refit:
        again = ", then retrained on train and validation (training.refit)"
    else:
        again = ""
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
        "scored on": shown.data,
        "labels": f"{len(labels)}: {listed([shorten(name, 40) for name in labels], LABELS)}",
        "sequences": data.kind + (f", tokenizer {data.tokenizer}" if data.kind == "text" else ""),
        "model": shown.model,
        "epochs": f"best {best} of {summary.epochs}{again}",
        "time": f"{duration(summary.seconds)} on {environment.get('device', 'an unknown device')}",
        "losses": LOSSES,
        "versions": ", ".join(f"{name} {environment[name]}" for name in versions),
        "repeat with": f"seqtrain fit {quote(str(run.path / CONFIG))}",
    }
    return {name: shorten(value, LONGEST_ENTRY) for name, value in card.items()}
