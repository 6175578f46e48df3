"""Speed of training relative to the usual recipes, as shown in the README of benchmarks.

    python tests/benchmarks/ratios.py CONFIG ROW... [--seconds 60] [--set KEY=VALUE]...

CONFIG names the data. The model has an embedding and a hidden state of 128, one layer, one
direction, last-state pooling, no dropout, and batches of 64. Each ROW is one comparison, like
`seqtrain compare` with fewer variants: gru, lstm, rnn, portable (gru without AVX) or hidden (gru of
512). The script prints the tokens/s of each variant, as a share of this machine's peak in float32
matrix products, and the ratios of native to the others.
"""

import os
import subprocess
import sys
import time

import torch
from common import make_parser

from seqtrain.comparison.compare import VariantRun, take_turns
from seqtrain.comparison.task import prepare_task
from seqtrain.config import load_config
from seqtrain.config.schema import ModelConfig
from seqtrain.engines.cells import CELLS

PLAIN = (
    "embedding_dim=128", "hidden_size=128", "num_layers=1", "bidirectional=false", "pooling=last",
    "dropout=0", "embedding_dropout=0", "ngrams=null", "subwords=null", "convolutions=null",
)  # fmt: skip
VARIANTS = ("native", "torch", "padded-sorted", "packed")
ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gru": (("rnn=gru",), VARIANTS),
    "lstm": (("rnn=lstm",), VARIANTS),
    "rnn": (("rnn=rnn",), VARIANTS),
    "portable": (("rnn=gru",), VARIANTS[:2]),
    "hidden": (("rnn=gru", "hidden_size=512"), VARIANTS[:1]),
}
WITHOUT_AVX = {
    "SEQTRAIN_NATIVE": "portable",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
}
"""What makes this machine compute, torch included, as one without AVX does."""
SHARES = {"prediction": 0.3, "training": 0.7}
SIDES = (512, 1024)
"""Sizes of the square products tried for the peak: one of them suits the caches best."""


def matrix_flops() -> float:
    """Return the operations per second of the fastest of some float32 matrix products."""
    fastest = 0.0
    for side in SIDES:
        left, right = torch.rand(2, side, side)
        began = time.perf_counter()
        torch.mm(left, right)
        fastest = max(fastest, 2 * side**3 / (time.perf_counter() - began))
    return fastest


def flops_per_token(model: ModelConfig) -> int:
    """Return the operations of prediction for a time step: two for each weight of the encoder.

    Training needs three times as many: each product also gives the gradient of its input and of its
    weight. Embedding, gates, pooling, head and optimizer count as nothing.
    """
    sizes = model.width + model.hidden_size
    return 2 * CELLS[model.rnn].gates * model.hidden_size * sizes


def measure(path: str, row: str, given: list[str], seconds: float) -> None:
    """Measure the variants of a row in turns; print speeds and ratios."""
    keys, names = ROWS[row]
    changes = [f"model.{key}" for key in PLAIN + keys]
    config = load_config(path, [*changes, "batching.batch_size=64", *given])
    task = prepare_task(config, torch.device("cpu"), None)
    runs, peaks = {name: VariantRun(name, task) for name in names}, [matrix_flops()]

    def before(run: VariantRun) -> None:
        if not run.rate("training"):
            peaks.append(matrix_flops())

    for mode, share in SHARES.items():
        take_turns(list(runs.values()), mode, share * seconds, before)
    print(f"{row}: peak {max(peaks) / 1e9:.0f} GFLOP/s")
    for mode in SHARES:
        native = runs["native"].rate(mode)
        flops = flops_per_token(config.model) * (3 if mode == "training" else 1)
        for name, run in runs.items():
            rate = run.rate(mode)
            if not rate:
                print(f"  {mode:11}{name:15} not measured; {run.problem}")
                continue
            print(
                f"  {mode:11}{name:15}{rate:12,.0f} tokens/s{rate * flops / max(peaks):7.0%} "
                f"of peak   native / {name} {native / rate:6.2f}",
                flush=True,
            )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("rows", nargs="+", choices=ROWS)
    parser.add_argument("--seconds", type=float, default=60.0, help="per row")
    given = parser.parse_args()
    for row in given.rows:
        if row == "portable" and "SEQTRAIN_NATIVE" not in os.environ:  # read when torch is loaded
            options = [part for each in given.set for part in ("--set", each)]
            command = [sys.executable, __file__, given.config, row, *options]
            command += ["--seconds", str(given.seconds)]
            subprocess.run(command, check=True, env={**os.environ, **WITHOUT_AVX})
        else:
            measure(given.config, row, given.set, given.seconds)


if __name__ == "__main__":
    main()
