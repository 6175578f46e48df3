"""A model on its own: weights, architecture, preprocessing and labels in one folder, no code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.errors import CheckpointError
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.shapes import shapes_alone
from seqtrain.runs.files import parse_json, read_folder, to_json
from seqtrain.runs.foreign import check_preprocessing

FORMAT_VERSION = 1
WEIGHTS, DESCRIPTION, VOCABULARY = "model.safetensors", "model.json", "vocabulary.json"


@dataclass(frozen=True)
class Model:
    """A trained network and what it needs to read a user's rows.

    Attributes:
        network: the classifier.
        preprocessing: fitted on train.
    """

    network: SequenceClassifier
    preprocessing: Preprocessing


def new_network(config: ModelConfig, preprocessing: Preprocessing) -> SequenceClassifier:
    """Return an untrained network that fits the preprocessing; weights are not drawn yet."""
    return SequenceClassifier(
        config,
        input_size=preprocessing.input_size,
        num_classes=len(preprocessing.labels),
        features=preprocessing.kind == "features",
    )


def model_files(model: Model) -> dict[str, bytes]:
    """Return the files of a model folder by name."""
    weights = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in model.network.state_dict().items()
    }
    description = {
        "format_version": FORMAT_VERSION,
        "architecture": model.network.config.model_dump(),
        "preprocessing": model.preprocessing.to_json(),
    }
    files = {WEIGHTS: safetensors.torch.save(weights), DESCRIPTION: to_json(description)}
    vocabulary = model.preprocessing.vocabulary
    if vocabulary is not None:
        files[VOCABULARY] = to_json({"tokens": list(vocabulary.tokens)})
    return files


def load_model(folder: Path) -> Model:
    """Read a model folder; the network is on the CPU, in evaluation mode.

    Nothing in the folder is executed, and every tensor is checked against the architecture before
    memory is taken for it.

    Raises:
        CheckpointError: a file is missing, damaged, of another format, or doesn't fit.
    """
    contents = read_folder(folder, [DESCRIPTION, WEIGHTS], optional=[VOCABULARY])
    path = folder / DESCRIPTION
    description = parse_json(path, contents[DESCRIPTION])
    version = description.get("format_version") if isinstance(description, dict) else None
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{path}: format version {version}; this seqtrain reads version {FORMAT_VERSION}"
        )
    try:
        config = ModelConfig.model_validate(description["architecture"])
        values: dict[str, Any] = description["preprocessing"]
        tokens = None
        if values["reading"]["kind"] != "features":
            tokens = list(parse_json(folder / VOCABULARY, contents[VOCABULARY])["tokens"])
        preprocessing = Preprocessing.from_json(values, tokens)
        check_preprocessing(preprocessing)
        with shapes_alone():
            network = new_network(config, preprocessing)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a description of a model ({_words(error)})") from None
    weights = parse_tensors(folder / WEIGHTS, contents[WEIGHTS])
    check_weights(folder / WEIGHTS, weights, network.state_dict())
    network.load_state_dict(weights, assign=True)
    network.eval()
    return Model(network, preprocessing)


def parse_tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file.

    Raises:
        CheckpointError: it isn't safetensors.
    """
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: not safetensors ({_words(error)})") from None
    return tensors


def check_weights(path: Path, found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Every tensor of the architecture, none more, each of its shape, type, and finite."""
    for name in sorted(expected.keys() | found.keys()):
        if name not in found or name not in expected:
            fault = "missing" if name in expected else "not in the architecture"
            raise CheckpointError(f"{path}: tensor {name}: {fault}")
        tensor, wanted = found[name], expected[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            raise CheckpointError(
                f"{path}: tensor {name}: found {tensor.dtype} {list(tensor.shape)}, "
                f"expected {wanted.dtype} {list(wanted.shape)}"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path}: tensor {name}: holds values that aren't finite")


def _words(error: Exception) -> str:
    """Say what is wrong with a foreign description, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"architecture.{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return (str(error).splitlines() or [type(error).__name__])[0]
