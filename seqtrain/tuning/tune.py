"""`seqtrain.tune`: a search for better settings, whose best trial becomes a run like any other.

Trials are trained one after another, or side by side in worker processes.
"""

import os
import time
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from glob import escape
from hashlib import sha256
from os import PathLike
from pathlib import Path
from shlex import join
from typing import Any, TypeAlias

from seqtrain.api.fit import fit
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
from seqtrain.training.workers import WorkerPool
from seqtrain.tuning.space import Space, changed, differing, space_of
from seqtrain.tuning.trials import Study, Trial, best_of, import_optuna

BASE, JOURNAL = "base.yaml", "study.log"
"""Files of a search: the config that is tuned; Optuna's journal."""
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
    if seconds is None and trials is None:
        seconds = DEFAULT_SECONDS
    if source is None and not isinstance(config, Config | Mapping):
        source = Path(config)
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    name = "run" if source is None else source.stem
    target = None if run_dir is None else Path(run_dir)
    begun = _find_search(target, name, config) if resume else None
    if begun is None:
        check_destination(target, "run", "--run-dir", force=force)
    check_files(config, None if source is None else source.parent)
    digests = prepare(config, cache_folder=default_folder() if cache else None).digests
    with ExitStack() as stack:
        signals = stack.enter_context(StopSignals())
        directory = begun or make(target, f"{name}-tuned").path
        stack.enter_context(locked(directory))
        if begun is None:
            remove_earlier(directory)
            write_file(directory / BASE, render_config(config).encode())
        study = Study(directory / JOURNAL, _study_name(config, digests, space), config, space)
        study.end_lost(None)
        search = Search(study, directory, seconds, trials, jobs, cache, listener)
        try:
            best = search.run(signals)
        except Interrupted as error:
            raise _interrupted(error, study, directory) from None
        _move(directory / FOLDER / str(best.number), directory)
    run = fit(changed(config, best.settings), run_dir=directory, resume=True, cache=cache)
    return Tuned(run, best, study.trials())


def _interrupted(error: Interrupted, study: Study, directory: Path) -> Interrupted:
    """Return the error of a search that a signal stopped, with the command that resumes it."""
    command = ["tune", str(directory / BASE), "--resume", "--run-dir", str(directory)]
    done = f"stopped after {counted(len(study.trials()), 'trial')}, which are saved"
    return Interrupted(error.signal_number, f"{done}; resume with: seqtrain {join(command)}")


class _TrialEnded(Exception):
    """A trial ends before its last epoch."""


def train_trial(study: Study, directory: Path, seconds: float | None, *, cache: bool) -> None:
    """Train the next trial of a study; the study records how it ended.

    Args:
        study: The study.
        directory: Directory of the search.
        seconds: Time after which the trial ends with its epoch, unless it is the first one; or None
            for no limit.
        cache: Keep encoded data.
    """
    start, is_first = time.monotonic(), best_of(study.trials()) is None
    epochs, problem = 0, None
    asked, trial = study.begin()

    def follow(event: Event) -> None:
        nonlocal epochs, trial
        if isinstance(event, StartEvent):
            epochs = event.epochs
        if not isinstance(event, EpochEvent) or event.validation is None:
            return
        trial = trial.after(event, study.config.training.monitor)
        asked.report(trial.curve[-1][1], event.epoch)
        if is_first or event.epoch == epochs:
            return
        is_late = seconds is not None and time.monotonic() - start > seconds
        if is_late or (WARMUP * event.epoch >= epochs and asked.should_prune()):
            trial = replace(trial, state="stopped" if is_late else "pruned")
            raise _TrialEnded

    try:
        config = changed(study.config, differing(study.config, trial.settings))
        run_dir = directory / FOLDER / str(trial.number)
        fit(config, run_dir=run_dir, cache=cache, finish=False, listener=follow)
        trial = replace(trial, state="complete")
    except _TrialEnded:
        pass
    except SeqtrainError as error:
        problem = error.problems[0]
    except (MemoryError, RuntimeError, OSError) as error:
        if not ran_out_of_memory(error):
            raise
        problem = "memory ran out"
    took = round(time.monotonic() - start, 2)
    study.end(asked, replace(trial, problem=problem, seconds=took))


@dataclass(frozen=True)
class Search:
    """A search under way.

    Attributes:
        study: Its study.
        directory: Its directory.
        seconds: Time after which no trial starts, or None.
        trials: Number of trials at most, or None.
        jobs: Number of trials side by side.
        cache: True if encoded data are kept.
        listener: Function that is called with each trial that ended.
    """

    study: Study
    directory: Path
    seconds: float | None
    trials: int | None
    jobs: int
    cache: bool
    listener: TrialListener

    def run(self, signals: StopSignals) -> Trial:
        """Run trials until a limit is reached, and return the best one.

        Raises:
            RunError: If no trial was completed.
            Interrupted: If a signal came; running trials are lost.
        """
        (self.directory / FOLDER).mkdir(exist_ok=True)
        known = {trial.number for trial in self.study.trials()}
        running, start = set[Future[None]](), time.monotonic()
        with WorkerPool(self.jobs) as workers:
            while True:
                best = self._record(known)
                left = None if self.seconds is None else start + self.seconds - time.monotonic()
                while len(running) < self.jobs and self._may_start(len(known) + len(running), left):
                    running.add(workers.submit(self._next_trial(left)))
                if not running:
                    return best or self._fail()
                done, running = wait(running, PAUSE, FIRST_COMPLETED)
                if signals.received is not None:
                    raise Interrupted(signals.received)
                for future in done:
                    if isinstance(future.exception(), BrokenProcessPool):
                        self.study.end_lost("its process was killed; memory may have run out")
                    else:
                        future.result()

    def _record(self, known: set[int]) -> Trial | None:
        """Write what ended, tell the listener, remove other runs, and return the best trial."""
        runs = list((self.directory / FOLDER).glob("*"))  # before trials are read: they may end
        trials = self.study.trials()
        best = best_of(trials)
        kept = {str(trial.number) for trial in self.study.under_way()}
        _remove_runs(runs, kept | ({str(best.number)} if best else set()))
        self.study.write(self.directory)
        for trial in trials:
            if trial.number not in known:
                known.add(trial.number)
                self.listener(trial, trial is best)
        return best

    def _may_start(self, begun: int, left: float | None) -> bool:
        is_late = left is not None and left <= 0 and begun > 0
        return not is_late and (self.trials is None or begun < self.trials)

    def _next_trial(self, left: float | None) -> Callable[[], None]:
        study = self.study if self.jobs == 1 else replace(self.study)  # each opens the journal
        return partial(train_trial, study, self.directory, left, cache=self.cache)

    def _fail(self) -> Trial:
        problems = [trial.problem for trial in self.study.trials() if trial.problem]
        too_short = "the time ended before the first trial did; give a longer --budget"
        reason = problems[0] if problems else too_short
        raise RunError(f"{self.directory}: no trial was completed; {reason}")


def _remove_runs(paths: Iterable[Path], kept: Container[str] = ()) -> None:
    """Remove runs of trials, whose names are numbers."""
    for path in paths:
        if path.name.isdecimal() and path.name not in kept:
            remove(path)


def _study_name(config: Config, digests: dict[str, str], space: Space) -> str:
    """Return a name that is the same for the same config and data, on any device."""
    on_any_device = render_config(changed(config, {"training.device": "auto"}))
    identity = repr((on_any_device, sorted(digests.values()), sorted(space.items())))
    return f"seqtrain-{sha256(identity.encode()).hexdigest()[:16]}"


def _with_test_split(config: Config) -> Config:
    """Hold out rows that choose nothing, if the config has no test split."""
    if config.data.validation is None:
        reason = "a search chooses by rows that aren't learned; set data.validation: 0.1"
        raise ConfigError(f"data.validation: null; {reason}")
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": HELD_OUT})


def _find_search(run_dir: Path | None, name: str, config: Config) -> Path:
    """Return the directory of the search to resume."""
    found = RUNS.glob(f"{escape(name)}-tuned-*/{BASE}") if run_dir is None else [run_dir / BASE]
    bases = [path for path in found if path.is_file()]
    if not bases:
        where = f"{run_dir}: no {BASE} in it" if run_dir else f"no search of {name} under {RUNS}"
        raise CheckpointError(f"{where}; name the directory of a search with --run-dir")
    base = max(bases, key=lambda path: path.stat().st_mtime_ns)
    if render_config(load_config(base)) != render_config(config):
        raise CheckpointError(f"{base}: is a search of another config; choose a new --run-dir")
    return base.parent


def _move(source: Path, directory: Path) -> None:
    """Make the best trial's run the run of the directory, unless it is there already."""
    if source.is_dir():
        if (directory / CONFIG).exists():
            for name in (*FILES, *FOLDERS):
                remove(directory / name)
        for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
            os.replace(path, directory / path.name)  # the config comes last: it makes it a run
    _remove_runs((directory / FOLDER).glob("*"))
    with suppress(OSError):  # files of others stay
        source.parent.rmdir()
