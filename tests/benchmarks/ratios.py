"""Speed of training relative to the usual recipes, as shown in the README of benchmarks.

    python tests/benchmarks/ratios.py CONFIG ROW... [--seconds 60] [--set KEY=VALUE]...

CONFIG names the data. The model has an embedding and a hidden state of 128, one layer, one
direction, last-state pooling, no dropout, and batches of 64. Each ROW is one comparison: gru, lstm,
rnn, portable (gru without AVX) or hidden (gru of 512). It compares the engines with plain scripts
as in today's tutorials: torch's module over padded batches of similar length, or over packed random
batches. The script prints the tokens/s of each variant, as a share of this machine's peak in
float32 matrix products, and the ratios of native to the others.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import cycle
from statistics import median

import numpy as np
import torch
from common import make_parser
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from seqtrain.api.compare import (
    Clock,
    new_trainer,
    prediction_work,
    rate_of_turn,
    read_splits,
    training_work,
)
from seqtrain.config import Config, load_config
from seqtrain.config.schema import ModelConfig
from seqtrain.engines.cells import CELLS, as_one_tensor
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.sequences.dataset import PreparedData
from seqtrain.sequences.plan import plan_epoch
from seqtrain.tables.blocks import Ints

PLAIN = (
    "embedding_dim=128", "hidden_size=128", "num_layers=1", "bidirectional=false", "pooling=last",
    "dropout=0", "embedding_dropout=0", "ngrams=null", "subwords=null", "convolutions=null",
)  # fmt: skip
ENGINES = ("native", "torch")
SCRIPTS = {"padded-sorted": {"bucketing": True}, "packed": {"bucketing": False}}
"""Plain scripts by name, and how they make batches."""
ALL = (*ENGINES, *SCRIPTS)
ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gru": (("rnn=gru",), ALL),
    "lstm": (("rnn=lstm",), ALL),
    "rnn": (("rnn=rnn",), ALL),
    "portable": (("rnn=gru",), ENGINES),
    "hidden": (("rnn=gru", "hidden_size=512"), ENGINES[:1]),
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


class Script:
    """A plain torch script with the classifier's layers: torch's module, Adam, cross-entropy."""

    def __init__(self, config: Config, data: PreparedData, *, packed: bool) -> None:
        trainer = new_trainer("torch", config, data, torch.device("cpu"))
        trainer.network.set_sparse_gradients(False)  # torch's Adam takes no sparse ones
        self.packed, self.train = packed, trainer.setup.rows
        self.model = recurrent_branch(trainer.network)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.training.lr)
        plan = plan_epoch(self.train.lengths, config.batching, seed=config.seed, epoch=1)
        self.batches, self.predicted = cycle(plan), plan[:8]

    def logits(self, rows: Ints) -> Tensor:
        """Return the logits of a batch, (B, C), from the last valid states."""
        sequences = [torch.from_numpy(np.array(self.train[row][0])) for row in rows]
        steps, lengths = pad_sequence(sequences, batch_first=True), self.train.lengths[rows]
        vectors = self.model.embedding(steps if steps.is_floating_point() else steps.long())
        ends = torch.from_numpy(lengths)
        if self.packed:
            packed = pack_padded_sequence(vectors, ends, batch_first=True, enforce_sorted=False)
            last = as_one_tensor(self.model.encoder(packed)[1])[0, -1]
        else:
            last = self.model.encoder(vectors)[0][torch.arange(len(rows)), ends - 1]
        logits: Tensor = self.model.head(last)
        return logits

    def learn(self) -> Iterator[int]:
        """Train without end, and yield the number of tokens of each batch."""
        for rows in self.batches:
            labels = torch.from_numpy(self.train.labels[rows])
            loss = functional.cross_entropy(self.logits(rows), labels)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            yield int(self.train.lengths[rows].sum())

    def predict(self) -> Iterator[int]:
        """Predict some batches again and again, and yield the number of their tokens."""
        while True:
            with torch.no_grad():
                for rows in self.predicted:
                    self.logits(rows)
            yield sum(int(self.train.lengths[rows].sum()) for rows in self.predicted)


def speeds_of(works: Mapping[str, Iterator[int]], seconds: float) -> dict[str, float]:
    """Measure works in turns, and return the median of their tokens per second by name."""
    rates: dict[str, list[float]] = {name: [] for name in works}
    for number in Clock(seconds, lambda doing, share: None).rounds(1.0, least=2):
        for name, work in works.items():
            rate = rate_of_turn(work, torch.device("cpu"))
            if number > 0:  # the first turn warms up
                rates[name].append(rate)
    return {name: median(own) for name, own in rates.items()}


def measure(path: str, row: str, given: list[str], seconds: float) -> None:
    """Measure the variants of a row in turns; print speeds and ratios."""
    keys, names = ROWS[row]
    changes = [f"model.{key}" for key in PLAIN + keys]
    config = load_config(path, [*changes, "batching.batch_size=64", *given])
    cpu = torch.device("cpu")
    config, data = read_splits(config, None, cpu)
    works: dict[str, dict[str, Iterator[int]]] = {"training": {}, "prediction": {}}
    for name in names:
        if name in SCRIPTS:
            own = config.with_keys(batching=SCRIPTS[name])
            script = Script(own, data, packed=name == "packed")
            works["training"][name], works["prediction"][name] = script.learn(), script.predict()
        else:
            trainer = new_trainer(name, config, data, cpu)
            works["training"][name] = training_work(trainer)
            works["prediction"][name] = prediction_work(trainer)
    peak = max(matrix_flops() for _ in range(5))
    print(f"{row}: peak {peak / 1e9:.0f} GFLOP/s")
    for mode, share in SHARES.items():
        speeds = speeds_of(works[mode], share * seconds)
        native = speeds["native"]
        flops = flops_per_token(config.model) * (3 if mode == "training" else 1)
        for name in names:
            rate = speeds[name]
            print(
                f"  {mode:11}{name:15}{rate:12,.0f} tokens/s{rate * flops / peak:7.0%} "
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
