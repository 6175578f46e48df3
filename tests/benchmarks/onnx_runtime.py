"""Prediction against ONNX Runtime's GRU: the same weights, the same batches, the same threads.

    pip install onnx onnxruntime
    OMP_WAIT_POLICY=PASSIVE python tests/benchmarks/onnx_runtime.py CONFIG
                            [--set KEY=VALUE]... [--seconds 20] [--threads 2]

CONFIG's model (any layers and directions, pooling last) with fresh weights, on train in the batches
that `predict` makes. Batches are made beforehand, padded for ONNX Runtime and packed for seqtrain;
both then take turns of half a second, in which the forward pass alone is timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import islice

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

from seqtrain.config import load_config
from seqtrain.data.batch import Batch, collate
from seqtrain.data.cache import default_folder
from seqtrain.data.plan import plan_in_order_of_length
from seqtrain.data.preparation import prepare
from seqtrain.inference.logits import EVALUATION_BATCHING
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.choice import choose_engine
from seqtrain.runs.model_folder import new_network

TURN = 0.5
"""Seconds."""
REST = 0.05
"""Seconds between turns, so that no waiting thread of the one disturbs the other."""
BATCHES = 200

Floats = npt.NDArray[np.float32]


def to_onnx(model: SequenceClassifier) -> bytes:
    """Return ids (T, B) and lengths (B,) → logits (B, C) as an ONNX model with GRU nodes."""
    config = model.config
    directions = 2 if config.bidirectional else 1
    width = directions * config.hidden_size
    constants: dict[str, npt.NDArray] = {"embedding": array(model.embedding.weight)}
    constants |= {"head_weight": array(model.head.weight), "head_bias": array(model.head.bias)}
    nodes = [helper.make_node("Gather", ["embedding", "ids"], ["states_0"])]
    for layer in range(config.num_layers):
        names = [f"{name}_{layer}" for name in ("W", "R", "B")]
        constants |= dict(zip(names, gru_weights(model, layer), strict=True))
        above, last = f"above_{layer}", f"last_{layer}"
        node = helper.make_node(
            "GRU",
            [f"states_{layer}", *names, "lengths"],
            [above, last],
            hidden_size=config.hidden_size,
            direction="bidirectional" if config.bidirectional else "forward",
            linear_before_reset=1,
        )
        nodes.append(node)
        if layer + 1 < config.num_layers:  # (T, D, B, H) to (T, B, D * H)
            constants["shape_above"] = np.array([0, 0, width])
            beside, joined = f"beside_{layer}", f"states_{layer + 1}"
            nodes.append(helper.make_node("Transpose", [above], [beside], perm=[0, 2, 1, 3]))
            nodes.append(helper.make_node("Reshape", [beside, "shape_above"], [joined]))
    constants["shape_last"] = np.array([-1, width])
    nodes += [
        helper.make_node("Transpose", [last], ["by_row"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["by_row", "shape_last"], ["pooled"]),
        helper.make_node("Gemm", ["pooled", "head_weight", "head_bias"], ["logits"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "classifier",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["T", "B"]),
            helper.make_tensor_value_info("lengths", TensorProto.INT32, ["B"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", "C"])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def gru_weights(model: SequenceClassifier, layer: int) -> tuple[Floats, Floats, Floats]:
    """Return a layer's W, R and B as ONNX orders them: gates z, r, n; both biases side by side."""
    size = model.config.hidden_size

    def stacked(name: str) -> Floats:
        suffixes = ("", "_reverse") if model.config.bidirectional else ("",)
        parts = [array(getattr(model.encoder, f"{name}_l{layer}{s}")) for s in suffixes]
        return np.stack(
            [np.concatenate((p[size : 2 * size], p[:size], p[2 * size :])) for p in parts]
        )

    biases = np.concatenate((stacked("bias_ih"), stacked("bias_hh")), axis=1)
    return stacked("weight_ih"), stacked("weight_hh"), biases


def array(tensor: torch.Tensor) -> Floats:
    return tensor.detach().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    config = load_config(given.config, given.set)
    if (
        config.model.rnn != "gru"
        or config.model.pooling != "last"
        or config.data.kind == "features"
    ):
        parser.error("CONFIG needs ids, model.rnn gru and model.pooling last; see --set")
    torch.set_num_threads(given.threads)
    data = prepare(config, cache_folder=default_folder())
    model = new_network(config.model, data.preprocessing)
    model.initialize(config.seed)
    model.eval()
    train = data.splits["train"]
    plan = plan_in_order_of_length(train.lengths, EVALUATION_BATCHING)
    np.random.default_rng(config.seed).shuffle(plan)
    batches = [collate(train.__getitems__(rows)) for rows in plan[:BATCHES]]
    fed = [
        {"ids": np.ascontiguousarray(b.input_ids.T), "lengths": b.lengths.numpy().astype(np.int32)}
        for b in batches
    ]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    session = onnxruntime.InferenceSession(
        to_onnx(model), options, providers=["CPUExecutionProvider"]
    )
    runs: dict[str, Callable[[int], Floats]] = {
        "ONNX Runtime": lambda i: session.run(None, fed[i])[0],
        choose_engine(config.model, torch.device("cpu")).name: lambda i: array(
            model(batches[i].packed)
        ),
    }
    with torch.inference_mode():
        measure(runs, batches, given.seconds)


def measure(runs: dict[str, Callable[[int], Floats]], batches: list[Batch], seconds: float) -> None:
    """Compare the first answers, then take turns; print tokens/s of each and their ratio."""
    answers = [run(0) for run in runs.values()]
    print(f"largest difference of logits: {np.abs(answers[0] - answers[1]).max():.1e}")
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
