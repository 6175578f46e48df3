"""What a launcher sets, set by anybody: odd numbers, a port in use, a restart that was none."""

from __future__ import annotations

import os
import shutil
import socket
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.program import fingerprint, fit, started
from tests.helpers.tiny import listing
from tests.helpers.together import launched, take_place

FIT = ("fit", "c.yaml", "--run-dir", "r", "--quiet")
SECOND = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
ODD = [
    {"RANK": "-1"}, {"RANK": "one"}, {"RANK": "2"}, {"RANK": "\u0661"}, {"WORLD_SIZE": "0"},
    {"WORLD_SIZE": "1"}, {"WORLD_SIZE": "9" * 99}, {"WORLD_SIZE": "1e3"}, {"LOCAL_RANK": "2"},
    {"LOCAL_RANK": "0x"}, {"LOCAL_WORLD_SIZE": "0"}, {"LOCAL_WORLD_SIZE": "3"},
    {"LOCAL_WORLD_SIZE": "1"}, {"MASTER_PORT": "0"}, {"MASTER_PORT": "65536"},
    {"MASTER_PORT": "-1"}, {"MASTER_PORT": "abc"}, {"MASTER_PORT": ""}, {"MASTER_ADDR": ""},
    {"SEQTRAIN_TIMEOUT": "0"}, {"SEQTRAIN_TIMEOUT": "1e9"}, {"TORCHELASTIC_RESTART_COUNT": "x"},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: "=".join(next(iter(odd.items()))[:40]))
def test_odd_variables_are_told(project: Path, odd: dict[str, str]) -> None:
    before = listing(project)
    prepare = partial(take_place, {**SECOND, **odd}, None)
    with started(project, *FIT, prepare=prepare) as running:
        assert running.end() == 2, running.err
    (line,) = running.err.splitlines()
    assert line.startswith("seqtrain: ")
    assert len(line) < 200
    assert listing(project) == before


def test_a_port_in_use_is_told(project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = {"MASTER_PORT": str(taken.getsockname()[1]), "SEQTRAIN_TIMEOUT": "2"}
        with launched(project, 2, *FIT, variables=port) as ranks:
            assert [rank.end() for rank in ranks] == [3, 3], [rank.err for rank in ranks]
    assert "address already in use" in ranks[0].err
    assert "says nothing; does another program listen there?" in ranks[1].err
    assert not (project / "r").exists()


def test_no_run_is_replaced_where_nothing_was_started_again(project: Path) -> None:
    """Only a launcher's own run is gone on with, or begun anew, without being asked for."""
    fit(project, "r")
    before = fingerprint(project / "r")
    again = partial(take_place, {"TORCHELASTIC_RESTART_COUNT": "1"}, None)
    for gone in ("", "config.yaml"):
        if gone:
            (project / "r" / gone).unlink()
            before = fingerprint(project / "r")
        with started(project, *FIT, prepare=again) as running:
            assert running.end() == 2, running.err
        assert "isn't empty" in running.err
        assert fingerprint(project / "r") == before


def test_another_old_model_on_another_rank_is_refused(project: Path) -> None:
    """As where the old run trains on, and is replaced between two readings of it."""
    fit(project, "old")
    (project / "other").mkdir()
    for path in project.glob("*.*"):
        shutil.copy(path, project / "other")
    fit(project / "other", "old", "--set", "seed=1")
    change = {1: partial(os.chdir, "other")}
    with launched(project, 2, *FIT, "--init-from", "old", prepare=change) as ranks:
        assert [rank.end() for rank in ranks] == [2, 2], [rank.err for rank in ranks]
    assert "--init-from: weights of SHA-256" in ranks[0].err
    assert not (project / "r").exists()
