"""Does a token cost the same in long sequences as in short ones? Training, random ids.

    python tests/benchmarks/length_scaling.py [--lengths 100 4000] [--tokens 1000000] [--hidden 128]

Batches of equal rows and as many of them as give equal totals of tokens; the lengths take turns, so
that noise hits them alike. Prints tokens/s of each engine at each length, and their ratio.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from seqtrain.config.schema import Config
from seqtrain.data.batch import collate
from seqtrain.data.store import SequenceStore
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.training.objectives import Classification
from seqtrain.training.trainer import Trainer

VOCAB_SIZE, LABELS = 20_000, ("a", "b")


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


def make_trainer(engine: str, hidden: int, store: SequenceStore) -> Trainer:
    """Return a trainer with fresh weights."""
    config = Config.model_validate(
        {
            "data": {"train": "random.npz"},
            "model": {"embedding_dim": hidden, "hidden_size": hidden, "engine": engine},
        }
    )
    model = SequenceClassifier(
        config.model, input_size=VOCAB_SIZE, num_classes=len(LABELS), features=False
    )
    model.initialize(seed=0)
    trainer = Trainer(Classification(model, store, None, LABELS, config, torch.device("cpu")))
    model.train()
    return trainer


def update(trainer: Trainer, rows: np.ndarray) -> None:
    """Learn from a batch of these rows."""
    trainer.update(collate(trainer.objective.store.__getitems__(rows)), 0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs=2, default=[100, 4000])
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of each length, about")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    given = parser.parse_args()
    for engine in ("native", "torch"):
        trainers = {}
        for length in given.lengths:
            count = max(2, round(given.tokens / (length * given.batch_size)))
            store = random_store(length, count * given.batch_size)
            batches = np.arange(len(store)).reshape(count, given.batch_size)
            trainers[length] = make_trainer(engine, given.hidden, store), list(batches)
        for trainer, batches in trainers.values():
            update(trainer, batches[0])  # warms up
        seconds = dict.fromkeys(trainers, 0.0)
        rounds = min(len(batches) for _, batches in trainers.values())
        for turn in range(rounds):
            for length, (trainer, batches) in trainers.items():
                began = time.perf_counter()
                for rows in batches[turn::rounds]:
                    update(trainer, rows)
                seconds[length] += time.perf_counter() - began
        rates = {n: t.objective.store.lengths.sum() / seconds[n] for n, (t, _) in trainers.items()}
        short, long = given.lengths
        shown = ", ".join(f"length {n}: {rate:,.0f} tokens/s" for n, rate in rates.items())
        print(f"{engine}: {shown}; ratio {rates[long] / rates[short]:.2f}", flush=True)


if __name__ == "__main__":
    main()
