"""Does a token cost the same in long sequences as in short ones? Training, random ids.

    python tests/benchmarks/length_scaling.py [--lengths 100 4000] [--tokens 1000000] [--hidden 128]

Batches of equal rows and as many of them as give equal totals of tokens; the lengths take turns, so
that noise hits them alike. Prints tokens/s of each engine at each length, and their ratio.
"""

from __future__ import annotations

import time

import numpy as np
from common import make_parser, random_trainer

from seqtrain.data.batch import collate
from seqtrain.training.trainer import Trainer


def update(trainer: Trainer, rows: np.ndarray) -> None:
    """Learn from a batch of these rows."""
    trainer.update(collate(trainer.objective.store.__getitems__(rows)), 0.001)


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("--lengths", type=int, nargs=2, default=[100, 4000])
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of each length, about")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=128)
    given = parser.parse_args()
    sizes = {"embedding_dim": given.hidden, "hidden_size": given.hidden}
    for engine in ("native", "torch"):
        trainers = {}
        for length in given.lengths:
            count = max(2, round(given.tokens / (length * given.batch_size)))
            batches = np.arange(count * given.batch_size).reshape(count, given.batch_size)
            trainer = random_trainer(length, batches.size, engine=engine, **sizes)
            trainers[length] = trainer, list(batches)
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
