"""The same training with any number of processes, also when it goes on with another number."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
import safetensors.torch
import torch

from tests.helpers.program import fit, signals_within
from tests.helpers.together import fit_together
from tests.helpers.vectors import write_vectors

KEYS = (
    "--set", "model.bidirectional=true", "--set", "model.embedding_dropout=0.3",
    "--set", "training.max_epochs=2", "--set", "model.initial_state=random",
)  # fmt: skip
CARRIED = (
    "--set", "data.group=chat", "--set", "data.validation=said.tsv",
    "--set", "model.bidirectional=false", "--set", "model.initial_state=carried",
    "--set", "batching.batch_size=3",
)  # fmt: skip
"""Batches of 3 rows leave the last of 4 processes without any."""


def weights(run: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(run / "last" / "model.safetensors")


def difference(one: Path, other: Path) -> float:
    """Return the largest difference of a weight matrix, as a share of its size."""
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).norm() / first[name].norm()) for name in first)


def write_chats(folder: Path) -> None:
    """Let the rows of the project belong to chats of unequal length, and some to none."""
    for name, source in (("said", "test"), ("test", "test"), ("train", "train")):
        heading, *lines = (folder / f"{source}.tsv").read_text().splitlines()
        chats = ["" if row % 9 == 8 else f"c{row % 7 * (row % 3)}" for row in range(len(lines))]
        told = [f"{line}\t{chat}" for line, chat in zip(lines, chats, strict=True)]
        text = "\n".join([f"{heading}\tchat", *told, *(["slip\tdown\t"] * (name == "said"))])
        (folder / f"{name}.tsv").write_text(text + "\n")


@pytest.mark.parametrize(("size", "more"), [(2, ()), (3, CARRIED)], ids=["alone", "carried"])
def test_weights_are_equal_to_rounding(project: Path, size: int, more: tuple[str, ...]) -> None:
    write_chats(project)
    fit(project, "one", *KEYS, *more)
    first, *others = fit_together(project, "several", size, *KEYS, *more)
    assert difference(project / "one", project / "several") < 1e-5
    assert first.out == "several\n"
    assert "rank" not in first.err
    assert not any(rank.out or rank.err for rank in others)


@pytest.mark.parametrize(
    "more", [pytest.param((), marks=pytest.mark.slow), CARRIED], ids=["alone", "carried"]
)
def test_a_run_goes_on_with_another_number_of_processes(
    project: Path, more: tuple[str, ...]
) -> None:
    write_chats(project)
    options = (*KEYS, *more)
    fit(project, "one", *options)
    steps = []
    for size, rank in ((4, 2), (2, 0)):
        stopping = {rank: signals_within("_shared_gradient", 5, (1, signal.SIGTERM))}
        first, *others = fit_together(
            project, "several", size, *options, prepare=stopping, code=143
        )
        stopped = re.search(r"stopped by SIGTERM after step (\d+), saved", first.err)
        assert stopped, first.err
        assert not any(other.err for other in others)
        steps.append(int(stopped[1]))
    assert steps == [5, 10]
    ended = fit(project, "several", *options)
    assert "processes was 4, is 1" in ended.err
    assert difference(project / "one", project / "several") < 1e-5


@pytest.mark.parametrize(
    "options",
    [
        (
            "--set",
            "pretraining.objective=language_model",
            "--set",
            "pretraining.max_epochs=1",
            "--set",
            "model.vectors=w.vec",
            "--set",
            "model.freeze=1",
        ),
        ("--set", "training.refit=true", "--set", "model.ngrams=[1, 2]"),
    ],
    ids=["pretraining, frozen vectors", "refit"],
)
def test_every_phase_is_shared(project: Path, options: tuple[str, ...]) -> None:
    write_vectors(project / "w.vec")
    fit(project, "one", *KEYS, *options)
    fit_together(project, "several", 2, *KEYS, *options)
    assert difference(project / "one", project / "several") < 1e-5
