"""Several processes against threads of one: tokens/s of training, taken in turns.

    python tests/benchmarks/processes.py CONFIG [--set KEY=VALUE]... [--processes 2] [--turns 3]

Each turn trains an epoch with N processes of one thread, and one with one process of N threads.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from common import fit, make_parser


def tokens_per_second(config: str, overrides: list[str], processes: int, threads: int) -> float:
    """Return what a run's metrics say of its first epoch."""
    settings = [*overrides, "training.max_epochs=1", "data.test=null"]
    more = ["--nproc-per-node", processes] if processes > 1 else []
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        lines = fit(config, settings, Path(folder), *more, env=environment)
    return float(next(line for line in lines if line["event"] == "epoch")["tokens_per_second"])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    count = given.processes
    ways = {f"{count} processes x 1 thread": (count, 1), f"1 process x {count} threads": (1, count)}
    speeds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(given.turns):
        for way, (processes, threads) in ways.items():
            speeds[way].append(tokens_per_second(given.config, given.set, processes, threads))
    for way, found in speeds.items():
        print(f"{way}: {statistics.median(found):,.0f} tokens/s of {[round(x) for x in found]}")
    first, second = speeds.values()
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    print(f"ratio: {statistics.median(ratios):.2f} of {[round(x, 2) for x in ratios]}")


if __name__ == "__main__":
    main()
