"""Signals that ask a run to stop: answered soon, wherever it stands, and no step is lost."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import fingerprint, fit, fit_arguments, rows, signals_within, started

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONLY_EPOCHS = ("--set", "training.checkpoint_every=null")
EPOCHS, STEPS = 2, 8
"""Of the project, and of an epoch, where a fifth is held out."""
LONG = ("--set", "data.validation=long.tsv", "--set", "data.test=long.tsv")
"""Scoring in several batches."""


def write_rows(path: Path, count: int, words: int = 1) -> None:
    """Write labelled sentences, each repeated so many times."""
    lines = [("text", "label"), *((f"{text} " * words, label) for text, label in rows(count, 3))]
    path.write_text("".join("\t".join(line) + "\n" for line in lines))


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
def test_sigterm_loses_no_step(project: Path, figure: Callable[[str], None], signals: int) -> None:
    options = ("--set", "training.max_epochs=12", "--set", "training.checkpoint_every=null")
    fit(project, "whole", *options)
    whole, run, done, slowest = fingerprint(project / "whole"), "r", 0, 0.0
    turn = 0
    while done < signals:
        turn += 1  # one that comes before training began ends it at once, as nothing is to be saved
        before = events(project / run)
        with started(project, *fit_arguments(project, run, *options)) as running:
            running.wait_for(project / run / ".lock")
            running.wait_for(project / run / "config.yaml")
            time.sleep(0.05 * (turn % 20))
            began = time.monotonic()
            running.send(signal.SIGTERM)
            code = running.end()
            slowest = max(slowest, time.monotonic() - began)
        if code == -signal.SIGTERM:  # nothing was begun, or all done and Python about to leave
            assert events(project / run)[-1:] == ["end"] or events(project / run) == before
            code = 0
        assert code in (0, 143), running.err
        saved = re.search(r"stopped by SIGTERM after step (\d+), saved", running.err)
        if saved:
            assert code == 143
            state = (project / run / "last" / "training_state.json").read_text()
            assert f'"updates": {saved[1]},' in state
            done += 1
        if code == 0 or done % 5 == 0 or done == signals:
            fit(project, run, *options)
            assert fingerprint(project / run) == whole
            shutil.rmtree(project / run)
    figure(f"SIGTERM: {done} times, 143 within {slowest:.1f} s, 0 steps lost")


@pytest.mark.parametrize("signals", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_signal_while_scoring_is_answered_before_the_next_batch(
    project: Path, figure: Callable[[str], None], signals: int
) -> None:
    write_rows(project / "long.tsv", 6000)
    fit(project, "whole", *LONG)
    whole, run, draw = fingerprint(project / "whole"), project / "r", random.Random(signals)
    for turn in range(signals):
        number, scoring = STOPPING[turn % 3], 1 + turn % (EPOCHS + 1)
        call = scoring + scoring // (EPOCHS + 1)  # epochs, calibration, test
        prepare = signals_within("predict_logits", call, (draw.randint(1, 150), number))
        arguments = fit_arguments(project, "r", *LONG)
        with started(project, *arguments, prepare=prepare) as running:
            assert running.end() == 128 + number, running.err
        assert f"stopped by {number.name} after step" in running.err
        done = [event for event in events(run) if event != "step"]
        assert done == ["epoch"] * (scoring - 1)
        assert not (run / "test.json").exists()
        fit(project, "r", *LONG)
        assert fingerprint(run) == whole
        shutil.rmtree(run)
    figure(
        f"signals while validation or test is scored: {signals}, each answered before the next "
        "batch of it, 0 differences to the run never stopped"
    )


@pytest.mark.slow
def test_sigterm_in_a_long_validation_pass(project: Path, figure: Callable[[str], None]) -> None:
    write_rows(project / "long.tsv", 16000, words=60)
    options = ("model.rnn=lstm", "model.hidden_size=256", "training.checkpoint_every={steps: 5}")
    sets = [*LONG, *(word for option in options for word in ("--set", option))]
    draw, slowest, stopped = random.Random(0), 0.0, 20
    run = project / "r"
    with started(project, *fit_arguments(project, "r", *sets)) as running:
        running.wait_for(run / "config.yaml")
        while state(run)["batches_done"] < 10:
            time.sleep(0.01)
        running.send(signal.SIGTERM)
        assert running.end() == 143, running.err
    for _ in range(stopped):
        with started(project, *fit_arguments(project, "r", *sets)) as running:
            time.sleep(draw.uniform(1, 5))
            began = time.monotonic()
            running.send(signal.SIGTERM)
            assert running.end() == 143, running.err
            slowest = max(slowest, time.monotonic() - began)
        assert "after step 10, saved" in running.err
        assert "epoch" not in events(run)
    assert slowest < 5
    figure(f"SIGTERM in a long validation pass: {stopped} times, 143 within {slowest:.1f} s")


@pytest.mark.parametrize("stops", [1, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("function", ["branches", "save_last"])
def test_second_sigint_stops_at_once(
    project: Path, figure: Callable[[str], None], function: str, stops: int
) -> None:
    """Within the same step; or within the save at an epoch's end, which then is whole or undone."""
    fit(project, "whole", *ONLY_EPOCHS)
    whole, run, draw, cut = fingerprint(project / "whole"), project / "r", random.Random(stops), 0
    for _ in range(stops):
        first = draw.randint(1, 20)
        second = first + draw.randint(1, 20 if function == "branches" else 200)
        call = draw.randint(2, EPOCHS * (STEPS + 1) if function == "branches" else EPOCHS + 1)
        prepare = signals_within(function, call, (first, signal.SIGINT), (second, signal.SIGINT))
        arguments = fit_arguments(project, "r", *ONLY_EPOCHS)
        with started(project, *arguments, prepare=prepare) as running:
            assert running.end() == 130, running.err
        assert "nothing was saved" not in running.err
        if "interrupted" in running.err:
            cut += 1
            assert state(run)["updates"] % STEPS == 0
        fit(project, "r", *ONLY_EPOCHS)
        assert fingerprint(run) == whole
        shutil.rmtree(run)
    assert cut == stops if function == "branches" else cut
    what = "a step" if function == "branches" else "a save"
    figure(
        f"a second SIGINT within {what}: {stops} times, {cut} at once; the last checkpoint whole, "
        "0 differences to the run never stopped"
    )


@pytest.mark.parametrize("number", STOPPING)
def test_signal_while_reading_leaves_nothing(project: Path, number: signal.Signals) -> None:
    prepare = signals_within("read_rows", 1, (30, number))
    arguments = fit_arguments(project, "r", "--no-cache")
    with started(project, *arguments, prepare=prepare) as running:
        assert running.end() == 128 + number, running.err
    assert "Traceback" not in running.err
    assert not (project / "r").exists()


@pytest.mark.parametrize("number", STOPPING)
def test_signal_while_a_checkpoint_is_read_is_no_bug(project: Path, number: signal.Signals) -> None:
    """Its model is made without memory in a mode of torch's, which can't be left half-way."""
    fit(project, "r")
    for step in range(1, 40, 20):
        prepare = signals_within("shapes_alone", 1, (step, number))
        with started(project, *fit_arguments(project, "r"), prepare=prepare) as running:
            assert running.end() == 128 + number, running.err
        assert "bug" not in running.err


@pytest.mark.parametrize("function", ["initialize", "begin", "resume"])
def test_signal_while_setting_up_is_answered_after_a_step(project: Path, function: str) -> None:
    fit(project, "whole")
    whole = fingerprint(project / "whole")
    steps = 0
    if function == "resume":
        prepare = signals_within("branches", 4, (1, signal.SIGTERM))
        with started(project, *fit_arguments(project, "r"), prepare=prepare) as running:
            assert running.end() == 143, running.err
        steps = 4
    prepare = signals_within(function, 1, (1, signal.SIGTERM))
    with started(project, *fit_arguments(project, "r"), prepare=prepare) as running:
        assert running.end() == 143, running.err
    assert f"after step {steps + 1}, saved" in running.err
    fit(project, "r")
    assert fingerprint(project / "r") == whole
