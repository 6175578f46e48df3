"""Checkpoints: model folders that also hold the training state, for an exact resume."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from seqtrain.errors import CheckpointError
from seqtrain.files.writing import Content, VerifiedFolder, to_json
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.runs.model_folder import (
    Model,
    check_version,
    model_files,
    read_model,
    read_tensors,
    tensor_file,
)

FORMAT_VERSION = 8
STATE, STATE_TENSORS = "training_state.json", "training_state.safetensors"
MOMENTS = 2
"""Number of tensors that the optimizer keeps for each weight, each of the weight's size."""
COUNTERS = 2**20
"""Largest total size of the optimizer's other tensors, such as numbers of updates, in bytes."""
LONGEST_METRICS = 2**62
"""Largest length of metrics.jsonl that a checkpoint may name, in bytes."""
KEPT = 2**30
"""Largest total size, in bytes, of hidden states that are carried over between sequences, or of
logits that are saved for a refit."""


@dataclass(frozen=True)
class Checkpoint:
    """State of a run after an update.

    Attributes:
        model: The model with its current weights.
        tensors: Tensors of the optimizer and of the phase's objective, by name.
        progress: Counters and sums of the phase by name, as JSON values.
        metrics_length: Length of metrics.jsonl at this update, in bytes.
    """

    model: Model
    tensors: dict[str, Tensor]
    progress: dict[str, Any]
    metrics_length: int


def checkpoint_files(checkpoint: Checkpoint) -> dict[str, Content]:
    """Return the files of a checkpoint's folder: their contents by name."""
    state = {
        "format_version": FORMAT_VERSION,
        "metrics_length": checkpoint.metrics_length,
        "progress": checkpoint.progress,
    }
    files = model_files(checkpoint.model)
    return files | {STATE: to_json(state), STATE_TENSORS: tensor_file(checkpoint.tensors)}


def read_checkpoint(saved: VerifiedFolder) -> Checkpoint:
    """Return the checkpoint in a folder.

    The values in `progress` and the names of the tensors aren't checked.

    Raises:
        CheckpointError: If a file is missing, damaged, of another format version, or too large.
    """
    model = read_model(saved)
    path = saved.path / STATE
    values = check_version(path, saved.read_json(STATE), FORMAT_VERSION)
    length, progress = values.get("metrics_length"), values.get("progress")
    if (
        type(length) is not int
        or not 0 <= length <= LONGEST_METRICS
        or not isinstance(progress, dict)
    ):
        raise CheckpointError(f"{path}: expected metrics_length, a number of bytes, and progress")
    network: nn.Module = model.network
    learning = [network]
    embedding = recurrent_branch(network).embedding
    if progress.get("phase") == "pretraining" and isinstance(embedding, nn.Embedding):
        learning = [objective(model.network, 0.0) for objective in OBJECTIVES.values()]
    weights = max(sum(p.nbytes for p in each.parameters()) for each in learning)
    largest = (MOMENTS + 1) * weights + COUNTERS + KEPT
    return Checkpoint(model, read_tensors(saved, STATE_TENSORS, largest), progress, length)
