"""What the benchmarks share: their command line, runs of the program, and made-up data."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqtrain.config import config_from_mapping
from seqtrain.data.store import SequenceStore
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.training.objectives import Classification
from seqtrain.training.trainer import Trainer

VOCAB_SIZE, LABELS = 20_000, ("a", "b")


def make_parser(doc: str | None, *, config: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a script, with CONFIG and --set where it takes these."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if config:
        parser.add_argument("config")
        parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser


def seqtrain(*arguments: object, **options: Any) -> None:
    """Run a command; its output and its errors go to the screen."""
    command = [sys.executable, "-m", "seqtrain", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=2, **options)


def fit(
    config: object, settings: list[str], folder: Path, *more: object, **options: Any
) -> list[dict[str, Any]]:
    """Train a config, and return the lines of its metrics."""
    sets = [part for setting in settings for part in ("--set", setting)]
    seqtrain("fit", config, *sets, "--run-dir", folder, "--quiet", *more, **options)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def random_trainer(length: int, rows: int, **model: object) -> Trainer:
    """Return a trainer with new weights on sequences of equal length.

    Ids are as unequally frequent as words (Zipf's law).
    """
    generator, frequency = np.random.default_rng(length), 1.0 / np.arange(1, VOCAB_SIZE - 1)
    values = generator.choice(VOCAB_SIZE - 2, length * rows, p=frequency / frequency.sum()) + 2
    store = SequenceStore(
        values=values.astype(np.int32),
        offsets=np.arange(rows + 1) * length,
        labels=generator.integers(len(LABELS), size=rows),
        lines=np.arange(rows),
    )
    config = config_from_mapping({"data": {"train": "random.npz"}, "model": model})
    network = ClassifierNetwork(
        config.model, input_size=VOCAB_SIZE, num_classes=len(LABELS), features=False
    )
    network.initialize(seed=0)
    network.train()
    return Trainer(Classification(network, store, None, LABELS, config, torch.device("cpu")))
