"""The trials of a search: which one begins when, what each says, and what is kept of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from shlex import quote
from typing import TypeAlias

import torch

from seqtrain.api.training_process import EpochReport, TrainingProcess, TrainingTask
from seqtrain.config import Config
from seqtrain.errors import CheckpointError, ConfigError, Interrupted, SeqtrainError
from seqtrain.files.atomic import write_atomically
from seqtrain.signals import StopSignals
from seqtrain.text import counted
from seqtrain.tuning.best_config import BEST_CONFIG, render_best
from seqtrain.tuning.proposal import Proposal
from seqtrain.tuning.shared import SharedTrials, name_of
from seqtrain.tuning.space import Space, changed, differing, holds
from seqtrain.tuning.trials import (
    FOLDER,
    State,
    Trial,
    best_of,
    read_trials,
    remove_runs,
    write_trials,
)

BASE = "base.yaml"
"""The config that is tuned."""
PAUSE = 0.2
"""Seconds until signals and the time are looked at again."""

Listener: TypeAlias = Callable[[Trial, bool], None]
"""Is told of each trial that is over, and whether it is the best so far."""


@dataclass(frozen=True)
class Limits:
    """When a search ends.

    Attributes:
        seconds: after which no trial begins, and those under way end with their epoch (but for the
            first one); None: no limit.
        trials: at most; None: no limit.
        jobs: trials side by side.
    """

    seconds: float | None
    trials: int | None
    jobs: int = 1


@dataclass
class Running:
    """A trial under way."""

    number: int
    proposal: Proposal
    worker: TrainingProcess
    state: State = "complete"
    curve: list[tuple[int, float]] = field(default_factory=list)
    best: EpochReport | None = None
    epochs: int = 0

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    def add(self, said: EpochReport) -> bool:
        """Note an epoch; return whether the trial is hopeless."""
        self.epochs = said.epoch
        if said.is_best or self.best is None:
            self.best = said
        share = 100 * said.epoch // said.epochs
        if self.curve and self.curve[-1][0] == share:
            return False
        self.curve.append((share, self.best.rank))
        return self.proposal.is_hopeless(share, self.best.rank)

    def record(self, state: State, problem: str | None) -> Trial:
        """Return what is kept of it."""
        best = self.best
        return Trial(
            number=self.number,
            state=state,
            settings=self.proposal.settings,
            value=best.value if best else None,
            loss=best.loss if best else None,
            best_epoch=best.epoch if best else 0,
            epochs=self.epochs,
            curve=tuple(self.curve),
            seconds=round(time.monotonic() - self.began, 2),
            problem=problem,
        )


@dataclass
class Search:
    """A search under way."""

    config: Config
    space: Space
    directory: Path
    limits: Limits
    cache: bool
    listener: Listener
    shared: SharedTrials | None = None
    trials: dict[int, Trial] = field(default_factory=dict)
    running: dict[int, Running] = field(default_factory=dict)
    idle: list[TrainingProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trials = read_trials(self.directory)
        for trial in self.trials.values():
            if not holds(self.space, trial.settings):
                raise CheckpointError(
                    f"{self.directory}: trial {trial.number} has settings that this search doesn't "
                    "try; restore trials.jsonl, or start anew with --force"
                )
        self.began = time.monotonic()

    @property
    def best(self) -> Trial | None:
        """The best complete trial so far."""
        return best_of(self.trials.values())

    def run(self, signals: StopSignals) -> None:
        """Run trials until a limit is reached.

        Raises:
            Interrupted: by a signal.
        """
        self._forget_all_but_best()
        while True:
            while (number := self._next()) is not None:
                self._start(number)
            if not self.running:
                return
            ready = wait([trial.worker.connection for trial in self.running.values()], PAUSE)
            if signals.received:
                raise Interrupted(signals.received, self._how_to_go_on())
            for trial in list(self.running.values()):
                if trial.worker.connection in ready:
                    self._hear(trial)

    def end(self) -> None:
        """End all processes."""
        for worker in (*self.idle, *(trial.worker for trial in self.running.values())):
            worker.end()
        self.idle, self.running = [], {}

    @property
    def _is_over(self) -> bool:
        limit = self.limits.seconds
        return limit is not None and time.monotonic() - self.began > limit

    def _next(self) -> int | None:
        """Return the number of the trial that can begin now.

        Trial n is chosen by trials 0 to n − jobs, so these must be over: what it tries then doesn't
        depend on which of those side by side ends first.
        """
        jobs = self.limits.jobs
        number = next(n for n in range(len(self.trials) + jobs + 1) if self._is_free(n))
        if len(self.running) == jobs or number >= (self.limits.trials or number + 1):
            return None
        if self._is_over and self.trials:
            return None
        ready = all(earlier in self.trials for earlier in range(number - jobs + 1))
        return number if ready else None

    def _is_free(self, number: int) -> bool:
        return number not in self.trials and number not in self.running

    def _start(self, number: int) -> None:
        known, search = [self.trials[n] for n in range(number - self.limits.jobs + 1)], ""
        if self.shared is not None:
            search = name_of(self.directory)
            known += [trial for _, trial in self.shared.others(search)]
        proposal = Proposal(self.config, self.space, number, known, search)
        trial = Running(number, proposal, self.idle.pop() if self.idle else TrainingProcess())
        self.running[number] = trial
        try:
            settings = differing(self.config, proposal.settings)
            config = changed(self.config, settings)
        except ConfigError as error:
            self._note(trial, "failed", error.problems[0])
            return
        remove_runs(self.directory, lambda other: other == number)
        run_dir = self._run_of(number)
        run_dir.parent.mkdir(exist_ok=True)
        jobs = self.limits.jobs
        threads = None if jobs == 1 else max(1, torch.get_num_threads() // jobs)
        trial.worker.send(TrainingTask(config, run_dir, threads, self.cache, finish=False))

    def _hear(self, trial: Running) -> None:
        """Take what a trial says: an epoch, or its end."""
        said = trial.worker.receive()
        if isinstance(said, EpochReport):
            hopeless = trial.add(said)
            if said.epoch < said.epochs and trial.number > 0:  # so that one comes to its end
                late = self._is_over
                trial.state = "stopped" if late else "pruned" if hopeless else "complete"
            trial.worker.send(trial.state == "complete")
        elif not isinstance(said, str):  # a warning, of what the config brings: not the search's
            problem = said.problems[0] if isinstance(said, SeqtrainError) else None
            failed = problem is not None or not trial.curve
            self._note(trial, "failed" if failed else trial.state, problem)

    def _note(self, trial: Running, state: State, problem: str | None = None) -> None:
        """Write down a trial that is over; of the runs, the best one alone is kept."""
        del self.running[trial.number]
        if trial.worker.is_alive:
            self.idle.append(trial.worker)
        else:
            trial.worker.end()
        record = trial.record(state, problem)
        before = self.best
        self.trials[trial.number] = record
        best = self.best
        if best is not None and best is not before:
            write_atomically(
                self.directory / BEST_CONFIG,
                render_best(self.config, best, len(self.trials)).encode(),
            )
        write_trials(self.directory, self.trials)
        if self.shared is not None:
            self.shared.add(name_of(self.directory), self.trials.values())
        self._forget_all_but_best()
        self.listener(record, record is best)

    def _run_of(self, number: int) -> Path:
        return self.directory / FOLDER / str(number)

    def _forget_all_but_best(self) -> None:
        """Remove the runs of trials that are over, but for the best one's.

        Raises:
            CheckpointError: a link, or no folder, stands where they belong.
        """
        kept = {*self.running, self.best.number if self.best else None}
        remove_runs(self.directory, lambda number: number not in kept)

    def _how_to_go_on(self) -> str:
        shared = "" if self.shared is None else f" --storage {quote(self.shared.place)}"
        return (
            f"stopped after {counted(len(self.trials), 'trial')}, kept; go on with: seqtrain tune "
            f"{quote(str(self.directory / BASE))} --resume --run-dir {quote(str(self.directory))}"
            f"{shared}"
        )
