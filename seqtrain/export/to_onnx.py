"""A trained classifier as an ONNX file: ids or feature vectors, and lengths, to probabilities.

B batch, T longest length, E size of a vector, H hidden, D directions, G gates, W width of a joined
state, P poolings, C classes.
"""

from dataclasses import dataclass

import numpy as np

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.export.graph import FLOAT, INT32, INT64, Array, Graph
from seqtrain.export.input_nodes import (
    LENGTHS,
    STATIC,
    columns,
    kernel_logits,
    masked,
    valid_steps,
    vectors,
)
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.ngrams import GAIN
from seqtrain.model.pooling import pooling_names

NGRAMS, NGRAM_ROWS, NGRAM_VALUES = "ngrams", "ngram_rows", "ngram_values"


@dataclass(frozen=True)
class Operator:
    """ONNX's operator of a cell; `gates` are the numbers of torch's blocks, in ONNX's order."""

    name: str
    gates: tuple[int, ...]
    attributes: dict[str, int]


OPERATORS = {
    "gru": Operator("GRU", (1, 0, 2), {"linear_before_reset": 1}),  # r, z, n to z, r, h
    "lstm": Operator("LSTM", (0, 3, 1, 2), {}),  # i, f, g, o to i, o, f, c
    "rnn": Operator("RNN", (0,), {}),
}
"""By the name that model.rnn has."""


def to_onnx(network: ClassifierNetwork) -> bytes:
    """Return the model as an ONNX file.

    Inputs are `input_ids` (B, T) int64 or `features` (B, T, F) float32, padded with anything, and
    `lengths` (B,) int64, each from 1 to T; with data.static `static` (B, F) float32; for n-grams
    and subwords those of `_ngram_logits` and `input_nodes.py`. The output is `probabilities` (B, C)
    float32, calibrated as the model is.

    Raises:
        ConfigError: the model has a branch that can't be exported, or onnx isn't installed.
    """
    config = network.config
    check_exportable(config)
    graph = Graph(network.state_dict())
    steps, lengths = vectors(graph, network)
    all_states = set(pooling_names(config.pooling)) != {"last"}
    states, last = _encoded(graph, config, steps, lengths, all_states=all_states)
    pooled = _pooled(graph, config, states, last, lengths)
    if network.static is not None:
        graph.takes(STATIC, FLOAT, ["batch", network.static.columns])
        pooled = graph.add(
            "Concat", pooled, columns(graph, network.static, "static", STATIC, 1), axis=1
        )
    logits = graph.linear(pooled, "head")
    beside = None
    if network.ngrams is not None:
        beside = _ngram_logits(graph)
    elif network.kernels is not None:
        beside = kernel_logits(graph, network.kernels)
    if beside is not None:  # the weighted mean of the branches' logits
        shares = zip((logits, beside), network.shares or (0.5, 0.5), strict=True)
        weighted = (graph.add("Mul", x, np.array([share], np.float32)) for x, share in shares)
        logits = graph.add("Sum", *weighted)
    if network.temperature != 1:
        divisor = np.atleast_1d(np.array(network.temperature, np.float32))
        logits = graph.add("Div", logits, divisor)
    if network.shift is not None:
        logits = graph.add("Add", logits, np.array(network.shift, np.float32))
    each = {} if network.several else {"axis": 1}
    probabilities = graph.add("Sigmoid" if network.several else "Softmax", logits, **each)
    classes = network.head.out_features
    return graph.to_bytes(probabilities, "probabilities", ["batch", classes], made_by="seqtrain")


def check_exportable(config: ModelConfig) -> None:
    """Raise ConfigError for a model whose predictions the graph wouldn't give."""
    if config.initial_state == "carried":
        raise ConfigError(
            "model.initial_state: carried can't be exported: a prediction depends on the rows of "
            "its group before it, and an ONNX file keeps nothing from call to call"
        )


def _encoded(
    graph: Graph, config: ModelConfig, steps: str, lengths: str, *, all_states: bool
) -> tuple[str, str]:
    """Run all layers of the encoder over steps (T, B, E) of these lengths, (B,) int64.

    Returns the top layer's states (T, D, B, H), or empty, and its last valid ones (D, B, H).
    """
    operator, directions = OPERATORS[config.rnn], 2 if config.bidirectional else 1
    counts = graph.cast(lengths, INT32)  # as the operators want it
    states = last = ""
    for layer in range(config.num_layers):
        top = layer + 1 == config.num_layers
        if layer:
            steps = _side_by_side(graph, states, directions * config.hidden_size)
        weights = _weights(graph, config, layer)
        starts = _starts(graph, config, layer, lengths)
        states, last, *_ = graph.add_many(
            operator.name,
            steps,
            *(graph.constant(array, name) for name, array in weights.items()),
            counts,
            *starts,
            wanted=(all_states or not top, top),
            hidden_size=config.hidden_size,
            direction="bidirectional" if config.bidirectional else "forward",
            **operator.attributes,
        )
    return states, last


def _weights(graph: Graph, config: ModelConfig, layer: int) -> dict[str, Array]:
    """Return a layer's W (D, G * H, E), R (D, G * H, H) and B (D, 2 * G * H), as ONNX has them."""
    suffixes = ("", "_reverse") if config.bidirectional else ("",)
    gates = OPERATORS[config.rnn].gates

    def stacked(name: str) -> Array:
        arrays = []
        for suffix in suffixes:
            blocks = np.split(graph.weight(f"encoder.{name}_l{layer}{suffix}"), len(gates))
            arrays.append(np.concatenate([blocks[gate] for gate in gates]))
        return np.stack(arrays)

    biases = np.concatenate((stacked("bias_ih"), stacked("bias_hh")), axis=1)
    return {"W": stacked("weight_ih"), "R": stacked("weight_hh"), "B": biases}


def _starts(graph: Graph, config: ModelConfig, layer: int, lengths: str) -> list[str]:
    """Return a layer's learned h, and c of an LSTM, before the first step, (D, B, H) each."""
    if config.initial_state != "learned":
        return []
    directions = 2 if config.bidirectional else 1
    rows = graph.add("Shape", lengths)
    shape = graph.add("Concat", [directions], rows, [config.hidden_size], axis=0)
    learned = graph.weight("initial_state")[:, layer * directions : (layer + 1) * directions]
    return [graph.add("Expand", state[:, None], shape) for state in learned]


def _pooled(graph: Graph, config: ModelConfig, states: str, last: str, lengths: str) -> str:
    """Return what the head sees, (B, P * W); arguments are those of `_encoded` and its results."""
    names = pooling_names(config.pooling)
    found = []
    if "last" in names:  # as the states of one time step
        one = _joined(graph, config, graph.unsqueeze(last, 0))
        found.append(graph.add("Squeeze", one, [0]))
    if states:
        joined = _joined(graph, config, states)
        valid = valid_steps(graph, joined, lengths, time=0)
        zeroed = masked(graph, joined, valid, 0.0)
    for name in names:
        if name == "max":
            bounded = masked(graph, joined, valid, -np.inf)
            found.append(graph.add("ReduceMax", bounded, axes=[0], keepdims=0))
        elif name == "mean":
            counts = graph.unsqueeze(graph.cast(lengths, FLOAT), 1)
            found.append(graph.add("Div", graph.sum(zeroed, 0), counts))
        elif name == "attention":
            weights = "pooling" if isinstance(config.pooling, str) else "pooling.attention"
            hidden = graph.add("Tanh", graph.linear(joined, f"{weights}.project"))
            scores = graph.linear(hidden, f"{weights}.score", bias=False)
            shares = graph.add("Softmax", masked(graph, scores, valid, -np.inf), axis=0)
            found.append(graph.sum(graph.add("Mul", shares, zeroed), 0))
        elif name != "last":
            how = "can't be exported yet; seqtrain predict reads such a model"
            raise ConfigError(f"model.pooling: {name} {how}")
    return graph.add("Concat", *found, axis=1) if len(found) > 1 else found[0]


def _joined(graph: Graph, config: ModelConfig, states: str) -> str:
    """Join the directions of states (T, D, B, H): return (T, B, W)."""
    if not config.bidirectional:
        return graph.add("Squeeze", states, [1])
    if config.join == "concat":
        return _side_by_side(graph, states, 2 * config.hidden_size)
    total = graph.sum(states, 1)
    return graph.add("Mul", total, np.array([0.5], np.float32)) if config.join == "mean" else total


def _side_by_side(graph: Graph, states: str, width: int) -> str:
    by_row = graph.add("Transpose", states, perm=[0, 2, 1, 3])
    return graph.add("Reshape", by_row, [0, 0, width])


def _ngram_logits(graph: Graph) -> str:
    """Add the classifier on n-grams, whose rows and values are inputs; return logits, (B, C)."""
    graph.takes(NGRAMS, INT64, ["n-grams"])
    graph.takes(NGRAM_ROWS, INT64, ["n-grams"])
    graph.takes(NGRAM_VALUES, FLOAT, ["n-grams"])
    weight, bias = graph.weight("ngrams.weight"), graph.weight("ngrams.bias")
    rows = graph.add("Gather", graph.constant(weight * np.float32(GAIN), "ngrams"), NGRAMS)
    terms = graph.add("Mul", rows, graph.unsqueeze(NGRAM_VALUES, 1))
    shape = graph.add("Concat", graph.add("Shape", LENGTHS), [len(bias)], axis=0)
    start = graph.add("Expand", bias[None], shape)
    indices = graph.unsqueeze(NGRAM_ROWS, 1)
    return graph.add("ScatterND", start, indices, terms, reduction="add")
