"""How good is the config that `seqtrain init` writes? Trains it unedited and prints one table row.

    python tests/benchmarks/accuracy.py FILE... [--label COLUMN] [--test FILE] [--seeds 0,1,2]
    python tests/benchmarks/accuracy.py --config FILE [--set KEY=VALUE]... [--seeds 0,1,2]

FILE is what `seqtrain init` takes: the file to train on, and further ones named …valid… or …dev….
Without --test the test half isn't looked at: settings are chosen so. With --config a config is
trained in place of init's. Each row is Markdown: name, accuracy on validation and on test (mean and
each seed), seconds of processor time and of the clock for one `seqtrain fit`, and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

from seqtrain.config import load_config


def seqtrain(*arguments: str) -> None:
    """Run a command; its errors go to the screen."""
    subprocess.run([sys.executable, "-m", "seqtrain", *arguments], check=True, stdout=2)


def trained(config: str, settings: list[str], folder: Path) -> dict[str, Any]:
    """Train one config and return the last line of its metrics, with `seconds` and `processor`."""
    options = [part for setting in settings for part in ("--set", setting)]
    began, before = time.perf_counter(), os.times()
    seqtrain("fit", config, *options, "--run-dir", str(folder), "--quiet", "--no-cache")
    after = os.times()
    line: dict[str, Any] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    line["seconds"] = time.perf_counter() - began
    line["processor"] = sum(after[2:4]) - sum(before[2:4])
    return line


def shown(values: list[float]) -> str:
    """Write a mean and what it is of, in percent."""
    each = ", ".join(f"{100 * value:.1f}" for value in values)
    return f"{100 * mean(values):.1f} ({each})" if len(values) > 1 else each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--label")
    parser.add_argument("--test")
    parser.add_argument("--config")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--name")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = given.config or str(Path(folder) / "init.yaml")
        if given.config is None:
            options = [*(["--label", given.label] if given.label else [])]
            options += ["--test", given.test] if given.test else []
            seqtrain("init", *given.files, *options, "--output", config)
        seeds = given.seeds.split(",")
        ends = [
            trained(config, [*given.set, f"seed={seed}"], Path(folder) / f"run{seed}")
            for seed in seeds
        ]
        used = load_config(config, given.set)
        name = given.name or Path(used.data.train).parent.name
    validated = used.data.validation is not None and used.training.monitor != "loss"
    cells = [
        name,
        shown([end["best_value"] for end in ends]) if validated else "",
        shown([end["test"]["accuracy"] for end in ends]) if "test" in ends[0] else "",
        f"{mean(end['processor'] for end in ends):.0f} s",
        f"{mean(end['seconds'] for end in ends):.0f} s",
        f"{max(end['peak_memory_bytes'] for end in ends) / 1e6:,.0f} MB",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
