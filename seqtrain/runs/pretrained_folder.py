"""What training started from: a model folder, with the decoder where there was one."""

from __future__ import annotations

import os
from pathlib import Path

import safetensors.torch

from seqtrain.data.preprocessing import Preprocessing
from seqtrain.errors import CheckpointError
from seqtrain.files.folder import VerifiedFolder, complete_folder, read_folder
from seqtrain.model.decoder import Autoencoder, PretrainingModel
from seqtrain.model.initialization import shapes_alone
from seqtrain.runs.model_folder import Model, check_weights, model_files, read_model, read_tensors

DECODER = "decoder.safetensors"


def pretrained_files(model: Model, pretraining: PretrainingModel) -> dict[str, bytes]:
    """Return the files of the folder by name; a language model leaves nothing but the encoder."""
    files = model_files(model)
    if isinstance(pretraining, Autoencoder):
        own = pretraining.own_state()
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in own.items()}
        files[DECODER] = safetensors.torch.save(weights)
    return files


def load_autoencoder(folder: Path) -> tuple[Autoencoder, Preprocessing]:
    """Read the folder of a run that was pretrained as an autoencoder; on the CPU, in evaluation.

    Raises:
        CheckpointError: there is no decoder, or a file is damaged or doesn't fit.
    """
    if not os.path.lexists(complete_folder(folder) / DECODER):
        raise CheckpointError(
            f"{folder / DECODER}: no decoder; runs with pretraining.objective: autoencoder have one"
        )
    return read_folder(folder, _read_autoencoder)


def _read_autoencoder(saved: VerifiedFolder) -> tuple[Autoencoder, Preprocessing]:
    model = read_model(saved)
    with shapes_alone():
        autoencoder = Autoencoder(model.network, dropout=0.0)
    expected = autoencoder.own_state()
    weights = read_tensors(saved, DECODER, sum(tensor.nbytes for tensor in expected.values()))
    check_weights(saved.path / DECODER, weights, expected)
    autoencoder.load_state_dict(weights, strict=False, assign=True)
    return autoencoder.eval(), model.preprocessing
