"""The record of a search: what is written is read again, and damage is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError
from seqtrain.tuning.trials import TRIALS, Trial, best_of, read_trials, write_trials

SETTINGS = {"model.pooling": ["last", "max"], "training.lr": 0.004}
DONE = Trial(0, "complete", SETTINGS, 0.9, 0.3, 2, 2, ((50, 0.8), (100, 0.9)), 1.5)
FAILED = Trial(1, "failed", SETTINGS, problem="memory ran out")


def test_trials_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_trials(tmp_path) == {}
    trials = {1: FAILED, 0: DONE}
    write_trials(tmp_path, trials)
    assert read_trials(tmp_path) == trials
    assert [line[:13] for line in (tmp_path / TRIALS).read_text().splitlines()] == [
        '{"number": 0,',
        '{"number": 1,',
    ]


@pytest.mark.parametrize("line", ["", "{", "[]", "{}", '{"number": 0, "curve": 3}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    write_trials(tmp_path, {0: DONE})
    with (tmp_path / TRIALS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(CheckpointError, match=TRIALS):
        read_trials(tmp_path)


def test_of_equal_trials_the_one_of_lower_loss_is_best_then_the_earlier_one() -> None:
    curve = ((100, 0.9),)
    trials = [
        Trial(3, "complete", {}, 0.9, 0.2, 1, 1, curve),
        Trial(2, "complete", {}, 0.9, 0.2, 1, 1, curve),
        Trial(1, "complete", {}, 0.9, 0.3, 1, 1, curve),
        Trial(0, "stopped", {}, 0.95, 0.1, 1, 1, ((50, 0.95),)),
    ]
    best = best_of(trials)
    assert best is not None
    assert best.number == 2
    assert best_of([FAILED]) is None
