"""The whole process: `seqtrain fit` for an epoch against a plain packed PyTorch script.

    python tests/benchmarks/whole_process.py CONFIG [--set KEY=VALUE]... [--batches 20]

Both start Python, read CONFIG's train and test file, train one epoch in batches of 64 and score the
test file; without validation, and without seqtrain's cache. The script (packed_script.py) has one
layer of CONFIG's hidden size; it would take long, so it runs some of the epoch's batches, and the
rest is extrapolated from them (`--batches 1000000` runs them all).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import make_parser, seqtrain

from seqtrain.config import load_config, render_config

SCRIPT = Path(__file__).with_name("packed_script.py")
ENVIRONMENT = {**os.environ, "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE")}


def time_fit(config: str) -> float:
    """Return the seconds that a fit takes, from start to end, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.yaml")
        path.write_text(config)
        options = ["--run-dir", Path(folder, "run"), "--no-cache", "--quiet"]
        began = time.perf_counter()
        seqtrain("fit", path, *options, env=ENVIRONMENT)
        return time.perf_counter() - began


def time_script(*arguments: object) -> float:
    """Return the seconds that the script takes, or would take with the epoch's other batches."""
    command = [sys.executable, SCRIPT, *map(str, arguments)]
    began = time.perf_counter()
    ended = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - began
    figures = json.loads(ended.stdout)
    left = figures["train_batches"] - figures["batches"]
    print(f"plain script: {figures}; {left} batches of training extrapolated")
    return seconds + left * figures["train_seconds"] / figures["batches"]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--batches", type=int, default=20)
    given = parser.parse_args()
    fixed = ["data.validation=null", "training.max_epochs=1", "batching.batch_size=64"]
    config = load_config(given.config, [*given.set, *fixed])
    data = config.data
    if data.test is None or data.kind == "features":
        parser.error("CONFIG needs texts, and data.test")
    ours = time_fit(render_config(config))
    columns = ["--sequence", data.sequence, "--label", data.label]
    limits = ["--hidden", config.model.hidden_size, "--batches", given.batches]
    theirs = time_script(data.train, data.test, *columns, *limits)
    print(f"seqtrain fit: {ours:.1f} s; plain script: {theirs:.1f} s; ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
