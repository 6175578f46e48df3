"""Signals that stop a run: they are answered soon in each phase, and no update is lost."""

import json
import random
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import UPDATE, fit, signals_within
from tests.helpers.tiny import fingerprint, rows, write_table

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONLY_EPOCHS = ("--set", "training.checkpoint_every=null")
EPOCHS, STEPS = 2, 8
"""Of the project, and of an epoch, where a fifth is held out."""
LONG = ("--set", "data.validation=long.tsv", "--set", "data.test=long.tsv")
"""Scoring in several batches."""


def state(run: Path) -> dict[str, Any]:
    """Return the counters of the last checkpoint."""
    progress: dict[str, Any] = json.loads((run / "last" / "training_state.json").read_text())
    return progress["progress"]


def events(run: Path) -> list[str]:
    """Return what happened, as the metrics say."""
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["event"] for line in lines]


@pytest.mark.parametrize("signals", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_sigterm_loses_no_update(project, signals):
    options = ("--set", "training.max_epochs=12", *ONLY_EPOCHS)
    fit(project, "whole", *options)
    whole, run, draw = fingerprint(project / "whole"), project / "r", random.Random(signals)
    for turn in range(1, signals + 1):
        steps = (draw.randint(1, 200), signal.SIGTERM)
        prepare = signals_within(UPDATE, draw.randint(1, 12), steps)
        running = fit(project, "r", *options, prepare=prepare, code=143)
        saved = re.search(r"stopped by SIGTERM after training, update (\d+), saved", running.err)
        assert saved, running.err
        assert state(run)["updates"] == int(saved[1])
        if turn % 5 == 0 or turn == signals:
            fit(project, "r", *options)
            assert fingerprint(run) == whole
            shutil.rmtree(run)


@pytest.mark.parametrize("signals", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_signal_while_scoring_is_answered_before_the_next_batch(project, signals):
    write_table(project / "long.tsv", rows(2000, seed=3))
    fit(project, "whole", *LONG)
    run, draw = project / "r", random.Random(signals)
    for turn in range(signals):
        number, scoring = STOPPING[turn % 3], 1 + turn % (EPOCHS + 1)
        call = scoring + scoring // (EPOCHS + 1)  # epochs, calibration, test
        prepare = signals_within("shared_logits", call, (draw.randint(1, 150), number))
        running = fit(project, "r", *LONG, prepare=prepare, code=128 + number)
        assert f"stopped by {number.name} after training, update" in running.err
        assert [event for event in events(run) if event != "step"] == ["epoch"] * (scoring - 1)
        assert not (run / "test.json").exists()
        fit(project, "r", *LONG)
        assert fingerprint(run) == fingerprint(project / "whole")
        shutil.rmtree(run)


@pytest.mark.parametrize("stops", [1, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("function", [UPDATE, "save_checkpoint"])
def test_second_sigint_stops_at_once(project, function, stops):
    """Within the same update; or within the save at the end, which then is whole or not."""
    fit(project, "whole", *ONLY_EPOCHS)
    run, draw, cut = project / "r", random.Random(stops), 0
    for _ in range(stops):
        first = draw.randint(1, 20)
        second = first + draw.randint(1, 20 if function == UPDATE else 200)
        call = draw.randint(2, EPOCHS * STEPS) if function == UPDATE else 2
        prepare = signals_within(function, call, (first, signal.SIGINT), (second, signal.SIGINT))
        running = fit(project, "r", *ONLY_EPOCHS, prepare=prepare, code=130)
        assert "nothing was saved" not in running.err
        if "interrupted" in running.err:
            cut += 1
            assert state(run)["updates"] % STEPS == 0
        fit(project, "r", *ONLY_EPOCHS)
        assert fingerprint(run) == fingerprint(project / "whole")
        shutil.rmtree(run)
    assert cut == stops if function == UPDATE else cut


@pytest.mark.parametrize("number", STOPPING)
def test_signal_before_training_leaves_nothing_and_is_no_bug(project, number):
    prepare = signals_within("fit_preprocessing", 1, (10, number))
    running = fit(project, "r", prepare=prepare, code=128 + number)
    assert "Traceback" not in running.err
    assert not (project / "r").exists()


def test_signal_while_a_checkpoint_is_read_is_no_bug(begun):
    prepare = signals_within("read_model", 1, (20, signal.SIGTERM))
    running = fit(begun, "r", prepare=prepare, code=143)
    assert "bug" not in running.err


@pytest.mark.parametrize("function", ["initialize", "_start_session", "_setup_of"])
def test_signal_while_setting_up_is_answered_after_an_update(project, whole, function):
    steps = 0
    if function == "_setup_of":
        prepare = signals_within(UPDATE, 4, (1, signal.SIGTERM))
        fit(project, "r", prepare=prepare, code=143)
        steps = 4
    prepare = signals_within(function, 1, (1, signal.SIGTERM))
    running = fit(project, "r", prepare=prepare, code=143)
    assert f"training, update {steps + 1}" in running.err
    fit(project, "r")
    assert fingerprint(project / "r") == whole
