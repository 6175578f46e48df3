"""What the recurrent encoder reads, and a bank of kernels beside it, as nodes of an ONNX graph.

ids → word vectors, with subwords → convolutions; or feature vectors → by their own mean and
deviation → a linear map, or convolutions.

B batch, T longest length, E size of a vector, F features, C channels, K classes, U distinct unknown
words of a batch.
"""

import numpy as np
import torch
from torch import nn

from seqtrain.data.vocabulary import UNK
from seqtrain.export.graph import DOUBLE, FLOAT, INT64, Graph, Input
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.column_embedding import ColumnEmbedding
from seqtrain.model.convolutions import ConvolutionLayer
from seqtrain.model.kernels import LARGEST, TAPS, VIEWS, KernelBank
from seqtrain.model.standardization import ALIKE, SeriesStandardization

IDS, FEATURES, LENGTHS, STATIC = "input_ids", "features", "lengths", "static"
UNKNOWN_COUNTS, UNKNOWN_BUCKETS = "unknown_counts", "unknown_buckets"


def vectors(graph: Graph, network: ClassifierNetwork) -> tuple[str, str]:
    """Add the graph's inputs, and all that stands before the encoder.

    Returns what the encoder reads, (T, B, E), and the lengths of its time steps, (B,) int64.
    """
    inputs, embedding = network.inputs, network.embedding
    by_time = isinstance(embedding, nn.Embedding) and not network.convolutions
    if isinstance(embedding, nn.Embedding):
        graph.takes(IDS, INT64, ["batch", "time"])
        ids = graph.add("Transpose", IDS, perm=[1, 0]) if by_time else IDS
        steps = _word_vectors(graph, network, ids)
    else:
        graph.takes(FEATURES, FLOAT, ["batch", "time", network.input_size])
        steps = FEATURES
    graph.takes(LENGTHS, INT64, ["batch"])
    if inputs.series is not None:
        steps = standardized(graph, inputs.series, steps)
    if isinstance(embedding, ColumnEmbedding):
        steps = columns(graph, embedding, "embedding", steps, 2)
    if isinstance(embedding, nn.Linear):
        steps = graph.linear(steps, "embedding")
    lengths = LENGTHS
    for number, layer in enumerate(network.convolutions or ()):
        assert isinstance(layer, ConvolutionLayer)
        steps = _convolved(graph, layer, f"convolutions.{number}", steps, lengths)
        if layer.stride > 1:
            lengths = graph.add(
                "Div", graph.add("Add", lengths, [layer.stride - 1]), [layer.stride]
            )
    return steps if by_time else graph.add("Transpose", steps, perm=[1, 0, 2]), lengths


def columns(graph: Graph, embedding: ColumnEmbedding, name: str, values: str, axis: int) -> str:
    """Embed the columns of tokens among values (…, K), whose last axis this is; append numbers."""
    found = []
    for number, table in enumerate(embedding.embeddings):
        last = np.array(len(table.weight) - 1, np.float32)
        bounded = graph.add(
            "Clip", graph.slice(values, number, number + 1, axis), np.array(0, np.float32), last
        )
        ids = graph.add("Squeeze", graph.cast(bounded, INT64), [axis])
        rows = graph.constant(graph.weight(f"{name}.tables.{number}.weight"), name)
        found.append(graph.add("Gather", rows, ids))
    if embedding.columns > len(found):
        found.append(graph.slice(values, len(found), embedding.columns, axis))
    joined = graph.add("Concat", *found, axis=axis)
    return joined if embedding.linear is None else graph.linear(joined, f"{name}.linear")


def _word_vectors(graph: Graph, network: ClassifierNetwork, ids: str) -> str:
    """Look words up: their row, and, where spelling counts, their n-grams', ids' shape and E."""
    table = graph.weight("embedding.weight")
    if network.subwords is None:
        return graph.add("Gather", graph.constant(table, "embedding"), ids)
    size = len(table)
    with torch.inference_mode():
        spelled = network.subwords(torch.arange(size)).numpy()
    known = graph.add("Less", ids, [size])
    rows = graph.add("Where", known, ids, [UNK])
    words = graph.add("Gather", graph.constant(table + spelled, "embedding"), rows)
    # Row 0 is of zeros, for the words that the vocabulary has; the others follow.
    index = graph.add("Where", known, [0], graph.add("Sub", ids, [size - 1]))
    return graph.add("Add", words, graph.add("Gather", _unknown_words(graph), index))


def _unknown_words(graph: Graph) -> str:
    """Return a row of zeros, then n^(-1/2) Σ G_g of each unknown word's n n-grams, (U + 1, E)."""
    graph.takes(UNKNOWN_COUNTS, INT64, ["unknown words"])
    graph.takes(UNKNOWN_BUCKETS, INT64, ["unknown n-grams"])
    table = graph.weight("subwords.weight")
    rows = graph.add("Mod", UNKNOWN_BUCKETS, [len(table)])
    grams = graph.add("Gather", graph.constant(table, "subwords"), rows)
    # Sums of neighbours are differences of sums from the beginning.
    zeros, first = np.zeros((1, table.shape[1])), np.array(0)
    upto = graph.add("CumSum", graph.cast(grams, DOUBLE), first)
    upto = graph.add("Concat", zeros, upto, axis=0)
    ends = graph.add("CumSum", UNKNOWN_COUNTS, first)
    starts = graph.add("Sub", ends, UNKNOWN_COUNTS)
    sums = graph.add("Sub", graph.add("Gather", upto, ends), graph.add("Gather", upto, starts))
    roots = graph.add("Sqrt", graph.cast(graph.add("Max", UNKNOWN_COUNTS, [1]), DOUBLE))
    scaled = graph.add("Div", sums, graph.unsqueeze(roots, 1))
    return graph.cast(graph.add("Concat", zeros, scaled, axis=0), FLOAT)


def standardized(graph: Graph, series: SeriesStandardization, steps: str) -> str:
    """Standardise each channel of each series by its own valid steps, (B, T, columns)."""
    values, absent, begin = steps, "", series.ids
    if series.ids or series.indicators:
        end = begin + series.channels
        values = graph.slice(steps, begin, end, 2)
        absent = graph.slice(steps, end, end + series.channels, 2) if series.indicators else ""
    zero, one = np.zeros(1), np.ones(1)
    valid = valid_steps(graph, steps, LENGTHS, time=1)
    if absent:
        present = graph.add("Equal", absent, np.zeros(1, np.float32))
        valid = graph.add("And", valid, present)
    exact = graph.add("Where", valid, graph.cast(values, DOUBLE), zero)
    counts = graph.add("Max", graph.sum(graph.cast(valid, DOUBLE), 1, keepdims=1), one)
    mean = graph.add("Div", graph.sum(exact, 1, keepdims=1), counts)
    away = graph.add("Where", valid, graph.add("Sub", exact, mean), zero)
    squares = graph.sum(graph.add("Mul", away, away), 1, keepdims=1)
    deviation = graph.add("Sqrt", graph.add("Div", squares, counts))
    limit = graph.add("Mul", graph.add("Abs", mean), np.array([ALIKE]))
    alike = graph.add("LessOrEqual", deviation, limit)
    scaled = graph.add("Div", away, graph.add("Where", alike, one, deviation))
    columns = [graph.cast(graph.add("Where", alike, zero, scaled), FLOAT)]
    columns = [values, *columns] if series.both else columns
    ids = [graph.slice(steps, 0, begin, 2)] if begin else []
    return graph.add("Concat", *ids, *columns, *([absent] if absent else []), axis=2)


def _convolved(graph: Graph, layer: ConvolutionLayer, name: str, steps: str, lengths: str) -> str:
    """Convolve (B, T, F), zeros beyond the true ends; the fixed batch norm is in the weights."""
    parts = ("weight", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var")
    weight, gain, shift, mean, variance = (
        graph.weight(f"{name}.{part}").astype(np.float64) for part in parts
    )
    factor = gain / np.sqrt(variance + layer.norm.eps)
    valid = masked(graph, steps, valid_steps(graph, steps, lengths, time=1), 0.0)
    convolved = graph.add(
        "Conv",
        graph.add("Transpose", valid, perm=[0, 2, 1]),
        graph.constant((weight * factor[:, None, None]).astype(np.float32), name),
        (shift - mean * factor).astype(np.float32),
        kernel_shape=[layer.kernel],
        pads=[layer.kernel // 2] * 2,
        strides=[layer.stride],
    )
    return graph.add("Transpose", graph.add("Relu", convolved), perm=[0, 2, 1])


def valid_steps(graph: Graph, values: str, lengths: str, *, time: int) -> str:
    """Return where steps, on axis `time`, aren't padding: bool (T, B, 1) or (B, T, 1)."""
    steps = graph.unsqueeze(graph.range(graph.size(values, time)), 1 - time, 2)
    return graph.add("Less", steps, graph.unsqueeze(lengths, time, 2))


def masked(graph: Graph, values: str, valid: str, other: float) -> str:
    """Put another number where a time step is padding."""
    return graph.add("Where", valid, values, np.array([other], np.float32))


def kernel_logits(graph: Graph, bank: KernelBank) -> str:
    """Return the logits of a bank of kernels, (B, K), from the graph's inputs."""
    bias, valid = graph.weight("kernels.bias"), valid_steps(graph, FEATURES, LENGTHS, time=1)
    views = _views(graph, bank, valid)
    counted, width = graph.unsqueeze(valid, 3), TAPS * bank.channels.shape[-1]
    found = []
    for kind, number in np.ndindex(*bias.shape[:2]):
        taps = _taps(graph, bank, kind, number)
        weights = bank.weights(kind, number).numpy()
        for view in range(VIEWS):
            read = graph.add("Gather", views[view], taps, axis=0)
            flat = graph.add("Reshape", read, [0, 0, width])
            outputs = graph.add("MatMul", flat, weights[view])
            above = graph.add("Greater", graph.unsqueeze(outputs, 3), bias[kind, number, view])
            counts = graph.sum(graph.cast(graph.add("And", above, counted), FLOAT), 1)
            found.append(graph.add("Flatten", counts, axis=1))
    lengths = graph.unsqueeze(graph.cast(LENGTHS, FLOAT), 1)
    shares = graph.add("Div", graph.add("Concat", *found, axis=1), lengths)
    away = graph.add("Sub", shares, graph.weight("kernels.mean"))
    scores = graph.add("MatMul", away, graph.weight("kernels.weight"))
    return graph.add("Add", scores, graph.weight("kernels.intercept"))


def _views(graph: Graph, bank: KernelBank, valid: str) -> list[str]:
    """Return each view in whole numbers, (B * T + 1, C), the last row of zeros."""
    gain, channels = graph.weight("kernels.gain"), bank.channels.shape[-1]
    both = (FEATURES, standardized(graph, bank.series, FEATURES))
    values = [graph.slice(each, 0, channels, 2) for each in both]
    for each in values[:2]:
        before = (graph.slice(each, 0, 1, 1), graph.slice(each, 0, -1, 1))
        values.append(graph.add("Sub", each, graph.add("Concat", *before, axis=1)))
    low, high = (np.array(n, np.float32) for n in (-LARGEST, LARGEST))
    zeros, flat = np.zeros((1, channels), np.float32), []
    for number, each in enumerate(values):
        scaled = graph.add("Mul", each, gain[number])
        whole = graph.add("Clip", graph.add("Round", scaled), low, high)
        steps = graph.add("Reshape", masked(graph, whole, valid, 0.0), [-1, channels])
        flat.append(graph.add("Concat", steps, zeros, axis=0))
    return flat


def _taps(graph: Graph, bank: KernelBank, kind: int, number: int) -> str:
    """Return which rows of a view each kernel reads at each time step, (B, T, TAPS)."""
    dilation, zero = bank.dilations[number], np.array(0)
    lengths = graph.unsqueeze(LENGTHS, 1, 2)
    reach: Input = [dilation]
    if bank.relative[kind]:
        twice = graph.add("Mul", lengths, [2 * dilation])
        rounded = graph.add("Add", twice, [bank.length])
        reach = graph.add("Max", graph.add("Div", rounded, [2 * bank.length]), [1])
    rows, longest = graph.size(FEATURES, 0), graph.size(FEATURES, 1)
    steps = graph.unsqueeze(graph.range(longest), 0, 2)
    steps = graph.add("Add", steps, graph.add("Mul", np.arange(TAPS) - TAPS // 2, reach))
    after = graph.add("GreaterOrEqual", steps, zero)
    inside = graph.add("And", after, graph.add("Less", steps, lengths))
    first = graph.add("Mul", graph.unsqueeze(graph.range(rows), 1, 2), longest)
    taps = graph.add("Add", steps, first)
    return graph.add("Where", inside, taps, graph.add("Mul", rows, longest))
