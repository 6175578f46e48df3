"""Searches that share their trials: each knows the others', and a storage that fails ends none."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.tuning.proposal import Proposal
from seqtrain.tuning.shared import SharedTrials, check_storage
from seqtrain.tuning.space import space_of
from seqtrain.tuning.trials import Trial

A, B = "one:/runs/a", "two:/runs/b"


def config(**training: float | str) -> Config:
    return config_from_mapping(
        {"data": {"train": "a.csv", "sequence": "s", "label": "l"}, "training": training}
    )


def shared(
    place: str, config: Config, *, digest: str = "12", said: list[str] | None = None
) -> SharedTrials:
    lines = [] if said is None else said
    return SharedTrials(place, config, {"a.csv": digest}, space_of(config), lines.append)


def trial(number: int) -> Trial:
    settings = Proposal(config(), space_of(config()), number, []).settings
    return Trial(number, "complete", settings, 0.9, 0.1, 2, 2, ((50, 0.5), (100, 0.9)), 1.5)


@pytest.mark.parametrize("place", ["trials.log", "sqlite:///trials.db"])
def test_each_search_knows_what_the_others_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = Trial(1, "failed", trial(1).settings, problem="memory ran out")
    shared(place, config()).add(A, [trial(0)])
    shared(place, config(device="cpu")).add(
        A, [trial(0), failed]
    )  # after a pause, on another device
    shared(place, config()).add(B, [trial(0)])
    assert shared(place, config()).others(B) == [(A, trial(0)), (A, failed)]
    assert shared(place, config()).others(A) == [(B, trial(0))]
    assert shared(place, config(lr=0.1)).others(B) == []
    assert shared(place, config(), digest="13").others(B) == []


def test_searches_draw_other_settings_from_one_seed() -> None:
    space = space_of(config())
    drawn = [Proposal(config(), space, 1, [trial(0)], search).settings for search in (A, B, A)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_storage_that_fails_is_told_and_no_more(tmp_path: Path) -> None:
    said: list[str] = []
    place = tmp_path / "trials.log"
    trials = shared(str(place), config(), said=said)
    trials.add(B, [trial(0)])
    assert trials.others(A) == [(B, trial(0))]
    place.unlink()
    place.mkdir()
    trials.add(A, [trial(0)])
    assert trials.others(A) == [(B, trial(0))]
    assert len(said) == 2
    assert all(f"--storage: {place}" in line for line in said)


@pytest.mark.parametrize(
    "place",
    [
        "missing/trials.log",
        ".",
        "text.txt",
        "nosuch://host/base",
        "sqlite:///missing/a",
        "sqlite:///text.txt",
    ],
)
def test_a_storage_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a text\n")
    with pytest.raises(ConfigError, match=r"--storage: .*; name "):
        shared(place, config())
    with pytest.raises(ConfigError, match=r"--storage: .*; name "):
        check_storage(place)
    assert (tmp_path / "text.txt").read_text() == "a text\n"
