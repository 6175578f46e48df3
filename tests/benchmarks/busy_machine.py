"""Speed of training on a busy machine, with torch or seqtrain imported first.

    python tests/benchmarks/busy_machine.py [--busy 8] [--threads 2] [--epochs 20]

The script trains a small model in a process of its own, while as many other processes as `--busy`
says compute. It prints the median time of an update. The order of imports must not matter.
"""

import argparse
import os
import subprocess
import sys
import tempfile

TRAINING = """
import sys, time
if sys.argv[1] == "torch":
    import torch
import seqtrain
rows = {"text": ["a b c d e f g h"[: 3 + i % 12] for i in range(200)], "label": ["x", "y"] * 100}
times = []
seqtrain.fit(
    {
        "data": {"sequence": "text", "label": "label"},
        "model": {"hidden_size": int(sys.argv[3]), "embedding_dim": int(sys.argv[3])},
        "training": {"max_epochs": int(sys.argv[2])},
        "batching": {"batch_size": 16},
    },
    train=rows, run_dir=sys.argv[4], progress=False,
    listener=lambda event: times.append(time.perf_counter()),
)
steps = sorted(later - earlier for earlier, later in zip(times, times[1:]))
print(f"{1000 * steps[len(steps) // 2]:.2f} {1000 * sum(steps) / len(steps):.2f}")
"""
BUSY = "while True: sum(range(10000))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=8, help="other processes that compute")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=12, help="model.hidden_size")
    given = parser.parse_args()
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(given.busy)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(given.threads)}
    try:
        for first in ("seqtrain", "torch"):
            with tempfile.TemporaryDirectory() as folder:
                numbers = [str(given.epochs), str(given.hidden)]
                command = [sys.executable, "-c", TRAINING, first, *numbers, f"{folder}/run"]
                ended = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                )
            median, mean = ended.stdout.split()[-2:]
            print(f"{first} first: {median} ms an update (median), {mean} ms (mean)", flush=True)
    finally:
        for process in others:
            process.kill()


if __name__ == "__main__":
    main()
