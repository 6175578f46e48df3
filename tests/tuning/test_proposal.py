"""What is tried next follows from seed, number and the trials before, and from nothing else."""

from __future__ import annotations

import sys

import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.tuning.proposal import FIRST_TRIALS, UNPRUNED, Proposal, import_optuna
from seqtrain.tuning.space import Choices, differing, space_of
from seqtrain.tuning.trials import Trial

CONFIG = config_from_mapping({"data": {"train": "a.csv", "sequence": "s", "label": "l"}})
SPACE = space_of(CONFIG)


def searched(count: int) -> list[Trial]:
    """Return trials whose value is better the nearer the learning rate is to 0.002."""
    known: list[Trial] = []
    for number in range(count):
        settings = Proposal(CONFIG, SPACE, number, known).settings
        value = 1 / (1 + abs(settings["training.lr"] - 0.002) * 1000)
        known.append(
            Trial(number, "complete", settings, value, 0.1, 2, 2, ((50, value / 2), (100, value)))
        )
    return known


def test_the_first_trial_is_the_config_itself() -> None:
    assert differing(CONFIG, Proposal(CONFIG, SPACE, 0, []).settings) == {}


def test_proposals_lie_in_the_space_and_repeat() -> None:
    trials = searched(FIRST_TRIALS + 6)
    assert trials == searched(FIRST_TRIALS + 6)
    for trial in trials:
        assert trial.settings.keys() == SPACE.keys()
        assert all(SPACE[key].holds(value) for key, value in trial.settings.items())
    assert len({str(trial.settings) for trial in trials}) == len(trials)
    for early in trials[1:FIRST_TRIALS]:  # half-way between the config and chance
        choices = [key for key in SPACE if isinstance(SPACE[key], Choices)]
        assert len(differing(CONFIG, early.settings)) < len(choices)
    rates = [trial.settings["training.lr"] for trial in trials[FIRST_TRIALS:]]
    assert min(abs(rate - 0.002) for rate in rates) < 0.001


def test_a_trial_far_below_the_others_is_given_up() -> None:
    known = searched(UNPRUNED)
    middling = sorted(trial.curve[0][1] for trial in known)[UNPRUNED // 2]
    assert Proposal(CONFIG, SPACE, UNPRUNED, known).is_hopeless(50, 0.01)
    assert not Proposal(CONFIG, SPACE, UNPRUNED, known).is_hopeless(50, middling)
    assert not Proposal(CONFIG, SPACE, UNPRUNED, known).is_hopeless(10, 0.01)  # too early to say
    assert not Proposal(CONFIG, SPACE, 1, known[:1]).is_hopeless(50, 0.01)  # too few to compare


def test_failed_and_stopped_trials_are_no_help() -> None:
    settings = searched(1)[0].settings
    useless = [
        Trial(1, "failed", settings, problem="memory ran out"),
        Trial(2, "stopped", settings, 0.5, 0.1, 1, 1, ((50, 0.5),)),
    ]
    alone = Proposal(CONFIG, SPACE, 3, searched(1)).settings
    assert Proposal(CONFIG, SPACE, 3, [*searched(1), *useless]).settings == alone


def test_without_optuna_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'seqtrain\[tune\]'"):
        import_optuna()
