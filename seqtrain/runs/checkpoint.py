"""Checkpoints: model folders that also hold the training state, for an exact resume."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import Field, JsonValue
from torch import Tensor, nn

from seqtrain.files.saved import SavedObject
from seqtrain.files.writing import Content, VerifiedFolder
from seqtrain.model.branches.recurrent import recurrent_branch
from seqtrain.model.decoder import OBJECTIVES
from seqtrain.runs.model_folder import (
    Model,
    model_files,
    read_model,
    read_tensors,
    tensor_file,
)

CHECKPOINT_VERSION: Final = 8
STATE, STATE_TENSORS = "training_state.json", "training_state.safetensors"
MOMENT_TENSORS = 2
"""Number of tensors that the optimizer keeps for each weight, each of the weight's size."""
COUNTERS = 2**20
"""Largest total size of the optimizer's other tensors, such as numbers of updates, in bytes."""
LONGEST_METRICS = 2**62
"""Largest length of metrics.jsonl that a checkpoint may name, in bytes."""
LARGEST_KEPT = 2**30
"""Largest total size, in bytes, of hidden states that are carried over between sequences, or of
logits that are saved for a refit."""


class SavedState(SavedObject):
    """Content of training_state.json.

    Attributes:
        format_version: Version of checkpoints.
        metrics_length: Length of metrics.jsonl at the update of the checkpoint, in bytes.
        progress: Counters and sums of the phase by name.
    """

    format_version: Literal[8] = CHECKPOINT_VERSION
    metrics_length: int = Field(ge=0, le=LONGEST_METRICS)
    progress: dict[str, JsonValue]


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
    state = SavedState(
        metrics_length=checkpoint.metrics_length,
        progress=checkpoint.progress,
    )
    files = model_files(checkpoint.model)
    return files | {STATE: state.to_json(), STATE_TENSORS: tensor_file(checkpoint.tensors)}


def read_checkpoint(saved: VerifiedFolder) -> Checkpoint:
    """Return the checkpoint in a folder.

    The values in `progress` and the names of the tensors aren't checked.

    Raises:
        CheckpointError: If a file is missing, damaged, of another format version, or too large.
    """
    model = read_model(saved)
    state = SavedState.read(saved.path / STATE, saved.read(STATE))
    progress = state.progress
    network: nn.Module = model.network
    learning = [network]
    embedding = recurrent_branch(network).embedding
    if progress.get("phase") == "pretraining" and isinstance(embedding, nn.Embedding):
        learning = [objective(model.network, 0.0) for objective in OBJECTIVES.values()]
    weights = max(sum(p.nbytes for p in each.parameters()) for each in learning)
    largest = (MOMENT_TENSORS + 1) * weights + COUNTERS + LARGEST_KEPT
    tensors = read_tensors(saved, STATE_TENSORS, largest)
    return Checkpoint(model, tensors, progress, state.metrics_length)
