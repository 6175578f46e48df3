"""The first hour on a GPU: tests, precision, speed, waits and memory, as one table in Markdown.

    python tests/benchmarks/gpu.py [--output TABLE.md] [--seconds 3] [--tiny] [--skip-tests]

The parts, in this order:

1. the tests of tests/cuda,
2. `seqtrain check` with full float32, and with TF32,
3. training and prediction of quickstart, trec and imdb at three batch sizes: by the engine that
   auto chooses, packed, padded, and on the CPU.

It takes less than ten minutes. A config is left out if its data set isn't under datasets/. --tiny
tries the script with small sizes on any machine.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from common import make_parser

import seqtrain
from seqtrain.api.compare import (
    AUTO,
    VARIANTS,
    Clock,
    new_trainer,
    prediction_work,
    read_splits,
    take_turns,
    training_work,
    updates,
)
from seqtrain.config import Config
from seqtrain.errors import SeqtrainError
from seqtrain.sequences import batch as batch_module
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.precision import float32_products
from seqtrain.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
CONFIGS = ("quickstart", "trec", "imdb")
BATCH_SIZES = (64, 256, 1024)
NAMES = {
    "auto": "seqtrain, engine auto",
    "torch": "seqtrain, packed",
    "unroll-padded": "seqtrain, padded",
}
"""Variants of `seqtrain compare` by name, with their names in the table."""
VARIANTS["auto"] = {"model": AUTO, "batching": {"sort": "collate"}}
TINY = ("model.hidden_size=8", "model.embedding_dim=8")
WAIT_UPDATES = 5
"""Updates in which waits are counted."""
WAITS = "synchronizing CUDA operation"
"""Part of torch's warning if the host waits for the device."""


class Report:
    """Lines of Markdown, which are printed as they come and written to a file at the end."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lines: list[str] = []

    def add(self, line: str = "") -> None:
        """Print a line and keep it."""
        print(line, flush=True)
        self.lines.append(line)
        if self.path is not None:
            self.path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")


@contextmanager
def tf32_everywhere() -> Iterator[None]:
    """Allow TF32 wherever seqtrain computes in float32, as torch does by default."""
    names = vars(batch_module)
    names["float32_products"] = lambda device, **_: float32_products(device, tf32=True)
    try:
        yield
    finally:
        names["float32_products"] = float32_products


def run_tests(report: Report) -> None:
    """Run tests/cuda on the GPU; report how many passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "tests/cuda"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = ended.stdout.strip().splitlines()
    report.add(f"tests/cuda: {lines[-1] if lines else ended.stderr[-200:]}")
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            report.add(f"    {line}")


def check_precision(report: Report, settings: list[str]) -> None:
    """Train quickstart for an epoch; compare its predictions in batches of all sorts."""
    with tempfile.TemporaryDirectory() as folder:
        config = seqtrain.load_config("configs/quickstart.yaml", settings)
        config = config.with_keys(training={"max_epochs": 1})
        run = seqtrain.fit(config, run_dir=f"{folder}/run", device="cuda")
        for name, context in (("float32", None), ("TF32", tf32_everywhere())):
            if context is None:
                check = seqtrain.check(run, device="cuda")
            else:
                with context:
                    check = seqtrain.check(run, device="cuda")
            worst = max(difference.logits for difference in check.differences)
            verdict = "passed" if check.passed else "failed"
            report.add(f"check, {name}: {verdict}, {worst:.1e} of {check.allowed:.1e} allowed")


def count_waits(trainer: Trainer) -> float:
    """Return how often the host waits for the device in an update."""
    work = updates(trainer)
    next(work)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            for _ in range(WAIT_UPDATES):
                next(work)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum(WAITS in str(each.message) for each in caught) / WAIT_UPDATES


def measure(
    config: Config, data: PreparedData, device: torch.device, name: str, seconds: float
) -> str:
    """Return the cells of a variant: tokens/s of training and prediction, waits, and memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    trainer = new_trainer(name, config, data, device)
    rates = []
    for work_of in (training_work, prediction_work):
        clock = Clock(seconds, lambda doing, share: None)
        try:
            speeds = take_turns("work", {name: trainer}, work_of, clock, 1.0)
        except SeqtrainError as error:
            return f"– | – | – | {error}"
        rates.append(f"{speeds[name].tokens_per_second:,.0f}")
    if device.type != "cuda":
        return f"{' | '.join(rates)} | – | –"
    waits = count_waits(trainer)
    memory = torch.cuda.max_memory_allocated(device) / 2**20
    return f"{' | '.join(rates)} | {waits:.1f} | {memory:,.0f} MiB"


def measure_all(report: Report, settings: list[str], sizes: list[int], seconds: float) -> None:
    """Measure every config, batch size and variant, and seqtrain on the CPU."""
    report.add()
    report.add("| config | batch | variant | training, tokens/s | prediction | waits | memory |")
    report.add("|---|---|---|---|---|---|---|")
    for name in CONFIGS:
        for size in sizes:
            changes = [*settings, f"batching.batch_size={size}", "batching.max_tokens=null"]
            try:
                config = seqtrain.load_config(f"configs/{name}.yaml", changes)
                config, data = read_splits(config, None, torch.device("cuda"))
            except SeqtrainError as error:
                report.add(f"| {name} | {size} | left out: {error.problems[0]} | | | | |")
                break
            for variant, title in NAMES.items():
                cells = measure(config, data, torch.device("cuda"), variant, seconds)
                report.add(f"| {name} | {size} | {title} | {cells} |")
            cells = measure(config, data, torch.device("cpu"), "auto", seconds)
            report.add(f"| {name} | {size} | CPU, auto | {cells} |")


def main() -> None:
    """Run all parts in order."""
    parser = make_parser(__doc__, config=False)
    parser.add_argument("--output", type=Path, help="file for the report")
    parser.add_argument("--seconds", type=float, default=3.0, help="per figure")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--skip-tests", action="store_true", help="leave out tests/cuda")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this machine has no GPU that torch can use")
    os.chdir(ROOT)
    report = Report(given.output)
    threads = torch.get_num_threads()
    report.add(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {threads} threads")
    report.add()
    if not given.skip_tests:
        run_tests(report)
    settings = list(TINY) if given.tiny else []
    check_precision(report, settings)
    sizes = [8] if given.tiny else list(BATCH_SIZES)
    measure_all(report, settings, sizes, 0.01 if given.tiny else given.seconds)


if __name__ == "__main__":
    main()
