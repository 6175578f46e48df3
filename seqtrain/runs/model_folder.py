"""A model on its own: weights, architecture, preprocessing and labels in one folder, no code."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import safetensors.torch
import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor

from seqtrain.config.document import brief
from seqtrain.config.schema import ModelConfig
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.errors import CheckpointError, ran_out_of_memory
from seqtrain.evaluation.calibration import Calibration
from seqtrain.files.folder import VerifiedFolder, read_folder
from seqtrain.files.reading import json_of
from seqtrain.files.strict_json import to_json
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.initialization import shapes_alone
from seqtrain.model.inputs import Fitted
from seqtrain.runs.untrusted import check_preprocessing

FORMAT_VERSION = 1
WEIGHTS, DESCRIPTION, VOCABULARY = "model.safetensors", "model.json", "vocabulary.json"
NGRAMS = "ngrams.safetensors"
FILES = {WEIGHTS, DESCRIPTION, VOCABULARY, NGRAMS}
NGRAM_BYTES = 12
"""Of an n-gram's key and idf."""
LARGEST_HEADER = 2**20
"""Most bytes of a safetensors file beside its tensors."""


@dataclass(frozen=True)
class Model:
    """A trained network and what it needs to read a user's rows.

    Attributes:
        network: the classifier.
        preprocessing: as fitted.
        calibration: what validation told of its probabilities.
    """

    network: SequenceClassifier
    preprocessing: Preprocessing
    calibration: Calibration = field(default_factory=Calibration)

    def calibrated(self, calibration: Calibration) -> Model:
        """Return the same model, whose network answers with the calibration's temperature."""
        self.network.temperature = calibration.temperature
        return replace(self, calibration=calibration)


def new_network(config: ModelConfig, preprocessing: Preprocessing) -> SequenceClassifier:
    """Return an untrained network that fits the preprocessing; weights are not drawn yet."""
    return SequenceClassifier(
        config.architecture,
        input_size=preprocessing.input_size,
        num_classes=len(preprocessing.labels),
        features=preprocessing.kind == "features",
        fitted=Fitted.of(preprocessing),
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
        "calibration": model.calibration.model_dump(),
    }
    files = {WEIGHTS: safetensors.torch.save(weights), DESCRIPTION: to_json(description)}
    vocabulary = model.preprocessing.vocabulary
    if vocabulary is not None:
        files[VOCABULARY] = to_json({"tokens": list(vocabulary.tokens)})
    ngrams = model.preprocessing.ngrams
    if ngrams is not None:
        arrays: dict[str, npt.NDArray[Any]] = {"keys": ngrams.keys, "idf": ngrams.idf}
        copies = {name: np.array(array) for name, array in arrays.items()}
        files[NGRAMS] = safetensors.numpy.save(copies)
    return files


def load_model(folder: Path) -> Model:
    """Read a model folder; the network is on the CPU, in evaluation mode.

    Nothing in the folder is executed, and every size is checked against the architecture before
    memory is taken for it.

    Raises:
        CheckpointError: a file is missing, damaged, of another format, or doesn't fit.
    """
    return read_folder(folder, read_model)


def read_model(saved: VerifiedFolder) -> Model:
    """Return the model in a saved folder; as `load_model`."""
    path = saved.path / DESCRIPTION
    description = check_version(path, saved.read_json(DESCRIPTION), FORMAT_VERSION)
    try:
        architecture: dict[str, Any] = description["architecture"]
        if architecture.get("engine") == "fused":  # of earlier versions; the weights are the same
            architecture["engine"] = "auto"
        config = ModelConfig.model_validate(architecture)
        values: dict[str, Any] = description["preprocessing"]
        tokens = None
        if values["reading"]["kind"] != "features":
            tokens = saved.read_json(VOCABULARY)["tokens"]
        preprocessing = Preprocessing.from_json(values, tokens, _read_ngrams(saved, values))
        check_preprocessing(preprocessing)
        _check_parts(config, preprocessing)
        calibration = Calibration.model_validate(description.get("calibration", {}))
        with shapes_alone():
            network = new_network(config, preprocessing)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: not a description of a model ({_words(error)})") from None
    expected = network.state_dict()
    weights = read_tensors(saved, WEIGHTS, sum(tensor.nbytes for tensor in expected.values()))
    check_weights(saved.path / WEIGHTS, weights, expected)
    network.load_state_dict(weights, assign=True)
    network.eval()
    return Model(network, preprocessing).calibrated(calibration)


def _read_ngrams(saved: VerifiedFolder, values: dict[str, Any]) -> NgramVocabulary | None:
    """Return the n-grams that a description tells of.

    Raises:
        CheckpointError: the file is missing, damaged or too large.
        ValueError, LookupError, TypeError: they can't be.
    """
    told = values.get("ngrams")
    if told is None:
        return None
    shortest, longest = told["shortest"], told["longest"]
    ModelConfig.model_validate({"ngrams": [shortest, longest], "max_ngrams": told["number"]})
    found = read_tensors(saved, NGRAMS, told["number"] * NGRAM_BYTES)
    if found.keys() != {"keys", "idf"} or len(found["keys"]) != told["number"]:
        raise ValueError(f"{NGRAMS}: expected keys and idf of {told['number']} n-grams")
    return NgramVocabulary(shortest, longest, found["keys"].numpy(), found["idf"].numpy())


def _check_parts(config: ModelConfig, preprocessing: Preprocessing) -> None:
    """Architecture and preprocessing must ask for the same parts, if any."""
    if config != config.architecture:
        raise ValueError("vectors, vectors_keep, freeze: a model on its own has none of these")
    ngrams = preprocessing.ngrams
    sizes = None if ngrams is None else [ngrams.shortest, ngrams.longest]
    subwords = None if preprocessing.subwords is None else list(preprocessing.subwords)
    if sizes != config.ngrams or subwords != config.subwords:
        raise ValueError("n-grams or subwords of the architecture aren't the preprocessing's")


def check_version(path: Path, description: Any, known: int) -> dict[str, Any]:
    """Return the object of a description.

    Raises:
        CheckpointError: it is no object, or its format version is another; both are named.
    """
    if not isinstance(description, dict):
        raise CheckpointError(f"{path}: found no object; expected one with a format_version")
    version = description.get("format_version")
    if version != known or isinstance(version, bool):
        raise CheckpointError(
            f"{path}: format version {brief(version)}; this seqtrain reads version {known}"
        )
    return description


def read_tensors(saved: VerifiedFolder, name: str, size: int) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file.

    Args:
        saved: the folder.
        name: of the file.
        size: bytes that its tensors may have at most.

    Raises:
        CheckpointError: it is larger, damaged, or isn't safetensors.
    """
    content = saved.read(name, limit=size + LARGEST_HEADER)
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except (SafetensorError, LookupError, ValueError, TypeError, RuntimeError) as error:
        if ran_out_of_memory(error):
            raise
        raise CheckpointError(f"{saved.path / name}: not safetensors ({_words(error)})") from None
    json_of(saved.path / name, _header(content))  # safetensors takes the last of equal names
    return tensors


def _header(content: bytes) -> bytes:
    """Return the JSON at the head of a sound safetensors file, behind its length in 8 bytes."""
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


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
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return (str(error).splitlines() or [type(error).__name__])[0]
