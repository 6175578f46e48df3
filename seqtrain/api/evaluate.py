"""Scoring a run on one of its splits, or on another labelled file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from seqtrain.api.classifier import Classifier
from seqtrain.api.ensemble import check_alike
from seqtrain.api.environment import check_held_out
from seqtrain.api.events import RunLike, path_of
from seqtrain.api.loading import load_one
from seqtrain.api.origin import lineage
from seqtrain.config import Config
from seqtrain.data.cache import default_folder
from seqtrain.data.configured import data_files
from seqtrain.data.digests import Digested, digest
from seqtrain.data.pieces import Files, read_encoded
from seqtrain.data.preparation import held_out_fractions, prepare
from seqtrain.data.sources import files_of, named_text
from seqtrain.data.store import SequenceStore
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.evaluation.logits import finite_logits
from seqtrain.evaluation.metrics import Scores, one_class_doubts, score
from seqtrain.evaluation.prefixes import score_prefixes
from seqtrain.files.digests import unlike
from seqtrain.runs.finding import find
from seqtrain.runs.members import members, name_one
from seqtrain.runs.run_directory import CONFIG, RunDirectory
from seqtrain.text import Summarized, display_name

SPLITS = ("test", "validation", "train")
NO_TEST = "there is no test split; these are answers to validation, which chose the best epoch"
SMALLEST = 1e-300
"""Probability that stands for 0, whose logarithm is no number."""


@dataclass(frozen=True, repr=False)
class Evaluation(Summarized):
    """What was scored, and how it went.

    Attributes:
        run: the run or model folder.
        data: the file that was read, or the files, as they were named.
        scores: the metrics.
        warnings: rows cut, left out, or with labels that the model doesn't know; one class for all.
        by_share: how good answers are after 10 %, 20 % … of each sequence, where asked for, as
            `score_prefixes` returns it.
        parts: scores of each part of the model alone, by name; empty where it has but one. Of
            several runs that answer together: of each run.
        split: which of the run's config; None where a file was given.
        ensemble: whether several runs answer together.
        trained_on_rows: whether the model was trained on the scored rows, so that the scores
            promise too much; None where a file was given.
    """

    run: Path
    data: str
    scores: Scores
    warnings: list[str]
    by_share: list[dict[str, float]] | None = None
    parts: dict[str, Scores] = field(default_factory=dict)
    split: str | None = None
    ensemble: bool = False
    trained_on_rows: bool | None = None

    def summary(self) -> dict[str, str]:
        """Return what was scored, and the main figures."""
        return {"data": display_name(self.data), **self.scores.summary()}


def evaluate(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: str | None = None,
    steps: bool = False,
    device: str = "auto",
) -> Evaluation:
    """Score a run's best model.

    Args:
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        split: test, validation or train, as the run's config names them; None: test, or validation
            where there is no test.
        data: a labelled file, or a pattern of several, to score on instead.
        steps: score also what the model would answer earlier in each sequence.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: there is no whole model there.
        ConfigError: the run has no such split, or there is no such device.
        DataError: the file is missing or has rows that can't be used.
    """
    path = find(path_of(run)).path
    runs = members(path)
    if runs:
        if steps:
            raise ConfigError(f"--steps: {name_one(path)}")
        each = [load_labelled(at, split=split, data=data, device=device) for at in runs]
        return _evaluate_together(path, each)
    loaded = load_labelled(path, split=split, data=data, device=device)
    classifier, store = loaded.classifier, loaded.store
    by_share = score_prefixes(classifier.network, store, classifier.device) if steps else None
    scores, parts = classifier.score(store), classifier.score_parts(store)
    source, split = loaded.source, loaded.split
    told = loaded.warnings + one_class_doubts(scores, split or display_name(source))
    learned = loaded.trained_on_rows
    return Evaluation(
        classifier.path, source, scores, told, by_share, parts, split, trained_on_rows=learned
    )


def _evaluate_together(path: Path, each: Sequence[Labelled]) -> Evaluation:
    """Score each of several classifiers, and the mean of their probabilities; or, on validation of
    folds, the answer to each row of the one that held it out.
    """
    check_alike([part.classifier for part in each], path)
    first, labels = each[0], each[0].classifier.labels
    lines = [part.store.lines for part in each]
    rows, shared = np.concatenate(lines), all(np.array_equal(own, lines[0]) for own in lines)
    pooled = not shared and first.split == "validation" and all(map(_is_fold, each))
    if {part.source for part in each} != {first.source} or not (
        shared or (pooled and len(np.unique(rows)) == len(rows))
    ):
        raise ConfigError(
            f"--split: the runs in {path} hold out different rows; "
            "score test, or a labelled file with --data"
        )
    found = [_answered(part, labels) for part in each]

    def scored(probabilities: Tensor, true: Tensor, lengths: Tensor) -> Scores:
        return score(probabilities.log(), true, lengths, labels)

    parts = {part.classifier.path.name: scored(*own) for part, own in zip(each, found, strict=True)}
    told = list(dict.fromkeys(line for part in each for line in part.warnings))
    if shared:
        together = scored(torch.stack([own[0] for own in found]).mean(dim=0), *found[0][1:])
    else:
        together = scored(*map(torch.cat, zip(*found, strict=True)))
        told.append("each row is answered by the one run that has it in this split")
    told += one_class_doubts(together, first.split or display_name(first.source))
    learned = first.trained_on_rows
    split = first.split
    return Evaluation(path, first.source, together, told, None, parts, split, shared, learned)


def _is_fold(part: Labelled) -> bool:
    """Return whether its run holds out one of several parts of train."""
    return isinstance(RunDirectory(part.classifier.path).config().data.validation, dict)


def _answered(part: Labelled, labels: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Return probabilities (B, C) and class indices (B,) in the order of labels, and lengths."""
    classifier, store = part.classifier, part.store
    logits = finite_logits(classifier.network, store, classifier.device)
    places = [classifier.labels.index(label) for label in labels]
    index = np.array([*(labels.index(label) for label in classifier.labels), -1])  # of -1: -1
    true, lengths = (torch.tensor(x, device="cpu") for x in (index[store.labels], store.lengths))
    return logits.double().softmax(dim=1)[:, places].clamp(min=SMALLEST), true, lengths


@dataclass(frozen=True)
class Labelled:
    """A classifier, and labelled sequences for it.

    Attributes:
        classifier: a run's best model.
        source: the file that was read, or the files, as they were named.
        files: that were read, each with how.
        digested: as they were then.
        store: its sequences, or those of the split.
        warnings, trained_on_rows: as in `Evaluation`.
        split: which of the run's config; None where a file was given.
    """

    classifier: Classifier
    source: str
    files: Files
    digested: list[Digested]
    store: SequenceStore
    warnings: list[str]
    split: str | None
    trained_on_rows: bool | None


def load_labelled(
    run: RunLike, *, split: str | None = None, data: str | None = None, device: str = "auto"
) -> Labelled:
    """Load a run's best model and what to score it on; takes and raises what `evaluate` does."""
    if split not in (*SPLITS, None):
        raise ConfigError(f"split: found {split!r}; expected {', '.join(SPLITS)}")
    path = find(path_of(run)).path
    classifier = load_one(path, device=device)
    named = split or ("test" if data is not None else default_split(path))
    source: str | list[str]
    if data is not None:
        source, learned = data, None
    else:
        config, source = _config_and_source(path, named)
        learned = learned_rows(config, named) != ""
    files = _files(classifier, "--data" if data is not None else f"data.{named}", source)
    digested = [Digested.read(file) for file, _ in files]
    if data is not None:
        store, warnings = _read(classifier, files, data)
    else:
        _, store, warnings = read_split(path, classifier, named)
        if named == "validation" and split is None:
            warnings = [NO_TEST, *warnings]
    for each in digested:
        each.check_unchanged()
    source = named_text(source)
    if not len(store):
        raise DataError(f"{source}: no rows to score")
    if (store.labels < 0).all():
        raise DataError(f"{source}: the model knows none of its labels; is it another set?")
    held = named if data is None else None
    return Labelled(classifier, source, files, digested, store, warnings, held, learned)


def default_split(*runs: RunLike) -> str:
    """Return test, or validation where not every run has a test split but each has that one."""
    configs = [run.config() for run in (find(path_of(run)) for run in runs) if run.holds(CONFIG)]
    splits = [
        name
        for name in ("test", "validation")
        if all(getattr(config.data, name) is not None for config in configs)
    ]
    return splits[0] if splits else "test"


def _files(classifier: Classifier, key: str, named: str | list[str]) -> Files:
    """Return what is named, each file with how the model reads its rows."""
    reading = classifier.preprocessing.reading
    return [(path, reading.for_file(path)) for path in files_of(key, named)]


def _read(classifier: Classifier, files: Files, name: str) -> tuple[SequenceStore, list[str]]:
    """Read labelled files as the model reads its rows."""
    store, report = read_encoded(classifier.preprocessing, files)
    return store, report.notices(display_name(name))


def read_split(
    path: Path, classifier: Classifier, split: str
) -> tuple[str, SequenceStore, list[str]]:
    """Return a split of the run's config: its source, its sequences, and warnings."""
    config, named = _config_and_source(path, split)
    source = named_text(named)
    rows = learned_rows(config, split)
    learned = [f"the model was trained on {rows}"] if rows else []
    held_out = held_out_fractions(config.data)
    if not (split in held_out or (held_out and split == "train")):
        store, warnings = _read(classifier, _files(classifier, f"data.{split}", named), source)
        return source, store, learned + warnings
    _check_unchanged(path, config)
    known = classifier.preprocessing if lineage(RunDirectory(path)) else None
    prepared = prepare(config, cache_folder=default_folder(), known=known)
    if prepared.preprocessing != classifier.preprocessing:
        raise CheckpointError(
            f"{path / CONFIG}: the model was trained with other preprocessing; restore it from a "
            "copy, or give a labelled file with --data"
        )
    check_held_out(config, prepared, RunDirectory(path).environment(), path)
    return source, prepared.splits[split], learned + prepared.reports[split].notices(split)


def learned_rows(config: Config, split: str | None) -> str:
    """Name a split's rows where a model learned from them, so that its scores promise too much."""
    if split == "validation" and config.training.refit:
        return "these rows too (training.refit)"
    return "these rows" if split == "train" else ""


def _config_and_source(path: Path, split: str) -> tuple[Config, str | list[str]]:
    """Return a run's config, and what it names that holds a split."""
    run = RunDirectory(path)
    if not run.holds(CONFIG):
        raise CheckpointError(
            f"{path}: a model folder names no splits; give a labelled file with --data"
        )
    config = run.config()
    named = getattr(config.data, split)
    if named is None:
        given = [name for name in SPLITS if getattr(config.data, name) is not None]
        raise ConfigError(
            f"--split: {path} has no {split} split; it has {', '.join(given)}; "
            "or give a labelled file with --data"
        )
    return config, named if isinstance(named, str | list) else config.data.train


def _check_unchanged(path: Path, config: Config) -> None:
    """A held-out part is found and encoded again only from what was held out of and counted."""
    recorded = RunDirectory(path).environment()["data"]
    named = {file: key for key, file in data_files(config)}
    again = "the held-out rows can't be found again; give a labelled file with --data"
    for file, key in named.items():
        if key in ("data.validation", "data.test"):
            continue
        found, then = digest(file), str(recorded.get(file))
        if found != then:
            is_, was = unlike(found, then)
            raise DataError(f"{file}: changed since the run: SHA-256 {is_}, then {was}; {again}")
    for file in recorded:
        if file not in named:
            raise DataError(f"{file}: the run began with it, and nothing names it now; {again}")
