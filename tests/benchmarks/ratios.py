"""How many times as fast as the usual recipes? The ratios that the README of benchmarks promises.

    python tests/benchmarks/ratios.py CONFIG ROW... [--seconds 60] [--set KEY=VALUE]...

CONFIG names the data; the model is 128/128, one layer, one direction, the last state, no dropout,
in batches of 64. Each ROW is one comparison (`seqtrain compare` with fewer variants): gru, lstm,
rnn; portable (gru without AVX); hidden (gru of 512). Prints each variant's tokens/s with the share
of this machine's measured peak, and the ratios of native to the others.
"""

from __future__ import annotations

import argparse
import os
from unittest import mock

from seqtrain.comparison import compare as comparison
from seqtrain.comparison.results import Comparison
from seqtrain.config import load_config

PLAIN = (
    "embedding_dim=128", "hidden_size=128", "num_layers=1", "bidirectional=false", "pooling=last",
    "dropout=0", "embedding_dropout=0", "ngrams=null", "subwords=null", "convolutions=null",
)  # fmt: skip
ENGINES, RECIPES = ("native", "torch"), ("padded-sorted", "packed")
ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gru": (("rnn=gru",), ENGINES + RECIPES),
    "lstm": (("rnn=lstm",), ENGINES + RECIPES),
    "rnn": (("rnn=rnn",), ENGINES + RECIPES),
    "portable": (("rnn=gru",), ENGINES),
    "hidden": (("rnn=gru", "hidden_size=512"), ("native",)),
}

WITHOUT_AVX = {
    "SEQTRAIN_NATIVE": "portable",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
}
"""What makes this machine compute, torch included, as one without AVX does."""


def measure(path: str, row: str, given: list[str], seconds: float) -> Comparison:
    """Compare the variants of a row."""
    keys, names = ROWS[row]
    changes = [f"model.{key}" for key in PLAIN + keys]
    config = load_config(path, [*changes, "batching.batch_size=64", *given])
    chosen = mock.patch.object(comparison, "variants_for", return_value=dict.fromkeys(names, ""))
    with chosen, mock.patch.dict(os.environ, WITHOUT_AVX if row == "portable" else {}):
        return comparison.compare(config, seconds=seconds)


def show(row: str, found: Comparison) -> None:
    """Print the speeds and the ratios of a row."""
    print(f"{row}: {found.seconds:.0f} s, peak {found.peak_flops / 1e9:.0f} GFLOP/s")
    for mode in ("training", "prediction"):
        speeds = {each.name: getattr(each, mode) for each in found.candidates}
        native = speeds["native"]
        for name, speed in speeds.items():
            if speed is None or native is None:
                print(f"  {mode:11}{name:15} not measured")
                continue
            ratio = native.tokens_per_second / speed.tokens_per_second
            print(
                f"  {mode:11}{name:15}{speed.tokens_per_second:12,.0f} tokens/s"
                f"{speed.share_of_peak:7.0%} of peak   native / {name} {ratio:6.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("rows", nargs="+", choices=ROWS)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seconds", type=float, default=60.0, help="per row")
    given = parser.parse_args()
    for row in given.rows:
        show(row, measure(given.config, row, given.set, given.seconds))


if __name__ == "__main__":
    main()
