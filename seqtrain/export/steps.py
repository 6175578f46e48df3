"""Which time steps of a batch are real: padding counts for nothing, whatever stands there."""

from __future__ import annotations

import numpy as np

from seqtrain.export.graph import Graph


def valid_steps(graph: Graph, values: str, lengths: str, *, time: int) -> str:
    """Return where time steps aren't padding.

    Args:
        graph: to add to.
        values: (T, B, …) or (B, T, …).
        lengths: (B,) int64.
        time: the axis of time, 0 or 1.

    Returns:
        The name of (T, B, 1) or (B, T, 1), bool.
    """
    longest = graph.add("Gather", graph.add("Shape", values), graph.constant(np.array(time)))
    numbers = graph.add("Range", graph.constant(np.array(0)), longest, graph.constant(np.array(1)))
    steps = graph.add("Unsqueeze", numbers, graph.constant([1 - time, 2]))
    return graph.add("Less", steps, graph.add("Unsqueeze", lengths, graph.constant([time, 2])))


def masked(graph: Graph, values: str, valid: str, other: float, type: type = np.float32) -> str:
    """Put another number where a time step is padding."""
    return graph.add("Where", valid, values, graph.constant(np.array([other], type)))
