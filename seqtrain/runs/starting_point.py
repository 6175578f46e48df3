"""The starting point of a run: new weights, an older model, or its last checkpoint.

The starting point is checked before any data is read. If a run starts from an older model, the
tokens and labels of that model keep their ids. Ids of new tokens and labels follow. So, before
training, the new model computes the same logits for the old labels.
"""

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from seqtrain.config import Config, values_by_key
from seqtrain.config.document import flow
from seqtrain.config.schema import TRAINING_ONLY, ModelConfig
from seqtrain.errors import CheckpointError, ConfigError, parameter
from seqtrain.files.writing import locked, read_folder
from seqtrain.runs.checkpoint import STATE, Checkpoint, read_checkpoint
from seqtrain.runs.destination import check_destination
from seqtrain.runs.model_folder import WEIGHTS, Model, load_model, read_model
from seqtrain.runs.run_directory import CONFIG, ENVIRONMENT, RunDirectory, find, model_folder
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.sources import data_sources
from seqtrain.tables.formats import MEMORY
from seqtrain.text import counted
from seqtrain.training.processes import Processes
from seqtrain.training.progress import checked_progress

MAY_CHANGE = tuple(
    f"training.{key}"
    for key in ("max_epochs", "patience", "min_delta", "checkpoint_every", "device")
)
"""Keys that may differ from the run's config when it resumes."""
NEW_RUN = f"start a new run with {parameter('force', True)}"
LINEAGE = "lineage"
"""Entry of environment.json with `StartingPoint.lineage`, if a run started from an older model."""


@dataclass(frozen=True)
class ResumePoint:
    """The checkpoint from which a run resumes.

    Attributes:
        run: Run directory.
        folder: Folder of the checkpoint: ``last/``, or ``previous/`` if ``last/`` is damaged.
        checkpoint: Content of the folder.
        best: Model of the best epoch so far, or None if no epoch ended before the checkpoint.
        warnings: Warnings that ``last/`` is damaged, or an empty list.
    """

    run: RunDirectory
    folder: Path
    checkpoint: Checkpoint
    best: Model | None
    warnings: list[str]


@dataclass(frozen=True)
class StartingPoint:
    """Starting point of a run. On ranks other than 0, only the first two attributes are set.

    Attributes:
        resumes: True if an earlier run is resumed.
        preprocessing_folder: Model folder whose preprocessing is used, or None to fit one on the
            training split.
        force: True if an earlier run in the directory is replaced.
        old_model: Older model with the initial weights, or None.
        lineage: One dict with the run of the old model ("run") and the SHA-256 of its weights
            ("weights_sha256"); empty without an old model.
        point: Checkpoint to resume from, or None.
    """

    resumes: bool
    preprocessing_folder: Path | None = None
    force: bool = False
    old_model: Model | None = None
    lineage: tuple[dict[str, str], ...] = ()
    point: ResumePoint | None = None

    def known_preprocessing(self) -> Preprocessing | None:
        """Return the preprocessing to use, or None to fit one on the training split.

        Raises:
            CheckpointError: If the model folder is damaged.
        """
        folder = self.preprocessing_folder
        if folder is None:
            return None
        return load_model(folder).preprocessing


def find_starting_point(
    config: Config,
    processes: Processes,
    resources: ExitStack,
    directory: Path | None,
    source: Path | None,
    name: str,
    init_from: str | Path | None,
    *,
    resume: bool,
    force: bool,
) -> StartingPoint:
    """Return the starting point of a run.

    All processes must call this function together, because rank 0 sends its decision to the others.
    If the run is resumed, its lock is written; no other file is written.

    Processes that the launcher restarted resume their run, whatever `resume` and `force` are. A run
    that has no config yet starts again.

    Args:
        config: Config of the run.
        processes: Processes that train together.
        resources: Stack that receives the lock, and releases it when it is closed.
        directory: Run directory. None means a new directory runs/<name>-<time>, or, if `resume` is
            True, the newest one.
        source: YAML file of the config, or None. It mustn't be overwritten.
        name: First part of the default name of the run.
        init_from: Run directory or model folder with the initial weights, or None.
        resume: True to resume the run.
        force: True to replace an earlier run in `directory`.

    Raises:
        ConfigError: If the arguments contradict one another, the directory can't be used, or the
            old model doesn't fit the config. Also if training.max_epochs is less than the number of
            epochs that a resumed run began, or if `directory` is None but `processes.may_restart`
            is True.
        CheckpointError: If the model or checkpoint to start from is missing or damaged, if the run
            to resume is locked, or if its config differs in a key that isn't in MAY_CHANGE.
        RunError: If the lock can't be written.
    """
    if not processes.is_first:
        resumes, folder = json.loads(processes.broadcast())
        return StartingPoint(resumes, Path(folder) if folder else None)
    if processes.may_restart and directory is None:
        raise ConfigError(
            f"{parameter('run_dir')}: missing; restarted processes must find the run; name one"
        )
    if directory is not None and _is_restarted(directory, processes):
        resume = RunDirectory(directory).holds(CONFIG)
        force = not resume
        init_from = None if resume else init_from
    if resume:
        _check_only_resumed(force, init_from)
        found = _resumed_run(find(directory, name), config, resources)
    else:
        check_destination(directory, "run", parameter("run_dir"), force=force, sources=[source])
        found = replace(_new_run(config, directory, init_from), force=force)
    processes.broadcast(json.dumps([found.resumes, str(found.preprocessing_folder or "")]).encode())
    return found


def _check_only_resumed(force: bool, init_from: str | Path | None) -> None:
    """Raise ConfigError if an option of a new run was given with --resume."""
    given = {"force": force, "init_from": init_from is not None}
    for name, is_given in given.items():
        if is_given:
            raise ConfigError(
                f"{parameter(name)} and {parameter('resume')} exclude each other: resume "
                "continues a run as it is"
            )


def _is_restarted(directory: Path, processes: Processes) -> bool:
    """Return True if the launcher restarted the processes after they had started this run."""
    run = RunDirectory(directory)
    if not processes.restarts or not run.holds(ENVIRONMENT):
        return False
    return run.environment().get("launch") == processes.launch


def _new_run(config: Config, directory: Path | None, init_from: str | Path | None) -> StartingPoint:
    """Return the starting point of a new run. Its attribute `force` isn't set.

    `find_starting_point` describes the arguments.

    Raises:
        ConfigError: If the run directory contains a data file, or the old model doesn't fit.
        CheckpointError: If the old model is missing or damaged.
    """
    found = StartingPoint(resumes=False)
    if init_from is not None:
        name = str(init_from)
        folder = model_folder(find(Path(init_from)).path)
        old_model, digest = read_folder(
            folder, lambda saved: (read_model(saved), saved.digests[WEIGHTS])
        )
        _check_compatible(config, old_model, name)
        lineage = ({"run": name, "weights_sha256": digest},)
        found = replace(found, preprocessing_folder=folder, old_model=old_model, lineage=lineage)
    for key, source in data_sources(config):
        if directory is None or source.table is not None:
            continue
        real = Path(os.path.realpath(source.path))  # unlike resolve(), it accepts a loop of links
        if real.is_relative_to(os.path.realpath(directory)):
            # The run's own files could replace it.
            raise ConfigError(
                f"{parameter('run_dir')}: {directory} holds {key} ({real}); choose another "
                "directory"
            )
    return found


def _resumed_run(run: RunDirectory, config: Config, resources: ExitStack) -> StartingPoint:
    """Lock a run, and return its starting point, as `find_starting_point` does.

    Raises:
        CheckpointError: If the config differs, the run is locked, or a file is missing or damaged.
        ConfigError: If training.max_epochs is less than the number of epochs that the run began.
        RunError: If the lock can't be written.
    """
    check_config_unchanged(config, run)
    resources.enter_context(locked(run.path))
    point = read_resume_point(run, config)
    folder = point.folder if keeps_old_preprocessing(run) else None
    return StartingPoint(resumes=True, preprocessing_folder=folder, point=point)


def read_resume_point(run: RunDirectory, config: Config) -> ResumePoint:
    """Read the newest intact checkpoint of a run, and the best model. Change no file.

    Raises:
        CheckpointError: If no checkpoint is intact, if the best model is missing or damaged, or if
            metrics.jsonl was shortened.
        ConfigError: If ``training.max_epochs`` is less than the number of epochs of training that
            began before the checkpoint.
    """
    folder, checkpoint, warnings = _newest_checkpoint(run)
    try:
        progress = checked_progress(checkpoint.progress)
    except ValueError as error:
        raise CheckpointError(f"{folder / STATE}: not a training state ({error})") from None
    run.cut_metrics(checkpoint.metrics_length, only_check=True)
    begun = progress.epoch + bool(progress.batches)
    most = config.training.max_epochs
    if progress.phase != "pretraining" and most != "auto" and begun > most:
        if progress.batches:
            done = f"epoch {begun} has begun"
        else:
            done = f"{counted(begun, 'epoch')} {'is' if begun == 1 else 'are'} done"
        raise ConfigError(
            f"training.max_epochs: found {most}, but {done}; expected {begun} or more"
        )
    best = None
    if progress.history:
        try:
            best = load_model(run.best)
        except CheckpointError as error:
            raise CheckpointError(
                *error.lines,
                f"{run.best}: the run can't end without its best model; restore it, or {NEW_RUN}",
            ) from None
    return ResumePoint(run, folder, checkpoint, best, warnings)


def _newest_checkpoint(run: RunDirectory) -> tuple[Path, Checkpoint, list[str]]:
    """Return the folder and content of the newest intact checkpoint, and warnings.

    If ``previous/`` is used, there is a warning for each problem of ``last/``.

    Raises:
        CheckpointError: If neither ``last/`` nor ``previous/`` is intact.
    """
    problems: list[str] = []
    for folder in (run.last, run.previous):
        try:
            checkpoint = read_folder(folder, read_checkpoint)
        except CheckpointError as error:
            problems += error.lines
            continue
        position = f"resuming from {folder} (update {checkpoint.progress.get('updates')})"
        return folder, checkpoint, [f"{problem}; {position}" for problem in problems]
    raise CheckpointError(*problems, f"{run.path}: no whole checkpoint to resume from; {NEW_RUN}")


def check_config_unchanged(config: Config, run: RunDirectory) -> None:
    """Raise CheckpointError if a key differs from the run's config and isn't in MAY_CHANGE."""
    before = values_by_key(run.config())
    now = values_by_key(config)
    changed = [
        f"{key}: found {flow(now[key])}, but {run.path / CONFIG} has {flow(before[key])}"
        for key in sorted(now)
        if flow(before[key]) != flow(now[key]) and key not in MAY_CHANGE
    ]
    if any(MEMORY in line for line in changed):
        changed = [
            f"{key}: not the data in memory that the run trained on; pass the same, or {NEW_RUN}"
            for key in ("data.train", "data.validation", "data.test")
            if before[key] != now[key]
        ]
        raise CheckpointError(*changed)
    if changed:
        raise CheckpointError(
            *changed,
            f"{run.path}: only {', '.join(MAY_CHANGE)} may change on {parameter('resume')}",
        )


def keeps_old_preprocessing(run: RunDirectory) -> bool:
    """Return True if a run started from an older model, so that it uses that model's preprocessing.

    Without environment.json, return False.

    Raises:
        CheckpointError: If environment.json is damaged.
    """
    return run.holds(ENVIRONMENT) and LINEAGE in run.environment()


def _check_compatible(config: Config, old: Model, run: str) -> None:
    """Raise ConfigError if a config can't start from an older model.

    Keys of its preprocessing and its architecture must be equal. Pretraining and training.refit
    must be off, because they start with new weights.

    Args:
        config: Config of the new run.
        old: The older model.
        run: Path of the older model, for messages.
    """
    rules = old.preprocessing
    network = old.network.config
    fixed = {("data", name): value for name, value in rules.data_settings().items()}
    model_keys = [name for name in ModelConfig.model_fields if name not in TRAINING_ONLY]
    fixed |= {("model", name): getattr(network, name) for name in model_keys}
    for (section, name), expected in fixed.items():
        found = getattr(getattr(config, section), name)
        if found != expected:
            raise ConfigError(
                f"{section}.{name}: found {flow(found)}, but {run} has {flow(expected)}, which its "
                "weights depend on; expected the same, or train without "
                f"{parameter('init_from')}"
            )
    objective = config.pretraining.objective
    refit = config.training.refit
    for key, value in (("pretraining.objective", objective), ("training.refit", refit)):
        if value:
            raise ConfigError(
                f"{key}: found {flow(value)}, which starts with new weights, and "
                f"{parameter('init_from')} with old ones; give one of them"
            )
