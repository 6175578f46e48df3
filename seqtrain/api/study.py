"""Studies: Optuna's journal of a search in a directory, on which several processes work.

A trial trains the config that is tuned, with other values at some keys. These values are the
settings of the trial. Each trial has a lock that its process holds, and that ends with the process.
A trial whose lock is free but that has no result was lost, and begins again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from pydantic import TypeAdapter

from seqtrain.api.search_space import (
    LOGARITHMIC,
    Space,
    ValueRange,
    changed,
    differing,
    value_of_choice,
)
from seqtrain.config import Config, render_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import CheckpointError, missing_package, parameter
from seqtrain.files.reading import read_file
from seqtrain.files.writing import locked, remove, write_file
from seqtrain.runs.run_directory import TRIALS

JOURNAL, BEST_CONFIG, LOCKS = "study.journal", "best.yaml", ".locks"
"""Names in the directory of a search: the journal, the best config, locks."""
STUDY_NAME = "tune"
"""Name of the study in its journal."""
FIRST_TRIALS = 8
"""Number of trials at the beginning that keep some values of the config.

Optuna's estimator needs their results before it can choose well.
"""
UNPRUNED = 4
"""Number of complete trials that there must be before another trial may be pruned."""
MOST_LOSSES = 3
"""A trial that was lost so often has failed, since it probably needs too much memory.

This doesn't hold for trial 0, the config itself.
"""
LOCK_PAUSE = 0.05
"""Seconds between two attempts to get a lock."""


@dataclass(frozen=True)
class Trial:
    """One finished trial of a search.

    Attributes:
        number: Number of the trial in its search, from 0.
        settings: Maps keys, such as "model.dropout", to the values that the trial tries.
        state: "complete" if training ended by the config's number of epochs or patience. "pruned"
            if the search ended it because it was worse than the median. "stopped" if the search
            ended it because the time was over. "failed" after an error.
        value: Best value of the monitored metric, or None if no epoch ended.
        loss: Validation loss of the best epoch, in nats, or None if no epoch ended.
        best_epoch: Number of the best epoch, from 1, or 0 if no epoch ended.
        seconds: Duration of the trial.
        problem: Error message of a failed trial, or None.
    """

    number: int
    settings: dict[str, Any]
    state: str = "failed"
    value: float | None = None
    loss: float | None = None
    best_epoch: int = 0
    seconds: float = 0.0
    problem: str | None = None


@dataclass(frozen=True)
class RunningTrial:
    """A trial that this process trains.

    Attributes:
        number: Number of the trial.
        settings: Maps keys to the values that the trial tries.
        run_dir: Directory for the run of the trial.
        asked: The trial as an object of Optuna.
        lock: Holds the lock of the trial until it is closed.
        reported: Epochs whose scores an earlier attempt, which was lost, has reported.
    """

    number: int
    settings: dict[str, Any]
    run_dir: Path
    asked: Any
    lock: ExitStack
    reported: Collection[int] = ()


def import_optuna() -> Any:
    """Import the package optuna, silence its log, and return it.

    Raises:
        ConfigError: If optuna isn't installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise missing_package("tune", error.name, "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Study:
    """The trials of a search, shared by all processes that open its directory.

    Args:
        directory: Directory of the search. It must exist.
        config: The config that is tuned.
        space: Values to try for each key.

    Raises:
        CheckpointError: If the journal is damaged.
    """

    def __init__(self, directory: Path, config: Config, space: Space) -> None:
        self.directory, self.config, self.space = directory, config, space
        optuna = import_optuna()
        self._states = optuna.trial.TrialState
        self._sampler = optuna.samplers.TPESampler
        path = directory / JOURNAL
        if os.path.lexists(path):
            read_file(path)  # Optuna would wait for a pipe, and read a device for ever
        lock = JournalLock(path, directory / LOCKS / "journal")
        try:
            backend = optuna.storages.journal.JournalFileBackend(str(path), lock)
            self._storage = optuna.storages.JournalStorage(backend)
            self._study = optuna.create_study(
                storage=self._storage,
                study_name=STUDY_NAME,
                direction="maximize",
                load_if_exists=True,
                pruner=optuna.pruners.MedianPruner(UNPRUNED),
            )
            self.trials  # noqa: B018  (a damaged result is found here)
        except (ValueError, LookupError, TypeError, AssertionError, AttributeError) as error:
            reason = f"{type(error).__name__} {error}".splitlines()[0]
            raise CheckpointError(
                f"{path}: damaged: {reason}; restore it, or replace it with "
                f"{parameter('force', True)}"
            ) from None

    @property
    def trials(self) -> list[Trial]:
        """Finished trials of all processes, in the order of their numbers."""
        return [result_of(trial) for trial in self._all() if trial.state.is_finished()]

    @property
    def best(self) -> Trial | None:
        """The best complete trial, or None if no trial is complete.

        The best monitored value decides, then the lower loss, then the lower number.
        """

        def order(trial: Any) -> tuple[float, float, int]:
            return trial.value, -(result_of(trial).loss or 0.0), -trial.number

        complete = self._all(self._states.COMPLETE)
        if complete:
            return result_of(max(complete, key=order))
        return None

    @property
    def winner(self) -> int | None:
        """Number of the trial whose run is in the directory of the search, or None."""
        number: int | None = self._study.user_attrs.get("winner")
        return number

    def begin(self, most: int | None, *, is_late: bool) -> tuple[RunningTrial | None, int]:
        """Begin the next trial and hold its lock.

        A lost trial begins again, with its settings. Of new trials, trial 0 has the values of the
        config itself. The next ones keep about half of these values. After `FIRST_TRIALS` trials,
        Optuna chooses all values.

        Args:
            most: Largest number of finished and running trials together, or None for no limit.
            is_late: True if the time is over. Then only the first trial of a search may begin.

        Returns:
            The trial, or None if none may begin; and the number of trials that other processes
            train.
        """
        with self.exclusive():
            others = self._count_running()
            begun = len(self.trials) + others
            if (is_late and begun) or (most is not None and begun >= most):
                return None, others
            waiting = self._all(self._states.WAITING)
            number = waiting[0].number if waiting else len(self._all())
            if not waiting:
                self._study.enqueue_trial(self._kept_values(number))
            # The draws depend on the number of the trial alone, not on restarts of the search.
            seed = Random(f"{self.config.seed} {number}").getrandbits(32)
            self._study.sampler = self._sampler(seed=seed, n_startup_trials=FIRST_TRIALS)
            asked = self._study.ask({key: _distribution(x) for key, x in self.space.items()})
            lock = ExitStack()
            lock.enter_context(locked(self._lock_folder(number)))
        settings = {}
        own = values_by_key(self.config)
        for key, chosen in asked.params.items():
            settings[key] = value_of_choice(self.space[key], chosen, own[key])
        run_dir = self.directory / TRIALS / str(number)
        remove(run_dir)  # of an earlier attempt that was lost
        reported = waiting[0].intermediate_values if waiting else ()
        return RunningTrial(number, settings, run_dir, asked, lock, reported), others

    def end(self, running: RunningTrial, result: Trial, score: float | None) -> bool:
        """Record the result of a trial, and return True if it is the best trial so far.

        best.yaml is written, and run directories of trials that can't be the best are removed.

        Args:
            running: The trial.
            result: Its result.
            score: Best monitored value, negated if smaller is better; or None.
        """
        ends = {"complete": self._states.COMPLETE, "pruned": self._states.PRUNED}
        with self.exclusive():
            running.asked.set_user_attr("result", asdict(result))
            value = score if result.state == "complete" else None
            self._study.tell(running.asked, value, ends.get(result.state, self._states.FAIL))
            best = self.best
            if best is not None:
                self._write_best(best)
            self.remove_ended()
            self._release(running)
        return result == best

    def give_back(self, running: RunningTrial) -> None:
        """Return an interrupted trial to the study, so that any process can begin it again."""
        with self.exclusive():
            self._storage.set_trial_state_values(self._id_of(running.number), self._states.WAITING)
            self._release(running)

    def remove_ended(self) -> None:
        """Remove the run directories of trials that have ended, except for the best one."""
        best = self.best
        for trial in self.trials:
            if trial != best:
                remove(self.directory / TRIALS / str(trial.number))

    def set_winner(self, trial: Trial) -> None:
        """Record the trial whose run is in the directory of the search."""
        self._study.set_user_attr("winner", trial.number)

    def exclusive(self) -> Any:
        """Return a context manager in which no other process begins or ends a trial."""
        return waiting_lock(self.directory / LOCKS / "study")

    def _all(self, *states: Any) -> list[Any]:
        """Return Optuna's trials in some states, or all trials."""
        found: list[Any] = self._study.get_trials(deepcopy=False, states=states or None)
        return found

    def _release(self, running: RunningTrial) -> None:
        """Release the lock of a trial. The caller must have exclusive access."""
        running.lock.close()
        remove(self._lock_folder(running.number))

    def _count_running(self) -> int:
        """Return the number of trials that run, and put lost trials back into the queue.

        A trial that was lost `MOST_LOSSES` times has failed. The caller must have exclusive access.
        """
        count = 0
        for trial in self._all(self._states.RUNNING):
            try:
                with locked(self._lock_folder(trial.number)):
                    losses = trial.user_attrs.get("losses", 0) + 1
                    trial_id = self._id_of(trial.number)
                    if losses < MOST_LOSSES or trial.number == 0:
                        self._storage.set_trial_user_attr(trial_id, "losses", losses)
                        self._storage.set_trial_state_values(trial_id, self._states.WAITING)
                        continue
                    problem = f"its process was killed {losses} times; memory may have run out"
                    settings = {key: str(value) for key, value in trial.params.items()}
                    result = Trial(trial.number, settings, problem=problem)
                    self._storage.set_trial_user_attr(trial_id, "result", asdict(result))
                    self._study.tell(trial.number, state=self._states.FAIL)
            except CheckpointError:  # its process holds the lock
                count += 1
        return count

    def _kept_values(self, number: int) -> dict[str, Any]:
        """Return the values of the config that a new trial keeps, in Optuna's form, by key.

        A value of None in a range has no such form. Optuna chooses it.
        """
        if number >= FIRST_TRIALS:
            return {}
        draw, own, kept = Random(f"{self.config.seed} {number}"), values_by_key(self.config), {}
        for key, tried in self.space.items():
            is_kept = number == 0 or draw.random() < 0.5
            value = flow(own[key]) if isinstance(tried, list) else own[key]
            if is_kept and value is not None:
                kept[key] = value
        return kept

    def _write_best(self, best: Trial) -> None:
        """Write best.yaml, the config of the best trial."""
        changes = differing(self.config, best.settings)
        own = values_by_key(self.config)
        header = [
            f"# Written by: seqtrain tune; trial {best.number}, the best of {len(self.trials)}",
            f"# {self.config.training.monitor} on validation, which chose it: {best.value:.4f}",
        ]
        header += [f"# {key}: {flow(x)}, was {flow(own[key])}" for key, x in changes.items()]
        text = "\n".join([*header, render_config(changed(self.config, changes))])
        write_file(self.directory / BEST_CONFIG, text.encode())

    def _id_of(self, number: int) -> int:
        """Return Optuna's id of a trial."""
        study = self._storage.get_study_id_from_name(STUDY_NAME)
        found: int = self._storage.get_trial_id_from_study_id_trial_number(study, number)
        return found

    def _lock_folder(self, number: int) -> Path:
        """Return the folder whose lock belongs to a trial."""
        folder = self.directory / LOCKS / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class JournalLock:
    """Lock for Optuna's journal. It ends with its process, so that a kill leaves none behind.

    A process that was killed, or a full disk, may leave the beginning of a line. It is removed
    before another line follows, since Optuna can't read past it.

    Args:
        journal: File of the journal.
        folder: Folder whose lock is used.
    """

    def __init__(self, journal: Path, folder: Path) -> None:
        self._journal = journal
        self._folder = folder
        self._held = ExitStack()

    def acquire(self) -> bool:
        """Wait until the lock is free, and take it."""
        self._held.enter_context(waiting_lock(self._folder))
        with self._journal.open("r+b") as file:
            complete = file.read().rfind(b"\n") + 1
            file.truncate(complete)
        return True

    def release(self) -> None:
        """Release the lock."""
        self._held.close()


@contextmanager
def waiting_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block, as soon as no other process holds it.

    The folder is made if it doesn't exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(locked(folder))
                break
            except CheckpointError:
                time.sleep(LOCK_PAUSE)
        yield


def result_of(trial: Any) -> Trial:
    """Return the result that the journal has of a finished trial of Optuna.

    Raises:
        ValueError: If it isn't valid.
    """
    return TypeAdapter(Trial).validate_python(trial.user_attrs.get("result"))


def _distribution(tried: ValueRange | list[Any]) -> Any:
    """Return the distribution, an object of Optuna, for the values to try for a key."""
    distributions = import_optuna().distributions
    if isinstance(tried, list):
        return distributions.CategoricalDistribution([flow(value) for value in tried])
    log = tried.low > 0 and tried.high / tried.low >= LOGARITHMIC
    kind = "IntDistribution" if tried.whole else "FloatDistribution"
    return getattr(distributions, kind)(tried.low, tried.high, log=log)
