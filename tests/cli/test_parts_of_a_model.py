"""Parts that a config names, through every command: fit, resume, eval, predict, --steps, check."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain
from seqtrain.config import config_from_mapping
from seqtrain.errors import Interrupted
from seqtrain.training.events import EpochEvent, UpdateEvent
from tests.helpers.tiny import Cli, assert_same_run, series, write_npz, write_text_project
from tests.helpers.vectors import write_vectors

SIZES = {"embedding_dim": 4, "hidden_size": 4, "dropout": 0.2, "embedding_dropout": 0.1}
TRAINING = {"max_epochs": 2, "patience": None, "lr": 0.02}
TEXT = {
    "train": "train.tsv",
    "validation": 0.2,
    "test": "test.tsv",
    "sequence": "text",
    "label": "label",
    "min_count": 2,
}
FEATURES = {"train": "train.npz", "validation": 0.2, "test": "test.npz", "kind": "features"}
PARTS: dict[str, dict[str, Any]] = {
    "ngrams": {"model": {"ngrams": [1, 2]}},
    "few ngrams": {"model": {"ngrams": [2, 3], "max_ngrams": 3, "pooling": "max"}},
    "subwords": {"model": {"subwords": [3, 5]}},
    "convolutions": {"model": {"convolutions": [[6, 3, 2], [4, 3, 1]]}},
    "joined": {"model": {"pooling": ["last", "mean", "attention"], "bidirectional": True}},
    "all of text": {
        "model": {
            "ngrams": [1, 3],
            "subwords": [2, 4],
            "convolutions": [[6, 5, 2], [4, 3, 1]],
            "pooling": ["max", "last", "mean", "attention"],
            "bidirectional": True,
        }
    },
    "lstm, dense": {
        "model": {
            "ngrams": [1, 2],
            "subwords": [3, 5],
            "rnn": "lstm",
            "vectors": "w.vec",
            "freeze": 1,
        },
        "training": {"weight_decay": 0.1, "sparse_embedding": False, "optimizer": "sgd"},
    },
    "padded in the module": {
        "model": {"ngrams": [1, 2], "subwords": [3, 5]},
        "batching": {"sort": "module"},
    },
    "bfloat16": {
        "model": {
            "ngrams": [1, 2],
            "subwords": [3, 5],
            "convolutions": [[6, 3, 1]],
            "max_ngrams": 3,
        },
        "training": {"precision": "bfloat16"},
    },
    "refit": {"model": {"subwords": [3, 5], "ngrams": [1, 2]}, "training": {"refit": True}},
    "vectors": {
        "model": {"vectors": "w.vec", "vectors_keep": 3, "freeze": 1, "subwords": [3, 5]},
        "training": {"weight_decay": 0.1, "precision": "bfloat16"},
    },
    "frozen vectors, refit": {
        "model": {"vectors": "w.vec", "freeze": True},
        "training": {"weight_decay": 0.1, "refit": True},
    },
    "vectors, dense": {
        "model": {"vectors": "w.vec", "freeze": 1},
        "training": {"weight_decay": 0.1, "sparse_embedding": False, "optimizer": "sgd"},
    },
    "pretrained vectors": {
        "model": {"vectors": "w.vec", "freeze": 1},
        "pretraining": {"objective": "language_model", "max_epochs": 1},
    },
    "series": {"data": {"standardize": "series"}},
    "all of series": {
        "data": {"standardize": "both", "missing": "mask"},
        "model": {"convolutions": [[6, 3, 2]], "pooling": ["last", "max"]},
        "training": {"augment": {"shift": 0.3, "slice": 0.4}},
    },
}


def config_of(part: str, **training: Any) -> dict[str, Any]:
    keys = PARTS[part]
    data = FEATURES if "series" in part else TEXT
    return {
        "data": {**data, **keys.get("data", {})},
        "batching": {"batch_size": 8, **keys.get("batching", {})},
        "model": {**SIZES, **keys.get("model", {})},
        "training": {**TRAINING, **keys.get("training", {}), **training},
        "pretraining": keys.get("pretraining", {}),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_text_project(tmp_path)
    write_vectors(tmp_path / "w.vec")
    for name, count in (("train", 40), ("test", 20)):
        rows = series(count, seed=count)
        for i, row in enumerate(rows):
            row[:, 0] += i % 2
            row[0, 1] = np.nan if i % 7 == 3 and name == "mask" else row[0, 1]
        write_npz(tmp_path / f"{name}.npz", rows, ["ab"[i % 2] for i in range(count)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stop_after(update: int) -> Any:
    def listener(event: object) -> None:
        if isinstance(event, UpdateEvent) and event.update == update:
            os.kill(os.getpid(), signal.SIGTERM)

    return listener


ALONE = ("ngrams", "few ngrams", "subwords", "convolutions", "joined", "vectors, dense")
"""What others hold too: alone it is tried with -m slow."""


@pytest.mark.parametrize(
    "part", [pytest.param(x, marks=[pytest.mark.slow] * (x in ALONE)) for x in PARTS]
)
def test_every_command_takes_it_and_a_resumed_run_is_the_run_never_stopped(
    part: str, folder: Path, cli: Cli
) -> None:
    config = config_of(part)
    seqtrain.fit(config, run_dir="whole")
    with pytest.raises(Interrupted):
        seqtrain.fit(config, run_dir="parts", listener=stop_after(6))
    seqtrain.fit(config, run_dir="parts", resume=True)
    assert_same_run("whole", "parts")
    scored = json.loads(cli("eval", "whole", "--json").out)
    has_ngrams = "ngrams" in PARTS[part].get("model", {})
    assert (list(scored.get("parts", [])) == ["recurrent", "ngrams"]) == has_ngrams
    file = "test.npz" if "series" in part else "test.tsv"
    plain = cli("predict", file, "--run", "whole", "--format", "jsonl")
    steps = cli("predict", file, "--run", "whole", "--format", "jsonl", "--steps")
    assert (plain.code, steps.code) == (0, 0)
    last = {row["index"]: row for row in map(json.loads, steps.out.splitlines())}
    for row in map(json.loads, plain.out.splitlines()):
        for label, probability in row["probabilities"].items():
            found = last[row["index"]]["probabilities"][label]
            assert found == pytest.approx(probability, abs=1e-5)
    assert cli("check", "whole").code == 0
    assert cli("eval", "whole", "--steps").code == 0


def test_eval_shows_each_part_alone(folder: Path, cli: Cli) -> None:
    seqtrain.fit(config_of("ngrams", max_epochs=1), run_dir="run")
    shown = cli("eval", "run").out
    assert [line.split()[0] for line in shown.splitlines() if "%" in line][:3] == [
        "together",
        "recurrent",
        "ngrams",
    ]


def test_an_unknown_word_is_read_by_its_spelling(folder: Path) -> None:
    run = seqtrain.fit(config_of("subwords"), run_dir="run")
    classifier = seqtrain.load(run)
    spelled, other, long = classifier.predict(["the rises", "the xqz", "the " + "x" * 10**5])
    assert spelled.probability != other.probability
    assert spelled.unknown == other.unknown == long.unknown == 0.5


def test_ngrams_longer_than_any_sequence_are_refused(folder: Path, cli: Cli) -> None:
    config = config_of("ngrams")
    config["model"]["ngrams"] = [15, 16]
    with pytest.raises(seqtrain.errors.DataError, match=r"model\.ngrams: no sequence of train"):
        seqtrain.fit(config, run_dir="run")
    assert not Path("run").exists()


def test_learning_from_ngrams_counts_both_losses(folder: Path) -> None:
    config = config_from_mapping(config_of("ngrams", max_epochs=1, lr=1e-9))
    losses: list[float] = []

    def listener(event: object) -> None:
        if isinstance(event, UpdateEvent):
            losses.append(event.loss)

    seqtrain.fit(config, run_dir="run", listener=listener)
    assert 2 * np.log(2) == pytest.approx(losses[0], abs=0.5)


def test_a_refit_learns_from_train_and_validation(folder: Path, cli: Cli) -> None:
    """Up to the last epoch within a standard error of the best, from the initial weights on."""
    events: list[EpochEvent] = []
    settings = {"max_epochs": 4, "lr": 0.1}
    config = config_of("refit", **settings) | {"seed": 1}

    def listener(event: object) -> None:
        if isinstance(event, EpochEvent) and not event.refit:
            events.append(event)

    run = seqtrain.fit(config, run_dir="run", listener=listener)
    assert run.refit
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    epochs, refits = ([x for x in lines if x["event"] == name] for name in ("epoch", "refit"))
    scores = [event.validation for event in events if event.validation is not None]
    best = max(each.accuracy for each in scores)
    error = math.sqrt(best * (1 - best) / scores[0].num_examples)
    as_good = [n for n, each in enumerate(scores, start=1) if each.accuracy >= best - error]
    assert run.best_epoch < len(refits) == as_good[-1]
    assert refits[0]["tokens"] > epochs[0]["tokens"]
    rates = [line["lr"] for line in epochs[: len(refits)]]
    assert [line["lr"] for line in refits] == pytest.approx(rates, abs=0.05 * settings["lr"])
    assert lines[-1]["refit"] is True
    ended = cli("eval", "run", "--split", "validation", "--json")
    assert any("trained on these rows too" in line for line in ended.problems)
    alone = seqtrain.fit(config_of("refit", refit=False, **settings) | {"seed": 1}, run_dir="alone")
    assert not alone.refit
    assert alone.best_epoch == run.best_epoch


@pytest.mark.parametrize("update", [14, 16])
def test_a_refit_is_resumed_to_the_bit(folder: Path, update: int) -> None:
    config = config_of("refit", max_epochs=2, monitor="loss")
    whole = seqtrain.fit(config, run_dir="whole")
    made = 0

    def stop(event: object) -> None:
        nonlocal made
        made += isinstance(event, UpdateEvent)
        if isinstance(event, UpdateEvent) and made == update:
            os.kill(os.getpid(), signal.SIGTERM)

    assert whole.best_epoch == 2
    with pytest.raises(Interrupted, match=r"refit step|step 8") as stopped:
        seqtrain.fit(config, run_dir="parts", listener=stop)
    seqtrain.fit(config, run_dir="parts", resume=True)
    assert_same_run("whole", "parts")
    assert "resume" in str(stopped.value)


def test_a_refit_stopped_after_the_best_epochs_number_ends_with_its_last_model(
    folder: Path,
) -> None:
    config = config_of("refit", max_epochs=4, lr=0.1) | {"seed": 1}
    whole = seqtrain.fit(config, run_dir="whole")
    assert whole.best_epoch == 2 < whole.epochs

    def stop(event: object) -> None:
        if isinstance(event, UpdateEvent) and event.refit and event.epoch == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="refit step"):
        seqtrain.fit(config, run_dir="parts", listener=stop)
    seqtrain.fit(config, run_dir="parts", resume=True)
    assert_same_run("whole", "parts")
    best, last = (Path(f"parts/{name}/model.safetensors").read_bytes() for name in ("best", "last"))
    assert best == last


def test_a_refit_that_is_done_has_nothing_left(folder: Path, cli: Cli) -> None:
    config = config_of("refit")
    seqtrain.fit(config, run_dir="run")
    before = Path("run/best/model.safetensors").read_bytes()
    seqtrain.fit(config, run_dir="run", resume=True)
    assert Path("run/best/model.safetensors").read_bytes() == before
