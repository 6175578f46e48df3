"""SIGKILL at any moment, again and again: a run ends with the same bits as one never stopped."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.api.load import load
from tests.helpers.program import KILLED, fingerprint, fit, fit_arguments, signals_within, started

KILLS_A_RUN = 4
PRETRAINING = (
    "--set", "pretraining.objective=autoencoder", "--set", "pretraining.max_epochs=2",
    "--set", "training.max_epochs=1",
)  # fmt: skip
PHASES = {"evaluating": "predict_logits", "saving": "write_folder", "any": None}


def kill(
    folder: Path, phase: str, draw: random.Random, duration: float, options: tuple[str, ...] = ()
) -> bool:
    """Start or resume the run and kill it; say whether it was still under way."""
    function = PHASES[phase]
    prepare = function and signals_within(
        function, draw.randint(1, 4), (draw.randint(1, 200), signal.SIGKILL)
    )
    with started(folder, *fit_arguments(folder, "r", *options), prepare=prepare) as running:
        if not function:
            time.sleep(draw.uniform(0, duration))
            running.process.kill()
        code = running.end()
        assert code in (0, KILLED), running.err
    return code == KILLED


def predictions(run: Path) -> list[object]:
    return [load(run).predict(["rise the lift", "fall", "the n1 unknown"])]


@pytest.mark.parametrize("kills", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_killed_runs_end_with_equal_bits(
    project: Path, figure: Callable[[str], None], kills: int
) -> None:
    fit(project, "whole")
    whole, answers = fingerprint(project / "whole"), predictions(project / "whole")
    began = time.monotonic()
    fit(project, "again")
    duration = time.monotonic() - began
    assert fingerprint(project / "again") == whole
    draw, done, runs, within_epoch = random.Random(kills), dict.fromkeys(PHASES, 0), 0, 0
    while runs < kills and (
        sum(done.values()) < kills or not (within_epoch and all(done.values()))
    ):
        shutil.rmtree(project / "r", ignore_errors=True)
        for _ in range(KILLS_A_RUN):
            phase = draw.choice(list(PHASES))
            done[phase] += kill(project, phase, draw, duration)
            within_epoch += state_is_within_an_epoch(project / "r")
        fit(project, "r")
        assert fingerprint(project / "r") == whole
        assert predictions(project / "r") == answers
        runs += 1
    assert all(done.values()), done
    assert within_epoch
    figure(
        f"SIGKILL: {sum(done.values())} kills ({done['evaluating']} while evaluating, "
        f"{done['saving']} while saving) in {runs} runs, {within_epoch} times left within an "
        "epoch; 0 differences to the run never stopped"
    )


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_while_pretraining_it_ends_with_equal_bits(
    project: Path, figure: Callable[[str], None], kills: int
) -> None:
    fit(project, "whole", *PRETRAINING)
    whole = fingerprint(project / "whole")
    draw, done, before_training = random.Random(kills), 0, 0
    while done < kills:
        shutil.rmtree(project / "r", ignore_errors=True)
        for _ in range(KILLS_A_RUN):
            done += kill(project, "saving", draw, 0.0, PRETRAINING)
            before_training += state_holds(project / "r", '"pretraining": true')
        fit(project, "r", *PRETRAINING)
        assert fingerprint(project / "r") == whole
    assert before_training
    figure(f"SIGKILL: {done} kills of runs with pretraining, {before_training} times within it")


def state_is_within_an_epoch(run: Path) -> bool:
    """Whether a killed run will go on from a step that doesn't end an epoch."""
    return state_holds(run, "updates") and not state_holds(run, '"batches_done": 0')


def state_holds(run: Path, words: str) -> bool:
    """Whether a killed run left a checkpoint with these words in its state."""
    state = run / "last" / "training_state.json"
    return state.exists() and words in state.read_text()


def test_other_random_numbers_would_be_noticed(project: Path) -> None:
    """The comparison isn't blind: a run that goes on with another seed's dropout ends otherwise."""
    fit(project, "whole")
    with started(project, *fit_arguments(project, "r"), prepare=take_another_seed) as running:
        assert running.end() == 0
    assert fingerprint(project / "r") != fingerprint(project / "whole")


def take_another_seed() -> None:
    """Take the random numbers of another seed than the run's in every update."""
    from seqtrain.model.randomness import RandomNumbers, number

    RandomNumbers.of = lambda seed, update, examples: RandomNumbers(
        number(seed + 1, update), examples
    )  # type: ignore
