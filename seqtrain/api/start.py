"""What a run starts from, checked before its data: nothing, an old model, its last checkpoint.

Of an old model, tokens and labels keep their ids, and new ones follow. Before any training the new
model gives the same logits to the old labels.
"""

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqtrain.config import Config, values_by_key
from seqtrain.config.document import flow
from seqtrain.config.schema import TRAINING_ONLY, ModelConfig
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import FileSource
from seqtrain.data.sources import data_sources
from seqtrain.errors import CheckpointError, ConfigError
from seqtrain.files.formats import MEMORY
from seqtrain.files.writing import locked, read_folder
from seqtrain.runs.checkpoint import STATE, Checkpoint, read_checkpoint
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import WEIGHTS, Model, load_model, read_model
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, RunDirectory, find, model_folder
from seqtrain.training.distributed import Processes
from seqtrain.training.state import checked_progress

MAY_CHANGE = tuple(
    f"training.{key}" for key in ("max_epochs", "patience", "checkpoint_every", "device")
)
"""Keys that may differ from the run's config when it goes on."""
NEW_RUN = "begin a new run with --force"
EXACT_ON = ("torch", "processes", "threads", "cpu_capability", "native", "device", "device_name")
"""Entries of environment.json on which the last bits of a result depend."""
LINEAGE = "lineage"
"""Entry of environment.json: the model that a run began from."""


@dataclass(frozen=True)
class ResumePoint:
    """What a run goes on from: its newest whole checkpoint, with a warning for each damaged one.

    `run` is locked.
    """

    run: RunDirectory
    folder: Path
    checkpoint: Checkpoint
    warnings: list[str]


@dataclass(frozen=True)
class Start:
    """Where a caller wants a run, and what it starts from.

    Attributes:
        directory: of the run; None: runs/<name>-<time>.
        source: the YAML file, if the config is from one.
        name: first part of the run's default name.
        init_from: run or model folder whose weights training begins from.
        kept: the model folder whose preprocessing it keeps; None: it is fitted on train.
        origin: an old model; None: fresh weights, the run's own, or another process's.
        lineage: its run and the SHA-256 of its weights, for environment.json.
        point: where it goes on; None: a new run, or another process's.
    """

    directory: Path | None
    source: Path | None
    name: str
    init_from: str | Path | None
    resume: bool
    force: bool
    kept: Path | None = None
    origin: Model | None = None
    lineage: tuple[dict[str, str], ...] = ()
    point: ResumePoint | None = None

    def known(self) -> Preprocessing | None:
        """Return the preprocessing that it keeps."""
        return None if self.kept is None else load_model(self.kept).preprocessing


def find_start(held: ExitStack, config: Config, wanted: Start, processes: Processes) -> Start:
    """Find what a run starts from, and lock a run that goes on; nothing is written."""
    if processes.is_first:
        wanted = _after_restart(wanted, processes)
        found = _old_run(held, config, wanted) if wanted.resume else _new_run(config, wanted)
        processes.broadcast(json.dumps([found.resume, str(found.kept or "")]).encode())
        return found
    resume, kept = json.loads(processes.broadcast())
    return replace(wanted, resume=resume, kept=Path(kept) if kept else None)


def _after_restart(wanted: Start, processes: Processes) -> Start:
    if processes.may_restart and wanted.directory is None:
        raise ConfigError("--run-dir: missing; restarted processes must find the run; name one")
    if processes.restarts and wanted.directory is not None:
        run = RunDirectory(wanted.directory)
        if run.holds(ENVIRONMENT) and run.environment().get("launch") == processes.launch:
            begun = run.holds(CONFIG)
            origin = None if begun else wanted.init_from
            return replace(wanted, init_from=origin, resume=begun, force=not begun)
    return wanted


def _new_run(config: Config, wanted: Start) -> Start:
    """Return what a new run starts from."""
    directory, sources = wanted.directory, [wanted.source]
    check_destination(directory, "run", "--run-dir", force=wanted.force, sources=sources)
    if wanted.init_from is not None:
        named, folder = str(wanted.init_from), model_folder(find(Path(wanted.init_from)).path)
        origin, digest = read_folder(folder, lambda x: (read_model(x), x.digests[WEIGHTS]))
        _check_alike(config, origin, named)
        lineage = ({"run": named, "weights_sha256": digest},)
        wanted = replace(wanted, kept=folder, origin=origin, lineage=lineage)
    for key, source in data_sources(config):  # the run's own files could replace it
        if directory is None or not isinstance(source, FileSource):
            continue
        real = Path(os.path.realpath(source.path))  # unlike resolve(), also of a loop of links
        if real.is_relative_to(os.path.realpath(directory)):
            held = f"{directory} holds {key} ({real})"
            raise ConfigError(f"--run-dir: {held}; choose another directory")
    return wanted


def _old_run(held: ExitStack, config: Config, wanted: Start) -> Start:
    """Return where a run goes on."""
    if wanted.force:
        raise ConfigError("--force: replaces a run, and --resume goes on with it; give one of them")
    if wanted.init_from is not None:
        raise ConfigError("--init-from: begins a run, and --resume goes on with one; give one")
    path = wanted.directory
    if path is not None and not path.exists():
        problem = f"no such run (looked for {path.absolute()})"
        raise CheckpointError(f"{path}: {problem}; to begin one there, leave out --resume")
    run = find(path, wanted.name)
    check_config_unchanged(config, run)
    held.enter_context(locked(run.path))
    point = read_resume_point(run, config)
    return replace(wanted, point=point, kept=point.folder if has_grown(run) else None)


def read_resume_point(run: RunDirectory, config: Config) -> ResumePoint:
    """Read what a run goes on from, and refuse one that could not come to its end."""
    point = _newest_checkpoint(run)
    try:
        progress = checked_progress(point.checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    run.cut_metrics(point.checkpoint.metrics_length, only_check=True)
    begun, most = progress.epoch + bool(progress.batches_done), config.training.max_epochs
    if not progress.pretraining and most != "auto" and begun > most:
        done = f"epoch {begun} has begun" if progress.batches_done else f"{begun} epochs are done"
        raise ConfigError(
            f"training.max_epochs: found {most}, but {done}; expected {begun} or more"
        )
    if progress.best_epoch:
        try:
            load_model(run.best)
        except CheckpointError as error:
            advice = f"the run can't end without its best model; restore it, or {NEW_RUN}"
            raise CheckpointError(*error.problems, f"{run.best}: {advice}") from None
    return point


def _newest_checkpoint(run: RunDirectory) -> ResumePoint:
    """Return the last checkpoint; where it is damaged, the one before it."""
    problems: list[str] = []
    for folder in (run.last, run.previous):
        try:
            checkpoint = read_folder(folder, read_checkpoint)
        except CheckpointError as error:
            problems += error.problems
            continue
        where = f"going on from {folder} (step {checkpoint.progress.get('updates')})"
        skipped = [f"{problem}; {where}" for problem in problems]
        return ResumePoint(run, folder, checkpoint, skipped)
    raise CheckpointError(*problems, f"{run.path}: no whole checkpoint to go on from; {NEW_RUN}")


def check_config_unchanged(config: Config, run: RunDirectory) -> None:
    """Refuse to go on with another config than the run began with; name each key that differs."""
    before, now = values_by_key(run.config()), values_by_key(config)
    changed = [
        f"{key}: found {flow(now[key])}, but {run.path / CONFIG} has {flow(before[key])}"
        for key in sorted(now)
        if flow(before[key]) != flow(now[key]) and key not in MAY_CHANGE
    ]
    if any(MEMORY in line for line in changed):
        changed = [
            f"{key}: isn't the data in memory that the run was given; give the same, or {NEW_RUN}"
            for key in ("data.train", "data.validation", "data.test")
            if before[key] != now[key]
        ]
        raise CheckpointError(*changed)
    if changed:
        rule = f"only {', '.join(MAY_CHANGE)} may change on --resume"
        raise CheckpointError(*changed, f"{run.path}: {rule}")


def inexact(recorded: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Say what differs from the machine the run began on, so that the last bits may too."""
    before = {"processes": 1, **recorded}
    changed = [
        f"{name} is {here[name]} here and was {before.get(name)} when the run began"
        for name in EXACT_ON
        if before.get(name) != here[name]
    ]
    return [f"going on may not be exact to the bit: {'; '.join(changed)}"] if changed else []


def has_grown(run: RunDirectory) -> bool:
    """Whether a run began from an old model, whose preprocessing it keeps."""
    return run.holds(ENVIRONMENT) and LINEAGE in run.environment()


def _check_alike(config: Config, old: Model, run: str) -> None:
    """Refuse other keys that change what a weight means, or that draw new weights."""
    rules, network = old.preprocessing, old.network.config
    fixed = {("data", name): value for name, value in rules.data_settings().items()}
    model_keys = [name for name in ModelConfig.model_fields if name not in TRAINING_ONLY]
    fixed |= {("model", name): getattr(network, name) for name in model_keys}
    for (section, name), expected in fixed.items():
        found = getattr(getattr(config, section), name)
        if found != expected:
            raise ConfigError(
                f"{section}.{name}: found {flow(found)}, but {run} has {flow(expected)}, which its "
                "weights rest on; expected the same, or train without --init-from"
            )
    objective, refit = config.pretraining.objective, config.training.refit
    for key, value in (("pretraining.objective", objective), ("training.refit", refit)):
        if value:
            why = "which begins with new weights, and --init-from with old ones"
            raise ConfigError(f"{key}: found {flow(value)}, {why}; give one of them")
