"""Trials of a search: their order, Optuna's choice of settings, and the files of a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from seqtrain.config import Config, render_config, values_by_key
from seqtrain.config.document import flow
from seqtrain.errors import CheckpointError, missing_package
from seqtrain.files.writing import write_file
from seqtrain.text import json_line
from seqtrain.training.events import EpochEvent
from seqtrain.tuning.space import LOGARITHMIC, Range, Space, changed, differing, setting

TRIALS, BEST_CONFIG = "trials.jsonl", "best.yaml"
FIRST_TRIALS = 8
"""Trials that keep some of the config's values; then the estimator has enough to choose by."""
UNPRUNED = 4
"""Complete trials before one may be pruned."""

Curve: TypeAlias = tuple[tuple[int, float], ...]
"""Number of each epoch, and the best value so far, where greater is better."""


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        settings: Values tried, by `section.key`.
        state: complete; pruned (worse than the median of others after as many epochs); failed; or
            stopped, as the time was over.
        value: Best monitored value, or None if no epoch ended.
        loss: Loss of validation in that epoch, in nats.
        best_epoch: Number of that epoch, from 1.
        curve: Best value after each epoch.
        problem: Reason of the failure, or None.
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
    def order(self) -> tuple[float, float, int]:
        """Sort key of complete trials: best value, then the lower loss, then the lower number."""
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

    def is_below_median(self, others: Sequence[Curve]) -> bool:
        """Return True if its best value is below the median of complete trials at this epoch.

        Args:
            others: Curves of the complete trials. With fewer than `UNPRUNED` the result is False.
        """
        epoch, value = self.curve[-1]
        known = [dict(curve)[epoch] for curve in others if epoch in dict(curve)]
        return len(others) >= UNPRUNED and bool(known) and value < median(known)


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


class Study:
    """The trials of a search that ended, and Optuna's choice of the next settings.

    Args:
        config: The config that is tuned.
        space: Values to try.
        trials: Trials of an earlier part of the search.
    """

    def __init__(self, config: Config, space: Space, trials: Iterable[Trial] = ()) -> None:
        self.config, self.space = config, space
        self.trials: list[Trial] = []
        optuna, known = import_optuna(), list(trials)
        seed = Random(f"{config.seed} {len(known)}").getrandbits(32)
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS)
        self._study = optuna.create_study(sampler=sampler, direction="maximize")
        self._asked: dict[int, Any] = {}
        self._begun = 0
        for trial in known:
            self._asked[trial.number] = self._ask(trial.settings)
            self.end(trial)

    @property
    def complete(self) -> list[Trial]:
        """Trials that trained all their epochs."""
        return [trial for trial in self.trials if trial.state == "complete"]

    @property
    def best(self) -> Trial | None:
        """The best complete trial, or None."""
        return max(self.complete, key=lambda trial: trial.order, default=None)

    def may_begin(self, most: int | None, seconds: float | None) -> bool:
        """Return True if the numbers of trials and seconds that are left allow another trial."""
        begun = len(self.trials) + len(self._asked)
        is_late = seconds is not None and seconds <= 0 and begun > 0
        return not is_late and (most is None or begun < most)

    def begin(self) -> Trial:
        """Return a new trial with the settings to try.

        The first trial is the config itself. The next ones keep about half of its values. From
        `FIRST_TRIALS` on, Optuna chooses all values.
        """
        is_first = self._begun == 0
        draw, own = Random(f"{self.config.seed} {self._begun}"), values_by_key(self.config)
        kept = dict[str, Any]()
        if is_first or self._begun < FIRST_TRIALS:
            kept = {key: own[key] for key in self.space if is_first or draw.random() < 0.5}
        number, asked = self._begun, self._ask(kept)
        self._asked[number] = asked
        self._begun += 1
        params = asked.params.items()
        return Trial(number, {k: setting(self.space[k], v, own[k]) for k, v in params})

    def end(self, trial: Trial) -> None:
        """Add a trial that ended."""
        self.trials = sorted([*self.trials, trial], key=lambda trial: trial.number)
        self._begun = max(self._begun, trial.number + 1)
        asked, states = self._asked.pop(trial.number), import_optuna().trial.TrialState
        for epoch, value in trial.curve:
            asked.report(value, epoch)
        ends = {"complete": states.COMPLETE, "pruned": states.PRUNED}
        best = trial.order[0] if trial.state == "complete" else None
        self._study.tell(asked, best, ends.get(trial.state, states.FAIL))

    def _ask(self, kept: dict[str, Any]) -> Any:
        """Return Optuna's next trial.

        Args:
            kept: Values of some keys that Optuna must take; it chooses the others.
        """
        lists = {key for key, tried in self.space.items() if isinstance(tried, list)}
        fixed = {key: flow(value) if key in lists else value for key, value in kept.items()}
        self._study.enqueue_trial({key: x for key, x in fixed.items() if x is not None})
        return self._study.ask({key: _distribution(tried) for key, tried in self.space.items()})

    def write(self, directory: Path) -> None:
        """Write trials.jsonl with a line per trial, and best.yaml with the config of the best."""
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
    """Return Optuna's distribution of the values that are tried."""
    distributions = import_optuna().distributions
    if isinstance(tried, list):
        return distributions.CategoricalDistribution([flow(value) for value in tried])
    log = tried.low > 0 and tried.high / tried.low >= LOGARITHMIC
    kind = "IntDistribution" if tried.whole else "FloatDistribution"
    return getattr(distributions, kind)(tried.low, tried.high, log=log)


def read_trials(directory: Path) -> list[Trial]:
    """Return the trials that a search recorded in its directory.

    Raises:
        CheckpointError: If the record is damaged.
    """
    path = directory / TRIALS
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [TypeAdapter(Trial).validate_json(line) for line in lines]
    except ValueError as error:
        reason = repr(error).splitlines()[0]
        raise CheckpointError(f"{path}: damaged: {reason}; restore it, or use --force") from None
