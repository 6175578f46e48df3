"""Where does the time of an update go? Training, random ids, no dropout.

    python tests/benchmarks/step_breakdown.py [--rnn gru] [--lengths 10 100] [--seconds 10]

For each length batches of 64 sequences, 128/128, engine auto. Two trainers take turns of 20
updates: with two threads and with one. Prints the milliseconds of each step per update, medians
over turns.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from common import make_parser, random_trainer

from seqtrain.data.batch import collate
from seqtrain.training.trainer import Trainer

BATCH, TURN, TURNS = 64, 20, 8
STEPS = ("collate", "forward", "backward", "clip", "update", "rest", "all")


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


def measure(trainer: Trainer, batches: np.ndarray) -> dict[str, float]:
    """Make an update per batch; return the milliseconds of each step per update."""
    clock, optimizer, objective = Clock(), trainer.optimizer, trainer.objective
    watched: list[tuple[str, Any, str]] = [
        ("forward", objective, "losses"),
        ("backward", torch.autograd, "backward"),
        ("clip", optimizer, "clip"),
        ("update", optimizer, "step"),
    ]
    originals = [getattr(owner, name) for _, owner, name in watched]
    for (step, owner, name), original in zip(watched, originals, strict=True):
        setattr(owner, name, partial(clock.timed, step, original))

    def update(rows: np.ndarray) -> None:
        batch = clock.timed("collate", collate, objective.store.__getitems__(rows))
        trainer.update(batch, 0.001)

    began = time.perf_counter()
    for rows in batches:
        clock.timed("rest", update, rows)
    clock.seconds["all"] = time.perf_counter() - began
    for (_, owner, name), original in zip(watched, originals, strict=True):
        setattr(owner, name, original)
    return {step: 1000 * clock.seconds[step] / len(batches) for step in STEPS}


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("--rnn", default="gru")
    parser.add_argument("--lengths", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--seconds", type=float, default=10.0, help="per length")
    given = parser.parse_args()
    model = {"rnn": given.rnn, "embedding_dim": 128, "hidden_size": 128}
    model |= {"dropout": 0.0, "embedding_dropout": 0.0}
    for length in given.lengths:
        batches = np.arange(TURNS * TURN * BATCH).reshape(TURNS, TURN, BATCH)
        trainers = {threads: random_trainer(length, batches.size, **model) for threads in (2, 1)}
        turns: dict[int, list[dict[str, float]]] = {threads: [] for threads in trainers}
        began, turn = time.perf_counter(), 0
        while turn < 3 or time.perf_counter() - began < given.seconds:
            for threads, trainer in trainers.items():
                torch.set_num_threads(threads)
                turns[threads].append(measure(trainer, batches[turn % TURNS]))
            turn += 1
        print(f"{BATCH} sequences of {length} tokens, {given.rnn}, {turn - 1} turns: ms per update")
        print(f"  {'':12}" + "".join(f"{step:>10}" for step in STEPS))
        for threads, measured in turns.items():
            medians = [float(np.median([turn[step] for turn in measured[1:]])) for step in STEPS]
            print(f"  {threads} threads   " + "".join(f"{value:10.3f}" for value in medians))


if __name__ == "__main__":
    main()
