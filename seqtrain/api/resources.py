"""Refusing a model, a sequence or a run that can't fit into memory or onto the disk."""

import os
import shutil
from pathlib import Path

from seqtrain.api.run_state import RunState
from seqtrain.config.schema import Config, ModelConfig
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.files.writing import blocks_of
from seqtrain.model.initialization import shapes_alone
from seqtrain.runs.checkpoint import COUNTERS, MOMENTS
from seqtrain.runs.destination import nearest_existing
from seqtrain.runs.model_folder import model_files, new_network

COPIES = 4
"""Weights, gradients, and the optimizer's two moments."""
STATES_SAVED = 6
"""Vectors of hidden_size that a step, layer and direction keep for the backward pass, about."""
FLOAT_BYTES = 4
CHECKPOINTS = 5
"""Folders that stand at most at one time: best, last, previous and two under way, or pretrained."""


def check_model(model: ModelConfig, preprocessing: Preprocessing) -> None:
    """Refuse weights that, with their optimizer's state, need more than the machine's memory."""
    available, ngrams = physical_memory(), preprocessing.num_ngrams * len(preprocessing.labels)
    with shapes_alone():
        network = new_network(model, preprocessing)
    parameters = sum(weight.numel() for weight in network.parameters())
    needed = parameters * COPIES * FLOAT_BYTES
    if available is None or needed <= available:
        return
    key, lower = "model.hidden_size", "model.hidden_size or model.embedding_dim"
    if 2 * ngrams > parameters:
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


def check_space(folder: Path, state: RunState) -> None:
    """Refuse a run directory on whose disk a run's folders have no room, about."""
    learning, groups = state.learner.objective.model, state.trainer.objective.groups
    size = sum(len(block) for x in model_files(state.model).values() for block in blocks_of(x))
    size += COUNTERS + (MOMENTS + 1) * sum(weight.nbytes for weight in learning.parameters())
    if groups is not None:
        number_and_state = groups.itemsize + state.model.network.zero_state(1).nbytes
        size += (int(groups.max(initial=-1)) + 1) * number_and_state
    needed, free = CHECKPOINTS * size, shutil.disk_usage(nearest_existing(folder)).free
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
