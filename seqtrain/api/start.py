"""What a run starts from: nothing, an old model, or its last checkpoint; checked before its data.

The first process alone looks at the run directory. It tells the others what else they need.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqtrain.api.origin import Origin, lineage, read_origin
from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.sources import check_files, data_files
from seqtrain.errors import CheckpointError, ConfigError, RunError
from seqtrain.files.folder import read_folder
from seqtrain.runs.checkpoint import STATE, Checkpoint, read_checkpoint
from seqtrain.runs.destination import check_destination
from seqtrain.runs.finding import find
from seqtrain.runs.model_folder import load_model
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, RunDirectory, changed_data
from seqtrain.training.distributed import Processes
from seqtrain.training.state import Progress, checked_progress

MAY_CHANGE = (
    "training.max_epochs",
    "training.patience",
    "training.checkpoint_every",
    "training.device",
)
"""Keys that may differ from the run's config when it goes on."""
NEW_RUN = "begin a new run with --force"
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json on which the last bits of a result depend."""


@dataclass(frozen=True)
class Request:
    """Where a caller wants a run, and how it begins.

    Attributes:
        directory: of the run; None: runs/<name>-<time>.
        source: the YAML file, which names the run; None: "run".
        init_from: run or model folder whose weights training begins from, or None.
        resume: go on with the run.
        force: replace the run.
    """

    directory: Path | None = None
    source: Path | None = None
    init_from: str | Path | None = None
    resume: bool = False
    force: bool = False

    @property
    def name(self) -> str:
        """First part of the run's default name."""
        return "run" if self.source is None else self.source.stem

    @property
    def beside(self) -> Path | None:
        """Folder of the YAML file, for the message where a data file is missing."""
        return None if self.source is None else self.source.parent


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


@dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
        request: as it holds now, where a launcher may have started the processes again.
        reading: the config to read the data by.
        known: the preprocessing that it keeps; None: it is fitted on train.
        origin: an old model; None: fresh weights, or the run's own.
        run: that goes on; None: a new one, or another process's.
        point: where it goes on.
    """

    request: Request
    reading: Config
    known: Preprocessing | None = None
    origin: Origin | None = None
    run: RunDirectory | None = None
    point: ResumePoint | None = None

    @property
    def lineage(self) -> list[dict[str, str]]:
        """The models that it goes back to, as environment.json has them."""
        return [] if self.origin is None else self.origin.lineage


def find_start(held: ExitStack, config: Config, request: Request, processes: Processes) -> Start:
    """Find what a run starts from.

    Args:
        held: keeps the lock of a run that goes on.
        config: resolved.
        request: what is asked for.
        processes: that train together.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
    """
    if processes.is_first:
        start, folder = _first_start(held, config, after_restart(request, processes))
        processes.broadcast(json.dumps([start.request.resume, folder]).encode())
        return start
    resume, folder = json.loads(processes.broadcast())
    known = None
    if folder and processes.local_rank == 0:
        known = load_model(Path(folder)).preprocessing
    return Start(replace(request, resume=resume), _reading(config, grown=resume and folder), known)


def _reading(config: Config, *, grown: bool) -> Config:
    """Return the config to read data by: a vocabulary that grew has a file's words already."""
    return config.model_copy(update={"model": config.model.architecture}) if grown else config


def after_restart(request: Request, processes: Processes) -> Request:
    """Return what holds now where the launcher has started all processes again.

    A run that this launch began goes on from its last checkpoint, or begins again.

    Raises:
        ConfigError: a launcher that restarts needs a directory; or --resume with --init-from.
    """
    if processes.may_restart and request.directory is None:
        raise ConfigError(
            "--run-dir: torchrun --max-restarts starts lost processes again, which must find the "
            "run; name its directory"
        )
    if processes.restarts and request.directory is not None:
        run = RunDirectory(request.directory)
        try:
            ours = run.environment().get("launch") == processes.launch
        except CheckpointError:
            ours = False  # it has no environment.json yet
        if ours:
            begun = run.holds(CONFIG)
            request = replace(request, init_from=None if begun else request.init_from)
            request = replace(request, resume=begun, force=not begun)
    if request.resume and request.init_from is not None:
        raise ConfigError("--init-from: begins a run, and --resume goes on with one; give one")
    return request


def _first_start(held: ExitStack, config: Config, request: Request) -> tuple[Start, str]:
    """Return what the run starts from, and the model folder whose preprocessing it keeps."""
    check_files(config, request.beside)
    if not request.resume:
        sources = [request.source]
        check_destination(
            request.directory, "run", "--run-dir", force=request.force, sources=sources
        )
        if request.directory is not None:
            _refuse_data_inside(request.directory, config)
        if request.init_from is None:
            return Start(request, config), ""
        origin = read_origin(request.init_from, config)
        known = origin.model.preprocessing
        return Start(request, config, known, origin), str(origin.folder)
    run = _run_to_resume(request, config)
    held.enter_context(run.lock())
    point = read_resume_point(run, config)
    if not lineage(run):
        return Start(request, config, run=run, point=point), ""
    reading, known = _reading(config, grown=True), point.checkpoint.model.preprocessing
    return Start(request, reading, known, run=run, point=point), str(point.folder)


def _run_to_resume(request: Request, config: Config) -> RunDirectory:
    """Find the run to go on with, and refuse another config before any data is read."""
    if request.force:
        raise ConfigError("--force: replaces a run, and --resume goes on with it; give one of them")
    path = request.directory
    if path is not None and not os.path.exists(path):
        raise CheckpointError(
            f"{path}: no such run (looked for {os.path.abspath(path)}); to begin one there, leave "
            "out --resume"
        )
    run = find(path, request.name)
    check_config_unchanged(config, run)
    return run


def _refuse_data_inside(directory: Path, config: Config) -> None:
    """Refuse a run directory that holds a data file: the run's own files could replace it."""
    for key, path in data_files(config):
        real = Path(os.path.realpath(path))  # unlike resolve(), also of a loop of links
        if real.is_relative_to(os.path.realpath(directory)):
            raise ConfigError(
                f"--run-dir: {directory} holds {key} ({real}); choose another directory"
            )


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
    raise CheckpointError(*problems, f"{run.path}: no whole checkpoint to go on from; {NEW_RUN}")


def _check_epochs(progress: Progress, config: Config) -> None:
    """Refuse to end a run before where it stands."""
    begun, most = progress.epoch + bool(progress.batches_done), config.training.max_epochs
    if most != "auto" and begun > most:
        done = f"epoch {begun} has begun" if progress.batches_done else f"{begun} epochs are done"
        raise ConfigError(
            f"training.max_epochs: found {most}, but {done}; expected {begun} or more"
        )


def _check_best(progress: Progress, run: RunDirectory) -> None:
    """Refuse to go on without the best model, unless the checkpoint holds it."""
    if progress.best_epoch == 0 or progress.is_best:
        return
    try:
        load_model(run.best)
    except CheckpointError as error:
        advice = f"restore it from a copy, or {NEW_RUN}"
        raise CheckpointError(
            *error.problems, f"{run.best}: the run can't end without its best model; {advice}"
        ) from None


def check_config_unchanged(config: Config, run: RunDirectory) -> None:
    """Refuse to go on with another config than the run began with.

    Raises:
        CheckpointError: names each key that differs.
    """
    if not run.holds(CONFIG):
        raise CheckpointError(
            f"{run.path}: no {CONFIG} in it, so no run to go on with; name another, or {NEW_RUN}"
        )
    before, now = _by_key(run.config()), _by_key(config)
    changed = [
        f"{key}: found {now[key]}, but {run.path / CONFIG} has {before[key]}"
        for key in sorted(now)
        if before[key] != now[key] and key not in MAY_CHANGE
    ]
    if changed:
        raise CheckpointError(
            *changed, f"{run.path}: only {', '.join(MAY_CHANGE)} may change on --resume"
        )


def _by_key(config: Config) -> dict[str, str]:
    """Return every value of a config as YAML, by its dotted key: 1 and true differ."""
    return {
        f"{name}.{key}" if isinstance(value, dict) else name: flow(item)
        for name, value in config.model_dump().items()
        for key, item in (value.items() if isinstance(value, dict) else [("", value)])
    }


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
    changed = [f"{line}; restore the file, or {NEW_RUN}" for line in changed]
    changed += [
        f"{file}: {run.path} began with it, and nothing names it now; restore it, or {NEW_RUN}"
        for file in before
        if file not in named
    ]
    if changed:
        raise CheckpointError(*changed)


def check_model_unchanged(point: ResumePoint, config: Config, preprocessing: Preprocessing) -> None:
    """Refuse a checkpoint of another architecture, or of other preprocessing.

    Args:
        point: what the run goes on from.
        config: of this run.
        preprocessing: fitted on this run's train.

    Raises:
        CheckpointError: as said.
    """
    model, what = point.checkpoint.model, None
    if model.network.config != config.model.architecture:
        what = "architecture isn't that of the run's config"
    elif model.preprocessing != preprocessing:
        what = "vocabulary, labels or preprocessing aren't those of the run's train"
    if what:
        raise CheckpointError(f"{point.folder}: the {what}; restore the folder from a copy")


def inexact(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say what differs from the machine the run began on, so that the last bits may too."""
    before = {"processes": 1, **recorded}
    changed = [
        f"{name} was {before.get(name)}, is {here[name]}"
        for name in EXACT_ON
        if before.get(name) != here[name]
    ]
    return [f"going on may not be exact to the bit: {'; '.join(changed)}"] if changed else []
