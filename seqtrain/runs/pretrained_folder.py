"""What training started from: a model folder, with the decoder where there was one."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from seqtrain.data.preprocessing import Preprocessing
from seqtrain.errors import CheckpointError
from seqtrain.model.decoder import Autoencoder, PretrainingModel
from seqtrain.runs.files import read_folder
from seqtrain.runs.model_folder import (
    Model,
    check_weights,
    load_model,
    model_files,
    parse_tensors,
)

DECODER = "decoder.safetensors"


def pretrained_files(model: Model, pretraining: PretrainingModel) -> dict[str, bytes]:
    """Return the files of the folder by name; a language model leaves nothing but the encoder."""
    files = model_files(model)
    if isinstance(pretraining, Autoencoder):
        own = _own_tensors(pretraining)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in own.items()}
        files[DECODER] = safetensors.torch.save(weights)
    return files


def load_autoencoder(folder: Path) -> tuple[Autoencoder, Preprocessing]:
    """Read the folder of a run that was pretrained as an autoencoder; on the CPU, in evaluation.

    Raises:
        CheckpointError: there is no decoder, or a file is damaged or doesn't fit.
    """
    if not (folder / DECODER).is_file():
        raise CheckpointError(
            f"{folder / DECODER}: no decoder; runs with pretraining.objective: autoencoder have one"
        )
    model = load_model(folder)
    with torch.device("meta"):
        autoencoder = Autoencoder(model.network, dropout=0.0)
    path = folder / DECODER
    weights = parse_tensors(path, read_folder(folder, [DECODER])[DECODER])
    check_weights(path, weights, _own_tensors(autoencoder))
    autoencoder.load_state_dict(weights, strict=False, assign=True)
    return autoencoder.eval(), model.preprocessing


def _own_tensors(autoencoder: Autoencoder) -> dict[str, Tensor]:
    """Return the tensors that aren't the classifier's."""
    tensors = autoencoder.state_dict()
    return {name: t for name, t in tensors.items() if not name.startswith("classifier.")}
