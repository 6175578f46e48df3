"""Predictions for every example of a split, and the facts of a report."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqtrain.api.evaluate import Labelled, load_labelled
from seqtrain.api.named_runs import RunLike, directory_of, learned_rows
from seqtrain.config import render_config
from seqtrain.data.examples import Example, Steps
from seqtrain.data.labels import class_counts, has_class
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers.times import NUMBER
from seqtrain.data.sources import numbered_rows
from seqtrain.evaluation.occlusion import occlusion_weights
from seqtrain.evaluation.predicted_example import PredictedExample, most_confident_errors
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.thresholds import coverage_points
from seqtrain.files.reading import number_at
from seqtrain.reports.facts import RunFacts, model_card
from seqtrain.text import duration, shorten

SHOWN_TEXT = 400
"""Characters of a sequence that a report shows at most."""
CURVES, CURVE_POINTS = 6, 50
"""Classes, the largest ones, whose precision is shown by recall, and its points."""


@dataclass(frozen=True)
class SplitPredictions:
    """Predictions of one run, in the order of the files, and their probabilities, (B, C).

    `branches` has the scores of each branch by name, if there are several.
    """

    found: Labelled
    rows: list[PredictedExample]
    probabilities: Tensor
    scores: Scores
    branches: dict[str, Scores]


def predict_split(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitPredictions:
    """Return a run's prediction for every example of a split; takes and raises as `evaluate`.

    `explain` of the most confident mistakes get the weights of their time steps.
    """
    found = load_labelled(run, split=split, data=data, device=device)
    classifier, store = found.classifier, found.store
    logits, scores, alone = found.scores()
    probabilities = classifier.network.probabilities(logits)
    decided, sure = classifier.decide(probabilities)
    examples, label_set = _read_again(found), classifier.preprocessing.label_set
    columns = decided, sure, store.lengths.tolist()
    rows = [
        PredictedExample(
            line=example.line,
            text=sequence_text(example.sequence, example.id, classifier.preprocessing),
            labels=example.labels or (),
            predicted_labels=tuple(sorted(label_set.decode(best))),
            separator=label_set.separator,
            probability=probability,
            length=length,
            file=example.file,
        )
        for example, best, probability, length in zip(examples, *columns, strict=True)
    ]
    for row in most_confident_errors(rows)[:explain]:
        index = rows.index(row)
        rows[index] = replace(row, weights=_weights(found, index, examples[index]))
    return SplitPredictions(found, rows, probabilities, scores, alone)


def _weights(found: Labelled, index: int, example: Example) -> list[tuple[str, float]]:
    """Return each time step of a row as people read it, and its weight for the label.

    In a table of steps each cell has a weight, named step:column=cell. Row features follow.
    """
    classifier, rules = found.classifier, found.classifier.preprocessing
    model = classifier.network, found.store, index, classifier.device
    thresholds = classifier.decision_thresholds
    weights, of_facts = occlusion_weights(*model, thresholds, rules.steps, rules.row_features)
    named = [] if rules.row_features is None else rules.row_features.names
    facts = [] if example.static is None or not named else example.static.cells()[0]
    beside = [f"{name}={cell}" for name, cell in zip(named, facts, strict=True)]
    if rules.steps is not None and isinstance(example.sequence, Steps):
        kept = rules.lengths.cut(readable_cells(example.sequence, rules))
        names = [
            f"{step}:{name}={cell}"
            for step, row in enumerate(kept, start=1)
            for name, cell in zip(rules.steps.names, row, strict=True)
        ]
    else:
        tokens = rules.pieces(example.sequence)
        names = tokens or [f"step {step}" for step in range(1, len(weights) + 1)]
    return list(zip([*names, *beside], [*weights, *of_facts], strict=True))


def _read_again(found: Labelled) -> list[Example]:
    """Read the text of the rows, because a store holds numbers only."""
    wanted = dict.fromkeys(found.store.lines.tolist())
    examples: dict[int, Example] = {}
    for source, (_, start) in zip(found.files, found.store.files, strict=True):
        name = source.name if len(found.files) > 1 else None
        for number, example in numbered_rows(source, start, found.digests):
            if number in wanted and example.problem is None:
                examples[number] = example._replace(file=example.file or name)
    return [examples[number] for number in wanted]


def readable_cells(steps: Steps, preprocessing: Preprocessing | None) -> list[list[str]]:
    """Return the cells of each step as people read them; elapsed times are durations.

    Args:
        steps: Steps of one sequence.
        preprocessing: Preprocessing of the model, or None to show elapsed times in seconds.
    """
    rows = steps.cells()
    if preprocessing is None or preprocessing.steps is None:
        return rows
    schema, tokens = preprocessing.schema, len(steps.tokens)
    if schema.steps is None or schema.order_type in (None, NUMBER):
        return rows
    for index, name in enumerate(preprocessing.steps.names):
        if schema.steps.get(name) == "order":
            for row, value in zip(rows, steps.numbers[:, index - tokens].tolist(), strict=True):
                row[index] = row[index] if math.isnan(value) else duration(value)
    return rows


def sequence_text(
    sequence: Any, id: str | None = None, preprocessing: Preprocessing | None = None
) -> str:
    """Return a sequence as people read it: symbols joined by spaces, vectors by their size."""
    if isinstance(sequence, Steps):
        return " ".join([f"{id}:", *map(",".join, readable_cells(sequence, preprocessing))])
    if isinstance(sequence, str):
        return sequence
    if isinstance(sequence, list):
        return " ".join(sequence)
    steps, channels = sequence.shape
    return f"{steps} × {channels} values"


def run_facts(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    steps: bool = False,
    device: str = "auto",
) -> RunFacts:
    """Collect the facts of a run for a report; `evaluate` has the arguments and errors."""
    directory = directory_of(run)
    config, environment = directory.config(), directory.environment()
    held_out = config.data.test or config.data.validation
    split = split if split or data or held_out else "train"  # all that there is
    epochs = [e for e in directory.metrics("epoch") if number_at(e, "epoch") is not None]
    shown = predict_split(directory.path, split=split, data=data, device=device)
    found, scores, curves = shown.found, shown.scores, {}
    counted = class_counts(found.store.labels, len(scores.labels))
    for index in counted.argsort()[::-1][:CURVES].tolist():
        has = torch.from_numpy(has_class(found.store.labels, index))
        points = coverage_points(shown.probabilities[:, index], has, CURVE_POINTS, of_class=True)
        curves[scores.labels[index]] = [(point.coverage, point.accuracy) for point in points]
    environment = {**environment, "data": {**environment["data"], **found.digests}}
    learned = learned_rows(config, found.split)
    weights = sum(weight.numel() for weight in found.classifier.network.parameters())
    model = f"{found.classifier.summary()['model']}; {weights:,} parameters"
    return RunFacts(
        name=directory.path.name or str(directory.path),
        config=render_config(config),
        environment=environment,
        epochs=epochs,
        card=model_card(directory, config, epochs, scores.labels, found.source, model),
        split=(found.split or Path(found.source).name) + (learned and f", trained on {learned}"),
        scores=asdict(scores),
        figures=scores.summary(),
        prefixes=found.by_share() if steps else [],
        precision_recall=curves,
        predictions=[replace(row, text=shorten(row.text, SHOWN_TEXT)) for row in shown.rows],
        warnings=found.warnings,
    )
