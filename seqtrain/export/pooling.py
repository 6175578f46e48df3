"""Pooling as nodes of an ONNX graph; padding counts for nothing, whatever stands there.

B batch, T longest length, H hidden, D directions, W width of a pooled vector.
"""

from __future__ import annotations

import numpy as np

from seqtrain.config.schema import ModelConfig
from seqtrain.export.encoder import Encoded, linear, side_by_side
from seqtrain.export.graph import Graph


def pooled(graph: Graph, config: ModelConfig, found: Encoded, lengths: str) -> str:
    """Return the name of the vectors (B, W) that the head sees.

    Args:
        graph: to add to.
        config: the model section.
        found: what the encoder returned.
        lengths: (B,) int64.
    """
    if config.pooling == "last":
        return _joined_last(graph, config, found.last)
    states = _joined(graph, config, found.states)
    valid = _valid_steps(graph, states, lengths)
    if config.pooling == "max":
        return graph.add("ReduceMax", _masked(graph, states, valid, -np.inf), axes=[0], keepdims=0)
    if config.pooling == "mean":
        total = _sum_over_time(graph, _masked(graph, states, valid, 0.0))
        counts = graph.add("Unsqueeze", graph.add("Cast", lengths, to=1), graph.constant([1]))
        return graph.add("Div", total, counts)
    hidden = graph.add("Tanh", linear(graph, states, "pooling.project"))
    scores = linear(graph, hidden, "pooling.score", bias=False)
    shares = graph.add("Softmax", _masked(graph, scores, valid, -np.inf), axis=0)
    return _sum_over_time(graph, graph.add("Mul", shares, _masked(graph, states, valid, 0.0)))


def _joined(graph: Graph, config: ModelConfig, states: str) -> str:
    """Join the directions of states (T, D, B, H): return (T, B, W)."""
    if not config.bidirectional:
        return graph.add("Squeeze", states, graph.constant([1]))
    if config.join == "concat":
        return side_by_side(graph, states, 2 * config.hidden_size)
    total = graph.add("ReduceSum", states, graph.constant([1]), keepdims=0)
    return _halved(graph, total) if config.join == "mean" else total


def _joined_last(graph: Graph, config: ModelConfig, last: str) -> str:
    """Join the directions of last states (D, B, H): return (B, W)."""
    if not config.bidirectional:
        return graph.add("Squeeze", last, graph.constant([0]))
    if config.join == "concat":
        by_row = graph.add("Transpose", last, perm=[1, 0, 2])
        return graph.add("Reshape", by_row, graph.constant([-1, 2 * config.hidden_size]))
    total = graph.add("ReduceSum", last, graph.constant([0]), keepdims=0)
    return _halved(graph, total) if config.join == "mean" else total


def _halved(graph: Graph, values: str) -> str:
    return graph.add("Mul", values, graph.constant(np.array([0.5], np.float32)))


def _valid_steps(graph: Graph, states: str, lengths: str) -> str:
    """Return which time steps aren't padding, (T, B, 1)."""
    longest = graph.add("Gather", graph.add("Shape", states), graph.constant(np.array(0)))
    steps = graph.add("Range", graph.constant(np.array(0)), longest, graph.constant(np.array(1)))
    column = graph.add("Unsqueeze", steps, graph.constant([1, 2]))
    return graph.add("Less", column, graph.add("Unsqueeze", lengths, graph.constant([1])))


def _masked(graph: Graph, values: str, valid: str, other: float) -> str:
    return graph.add("Where", valid, values, graph.constant(np.array([other], np.float32)))


def _sum_over_time(graph: Graph, values: str) -> str:
    return graph.add("ReduceSum", values, graph.constant([0]), keepdims=0)
