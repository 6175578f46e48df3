"""Refusing a model or a sequence that can't fit into memory, before anything is allocated."""

from __future__ import annotations

import os

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.spelling import BUCKETS
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, DataError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.initialization import shapes_alone

COPIES = 4
"""Weights, gradients, and the optimizer's two moments."""
STATES_SAVED = 6
"""Vectors of hidden_size that a step, layer and direction keep for the backward pass, about."""
FLOAT_BYTES = 4


def check_model(model: ModelConfig, input_size: int, num_classes: int, ngrams: int = 0) -> None:
    """Compare an estimate for the weights and their optimizer with the machine's memory.

    Args:
        model: of the config.
        input_size: size of the vocabulary, or width of the feature vectors.
        num_classes: labels.
        ngrams: that model.ngrams chose; 0: not known yet, or none.

    Raises:
        ConfigError: they need more than there is.
    """
    available = physical_memory()
    if available is None:
        return
    with shapes_alone():
        network = SequenceClassifier(
            model, input_size=input_size, num_classes=num_classes, features=False
        )
    parameters = sum(p.numel() for p in network.parameters()) + ngrams * num_classes
    parameters += BUCKETS * model.width if model.subwords else 0
    needed = parameters * COPIES * FLOAT_BYTES
    if needed > available:
        of_ngrams = 2 * ngrams * num_classes > parameters
        key = "model.max_ngrams" if of_ngrams else "model.hidden_size"
        lower = "it" if of_ngrams else "model.hidden_size or model.embedding_dim"
        raise ConfigError(
            f"{key}: {parameters:,} parameters need {needed:,} bytes "
            f"({_gib(needed)}) to train, about; this machine has {_gib(available)}; lower {lower}"
        )


def check_longest(config: Config, train: SequenceStore) -> None:
    """Compare an estimate for the longest sequence with the machine's memory.

    Raises:
        DataError: it alone needs more than there is; its line is named.
    """
    available = physical_memory()
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    bptt = config.training.bptt or steps
    needed = min(steps, bptt) * bytes_a_step(config.model)
    if available is not None and needed > available:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs "
            f"about {_gib(needed)} to train on; this machine has {_gib(available)}; set "
            "training.bptt or data.max_length"
        )


def bytes_a_step(model: ModelConfig) -> int:
    """Return the memory that training keeps for one step of one sequence, about, in bytes."""
    states = model.num_layers * (2 if model.bidirectional else 1) * model.hidden_size
    return FLOAT_BYTES * (model.width + STATES_SAVED * states)


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None where the system doesn't say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
