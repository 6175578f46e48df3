"""A model's answer for every example of a split, beside its text, its line and its label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from seqtrain.api.evaluate import Labelled, load_labelled
from seqtrain.api.events import RunLike
from seqtrain.data.examples import Example
from seqtrain.data.sources import numbered_examples
from seqtrain.evaluation.logits import finite_logits
from seqtrain.evaluation.metrics import Scores, score
from seqtrain.evaluation.occlusion import step_weights
from seqtrain.evaluation.prefixes import score_prefixes
from seqtrain.report import PredictedExample
from seqtrain.text import display_name


@dataclass(frozen=True)
class SplitPredictions:
    """The answers of one run.

    Attributes:
        run: the run or model folder.
        data: the file that was read, or the files, as they were named.
        digests: SHA-256 of each.
        rows: one for each example, in the order of the files.
        scores: the metrics.
        warnings: rows cut, left out, or with labels that the model doesn't know.
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
    explain: int | None = None,
    device: str = "auto",
) -> SplitPredictions:
    """Return a run's answer for every example of a split.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        split: test, validation or train, as the run's config names them; None: test, or validation
            where there is no test.
        data: a labelled file, or a pattern of several, to answer instead.
        steps: score also what the model would answer earlier in each sequence.
        explain: how many of the most confident mistakes tell which time steps they rest on.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError, ConfigError, DataError: as for `evaluate`.
        RunError: memory ran out.
    """
    found = load_labelled(run, split=split, data=data, device=device)
    classifier, store = found.classifier, found.store
    logits = finite_logits(classifier.network, store, classifier.device)
    labels, lengths = (torch.tensor(x, device="cpu") for x in (store.labels, store.lengths))
    scores = score(logits, labels, lengths, classifier.labels)
    by_share = score_prefixes(classifier.network, store, classifier.device) if steps else None
    rows = _rows(found, logits)
    if explain is not None:
        _explain(found, rows, explain)
    return SplitPredictions(
        run=classifier.path,
        data=found.source,
        digests=[each.digest for each in found.digested],
        rows=rows,
        scores=scores,
        warnings=found.warnings,
        parameters=sum(weight.numel() for weight in classifier.network.parameters()),
        by_share=by_share,
        split=found.split,
    )


def _rows(found: Labelled, logits: torch.Tensor) -> list[PredictedExample]:
    """Put each answer beside its row of the file."""
    best = torch.softmax(logits.double(), dim=1).max(dim=1)
    labels, store = found.classifier.labels, found.store
    examples = _examples_at(found)
    return [
        PredictedExample(
            line=example.line,
            text=sequence_text(example.sequence),
            label=str(example.label),
            predicted=labels[predicted],
            probability=probability,
            length=length,
            file=example.file,
        )
        for example, predicted, probability, length in zip(
            examples,
            best.indices.tolist(),
            best.values.tolist(),
            store.lengths.tolist(),
            strict=True,
        )
    ]


def _explain(found: Labelled, rows: list[PredictedExample], number: int) -> None:
    """Put weights into the rows of the most confident mistakes."""
    classifier, examples = found.classifier, _examples_at(found)
    wrong = [index for index, row in enumerate(rows) if not row.is_correct]
    wrong.sort(key=lambda index: -rows[index].probability)
    for index in wrong[:number]:
        weights = step_weights(classifier.network, found.store, index, classifier.device)
        steps = classifier.preprocessing.tokens(examples[index].sequence)
        names = steps or [f"step {step}" for step in range(1, len(weights) + 1)]
        rows[index] = replace(rows[index], weights=list(zip(names, weights, strict=True)))


def _examples_at(found: Labelled) -> list[Example]:
    """Read the rows again as they were written: a store holds numbers alone.

    Raises:
        DataError: the file was changed meanwhile.
    """
    wanted = dict.fromkeys(found.store.lines.tolist())
    examples: dict[int, Example] = {}
    assert found.store.files is not None
    for (path, options), start in zip(found.files, found.store.files.starts, strict=True):
        for place, example in numbered_examples(path, options, start):
            if place in wanted:
                several = len(found.files) > 1 and example.file is None
                name = display_name(path) if several else example.file
                examples[place] = example._replace(file=name)
    for digested in found.digested:
        digested.check_unchanged()
    return [examples[place] for place in wanted]


def sequence_text(sequence: Any) -> str:
    """Return a sequence as a text for people: symbols joined by blanks, vectors by their size."""
    if isinstance(sequence, str):
        return sequence
    if isinstance(sequence, list):
        return " ".join(sequence)
    steps, channels = sequence.shape
    return f"{steps} × {channels} values"
