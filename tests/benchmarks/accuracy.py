"""How good is the config that `seqtrain init` writes? Trains it unedited and prints one table row.

    python tests/benchmarks/accuracy.py FILE... [--label COLUMN] [--test FILE] [--seeds 0,1,2]
    python tests/benchmarks/accuracy.py --config FILE [--set KEY=VALUE]... [--seeds 0,1,2]

FILE is what `seqtrain init` takes: the file to train on, and further ones named …valid… or …dev….
Without --test the test half isn't looked at: settings are chosen so. With --config a config is
trained in place of init's. Each row is Markdown: name, accuracy on validation and on test (mean and
each seed), seconds of processor time and of the clock for one `seqtrain fit`, and peak memory.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

from common import fit, make_parser, seqtrain

from seqtrain.config import load_config


def trained(config: str, settings: list[str], folder: Path) -> dict[str, Any]:
    """Train one config and return the last line of its metrics, with `seconds` and `processor`."""
    began, before = time.perf_counter(), os.times()
    line = fit(config, settings, folder, "--no-cache")[-1]
    after = os.times()
    processor = sum(after[2:4]) - sum(before[2:4])
    return line | {"seconds": time.perf_counter() - began, "processor": processor}


def shown(values: list[float]) -> str:
    """Write a mean and what it is of, in percent."""
    each = ", ".join(f"{100 * value:.1f}" for value in values)
    return f"{100 * mean(values):.1f} ({each})" if len(values) > 1 else each


def main() -> None:
    parser = make_parser(__doc__, config=False)
    parser.add_argument("files", nargs="*")
    for option in ("--label", "--test", "--config", "--name"):
        parser.add_argument(option)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = given.config or str(Path(folder) / "init.yaml")
        if given.config is None:
            options = ["--label", given.label] if given.label else []
            options += ["--test", given.test] if given.test else []
            seqtrain("init", *given.files, *options, "--output", config)
        ends = [
            trained(config, [*given.set, f"seed={seed}"], Path(folder) / f"run{seed}")
            for seed in given.seeds.split(",")
        ]
        used = load_config(config, given.set)
    validated = used.data.validation is not None and used.training.monitor != "loss"
    cells = [
        given.name or Path(str(used.data.train)).parent.name,
        shown([end["best_value"] for end in ends]) if validated else "",
        shown([end["test"]["accuracy"] for end in ends]) if "test" in ends[0] else "",
        f"{mean(end['processor'] for end in ends):.0f} s",
        f"{mean(end['seconds'] for end in ends):.0f} s",
        f"{max(end['peak_memory_bytes'] for end in ends) / 1e6:,.0f} MB",
    ]
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
