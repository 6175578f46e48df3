"""A run's best model, and labelled rows to score it on: one of the run's splits, or a file."""

from dataclasses import dataclass, replace
from typing import Any

from seqtrain.api.environment import check_held_out
from seqtrain.api.load import load_one
from seqtrain.api.predict import input_of
from seqtrain.api.predictors import Classifier
from seqtrain.api.run_events import RunLike, directory_of
from seqtrain.api.start import has_grown
from seqtrain.config import Config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import held_out_fractions, prepare
from seqtrain.data.readers import Files
from seqtrain.data.sources import data_files, files_of, named_text
from seqtrain.data.store import SequenceStore
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.runs.destination import CONFIG, ENVIRONMENT
from seqtrain.runs.run_directory import RunDirectory, changed_data, other_data
from seqtrain.text import display_name, one_of

SPLITS = ("test", "validation", "train")
NO_TEST = "there is no test split; these are predictions for validation, which chose the best epoch"

A_FILE = "a labelled file with --data"


@dataclass(frozen=True)
class Labelled:
    """A classifier, and labelled sequences for it.

    Attributes:
        source: the file that was read, or the files, as they were named.
        digests: SHA-256 of each file, by path.
        split: which of the run's config; None where a file was given.
        trained_on_rows: whether scores promise too much, as the model was trained on these rows;
            None where a file was given.
    """

    classifier: Classifier
    source: str
    files: Files
    digests: dict[str, str]
    store: SequenceStore
    warnings: list[str]
    split: str | None = None
    trained_on_rows: bool | None = None


def load_labelled(
    run: RunLike, *, split: str | None = None, data: Any = None, device: str = "auto"
) -> Labelled:
    """Load a run's best model and what to score it on; as `evaluate`."""
    if split not in (*SPLITS, None):
        raise ConfigError(f"split: found {split!r}; expected {', '.join(SPLITS)}")
    directory = directory_of(run)
    classifier = load_one(directory.path, device=device)
    if data is not None:
        path, _table = input_of(data, classifier.preprocessing.reading)
        found = _read_files(classifier, path, "--data")
    else:
        found = read_split(directory, classifier, split or default_split(directory.path))
        if found.split == "validation" and split is None:
            found.warnings.insert(0, NO_TEST)
    if not len(found.store):
        raise DataError(f"{found.source}: no rows to score")
    if (found.store.labels < 0).all():
        raise DataError(f"{found.source}: the model knows none of its labels; is it another set?")
    return found


def default_split(*runs: RunLike) -> str:
    """Return test, or validation where not every run has a test split but each has that one."""
    configs = [run.config() for run in (directory_of(run) for run in runs) if run.holds(CONFIG)]
    for name in ("test", "validation"):
        if all(getattr(config.data, name) is not None for config in configs):
            return name
    return "test"


def read_split(run: RunDirectory, classifier: Classifier, split: str) -> Labelled:
    """Return a split of the run's config; raises as `evaluate`."""
    if not run.holds(CONFIG):
        raise CheckpointError(f"{run.path}: a model folder names no splits; give {A_FILE}")
    config = run.config()
    named = getattr(config.data, split)
    if named is None:
        given = [name for name in SPLITS if getattr(config.data, name) is not None]
        advice = f"give --split {one_of(given)}, or {A_FILE}"
        raise ConfigError(f"--split: {run.path} has no {split} split; {advice}")
    held_out = held_out_fractions(config.data)
    if split in held_out or (held_out and split == "train"):
        found = _hold_out_again(run, config, classifier, split)
    else:
        found = _read_files(classifier, named, f"data.{split}")
        if run.holds(ENVIRONMENT):
            found.warnings[:0] = changed_data(run.environment()["data"], found.digests)
    rows = learned_rows(config, split)
    if rows:
        found.warnings.insert(0, f"the model was trained on {rows}")
    return replace(found, split=split, trained_on_rows=bool(rows))


def learned_rows(config: Config, split: str | None) -> str:
    """Name a split's rows where a model learned from them, so that its scores promise too much."""
    if split == "validation" and config.training.refit:
        return "these rows too (training.refit)"
    return "these rows" if split == "train" else ""


def _read_files(classifier: Classifier, named: str | list[str], key: str) -> Labelled:
    reading = classifier.preprocessing.reading
    files = [(path, reading.for_file(path)) for path in files_of(key, named)]
    digests: dict[str, str] = {}
    store, report = classifier.preprocessing.encode_files(files, digests)
    source = named_text(named)
    return Labelled(classifier, source, files, digests, store, report.notices(display_name(source)))


def _hold_out_again(
    run: RunDirectory, config: Config, classifier: Classifier, split: str
) -> Labelled:
    known = classifier.preprocessing if has_grown(run) else None
    prepared = prepare(config, cache_folder=default_folder(), known=known)
    recorded = run.environment()
    keys = {path: key for key, path in data_files(config)}
    scored = ("data.validation", "data.test")
    learned = {x: digest for x, digest in prepared.digests.items() if keys.get(x) not in scored}
    changed = other_data(recorded["data"], learned, keys)
    if changed:
        raise DataError(f"{changed[0]}; the held-out rows can't be found again; give {A_FILE}")
    if prepared.preprocessing != classifier.preprocessing:
        problem = "the model was trained with other preprocessing"
        raise CheckpointError(f"{run.path / CONFIG}: {problem}; restore it, or give {A_FILE}")
    check_held_out(config, prepared, recorded, run.path)
    reading, named = classifier.preprocessing.reading, config.data.train
    files = [(path, reading.for_file(path)) for path in files_of("data.train", named)]
    digests = {path: prepared.digests[path] for path, _ in files}
    warnings = prepared.reports[split].notices(split)
    return Labelled(classifier, named_text(named), files, digests, prepared.splits[split], warnings)
