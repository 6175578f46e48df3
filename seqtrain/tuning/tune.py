"""`seqtrain.tune`: a search for better settings of a config.

A search trains trials, one after another or at the same time in worker processes. The best trial
becomes a run like any other.
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
from seqtrain.config.document import flow
from seqtrain.errors import (
    CheckpointError,
    ConfigError,
    Interrupted,
    RunError,
    SeqtrainError,
    either,
    ran_out_of_memory,
)
from seqtrain.files.writing import locked, remove, write_file
from seqtrain.runs.destination import check_destination, remove_earlier
from seqtrain.runs.run_directory import CONFIG, FILES, FOLDERS, RUNS, make
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.sources import check_files
from seqtrain.signals import StopSignals
from seqtrain.text import Summarized, counted
from seqtrain.training.events import EpochEvent
from seqtrain.training.workers import WorkerPool
from seqtrain.tuning.space import changed, differing, space_of
from seqtrain.tuning.trials import Curve, Study, Trial, import_optuna, read_trials

BASE = "base.yaml"
"""Name of the file in the directory of a search with the config that is tuned.

Comments have the digests of its data. A search is resumed only if all of this is unchanged.
"""
FOLDER = "trials"
"""Name of the folder in the directory of a search with the run directories of trials.

Each is named by the number of its trial. Those of ended trials are removed, except the best one.
"""
DEFAULT_SECONDS = 600.0
"""Duration of a search that has no limit."""
HELD_OUT = 0.1
"""Fraction of train that is held out as test split if the config has none."""
WARMUP = 4
"""A trial isn't pruned before 1 / WARMUP of its epochs are complete."""
PAUSE = 0.2
"""Longest time in seconds between two checks for signals."""
KILLED = "its process was killed; memory may have run out"
"""Problem of a trial whose worker process was killed."""

TrialListener: TypeAlias = Callable[[Trial, bool], None]
"""Function that is called with each ended trial, and True if that trial is the best so far."""


@dataclass(frozen=True, repr=False)
class Tuned(Summarized):
    """Result of a search.

    Attributes:
        run: The finished run of the best trial, as `fit` returns it.
        best: The best trial.
        trials: All ended trials, in the order of their numbers, with those before a resume.
    """

    run: Run
    best: Trial
    trials: list[Trial]

    def summary(self) -> dict[str, str]:
        """Return the run, the number of trials, and the best trial: its number, settings and value.

        Numbers and settings are texts. The value is missing if the best trial has none.
        """
        settings = ", ".join(f"{key}: {flow(value)}" for key, value in self.best.settings.items())
        found = {"run": str(self.run.path), "trials": str(len(self.trials))}
        found |= {"best trial": str(self.best.number), "settings": settings}
        value = {} if self.best.value is None else {"best value": f"{self.best.value:.4f}"}
        return found | value


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
    """Search for better settings of a config, and finish the run of the best trial.

    Each trial trains the config with other values at some keys. The validation split chooses the
    best trial. The run of the best trial is calibrated, refitted if the config says so, and scored
    on test. It becomes the run in the directory of the search. If the config has neither data.test
    nor data.group, a tenth of train is held out as test.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        seconds: Time from this call on, after which no trial begins. Running trials then end with
            their current epoch, except trials that began before any trial was complete. None means
            ten minutes if `trials` is None, and no limit if it is a number.
        trials: Largest number of trials, with those before a resume, or None for no limit.
        jobs: Number of trials that run at the same time.
        run_dir: Directory of the search. None means ``runs/<name>-tuned-<time>``.
        device: Device in place of ``training.device``: auto, cpu, cuda, cuda:N or mps.
        resume: True to continue the search in `run_dir`. If `run_dir` is None, the newest search of
            the same name is continued.
        force: True to replace an earlier run or search in `run_dir`. Other files there stay.
        cache: True to keep the encoded data in the user's cache folder, for all trials.
        source: YAML file that a Config was read from, or None. Its name becomes the name of the
            search.
        listener: Function that is called with each ended trial, and with True if the trial is the
            best so far.

    Raises:
        ConfigError: If optuna isn't installed, if the config or an argument is wrong, or if the
            config has no data.validation.
        CheckpointError: If the search to resume is missing or damaged, or has another config or
            other data.
        DataError: If the data can't be used.
        RunError: If no trial was completed, if a file can't be written, or if finishing the run of
            the best trial fails.
        Interrupted: If a signal stopped the search. The ended trials are saved.
    """
    import_optuna()
    if source is None and not isinstance(config, Config | Mapping):
        source = Path(config)
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    with (
        _open_search(config, source, run_dir, resume=resume, force=force, cache=cache) as directory,
        StopSignals() as signals,
    ):
        study = Study(config, space, read_trials(directory))
        seconds = DEFAULT_SECONDS if seconds is None and trials is None else seconds
        try:
            best = _run_trials(study, directory, signals, seconds, trials, jobs, cache, listener)
        except Interrupted as error:
            raise _interrupted(error, study, directory) from None
        _move(directory / FOLDER / str(best.number), directory)
    winner = changed(config, best.settings)
    run = fit(winner, run_dir=directory, resume=True, cache=cache, progress=False)
    return Tuned(run, best, study.trials)


@contextmanager
def _open_search(
    config: Config,
    source: Path | None,
    run_dir: str | PathLike[str] | None,
    *,
    resume: bool,
    force: bool,
    cache: bool,
) -> Iterator[Path]:
    """Check the data, then yield the directory of a search, locked for this process.

    For a new search, the directory is made, or earlier runs in it are removed, and the config is
    written into it. `tune` describes the arguments.

    Raises:
        ConfigError: If `run_dir` can't be used for a new search.
        CheckpointError: If there is no search to resume, or it has another config or other data.
        DataError: If the data can't be used.
    """
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
    """Return the error for a search that a signal stopped. It names the command that resumes it.

    Args:
        error: Error that the signal caused.
        study: The trials of the search.
        directory: Directory of the search.
    """
    command = ["tune", str(directory / BASE), "--resume", "--run-dir", str(directory)]
    done = f"stopped after {counted(len(study.trials), 'trial')}, which are saved"
    arguments = f"run_dir={str(directory)!r}, resume=True"
    again = either(
        f"resume with: seqtrain {join(command)}",
        f"to continue, call tune again with {arguments}",
    )
    return Interrupted(error.signal_number, f"{done}; {again}")


class _TrialEnded(Exception):
    """Exception by which a listener ends the training of a trial before its last epoch."""


def train_trial(
    config: Config,
    trial: Trial,
    run_dir: Path,
    others: Sequence[Curve],
    seconds: float | None,
    *,
    cache: bool,
) -> Trial:
    """Train a trial, and return a copy of it with its state and results.

    If memory runs out, or a SeqtrainError is raised, the state is "failed", and `problem` has the
    message. Other errors, and Interrupted, are raised.

    Args:
        config: The config that is tuned.
        trial: The trial, with its settings.
        run_dir: Directory to write the run of the trial to.
        others: Learning curves of the complete trials, by which the trial may be pruned.
        seconds: Time after which the trial ends with its current epoch, or None for no limit.
        cache: True to read the encoded data from the cache, and to store them there.
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
        fit(tried, run_dir=run_dir, cache=cache, finish=False, progress=False, listener=follow)
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
    """Run trials until a limit is reached, add them to the study, and return the best trial.

    Whenever a trial ends, all trials are saved in the directory of the search. Only the run
    directory of the best trial is kept. `most` is the argument `trials` of `tune`, which describes
    the other arguments.

    Raises:
        RunError: If no trial was completed.
        Interrupted: If a signal came. The running trials are lost.
    """
    runs = directory / FOLDER
    runs.mkdir(exist_ok=True)
    _save(study, directory)
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
                study.add(trial)
                _save(study, directory)
                listener(trial, trial is study.best)
    if study.best is not None:
        return study.best
    problems = [trial.problem for trial in study.trials if trial.problem]
    too_short = "the time ended before the first trial did; give a longer --budget"
    raise RunError(f"{directory}: no trial was completed; {[*problems, too_short][0]}")


def _save(study: Study, directory: Path) -> None:
    """Write the files of a search, and remove the run directories of ended trials but the best."""
    study.write(directory)
    ended = {str(trial.number) for trial in study.trials if trial is not study.best}
    for path in (directory / FOLDER).glob("*"):
        if path.name in ended:
            remove(path)


def _with_test_split(config: Config) -> Config:
    """Return a copy of a config in which a fraction of train is held out as test.

    A config with a test split, or with data.group, is returned unchanged. Test is needed because
    validation chose the best trial, so the scores on validation are too good.

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
    """Return the directory of the search to resume.

    Args:
        run_dir: The directory, or None for the newest search of this name under ``runs/``.
        name: Name of the search.

    Raises:
        CheckpointError: If there is no such search.
    """
    found = RUNS.glob(f"{escape(name)}-tuned-*/{BASE}") if run_dir is None else [run_dir / BASE]
    bases = [path for path in found if path.is_file()]
    if not bases:
        where = f"{run_dir}: no {BASE} in it" if run_dir else f"no search of {name} under {RUNS}"
        raise CheckpointError(f"{where}; name the directory of a search with --run-dir")
    return max(bases, key=lambda path: path.stat().st_mtime_ns).parent


def _move(source: Path, directory: Path) -> None:
    """Move the run of the best trial into the directory of the search, and remove other trials.

    If `source` doesn't exist, its run was already moved, and only other trials are removed.

    Args:
        source: Run directory of the best trial, in the folder of all trials.
        directory: Directory of the search. The files of an earlier best run in it are replaced.
    """
    if source.is_dir():
        if (directory / CONFIG).exists():
            for name in (*FILES, *FOLDERS):
                remove(directory / name)
        for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
            # The config comes last: a directory with a config counts as a run.
            os.replace(path, directory / path.name)
    remove(source.parent)
