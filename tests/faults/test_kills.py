"""SIGKILL at any moment, again and again: a run ends with the same bits as one never stopped."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from seqtrain.api.classifier import load
from tests.helpers.program import KILLED, fit, fit_arguments, signals_within, started
from tests.helpers.tiny import fingerprint

KILLS_A_RUN = 4
PRETRAINING = (
    "--set", "pretraining.objective=autoencoder", "--set", "pretraining.max_epochs=6",
    "--set", "training.max_epochs=1",
)  # fmt: skip
PHASES = {"evaluating": "shared_logits", "saving": "write_folder", "any": None}


def kill(folder: Path, phase: str, draw: random.Random, seconds: float, *options: str) -> bool:
    """Start or resume the run and kill it; say whether it was still under way."""
    function = PHASES[phase]
    prepare = function and signals_within(
        function, draw.randint(1, 4), (draw.randint(1, 200), signal.SIGKILL)
    )
    with started(folder, *fit_arguments(folder, "r", *options), prepare=prepare) as running:
        if not function:
            time.sleep(draw.uniform(0, seconds))
            running.process.kill()
        code = running.end()
        assert code in (0, KILLED), running.err
    return code == KILLED


def predictions(run: Path) -> list[object]:
    return [load(run).predict(["rise the lift", "fall", "the n1 unknown"])]


def state_of(run: Path) -> str:
    state = run / "last" / "training_state.json"
    return state.read_text() if state.exists() else ""


@pytest.mark.parametrize("kills", [4, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options",
    [(), pytest.param(PRETRAINING, marks=pytest.mark.slow)],
    ids=["training", "pretraining"],
)
def test_killed_runs_end_with_equal_bits(project, kills, options):
    fit(project, "whole", *options)
    whole = fingerprint(project / "whole")
    began = time.monotonic()
    fit(project, "again", *options)
    seconds = time.monotonic() - began
    assert fingerprint(project / "again") == whole
    draw, done, within = random.Random(kills), dict.fromkeys(PHASES, 0), 0
    while sum(done.values()) < kills or not (within and all(done.values())):
        shutil.rmtree(project / "r", ignore_errors=True)
        for _ in range(KILLS_A_RUN):
            phase = min(PHASES, key=done.__getitem__)  # one not tried so often yet
            done[phase] += kill(project, phase, draw, seconds, *options)
            state = state_of(project / "r")
            within += '"phase": "pretraining"' in state or (
                not options and "updates" in state and '"batches": 0' not in state
            )
        fit(project, "r", *options)
        assert fingerprint(project / "r") == whole
        assert predictions(project / "r") == predictions(project / "whole")
