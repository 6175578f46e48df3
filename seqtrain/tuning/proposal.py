"""What to try next, and what to give up, asked of Optuna.

Each question is answered from the seed, the trial's number and the trials that it may know of, and
from nothing else: so a search that was stopped goes on as if it had never been, and one of as many
trials finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.errors import ConfigError
from seqtrain.tuning.space import Choices, Range, Space, rounded, value_at
from seqtrain.tuning.trials import Trial

FIRST_TRIALS = 8
"""Trials before the tree-structured Parzen estimator has enough to go by: they change the config in
about half of the keys, at random."""
UNPRUNED = 4
"""Complete trials that are needed before one is given up."""
WARMUP = 25
"""Percent of its epochs that a trial has, whatever it is worth."""


def import_optuna() -> Any:
    """Return the package optuna.

    Raises:
        ConfigError: it isn't installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError(
            f"tune needs the package {error.name}; install it with: pip install 'seqtrain[tune]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class Proposal:
    """The settings of one trial, and whether it is worth going on with.

    Args:
        config: whose values are tried first.
        space: what may be tried.
        number: of the trial.
        known: the trials that it is chosen by.
        search: where several searches share their trials, the name of this one: each draws its own.

    Attributes:
        settings: by key.
    """

    def __init__(
        self,
        config: Config,
        space: Space,
        number: int,
        known: Sequence[Trial],
        search: str = "",
    ) -> None:
        optuna = import_optuna()
        draw = Random(f"{config.seed} {number}{search}")
        sampler = optuna.samplers.TPESampler(
            seed=draw.getrandbits(32), n_startup_trials=FIRST_TRIALS
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED, n_warmup_steps=WARMUP)
        study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
        distributions = distributions_of(optuna, space)
        for trial in known:
            study.add_trial(told(optuna, trial, distributions))
        self._asked = study.ask(distributions)
        own = {k: v for k in space if space[k].holds(v := value_at(config, k))}
        self.settings = {
            key: own[key]
            if key in own and number < FIRST_TRIALS and draw.random() < 0.5
            else _value(space[key], asked)
            for key, asked in self._asked.params.items()
        }
        if number == 0:
            self.settings = own

    def is_hopeless(self, share: int, best: float) -> bool:
        """Whether most known trials were better by then.

        Args:
            share: of the trial's epochs that are over, in percent.
            best: its best value so far.
        """
        self._asked.report(best, share)
        return bool(self._asked.should_prune())


def distributions_of(optuna: Any, space: Space) -> dict[str, Any]:
    """Return a space as Optuna has it."""
    return {key: _distribution(optuna, tried) for key, tried in space.items()}


def _distribution(optuna: Any, tried: Range | Choices) -> Any:
    kinds = optuna.distributions
    if isinstance(tried, Choices):
        return kinds.CategoricalDistribution([flow(value) for value in tried.values])
    if tried.whole:
        return kinds.IntDistribution(int(tried.low), int(tried.high), log=tried.logarithmic)
    return kinds.FloatDistribution(tried.low, tried.high, log=tried.logarithmic)


def _value(tried: Range | Choices, asked: Any) -> Any:
    """Return the value that Optuna's stands for."""
    if isinstance(tried, Choices):
        return next(value for value in tried.values if flow(value) == asked)
    return asked if tried.whole else min(max(rounded(asked), tried.low), tried.high)


def told(optuna: Any, trial: Trial, distributions: dict[str, Any]) -> Any:
    """Return a trial that is over as Optuna knows it; one that says nothing as failed."""
    states = optuna.trial.TrialState
    state = {"complete": states.COMPLETE, "pruned": states.PRUNED}.get(trial.state, states.FAIL)
    known = {key: kind for key, kind in distributions.items() if key in trial.settings}
    categorical = optuna.distributions.CategoricalDistribution
    return optuna.trial.create_trial(
        state=state,
        value=None if state is states.FAIL else trial.curve[-1][1],
        params={
            key: flow(trial.settings[key]) if isinstance(kind, categorical) else trial.settings[key]
            for key, kind in known.items()
        },
        distributions=known,
        intermediate_values=dict(trial.curve),
    )
