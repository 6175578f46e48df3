"""A search for better settings: its trials are trained, and the best becomes a run like any other.

Trials are trained one after another, or side by side in processes of their own.
"""

import os
import time
from collections.abc import Callable, Container, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from hashlib import sha256
from pathlib import Path
from shlex import join
from typing import TypeAlias

from seqtrain.api.fit import fit
from seqtrain.api.repeats import Workers
from seqtrain.api.run_events import Event, Run, StartEvent
from seqtrain.config import Config, load_config, render_config, resolved_config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import prepare
from seqtrain.data.sources import check_files
from seqtrain.errors import (
    CheckpointError,
    ConfigError,
    Interrupted,
    RunError,
    SeqtrainError,
    ran_out_of_memory,
)
from seqtrain.files.writing import locked, remove, write_file
from seqtrain.runs.destination import check_destination, remove_earlier
from seqtrain.runs.run_directory import CONFIG, FILES, FOLDERS, RUNS, make
from seqtrain.signals import StopSignals
from seqtrain.text import counted
from seqtrain.training.events import EpochEvent
from seqtrain.tuning.space import Space, changed, differing, space_of
from seqtrain.tuning.trials import Study, Trial, best_of, import_optuna

BASE, JOURNAL = "base.yaml", "study.log"
"""Files of a search: the config that is tuned; Optuna's journal."""
FOLDER = "trials"
"""The folder of the runs of trials under way, and of the best one, each named by its number."""
HELD_OUT = 0.1
"""Share of train that chooses nothing, where the config has no test split."""
WARMUP = 4
"""A trial isn't pruned in the first 1 / WARMUP of its epochs."""
PAUSE = 0.2
"""Seconds between two looks at signals and at what processes have done."""

TrialListener: TypeAlias = Callable[[Trial, bool], None]
"""Receives each trial that is over, and whether it is the best so far."""


@dataclass(frozen=True)
class Limits:
    """When a search ends; None: no limit.

    Attributes:
        seconds: after these no trial begins, and those under way end with their epoch; but the
            first trial always trains all its epochs.
        jobs: trials side by side.
    """

    seconds: float | None
    trials: int | None
    jobs: int = 1


@dataclass(frozen=True)
class Tuned:
    """The best trial and its finished run, and all trials that are over."""

    run: Run
    best: Trial
    trials: list[Trial]


def tune(
    config: Config | str | Path,
    limits: Limits,
    *,
    source: Path | None = None,
    run_dir: Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    listener: TrialListener = lambda trial, is_best: None,
) -> Tuned:
    """Train a config with other settings, trial by trial, and finish the best trial's run.

    Args:
        config: a Config, or the path of a YAML file.
        limits: when the search ends.
        source: as for `fit`, like device, force and cache.
        run_dir: of the search and of the best run. None: runs/<name>-tuned-<time>.
        device: in place of training.device.
        resume: go on with the search in run_dir (None: the newest one of this name).
        force: replace what is in run_dir.
        cache: keep encoded data between trials.
        listener: receives each trial that is over.

    Errors are those of `fit`; a RunError also where no trial came to its end. A signal keeps all
    trials that were over.
    """
    import_optuna()
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    name = "run" if source is None else source.stem
    begun = _begun(run_dir, name, config) if resume else None
    if begun is None:
        check_destination(run_dir, "run", "--run-dir", force=force)
    check_files(config, None if source is None else source.parent)
    digests = prepare(config, cache_folder=default_folder() if cache else None).digests
    with ExitStack() as held:
        signals = held.enter_context(StopSignals())
        directory = begun or make(run_dir, f"{name}-tuned").path
        held.enter_context(locked(directory))
        if begun is None:
            remove_earlier(directory)
            write_file(directory / BASE, render_config(config).encode())
        study = Study(directory / JOURNAL, _study_name(config, digests, space), config, space)
        study.end_lost(None)
        try:
            best = _search(study, directory, limits, signals, listener, cache=cache)
        except Interrupted as error:
            how = ["tune", str(directory / BASE), "--resume", "--run-dir", str(directory)]
            done = f"stopped after {counted(len(study.trials()), 'trial')}, kept"
            line = f"{done}; go on with: seqtrain {join(how)}"
            raise Interrupted(error.exit_code - 128, line) from None
        _move(directory / FOLDER / str(best.number), directory)
    run = fit(changed(config, best.settings), run_dir=directory, resume=True, cache=cache)
    return Tuned(run, best, study.trials())


class _GivenUp(Exception):
    """A trial ends before its last epoch."""


def train_trial(study: Study, directory: Path, seconds: float | None, *, cache: bool) -> None:
    """Train the next trial of a study, in whatever process; the study keeps how it ended.

    When the seconds are over, it ends with its epoch, unless it is the search's first trial.
    """
    began, is_first = time.monotonic(), best_of(study.trials()) is None
    epochs, problem = 0, None
    asked, trial = study.begin()

    def note(event: Event) -> None:
        nonlocal epochs, trial
        if isinstance(event, StartEvent):
            epochs = event.epochs
        if not isinstance(event, EpochEvent) or event.validation is None:
            return
        trial = trial.after(event, study.config.training.monitor)
        asked.report(trial.curve[-1][1], event.epoch)
        if is_first or event.epoch == epochs:
            return
        is_late = seconds is not None and time.monotonic() - began > seconds
        if is_late or (WARMUP * event.epoch >= epochs and asked.should_prune()):
            trial = replace(trial, state="stopped" if is_late else "pruned")
            raise _GivenUp

    try:
        config = changed(study.config, differing(study.config, trial.settings))
        run_dir = directory / FOLDER / str(trial.number)
        fit(config, run_dir=run_dir, cache=cache, finish=False, listener=note)
        trial = replace(trial, state="complete")
    except Interrupted:
        raise
    except _GivenUp:
        pass
    except SeqtrainError as error:
        problem = error.problems[0]
    except (MemoryError, RuntimeError, OSError) as error:
        if not ran_out_of_memory(error):
            raise
        problem = "memory ran out"
    took = round(time.monotonic() - began, 2)
    study.end(asked, replace(trial, problem=problem, seconds=took))


def _search(
    study: Study,
    directory: Path,
    limits: Limits,
    signals: StopSignals,
    listener: TrialListener,
    *,
    cache: bool,
) -> Trial:
    """Run trials until a limit is reached; return the best. A signal loses those under way."""
    (directory / FOLDER).mkdir(exist_ok=True)
    jobs, most = limits.jobs, limits.trials
    known = {trial.number for trial in study.trials()}
    running, began, left = set[Future[None]](), time.monotonic(), limits.seconds
    with Workers(jobs) as workers:
        while True:
            runs = list((directory / FOLDER).glob("*"))  # before the study says which go on
            trials = study.trials()
            best = best_of(trials)
            going_on = {str(trial.number) for trial in study.under_way()}
            remove_runs(runs, going_on | ({str(best.number)} if best else set()))
            study.write(directory)
            for trial in trials:
                if trial.number not in known:
                    known.add(trial.number)
                    listener(trial, trial is best)
            while len(running) < jobs:
                begun = len(known) + len(running)
                is_late = left is not None and left <= 0 and begun
                if is_late or (most is not None and begun >= most):
                    break
                own = study if jobs == 1 else replace(study)  # each opens its own
                call = partial(train_trial, own, directory, left, cache=cache)
                running.add(workers.submit(call))
            if not running and best is not None:
                return best
            if not running:
                problems = [trial.problem for trial in trials if trial.problem]
                why = [*problems, "there was no time left"][0]
                raise RunError(f"{directory}: no trial came to its end; {why}")
            done, running = wait(running, PAUSE, FIRST_COMPLETED)
            if signals.received is not None:
                raise Interrupted(signals.received)
            for future in done:
                if isinstance(future.exception(), BrokenProcessPool):
                    study.end_lost("its process was killed; memory may have run out")
                else:
                    future.result()
            if left is not None:
                left = (limits.seconds or 0.0) + began - time.monotonic()


def remove_runs(paths: Iterable[Path], kept: Container[str] = ()) -> None:
    """Remove runs of trials, whose names are numbers."""
    for path in paths:
        if path.name.isdecimal() and path.name not in kept:
            remove(path)


def _study_name(config: Config, digests: dict[str, str], space: Space) -> str:
    anywhere = render_config(changed(config, {"training.device": "auto"}))
    same = repr((anywhere, sorted(digests.values()), sorted(space.items())))
    return f"seqtrain-{sha256(same.encode()).hexdigest()[:16]}"


def _with_test_split(config: Config) -> Config:
    """Hold out rows that choose nothing, where the config has no test split."""
    if config.data.validation is None:
        why = "a search chooses by rows that aren't learned; set data.validation: 0.1"
        raise ConfigError(f"data.validation: null; {why}")
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": HELD_OUT})


def _begun(run_dir: Path | None, name: str, config: Config) -> Path:
    found = RUNS.glob(f"{escape(name)}-tuned-*/{BASE}") if run_dir is None else [run_dir / BASE]
    bases = [path for path in found if path.is_file()]
    if not bases:
        where = f"{run_dir}: no {BASE} in it" if run_dir else f"no search of {name} under {RUNS}"
        raise CheckpointError(f"{where}; name the directory of a search with --run-dir")
    base = max(bases, key=lambda path: path.stat().st_mtime_ns)
    if render_config(load_config(base)) != render_config(config):
        raise CheckpointError(f"{base}: the search is of this other config; choose a new --run-dir")
    return base.parent


def _move(source: Path, directory: Path) -> None:
    """Make the best trial's run the run of the directory; where it is already, do nothing."""
    if source.is_dir():
        if (directory / CONFIG).exists():
            for name in (*FILES, *FOLDERS):
                remove(directory / name)
        for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
            os.replace(path, directory / path.name)  # the config last: it makes a run of the rest
    remove_runs((directory / FOLDER).glob("*"))
    with suppress(OSError):  # what no search left stays
        source.parent.rmdir()
