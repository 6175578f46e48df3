"""`seqtrain.tune`: a search for better settings of a config.

Each process that calls it trains trials of one study, one after another. The best trial becomes a
run like any other.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import seqtrain
from seqtrain.api.fit import config_file, fit
from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import Event, StartEvent
from seqtrain.api.search_space import changed, differing, space_of
from seqtrain.api.study import (
    JOURNAL,
    LOCKS,
    RunningTrial,
    Study,
    Trial,
    import_optuna,
    waiting_lock,
)
from seqtrain.config import Config, render_config, resolved_config
from seqtrain.config.document import flow
from seqtrain.errors import (
    CheckpointError,
    ConfigError,
    Interrupted,
    RunError,
    SeqtrainError,
    either,
    parameter,
    ran_out_of_memory,
)
from seqtrain.files.reading import read_file
from seqtrain.files.writing import locked, remove, write_file
from seqtrain.runs.destination import check_destination, remove_earlier
from seqtrain.runs.run_directory import CONFIG, FILES, FOLDERS, RUNS, TRIALS
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.sources import check_files, with_given_data
from seqtrain.text import Summarized, counted
from seqtrain.training.events import EpochEvent

BASE = "base.yaml"
"""Name of the file in the directory of a search with the config that is tuned.

Comments have the digests of its data. Only an equal config with equal data joins the search.
"""
DEFAULT_SECONDS = 600.0
"""Duration of a search that has no limit."""
TEST_FRACTION = 0.1
"""Fraction of train that is held out as test split if the config has none."""
PRUNABLE_PART = 4
"""A trial isn't pruned before 1 / PRUNABLE_PART of its epochs are complete."""
TRIALS_PAUSE = 0.5
"""Seconds between two looks at the trials of other processes."""

TrialListener: TypeAlias = Callable[[Trial, bool], None]
"""Function that is called with each trial of this process that has ended, and True if that trial is
the best so far."""


@dataclass(frozen=True, repr=False)
class Tuned(Summarized):
    """Result of a search.

    Attributes:
        run: The finished run of the best trial, as `fit` returns it.
        best: The best trial.
        trials: All finished trials of all processes, in the order of their numbers.
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
        if self.best.value is not None:
            found["best value"] = f"{self.best.value:.4f}"
        return found


def tune(
    config: Config | Mapping[str, Any] | str | PathLike[str],
    *,
    train: Any = None,
    validation: Any = None,
    test: Any = None,
    seconds: float | None = None,
    trials: int | None = None,
    run_dir: str | PathLike[str] | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    source: Path | None = None,
    listener: TrialListener = lambda trial, is_best: None,
) -> Tuned:
    """Search for better settings of a config, and finish the run of the best trial.

    Each trial trains the config with other values at some keys. The validation split chooses the
    best trial. The run of the best trial is calibrated, refitted if the config says so, and scored
    on test. It becomes the run in the directory of the search. If the config has neither data.test
    nor data.group, a tenth of train is held out as test.

    Several processes with equal arguments work on one search, and a search that is started again
    goes on. A finished trial is never repeated. A trial that was stopped or killed begins again.

    Args:
        config: A Config, a mapping of its sections, or the path of a YAML file.
        train: Data for training in place of ``data.train``, as `fit` takes it, or None.
        validation: Data in place of ``data.validation``, as `fit` takes it, or None.
        test: Data in place of ``data.test``, as `fit` takes it, or None.
        seconds: Time from this call on, after which no trial begins. A running trial then ends with
            its current epoch, except if it began before any trial was complete. None means ten
            minutes if `trials` is None, and no limit if it is a number.
        trials: Largest number of trials of the search, or None for no limit.
        run_dir: Directory of the search. None means ``runs/<name>-tuned``.
        device: Device in place of ``training.device``: auto, cpu, cuda, cuda:N or mps.
        resume: True to require that the search was begun before.
        force: True to replace an earlier run or search in `run_dir`. Other files there stay.
        source: YAML file that a Config was read from, or None. Its name becomes the name of the
            search.
        listener: Function that is called with each trial of this process that has ended, and with
            True if the trial is the best so far.

    Raises:
        ConfigError: If optuna isn't installed, if the config or an argument is wrong, or if the
            config has no data.validation.
        CheckpointError: If the directory has a search of another config or of other data, or if the
            search is damaged.
        DataError: If the data can't be used.
        RunError: If no trial was completed, if a file can't be written, or if finishing the run of
            the best trial fails.
        Interrupted: If a signal stopped the search. The finished trials are saved.
    """
    import_optuna()
    source = source or config_file(config)
    given = {"train": train, "validation": validation, "test": test}
    config, _tables = with_given_data(config, given)  # the tables live until the search ends
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    name = "run" if source is None else source.stem
    if run_dir is None:
        directory = RUNS / f"{name}-tuned"
    else:
        directory = Path(run_dir)
    _open_directory(directory, config, source, resume=resume, force=force)
    study = Study(directory, config, space)
    if seconds is None and trials is None:
        seconds = DEFAULT_SECONDS
    end = None if seconds is None else time.monotonic() + seconds
    try:
        _run_trials(study, end, trials, listener)
        run = _finish_best(study)
    except Interrupted as error:
        again = f"to go on, call tune again with run_dir={str(directory)!r}"
        raise Interrupted(
            error.signal_number,
            f"stopped after {counted(len(study.trials), 'trial')}, which are saved; "
            f"{either('go on with the same command', again)}",
        ) from None
    best = study.best
    assert best is not None
    return Tuned(run, best, study.trials)


def _with_test_split(config: Config) -> Config:
    """Return a copy of a config in which a fraction of train is held out as test.

    A config with a test split, or with data.group, is returned unchanged. Test is needed because
    validation chose the best trial, so the scores on validation are too good.

    Raises:
        ConfigError: If the config has no validation split.
    """
    if config.data.validation is None:
        raise ConfigError(
            "data.validation: null; a search chooses by rows that aren't learned; set "
            "data.validation: 0.1"
        )
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": TEST_FRACTION})


def _open_directory(
    directory: Path,
    config: Config,
    source: Path | None,
    *,
    resume: bool,
    force: bool,
) -> None:
    """Check the data, and make the directory of a new search or check that of an old one.

    Raises:
        ConfigError: If `directory` can't be used for a new search.
        CheckpointError: If the search is missing, is in use and shall be replaced, or has another
            config or other data.
        DataError: If the data can't be used.
    """
    locks = directory / LOCKS
    if resume and not (directory / BASE).exists():
        raise CheckpointError(
            f"{directory}: no search in it (no {BASE}); start one without "
            f"{parameter('resume', True)}, or name it with {parameter('run_dir')}"
        )
    if not locks.is_dir():
        check_destination(directory, "run", parameter("run_dir"), force=force, sources=[source])
    check_files(config, None if source is None else source.parent)
    digests = prepare(config).digests
    header = [f"# seqtrain {seqtrain.__version__}"]
    header += [f"# {split}: {digest}" for split, digest in digests.items()]
    base = "\n".join([*header, render_config(config)]).encode()
    with waiting_lock(locks / "study"):
        if force:
            _remove_search(directory)
        path = directory / BASE
        if not path.exists():
            write_file(path, base)
        elif read_file(path) != base:
            raise CheckpointError(
                f"{path}: is a search of another config or of other data; choose a new "
                f"{parameter('run_dir')}, or replace it with {parameter('force', True)}"
            )


def _remove_search(directory: Path) -> None:
    """Remove an earlier run or search. The caller must hold the lock of the study.

    Raises:
        CheckpointError: If a process trains a trial of the search.
    """
    with ExitStack() as stack:
        for folder in (directory / LOCKS).iterdir():
            if folder.name.isdecimal():
                stack.enter_context(locked(folder))
        remove_earlier(directory)
        remove(directory / JOURNAL)
        remove(directory / TRIALS)


def _run_trials(
    study: Study,
    end: float | None,
    most: int | None,
    listener: TrialListener,
) -> None:
    """Train trials until a limit is reached.

    At the end, wait for trials of other processes that may still decide the result. When the time
    is over, only the first complete trial is waited for.

    Args:
        study: The study.
        end: Time of ``time.monotonic()`` at which the search ends, or None for no limit.
        most: Largest number of trials of the study, or None for no limit.
        listener: Function that is called with each trial that has ended.
    """
    while True:
        is_late = end is not None and time.monotonic() > end
        running, others = study.begin(most, is_late=is_late)
        if running is None:
            if not others or (is_late and study.best):
                return
            time.sleep(TRIALS_PAUSE)
            continue
        try:
            result, score = _train(study, running, end if study.best else None)
        except BaseException:
            study.give_back(running)
            raise
        listener(result, study.end(running, result, score))


class _TrialEnded(Exception):
    """Exception by which a listener ends the training of a trial before its last epoch."""


def _train(study: Study, running: RunningTrial, end: float | None) -> tuple[Trial, float | None]:
    """Train a trial, and return its result and its best score.

    The score is the monitored value, negated if smaller is better; None if no epoch ended. If
    memory runs out, or a SeqtrainError is raised, the trial has failed. Other errors, and
    Interrupted, are raised.

    Args:
        study: The study.
        running: The trial.
        end: Time of ``time.monotonic()`` at which the trial ends with its epoch, or None.
    """
    start = time.monotonic()
    monitor = study.config.training.monitor
    epochs, state, problem = 0, "complete", None
    reported = []
    scored: dict[str, Any] = {}

    def follow(event: Event) -> None:
        nonlocal epochs, state
        if isinstance(event, StartEvent):
            epochs = event.epochs
        if not isinstance(event, EpochEvent) or event.validation is None:
            return
        scores = event.validation
        if event.is_best or not scored:
            value = getattr(scores, monitor)
            scored.update(value=value, loss=scores.loss, best_epoch=event.epoch)
        reported.append(scores.monitored(monitor))
        if event.epoch not in running.reported:
            running.asked.report(max(reported), event.epoch)
        if event.epoch >= epochs:
            return
        if end is not None and time.monotonic() > end:
            state = "stopped"
        elif PRUNABLE_PART * event.epoch >= epochs and running.asked.should_prune():
            state = "pruned"
        if state != "complete":
            raise _TrialEnded

    try:
        tried = changed(study.config, differing(study.config, running.settings))
        fit(tried, run_dir=running.run_dir, finish=False, progress=False, listener=follow)
    except _TrialEnded:
        pass
    except SeqtrainError as error:
        state = "failed"
        problem = error.problems[0]
    except (MemoryError, RuntimeError, OSError) as error:
        if not ran_out_of_memory(error):
            raise
        state = "failed"
        problem = "memory ran out"
    seconds = round(time.monotonic() - start, 2)
    result = Trial(
        running.number, running.settings, state, **scored, seconds=seconds, problem=problem
    )
    return result, max(reported, default=None)


def _finish_best(study: Study) -> Run:
    """Move the run of the best trial into the directory of the search, finish it, and return it.

    If its files were lost, the run is trained again.

    Raises:
        RunError: If no trial was completed, or finishing the run fails.
    """
    directory = study.directory
    with waiting_lock(directory / LOCKS / "winner"):
        with study.exclusive():
            best = study.best
            if best is None:
                problems = [trial.problem for trial in study.trials if trial.problem]
                too_short = "the time ended before the first trial did; give it more"
                reason = problems[0] if problems else too_short
                raise RunError(f"{directory}: no trial was completed; {reason}")
            trial_dir = directory / TRIALS / str(best.number)
            is_there = study.winner == best.number and (directory / CONFIG).exists()
            if trial_dir.is_dir():
                study.set_winner(best)
                _move(trial_dir, directory)
                is_there = True
        config = changed(study.config, best.settings)
        run = fit(config, run_dir=directory, resume=is_there, force=not is_there, progress=False)
        study.set_winner(best)
        study.remove_ended()  # what killed processes left
    with suppress(OSError):  # another process still trains a trial
        (directory / TRIALS).rmdir()
    return run


def _move(source: Path, directory: Path) -> None:
    """Move the run of a trial into the directory of the search, and replace an earlier one.

    A move that was interrupted can be repeated. The old config is removed last: without it, all
    other old files are gone. The new config comes last: a directory with a config counts as a run.
    """
    if (directory / CONFIG).exists():
        for name in (*FILES, *FOLDERS):
            if name != CONFIG:
                remove(directory / name)
        remove(directory / CONFIG)
    for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
        os.replace(path, directory / path.name)
    remove(source)
