"""A bank of kernels as nodes of an ONNX graph.

B batch, T longest length, C channels, P features, K classes.
"""

import numpy as np

from seqtrain.export.graph import FLOAT, Graph
from seqtrain.export.input_nodes import FEATURES, LENGTHS, masked, standardized, valid_steps
from seqtrain.model.kernels import LARGEST, TAPS, VIEWS, KernelBank


def kernel_logits(graph: Graph, bank: KernelBank) -> str:
    """Return the logits of a bank of kernels, (B, K), from the graph's inputs."""
    bias, valid = graph.weight("kernels.bias"), valid_steps(graph, FEATURES, LENGTHS, time=1)
    graph.unused.discard("kernels.channels")
    views = _views(graph, bank, valid)
    counted = graph.add("Unsqueeze", valid, graph.constant([3]))
    found = []
    for kind, number in np.ndindex(*bias.shape[:2]):
        taps = _taps(graph, bank, kind, number)
        weights = bank.weights(kind, number).numpy()
        for view in range(VIEWS):
            read = graph.add("Gather", views[view], taps, axis=0)
            width = TAPS * bank.channels.shape[-1]
            flat = graph.add("Reshape", read, graph.constant([0, 0, width]))
            outputs = graph.add("MatMul", flat, graph.constant(weights[view]))
            each = graph.add("Unsqueeze", outputs, graph.constant([3]))
            above = graph.add("Greater", each, graph.constant(bias[kind, number, view]))
            shown = graph.cast(graph.add("And", above, counted), FLOAT)
            counts = graph.add("ReduceSum", shown, graph.constant([1]), keepdims=0)
            found.append(graph.add("Flatten", counts, axis=1))
    lengths = graph.add("Unsqueeze", graph.cast(LENGTHS, FLOAT), graph.constant([1]))
    shares = graph.add("Div", graph.add("Concat", *found, axis=1), lengths)
    away = graph.add("Sub", shares, graph.constant(graph.weight("kernels.mean")))
    scores = graph.add("MatMul", away, graph.constant(graph.weight("kernels.weight")))
    return graph.add("Add", scores, graph.constant(graph.weight("kernels.intercept")))


def _views(graph: Graph, bank: KernelBank, valid: str) -> list[str]:
    """Return each view in whole numbers, (B * T + 1, C), the last row of zeros."""
    gain, channels = graph.weight("kernels.gain"), bank.channels.shape[-1]
    none, one, two = (graph.constant([n]) for n in (0, 1, 2))

    def first(columns: str) -> str:
        return graph.add("Slice", columns, none, graph.constant([channels]), two)

    values = [first(FEATURES), first(standardized(graph, bank.series, FEATURES))]
    found = []
    for each in values:
        begin = graph.add("Slice", each, none, one, one)
        others = graph.add("Slice", each, none, graph.constant([-1]), one)
        before = graph.add("Concat", begin, others, axis=1)
        found.append(graph.add("Sub", each, before))
    rows, zeros = graph.constant([-1, channels]), np.zeros((1, channels), np.float32)
    low, high = (graph.constant(np.array(n, np.float32)) for n in (-LARGEST, LARGEST))
    flat = []
    for number, each in enumerate((*values, *found)):
        scaled = graph.add("Mul", each, graph.constant(gain[number]))
        whole = graph.add("Clip", graph.add("Round", scaled), low, high)
        inside = masked(graph, whole, valid, 0.0)
        steps = graph.add("Reshape", inside, rows)
        flat.append(graph.add("Concat", steps, graph.constant(zeros), axis=0))
    return flat


def _taps(graph: Graph, bank: KernelBank, kind: int, number: int) -> str:
    """Return which rows of a view each kernel reads at each time step, (B, T, TAPS)."""
    dilation = bank.dilations[number]
    zero, one = graph.constant(np.array(0)), graph.constant(np.array(1))
    columns = graph.constant([1, 2])
    lengths = graph.add("Unsqueeze", LENGTHS, columns)
    reach = graph.constant([dilation])
    if bank.relative[kind]:
        twice = graph.add("Mul", lengths, graph.constant([2 * dilation]))
        rounded = graph.add("Add", twice, graph.constant([bank.length]))
        reach = graph.add("Div", rounded, graph.constant([2 * bank.length]))
        reach = graph.add("Max", reach, graph.constant([1]))
    shape = graph.add("Shape", FEATURES)
    rows = graph.add("Gather", shape, zero)
    longest = graph.add("Gather", shape, one)
    steps = graph.add("Unsqueeze", graph.add("Range", zero, longest, one), graph.constant([0, 2]))
    offsets = graph.constant(np.arange(TAPS) - TAPS // 2)
    steps = graph.add("Add", steps, graph.add("Mul", offsets, reach))
    inside = graph.add(
        "And",
        graph.add("GreaterOrEqual", steps, zero),
        graph.add("Less", steps, lengths),
    )
    every = graph.add("Unsqueeze", graph.add("Range", zero, rows, one), columns)
    taps = graph.add("Add", steps, graph.add("Mul", every, longest))
    return graph.add("Where", inside, taps, graph.add("Mul", rows, longest))
