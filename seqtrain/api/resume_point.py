"""Whether a run may go on: with the same config and data, and on a like machine to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqtrain.config import Config
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import data_files
from seqtrain.errors import CheckpointError, ConfigError, RunError
from seqtrain.files.folder import read_folder
from seqtrain.files.strict_json import to_json
from seqtrain.runs.checkpoint import STATE, Checkpoint, read_checkpoint
from seqtrain.runs.model_folder import Model, load_model
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, RunDirectory, changed_data
from seqtrain.training.state import Progress, checked_progress

MAY_CHANGE = (
    "training.max_epochs",
    "training.patience",
    "training.checkpoint_every",
    "training.device",
)
"""Keys that may differ from the run's config when it goes on."""
ANEW = "start anew with --force"
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json on which the last bits of a result depend."""


@dataclass(frozen=True)
class ResumePoint:
    """What a run goes on from.

    Attributes:
        recorded: its environment.json.
        folder: of the checkpoint.
        checkpoint: the newest whole one.
        warnings: a line for each damaged one that was skipped.
    """

    recorded: dict[str, Any]
    folder: Path
    checkpoint: Checkpoint
    warnings: list[str]


def read_resume_point(run: RunDirectory, config: Config) -> ResumePoint:
    """Read what a run goes on from, and refuse one that could not come to its end.

    Args:
        run: locked.
        config: its own, but for what may change.

    Raises:
        ConfigError: more epochs are done than it allows.
        CheckpointError: what going on needs is missing or damaged.
    """
    recorded = run.environment()
    folder, checkpoint, skipped = newest_checkpoint(run)
    try:
        progress = checked_progress(checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{folder / STATE}: not a training state ({error})") from None
    run.cut_metrics(checkpoint.metrics_length, only_check=True)
    if not progress.pretraining:
        _check_epochs(progress, config)
        _check_best(progress, run)
    return ResumePoint(recorded, folder, checkpoint, skipped)


def _check_epochs(progress: Progress, config: Config) -> None:
    """Refuse to end a run before where it stands."""
    begun, most = progress.epoch + bool(progress.batches_done), config.training.max_epochs
    if most != "auto" and begun > most:
        done = f"epoch {begun} has begun" if progress.batches_done else f"{begun} epochs are done"
        raise ConfigError(
            f"training.max_epochs: found {most}, but {done}; expected {begun} or more"
        )


def _check_best(progress: Progress, run: RunDirectory) -> None:
    """Refuse to go on without the best model, unless the checkpoint holds it.

    Where the machine fails to read it, nothing has been changed yet.
    """
    if progress.best_epoch == 0:
        return
    try:
        load_model(run.best)
    except CheckpointError as error:
        if is_best(progress):
            return
        advice = f"restore it from a copy, or {ANEW}"
        raise CheckpointError(
            *error.problems, f"{run.best}: the run can't end without its best model; {advice}"
        ) from None


def is_best(progress: Progress) -> bool:
    """Whether it stands at the end of the best epoch, or of the refit: its model is the best."""
    best = progress.refit_epochs if progress.refit else progress.best_epoch
    return progress.batches_done == 0 and 0 < progress.epoch == best


def stays(path: Path) -> str:
    """Say that something can't be removed."""
    return f"{path}: can't be removed, so it stays; the next --resume tries again"


def check_config_unchanged(config: Config, run: RunDirectory) -> None:
    """Refuse to go on with another config than the run began with.

    Raises:
        CheckpointError: names each key that differs.
    """
    if not run.holds(CONFIG):
        raise CheckpointError(
            f"{run.path}: no {CONFIG} in it, so no run to go on with; name another, or {ANEW}"
        )
    before, now = _by_key(run.config()), _by_key(config)
    changed = [
        f"{key}: found {_shown(now[key])}, but {run.path / CONFIG} has {_shown(before[key])}"
        for key in sorted(now)
        if to_json(before[key]) != to_json(now[key]) and key not in MAY_CHANGE  # 1 isn't true
    ]
    if changed:
        raise CheckpointError(
            *changed, f"{run.path}: only {', '.join(MAY_CHANGE)} may change on --resume"
        )


def check_data_unchanged(
    config: Config, digests: Mapping[str, str], recorded: Mapping[str, Any], run: RunDirectory
) -> None:
    """Refuse to go on with other data than the run began with.

    Args:
        config: of the run.
        digests: SHA-256 of each data file that was read now, by path.
        recorded: the run's environment.json.
        run: for the message.

    Raises:
        CheckpointError: names each file that differs, with both digests.
    """
    before, named = recorded["data"], {path for _, path in data_files(config)}
    changed = changed_data(before, digests)
    changed += [f"{file}: {ENVIRONMENT} has no SHA-256 of it" for file in digests.keys() - before]
    changed = [f"{line}; restore the file, or {ANEW}" for line in changed]
    changed += [
        f"{file}: {run.path} began with it, and nothing names it now; restore the file, or {ANEW}"
        for file in before
        if file not in named
    ]
    if changed:
        raise CheckpointError(*changed)


def newest_checkpoint(run: RunDirectory) -> tuple[Path, Checkpoint, list[str]]:
    """Return the last checkpoint's folder and content; where it is damaged, those before it.

    Returns:
        Folder, checkpoint, and a warning for each damaged one that was skipped.

    Raises:
        CheckpointError: none is whole; says of each why.
        RunError: none can be read, one of them because the machine failed to.
    """
    problems: list[str] = []
    failed = False
    for folder in (run.last, run.previous):
        try:
            checkpoint = read_folder(folder, read_checkpoint)
        except (CheckpointError, RunError) as error:
            problems += error.problems
            failed = failed or isinstance(error, RunError)
            continue
        step = checkpoint.progress.get("updates")
        return folder, checkpoint, [f"{p}; going on from {folder} (step {step})" for p in problems]
    if failed:
        raise RunError(*problems)
    raise CheckpointError(*problems, f"{run.path}: no whole checkpoint to go on from; {ANEW}")


def check_model_unchanged(
    model: Model, config: Config, preprocessing: Preprocessing, folder: Path
) -> None:
    """Refuse a checkpoint of another architecture, or of other preprocessing.

    Args:
        model: of the checkpoint.
        config: of this run.
        preprocessing: fitted on this run's train.
        folder: of the checkpoint.

    Raises:
        CheckpointError: as said.
    """
    what = None
    if model.network.config != config.model.architecture:
        what = "architecture isn't that of the run's config"
    elif model.preprocessing != preprocessing:
        what = "vocabulary, labels or preprocessing aren't those of the run's train"
    if what:
        raise CheckpointError(f"{folder}: the {what}; restore the folder from a copy")


def inexact(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say what differs from the machine the run began on, so that the last bits may too."""
    before = {"processes": 1, **recorded}
    changed = [
        f"{name} was {before.get(name)}, is {here[name]}"
        for name in EXACT_ON
        if before.get(name) != here[name]
    ]
    return [f"going on may not be exact to the bit: {'; '.join(changed)}"] if changed else []


def _by_key(config: Config) -> dict[str, Any]:
    """Return every value of a config by its dotted key."""
    flat: dict[str, Any] = {}
    for name, value in config.model_dump().items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
