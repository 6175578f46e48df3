"""`seqtrain.evaluate`: scores of a run on one of its splits or on other labelled data."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.api.classifier import Classifier, check_alike, load, one_model, refuse_multi_label
from seqtrain.api.named_runs import NO_TEST, RunLike, default_split, directory_of, learned_rows
from seqtrain.config import Config
from seqtrain.errors import CheckpointError, ConfigError, DataError, SeqtrainError, parameter, warn
from seqtrain.evaluation.logits import branch_logits
from seqtrain.evaluation.prefixes import score_prefixes
from seqtrain.evaluation.scores import Scores, missing_class_warnings, single_class_warnings
from seqtrain.evaluation.scoring import score, score_branches
from seqtrain.runs.environment import check_same_data
from seqtrain.runs.overview import first_model_scores
from seqtrain.runs.run_directory import (
    CONFIG,
    ENVIRONMENT,
    RunDirectory,
    changed_data,
    members,
    name_one,
)
from seqtrain.runs.starting_point import keeps_old_preprocessing
from seqtrain.sequences.dataset import held_out_fractions, prepare
from seqtrain.sequences.inputs import Input, digests_of, table_source, unchanged
from seqtrain.sequences.labels import unknown_rows
from seqtrain.sequences.loading import load_inputs
from seqtrain.sequences.schema import Schema
from seqtrain.sequences.sources import files_of, named_text, source_of
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.formats import MEMORY
from seqtrain.text import Summarized, display_name, listed, one_of, quote

SCORED_SPLITS = ("test", "validation", "train")
A_FILE = f"a labelled file with {parameter('data')}"
EACH_BY_ONE = "each row is predicted by the one run that has it in this split"
LEAST_PROBABILITY, MOST_PROBABILITY = 1e-300, 1 - 1e-16
"""Probabilities that replace 0 and 1, because their logits aren't finite."""


@dataclass(frozen=True)
class Labelled:
    """A classifier of one model, and labelled sequences that were encoded for it.

    Attributes:
        classifier: The classifier.
        source: Name of the file or files that were read.
        files: Files or table from which the sequences were read.
        digests: Maps the path of each file to its SHA-256.
        store: The encoded sequences with their labels.
        warnings: Warnings about the rows, one line each.
        split: Split of the run's config, or None for other data.
        trained_on_rows: True if the model was trained on these rows, False if it wasn't, or None if
            it is unknown.
    """

    classifier: Classifier
    source: str
    files: list[Input]
    digests: dict[str, str]
    store: SequenceStore
    warnings: list[str]
    split: str | None = None
    trained_on_rows: bool | None = None

    @cached_property
    def scored(self) -> tuple[Tensor, Scores, dict[str, Scores]]:
        """The model's logits, (B, C), their scores, and the scores of each branch by name.

        There are no scores of branches if the model has one branch.

        Raises:
            RunError: If memory ran out, or a logit isn't finite.
        """
        one = self.classifier
        store = self.store
        branches = branch_logits(one.network, store, one.device)
        return score_branches(one.network, branches, store, one.labels, one.decision_thresholds)

    @property
    def probabilities(self) -> Tensor:
        """Probability of each class, (B, C) float64."""
        return self.classifier.network.probabilities(self.scored[0])

    def by_share(self) -> list[dict[str, float]]:
        """Return scores after 10 %, 20 % … of each sequence, as `score_prefixes` returns them.

        Raises:
            ConfigError: If the task is multi-label.
        """
        refuse_multi_label(self.classifier)
        one = self.classifier
        return score_prefixes(one.network, self.store, one.device, one.decision_thresholds)


def load_labelled(
    run: RunLike, *, split: str | None = None, data: Any = None, device: str = "auto"
) -> Labelled:
    """Load a run's best model, and read and encode the rows to score.

    Arguments are as for `evaluate`, but `run` can't be an ensemble. Warn in `Labelled.warnings` if
    the model was trained on the rows, or if validation replaces a missing test split.

    Raises:
        ConfigError: If the run has no such split, or if both `split` and `data` are set. Also if
            the directory holds several runs, or there is no such device.
        DataError: If the rows can't be read, if there are none, or if the model knows none of their
            labels.
        CheckpointError, RunError: If `evaluate` would raise it.
    """
    if split not in (*SCORED_SPLITS, None):
        raise ConfigError(f"split: found {split!r}; expected {', '.join(SCORED_SPLITS)}")
    if split is not None and data is not None:
        raise ConfigError(
            f"{parameter('split')}: {parameter('data')} names the file to score on; give one of "
            "them"
        )
    directory = directory_of(run)
    classifier = one_model(load(run, device=device))
    if data is None:
        found = read_split(directory, classifier, split or default_split(run))
        if found.split == "validation" and split is None:
            found.warnings.insert(0, NO_TEST)
    elif isinstance(data, str | PathLike):
        found = _read_files(classifier, fspath(data), parameter("data"))
    else:
        table = table_source(data, classifier.preprocessing.schema)
        found = _encoded(classifier, table.name, [table])
    if data is not None:
        learned = _learned_files(directory, found.digests)
    else:
        learned = ""
    if learned:
        found.warnings.insert(
            0, f"the model was trained on these rows ({learned}), so its scores are too high"
        )
        found = replace(found, trained_on_rows=True)
    if not len(found.store):
        raise DataError(f"{found.source}: no rows to score")
    if unknown_rows(found.store.labels).all():
        known = listed(list(map(quote, classifier.labels)))
        raise DataError(f"{found.source}: none of its labels is one of the model's: {known}")
    return found


def read_split(run: RunDirectory, classifier: Classifier, split: str) -> Labelled:
    """Read and encode a split that the run's config names.

    A split with its own files is read from them. A changed file only gives a warning.

    If rows were held out of train, train and the held-out split are divided again as in training.
    This needs the unchanged files of train.

    Args:
        run: The run.
        classifier: The run's classifier.
        split: test, validation or train.

    Raises:
        CheckpointError: If `run` is a model folder, or if files that must be divided again changed.
        ConfigError: If the run has no such split.
        DataError: If a file is missing or has rows that can't be used.
    """
    if not run.holds(CONFIG):
        raise CheckpointError(f"{run.path}: a model folder names no splits; give {A_FILE}")
    config = run.config()
    named = getattr(config.data, split)
    if named is None:
        given = [name for name in SCORED_SPLITS if getattr(config.data, name) is not None]
        lines = [
            f"{parameter('split')}: {run.path} has no {split} split; give {parameter('split')} "
            f"{one_of(given)}, or {A_FILE}"
        ]
        if given == ["train"]:
            lines.append("to score rows that weren't trained on: seqtrain fit CONFIG --folds 5")
        raise ConfigError(*lines)
    joins: Any = tuple(config.data.join or ())
    schema = replace(classifier.preprocessing.schema, join=joins)
    held_out = held_out_fractions(config.data)
    if split in held_out or (held_out and split == "train"):
        found = _hold_out_again(run, config, classifier, split, schema)
    else:
        found = _read_files(classifier, named, f"data.{split}", schema)
        if run.holds(ENVIRONMENT):
            found.warnings[:0] = changed_data(run.environment()["data"], found.digests)
    rows = learned_rows(config, split)
    if rows:
        found.warnings.insert(0, f"the model was trained on {rows}{_on_folds(run, config)}")
    return replace(found, split=split, trained_on_rows=bool(rows))


def _on_folds(run: RunDirectory, config: Config) -> str:
    """Return a command by which each row is predicted without being learned, for a message.

    It is "" if train was a table in memory.
    """
    if str(config.data.train).startswith(MEMORY):
        return ""
    path = shlex.quote(os.path.join(run.path, CONFIG))
    return f"; to predict each row by a model that didn't learn it: seqtrain fit {path} --folds 5"


def _learned_files(run: RunDirectory, digests: Mapping[str, str]) -> str:
    """Return the config key of training files that include a file to score on, or "" if none do.

    Files are compared by content. Training files are the files of train, and with
    ``training.refit`` also the files of validation. A model folder doesn't record its files, so the
    result is "".

    Args:
        run: The run.
        digests: Maps the path of each file to score on to its SHA-256.
    """
    if not (run.holds(CONFIG) and run.holds(ENVIRONMENT)):
        return ""
    config = run.config()
    recorded = run.environment()["data"]
    for split in ("train", "validation"):
        named = getattr(config.data, split)
        if not learned_rows(config, split) or not isinstance(named, str | list):
            continue
        with suppress(SeqtrainError):  # files that moved are no reason to refuse others
            known = {recorded.get(path) for path in files_of(f"data.{split}", named)}
            if known & set(digests.values()):
                return f"data.{split}"
    return ""


def _read_files(
    classifier: Classifier, value: str | list[str], key: str, schema: Schema | None = None
) -> Labelled:
    """Read and encode labelled files.

    Args:
        classifier: The classifier.
        value: Path, pattern or list of paths.
        key: Config key or option that named the files, for messages.
        schema: Schema with the files that the config joins, or None to join those beside the files.
    """
    known = classifier.preprocessing.schema
    sources = [source_of(path, schema or known.beside(path)) for path in files_of(key, value)]
    is_table = isinstance(value, str) and sources[0].table is not None
    return _encoded(classifier, sources[0].name if is_table else named_text(value), sources)


def _encoded(classifier: Classifier, name: str, sources: list[Input]) -> Labelled:
    """Read and encode the rows of labelled sources, whose name in messages is `name`."""
    with unchanged(sources):
        store, report = load_inputs(classifier.preprocessing, sources)
        digests = digests_of(sources)
    return Labelled(classifier, name, sources, digests, store, report.notices(display_name(name)))


def _hold_out_again(
    run: RunDirectory, config: Config, classifier: Classifier, split: str, schema: Schema
) -> Labelled:
    """Return a split after reading train again and holding out the same rows as in training.

    Raises:
        CheckpointError: If `check_same_data` raises it. Files that are only scored may differ.
        DataError: If the data can't be read.
    """
    fitted = classifier.preprocessing
    prepared = prepare(config, known=fitted if keeps_old_preprocessing(run) else None)
    check_same_data(run, config, prepared, fitted, ("data.validation", "data.test"))
    files = [source_of(path, schema) for path in files_of("data.train", config.data.train)]
    digests = {source.path: prepared.digests[source.path] for source in files}
    name = named_text(config.data.train)
    shown = display_name(name) if split == "train" else split
    warnings = prepared.reports[split].notices(shown)
    return Labelled(classifier, name, files, digests, prepared.splits[split], warnings)


@dataclass(frozen=True, repr=False)
class Evaluation(Summarized):
    """Scores of a run on a split or on other data.

    Attributes:
        run: Directory of the run.
        data: Name of the file, files or table that was read.
        scores: Scores of the model, or of the ensemble. After a refit without a test split, those
            of the model before the refit on validation: the honest figures, as `fit` shows them.
        warnings: Limits of the scores, one line each.
        by_share: Scores after 10 %, 20 % … of each sequence, as `score_prefixes` returns them, or
            None if `steps` was False.
        parts: Maps the name of each branch to its scores. For an ensemble, maps the name of each
            run to its scores. Empty for one run with one branch.
        split: Split of the run's config, or None for other data.
        ensemble: True if several runs predicted each row, by the mean of their probabilities. False
            if one run predicted each row.
        trained_on_rows: True if the model of `scores` was trained on these rows, so that they are
            too high. False if it wasn't. None if this is unknown.
        learned: Scores of the model after such a refit, on the rows of validation that it learned:
            they are too high. `by_share` and `parts` are then of this model, too. None in other
            cases.
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
    learned: Scores | None = None

    def summary(self) -> dict[str, str]:
        """Return split (or nothing for other data), data, metrics, and any warnings, by heading."""
        source = {"split": self.split} if self.split else {}
        found = {**source, "data": display_name(self.data), **self.scores.summary()}
        return found | ({"warnings": "; ".join(self.warnings)} if self.warnings else {})


def evaluate(
    run: RunLike = None,
    *,
    split: str | None = None,
    data: Any = None,
    steps: bool = False,
    device: str = "auto",
) -> Evaluation:
    """Score a run's best model, or an ensemble, on labelled data.

    Warnings are also issued as `SeqtrainWarning`.

    Args:
        run: A run directory, a model folder, what `fit` or `load` returned, or None for the newest
            run.
        split: test, validation or train, as the run's config names them. None for test, or
            validation if there is no test split.
        data: Data to score in place of a split: a labelled file, a pattern of several files, or a
            table as `fit` takes it. None to score a split.
        steps: Also score predictions after 10 %, 20 % … of each sequence.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError: If there is no complete model, or `run` is a model folder without `data`.
            Also if the split was held out of files that changed.
        ConfigError: If the run has no such split, there is no such device, or both `split` and
            `data` are set. Also if `steps` is True for an ensemble or a multi-label task, or if the
            runs of an ensemble hold out different rows.
        DataError: If a file is missing or has rows that can't be used. If there are no rows, or
            the model knows none of their labels.
        RunError: If memory ran out, or a prediction isn't finite.
    """
    path = directory_of(run).path
    runs = members(path)
    if runs and steps:
        raise ConfigError(f"{parameter('steps')}: {name_one(path)}")
    chosen: list[RunLike] = list(runs) or [run if isinstance(run, Classifier) else path]
    each = [load_labelled(one, split=split, data=data, device=device) for one in chosen]
    first = each[0]
    if runs:
        scores, parts = score_together(path, each)
    else:
        scores, parts = first.scored[1:]
    directory = RunDirectory(path)
    is_learned = first.trained_on_rows
    learned = None
    if first.split == "validation" and not runs and directory.path.is_dir():
        before = first_model_scores(directory)
        if before is not None:
            learned = scores
            scores = before
            is_learned = False
    warnings = list(dict.fromkeys(line for one in each for line in one.warnings))
    name = first.split or display_name(first.source)
    warnings += single_class_warnings(scores, name) or missing_class_warnings(scores, name)
    warn(*warnings)
    return Evaluation(
        run=path,
        data=first.source,
        scores=scores,
        warnings=warnings,
        by_share=first.by_share() if steps else None,
        parts=parts,
        split=first.split,
        ensemble=bool(runs) and EACH_BY_ONE not in warnings,
        trained_on_rows=is_learned,
        learned=learned,
    )


def score_together(path: Path, each: Sequence[Labelled]) -> tuple[Scores, dict[str, Scores]]:
    """Return the scores of an ensemble, and the scores of each run by its name.

    An ensemble predicts by the means of its runs' probabilities and thresholds. If the runs hold
    out different rows for validation, each row is predicted only by a run that held it out. Then
    the first item of `each` gets the warning EACH_BY_ONE.

    Args:
        path: Directory of the ensemble.
        each: Model and encoded sequences of each run.

    Raises:
        CheckpointError: If the runs differ in their labels or kind of sequences.
        ConfigError: If the runs hold out different rows, unless these are validation splits.
    """
    check_alike({x.classifier.path.name: x.classifier.preprocessing for x in each}, path)
    first = each[0]
    stores = [one.store for one in each]
    shared = all(np.array_equal(store.lines, stores[0].lines) for store in stores)
    same_files = {one.source for one in each} == {first.source}
    if not same_files or not (shared or first.split == "validation"):
        raise ConfigError(
            f"{parameter('split')}: each run has other rows in {first.split}; name one, such as "
            f"{first.classifier.path}, or give {A_FILE}"
        )
    own = [one.probabilities for one in each]
    least = np.array([one.classifier.decision_thresholds for one in each])
    if shared:
        together, true, lengths = torch.stack(own).mean(0), first.store.labels, first.store.lengths
        thresholds = least.mean(axis=0)
    else:
        first.warnings.append(EACH_BY_ONE)
        together = torch.cat(own)
        true = np.concatenate([store.labels for store in stores])
        lengths = np.concatenate([store.lengths for store in stores])
        thresholds = least.repeat([len(store) for store in stores], axis=0)
    together = together.clamp(LEAST_PROBABILITY, MOST_PROBABILITY)
    if first.classifier.preprocessing.multi_label:
        logits = together.logit()
    else:
        logits = together.log()
    parts = {one.classifier.path.name: one.scored[1] for one in each}
    return score(logits, true, lengths, first.classifier.labels, thresholds, ranked=True), parts
