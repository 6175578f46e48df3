"""Speed and memory of reading: from a file to encoded splits, on one thread.

A step table of 2 million scattered rows (100,000 ids, 3 numbers, 1 token) as csv, jsonl and
parquet, and 300,000 texts (110 MB). Processor seconds of `prepare`, and peak memory. Aims: 12 s,
20 s and 8 s, 500 MB; 10 s for the texts. Example:

    python tests/benchmarks/table_reading.py --share 0.1
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

ROWS, IDS, TEXTS, WORDS = 2_000_000, 100_000, 300_000, 60
STEPS = {"id": "id", "order": "time", "label": "label"}
STEPS_OF: dict[str, Any] = {"p": "token", "x": "number", "y": "number", "z": "number"}


def write_steps(folder: Path, share: float) -> dict[str, Path]:
    """Write the step table in each format."""
    draw, rows = random.Random(0), list[dict[str, Any]]()
    ids = max(2, round(IDS * share))
    for number in range(round(ROWS * share)):
        own = draw.randrange(ids)
        rows.append(
            {"id": f"i{own}", "time": number, "p": f"place{min(4999, int(draw.expovariate(1e-3)))}",
             "x": round(draw.gauss(0, 1), 4), "y": round(draw.random(), 6),
             "z": draw.randrange(1000), "label": f"c{own % 20}"}
        )  # fmt: skip
    paths = {name: folder / f"steps.{name}" for name in ("csv", "jsonl", "parquet")}
    with paths["csv"].open("w") as file:
        file.write(",".join(rows[0]) + "\n")
        file.writelines(",".join(map(str, row.values())) + "\n" for row in rows)
    with paths["jsonl"].open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), paths["parquet"])
    return paths


def write_texts(folder: Path, share: float) -> Path:
    """Write a table of texts and labels."""
    draw = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(draw.choices(letters[:16], k=draw.randint(2, 9))) for _ in range(60_000)]
    totals = list(accumulate(1 / (rank + 5) for rank in range(len(words))))
    path = folder / "texts.csv"
    with path.open("w") as file:
        file.write("text,label\n")
        for number in range(round(TEXTS * share)):
            chosen = draw.choices(words, cum_weights=totals, k=draw.randint(10, 2 * WORDS))
            file.write(" ".join(chosen) + f".,c{number % 7}\n")
    return path


def measure(name: str, data: dict[str, Any], report: Any) -> None:
    """Prepare data in this process, and send the seconds and the memory."""
    from seqtrain.config import config_from_mapping
    from seqtrain.sequences.dataset import prepare

    config, before = config_from_mapping({"data": data}), memory()
    begin = time.process_time()
    prepare(config)
    report.send((name, time.process_time() - begin, before, memory()))


def memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--only", help="csv, jsonl, parquet or texts")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = {**STEPS, "steps": STEPS_OF}
        cases = {}
        if arguments.only != "texts":
            paths = write_steps(folder, arguments.share)
            cases = {name: {"train": str(path), **columns} for name, path in paths.items()}
        if arguments.only in (None, "texts"):
            texts = str(write_texts(folder, arguments.share))
            cases["texts"] = {"train": texts, "sequence": "text", "label": "label"}
        context = multiprocessing.get_context("spawn")
        for case, data in cases.items():
            if arguments.only not in (None, case):
                continue
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=measure, args=(case, data, sender))
            process.start()
            sender.close()  # so that a process that failed ends this one, too
            found, seconds, before, peak = receiver.recv()
            process.join()
            print(f"{found}: {seconds:.1f} s, {peak:,.0f} MB at its peak ({before:,.0f} before)")


if __name__ == "__main__":
    main()
