"""Training a classifier: config → data → model → trainer → run directory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch

from seqtrain.config import Config, config_from_mapping, load_config
from seqtrain.data.cache import default_folder
from seqtrain.data.configured import check_files, data_files
from seqtrain.data.preparation import PreparedData, prepare
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.summary import padding_shares, summarize, warnings
from seqtrain.data.vectors import with_width
from seqtrain.errors import CheckpointError, ConfigError, DataError
from seqtrain.inference.devices import select_device
from seqtrain.model.engines.choice import choose_engine
from seqtrain.processes.group import Group
from seqtrain.processes.place import Place
from seqtrain.runs import run_directory
from seqtrain.runs.finding import find
from seqtrain.runs.place import check_free
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.signals import StopSignals
from seqtrain.training.trainer import Trainer
from seqtrain.workflows import run_state
from seqtrain.workflows.classifier import Classifier
from seqtrain.workflows.determinism import deterministic_algorithms
from seqtrain.workflows.disk import check_space
from seqtrain.workflows.events import DataEvent, Event, Listener, Run
from seqtrain.workflows.memory import check_longest, check_model
from seqtrain.workflows.origin import Origin, lineage, read_origin
from seqtrain.workflows.recorder import Recorder
from seqtrain.workflows.restart import begun_before_restart, check_config
from seqtrain.workflows.resume_point import (
    ResumePoint,
    check_config_unchanged,
    read_resume_point,
)
from seqtrain.workflows.run_state import RunState

SMALLEST_INPUT = 2
"""Rows of the smallest embedding: what a model needs at least, known before any data is read."""


def fit(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    run_dir: str | Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    name: str | None = None,
    beside: Path | None = None,
    init_from: str | Path | None = None,
    listener: Listener = lambda event: None,
    finish: bool = True,
) -> Run:
    """Train a classifier and write its run directory.

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        run_dir: where; None: runs/<config name>-<time>.
        device: in place of training.device.
        resume: go on from run_dir's last checkpoint (None: the newest run's of this name).
        force: replace an earlier run in run_dir.
        cache: keep encoded data between runs.
        name: first part of the run's default name; None: the YAML file's, or "run".
        beside: folder of the YAML file, for the message where a data file is missing.
        init_from: a run directory or model folder whose weights training begins from.
        listener: is called with every event.
        finish: False ends it where the best epoch is known: `resume` then refits, and scores test.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: the run failed; what was saved stays valid.
        Interrupted: a signal stopped it; a checkpoint is saved.
    """
    if isinstance(config, str | Path):
        name, beside = name or Path(config).stem, beside or Path(config).parent
    config = resolved_config(config, device)
    if config.model.vectors is not None:
        check_files(config, beside)
        config = with_width(config)
    place = Place.here()
    check_config(config, place.size)
    chosen = select_device(config.training.device)
    directory = None if run_dir is None else Path(run_dir)
    begun = begun_before_restart(directory, name, place)
    if begun is not None:
        directory, init_from = begun.path, None
        resume, force = begun.has_checkpoint, not begun.has_checkpoint
    if resume and init_from is not None:
        raise ConfigError("--init-from: begins a run, and --resume goes on with one; give one")
    with ExitStack() as held:
        chosen, group = _join(held, place, chosen)
        choose_engine(config.model, chosen)
        if not group.is_first:
            listener = _nobody
        origin: Origin | None = None
        point: ResumePoint | None = None
        run: RunDirectory | None = None
        with group.together():
            if init_from is not None:
                origin = read_origin(init_from, config)
            if resume and group.is_first:
                run = _run_to_resume(directory, name, config, force=force)
                held.enter_context(run.lock())
                point = read_resume_point(run, config)
            elif group.is_first:
                check_free(directory, force=force)
                if directory is not None:
                    _refuse_data_inside(directory, config)
            check_files(config, beside)
            check_model(config.model, SMALLEST_INPUT, num_classes=2)
        with group.together():
            _check_same_origin(origin, group)
        known = None if origin is None else origin.model.preprocessing
        if resume:
            known = _known_before(run, point, config, group)
        read = config
        if resume and known is not None:  # it knows the file's words already
            read = config.model_copy(update={"model": config.model.architecture})
        data = _prepare(read, listener, group, cache=cache, known=known)
        held.enter_context(deterministic_algorithms(config.training.deterministic))
        group.signals = held.enter_context(StopSignals(shared=place.size > 1))
        with group.together():
            if run is not None and point is not None:
                state = run_state.resume(config, data, chosen, run, point, group)
            else:
                state = run_state.begin(config, data, chosen, origin, group)
            if run is None and group.is_first:
                _check_space(directory or run_directory.RUNS, state)
                run = run_directory.make(directory, name or "run")
                held.enter_context(run.lock())
        recorder = _recorder(run, state, listener, resume=resume, force=force)
        return _train(recorder, group.signals, finish=finish)


def _join(held: ExitStack, place: Place, device: torch.device) -> tuple[torch.device, Group]:
    """Return this process's own device, and the group of processes that it has joined."""
    if place.size == 1:
        return device, Group(place)
    from seqtrain.processes.joined import joined, own_device

    device = own_device(place, device)
    return device, held.enter_context(joined(place, device))


def _known_before(
    run: RunDirectory | None, point: ResumePoint | None, config: Config, group: Group
) -> Preprocessing | None:
    """Return the preprocessing that a resumed run went on from: an old model's, or None."""
    grown = run is not None and bool(lineage(run))
    path = group.tell(str(run.path) if run is not None and grown else None)[0]
    if path is None:
        return None
    with group.together():
        point = point or read_resume_point(RunDirectory(Path(path)), config)
    return point.checkpoint.model.preprocessing


def _recorder(
    run: RunDirectory | None, state: RunState, listener: Listener, *, resume: bool, force: bool
) -> Recorder:
    """Return what records a run, with its first files written, or brought to where it goes on."""
    group = state.group
    path = group.tell(None if run is None else str(run.path))[0]
    state.follow_first()
    state.warnings += group.notes
    recorder = Recorder(run or RunDirectory(Path(path)), state, listener)
    with group.together():
        if resume:
            recorder.go_on()
        else:
            recorder.begin(force=force)
    return recorder


def _nobody(event: Event) -> None:
    """Listen to a process that isn't the first."""


def _train(recorder: Recorder, signals: StopSignals, *, finish: bool) -> Run:
    """Pretrain where the config has an objective, train, calibrate, refit, and score test.

    The recorder saves after every epoch and keeps the best model. A signal is answered after an
    update, and before a batch is scored.
    """
    state, answer = recorder.state, partial(recorder.answer, signals)

    def learn(trainer: Trainer) -> None:
        for event in trainer.events(before_scoring=answer):
            recorder.record(event)
            answer()

    recorder.start()
    if state.pretrainer is not None:
        learn(state.pretrainer)
        recorder.end_pretraining()
    learn(state.trainer)
    if not finish:
        return recorder.finish(None)
    if not state.trainer.progress.refit:
        calibration = recorder.calibrate(answer)
        if state.config.training.refit:
            recorder.begin_refit(calibration)
            learn(state.trainer)
    scores = None
    if "test" in state.data.splits:
        best = Classifier(recorder.best_model(), state.device, recorder.run.path)
        scores = best.score(state.data.splits["test"], answer, state.group)
    return recorder.finish(scores)


def _check_space(place: Path, state: RunState) -> None:
    """Refuse to begin where the disk can't hold what the run saves."""
    groups = state.trainer.objective.groups
    check_space(place, state.model, state.learner.objective.model, groups)


def resolved_config(config: Config | Mapping[str, Any] | str | Path, device: str | None) -> Config:
    """Return a config from what a caller gave; a device takes the place of training.device.

    Raises:
        ConfigError: a key or value is wrong.
    """
    if isinstance(config, str | Path):
        config = load_config(config)
    elif not isinstance(config, Config):
        config = config_from_mapping(config)
    if device is None:
        return config
    training = config.training.model_copy(update={"device": device})
    return config.model_copy(update={"training": training})


def _refuse_data_inside(directory: Path, config: Config) -> None:
    """Refuse a run directory that holds a data file: the run's own files could replace it."""
    for key, path in data_files(config):
        real = Path(os.path.realpath(path))  # unlike resolve(), also of a loop of links
        if real.is_relative_to(os.path.realpath(directory)):
            raise ConfigError(
                f"--run-dir: {directory} holds {key} ({real}); choose another directory"
            )


def _run_to_resume(
    path: Path | None, name: str | None, config: Config, *, force: bool
) -> RunDirectory:
    """Find the run to go on with, and refuse another config before any data is read."""
    if force:
        raise ConfigError("--force: replaces a run, and --resume goes on with it; give one of them")
    if path is not None and not os.path.exists(path):
        raise CheckpointError(
            f"{path}: no such run (looked for {os.path.abspath(path)}); to begin one there, leave "
            "out --resume"
        )
    run = find(path, name or "run")
    check_config_unchanged(config, run)
    return run


def _prepare(
    config: Config,
    listener: Listener,
    group: Group,
    *,
    cache: bool,
    known: Preprocessing | None,
) -> PreparedData:
    """Read the data, check that its longest sequence can be trained on, and tell the listener.

    Of a host's processes the first reads it, and the others take it from the cache.
    """
    began = time.perf_counter()
    folder = default_folder() if cache else None
    data: PreparedData | None = None
    with group.together(patiently=True):
        if group.place.local_rank == 0:
            data = prepare(config, cache_folder=folder, known=known)
    with group.together(patiently=True):
        data = data or prepare(config, cache_folder=folder, known=known)
    with group.together():
        _check_same_data(data, group)
        preprocessing = data.preprocessing
        check_model(
            config.model,
            preprocessing.input_size,
            len(preprocessing.labels),
            preprocessing.num_ngrams,
        )
        check_longest(config, data.splits["train"])
    summaries = summarize(data)
    listener(
        DataEvent(
            data=data,
            summaries=summaries,
            padding=padding_shares(data, config.batching, config.seed),
            warnings=warnings(data, summaries, config.data),
            seconds=time.perf_counter() - began,
        )
    )
    return data


def _check_same_origin(origin: Origin | None, group: Group) -> None:
    """Refuse another old model than the first process read: it may be replaced meanwhile."""
    found = None if origin is None else origin.lineage[0]["weights_sha256"]
    if found != group.tell(found)[0]:
        raise CheckpointError(
            f"--init-from: weights of SHA-256 {found}, but rank 0 read others there; start again "
            "once nothing writes to it"
        )


def _check_same_data(data: PreparedData, group: Group) -> None:
    """Refuse data that differs from what the first process reads on its host."""
    first = group.tell(data.digests)[0]
    for file in data.digests | first:
        found = data.digests.get(file)
        if found is None:
            raise DataError(f"{file}: rank 0 reads it, and nothing names it here")
        if found != first.get(file):
            raise DataError(f"{file}: SHA-256 {found}, but rank 0 reads another file there")
