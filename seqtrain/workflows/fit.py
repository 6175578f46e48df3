"""Training a classifier: config → data → model → trainer → run directory."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from seqtrain.config import Config, config_from_mapping, load_config
from seqtrain.data.cache import default_folder
from seqtrain.data.preparation import PreparedData, check_files, data_files, prepare
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.summary import padding_shares, summarize, warnings
from seqtrain.errors import ConfigError
from seqtrain.inference.devices import select_device
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs import run_directory
from seqtrain.runs.finding import find
from seqtrain.runs.model_folder import load_model
from seqtrain.runs.place import check_free
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.signals import StopSignals
from seqtrain.training.trainer import Trainer
from seqtrain.workflows import run_state
from seqtrain.workflows.classifier import Classifier
from seqtrain.workflows.determinism import deterministic_algorithms
from seqtrain.workflows.disk import check_space
from seqtrain.workflows.events import DataEvent, Listener, Run
from seqtrain.workflows.memory import check_longest, check_model
from seqtrain.workflows.origin import lineage, read_origin
from seqtrain.workflows.recorder import Recorder
from seqtrain.workflows.resume_point import check_config_unchanged, read_resume_point
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

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: the run failed; what was saved stays valid.
        Interrupted: a signal stopped it; a checkpoint is saved.
    """
    if isinstance(config, str | Path):
        name, beside = name or Path(config).stem, beside or Path(config).parent
    config = resolved_config(config, device)
    chosen = select_device(config.training.device)
    choose_engine(config.model, chosen)
    directory = None if run_dir is None else Path(run_dir)
    if resume and init_from is not None:
        raise ConfigError("--init-from: begins a run, and --resume goes on with one; give one")
    origin = None if init_from is None else read_origin(init_from, config)
    known = None if origin is None else origin.model.preprocessing
    with ExitStack() as held:
        run = _run_to_resume(directory, name, config, force=force) if resume else None
        if run is not None:
            held.enter_context(run.lock())
            point = read_resume_point(run, config)
            known = point.checkpoint.model.preprocessing if lineage(run) else None
        else:
            check_free(directory, force=force)
            if directory is not None:
                _refuse_data_inside(directory, config)
        check_files(config, beside)
        check_model(config.model, SMALLEST_INPUT, num_classes=2)
        data = _prepare(config, listener, cache=cache, known=known)
        held.enter_context(deterministic_algorithms(config.training.deterministic))
        signals = held.enter_context(StopSignals())
        if run is not None:
            recorder = Recorder(run, run_state.resume(config, data, chosen, run, point), listener)
            recorder.go_on()
        else:
            state = run_state.begin(config, data, chosen, origin)
            _check_space(directory or run_directory.RUNS, state)
            run = run_directory.make(directory, name or "run")
            held.enter_context(run.lock())
            recorder = Recorder(run, state, listener)
            recorder.begin(force=force)
        return _train(recorder, signals)


def _train(recorder: Recorder, signals: StopSignals) -> Run:
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
    if not state.trainer.progress.refit:
        calibration = recorder.calibrate(answer)
        if state.config.training.refit:
            recorder.begin_refit(calibration)
            learn(state.trainer)
    scores = None
    if "test" in state.data.splits:
        best = Classifier(load_model(recorder.run.best), state.device, recorder.run.path)
        scores = best.score(state.data.splits["test"], before_batch=answer)
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
    run = find(path, name or "run")
    check_config_unchanged(config, run)
    return run


def _prepare(
    config: Config, listener: Listener, *, cache: bool, known: Preprocessing | None
) -> PreparedData:
    """Read the data, check that its longest sequence can be trained on, and tell the listener."""
    began = time.perf_counter()
    data = prepare(config, cache_folder=default_folder() if cache else None, known=known)
    preprocessing = data.preprocessing
    check_model(config.model, preprocessing.input_size, len(preprocessing.labels))
    check_longest(config, data.splits["train"])
    summaries = summarize(data)
    listener(
        DataEvent(
            data=data,
            summaries=summaries,
            padding=padding_shares(data, config.batching, config.seed),
            warnings=warnings(data, summaries),
            seconds=time.perf_counter() - began,
        )
    )
    return data
