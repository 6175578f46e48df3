"""Several processes against threads of one: tokens/s of training, taken in turns.

    python tests/benchmarks/processes.py CONFIG [--set KEY=VALUE]... [--processes 2] [--turns 3]

Each turn trains an epoch with N processes of one thread, and one with one process of N threads.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
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


def tokens_per_second(config: str, overrides: list[str], processes: int, threads: int) -> float:
    """Return what a run's metrics say of its first epoch."""
    fixed = ["training.max_epochs=1", "data.test=null"]
    options = [word for each in [*overrides, *fixed] for word in ("--set", each)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "seqtrain", "fit", config, "--quiet", *options]
        command += ["--run-dir", folder]
        if processes > 1:
            command += ["--nproc-per-node", str(processes)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        lines = Path(folder, "metrics.jsonl").read_text().splitlines()
    epochs = [line for line in map(json.loads, lines) if line["event"] == "epoch"]
    return float(epochs[0]["tokens_per_second"])


if __name__ == "__main__":
    main()
