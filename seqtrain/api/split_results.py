"""Predictions of a run for every example of a split, as `errors`, `diff` and `report` show them."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from seqtrain.api.evaluate import Labelled, load_labelled, score_together
from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.evaluation.occlusion import occlusion_weights
from seqtrain.evaluation.predicted_example import (
    PredictedExample,
    SplitResults,
    most_confident_errors,
)
from seqtrain.evaluation.thresholds import coverage_points
from seqtrain.runs.run_directory import holds_folds, members
from seqtrain.sequences.examples import Example, Steps
from seqtrain.sequences.labels import class_counts, has_class
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import numbered_sequences
from seqtrain.tables.times import NUMBER
from seqtrain.text import duration

RELIABILITY_BINS = 10
"""Number of intervals of probability in which reliability is measured."""
CURVES, CURVE_POINTS = 6, 50
"""Number of large classes with a curve of precision and recall, and largest number of points."""


def split_results(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitResults:
    """Return scores and wrong predictions of a run for a split or other labelled data.

    If validation replaces a missing test split, a warning is added. For the directory of folds,
    these are out-of-fold predictions: each row of train is predicted by the run that held it out.
    Rows whose prediction contradicts their label with a high probability are often labelled
    wrongly. Out-of-fold predictions have no curves.

    Args:
        run: One run, as `evaluate` takes it, or the directory of folds.
        split: As for `evaluate`.
        data: Labelled data in place of a split: a file, or a table as `fit` takes it; or None.
        explain: Number of the most confident errors whose weights of time steps are computed.
        device: As for `evaluate`.

    Raises:
        CheckpointError, ConfigError, DataError, RunError: If `evaluate` would raise it.
    """
    path = directory_of(run).path
    if data is None and split in (None, "validation") and holds_folds(path):
        return _results_of_folds(path, explain, device)
    return results_of(load_labelled(run, split=split, data=data, device=device), explain)


def predicted_rows(found: Labelled, explain: int = 0) -> list[PredictedExample]:
    """Return the prediction for each encoded example, in the order of the files and their rows.

    The texts are read again. Weights of time steps are computed for the `explain` most confident
    errors.

    Raises:
        DataError: If a file can't be read, or changed since it was encoded.
        RunError: If memory ran out, or a logit isn't finite.
    """
    fitted = found.classifier.preprocessing
    decided, sure = found.classifier.decide(found.probabilities)
    examples = _read_again(found)
    rows = []
    for index, example in enumerate(examples):
        row = PredictedExample(
            line=example.line,
            text=_sequence_text(example, fitted),
            labels=example.labels or (),
            predicted_labels=tuple(sorted(fitted.label_set.decode(decided[index]))),
            separator=fitted.label_set.separator,
            probability=sure[index],
            length=int(found.store.lengths[index]),
            file=example.file,
        )
        rows.append(row)
    for row in most_confident_errors(rows)[:explain]:
        index = rows.index(row)
        rows[index] = replace(row, weights=_weights(found, index, examples[index]))
    return rows


def results_of(found: Labelled, explain: int = 0) -> SplitResults:
    """Return scores, errors and curves of the predictions for encoded examples.

    Weights of time steps are computed for the `explain` most confident errors.
    """
    rows = predicted_rows(found, explain)
    _, scores, branches = found.scored
    probabilities = found.probabilities
    labels = found.store.labels
    curves = {}
    counted = class_counts(labels, len(scores.labels))
    for index in counted.argsort()[::-1][:CURVES].tolist():
        has = torch.from_numpy(has_class(labels, index))
        points = coverage_points(probabilities[:, index], has, CURVE_POINTS, of_class=True)
        curves[scores.labels[index]] = [(point.coverage, point.accuracy) for point in points]
    weights = sum(weight.numel() for weight in found.classifier.network.parameters())
    return SplitResults(
        data=found.source,
        split=found.split,
        digests=found.digests,
        warnings=found.warnings,
        model=f"{found.classifier.summary()['model']}; {weights:,} parameters",
        scores=scores,
        branches=branches,
        errors=most_confident_errors(rows),
        reliability=_reliability(rows),
        precision_recall=curves,
        trained_on_rows=bool(found.trained_on_rows),
    )


def _reliability(rows: Sequence[PredictedExample]) -> list[tuple[float, float]]:
    """Return mean probability and accuracy of the predictions in each interval of probability."""
    bins: dict[int, list[PredictedExample]] = {}
    for row in rows:
        number = min(RELIABILITY_BINS - 1, int(row.probability * RELIABILITY_BINS))
        bins.setdefault(number, []).append(row)
    found = []
    for _, own in sorted(bins.items()):
        right = fmean(row.is_correct for row in own)
        found.append((fmean(row.probability for row in own), right))
    return found


def _results_of_folds(path: Path, explain: int, device: str) -> SplitResults:
    """Return the out-of-fold predictions of the runs of folds, all together, without curves."""
    each = [load_labelled(run, split="validation", device=device) for run in members(path)]
    folds = [results_of(found, explain) for found in each]
    scores, _ = score_together(path, each)
    errors = [row for fold in folds for row in fold.errors]
    return replace(
        folds[0],
        warnings=list(dict.fromkeys(line for found in each for line in found.warnings)),
        scores=scores,
        branches={},
        errors=most_confident_errors(errors),
        reliability=[],
        precision_recall={},
    )


def _weights(found: Labelled, index: int, example: Example) -> list[tuple[str, float]]:
    """Return the time steps of a row as text, each with its weight for the prediction.

    In a table of steps each cell has a weight, with the text "step:column=cell". Row features
    follow, with the text "column=cell".

    Args:
        found: The classifier, and the encoded examples.
        index: Index of the row in the store.
        example: The same row with its text.
    """
    classifier = found.classifier
    rules = found.classifier.preprocessing
    weights, of_features = occlusion_weights(
        classifier.network,
        found.store,
        index,
        classifier.device,
        classifier.decision_thresholds,
        rules.steps,
        rules.row_features,
    )
    if rules.steps is not None and isinstance(example.sequence, Steps):
        names = []
        for step, row in enumerate(rules.lengths.cut(_readable_cells(example.sequence, rules)), 1):
            for name, cell in zip(rules.steps.names, row, strict=True):
                names.append(f"{step}:{name}={cell}")
    else:
        tokens = rules.step_texts(example.sequence)
        names = tokens or [f"step {step}" for step in range(1, len(weights) + 1)]
    features = []
    if rules.row_features is not None and example.static is not None:
        for name, cell in zip(rules.row_features.names, example.static.cells()[0], strict=True):
            features.append(f"{name}={cell}")
    return list(zip([*names, *features], [*weights, *of_features], strict=True))


def _read_again(found: Labelled) -> list[Example]:
    """Return the rows of a store with their texts, in order, by reading the files again.

    Raises:
        DataError: If a file can't be read, or changed since it was encoded.
    """
    wanted = dict.fromkeys(found.store.lines.tolist())
    known = found.classifier.preprocessing.label_set
    examples = {}
    for source, (_, start) in zip(found.files, found.store.files, strict=True):
        name = source.name if len(found.files) > 1 else None
        for number, example in numbered_sequences(source, start, found.digests, known):
            if number in wanted and example.problem is None:
                examples[number] = example._replace(file=example.file or name)
    return [examples[number] for number in wanted]


def _readable_cells(steps: Steps, rules: Preprocessing) -> list[list[str]]:
    """Return the cells of each time step as text. Elapsed times are texts such as "2 h"."""
    rows, schema, tokens = steps.cells(), rules.schema, len(steps.tokens)
    if rules.steps is None or schema.steps is None or schema.order_types[0] in (None, NUMBER):
        return rows
    for index, name in enumerate(rules.steps.names):
        if schema.steps.get(name) == "order":
            for row, value in zip(rows, steps.numbers[:, index - tokens].tolist(), strict=True):
                if not math.isnan(value):
                    row[index] = duration(value)
    return rows


def _sequence_text(example: Example, rules: Preprocessing) -> str:
    """Return the sequence of an example as text for people.

    Symbols are joined by spaces. In a table of time steps, commas join the cells of a step, and
    spaces join the steps, after "id:". A sequence of feature vectors is shown as its size, such as
    "90 × 3 values".
    """
    sequence = example.sequence
    if isinstance(sequence, Steps):
        steps = [",".join(row) for row in _readable_cells(sequence, rules)]
        return " ".join([f"{example.id}:", *steps])
    if isinstance(sequence, str):
        return sequence
    if isinstance(sequence, list):
        return " ".join(sequence)
    steps, channels = sequence.shape
    return f"{steps} × {channels} values"
