"""The linear classifier on n-grams, as nodes of an ONNX graph.

Which n-grams a sequence holds, and their values, are inputs of the graph: `predict.py` finds them.

B batch, C classes, P distinct n-grams of each sequence, over all sequences.
"""

from __future__ import annotations

import numpy as np

from seqtrain.export.graph import FLOAT, INT64, Graph
from seqtrain.export.inputs import LENGTHS
from seqtrain.model.ngrams import GAIN

NUMBERS, ROWS, VALUES = "ngrams", "ngram_rows", "ngram_values"


def ngram_logits(graph: Graph) -> str:
    """Add the graph's inputs and return the logits of the n-grams alone, (B, C)."""
    graph.takes(NUMBERS, INT64, ["n-grams"])
    graph.takes(ROWS, INT64, ["n-grams"])
    graph.takes(VALUES, FLOAT, ["n-grams"])
    weight, bias = graph.weight("ngrams.weight"), graph.weight("ngrams.bias")
    rows = graph.add("Gather", graph.constant(weight * np.float32(GAIN), "ngrams"), NUMBERS)
    column = graph.constant([1])
    terms = graph.add("Mul", rows, graph.add("Unsqueeze", VALUES, column))
    shape = graph.add("Concat", graph.add("Shape", LENGTHS), graph.constant([len(bias)]), axis=0)
    start = graph.add("Expand", graph.constant(bias[None]), shape)
    places = graph.add("Unsqueeze", ROWS, column)
    return graph.add("ScatterND", start, places, terms, reduction="add")
