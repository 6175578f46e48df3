"""Training a classifier: config → data → model → trainer → run directory."""

import math
import os
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqtrain.api import run_state
from seqtrain.api.environment import (
    Setting,
    check_longest,
    check_model,
    check_space,
    deterministic_algorithms,
    environment,
)
from seqtrain.api.recorder import Recorder
from seqtrain.api.run_events import DataEvent, Listener, Run, StartEvent
from seqtrain.api.run_state import RunState
from seqtrain.api.start import LINEAGE, Start, find_start, inexact
from seqtrain.config import Config, resolved_config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import PreparedData, load_prepared, prepare
from seqtrain.data.sources import check_files
from seqtrain.data.store import Array, SequenceStore
from seqtrain.data.word_vectors import with_width
from seqtrain.errors import ConfigError, DataError, Interrupted
from seqtrain.evaluation.calibration import adjustment, calibrate
from seqtrain.evaluation.devices import select_device
from seqtrain.evaluation.scores import Scores, score_branches
from seqtrain.files.writing import locked, write_folder
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs import run_directory
from seqtrain.runs.model_folder import model_files
from seqtrain.runs.run_directory import CONFIG, RUNS
from seqtrain.training.distributed import Processes, connected
from seqtrain.training.objectives import Classification, shared_logits
from seqtrain.training.trainer import Trainer

WHOLE_BATCHES = "their batch normalisation must see whole batches; train with one process"


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

    Args:
        config: a Config, a mapping of its sections, or the path of a YAML file.
        run_dir: where; None: runs/<config name>-<time>.
        device: in place of training.device.
        resume: go on from run_dir's last checkpoint (None: the newest run's of this name).
        force: replace an earlier run in run_dir.
        cache: keep encoded data between runs.
        source: the YAML file that a Config was read from, which names the run.
        init_from: a run directory or model folder whose weights training begins from.
        listener: is called with every event.
        finish: False ends it where the best epoch is known: `resume` then refits, and scores test.
        sample_weight: Weight of each row of train in the loss, (N,), or None. A resumed run must be
            given the same weights.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError, Interrupted: the run failed, or a signal stopped it; what was saved stays valid.
    """
    source = source or (Path(config) if isinstance(config, str | Path) else None)
    config, directory = resolved_config(config, device), None if run_dir is None else Path(run_dir)
    name, beside = ("run", None) if source is None else (source.stem, source.parent)
    wanted = Start(directory, source, name, init_from, resume, force)
    with ExitStack() as held:
        processes, chosen = held.enter_context(connected(select_device(config.training.device)))
        with processes.first_before_others():
            check_files(config, beside)
            config = with_width(config)
            choose_engine(config.model, chosen)
            if processes.size > 1 and config.model.convolutions is not None:
                raise ConfigError(f"model.convolutions: {WHOLE_BATCHES}")
        start = find_start(held, config, wanted, processes)
        began = time.perf_counter()
        data = _read_data(config, start, processes, default_folder() if cache else None)
        setting, recorder = Setting(config, data, chosen, processes), None
        _check_data(setting)
        if processes.is_first:
            listener(DataEvent(data, config, time.perf_counter() - began))
        held.enter_context(deterministic_algorithms(config.training.deterministic))
        held.enter_context(processes.signals)
        with processes.first_before_others():
            point, origin = start.point, start.origin
            state = run_state.resume(setting, point) if point else run_state.begin(setting, origin)
        state.follow_first()
        if sample_weight is not None and isinstance(state.trainer.objective, Classification):
            state.trainer.objective.weigh(sample_weight)
        if processes.is_first:
            recorder = _recorder(held, state, start, listener)
        return _train(state, recorder, finish=finish)


def _read_data(
    config: Config, start: Start, processes: Processes, cache_folder: Path | None
) -> PreparedData:
    """Let the first process of each host read the data; the others load the entry of the cache."""
    data, grown = None, start.resume and start.kept is not None
    if grown:  # the vocabulary that it keeps has the words of a file of vectors already
        config = config.model_copy(update={"model": config.model.architecture})
    with ExitStack() as held:
        if processes.local_rank == 0:
            if processes.local_size > 1 and cache_folder is None:
                cache_folder = Path(held.enter_context(TemporaryDirectory()))
            data = prepare(config, cache_folder=cache_folder, known=start.known())
        processes.broadcast()  # which may take hours
        entries = processes.gather(b"" if data is None else os.fsencode(data.entry or ""))
        entry = entries[processes.rank - processes.local_rank]
        if data is None and entry:
            data = load_prepared(config, Path(os.fsdecode(entry)))
        data = data or prepare(config, cache_folder=None, known=start.known())
        processes.broadcast()  # before a temporary entry is removed
    return data


def _check_data(setting: Setting) -> None:
    """Refuse data that don't fit into memory; other data, or another config, on another process."""
    config, data, processes = setting.config, setting.data, setting.processes
    with processes.first_before_others():
        check_model(config.model, data.preprocessing, setting.device)
        check_longest(config, data.splits["train"], setting.device)
    if others := processes.unlike_first([config.model_dump_json().encode()]):
        problem = f"config: not that of rank 0 on {others}; start all processes with the same one"
        raise ConfigError(*processes.lines(problem))
    arrays = (array for store in data.splits.values() for array in store.arrays().values())
    if others := processes.unlike_first(map(np.ascontiguousarray, arrays)):
        problem = f"data: not as rank 0 encoded it on {others}; give all hosts the same files"
        raise DataError(*processes.lines(problem))


def _recorder(held: ExitStack, state: RunState, start: Start, listener: Listener) -> Recorder:
    """Return what writes the run's files, its directory made or brought to where it goes on."""
    point, progress, facts = start.point, state.learner.progress, environment(state.setting)
    if point is not None:
        recorder, said = Recorder(point.run, state, listener, point), point.warnings
        said = said + inexact(point.run.environment(), facts)
        recorder.go_on()
    else:
        learning, groups = state.learner.objective.model, state.trainer.objective.groups
        check_space(start.directory or RUNS, state.model, learning, groups)
        run = run_directory.make(start.directory, start.name)
        held.enter_context(locked(run.path))
        if start.lineage:
            facts[LINEAGE] = start.lineage
        recorder, said = Recorder(run, state, listener), []
        recorder.begin(facts, force=start.force)
    begins = StartEvent(
        run=recorder.run.path,
        config=state.config,
        device=str(state.setting.device),
        **recorder.engine,
        parameters=sum(p.numel() for p in state.model.network.parameters()),
        epochs=state.trainer.budget.epochs,
        updates=state.trainer.total_updates,
        resumed_at=progress.updates,
        nothing_left=state.nothing_left,
        pretraining=progress.pretraining,
        warnings=said,
        origin=state.kept,
    )
    listener(begins)
    return recorder


def _train(state: RunState, recorder: Recorder | None, *, finish: bool) -> Run:
    """Pretrain where the config has an objective, train, calibrate, refit, and score test."""
    stop = partial(_stop_if_asked, state, recorder)

    def learn(trainer: Trainer) -> None:
        for event in trainer.events(before_scoring=stop):
            if recorder is not None:
                recorder.record(event)
            stop()
        if recorder is not None and trainer is state.trainer:
            recorder.save_last()

    if state.pretrainer is not None:
        pretrainer = state.pretrainer
        learn(pretrainer)
        state.pretrainer = None
        if recorder is not None:
            recorder.end_pretraining(pretrainer)
    learn(state.trainer)
    test, names = state.data.splits.get("test"), state.model.preprocessing.labels
    scores: Scores | None = None
    alone: dict[str, Scores] = {}
    if finish:
        if not state.trainer.progress.refit:
            _calibrate_best(state, recorder)
            if state.config.training.refit:
                state.begin_refit()
                learn(state.trainer)
        if test is not None:
            branches = _branches(state, recorder, test)
            given = state.model.network, branches, test, names, state.model.thresholds
            _, scores, alone = score_branches(*given)
    progress, best = state.trainer.progress, state.trainer.progress.best_value
    sign = -1 if state.config.training.monitor == "loss" else 1
    run = Run(
        path=Path() if recorder is None else recorder.run.path,
        epochs=progress.epoch,
        best_epoch=progress.best_epoch,
        best_value=math.nan if best is None else sign * best,
        stopped_early=state.trainer.out_of_patience,
        refit=progress.refit,
        test=scores,
        branches={name: own.accuracy for name, own in alone.items()},
        advice=state.advice,
        warnings=[] if recorder is None else recorder.doubts(scores),
    )
    if recorder is not None:
        recorder.finish(run)
    return run


def _calibrate_best(state: RunState, recorder: Recorder | None) -> None:
    if not state.trainer.progress.is_best:
        state.take(None if recorder is None else recorder.best_weights())
    validation, settings = state.data.splits.get("validation"), state.config.training
    train, names = state.data.splits["train"].labels, state.model.preprocessing.labels
    shift = adjustment(settings.logit_adjustment, torch.from_numpy(train), len(names))
    given = {"shift": shift, "branch_weights": state.model.network.default_branch_weights}
    found = before = state.model.calibration.model_copy(update=given)
    if validation is not None and settings.calibration != "none":
        branches = _branches(state, recorder, validation)
        one = settings.thresholds == "one"
        found = calibrate(branches, torch.from_numpy(validation.labels), before, one_threshold=one)
    if found is not before or shift:
        state.model = state.model.calibrated(found)
        if recorder is not None:
            write_folder(recorder.run.best, model_files(state.model))


def _branches(state: RunState, recorder: Recorder | None, store: SequenceStore) -> list[Tensor]:
    stop = partial(_stop_if_asked, state, recorder, save=False)
    given = state.model.network, store, state.setting.device, state.processes
    return shared_logits(*given, stop)


def _stop_if_asked(state: RunState, recorder: Recorder | None, *, save: bool = True) -> None:
    number, processes = state.processes.stop_signal, state.processes
    if number is None:
        return
    if recorder is None:
        raise Interrupted(number)
    if save:
        recorder.save_last()
    is_here = processes.size == processes.local_size > 1
    start = f"torchrun --nproc-per-node {processes.size} -m " if is_here else ""
    run = recorder.run.path
    raise Interrupted(
        number,
        f"stopped by {signal.Signals(number).name} after {recorder.where()}, saved; go on with: "
        f"{start}seqtrain fit {quote(str(run / CONFIG))} --resume --run-dir {quote(str(run))}",
    )
