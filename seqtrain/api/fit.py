"""Training a classifier: config → data → model → trainer → run directory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch

from seqtrain.api import run_state
from seqtrain.api.determinism import deterministic_algorithms
from seqtrain.api.disk import check_space
from seqtrain.api.events import Event, Listener, Run
from seqtrain.api.recorder import Recorder
from seqtrain.api.restart import check_config
from seqtrain.api.run_data import read_data
from seqtrain.api.run_state import RunState
from seqtrain.api.start import Request, Start, find_start
from seqtrain.config import Config, config_from_mapping, load_config
from seqtrain.data.dataset import PreparedData
from seqtrain.data.sources import check_files
from seqtrain.data.word_vectors import with_width
from seqtrain.evaluation.devices import select_device
from seqtrain.evaluation.logits import check_finite
from seqtrain.evaluation.metrics import score_logits
from seqtrain.model.engines.choice import choose_engine
from seqtrain.processes.group import Group
from seqtrain.processes.place import Place
from seqtrain.runs import run_directory
from seqtrain.runs.run_directory import RunDirectory
from seqtrain.signals import StopSignals
from seqtrain.training.objectives import shared_logits
from seqtrain.training.trainer import Trainer


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
    request = Request(directory, name, beside, init_from, resume=resume, force=force)
    request = request.after_restart(place)
    with ExitStack() as held:
        chosen, group = _join(held, place, chosen)
        choose_engine(config.model, chosen)
        listener = listener if group.is_first else _nobody
        start = find_start(held, config, request, group)
        data = read_data(start, listener, group, cache=cache)
        held.enter_context(deterministic_algorithms(config.training.deterministic))
        group.signals = held.enter_context(StopSignals(shared=place.size > 1))
        run, state = _state(held, config, data, chosen, request, start, group)
        recorder = _recorder(run, state, listener, request)
        return _train(recorder, group.signals, finish=finish)


def _join(held: ExitStack, place: Place, device: torch.device) -> tuple[torch.device, Group]:
    """Return this process's own device, and the group of processes that it has joined."""
    if place.size == 1:
        return device, Group(place)
    from seqtrain.processes.joined import joined, own_device

    device = own_device(place, device)
    return device, held.enter_context(joined(place, device))


def _state(
    held: ExitStack,
    config: Config,
    data: PreparedData,
    device: torch.device,
    request: Request,
    start: Start,
    group: Group,
) -> tuple[RunDirectory | None, RunState]:
    """Return a run's directory, in the first process, and its state: begun, or put back."""
    with group.together():
        if start.run is not None and start.point is not None:
            state = run_state.resume(config, data, device, start.run, start.point, group)
        else:
            state = run_state.begin(config, data, device, start.origin, group)
        if start.run is not None or not group.is_first:
            return start.run, state
        _check_space(request.directory or run_directory.RUNS, state)
        run = run_directory.make(request.directory, request.name or "run")
        held.enter_context(run.lock())
        return run, state


def _recorder(
    run: RunDirectory | None, state: RunState, listener: Listener, request: Request
) -> Recorder:
    """Return what records a run, with its first files written, or brought to where it goes on."""
    group = state.group
    path = group.tell(None if run is None else str(run.path))[0]
    state.follow_first()
    notes = group.tell(group.notes)
    others = [
        (rank, line) for rank, own in enumerate(notes) for line in own if line not in notes[0]
    ]
    state.warnings += notes[0] + [f"{group.names([rank])}: {line}" for rank, line in others]
    recorder = Recorder(run or RunDirectory(Path(path)), state, listener)
    with group.together():
        if request.resume:
            recorder.go_on()
        else:
            recorder.begin(force=request.force)
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
        store = state.data.splits["test"]
        best = recorder.best_model().network.to(state.device)
        logits = shared_logits(best, store, state.device, state.group, answer)
        names = state.data.preprocessing.labels
        scores = score_logits(check_finite(logits, store), store, names)
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
