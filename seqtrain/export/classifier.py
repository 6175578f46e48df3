"""A trained classifier as an ONNX file: ids or feature vectors, and lengths, to probabilities."""

from __future__ import annotations

import numpy as np

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.export.encoder import OPERATORS, encoded
from seqtrain.export.graph import Graph
from seqtrain.export.inputs import vectors
from seqtrain.export.ngrams import ngram_logits
from seqtrain.export.pooling import POOLINGS, pooled
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.pooling import pooling_names
from seqtrain.text import listed

COMPUTED = {
    *("embedding_dim", "subwords", "convolutions", "ngrams", "rnn", "hidden_size", "num_layers"),
    *("bidirectional", "join", "pooling", "initial_state"),
}
"""Keys of the model section that the graph follows."""
WITHOUT_INFLUENCE = {
    *("embedding_std", "max_ngrams", "initial_scale", "unroll", "engine", "dropout"),
    *("embedding_dropout", "vectors", "vectors_keep", "freeze"),
}
"""Those that change no answer of a trained model."""


def to_onnx(network: SequenceClassifier) -> bytes:
    """Return the model as an ONNX file.

    Inputs are `input_ids` (B, T) int64 or `features` (B, T, F) float32, padded with anything, and
    `lengths` (B,) int64, each from 1 to T; for subwords and n-grams those of `inputs.py` and
    `ngrams.py`. The output is `probabilities` (B, C) float32, calibrated as the model is.

    Raises:
        ConfigError: the model has a part that can't be exported, or onnx isn't installed.
    """
    config = network.config
    check_exportable(config)
    graph = Graph(network.state_dict())
    read = vectors(graph, network)
    all_states = set(pooling_names(config.pooling)) != {"last"}
    found = encoded(graph, config, read, all_states=all_states)
    logits = [graph.linear(pooled(graph, config, found, read.lengths), "head")]
    if network.ngrams is not None:
        logits.append(ngram_logits(graph))
    answers = graph.add("Softmax", _calibrated(graph, network, _joint(graph, logits)), axis=1)
    if graph.unused:
        raise _unknown(f"the weights {listed(sorted(graph.unused))}")
    classes = network.head.out_features
    return graph.to_bytes(answers, "probabilities", ["batch", classes], made_by="seqtrain")


def _joint(graph: Graph, logits: list[str]) -> str:
    """Return the logits of one answer: the mean of the parts' log-probabilities."""
    if len(logits) == 1:
        return logits[0]
    total = graph.add("Sum", *(graph.add("LogSoftmax", part, axis=1) for part in logits))
    return graph.add("Mul", total, graph.constant(np.array([1 / len(logits)], np.float32)))


def _calibrated(graph: Graph, network: SequenceClassifier, logits: str) -> str:
    """Divide logits by the model's temperature."""
    if network.temperature == 1:
        return logits
    return graph.add("Div", logits, graph.constant(np.array([network.temperature], np.float32)))


def check_exportable(config: ModelConfig) -> None:
    """Refuse a model whose answers the graph wouldn't give.

    Raises:
        ConfigError: as said.
    """
    if config.initial_state == "carried":
        raise ConfigError(
            "model.initial_state: carried can't be exported: an answer depends on the rows of its "
            "group before it, and an ONNX file keeps nothing from call to call"
        )
    if config.rnn not in OPERATORS:
        raise _unknown(f"model.rnn: {config.rnn}")
    if not set(pooling_names(config.pooling)) <= set(POOLINGS):
        raise _unknown(f"model.pooling: {config.pooling}")
    for name, field in ModelConfig.model_fields.items():
        value = getattr(config, name)
        if name not in COMPUTED | WITHOUT_INFLUENCE and value != field.get_default():
            raise _unknown(f"model.{name}: {value}")


def _unknown(part: str) -> ConfigError:
    return ConfigError(f"{part} can't be exported yet; seqtrain predict reads such a model")
