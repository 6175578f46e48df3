"""Trials of a search: Optuna's study, and the files trials.jsonl and best.yaml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from pydantic import TypeAdapter

from seqtrain.config import Config, render_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import CheckpointError, missing_package
from seqtrain.files.writing import write_file
from seqtrain.text import json_line
from seqtrain.training.events import EpochEvent
from seqtrain.tuning.space import LOGARITHMIC, Space, changed, differing, setting

TRIALS, BEST_CONFIG = "trials.jsonl", "best.yaml"
FIRST_TRIALS = 8
"""Trials that keep some of the config's values; then the estimator has enough to choose by."""
GRACE = 5
"""Seconds after which a lock of the journal counts as that of a killed process."""
UNPRUNED = 4
"""Complete trials before one may be pruned."""
RECORD = "record"
"""What the study keeps of a trial that is over, beside Optuna's own: its `Trial`."""


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        settings: values tried, by `section.key`.
        state: complete; pruned (worse than the median of others after as many epochs); failed; or
            stopped, as the time was over.
        value: the best monitored value; None where no epoch ended.
        loss: of validation in that epoch, in nats.
        best_epoch: that epoch, from 1.
        curve: after each epoch its number and the best value so far, where greater is better.
        problem: why it failed.
    """

    number: int
    settings: dict[str, Any]
    state: str = "failed"
    value: float | None = None
    loss: float | None = None
    best_epoch: int = 0
    curve: tuple[tuple[int, float], ...] = ()
    seconds: float = 0.0
    problem: str | None = None

    @property
    def order(self) -> tuple[float, float, int]:
        """Sort key: the greatest value, then the lower loss, then the lower number is best."""
        return self.curve[-1][1], -(self.loss or 0.0), -self.number

    def after(self, event: EpochEvent, monitor: str) -> Trial:
        """Return the trial after one more epoch."""
        scores, trial = event.validation, self
        assert scores is not None
        if event.is_best or not self.curve:
            value = getattr(scores, monitor)
            trial = replace(self, value=value, loss=scores.loss, best_epoch=event.epoch)
        best = max([scores.monitored(monitor), *(value for _, value in self.curve[-1:])])
        return replace(trial, curve=(*self.curve, (event.epoch, best)))


def best_of(trials: Iterable[Trial]) -> Trial | None:
    """Return the best complete trial, if there is one."""
    complete = [trial for trial in trials if trial.state == "complete"]
    return max(complete, key=lambda trial: trial.order, default=None)


def import_optuna() -> Any:
    """Return the package optuna.

    Raises:
        ConfigError: If it isn't installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise missing_package("tune", error.name, "tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@dataclass(frozen=True)
class Study:
    """Optuna's study of a search, in a journal. Its name depends on the config and the data."""

    journal: Path
    name: str
    config: Config
    space: Space

    @cached_property
    def optuna(self) -> Any:
        """Optuna's study, opened; a damaged journal raises a CheckpointError."""
        optuna, path = import_optuna(), str(self.journal)
        lock = optuna.storages.journal.JournalFileOpenLock(path, grace_period=GRACE)
        backend = optuna.storages.journal.JournalFileBackend(path, lock_obj=lock)
        lock.acquire()
        try:  # a kill may have cut the last line, and Optuna would append the next one to it
            with self.journal.open("r+b") as file:
                length = file.truncate(file.read().rfind(b"\n") + 1)
        finally:
            lock.release()
        seed = Random(f"{self.config.seed} {length}").getrandbits(32)
        try:
            return optuna.create_study(
                storage=optuna.storages.JournalStorage(backend),
                sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS),
                pruner=optuna.pruners.MedianPruner(UNPRUNED),
                study_name=self.name,
                direction="maximize",
                load_if_exists=True,
            )
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> CheckpointError:
        reason = repr(error).splitlines()[0]
        return CheckpointError(f"{self.journal}: damaged: {reason}; restore it, or use --force")

    def begin(self) -> tuple[Any, Trial]:
        """Start the next trial: the config itself, then half of its values, then Optuna's choice.

        Returns:
            Optuna's trial, which takes the values of epochs, and ours.
        """
        known = len(self.optuna.trials)
        is_first = best_of(self.trials()) is None and not self.under_way()
        draw = Random(f"{self.config.seed} {known}")
        if is_first or known < FIRST_TRIALS:
            own = values_by_key(self.config)
            kept = [key for key in self.space if is_first or draw.random() < 0.5]
            first = {k: flow(own[k]) if isinstance(self.space[k], list) else own[k] for k in kept}
            self.optuna.enqueue_trial({k: v for k, v in first.items() if v is not None})
        asked = self.optuna.ask()
        for key, tried in self.space.items():
            if isinstance(tried, list):
                asked.suggest_categorical(key, [flow(value) for value in tried])
                continue
            log = tried.low > 0 and tried.high / tried.low >= LOGARITHMIC
            suggest = asked.suggest_int if tried.whole else asked.suggest_float
            suggest(key, tried.low, tried.high, log=log)
        return asked, self._trial(asked)

    def end(self, asked: Any, trial: Trial) -> None:
        """Record the end of a trial that has started."""
        asked.set_user_attr(RECORD, asdict(trial))
        states = import_optuna().trial.TrialState
        ends = {"complete": states.COMPLETE, "pruned": states.PRUNED}
        value = trial.order[0] if trial.state == "complete" else None
        self.optuna.tell(asked.number, value, ends.get(trial.state, states.FAIL))

    def end_lost(self, problem: str | None) -> None:
        """End the trials of lost processes. Without a problem they are dropped."""
        trials = import_optuna().trial
        for found in self.under_way():
            if problem is None:
                self.optuna.tell(found.number, state=trials.TrialState.FAIL)
            else:
                asked = trials.Trial(self.optuna, found._trial_id)
                self.end(asked, replace(self._trial(found), problem=problem))

    def under_way(self) -> list[Any]:
        """Return Optuna's trials that are running."""
        running = (import_optuna().trial.TrialState.RUNNING,)
        return list(self.optuna.get_trials(deepcopy=False, states=running))

    def _trial(self, asked: Any) -> Trial:
        own = values_by_key(self.config)
        params = asked.params.items()
        return Trial(asked.number, {k: setting(self.space[k], v, own[k]) for k, v in params})

    def trials(self) -> list[Trial]:
        """Return the trials that ended."""
        found = [trial.user_attrs for trial in self.optuna.get_trials(deepcopy=False)]
        over = [kept[RECORD] for kept in found if RECORD in kept]
        try:
            return TypeAdapter(list[Trial]).validate_python(over)
        except ValueError as error:
            raise self._damaged(error) from None

    def write(self, directory: Path) -> None:
        """Write trials.jsonl, a line per trial, and best.yaml: keys given, and those changed."""
        trials, config = self.trials(), self.config
        lines = [json_line(asdict(trial)) + "\n" for trial in trials]
        write_file(directory / TRIALS, "".join(lines).encode())
        best = best_of(trials)
        if best is None:
            return
        changes, own = differing(config, best.settings), values_by_key(config)
        header = [
            f"# Written by: seqtrain tune; trial {best.number}, the best of {len(trials)}",
            f"# {config.training.monitor} on validation, which chose it: {best.value:.4f}",
            *(f"# {k}: {flow(x)}, was {flow(own[k])}" for k, x in changes.items()),
        ]
        text = "\n".join([*header, render_config(changed(config, changes))])
        write_file(directory / BEST_CONFIG, text.encode())
