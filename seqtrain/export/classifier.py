"""A trained classifier as an ONNX file: ids or feature vectors, and lengths, to probabilities."""

from __future__ import annotations

from torch import nn

from seqtrain.config.schema import ModelConfig
from seqtrain.errors import ConfigError
from seqtrain.export.encoder import OPERATORS, embedded, encoded
from seqtrain.export.graph import Graph
from seqtrain.export.pooling import pooled
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.text import listed

COMPUTED = {
    *("embedding_dim", "rnn", "hidden_size", "num_layers", "bidirectional", "join", "pooling"),
    "initial_state",
}
"""Keys of the model section that the graph follows."""
WITHOUT_INFLUENCE = {
    *("embedding_std", "initial_scale", "unroll", "engine", "dropout", "embedding_dropout"),
    "max_ngrams",
}
"""Those that change no answer of a trained model."""


def to_onnx(network: SequenceClassifier) -> bytes:
    """Return the model as an ONNX file.

    Inputs are `input_ids` (B, T) int64 or `features` (B, T, F) float32, padded with anything, and
    `lengths` (B,) int64, each from 1 to T; the output is `probabilities` (B, C) float32.

    Raises:
        ConfigError: the model has a part that can't be exported, or onnx isn't installed.
    """
    config = network.config
    check_exportable(config)
    if network.inputs.series is not None:
        raise _unknown("data.standardize by series")
    graph = Graph(network.state_dict())
    features = isinstance(network.embedding, nn.Linear)
    steps = "features" if features else "input_ids"
    vectors = embedded(graph, steps, features=features)
    found = encoded(graph, config, vectors, "lengths", all_states=config.pooling != "last")
    states = pooled(graph, config, found, "lengths")
    weight, bias = (graph.constant(graph.weight(f"head.{name}")) for name in ("weight", "bias"))
    logits = graph.add("Gemm", states, weight, bias, transB=1)
    graph.name(graph.add("Softmax", logits, axis=1), "probabilities")
    if graph.unused:
        raise _unknown(f"the weights {listed(sorted(graph.unused))}")
    width = [network.input_size] if features else []
    return graph.to_bytes(
        [
            (steps, "FLOAT" if features else "INT64", ["batch", "time", *width]),
            ("lengths", "INT64", ["batch"]),
        ],
        [("probabilities", "FLOAT", ["batch", network.head.out_features])],
        made_by="seqtrain",
    )


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
    if config.pooling not in ("last", "mean", "max", "attention"):
        raise _unknown(f"model.pooling: {config.pooling}")
    for name, field in ModelConfig.model_fields.items():
        value = getattr(config, name)
        if name not in COMPUTED | WITHOUT_INFLUENCE and value != field.get_default():
            raise _unknown(f"model.{name}: {value}")


def _unknown(part: str) -> ConfigError:
    return ConfigError(f"{part} can't be exported yet; seqtrain predict reads such a model")
