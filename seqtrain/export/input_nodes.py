"""What the recurrent encoder reads, as nodes of an ONNX graph.

ids → word vectors, with subwords → convolutions; or feature vectors → by their own mean and
deviation → a linear map, or convolutions.

B batch, T longest length, E size of a vector, F features, C channels, V words of the vocabulary,
U distinct unknown words of a batch, G n-grams of all of them.
"""

import numpy as np
import torch
from torch import nn

from seqtrain.data.vocabulary import UNK
from seqtrain.export.graph import DOUBLE, FLOAT, INT64, Graph
from seqtrain.model.classifier import ClassifierNetwork
from seqtrain.model.convolutions import ConvolutionLayer
from seqtrain.model.standardization import ALIKE, SeriesStandardization

IDS, FEATURES, LENGTHS = "input_ids", "features", "lengths"
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
    if isinstance(embedding, nn.Linear):
        steps = graph.linear(steps, "embedding")
    lengths = LENGTHS
    for number, layer in enumerate(network.convolutions or ()):
        assert isinstance(layer, ConvolutionLayer)
        steps = _convolved(graph, layer, f"convolutions.{number}", steps, lengths)
        lengths = _shortened(graph, lengths, layer.stride)
    return steps if by_time else graph.add("Transpose", steps, perm=[1, 0, 2]), lengths


def _word_vectors(graph: Graph, network: ClassifierNetwork, ids: str) -> str:
    """Look words up: their row, and, where spelling counts, their n-grams', ids' shape and E."""
    table = graph.weight("embedding.weight")
    if network.subwords is None:
        return graph.add("Gather", graph.constant(table, "embedding"), ids)
    size = len(table)
    with torch.inference_mode():
        spelled = network.subwords(torch.arange(size)).numpy()
    first = graph.constant([size])
    known = graph.add("Less", ids, first)
    rows = graph.add("Where", known, ids, graph.constant([UNK]))
    words = graph.add("Gather", graph.constant(table + spelled, "embedding"), rows)
    # Row 0 is of zeros, for the words that the vocabulary has; the others follow.
    index = graph.add("Sub", ids, graph.constant([size - 1]))
    index = graph.add("Where", known, graph.constant([0]), index)
    return graph.add("Add", words, graph.add("Gather", _unknown_words(graph), index))


def _unknown_words(graph: Graph) -> str:
    """Return a row of zeros, then n^(-1/2) Σ G_g of each unknown word's n n-grams, (U + 1, E)."""
    graph.takes(UNKNOWN_COUNTS, INT64, ["unknown words"])
    graph.takes(UNKNOWN_BUCKETS, INT64, ["unknown n-grams"])
    table = graph.weight("subwords.weight")
    grams = graph.add("Gather", graph.constant(table, "subwords"), UNKNOWN_BUCKETS)
    # Sums of neighbours are differences of sums from the beginning.
    zeros = graph.constant(np.zeros((1, table.shape[1])))
    exact = graph.cast(grams, DOUBLE)
    upto = graph.add(
        "Concat", zeros, graph.add("CumSum", exact, graph.constant(np.array(0))), axis=0
    )
    ends = graph.add("CumSum", UNKNOWN_COUNTS, graph.constant(np.array(0)))
    starts = graph.add("Sub", ends, UNKNOWN_COUNTS)
    sums = graph.add("Sub", graph.add("Gather", upto, ends), graph.add("Gather", upto, starts))
    counts = graph.add("Max", UNKNOWN_COUNTS, graph.constant([1]))
    roots = graph.add("Sqrt", graph.cast(counts, DOUBLE))
    scaled = graph.add("Div", sums, graph.add("Unsqueeze", roots, graph.constant([1])))
    return graph.cast(graph.add("Concat", zeros, scaled, axis=0), FLOAT)


def standardized(graph: Graph, series: SeriesStandardization, steps: str) -> str:
    """Standardise each channel of each series by its own valid steps, (B, T, columns)."""
    values, absent = steps, ""
    if series.indicators:
        bounds = [[0], [series.channels], [2 * series.channels], [2]]
        start, middle, end, axis = (graph.constant(bound) for bound in bounds)
        values = graph.add("Slice", steps, start, middle, axis)
        absent = graph.add("Slice", steps, middle, end, axis)
    number = np.float64
    time = graph.constant([1])
    zero, one = graph.number(0.0, number), graph.number(1.0, number)

    def sums(terms: str) -> str:
        return graph.add("ReduceSum", terms, time, keepdims=1)

    valid = valid_steps(graph, steps, LENGTHS, time=1)
    if absent:
        present = graph.add("Equal", absent, graph.number(0.0))
        valid = graph.add("And", valid, present)
    exact = masked(graph, graph.cast(values, DOUBLE), valid, 0.0, number)
    share = graph.cast(valid, DOUBLE)
    counts = graph.add("Max", sums(share), one)
    mean = graph.add("Div", sums(exact), counts)
    away = masked(graph, graph.add("Sub", exact, mean), valid, 0.0, number)
    squares = graph.add("Mul", away, away)
    deviation = graph.add("Sqrt", graph.add("Div", sums(squares), counts))
    limit = graph.add("Mul", graph.add("Abs", mean), graph.number(ALIKE, number))
    alike = graph.add("LessOrEqual", deviation, limit)
    scaled = graph.add("Div", away, graph.add("Where", alike, one, deviation))
    own = graph.add("Where", alike, zero, scaled)
    columns = [graph.cast(own, FLOAT)]
    columns = [values, *columns] if series.both else columns
    return graph.add("Concat", *columns, *([absent] if absent else []), axis=2)


def _convolved(graph: Graph, layer: ConvolutionLayer, name: str, steps: str, lengths: str) -> str:
    """Convolve (B, T, F), zeros beyond the true ends; the fixed batch norm is in the weights."""
    weight, gain, shift, mean, variance = (
        graph.weight(f"{name}.{part}").astype(np.float64)
        for part in (
            "weight",
            *(f"norm.{p}" for p in ("weight", "bias", "running_mean", "running_var")),
        )
    )
    graph.unused.discard(f"{name}.norm.num_batches_tracked")
    factor = gain / np.sqrt(variance + layer.norm.eps)
    kernel = (weight * factor[:, None, None]).astype(np.float32)
    bias = (shift - mean * factor).astype(np.float32)
    valid = valid_steps(graph, steps, lengths, time=1)
    channels_first = graph.add("Transpose", masked(graph, steps, valid, 0.0), perm=[0, 2, 1])
    convolved = graph.add(
        "Conv",
        channels_first,
        graph.constant(kernel, name),
        graph.constant(bias),
        kernel_shape=[layer.kernel],
        pads=[layer.kernel // 2] * 2,
        strides=[layer.stride],
    )
    return graph.add("Transpose", graph.add("Relu", convolved), perm=[0, 2, 1])


def _shortened(graph: Graph, lengths: str, stride: int) -> str:
    if stride == 1:
        return lengths
    return graph.add(
        "Div", graph.add("Add", lengths, graph.constant([stride - 1])), graph.constant([stride])
    )


def valid_steps(graph: Graph, values: str, lengths: str, *, time: int) -> str:
    """Return where steps, on axis `time`, aren't padding: bool (T, B, 1) or (B, T, 1)."""
    longest = graph.add("Gather", graph.add("Shape", values), graph.constant(np.array(time)))
    numbers = graph.add("Range", graph.constant(np.array(0)), longest, graph.constant(np.array(1)))
    steps = graph.add("Unsqueeze", numbers, graph.constant([1 - time, 2]))
    return graph.add("Less", steps, graph.add("Unsqueeze", lengths, graph.constant([time, 2])))


def masked(graph: Graph, values: str, valid: str, other: float, type: type = np.float32) -> str:
    """Put another number where a time step is padding."""
    return graph.add("Where", valid, values, graph.number(other, type))
