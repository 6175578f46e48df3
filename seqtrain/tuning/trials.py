"""Trials of a search: the choice of their settings by Optuna, their results, and their files.

A trial trains the config that is tuned, with other values at some keys. These values are the
settings of the trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter

from seqtrain.config import Config, render_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import CheckpointError, missing_package
from seqtrain.files.writing import write_file
from seqtrain.text import json_line
from seqtrain.tuning.space import LOGARITHMIC, Range, Space, changed, differing, value_of_choice

if TYPE_CHECKING:
    from seqtrain.training.events import EpochEvent

TRIALS, BEST_CONFIG = "trials.jsonl", "best.yaml"
"""Names of the files of a search in its directory."""
FIRST_TRIALS = 8
"""Number of trials at the beginning that keep some values of the config.

Optuna's estimator needs their results before it can choose well.
"""
UNPRUNED = 4
"""Number of complete trials that there must be before another trial may be pruned."""

Curve: TypeAlias = tuple[tuple[int, float], ...]
"""Learning curve of a trial: for each epoch its number, from 1, and the best value up to then.

The values are monitored values, negated if smaller is better.
"""


@dataclass(frozen=True)
class Trial:
    """One trial of a search: its settings and, as far as it was trained, its results.

    Attributes:
        number: Number of the trial in its search, from 0.
        settings: Maps keys, such as "model.dropout", to the values that the trial tries.
        state: "complete" if training ended by the config's number of epochs or patience. "pruned"
            if the search ended it because it was worse than the median. "stopped" if the search
            ended it because the time was over. "failed" after an error, and until the trial has
            ended.
        value: Best value of the monitored metric, or None if no epoch ended.
        loss: Validation loss of the best epoch, in nats, or None if no epoch ended.
        best_epoch: Number of the best epoch, from 1, or 0 if no epoch ended.
        curve: Learning curve, see `Curve`.
        seconds: Duration of the trial.
        problem: Error message of a failed trial, or None.
    """

    number: int
    settings: dict[str, Any]
    state: str = "failed"
    value: float | None = None
    loss: float | None = None
    best_epoch: int = 0
    curve: Curve = ()
    seconds: float = 0.0
    problem: str | None = None

    @property
    def sort_key(self) -> tuple[float, float, int]:
        """Key by which complete trials are sorted. The best trial has the greatest key.

        The best monitored value decides, then the lower loss, then the lower number of the trial.
        The trial must have a curve.
        """
        return self.curve[-1][1], -(self.loss or 0.0), -self.number

    def after(self, event: EpochEvent, monitor: str) -> Trial:
        """Return a copy of the trial with the results of one more epoch.

        Args:
            event: Event of the end of the epoch. It must have scores of validation.
            monitor: Name of the monitored metric.
        """
        scores, trial = event.validation, self
        assert scores is not None
        if event.is_best or not self.curve:
            value = getattr(scores, monitor)
            trial = replace(self, value=value, loss=scores.loss, best_epoch=event.epoch)
        best = max([scores.monitored(monitor), *(value for _, value in self.curve[-1:])])
        return replace(trial, curve=(*self.curve, (event.epoch, best)))

    def is_below_median(self, others: Sequence[Curve]) -> bool:
        """Return True if the trial's best value so far is worse than the median of other trials.

        Best values up to the same epoch are compared. The result is False if there are fewer than
        `UNPRUNED` other trials, or if no other trial had as many epochs.

        Args:
            others: Curves of the complete trials.
        """
        epoch, value = self.curve[-1]
        known = [dict(curve)[epoch] for curve in others if epoch in dict(curve)]
        return len(others) >= UNPRUNED and bool(known) and value < median(known)


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
    """Trials of a search, from whose results Optuna chooses the settings of the next trial.

    Args:
        config: The config that is tuned.
        space: Values to try for each key.
        trials: Ended trials of the search that is resumed, or an empty list for a new search.

    Attributes:
        trials: All ended trials, in the order of their numbers.
    """

    def __init__(self, config: Config, space: Space, trials: Iterable[Trial] = ()) -> None:
        self.config, self.space = config, space
        self.trials: list[Trial] = []
        optuna, known = import_optuna(), list(trials)
        seed = Random(f"{config.seed} {len(known)}").getrandbits(32)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS)
        self._study = optuna.create_study(sampler=sampler, direction="maximize")
        self._asked: dict[int, Any] = {}
        for trial in known:
            self._asked[trial.number] = self._ask(trial.settings)
            self.add(trial)

    @property
    def complete(self) -> list[Trial]:
        """Ended trials whose state is "complete"."""
        return [trial for trial in self.trials if trial.state == "complete"]

    @property
    def best(self) -> Trial | None:
        """The best complete trial, or None if no trial is complete."""
        return max(self.complete, key=lambda trial: trial.sort_key, default=None)

    def may_begin(self, most: int | None, seconds: float | None) -> bool:
        """Return True if the limits allow another trial to begin.

        The first trial of a new search may begin even if no time is left.

        Args:
            most: Largest number of ended and running trials together, with those before a resume,
                or None for no limit.
            seconds: Number of seconds that are left, or None for no limit.
        """
        begun = len(self.trials) + len(self._asked)
        is_late = seconds is not None and seconds <= 0 and begun > 0
        return not is_late and (most is None or begun < most)

    def begin(self) -> Trial:
        """Return a new trial with its number and the settings to try. It counts as running.

        Trial 0 has the values of the config itself. The next trials keep about half of these
        values. After `FIRST_TRIALS` trials, Optuna chooses all values.

        The number of the trial is the lowest one without a trial. So a trial that was lost when the
        search was stopped begins again.
        """
        taken = {*self._asked, *(trial.number for trial in self.trials)}
        number = min({*range(len(taken) + 1)} - taken)
        draw, own = Random(f"{self.config.seed} {number}"), values_by_key(self.config)
        kept = dict[str, Any]()
        if number < FIRST_TRIALS:
            kept = {key: own[key] for key in self.space if number == 0 or draw.random() < 0.5}
        self._asked[number] = asked = self._ask(kept)
        return Trial(
            number,
            {
                key: value_of_choice(self.space[key], chosen, own[key])
                for key, chosen in asked.params.items()
            },
        )

    def add(self, trial: Trial) -> None:
        """Add a trial that has ended to `trials`, and report its results to Optuna.

        `begin` must have returned a trial of this number. The trial no longer counts as running.
        """
        self.trials = sorted([*self.trials, trial], key=lambda trial: trial.number)
        asked, states = self._asked.pop(trial.number), import_optuna().trial.TrialState
        for epoch, value in trial.curve:
            asked.report(value, epoch)
        ends = {"complete": states.COMPLETE, "pruned": states.PRUNED}
        best = trial.sort_key[0] if trial.state == "complete" else None
        self._study.tell(asked, best, ends.get(trial.state, states.FAIL))

    def _ask(self, kept: dict[str, Any]) -> Any:
        """Return the next trial of Optuna's own type, with its choice of values.

        Args:
            kept: Maps keys to values that Optuna must use. Optuna chooses the values of all other
                keys. If the value of a key with a range is None, Optuna chooses this value as well.
        """
        lists = {key for key, tried in self.space.items() if isinstance(tried, list)}
        fixed = {key: flow(value) if key in lists else value for key, value in kept.items()}
        self._study.enqueue_trial({key: x for key, x in fixed.items() if x is not None})
        return self._study.ask({key: _distribution(tried) for key, tried in self.space.items()})

    def write(self, directory: Path) -> None:
        """Write trials.jsonl, with a line per ended trial, and best.yaml into a directory.

        best.yaml has the config of the best trial. It is written only if a trial is complete.

        Raises:
            RunError: If a file can't be written.
        """
        lines = [json_line(asdict(trial)) + "\n" for trial in self.trials]
        write_file(directory / TRIALS, "".join(lines).encode())
        best, config = self.best, self.config
        if best is None:
            return
        changes, own = differing(config, best.settings), values_by_key(config)
        header = [
            f"# Written by: seqtrain tune; trial {best.number}, the best of {len(self.trials)}",
            f"# {config.training.monitor} on validation, which chose it: {best.value:.4f}",
            *(f"# {k}: {flow(x)}, was {flow(own[k])}" for k, x in changes.items()),
        ]
        text = "\n".join([*header, render_config(changed(config, changes))])
        write_file(directory / BEST_CONFIG, text.encode())


def _distribution(tried: Range | list[Any]) -> Any:
    """Return the distribution, an object of Optuna, for the values to try for a key."""
    distributions = import_optuna().distributions
    if isinstance(tried, list):
        return distributions.CategoricalDistribution([flow(value) for value in tried])
    log = tried.low > 0 and tried.high / tried.low >= LOGARITHMIC
    kind = "IntDistribution" if tried.whole else "FloatDistribution"
    return getattr(distributions, kind)(tried.low, tried.high, log=log)


def read_trials(directory: Path) -> list[Trial]:
    """Return the trials that `Study.write` wrote into a directory.

    Without a file of trials, return an empty list.

    Raises:
        CheckpointError: If the file is damaged.
    """
    path = directory / TRIALS
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [TypeAdapter(Trial).validate_json(line) for line in lines]
    except ValueError as error:
        reason = repr(error).splitlines()[0]
        raise CheckpointError(f"{path}: damaged: {reason}; restore it, or use --force") from None
