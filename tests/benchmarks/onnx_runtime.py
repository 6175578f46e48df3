"""Speed of prediction compared with ONNX Runtime, with equal weights, batches and threads.

    pip install 'seqtrain[export]'
    OMP_WAIT_POLICY=PASSIVE python tests/benchmarks/onnx_runtime.py CONFIG
                            [--set KEY=VALUE]... [--seconds 20] [--threads 2]

The model of CONFIG has initial weights and is exported by `seqtrain export`. It predicts train in
the batches of `predict`. Batches are prepared before timing: padded for ONNX Runtime, packed for
seqtrain. So is the projection of words into the encoder, as in `predict`. Then both take turns of
half a second, in which only the forward pass is timed.
"""

import time
from collections.abc import Callable
from itertools import islice

import numpy as np
import numpy.typing as npt
import onnxruntime
import torch
from common import make_parser

from seqtrain.config import load_config
from seqtrain.engines.choice import choose_engine
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.exports.onnx import to_onnx
from seqtrain.model.network import new_network
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.plan import plan_in_order_of_length

TURN = 0.5
"""Seconds."""
REST = 0.05
"""Seconds between turns, so that no waiting thread of the one disturbs the other."""
BATCHES = 200

Floats = npt.NDArray[np.float32]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    config = load_config(given.config, given.set)
    if config.model.ngrams or config.model.subwords:
        parser.error("CONFIG has n-grams or subwords, which both look up otherwise; see --set")
    torch.set_num_threads(given.threads)
    data = prepare(config, cache_folder=default_folder())
    model = new_network(config.model, data.preprocessing)
    model.initialize(config.seed)
    model.eval()
    train = data.splits["train"]
    plan = plan_in_order_of_length(train.lengths, EVALUATION_BATCHING)
    np.random.default_rng(config.seed).shuffle(plan)
    batches = [collate(train.__getitems__(rows)) for rows in plan[:BATCHES]]
    name = "features" if data.preprocessing.kind == "features" else "input_ids"
    fed = [{name: b.input_ids.numpy(), "lengths": b.lengths.numpy()} for b in batches]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    session = onnxruntime.InferenceSession(
        to_onnx(model), options, providers=["CPUExecutionProvider"]
    )
    engine = choose_engine(config.model, torch.device("cpu")).name
    runs: dict[str, Callable[[int], Floats]] = {
        "ONNX Runtime": lambda i: session.run(None, fed[i])[0],
        engine: lambda i: model(batches[i]).softmax(1).numpy(),
    }
    with torch.inference_mode():
        measure(runs, batches, given.seconds)


def measure(runs: dict[str, Callable[[int], Floats]], batches: list[Batch], seconds: float) -> None:
    """Compare the first answers, then take turns; print tokens/s of each and their ratio."""
    answers = [run(0) for run in runs.values()]
    print(f"largest difference of probabilities: {np.abs(answers[0] - answers[1]).max():.1e}")
    orders = {name: iter(np.tile(np.arange(len(batches)), 10_000)) for name in runs}
    tokens, spent = dict.fromkeys(runs, 0), dict.fromkeys(runs, 0.0)
    while sum(spent.values()) < seconds:
        for name, run in runs.items():
            time.sleep(REST)
            began = time.perf_counter()
            while time.perf_counter() - began < TURN:
                (place,) = islice(orders[name], 1)
                run(place)
                tokens[name] += int(batches[place].lengths.sum())
            spent[name] += time.perf_counter() - began
    rates = {name: tokens[name] / spent[name] for name in runs}
    print(", ".join(f"{name}: {rate:,.0f} tokens/s" for name, rate in rates.items()))
    other, ours = rates
    print(f"{ours} is {rates[ours] / rates[other]:.2f} times as fast as {other}")


if __name__ == "__main__":
    main()
