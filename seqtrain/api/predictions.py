"""Predictions for every example of a split, and the results that `errors` and `report` show."""

import math
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from seqtrain.api.evaluate import Labelled, load_labelled, score_together
from seqtrain.api.named_runs import NO_TEST, Run, RunLike, default_split, directory_of
from seqtrain.evaluation.logits import branch_logits
from seqtrain.evaluation.occlusion import occlusion_weights
from seqtrain.evaluation.predicted_example import (
    PredictedExample,
    SplitResults,
    most_confident_errors,
)
from seqtrain.evaluation.scores import Scores
from seqtrain.evaluation.thresholds import coverage_points
from seqtrain.runs.run_directory import holds_folds, members
from seqtrain.sequences.examples import Example, Steps
from seqtrain.sequences.labels import class_counts, has_class
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import numbered_sequences
from seqtrain.tables.times import NUMBER
from seqtrain.text import duration

BINS = 10
"""Number of intervals of probability in which reliability is measured."""
CURVES, CURVE_POINTS = 6, 50
"""Number of large classes with a curve of precision and recall, and largest number of points."""


@dataclass(frozen=True)
class SplitPredictions:
    """Predictions of one run for the examples of a split.

    Attributes:
        found: The classifier, and the encoded examples.
        rows: Prediction for each encoded example, in the order of the files and their rows.
        probabilities: Probability of each class for each example, (B, C).
        scores: Scores of the model.
        branches: Maps the name of each branch to its scores; empty if there is one branch.
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
    data: Any = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitPredictions:
    """Return a run's predictions for every example of a split or a file.

    Args:
        run: One run, as `evaluate` takes it, not an ensemble.
        split: As for `evaluate`.
        data: Labelled data in place of a split: a file, or a table as `fit` takes it; or None.
        explain: Number of the most confident errors whose weights of time steps are computed.
        device: As for `evaluate`.

    Raises:
        CheckpointError, ConfigError, DataError, RunError: If `evaluate` would raise it. ConfigError
            also if the run is an ensemble.
    """
    return _predictions_of(
        load_labelled(run, split=split, data=data, device=device), explain=explain
    )


def _predictions_of(found: Labelled, *, explain: int = 0) -> SplitPredictions:
    """Return the predictions for encoded examples, whose texts are read again.

    Weights of time steps are computed for the `explain` most confident errors.

    Raises:
        DataError: If a file can't be read, or changed since it was encoded.
        RunError: If memory ran out, or a logit isn't finite.
    """
    classifier, store = found.classifier, found.store
    logits, scores, branches = found.scores()
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
    return SplitPredictions(found, rows, probabilities, scores, branches)


def split_results(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    explain: int = 0,
    device: str = "auto",
) -> SplitResults:
    """Return the predictions of a run for a split or a file, as `errors` and `report` show them.

    If validation replaces a missing test split, a warning is added.

    For the directory of folds, these are out-of-fold predictions: each row of train is predicted by
    the run that held it out. They have no curves.

    Args:
        run: One run, as `evaluate` takes it, or the directory of folds.
        split: As for `evaluate`.
        data: Labelled data in place of a split: a file, or a table as `fit` takes it; or None.
        explain: Number of the most confident errors whose weights of time steps are computed.
        device: As for `evaluate`.

    Raises:
        CheckpointError, ConfigError, DataError, RunError: If `evaluate` would raise it.
    """
    directory = directory_of(run)
    if data is None and split in (None, "validation") and holds_folds(directory.path):
        return predict_folds(directory.path, explain=explain, device=device)
    chosen = split or (default_split(directory.path) if data is None else None)
    one = directory.path if isinstance(run, Run | str | PathLike | None) else run
    rows = predict_split(one, split=chosen, data=data, explain=explain, device=device)
    found = results_of(rows)
    if chosen == "validation" and split is None:
        return replace(found, warnings=[NO_TEST, *found.warnings])
    return found


def results_of(shown: SplitPredictions) -> SplitResults:
    """Return the results to show, computed from the predictions for a split."""
    found, scores, curves = shown.found, shown.scores, {}
    counted = class_counts(found.store.labels, len(scores.labels))
    for index in counted.argsort()[::-1][:CURVES].tolist():
        has = torch.from_numpy(has_class(found.store.labels, index))
        points = coverage_points(shown.probabilities[:, index], has, CURVE_POINTS, of_class=True)
        curves[scores.labels[index]] = [(point.coverage, point.accuracy) for point in points]
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row in shown.rows:
        number = min(BINS - 1, int(row.probability * BINS))
        bins.setdefault(number, []).append((row.probability, row.is_correct))
    columns = (zip(*rows, strict=True) for _, rows in sorted(bins.items()))
    weights = sum(weight.numel() for weight in found.classifier.network.parameters())
    return SplitResults(
        data=found.source,
        split=found.split,
        digests=found.digests,
        warnings=found.warnings,
        model=f"{found.classifier.summary()['model']}; {weights:,} parameters",
        scores=scores,
        branches=shown.branches,
        errors=most_confident_errors(shown.rows),
        reliability=[(fmean(sure), fmean(right)) for sure, right in columns],
        precision_recall=curves,
        trained_on_rows=bool(found.trained_on_rows),
    )


def predict_folds(path: Path, *, explain: int = 0, device: str = "auto") -> SplitResults:
    """Return the out-of-fold predictions of the runs of folds, all together, without curves.

    Each row of train is predicted by the run that held it out. Rows whose prediction contradicts
    their label with a high probability are often labelled wrongly.

    Args:
        path: Directory of the folds.
        explain: Number of the most confident errors whose weights of time steps are computed.
        device: As for `evaluate`.

    Raises:
        CheckpointError, ConfigError, DataError, RunError: If `evaluate` would raise it.
    """
    each = []
    for run in members(path):
        found = load_labelled(run, split="validation", device=device)
        one = found.classifier
        each.append(replace(found, logits=branch_logits(one.network, found.store, one.device)))
    shown = [_predictions_of(found, explain=explain) for found in each]
    scores, _ = score_together(path, each)
    rows = [row for fold in shown for row in fold.rows]
    warnings = dict.fromkeys(line for found in each for line in found.warnings)
    return replace(
        results_of(shown[0]),
        warnings=[*warnings],
        scores=scores,
        branches={},
        errors=most_confident_errors(rows),
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
    classifier, rules = found.classifier, found.classifier.preprocessing
    model = classifier.network, found.store, index, classifier.device
    thresholds = classifier.decision_thresholds
    weights, of_facts = occlusion_weights(*model, thresholds, rules.steps, rules.row_features)
    named = [] if rules.row_features is None else rules.row_features.names
    facts = [] if example.static is None or not named else example.static.cells()[0]
    features = [f"{name}={cell}" for name, cell in zip(named, facts, strict=True)]
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
    return list(zip([*names, *features], [*weights, *of_facts], strict=True))


def _read_again(found: Labelled) -> list[Example]:
    """Return the rows of a store with their texts, in order, by reading the files again.

    Raises:
        DataError: If a file can't be read, or changed since it was encoded.
    """
    wanted = dict.fromkeys(found.store.lines.tolist())
    examples: dict[int, Example] = {}
    for source, (_, start) in zip(found.files, found.store.files, strict=True):
        name = source.name if len(found.files) > 1 else None
        known = found.classifier.preprocessing.label_set
        for number, example in numbered_sequences(source, start, found.digests, known):
            if number in wanted and example.problem is None:
                examples[number] = example._replace(file=example.file or name)
    return [examples[number] for number in wanted]


def readable_cells(steps: Steps, preprocessing: Preprocessing | None) -> list[list[str]]:
    """Return the cells of each time step as text for people.

    Args:
        steps: Steps of one sequence.
        preprocessing: Preprocessing of the model, to show elapsed times as texts such as "2 h".
            None to show them in seconds.
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
    """Return a sequence as text for people.

    Symbols are joined by spaces. In a table of time steps, commas join the cells of a step, and
    spaces join the steps, after "id:". A sequence of feature vectors is shown as its size, such as
    "90 × 3 values".

    Args:
        sequence: Sequence as a reader returns it.
        id: Id of the sequence in a table of time steps, or None.
        preprocessing: As for `readable_cells`.
    """
    if isinstance(sequence, Steps):
        return " ".join([f"{id}:", *map(",".join, readable_cells(sequence, preprocessing))])
    if isinstance(sequence, str):
        return sequence
    if isinstance(sequence, list):
        return " ".join(sequence)
    steps, channels = sequence.shape
    return f"{steps} × {channels} values"
