"""Where does the time of an update go? Training, random ids, no dropout.

    python tests/benchmarks/step_breakdown.py [--rnn gru] [--lengths 10 100] [--seconds 10]

For each length batches of 64 sequences, 128/128, engine auto. Three trainers take turns of 20
updates: two threads and one thread with the native Adam, and two threads with torch's. Prints the
milliseconds of each part per update, medians over turns.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from seqtrain.config.schema import Config
from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.training import embedding_rows
from seqtrain.training.objectives import Classification
from seqtrain.training.trainer import Trainer

VOCAB_SIZE, LABELS, BATCH, TURN = 9_000, tuple("abcdef"), 64, 20
PARTS = ("collate", "forward", "catch-up", "backward", "clip", "update", "rest", "all")


def random_store(length: int, rows: int) -> SequenceStore:
    """Return sequences of equal length; ids as unequally frequent as words (Zipf's law)."""
    generator = np.random.default_rng(length)
    frequency = 1.0 / np.arange(1, VOCAB_SIZE - 1)
    values = generator.choice(VOCAB_SIZE - 2, length * rows, p=frequency / frequency.sum()) + 2
    return SequenceStore(
        values=values.astype(np.int32),
        offsets=np.arange(rows + 1) * length,
        labels=generator.integers(len(LABELS), size=rows),
        lines=np.arange(rows),
    )


def make_trainer(rnn: str, store: SequenceStore, *, native_adam: bool) -> Trainer:
    """Return a trainer with fresh weights."""
    model = {"rnn": rnn, "embedding_dim": 128, "hidden_size": 128}
    model |= {"dropout": 0.0, "embedding_dropout": 0.0}
    config = Config.model_validate({"data": {"train": "random.npz"}, "model": model})
    network = SequenceClassifier(
        config.model, input_size=VOCAB_SIZE, num_classes=len(LABELS), features=False
    )
    network.initialize(seed=0)
    objective = Classification(network, store, None, LABELS, config, torch.device("cpu"))
    network.train()
    if native_adam:
        return Trainer(objective)
    with patch.object(embedding_rows, "native_serves", lambda weight: False):
        return Trainer(objective)


class Clock:
    """Adds up the time of calls, by name; time within another counted call is taken from it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._within: list[str] = []

    def timed(self, name: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call, and count its time under this name."""
        began = time.perf_counter()
        self._within.append(name)
        try:
            return call(*given, **named)
        finally:
            self._within.pop()
            took = time.perf_counter() - began
            self.seconds[name] += took
            if self._within:
                self.seconds[self._within[-1]] -= took


def measure(trainer: Trainer, store: SequenceStore, batches: np.ndarray) -> dict[str, float]:
    """Make an update per batch; return the milliseconds of each part per update."""
    clock, optimizer, backward = Clock(), trainer.optimizer, torch.autograd.backward
    objective: Any = trainer.objective
    originals = objective.losses, optimizer.gradient, optimizer.step, optimizer._make_up
    objective.losses = partial(clock.timed, "forward", originals[0])
    optimizer.gradient = partial(clock.timed, "clip", originals[1])  # type: ignore[method-assign]
    optimizer.step = partial(clock.timed, "update", originals[2])  # type: ignore[method-assign]
    optimizer._make_up = partial(clock.timed, "catch-up", originals[3])  # type: ignore[method-assign]
    torch.autograd.backward = partial(clock.timed, "backward", backward)

    def update(rows: np.ndarray) -> None:
        batch = clock.timed("collate", collate, store.__getitems__(rows))
        trainer.update(batch, 0.001)

    began = time.perf_counter()
    for rows in batches:
        clock.timed("rest", update, rows)
    clock.seconds["all"] = time.perf_counter() - began
    torch.autograd.backward = backward
    objective.losses, *rest = originals
    optimizer.gradient, optimizer.step, optimizer._make_up = rest  # type: ignore[method-assign]
    return {name: 1000 * clock.seconds[name] / len(batches) for name in PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rnn", default="gru")
    parser.add_argument("--lengths", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--seconds", type=float, default=10.0, help="per length")
    given = parser.parse_args()
    for length in given.lengths:
        store = random_store(length, 8 * TURN * BATCH)
        batches = np.arange(len(store)).reshape(8, TURN, BATCH)
        ways = {
            "native Adam, 2 threads": (make_trainer(given.rnn, store, native_adam=True), 2),
            "native Adam, 1 thread": (make_trainer(given.rnn, store, native_adam=True), 1),
            "torch's Adam, 2 threads": (make_trainer(given.rnn, store, native_adam=False), 2),
        }
        turns: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
        began, turn = time.perf_counter(), 0
        while turn < 3 or time.perf_counter() - began < given.seconds:
            for name, (trainer, threads) in ways.items():
                torch.set_num_threads(threads)
                turns[name].append(measure(trainer, store, batches[turn % 8]))
            turn += 1
        print(f"{BATCH} sequences of {length} tokens, {given.rnn}, {turn - 1} turns: ms per update")
        print(f"  {'':26}" + "".join(f"{part:>10}" for part in PARTS))
        for name, measured in turns.items():
            medians = [float(np.median([turn[part] for turn in measured[1:]])) for part in PARTS]
            print(f"  {name:26}" + "".join(f"{value:10.3f}" for value in medians), flush=True)


if __name__ == "__main__":
    main()
