"""Refusing a model, a sequence or a run that can't fit into memory or onto the disk."""

import os
import shutil
from pathlib import Path

from torch import nn

from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.spelling import BUCKETS
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.model.cells import CELLS
from seqtrain.runs.checkpoint import expected_size
from seqtrain.runs.destination import nearest_existing
from seqtrain.runs.model_folder import Model

COPIES = 4
"""Weights, gradients, and the optimizer's two moments."""
STATES_SAVED = 6
"""Vectors of hidden_size that a step, layer and direction keep for the backward pass, about."""
FLOAT_BYTES = 4
CHECKPOINTS = 5
"""Folders that stand at most at one time: best, last, previous and two under way, or pretrained."""


def check_model(model: ModelConfig, input_size: int, num_classes: int, ngrams: int = 0) -> None:
    """Refuse weights that, with their optimizer's state, need more than the machine's memory."""
    available = physical_memory()
    directions, hidden = (2 if model.bidirectional else 1), model.hidden_size
    read = model.width + (model.num_layers - 1) * directions * hidden  # by all layers together
    recurrent = directions * CELLS[model.rnn].gates * hidden * (read + model.num_layers * hidden)
    rows = input_size + (BUCKETS if model.subwords else 0)
    parameters = rows * model.width + recurrent + (directions * hidden + ngrams) * num_classes
    needed = parameters * COPIES * FLOAT_BYTES
    if available is None or needed <= available:
        return
    key, lower = "model.hidden_size", "model.hidden_size or model.embedding_dim"
    if 2 * ngrams * num_classes > parameters:
        key, lower = "model.max_ngrams", "it"
    raise ConfigError(
        f"{key}: {parameters:,} parameters need {needed:,} bytes ({_gib(needed)}) to train, about; "
        f"this machine has {_gib(available)}; lower {lower}"
    )


def check_longest(config: Config, train: SequenceStore) -> None:
    """Refuse a longest sequence that alone needs more than the machine's memory; name its line."""
    available, model = physical_memory(), config.model
    longest = int(train.lengths.argmax())
    steps = int(train.lengths[longest])
    states = model.num_layers * (2 if model.bidirectional else 1) * model.hidden_size
    kept = min(steps, config.training.bptt or steps)
    needed = kept * FLOAT_BYTES * (model.width + STATES_SAVED * states)
    if available is not None and needed > available:
        raise DataError(
            f"{train.place(longest)}: a sequence of {steps:,} steps needs about {_gib(needed)} to "
            f"train on; this machine has {_gib(available)}; set training.bptt or data.max_length"
        )


def check_space(folder: Path, model: Model, learning: nn.Module, groups: Ints | None) -> None:
    """Refuse a run directory on whose disk a run's folders have no room (`expected_size`)."""
    needed = CHECKPOINTS * expected_size(model, learning, groups)
    free = shutil.disk_usage(nearest_existing(folder)).free
    if free < needed:
        raise RunError(
            f"{folder}: {free:,} bytes are free on its disk; expected {needed:,} for the run's "
            "checkpoints; make room, or choose another --run-dir"
        )


def physical_memory() -> int | None:
    """Return the machine's memory in bytes, or None where the system doesn't say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gib(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
