"""Memory of many short rows, step by step: reading, what fit tells of them, planning, updates.

    python tests/benchmarks/rows.py 1000000 [--files 4] [--validation 0.1] [--small]

Rows of 5 tokens are written to a temporary folder ($TMPDIR), which is removed. Memory is what isn't
mapped from files, in this process; where time runs out, the steps done by then are told. With
--small arrays leave memory from 64 KiB on instead of 64 MiB, so that fewer rows behave as many do.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import FrameType

import torch

from seqtrain.api import run_state
from seqtrain.config import config_from_mapping
from seqtrain.data import doubts, growing, row_numbers
from seqtrain.data.plan import plan_epoch
from seqtrain.data.preparation import prepare
from seqtrain.data.summary import summarize, warnings
from seqtrain.training.trainer import Trainer

UPDATES = 1000
M_MMAP_THRESHOLD = -3
HALVES = 20_000
"""Beginnings and ends that rows are joined from: most rows differ, and writing them is fast."""


def anonymous_bytes() -> int:
    """Return the memory of this process that isn't mapped from files."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


@contextmanager
def measured(step: str, rows: int) -> Iterator[None]:
    """Print the time of a block, and by how much memory grew at most, and at its end."""
    before, peak, done, began = anonymous_bytes(), 0, threading.Event(), time.perf_counter()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, anonymous_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        after, seconds = anonymous_bytes(), time.perf_counter() - began
        grown = (max(peak, after) - before) / rows, (after - before) / rows
        print(
            f"{step}: {seconds:.1f} s, at most {grown[0]:.1f} bytes per row more than before, "
            f"{grown[1]:.1f} kept, {max(peak, after) / 2**20:,.0f} MiB in all",
            flush=True,
        )


def write(folder: Path, rows: int, files: int) -> None:
    """Write rows of 5 tokens and two labels."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(5000)]
    begins = [" ".join(draw.choices(words, k=3)) for _ in range(HALVES)]
    ends = [f" {' '.join(draw.choices(words, k=2))}\t{'ab'[i % 2]}\n" for i in range(HALVES)]
    for number in range(files):
        with (folder / f"part-{number:03}.tsv").open("w") as file:
            file.write("text\tlabel\n")
            left = rows // files + (number < rows % files)
            while left:
                some = min(left, 100_000)
                pairs = zip(draw.choices(begins, k=some), draw.choices(ends, k=some), strict=True)
                file.write("".join(chain.from_iterable(pairs)))
                left -= some


def run(rows: int, files: int, validation: float | None) -> None:
    """Measure each step."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows, files)
        data: dict[str, object] = {"train": f"{folder}/part-*.tsv", "validation": validation}
        data |= {"sequence": "text", "label": "label"}
        model = {"embedding_dim": 16, "hidden_size": 16}
        training = {"max_epochs": 1, "device": "cpu"}
        config = config_from_mapping({"data": data, "model": model, "training": training})
        print(f"{rows:,} rows in {files} files", flush=True)
        with measured("reading", rows):
            found = prepare(config, cache_folder=None)
        with measured("what fit tells of them", rows):
            warnings(found, summarize(found), config.data)
        with measured("planning an epoch", rows):
            plan_epoch(found.splits["train"].lengths, config.batching, seed=0, epoch=0)
        with measured(f"a trainer, and {UPDATES} updates", rows):
            state = run_state.begin(config, found, torch.device("cpu"))
            trainer: Trainer = state.trainer
            for _, event in zip(range(UPDATES), trainer.events(), strict=False):
                assert event


def main() -> None:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--validation", type=float)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if options.small:
        growing.IN_MEMORY, growing.BLOCK = 2**16, 2**16
        with suppress(AttributeError):  # glibc's: what is freed leaves memory, as large arrays do
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**16)
        row_numbers.COMPARED = doubts.COMPARED = 2**16

    def late(number: int, frame: FrameType | None) -> None:
        raise SystemExit(f"not done within {options.seconds} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(options.seconds)
    run(options.rows, options.files, options.validation)


if __name__ == "__main__":
    main()
