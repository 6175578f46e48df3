"""The recurrent encoder as nodes of an ONNX graph.

B batch, T longest length, E size of a vector, H hidden, D directions, G gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqtrain.config.schema import ModelConfig
from seqtrain.export.graph import INT32, Array, Graph
from seqtrain.export.inputs import Vectors


@dataclass(frozen=True)
class Operator:
    """ONNX's operator of a cell.

    Attributes:
        name: of the operator.
        gates: number of torch's block for each block of ONNX.
        parts: of the state.
        attributes: that make it compute what torch's cell computes.
    """

    name: str
    gates: tuple[int, ...]
    parts: int
    attributes: dict[str, int]


OPERATORS = {
    "gru": Operator("GRU", (1, 0, 2), 1, {"linear_before_reset": 1}),  # r, z, n to z, r, h
    "lstm": Operator("LSTM", (0, 3, 1, 2), 2, {}),  # i, f, g, o to i, o, f, c
    "rnn": Operator("RNN", (0,), 1, {}),
}
"""By the name that model.rnn has."""


@dataclass(frozen=True)
class Encoded:
    """What the top layer returns, by names of values in the graph.

    Attributes:
        states: of all time steps, (T, D, B, H); empty where they aren't wanted.
        last: last valid states of each direction, (D, B, H).
    """

    states: str
    last: str


def encoded(graph: Graph, config: ModelConfig, read: Vectors, *, all_states: bool) -> Encoded:
    """Run all layers.

    Args:
        graph: to add to.
        config: the model section.
        read: what the encoder reads.
        all_states: whether the top layer's states of all time steps are wanted.
    """
    operator = OPERATORS[config.rnn]
    directions = 2 if config.bidirectional else 1
    counts = graph.cast(read.lengths, INT32)  # as the operators want it
    vectors, found = read.steps, Encoded("", "")
    for layer in range(config.num_layers):
        top = layer + 1 == config.num_layers
        if layer:
            vectors = joined_states(graph, found.states, directions * config.hidden_size)
        starts = (
            _starts(graph, config, read.lengths, layer) if config.initial_state == "learned" else []
        )
        states, last, *_ = graph.add_many(
            operator.name,
            vectors,
            *(
                graph.constant(array, name)
                for name, array in _weights(graph, config, layer).items()
            ),
            counts,
            *starts,
            wanted=(all_states or not top, top),
            hidden_size=config.hidden_size,
            direction="bidirectional" if config.bidirectional else "forward",
            **operator.attributes,
        )
        found = Encoded(states, last)
    return found


def joined_states(graph: Graph, states: str, width: int) -> str:
    """Concatenate the directions of states (T, D, B, H): return (T, B, D * H)."""
    by_row = graph.add("Transpose", states, perm=[0, 2, 1, 3])
    return graph.add("Reshape", by_row, graph.constant([0, 0, width]))


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


def _starts(graph: Graph, config: ModelConfig, lengths: str, layer: int) -> list[str]:
    """Return the names of a layer's learned states before the first step, (D, B, H), by part."""
    directions = 2 if config.bidirectional else 1
    rows = graph.add("Shape", lengths)
    sizes = graph.constant([directions]), rows, graph.constant([config.hidden_size])
    shape = graph.add("Concat", *sizes, axis=0)
    learned = graph.weight("initial_state")[:, layer * directions : (layer + 1) * directions]
    return [graph.add("Expand", graph.constant(part[:, None]), shape) for part in learned]
