"""A study's trials: what is tried first, what is kept, which is best, and what a kill may leave."""

from pathlib import Path

import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import CheckpointError
from seqtrain.tuning.space import differing, space_of
from seqtrain.tuning.trials import FIRST_TRIALS, Study, Trial, read_trials
from seqtrain.tuning.tune import tune
from tests.helpers.tiny import write_text_project

CONFIG = config_from_mapping({"data": {"train": "a.csv", "sequence": "s", "label": "l"}})


def study(folder: Path | None = None) -> Study:
    return Study(CONFIG, space_of(CONFIG), [] if folder is None else read_trials(folder))


def try_next(of: Study) -> Trial:
    """Let a trial end; its value is better the nearer the learning rate is to 0.002."""
    trial = of.begin()
    value = 1 / (1 + abs(trial.settings["training.lr"] - 0.002) * 1000)
    trial = Trial(trial.number, trial.settings, "complete", value, curve=((1, value),))
    of.add(trial)
    return trial


def test_the_config_itself_comes_first_then_half_of_it_then_what_was_good():
    first, *others = (try_next(one) for one in [study()] * 14)
    assert differing(CONFIG, first.settings) == {}
    early, late = others[: FIRST_TRIALS - 1], others[FIRST_TRIALS - 1 :]
    kept = [len(first.settings) - len(differing(CONFIG, trial.settings)) for trial in early]
    assert 0.3 < sum(kept) / len(early) / len(first.settings) < 0.9
    assert min(abs(trial.settings["training.lr"] - 0.002) for trial in late) < 0.001
    rates = {trial.settings["training.lr"] for trial in others}
    assert rates == {float(f"{rate:.3g}") for rate in rates}


def test_a_search_goes_on_from_the_trials_that_it_wrote(tmp_path):
    cut = study()
    done = [try_next(cut) for _ in range(3)]
    lost = cut.begin().number
    cut.write(tmp_path)
    again = study(tmp_path)
    assert again.trials == done
    assert again.best == max(done, key=lambda trial: trial.sort_key)
    assert try_next(again).number == lost
    again.write(tmp_path)
    assert study(tmp_path).trials == again.trials


def test_trials_that_were_lost_among_others_begin_again(tmp_path):
    cut = study()
    running = [cut.begin() for _ in range(3)]
    last = running[-1]
    cut.add(Trial(last.number, last.settings, "complete", 0.5, curve=((1, 0.5),)))
    cut.write(tmp_path)
    again = study(tmp_path)
    found = [try_next(again) for _ in range(3)]
    assert [trial.number for trial in found] == [0, 1, 3]
    assert differing(CONFIG, found[0].settings) == {}


def test_a_trial_is_compared_with_the_median_after_as_many_epochs():
    curves = [((1, value), (2, value + 1)) for value in (0.1, 0.2, 0.3, 0.4)]
    low = Trial(9, {}, curve=((1, 0.2), (2, 0.9)))
    assert low.is_below_median(curves)
    assert not low.is_below_median(curves[1:])
    assert not Trial(9, {}, curve=((1, 0.3),)).is_below_median(curves)
    assert not Trial(9, {}, curve=((3, 0.0),)).is_below_median(curves)


@pytest.mark.parametrize("damaged", ["{", "[]", '{"number": 1}', '{"number": "x", "settings": {}}'])
def test_a_damaged_record_is_named(tmp_path, damaged):
    one = study()
    try_next(one)
    one.write(tmp_path)
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write(f"{damaged}\n")
    with pytest.raises(CheckpointError, match="damaged"):
        study(tmp_path)


def test_a_trial_counts_by_the_best_of_all_its_epochs(tmp_path, monkeypatch):
    """Also where it may have more than a hundred of them."""
    monkeypatch.chdir(tmp_path)
    write_text_project(tmp_path)
    config = Path("c.yaml").read_text().replace("max_epochs: 2, patience: null", "max_epochs: 900")
    Path("c.yaml").write_text(config.replace("lr: 0.02", "lr: 0.002, patience: 4, min_delta: 0"))
    found = tune("c.yaml", trials=1)
    (trial,) = found.trials
    assert len(trial.curve) == found.run.epochs > 4
    assert trial.curve[-1][1] == trial.value == found.run.best_value
    assert trial.best_epoch == found.run.best_epoch >= 1
