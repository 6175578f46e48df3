"""The graph against the network: every cell, direction, depth, pooling, join and initial state."""

from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
import torch

from seqtrain.exports.onnx import to_onnx
from seqtrain.model.network import ClassifierNetwork
from tests.helpers.batches import classify
from tests.helpers.examples import some
from tests.helpers.networks import POOLING_NAMES
from tests.helpers.small_models import PARTS, make_model

LENGTHS = torch.tensor([3, 1, 6, 4, 1, 6])
JOINS = cycle(["concat", "sum", "mean", "concat", "mean"])
STATES = cycle(["zeros", "learned", "random"])
SHAPES: list[dict[str, Any]] = [
    {"rnn": rnn, "bidirectional": both, "num_layers": layers, "pooling": pooling}
    for rnn, both, layers, pooling in product(
        ("gru", "lstm", "rnn"), (False, True), (1, 2), POOLING_NAMES
    )
]
for shape in SHAPES:
    shape |= {"join": next(JOINS), "initial_state": next(STATES)}


def predicted(content: bytes, inputs: torch.Tensor, lengths: torch.Tensor) -> npt.NDArray[Any]:
    """Return the probabilities (B, C) of padded inputs by ONNX Runtime."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    name = "input_ids" if inputs.dtype == torch.int64 else "features"
    given = {name: inputs.numpy(), "lengths": lengths.numpy()}
    result: npt.NDArray[Any] = session.run(["probabilities"], given)[0]
    return result


def expected(network: ClassifierNetwork, inputs: torch.Tensor) -> npt.NDArray[Any]:
    with torch.inference_mode():
        result: npt.NDArray[Any] = classify(network, inputs, LENGTHS).double().softmax(1).numpy()
    return result


@pytest.mark.parametrize("settings", some(SHAPES, 11), ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize("kind", ["tokens", "features"])
def test_predictions_are_the_networks(kind, settings):
    network = make_model(kind, engine="torch", **settings).network
    steps = torch.randint(2, 8, (6, 6)) if kind == "tokens" else torch.randn(6, 6, 2)
    content = to_onnx(network)
    found = predicted(content, steps, LENGTHS)
    assert np.abs(found - expected(network, steps)).max() < 1e-5
    alone = predicted(content, steps[3:4, :4], LENGTHS[3:4])  # another batch size, another length
    assert np.abs(found[3] - alone[0]).max() < 1e-6


@pytest.mark.parametrize(
    "part", ["series", "series beside train", "convolutions of series", "kernels", ""]
)
def test_what_stands_in_the_padding_counts_for_nothing(part):
    attended = {"bidirectional": True, "num_layers": 2, "pooling": "attention"}
    kind, rules, settings = PARTS.get(part, ("features", {}, attended))
    network = make_model(kind, rules, **settings).network
    steps = torch.randn(6, 6, network.input_size)
    content = to_onnx(network)
    before = predicted(content, steps, LENGTHS)
    padding = torch.arange(6) >= LENGTHS.unsqueeze(1)
    steps[padding] = 1e6
    assert np.abs(predicted(content, steps, LENGTHS) - before).max() < 1e-6
