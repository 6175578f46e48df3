"""The training of trials: one after another, or side by side in processes of their own."""

import time
from collections.abc import Callable, Container, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import torch

from seqtrain.api.fit import fit
from seqtrain.api.run_events import Event, StartEvent
from seqtrain.api.workers import Workers
from seqtrain.errors import Interrupted, SeqtrainError, ran_out_of_memory
from seqtrain.files.writing import remove
from seqtrain.signals import StopSignals
from seqtrain.training.events import EpochEvent
from seqtrain.tuning.space import changed, differing
from seqtrain.tuning.trials import Study, Trial, best_of

FOLDER = "trials"
"""The folder of the runs of trials under way, and of the best one, each named by its number."""
WARMUP = 4
"""A trial isn't pruned in the first of so many parts of its epochs."""
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


class _GivenUp(Exception):
    """A trial ends before its last epoch."""


def train_trial(
    study: Study, directory: Path, seconds: float | None, threads: int, *, cache: bool
) -> None:
    """Train the next trial of a study, in whatever process; the study keeps how it ended.

    After so many seconds it ends with its epoch, unless it is the search's first; None: no limit.
    """
    torch.set_num_threads(threads)
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


@dataclass
class Search:
    """A search under way; its runs stand in a directory."""

    study: Study
    directory: Path
    limits: Limits
    listener: TrialListener
    cache: bool

    def run(self, signals: StopSignals) -> None:
        """Run trials until a limit is reached; a signal loses the trials under way."""
        (self.directory / FOLDER).mkdir(exist_ok=True)
        jobs, threads = self.limits.jobs, max(1, torch.get_num_threads() // self.limits.jobs)
        self._known = {trial.number for trial in self.study.trials()}
        running, began, left = set[Future[None]](), time.monotonic(), self.limits.seconds
        with Workers(jobs) as workers:
            while True:
                self._note()
                while len(running) < jobs and self._may_begin(len(running), left):
                    study = self.study if jobs == 1 else replace(self.study)  # each opens its own
                    given = study, self.directory, left, threads
                    running.add(workers.submit(partial(train_trial, *given, cache=self.cache)))
                if not running:
                    return
                done, running = wait(running, PAUSE, FIRST_COMPLETED)
                if signals.received is not None:
                    raise Interrupted(signals.received, "the search was stopped")
                for future in done:
                    if isinstance(future.exception(), BrokenProcessPool):
                        self.study.end_lost("its process was killed; memory may have run out")
                    else:
                        future.result()
                if left is not None:
                    left = (self.limits.seconds or 0.0) + began - time.monotonic()

    def _may_begin(self, running: int, left: float | None) -> bool:
        begun, most = len(self._known) + running, self.limits.trials
        return (most is None or begun < most) and (left is None or left > 0 or not begun)

    def _note(self) -> None:
        """Write down the trials that are over; of their runs the best one's alone stays."""
        runs = list((self.directory / FOLDER).glob("*"))  # before the study says which go on
        trials = self.study.trials()
        best = best_of(trials)
        kept = [*self.study.under_way(), *([best] if best else [])]
        remove_runs(runs, {str(trial.number) for trial in kept})
        self.study.write(self.directory)
        for trial in trials:
            if trial.number not in self._known:
                self._known.add(trial.number)
                self.listener(trial, trial is best)


def remove_runs(paths: Iterable[Path], kept: Container[str] = ()) -> None:
    """Remove runs of trials, whose names are numbers."""
    for path in paths:
        if path.name.isdecimal() and path.name not in kept:
            remove(path)
