"""Pooling as nodes of an ONNX graph.

B batch, T longest length, H hidden, D directions, W width of a joined state, P poolings.
"""

from __future__ import annotations

import numpy as np

from seqtrain.config.schema import ModelConfig
from seqtrain.export.encoder import Encoded, joined_states
from seqtrain.export.graph import FLOAT, Graph
from seqtrain.export.steps import masked, valid_steps
from seqtrain.model.pooling import pooling_names

POOLINGS = ("last", "mean", "max", "attention")
"""Those that `pooled` knows."""


def pooled(graph: Graph, config: ModelConfig, found: Encoded, lengths: str) -> str:
    """Return the name of the vectors (B, P * W) that the head sees.

    Args:
        graph: to add to.
        config: the model section.
        found: what the encoder returned.
        lengths: of its time steps, (B,) int64.
    """
    names = pooling_names(config.pooling)
    parts = [_joined_last(graph, config, found.last)] if "last" in names else []
    if found.states:
        states = _joined(graph, config, found.states)
        valid = valid_steps(graph, states, lengths, time=0)
    for name in names:
        if name == "max":
            bounded = masked(graph, states, valid, -np.inf)
            parts.append(graph.add("ReduceMax", bounded, axes=[0], keepdims=0))
        elif name == "mean":
            total = _sum_over_time(graph, masked(graph, states, valid, 0.0))
            counts = graph.add("Unsqueeze", graph.cast(lengths, FLOAT), graph.constant([1]))
            parts.append(graph.add("Div", total, counts))
        elif name == "attention":
            weights = "pooling" if isinstance(config.pooling, str) else "pooling.attention"
            parts.append(_attended(graph, states, valid, weights))
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _attended(graph: Graph, states: str, valid: str, weights: str) -> str:
    hidden = graph.add("Tanh", graph.linear(states, f"{weights}.project"))
    scores = graph.linear(hidden, f"{weights}.score", bias=False)
    shares = graph.add("Softmax", masked(graph, scores, valid, -np.inf), axis=0)
    return _sum_over_time(graph, graph.add("Mul", shares, masked(graph, states, valid, 0.0)))


def _joined(graph: Graph, config: ModelConfig, states: str) -> str:
    """Join the directions of states (T, D, B, H): return (T, B, W)."""
    if not config.bidirectional:
        return graph.add("Squeeze", states, graph.constant([1]))
    if config.join == "concat":
        return joined_states(graph, states, 2 * config.hidden_size)
    return _summed(graph, config, states, axis=1)


def _joined_last(graph: Graph, config: ModelConfig, last: str) -> str:
    """Join the directions of last states (D, B, H): return (B, W)."""
    if not config.bidirectional:
        return graph.add("Squeeze", last, graph.constant([0]))
    if config.join == "concat":
        by_row = graph.add("Transpose", last, perm=[1, 0, 2])
        return graph.add("Reshape", by_row, graph.constant([-1, 2 * config.hidden_size]))
    return _summed(graph, config, last, axis=0)


def _summed(graph: Graph, config: ModelConfig, states: str, *, axis: int) -> str:
    """Add the directions, which stand on an axis, or take their mean."""
    total = graph.add("ReduceSum", states, graph.constant([axis]), keepdims=0)
    half = graph.constant(np.array([0.5], np.float32))
    return graph.add("Mul", total, half) if config.join == "mean" else total


def _sum_over_time(graph: Graph, values: str) -> str:
    return graph.add("ReduceSum", values, graph.constant([0]), keepdims=0)
