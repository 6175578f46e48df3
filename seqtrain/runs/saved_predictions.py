"""Files of a run with its predictions for a split, so that they can be shown without the model."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError

from seqtrain.errors import SeqtrainError
from seqtrain.evaluation.predicted_example import PredictedExample
from seqtrain.evaluation.scores import Scores
from seqtrain.files.reading import read_file
from seqtrain.files.writing import MANIFEST, write_file
from seqtrain.runs.run_directory import CONFIG, PREDICTIONS, RunDirectory
from seqtrain.sequences.dataset import held_out_fractions
from seqtrain.sequences.readers.opening import file_digest
from seqtrain.sequences.sources import files_of

LARGEST_PREDICTIONS = 2**25
"""Largest size of a file of predictions, in bytes. A larger one isn't written."""


@dataclass(frozen=True)
class SplitResults:
    """Predictions of a run for one split or file, as `errors` and `report` show them.

    Attributes:
        data: Description of the data, such as the name of the file.
        split: Split of the run's config, or None for other data.
        digests: Maps the path of each data file to its SHA-256.
        warnings: Warnings about the rows, one line each.
        model: Description of the model for people.
        scores: Scores of the whole model.
        branches: Maps the name of each branch to its scores; empty if there is one branch.
        errors: The wrong predictions, the most confident first.
        reliability: Pairs of mean probability and accuracy, for predictions with a probability from
            0 to 0.1, from 0.1 to 0.2, and so on. Intervals without predictions have no pair.
        precision_recall: Maps the label of each large class to pairs of recall and precision at
            some thresholds.
        trained_on_rows: True if the model was trained on these rows, so the scores are too high.
    """

    data: str
    split: str | None
    digests: Mapping[str, str]
    warnings: Sequence[str]
    model: str
    scores: Scores
    branches: Mapping[str, Scores]
    errors: Sequence[PredictedExample]
    reliability: Sequence[tuple[float, float]]
    precision_recall: Mapping[str, Sequence[tuple[float, float]]]
    trained_on_rows: bool = False


@dataclass(frozen=True)
class _Saved:
    """Content of a file of predictions.

    Attributes:
        key: Digest of the run's config and of its best model when the file was written.
        results: The predictions.
    """

    key: str
    results: SplitResults


@cache
def _adapter() -> TypeAdapter[_Saved]:
    return TypeAdapter(_Saved)


def save_results(run: RunDirectory, results: SplitResults) -> None:
    """Write the predictions of a run for one of its splits into the run directory.

    Nothing is written for data outside of the splits, or if the file would exceed
    `LARGEST_PREDICTIONS` bytes.

    Args:
        run: Run directory.
        results: Predictions and scores.

    Raises:
        RunError: If the file can't be written.
        CheckpointError: If the run's config or its best model can't be read.
    """
    content = _adapter().dump_json(_Saved(_key(run), results))
    if results.split in PREDICTIONS and len(content) <= LARGEST_PREDICTIONS:
        write_file(run.path / PREDICTIONS[results.split], content)


def saved_results(run: RunDirectory, split: str) -> SplitResults | None:
    """Return the saved results of a split, or None if they are missing, damaged or outdated.

    Results are outdated if the config, the best model or a data file changed, or if the config now
    names other files.
    """
    name = PREDICTIONS.get(split, "")
    with suppress(SeqtrainError, ValidationError, OSError):
        if run.holds(name) and run.holds(CONFIG):
            saved = _adapter().validate_json(read_file(run.path / name))
            digests = saved.results.digests
            is_current = saved.key == _key(run) and _files_of_split(run, split) == {*digests}
            if is_current and all(map(_is_unchanged, digests.items())):
                return saved.results
    return None


def _key(run: RunDirectory) -> str:
    """Return a digest of a run's config and of its best model."""
    files = (run.path / CONFIG, run.best / MANIFEST)
    return sha256(b"\0".join(map(read_file, files))).hexdigest()


def _files_of_split(run: RunDirectory, split: str) -> set[str]:
    """Return the paths of the files that hold the rows of a split, as the config names them now."""
    data = run.config().data
    key = "train" if split in held_out_fractions(data) else split
    return {*files_of(f"data.{key}", getattr(data, key))}


def _is_unchanged(file: tuple[str, str]) -> bool:
    """Return True if a file, a pair of path and SHA-256, exists and has this SHA-256."""
    path, digest = file
    return os.path.isfile(path) and file_digest(path) == digest
