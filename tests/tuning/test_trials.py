"""A study's trials: what is tried first, what is kept, which is best, and what a kill may leave."""

from pathlib import Path

import pytest

from seqtrain.config import config_from_mapping
from seqtrain.errors import CheckpointError
from seqtrain.tuning.space import differing, space_of
from seqtrain.tuning.trials import FIRST_TRIALS, Study, Trial
from seqtrain.tuning.tune import tune
from tests.helpers.tiny import write_text_project

CONFIG = config_from_mapping({"data": {"train": "a.csv", "sequence": "s", "label": "l"}})


def study(journal: Path) -> Study:
    found = Study(journal, "a study", CONFIG, space_of(CONFIG))
    found.end_lost(None)
    return found


def try_next(of: Study) -> Trial:
    """Let a trial end; its value is better the nearer the learning rate is to 0.002."""
    asked, trial = of.begin()
    value = 1 / (1 + abs(trial.settings["training.lr"] - 0.002) * 1000)
    trial = Trial(trial.number, trial.settings, "complete", value, curve=((1, value),))
    of.end(asked, trial)
    return trial


def test_the_config_itself_comes_first_then_half_of_it_then_what_was_good(tmp_path):
    first, *others = (try_next(one) for one in [study(tmp_path / "log")] * 14)
    assert differing(CONFIG, first.settings) == {}
    early, late = others[: FIRST_TRIALS - 1], others[FIRST_TRIALS - 1 :]
    kept = [len(first.settings) - len(differing(CONFIG, trial.settings)) for trial in early]
    assert 0.3 < sum(kept) / len(early) / len(first.settings) < 0.9
    assert min(abs(trial.settings["training.lr"] - 0.002) for trial in late) < 0.001
    rates = {trial.settings["training.lr"] for trial in others}
    assert rates == {float(f"{rate:.3g}") for rate in rates}


def test_a_search_goes_on_after_a_kill_while_it_wrote(tmp_path):
    journal = tmp_path / "log"
    done = try_next(study(journal))
    cut = study(journal)
    lost = cut.begin()[1].number
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "trial')
    for _ in range(2):
        assert study(journal).trials() == [done]
    assert lost not in [trial.number for trial in study(journal).under_way()]
    again = try_next(study(journal))
    assert study(journal).trials() == [done, again]


def test_a_damaged_journal_is_named(tmp_path):
    journal = tmp_path / "log"
    try_next(study(journal))
    lines = journal.read_text().splitlines(keepends=True)
    for damaged in ("{\n", "[]\n", '{"op_code": 99}\n', '{"op_code": 5}\n'):
        journal.write_text("".join([*lines[:3], damaged, *lines[3:]]))
        with pytest.raises(CheckpointError, match="log: damaged"):
            study(journal)


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
    assert trial.best_epoch == found.run.best_epoch > 1


@pytest.mark.slow
def test_a_lock_that_a_killed_process_held_is_released(tmp_path):
    done = try_next(study(tmp_path / "log"))
    (tmp_path / "log.lock").touch()
    assert study(tmp_path / "log").trials() == [done]
