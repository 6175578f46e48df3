"""A model's prediction for every example of a split, beside its text, its line and its label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from seqtrain.api.events import RunLike
from seqtrain.api.labelled import Labelled, load_labelled
from seqtrain.data.digests import check_unchanged
from seqtrain.data.examples import Example
from seqtrain.data.sources import numbered_examples
from seqtrain.evaluation.logits import check_finite, predict_logits
from seqtrain.evaluation.metrics import Scores, score_logits
from seqtrain.evaluation.occlusion import step_weights
from seqtrain.evaluation.prefixes import score_prefixes
from seqtrain.report import PredictedExample, most_confident_errors
from seqtrain.text import display_name


@dataclass(frozen=True)
class SplitPredictions:
    """The predictions of one run.

    Attributes:
        run: the run or model folder.
        data: the file that was read, or the files, as they were named.
        digests: SHA-256 of each.
        rows: one for each example, in the order of the files.
        scores: the metrics.
        warnings: as in `Labelled`.
        parameters: weights of the model, counted one by one.
        by_share: as in `Evaluation`, where asked for.
        split: which of the run's config; None where a file was given.
    """

    run: Path
    data: str
    digests: list[str]
    rows: list[PredictedExample]
    scores: Scores
    warnings: list[str]
    parameters: int
    by_share: list[dict[str, float]] | None = None
    split: str | None = None


def predict_split(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    steps: bool = False,
    explain: int = 0,
    device: str = "auto",
) -> SplitPredictions:
    """Return a run's prediction for every example of a split.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        split: test, validation or train, as the run's config names them; None: test, or validation
            where there is no test.
        data: a labelled file, or a pattern of several, in the split's place.
        steps: score also the predictions before each sequence ends.
        explain: how many of the most confident mistakes get the weights of their time steps.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError, ConfigError, DataError: as for `evaluate`.
        RunError: memory ran out, or a prediction isn't finite.
    """
    found = load_labelled(run, split=split, data=data, device=device)
    classifier, store, network = found.classifier, found.store, found.classifier.network
    logits = check_finite(predict_logits(network, store, classifier.device), store)
    examples = _read_again(found)
    best = torch.softmax(logits.double(), dim=1).max(dim=1)
    values = best.indices.tolist(), best.values.tolist(), store.lengths.tolist()
    rows = [
        PredictedExample(
            line=example.line,
            text=sequence_text(example.sequence),
            label=str(example.label),
            predicted=classifier.labels[predicted],
            probability=probability,
            length=length,
            file=example.file,
        )
        for example, predicted, probability, length in zip(examples, *values, strict=True)
    ]
    for row in most_confident_errors(rows)[:explain]:
        index = rows.index(row)
        rows[index] = replace(row, weights=_weights(found, index, examples[index]))
    return SplitPredictions(
        run=classifier.path,
        data=found.source,
        digests=list(found.digests.values()),
        rows=rows,
        scores=score_logits(logits, store, classifier.labels),
        warnings=found.warnings,
        parameters=sum(weight.numel() for weight in network.parameters()),
        by_share=score_prefixes(network, store, classifier.device) if steps else None,
        split=found.split,
    )


def _weights(found: Labelled, index: int, example: Example) -> list[tuple[str, float]]:
    """Return each time step of a row as people read it, and how much it speaks for the label."""
    classifier = found.classifier
    weights = step_weights(classifier.network, found.store, index, classifier.device)
    steps = classifier.preprocessing.tokens(example.sequence)
    names = steps or [f"step {step}" for step in range(1, len(weights) + 1)]
    return list(zip(names, weights, strict=True))


def _read_again(found: Labelled) -> list[Example]:
    """Read the rows as they were written: a store holds numbers alone.

    Raises:
        DataError: a file was changed meanwhile.
    """
    wanted = dict.fromkeys(found.store.lines.tolist())
    examples: dict[int, Example] = {}
    assert found.store.files is not None
    for (path, options), start in zip(found.files, found.store.files.starts, strict=True):
        for number, example in numbered_examples(path, options, start):
            if number in wanted:
                several = len(found.files) > 1 and example.file is None
                name = display_name(path) if several else example.file
                examples[number] = example._replace(file=name)
    check_unchanged(found.digests)
    return [examples[number] for number in wanted]


def sequence_text(sequence: Any) -> str:
    """Return a sequence as a text for people: symbols joined by blanks, vectors by their size."""
    if isinstance(sequence, str):
        return sequence
    if isinstance(sequence, list):
        return " ".join(sequence)
    steps, channels = sequence.shape
    return f"{steps} × {channels} values"
