"""A trainer that continues from a saved state ends with the bits of one that was never stopped."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.config import resolved_config
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.training.phases import run_phases
from seqtrain.training.trainer import Trainer
from tests.helpers.tiny import rows, write_table

DATA = {"train": "train.tsv", "validation": 0.3, "sequence": "text", "label": "label"}
CONFIG: dict[str, Any] = {
    "data": DATA,
    "batching": {"batch_size": 16},
    "model": {"embedding_dim": 6, "hidden_size": 6, "dropout": 0.3, "embedding_dropout": 0.3},
    "training": {"max_epochs": 3, "lr": 0.03, "warmup": 0.2, "device": "cpu"},
}
PARTS: dict[str, dict[str, Any]] = {
    "refit": {"training": {"refit": True}, "model": {"ngrams": [1, 2]}},
    "language model": {"pretraining": {"objective": "language_model", "max_epochs": 2}},
    "autoencoder": {"pretraining": {"objective": "autoencoder", "max_epochs": 1, "max_length": 3}},
    "plateau": {"training": {"schedule": "plateau", "optimizer": "sgd"}},
    "random": {"model": {"initial_state": "random", "rnn": "lstm"}, "training": {"bptt": 2}},
    "balanced": {"training": {"class_weights": "balanced", "optimizer": "adam", "refit": True}},
    "bfloat16": {"training": {"precision": "bfloat16", "sparse_embedding": False}},
    "freeze": {"model": {"freeze": 1, "pooling": "attention"}},
}


def bits(trainer: Trainer) -> dict[str, Tensor | str]:
    state = trainer.state_dict()
    progress = {**state["progress"], "seconds": 0.0}
    tensors = {
        name: t.clone() for part in ("network", "training") for name, t in state[part].items()
    }
    return {**tensors, "progress": repr(progress), "calibration": repr(trainer.calibration)}


def saved(trainer: Trainer) -> dict[str, Any]:
    """Return the state as a file would hold it, and not as tensors that learn on."""
    state = trainer.state_dict()
    copies = {
        part: {name: tensor.clone() for name, tensor in state[part].items()}
        for part in ("network", "training")
    }
    best = None if trainer.best is None else {n: t.clone() for n, t in trainer.best.items()}
    return {**copies, "progress": state["progress"], "best": best, "shift": trainer.calibration}


def continued(config: Any, data: PreparedData, state: dict[str, Any]) -> Trainer:
    trainer = Trainer(config, data, torch.device("cpu"), calibration=state["shift"])
    trainer.load_state_dict(state)
    if trainer.progress.phase == "training":
        trainer.best = state["best"]
    return trainer


@pytest.mark.parametrize("part", PARTS)
def test_every_stop_continues_with_equal_bits(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "train.tsv", rows(60, seed=1))
    values = {name: {**CONFIG.get(name, {}), **keys} for name, keys in PARTS[part].items()}
    config = resolved_config({**CONFIG, **values})
    data = prepare(config)
    whole = Trainer(config, data, torch.device("cpu"))
    stops = []
    for _ in run_phases(whole):
        # A best model is in a folder of its own only if it was the best at a saved state.
        stops.append(saved(whole))
    expected = bits(whole)
    assert len(stops) > 8
    draw = random.Random(part)
    for state in [*draw.sample(stops, 5), stops[-1]]:
        again = continued(config, data, state)
        for _ in run_phases(again):
            pass
        found = bits(again)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            same = found[name] == value
            assert bool(same.all()) if isinstance(same, Tensor) else same, name
