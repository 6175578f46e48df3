"""`seqtrain.tune`: a search for better settings, whose best trial becomes a run like any other.

Trials are trained one after another, or side by side in worker processes.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from os import PathLike
from pathlib import Path
from shlex import join
from typing import Any, TypeAlias

from seqtrain.api.fit import fit
from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import Event, StartEvent
from seqtrain.config import Config, render_config, resolved_config
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
from seqtrain.training.workers import WorkerPool
from seqtrain.tuning.space import changed, differing, space_of
from seqtrain.tuning.trials import Curve, Study, Trial, import_optuna, read_trials

BASE = "base.yaml"
"""File of a search: the config that is tuned, with the digests of its data."""
FOLDER = "trials"
"""Folder for runs of trials under way and of the best one, each named by its number."""
DEFAULT_SECONDS = 600.0
"""Time of a search without a limit."""
HELD_OUT = 0.1
"""Share of train that chooses nothing, if the config has no test split."""
WARMUP = 4
"""A trial isn't pruned in the first 1 / WARMUP of its epochs."""
PAUSE = 0.2
"""Seconds between two checks of signals and of worker processes."""
KILLED = "its process was killed; memory may have run out"

TrialListener: TypeAlias = Callable[[Trial, bool], None]
"""Function that is called with each trial that ended, and True if it is the best so far."""


@dataclass(frozen=True)
class Tuned:
    """Result of a search.

    Attributes:
        run: The finished run of the best trial.
        best: The best trial.
        trials: All trials that ended.
    """

    run: Run
    best: Trial
    trials: list[Trial]


def tune(
    config: Config | Mapping[str, Any] | str | PathLike[str],
    *,
    seconds: float | None = None,
    trials: int | None = None,
    jobs: int = 1,
    run_dir: str | PathLike[str] | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    source: Path | None = None,
    listener: TrialListener = lambda trial, is_best: None,
) -> Tuned:
    """Train a config with other settings, trial by trial, and finish the best trial's run.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        seconds: Time after which no trial starts; running ones end with their epoch, except the
            first trial, which trains all its epochs. Ten minutes, if `trials` is None, too.
        trials: Number of trials at most, or None.
        jobs: Number of trials that run side by side.
        run_dir: Directory of the search and of the best run, or None for
            ``runs/<name>-tuned-<time>``.
        device: auto, cpu, cuda, cuda:N or mps, in place of ``training.device``.
        resume: Continue the search in `run_dir`, or the newest one of this config.
        force: Replace the contents of `run_dir`.
        cache: Keep encoded data between trials.
        source: YAML file that a Config was read from; it names the run.
        listener: Function that is called with each trial that ended.

    Raises:
        ConfigError: If optuna isn't installed, or the config or an argument is wrong.
        CheckpointError: If there is no search to resume, or it is damaged.
        DataError: If the data can't be used.
        RunError: If no trial was completed.
        Interrupted: If a signal stopped the search; all trials that ended are kept.
    """
    import_optuna()
    if source is None and not isinstance(config, Config | Mapping):
        source = Path(config)
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    with (
        _opened(config, source, run_dir, resume=resume, force=force, cache=cache) as directory,
        StopSignals() as signals,
    ):
        study = Study(config, space, read_trials(directory))
        seconds = DEFAULT_SECONDS if seconds is None and trials is None else seconds
        try:
            best = _run_trials(study, directory, signals, seconds, trials, jobs, cache, listener)
        except Interrupted as error:
            raise _interrupted(error, study, directory) from None
        _move(directory / FOLDER / str(best.number), directory)
    run = fit(changed(config, best.settings), run_dir=directory, resume=True, cache=cache)
    return Tuned(run, best, study.trials)


@contextmanager
def _opened(
    config: Config,
    source: Path | None,
    run_dir: str | PathLike[str] | None,
    *,
    resume: bool,
    force: bool,
    cache: bool,
) -> Iterator[Path]:
    """Yield the directory of a new or resumed search, locked, after the data were checked."""
    name = "run" if source is None else source.stem
    target = None if run_dir is None else Path(run_dir)
    begun = _find_search(target, name) if resume else None
    if begun is None:
        check_destination(target, "run", "--run-dir", force=force)
    check_files(config, None if source is None else source.parent)
    digests = prepare(config, cache_folder=default_folder() if cache else None).digests
    base = "\n".join([*(f"# {split}: {x}" for split, x in digests.items()), render_config(config)])
    directory = begun or make(target, f"{name}-tuned").path
    with locked(directory):
        if begun is None:
            remove_earlier(directory)
            write_file(directory / BASE, base.encode())
        elif (directory / BASE).read_text("utf-8") != base:
            other = "is a search of another config or of other data; choose a new --run-dir"
            raise CheckpointError(f"{directory / BASE}: {other}")
        yield directory


def _interrupted(error: Interrupted, study: Study, directory: Path) -> Interrupted:
    """Return the error of a search that a signal stopped, with the command that resumes it."""
    command = ["tune", str(directory / BASE), "--resume", "--run-dir", str(directory)]
    done = f"stopped after {counted(len(study.trials), 'trial')}, which are saved"
    return Interrupted(error.signal_number, f"{done}; resume with: seqtrain {join(command)}")


class _TrialEnded(Exception):
    """A trial ends before its last epoch."""


def train_trial(
    config: Config,
    trial: Trial,
    run_dir: Path,
    others: Sequence[Curve],
    seconds: float | None,
    *,
    cache: bool,
) -> Trial:
    """Train a trial, and return it as it ended.

    Args:
        config: The config that is tuned.
        trial: The trial, with its settings.
        run_dir: Directory of its run.
        others: Curves of the complete trials.
        seconds: Time after which the trial ends with its epoch, or None for no limit.
        cache: Keep encoded data.
    """
    start, epochs, problem = time.monotonic(), 0, None

    def follow(event: Event) -> None:
        nonlocal epochs, trial
        if isinstance(event, StartEvent):
            epochs = event.epochs
        if not isinstance(event, EpochEvent) or event.validation is None:
            return
        trial = trial.after(event, config.training.monitor)
        is_late = seconds is not None and time.monotonic() - start > seconds
        is_hopeless = WARMUP * event.epoch >= epochs and trial.is_below_median(others)
        if event.epoch < epochs and (is_late or is_hopeless):
            trial = replace(trial, state="stopped" if is_late else "pruned")
            raise _TrialEnded

    try:
        tried = changed(config, differing(config, trial.settings))
        fit(tried, run_dir=run_dir, cache=cache, finish=False, listener=follow)
        trial = replace(trial, state="complete")
    except _TrialEnded:
        pass
    except SeqtrainError as error:
        problem = error.problems[0]
    except (MemoryError, RuntimeError, OSError) as error:
        if not ran_out_of_memory(error):
            raise
        problem = "memory ran out"
    return replace(trial, problem=problem, seconds=round(time.monotonic() - start, 2))


def _run_trials(
    study: Study,
    directory: Path,
    signals: StopSignals,
    seconds: float | None,
    most: int | None,
    jobs: int,
    cache: bool,
    listener: TrialListener,
) -> Trial:
    """Run trials until a limit is reached, and return the best one.

    Raises:
        RunError: If no trial was completed.
        Interrupted: If a signal came; running trials are lost.
    """
    runs = directory / FOLDER
    runs.mkdir(exist_ok=True)
    _record(study, directory)
    running, start = dict[Future[Trial], Trial](), time.monotonic()
    with WorkerPool(jobs) as workers:
        while True:
            left = None if seconds is None else start + seconds - time.monotonic()
            while len(running) < jobs and study.may_begin(most, left):
                trial, complete = study.begin(), study.complete
                call = partial(
                    train_trial,
                    study.config,
                    trial,
                    runs / str(trial.number),
                    [each.curve for each in complete],
                    left if complete else None,
                    cache=cache,
                )
                running[workers.submit(call)] = trial
            if not running:
                break
            done, _ = wait(running, PAUSE, FIRST_COMPLETED)
            if signals.received is not None:
                raise Interrupted(signals.received)
            for future in done:
                trial = running.pop(future)
                was_killed = isinstance(future.exception(), BrokenProcessPool)
                trial = replace(trial, problem=KILLED) if was_killed else future.result()
                study.end(trial)
                _record(study, directory)
                listener(trial, trial is study.best)
    if study.best is not None:
        return study.best
    problems = [trial.problem for trial in study.trials if trial.problem]
    too_short = "the time ended before the first trial did; give a longer --budget"
    raise RunError(f"{directory}: no trial was completed; {[*problems, too_short][0]}")


def _record(study: Study, directory: Path) -> None:
    """Write the trials, and remove the runs of trials that ended, except the best one's."""
    study.write(directory)
    ended = {str(trial.number) for trial in study.trials if trial is not study.best}
    for path in (directory / FOLDER).glob("*"):
        if path.name in ended:
            remove(path)


def _with_test_split(config: Config) -> Config:
    """Return the config with a test split: a part of train, if the config names no test data.

    Raises:
        ConfigError: If the config has no validation split.
    """
    if config.data.validation is None:
        reason = "a search chooses by rows that aren't learned; set data.validation: 0.1"
        raise ConfigError(f"data.validation: null; {reason}")
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": HELD_OUT})


def _find_search(run_dir: Path | None, name: str) -> Path:
    """Return the directory of the search to resume."""
    found = RUNS.glob(f"{escape(name)}-tuned-*/{BASE}") if run_dir is None else [run_dir / BASE]
    bases = [path for path in found if path.is_file()]
    if not bases:
        where = f"{run_dir}: no {BASE} in it" if run_dir else f"no search of {name} under {RUNS}"
        raise CheckpointError(f"{where}; name the directory of a search with --run-dir")
    return max(bases, key=lambda path: path.stat().st_mtime_ns).parent


def _move(source: Path, directory: Path) -> None:
    """Make the best trial's run the run of the directory, unless it is there already."""
    if source.is_dir():
        if (directory / CONFIG).exists():
            for name in (*FILES, *FOLDERS):
                remove(directory / name)
        for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
            os.replace(path, directory / path.name)  # the config comes last: it makes it a run
    remove(source.parent)
