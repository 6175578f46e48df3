"""`seqtrain.fit`: from a config and data to a finished run directory."""

import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from seqtrain.api.named_runs import Run, RunLike
from seqtrain.api.progress import FitProgress
from seqtrain.api.run_events import DataEvent, Listener, StartEvent, StoppingListener
from seqtrain.config import Config, resolved_config
from seqtrain.engines.choice import choose_engine
from seqtrain.engines.devices import select_device
from seqtrain.errors import CheckpointError, ConfigError, DataError, Interrupted
from seqtrain.files.writing import locked
from seqtrain.metrics import compared_metric
from seqtrain.runs import run_directory
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.environment import (
    check_same_data,
    deterministic_algorithms,
    environment,
    inexact_resume_warnings,
)
from seqtrain.runs.memory import check_memory
from seqtrain.runs.run_writer import RunWriter
from seqtrain.runs.starting_point import LINEAGE, ResumePoint, StartingPoint, find_starting_point
from seqtrain.sequences.dataset import PreparedData, prepare, weighted
from seqtrain.sequences.sources import check_files, with_given_data
from seqtrain.sequences.word_vectors import with_width
from seqtrain.tables.blocks import Array
from seqtrain.tables.formats import MEMORY
from seqtrain.training.advice import nothing_left, training_advice
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.initial_weights import copy_old_weights
from seqtrain.training.phases import run_phases
from seqtrain.training.processes import Processes, connected
from seqtrain.training.trainer import Trainer


def fit(
    config: Config | Mapping[str, Any] | str | PathLike[str],
    *,
    train: Any = None,
    validation: Any = None,
    test: Any = None,
    sample_weight: Any = None,
    run_dir: str | PathLike[str] | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    init_from: RunLike = None,
    progress: bool = True,
    listener: Listener = lambda event: None,
    finish: bool = True,
    source: Path | None = None,
) -> Run:
    """Train a classifier and write its run directory.

    This also works inside ``torch.no_grad()`` and ``torch.inference_mode()``.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        train: Data for training, or None for the files in ``data.train``. It is a file, a list of
            files, or a table in memory: a DataFrame, a Dataset of Hugging Face, a table of pyarrow,
            a dict of lists, or a list of dicts. ``data.sequence`` and ``data.label`` name columns
            of the table. To resume a run, pass the same data again.
        validation: Data like `train` in place of ``data.validation``; also a share such as 0.1 to
            hold out of train, or a fold such as ``{"fold": 1, "of": 5}``.
        test: Data like `train` in place of ``data.test``.
        sample_weight: Weight of each row of `train`, (N,), or None for equal weights. It multiplies
            that of data.weight.
            `train` must be a table. To resume a run, pass the same weights again.
        run_dir: Directory of the run, or None for ``runs/<config name>-<time>``.
        device: auto, cpu, cuda, cuda:N or mps, in place of ``training.device``; or None.
        resume: Resume from the last checkpoint of `run_dir`, or of the newest run of this config.
        force: Replace an earlier run in `run_dir`.
        init_from: Model with the initial weights: a run directory, a model folder, or what `fit` or
            `load` returned. None for random weights.
        progress: Show data, epochs and scores on stderr, or as one table in a notebook.
        listener: Function that is called with each event, on rank 0. If it returns `seqtrain.STOP`
            or raises an exception, training ends as after a signal: saved, and resumable.
        finish: True to calibrate, refit and score test after training. False to leave these steps
            to a resume of the run.
        source: YAML file that a Config was read from, or None. The default run directory is named
            after it.

    Returns:
        The finished run. Its warnings are also issued as `SeqtrainWarning`. On other ranks than 0,
        its path is empty.

    Raises:
        ConfigError: If the config, a parameter or the device is wrong. Nothing was written.
        DataError: If the data can't be used. Nothing was written.
        CheckpointError: If there is nothing to resume from, or it is damaged. Also if the config or
            the data of a resumed run differ.
        RunError: If training failed, for example because a loss isn't finite or memory ran out.
            Checkpoints that were saved stay valid.
        Interrupted: If a signal or the listener stopped training. A checkpoint was saved.
        Exception: If the listener raised it. A checkpoint was saved.
    """
    source = source or config_file(config)
    given = {"train": train, "validation": validation, "test": test}
    resolved, tables = with_given_data(config, given)
    resolved = resolved_config(resolved, device)
    directory = None if run_dir is None else Path(run_dir)
    name = "run" if source is None else source.stem
    told = StoppingListener(listener, FitProgress() if progress else None)
    with ExitStack() as stack:
        chosen = select_device(resolved.training.device)
        processes, chosen = stack.enter_context(connected(chosen))
        resolved = _checked_config(resolved, source, chosen, processes)
        start = find_starting_point(
            resolved,
            processes,
            stack,
            directory,
            source,
            name,
            _initial_folder(init_from, stack),
            resume=resume,
            force=force,
        )
        data = _read_data(resolved, start, processes, told)
        if told.wants_stop:
            raise told.error or Interrupted(
                signal.SIGINT, "stopped by the listener before training; nothing written"
            )
        _check_data(resolved, data, chosen, processes)
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(deterministic_algorithms(resolved.training.deterministic))
        stack.enter_context(processes.signals)  # a signal stops training after the update
        if sample_weight is not None:
            weights = _weights_of_rows(sample_weight, resolved, data)
            data = weighted(data, resolved.data, weights)
        session, origin = _start_session(resolved, data, chosen, processes, start)
        if not processes.is_first:  # train together with rank 0, without writing a file
            for _ in run_phases(session, finish=finish):
                processes.raise_if_stopped()
            return _finished_run(session, Path(), [])
        writer = _start_writer(session, start, directory, name, origin, told, stack)
        run = replace(_write_run(session, writer, told, finish=finish), tables=tables)
    told.tell(run)  # training has ended
    return run


def _initial_folder(init_from: RunLike, resources: ExitStack) -> Path | None:
    """Return the run directory or model folder with the initial weights, or None.

    A classifier that was loaded from no folder, such as an estimator's, is saved in a temporary
    folder.
    """
    if init_from is None:
        return None
    if isinstance(init_from, str | PathLike):
        return Path(init_from)
    if isinstance(init_from, Run) or init_from.path.exists():
        return init_from.path
    folder = resources.enter_context(TemporaryDirectory())
    return init_from.save(Path(folder, init_from.path.name))


def config_file(config: object) -> Path | None:
    """Return the path of a config, or None for a config in memory.

    Raises:
        ConfigError: If `config` is neither a path nor a config. A mapping of lists isn't a config,
            but a table.
    """
    is_table = isinstance(config, Mapping) and all(
        hasattr(column, "__len__") and not isinstance(column, str | Mapping)
        for column in config.values()
    )
    if isinstance(config, Config | Mapping) and not (is_table and config):
        return None
    if isinstance(config, str | PathLike):
        return Path(config)
    raise ConfigError(
        f"config: found an object of type {type(config).__name__}; expected a config; "
        "to train on data: fit(init(data), train=data)"
    )


def _write_run(session: Trainer, writer: RunWriter, told: StoppingListener, *, finish: bool) -> Run:
    """Train on rank 0, write the run directory, and call the listener with each event.

    Args:
        session: The training session at its start.
        writer: Writer of the run directory.
        told: Listener that is called with each UpdateEvent and EpochEvent.
        finish: As for `fit`.

    Raises:
        RunError: If training failed, or a file can't be written.
        Interrupted: If a signal or the listener stopped training. A checkpoint was saved.
        Exception: If the listener raised it. A checkpoint was saved.
    """
    processes = session.processes
    try:
        if told.wants_stop:  # at the StartEvent
            processes.signals.request()
            processes.raise_if_stopped()
        for event in run_phases(session, finish=finish):
            writer.record(event)
            if isinstance(event, UpdateEvent | EpochEvent):
                told(event)
            if told.wants_stop:
                processes.signals.request()  # so that all processes stop after the same update
            processes.raise_if_stopped()
    except Interrupted as stop:
        if told.wants_stop:
            stopped_by = "the listener"
        else:
            stopped_by = signal.Signals(stop.signal_number).name
        saved = writer.stop(stop.signal_number, stopped_by)
        raise (told.error or saved) from None
    writer.finalize()
    return _finished_run(session, writer.run.path, writer.warnings())


def _checked_config(
    config: Config, source: Path | None, device: torch.device, processes: Processes
) -> Config:
    """Check files, word vectors and engine of a config, and return the config to train.

    If there is a file of word vectors, its width becomes ``model.embedding_dim`` of the returned
    config.

    Args:
        config: The config.
        source: YAML file of the config, or None.
        device: Device that computes.
        processes: All training processes.

    Raises:
        ConfigError: If the engine can't be used, or ``model.embedding_dim`` isn't null or the
            width. Also if several processes train a model with convolutions.
        DataError: If a data file or the file of word vectors is missing, or the first line of word
            vectors isn't valid.
    """
    with processes.first_before_others():
        check_files(config, None if source is None else source.parent)
        config = with_width(config)
        choose_engine(config.model, device)
        if processes.size > 1 and config.model.convolutions is not None:
            raise ConfigError(
                "model.convolutions: their batch normalisation must see whole batches; train with "
                "one process"
            )
    return config


def _read_data(
    config: Config, start: StartingPoint, processes: Processes, listener: Listener
) -> PreparedData:
    """Return the encoded data, and call the listener with the `DataEvent` on rank 0.

    Args:
        config: The config.
        start: Starting point of the run. Its fitted preprocessing is used, if it has one.
        processes: All training processes.
        listener: Function that is called with the event.
    """
    began = time.perf_counter()
    own = config
    if start.resumes and start.preprocessing_folder is not None:
        # The vocabulary that is kept has the words of a file of vectors already.
        own = config.model_copy(update={"model": config.model.architecture})
    data = prepare(own, known=start.known_preprocessing())
    processes.broadcast()
    if processes.is_first:
        listener(DataEvent(data, config, time.perf_counter() - began))
    return data


def _check_data(
    config: Config, data: PreparedData, device: torch.device, processes: Processes
) -> None:
    """Check that model and data fit into memory, and that all processes have equal config and data.

    Raises:
        ConfigError: If the model needs too much memory, or the config differs between processes.
        DataError: If a sequence needs too much memory, or the data differs between processes.
    """
    with processes.first_before_others():
        check_memory(config, data, device)
    others = processes.unlike_first([config.model_dump_json().encode()])
    if others:
        raise ConfigError(
            *processes.lines(
                f"config: differs between rank 0 and {others}; start all with the same one"
            )
        )
    arrays = (array for store in data.splits.values() for array in store.arrays().values())
    others = processes.unlike_first(map(np.ascontiguousarray, arrays))
    if others:
        raise DataError(
            *processes.lines(
                f"data: encoded differently on rank 0 and {others}; give all hosts the same files"
            )
        )


def _start_session(
    config: Config,
    data: PreparedData,
    device: torch.device,
    processes: Processes,
    start: StartingPoint,
) -> tuple[Trainer, str | None]:
    """Return the session of a new or resumed run, with the training state of rank 0.

    Also return a line about the weights that were copied from an earlier model, or None if no
    weights were copied.

    Raises:
        CheckpointError: If the data of a resumed run changed, or `_load_checkpoint` raises it.
    """
    point, old, origin = start.point, start.old_model, None
    with processes.first_before_others():
        network = None
        calibration = None
        if point is not None:
            model = point.checkpoint.model
            check_same_data(point.run, config, data, model.preprocessing)
            network = model.network
            calibration = model.calibration
            if network.config != config.model.architecture:
                raise CheckpointError(
                    f"{point.folder}: the architecture isn't that of the run's config; restore "
                    "the folder from a copy"
                )
        session = Trainer(config, data, device, processes, network, calibration)
        if point is not None:
            _load_checkpoint(session, point)
        if old is not None:
            new = session.network
            rules = data.preprocessing
            origin = copy_old_weights(old.network, old.preprocessing, new, rules, data.vectors)
    session.copy_from_rank_zero()
    return session, origin


def _load_checkpoint(session: Trainer, point: ResumePoint) -> None:
    """Load the training state of a checkpoint.

    Raises:
        CheckpointError: If the training state is damaged.
    """
    saved = point.checkpoint
    weights = saved.model.network.state_dict()
    state = {"network": weights, "training": saved.tensors, "progress": saved.progress}
    try:
        session.load_state_dict(state)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    if point.best is not None and session.progress.phase == "training":
        session.best = point.best.network.state_dict()


def _weights_of_rows(sample_weight: Any, config: Config, data: PreparedData) -> Array:
    """Return the weight of each row of train, (N,).

    Raises:
        ConfigError: If train isn't a table in memory, if there isn't a weight for each of its rows,
            or if a weight is negative or isn't finite, or all are 0.
    """
    if not str(config.data.train).startswith(MEMORY):
        raise ConfigError(
            "sample_weight: rows of files have no weights; pass the rows themselves, such as "
            "train=DataFrame"
        )
    try:
        weights = np.ma.filled(np.ma.asarray(sample_weight, np.float64), np.nan)
    except (TypeError, ValueError):
        kind = type(sample_weight).__name__
        raise ConfigError(f"sample_weight: found {kind}; expected a number for each row") from None
    rows = int(data.splits["train"].lines.max())
    if weights.ndim != 1 or len(weights) < rows:
        raise ConfigError(f"sample_weight: found shape {weights.shape}; expected ({rows},)")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ConfigError("sample_weight: expected finite numbers of at least 0, not all of them 0")
    return weights


def _start_writer(
    session: Trainer,
    start: StartingPoint,
    directory: Path | None,
    name: str,
    origin: str | None,
    listener: Listener,
    resources: ExitStack,
) -> RunWriter:
    """Return the writer of a new run directory, or of a resumed run's directory.

    Also call the listener with the `StartEvent`.

    Args:
        session: The session at its start.
        start: Starting point of the run.
        directory: Directory of the run, or None to create one with the name ``<name>-<time>``.
        name: Name of the run.
        origin: Line on the weights that were copied from an earlier model, or None.
        listener: Function that is called with the `StartEvent`.
        resources: Stack on which the lock of a new directory is held until training ends.

    Raises:
        ConfigError: If the directory holds another run that can't be replaced.
        RunError: If a file can't be written.
    """
    point = start.point
    recorded = environment(session)
    if point is not None:
        writer = RunWriter(point.run, session, point)
        warnings = point.warnings + inexact_resume_warnings(point.run.environment(), recorded)
        writer.resume()
    else:
        run = run_directory.make(directory, name)
        resources.enter_context(locked(run.path))
        if start.lineage:
            recorded[LINEAGE] = start.lineage
        writer = RunWriter(run, session)
        warnings = []
        writer.start(recorded, force=start.force)
    progress = session.progress
    listener(
        StartEvent(
            run=writer.run.path,
            config=session.config,
            device=str(session.device),
            **writer.engine,
            parameters=sum(weight.numel() for weight in session.network.parameters()),
            epochs=session.rule.epochs,
            updates=session.training_updates,
            resumed_at=progress.updates,
            nothing_left=nothing_left(session),
            pretraining=progress.phase == "pretraining",
            warnings=warnings,
            origin=origin,
        )
    )
    return writer


def _finished_run(session: Trainer, path: Path, warnings: list[str]) -> Run:
    """Return the result of a session whose training ended, as `fit` returns it.

    Args:
        session: The session.
        path: Run directory.
        warnings: Warnings about the predictions, one line each.
    """
    progress = session.progress
    test = session.result.test
    is_rare = test is not None and test.has_rare_class
    metric = compared_metric(session.config.training.monitor, has_rare_class=is_rare).name
    return Run(
        path=path,
        epochs=progress.epoch,
        best_epoch=session.best_epoch,
        best_value=session.best_value(),
        stopped_early=session.stopped_early,
        refit=progress.phase == "refit",
        test=test,
        validation=session.result.validation,
        branches={name: getattr(own, metric) for name, own in session.result.branches.items()},
        advice=training_advice(session),
        warnings=warnings,
    )
