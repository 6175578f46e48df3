"""Training a classifier: from a config to a finished run directory."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from seqtrain.api.named_runs import Run
from seqtrain.api.predictions import save_predictions
from seqtrain.api.run_events import DataEvent, Listener, StartEvent
from seqtrain.config import Config, resolved_config
from seqtrain.engines.choice import choose_engine
from seqtrain.errors import CheckpointError, ConfigError, DataError, Interrupted
from seqtrain.evaluation.devices import select_device
from seqtrain.files.writing import locked
from seqtrain.metrics import compared_metric
from seqtrain.runs import run_directory
from seqtrain.runs.checkpoint import STATE
from seqtrain.runs.environment import (
    check_longest,
    check_model,
    check_same_data,
    check_space,
    deterministic_algorithms,
    environment,
    inexact_resume_warnings,
)
from seqtrain.runs.run_directory import RUNS
from seqtrain.runs.run_writer import RunWriter
from seqtrain.runs.starting_point import (
    LINEAGE,
    ResumePoint,
    StartingPoint,
    find_starting_point,
)
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import PreparedData, load_prepared, prepare
from seqtrain.sequences.readers import FileSource
from seqtrain.sequences.sources import check_files, split_sources
from seqtrain.sequences.store import Array
from seqtrain.sequences.word_vectors import with_width
from seqtrain.training.distributed import Processes, connected
from seqtrain.training.events import EpochEvent, UpdateEvent
from seqtrain.training.initial_weights import copy_old_weights
from seqtrain.training.phases import TrainingSession, train_session


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    run_dir: str | Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    source: Path | None = None,
    init_from: str | Path | None = None,
    listener: Listener = lambda event: None,
    finish: bool = True,
    sample_weight: Array | None = None,
) -> Run:
    """Train a classifier and write its run directory.

    This also works inside ``torch.no_grad()`` and ``torch.inference_mode()``.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        run_dir: Directory of the run, or None for ``runs/<config name>-<time>``.
        device: Device in place of ``training.device``, or None.
        resume: Resume from the last checkpoint of `run_dir`, or of the newest run of this config.
        force: Replace an earlier run in `run_dir`.
        cache: Store encoded data in the user's cache folder, and load it from there.
        source: YAML file that a Config was read from, or None. The default run directory is named
            after it.
        init_from: Run directory or model folder with the initial weights, or None for random ones.
        listener: Function that is called with each event, on rank 0.
        finish: True to calibrate, refit and score test after training. False to leave these steps
            to a resume of the run.
        sample_weight: Weight of each row of train in the loss, (N,), or None for equal weights. It
            needs a table in memory. To resume a run, pass the same weights again.

    Returns:
        The finished run. On other ranks than 0, its path is empty.

    Raises:
        ConfigError: If the config, an argument or the device is wrong.
        DataError: If the data can't be used.
        CheckpointError: If there is nothing to resume from, or it is damaged. Also if the config or
            the data of a resumed run differ.
        RunError: If training failed, for example because a loss isn't finite or memory ran out.
            Also if the disk has too little space.
        Interrupted: If a signal stopped training. A checkpoint was saved.
    """
    if source is None and isinstance(config, str | Path):
        source = Path(config)
    config = resolved_config(config, device)
    directory = None if run_dir is None else Path(run_dir)
    name = "run" if source is None else source.stem
    with ExitStack() as stack:
        chosen = select_device(config.training.device)
        processes, chosen = stack.enter_context(connected(chosen))
        config = _checked_config(config, source, chosen, processes)
        start = find_starting_point(
            config, processes, stack, directory, source, name, init_from, resume=resume, force=force
        )
        data = _read_data(config, start, processes, default_folder() if cache else None, listener)
        _check_data(config, data, chosen, processes)
        stack.enter_context(_training_mode(config, processes))
        session, origin = _start_session(config, data, chosen, processes, start, sample_weight)
        if not processes.is_first:
            return _follow(session, finish=finish)
        writer = _start_writer(session, start, directory, name, origin, listener, stack)
        return _write_run(session, writer, listener, finish=finish)


@contextmanager
def _training_mode(config: Config, processes: Processes) -> Iterator[None]:
    """Enable gradients in a block, and deterministic algorithms if the config asks for them.

    In the block, a stop signal doesn't end the process. Training stops after its current update.
    """
    deterministic = deterministic_algorithms(config.training.deterministic)
    with torch.inference_mode(False), torch.enable_grad(), deterministic, processes.signals:
        yield


def _follow(session: TrainingSession, *, finish: bool) -> Run:
    """Train together with rank 0, without writing a file. The returned run has an empty path.

    Raises:
        Interrupted: If a signal stopped training.
    """
    for _ in train_session(session, finish=finish):
        session.processes.raise_if_stopped()
    return _finished_run(session, Path(), [])


def _write_run(
    session: TrainingSession, writer: RunWriter, listener: Listener, *, finish: bool
) -> Run:
    """Train on rank 0, write the run directory, and call the listener with each event.

    Args:
        session: The training session at its start.
        writer: Writer of the run directory.
        listener: Function that is called with each UpdateEvent and EpochEvent, and at last with the
            returned run.
        finish: As for `fit`. If it is False, no predictions are saved.

    Raises:
        RunError: If training failed, or a file can't be written.
        Interrupted: If a signal stopped training. A checkpoint was saved.
    """
    processes = session.processes
    session.must_settle = lambda update: bool(processes.stop_signal) or writer.is_due(update)
    try:
        for event in train_session(session, finish=finish):
            writer.record(event)
            if isinstance(event, UpdateEvent | EpochEvent):
                listener(event)
            if session.learner.is_settled:  # otherwise at the next event
                processes.raise_if_stopped()
    except Interrupted as stop:
        raise writer.stop(stop.signal_number) from None
    writer.finish()
    if finish:
        save_predictions(session, writer.run)
    run = _finished_run(session, writer.run.path, writer.single_class_warnings())
    listener(run)
    return run


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
            problem = "their batch normalisation must see whole batches; train with one process"
            raise ConfigError(f"model.convolutions: {problem}")
    return config


def _read_data(
    config: Config,
    start: StartingPoint,
    processes: Processes,
    cache_folder: Path | None,
    listener: Listener,
) -> PreparedData:
    """Return the encoded data, and call the listener with the `DataEvent` on rank 0.

    One process per host reads the data and stores it in the cache. All other processes load it from
    there. If it couldn't be stored, each process reads the data.

    Args:
        config: The config.
        start: Starting point of the run. Its fitted preprocessing is used, if it has one.
        processes: All training processes.
        cache_folder: Folder of the cache, or None for no cache. If None, several processes on one
            host share a temporary folder.
        listener: Function that is called with the event.
    """
    began, data, own = time.perf_counter(), None, config
    if start.resumes and start.preprocessing_folder is not None:
        # The vocabulary that is kept has the words of a file of vectors already.
        own = config.model_copy(update={"model": config.model.architecture})
    with ExitStack() as resources:
        if processes.is_first_of_host:
            if processes.local_size > 1 and cache_folder is None:
                cache_folder = Path(resources.enter_context(TemporaryDirectory()))
            known = start.known_preprocessing()
            data = prepare(own, cache_folder=cache_folder, known=known)
        written = None if data is None else data.entry
        entry = processes.from_first_of_host(os.fsencode(written or ""))
        if data is None and entry:
            data = load_prepared(own, Path(os.fsdecode(entry)))
        if data is None:
            data = prepare(own, cache_folder=None, known=start.known_preprocessing())
        processes.broadcast()  # before a temporary entry is removed
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
        check_model(config.model, data.preprocessing, device)
        check_longest(config, data.splits["train"], device)
    others = processes.unlike_first([config.model_dump_json().encode()])
    if others:
        problem = f"config: differs between rank 0 and {others}; start all with the same one"
        raise ConfigError(*processes.lines(problem))
    arrays = (array for store in data.splits.values() for array in store.arrays().values())
    others = processes.unlike_first(map(np.ascontiguousarray, arrays))
    if others:
        problem = f"data: encoded differently on rank 0 and {others}; give all hosts the same files"
        raise DataError(*processes.lines(problem))


def _start_session(
    config: Config,
    data: PreparedData,
    device: torch.device,
    processes: Processes,
    start: StartingPoint,
    sample_weight: Array | None,
) -> tuple[TrainingSession, str | None]:
    """Return the session of a new or resumed run, with the training state of rank 0.

    Also return a line about the weights that were copied from an earlier model, or None if no
    weights were copied.

    Raises:
        CheckpointError: If `_resumed_session` raises it.
    """
    old, origin = start.old_model, None
    with processes.first_before_others():
        if sample_weight is not None:
            _check_sample_weight(sample_weight, config, data)
        if start.point is not None:
            session = _resumed_session(config, data, device, processes, start.point)
        else:
            session = TrainingSession(config, data, device, processes)
        if old is not None:
            new, rules = session.network, data.preprocessing
            origin = copy_old_weights(old.network, old.preprocessing, new, rules, data.vectors)
    session.copy_from_rank_zero()
    if sample_weight is not None:
        session.set_sample_weights(sample_weight)
    return session, origin


def _check_sample_weight(sample_weight: Array, config: Config, data: PreparedData) -> None:
    """Check that each row of train has a weight.

    Raises:
        ConfigError: If train isn't a table in memory, or has more rows than there are weights.
    """
    if any(isinstance(source, FileSource) for source in split_sources(config.data, "train")):
        problem = "rows of files have no weights; pass the rows themselves, such as train=DataFrame"
        raise ConfigError(f"sample_weight: {problem}")
    rows = int(data.splits["train"].lines.max())
    if len(sample_weight) < rows:
        raise ConfigError(f"sample_weight: found {len(sample_weight)} weights for {rows} rows")


def _resumed_session(
    config: Config,
    data: PreparedData,
    device: torch.device,
    processes: Processes,
    point: ResumePoint,
) -> TrainingSession:
    """Return the session of a resumed run, with the training state of its last checkpoint.

    Raises:
        CheckpointError: If the data changed, if the checkpoint has another architecture than the
            config, or if its training state is damaged.
    """
    model, progress = point.checkpoint.model, point.checkpoint.progress
    check_same_data(point.run, config, data, model.preprocessing)
    if model.network.config != config.model.architecture:
        problem = "the architecture isn't that of the run's config; restore the folder from a copy"
        raise CheckpointError(f"{point.folder}: {problem}")
    session = TrainingSession(
        config,
        data,
        device,
        processes,
        model.network,
        model.calibration,
        pretrains=progress.get("phase") == "pretraining",
    )
    try:
        session.restore(point.checkpoint.tensors, progress)
    except ValueError as error:
        raise CheckpointError(f"{point.folder / STATE}: not a training state ({error})") from None
    if point.best is not None and session.learner.progress.phase == "training":
        session.learner.best_weights = point.best.network.state_dict()
    return session


def _start_writer(
    session: TrainingSession,
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
        RunError: If the disk has too little space, or a file can't be written.
    """
    point, facts = start.point, environment(session)
    if point is not None:
        writer = RunWriter(point.run, session, point)
        warnings = point.warnings + inexact_resume_warnings(point.run.environment(), facts)
        writer.resume()
    else:
        check_space(directory or RUNS, session)
        run = run_directory.make(directory, name)
        resources.enter_context(locked(run.path))
        if start.lineage:
            facts[LINEAGE] = start.lineage
        writer, warnings = RunWriter(run, session), []
        writer.start(facts, force=start.force)
    training, progress = session.classifier_learner, session.learner.progress
    listener(
        StartEvent(
            run=writer.run.path,
            config=session.config,
            device=str(session.device),
            **writer.engine,
            parameters=sum(weight.numel() for weight in session.network.parameters()),
            epochs=training.stopping.epochs,
            updates=training.total_updates,
            resumed_at=progress.updates,
            nothing_left=session.nothing_left(),
            pretraining=progress.phase == "pretraining",
            warnings=warnings,
            origin=origin,
        )
    )
    return writer


def _finished_run(session: TrainingSession, path: Path, warnings: list[str]) -> Run:
    """Return the result of a session whose training ended, as `fit` returns it.

    Args:
        session: The session.
        path: Run directory.
        warnings: Warnings about the predictions, one line each.
    """
    learner, progress = session.learner, session.learner.progress
    test = session.test_scores
    is_rare = test is not None and test.has_rare_class
    metric = compared_metric(session.config.training.monitor, has_rare_class=is_rare).name
    return Run(
        path=path,
        epochs=progress.epoch,
        best_epoch=progress.best_epoch,
        best_value=session.best_value(),
        stopped_early=learner.stopped_early,
        refit=progress.phase == "refit",
        test=test,
        validation=session.validation_scores,
        branches={name: getattr(own, metric) for name, own in session.branch_scores.items()},
        advice=session.advice(),
        warnings=warnings,
    )
