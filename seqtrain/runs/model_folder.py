"""Model folders: weights, architecture, preprocessing and labels of one model, without code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.optimizer import check_tensors
from seqtrain.errors import CheckpointError, DataError, ran_out_of_memory
from seqtrain.evaluation.calibration import Calibration
from seqtrain.files.saved import SavedObject, invalid
from seqtrain.files.writing import (
    Content,
    StoredFile,
    VerifiedFolder,
    blocks_of,
    complete_folder,
    read_folder,
    to_json,
    write_folder,
)
from seqtrain.model.branches.kernels import KernelBranch
from seqtrain.model.decoder import Autoencoder, PretrainingModel
from seqtrain.model.network import ClassifierNetwork, new_network
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary, gram_columns
from seqtrain.sequences.preprocessing import IN_OTHER_FILES, Preprocessing
from seqtrain.sequences.pretrained import ENCODER_FILES, POOLING, PretrainedEncoder, used_files
from seqtrain.sequences.vocabulary import BUCKETS
from seqtrain.text import reason_of, shorten

MODEL_VERSION: Final = 5
WEIGHTS, DESCRIPTION, VOCABULARY = "model.safetensors", "model.json", "vocabulary.json"
NGRAMS, DECODER = "ngrams.safetensors", "decoder.safetensors"
ENCODER = "encoder"
"""Folder of the files of a pretrained encoder in a model folder."""
MODEL_FILES = {WEIGHTS, DESCRIPTION, VOCABULARY, NGRAMS}
MODEL_FILES |= {f"{ENCODER}/{name}" for name in (*ENCODER_FILES, POOLING)}
NGRAM_BYTES = 12
"""Bytes of an n-gram's key and inverse document frequency together."""
TYPES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}
"""Maps the type of a tensor to its name in a safetensors file."""
LARGEST_HEADER = 2**20
"""Largest size of the header of a safetensors file, in bytes."""


class Description(SavedObject):
    """Content of model.json.

    Attributes:
        format_version: Version of model folders.
        architecture: Section `model` of the config, without keys that only training needs.
        kernels: Time steps of the shortest, the median and the longest training sequence, or None
            without a kernel branch.
        preprocessing: Rules of the preprocessing, without the parts that have files of their own.
        pretrained: Digest of the encoder of model.pretrained, or None without it.
        calibration: Temperature, branch weights and thresholds.
    """

    format_version: Literal[5] = MODEL_VERSION
    architecture: ModelConfig
    kernels: list[Annotated[int, Field(ge=1, le=2**53)]] | None
    preprocessing: Preprocessing
    pretrained: str | None
    calibration: Calibration


class Vocabularies(SavedObject):
    """Content of vocabulary.json: lists of tokens in the order of their ids.

    Attributes:
        tokens: The list of a model whose steps are tokens, or None.
        steps: The list of each token column of a step, or None.
        static: The list of each token column of the row features, or None.
    """

    tokens: list[str] | None = None
    steps: dict[str, list[str]] | None = None
    static: dict[str, list[str]] | None = None


@dataclass(frozen=True)
class Model:
    """A network with all that a prediction needs.

    Attributes:
        network: The network. It holds the part of the calibration that changes logits.
        preprocessing: Encoding of sequences, and the labels.
        calibration: Temperature, branch weights and thresholds, fitted on validation.
    """

    network: ClassifierNetwork
    preprocessing: Preprocessing
    calibration: Calibration = field(default_factory=Calibration)

    @property
    def thresholds(self) -> list[float]:
        """Lowest probability at which each class is predicted, (C,); 0.5 if none was fitted.

        Thresholds are used in multi-label tasks and with two classes. With more classes, the most
        probable class is predicted.
        """
        return self.calibration.thresholds or [0.5] * len(self.preprocessing.labels)

    def calibrated(self, calibration: Calibration) -> Model:
        """Return a Model with the same network and another calibration. The network is changed."""
        self.network.calibration = calibration
        return replace(self, calibration=calibration)


def model_files(
    model: Model,
    pretraining: PretrainingModel | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> dict[str, Content]:
    """Return the files of a model folder: their contents by name.

    Args:
        model: The model.
        pretraining: Model of pretraining, or None. If it is an autoencoder, a file with the weights
            of its decoder is added.
        weights: Weights to save in place of the network's, by name, or None.
    """
    kernels = model.network.find(KernelBranch)
    encoder = model.preprocessing.pretrained
    description = Description(
        architecture=model.network.config,
        kernels=None if kernels is None else list(kernels.lengths),
        preprocessing=model.preprocessing,
        pretrained=None if encoder is None else encoder.digest,
        calibration=model.calibration,
    )
    weights = weights or model.network.state_dict()
    files: dict[str, Content] = {WEIGHTS: tensor_file(weights)}
    files[DESCRIPTION] = description.to_json(exclude={"preprocessing": IN_OTHER_FILES})
    tokens = model.preprocessing.vocabularies()
    ngrams = model.preprocessing.ngrams
    if tokens:
        files[VOCABULARY] = to_json(tokens)
    if ngrams is not None:
        arrays: dict[str, Any] = {"keys": np.array(ngrams.keys), "idf": np.array(ngrams.idf)}
        files[NGRAMS] = safetensors.numpy.save(arrays)
    if encoder is not None:
        for name in used_files(encoder.folder):
            stored = StoredFile(encoder.folder / name, is_final=encoder.is_stored)
            files[f"{ENCODER}/{name}"] = stored
    if isinstance(pretraining, Autoencoder):
        files[DECODER] = tensor_file(pretraining.own_state())
    return files


def tensor_file(tensors: Mapping[str, Tensor]) -> list[bytes | memoryview]:
    """Return the content of a safetensors file in blocks: its header, then each tensor's bytes.

    Contiguous tensors on the CPU aren't copied, so write the blocks before the tensors change.

    This function replaces `safetensors.torch.save`, which makes two copies of each tensor and ends
    the process if memory runs out.

    Args:
        tensors: Tensors by name, of the types in TYPES.
    """
    header, blocks, end = {}, [], 0
    for name, tensor in tensors.items():
        flat = tensor.detach().cpu().contiguous().view(-1)
        begin = end
        end = end + flat.nbytes
        shape = list(tensor.shape)
        offsets = [begin, end]
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": shape, "data_offsets": offsets}
        blocks.append(flat.view(torch.uint8).numpy().data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *blocks]


def load_model(folder: Path) -> Model:
    """Return the model in a folder. Its network is on the CPU, in evaluation mode.

    No code of the folder is executed. Sizes are checked before memory is allocated.

    Raises:
        CheckpointError: If a file is missing or damaged, has another format version, or doesn't
            fit the other files.
    """
    return read_folder(folder, read_model)


def load_autoencoder(folder: Path) -> tuple[Autoencoder, Preprocessing]:
    """Return the autoencoder in the folder `pretrained` of a run, and its preprocessing.

    The autoencoder is on the CPU, in evaluation mode.

    Raises:
        CheckpointError: If the folder has no decoder, or a file is missing, damaged or invalid.
    """
    if not (complete_folder(folder) / DECODER).exists():
        raise CheckpointError(
            f"{folder / DECODER}: no decoder; runs with pretraining.objective: autoencoder have one"
        )

    def read(saved: VerifiedFolder) -> tuple[Autoencoder, Preprocessing]:
        model = read_model(saved)
        autoencoder = Autoencoder(model.network, dropout=0.0)
        weights = _read_weights(saved, DECODER, autoencoder.own_state())
        autoencoder.load_state_dict(weights, strict=False, assign=True)
        return autoencoder.eval(), model.preprocessing

    return read_folder(folder, read)


def read_model(saved: VerifiedFolder) -> Model:
    """Return the model in a verified folder. Raise the same errors as `load_model`."""
    path = saved.path / DESCRIPTION
    description = Description.read(path, saved.read(DESCRIPTION))
    config = description.architecture
    calibration = description.calibration
    try:
        preprocessing = _read_preprocessing(saved, description)
        _check_architecture(config, preprocessing)
        lengths = description.kernels or []
        if len(lengths) != (3 if config.kernels else 0) or lengths != sorted(lengths):
            raise ValueError("kernels: expected three lengths, the shortest first, or null without")
        if lengths and (not preprocessing.sequence.channels or preprocessing.sequence.tokens):
            raise ValueError("kernels: expected none for steps with tokens")
        network = new_network(config, preprocessing, np.array(lengths, np.int64))
        sizes = len(preprocessing.labels), len(network.branches)
        if not calibration.has_sizes_of(*sizes, multi_label=preprocessing.multi_label):
            raise ValueError("calibration: not of as many numbers as there are labels or branches")
    except ValueError as error:
        problem = _short_message(error)
        raise CheckpointError(f"{path}: not a description of a model ({problem})") from None
    network.load_state_dict(_read_weights(saved, WEIGHTS, network.state_dict()), assign=True)
    network.eval()
    return Model(network, preprocessing).calibrated(calibration)


def _check_architecture(config: ModelConfig, preprocessing: Preprocessing) -> None:
    """Raise ValueError unless the `model` section of a saved model fits its preprocessing."""
    if config != config.architecture:
        raise ValueError("vectors, vectors_keep, freeze: a model on its own has none of these")
    sizes_of_words = getattr(preprocessing.sequence, "subwords", None)
    subwords = None if sizes_of_words is None else list(sizes_of_words)
    spelled = preprocessing.ngrams is not None and preprocessing.ngrams.has_spelling
    if (subwords, spelled) != (config.subwords, config.ngrams_spelling):
        raise ValueError("n-grams or subwords aren't those of the preprocessing")


def _read_preprocessing(saved: VerifiedFolder, description: Description) -> Preprocessing:
    """Return the preprocessing of a model folder, with the parts that have files of their own.

    Raises:
        ValueError: If values contradict each other or the files.
        CheckpointError: If a file is missing or damaged.
    """
    rules = description.preprocessing
    lists = {}
    if rules.kind != "features" or rules.row_features is not None:
        content = saved.read(VOCABULARY)
        lists = Vocabularies.read(saved.path / VOCABULARY, content).model_dump()
    encoder = None
    if description.pretrained is not None:
        try:
            encoder = PretrainedEncoder(saved.path / ENCODER, is_stored=True)
        except DataError as error:
            raise CheckpointError(*error.problems) from None
        if encoder.digest != description.pretrained:
            raise ValueError("pretrained: expected the encoder of this model")
    ngrams = _read_ngrams(saved, description.architecture, rules)
    return rules.completed(lists, ngrams, encoder)


def _read_ngrams(
    saved: VerifiedFolder, config: ModelConfig, rules: Preprocessing
) -> NgramVocabulary | None:
    """Return the n-grams in a model folder, or None if the model has none.

    Raises:
        ValueError: If the preprocessing has no such n-grams, or the arrays aren't valid.
        CheckpointError: If the file of n-grams is missing or damaged.
    """
    if config.ngrams is None:
        return None
    columns = gram_columns(config.ngrams, rules.token_names)
    found = read_tensors(saved, NGRAMS, config.max_ngrams * NGRAM_BYTES + 4 * BUCKETS)
    if found.keys() != {"keys", "idf"}:
        raise ValueError(f"{NGRAMS}: expected keys and idf of n-grams")
    return NgramVocabulary(columns, found["keys"].numpy(), found["idf"].numpy())


def read_tensors(saved: VerifiedFolder, name: str, size: int) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Args:
        saved: Folder of the file.
        name: Name of the file.
        size: Largest total size of its tensors in bytes.

    Raises:
        CheckpointError: If the file is missing, damaged or too large, or isn't safetensors.
    """
    content = saved.read(name, limit=size + LARGEST_HEADER)
    try:
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
    except (SafetensorError, LookupError, ValueError, TypeError, RuntimeError) as error:
        if ran_out_of_memory(error):
            raise
        raise CheckpointError(
            f"{saved.path / name}: not safetensors ({_short_message(error)})"
        ) from None
    return tensors


def _read_weights(
    saved: VerifiedFolder, name: str, expected: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file by name.

    Raises:
        CheckpointError: If the file is missing, damaged or too large, or if names, shapes or types
            differ from `expected`.
    """
    found = read_tensors(saved, name, sum(tensor.nbytes for tensor in expected.values()))
    try:
        check_tensors(found, expected)
    except ValueError as error:
        raise CheckpointError(f"{saved.path / name}: {error}") from None
    return found


def _short_message(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return invalid(error)
    return shorten(reason_of(error), 80)


def pack_model(model: Model) -> dict[str, bytes]:
    """Return the files of a model's folder: their contents by name, for a pickle."""
    return {name: b"".join(blocks_of(blocks)) for name, blocks in model_files(model).items()}


def unpack_model(files: object) -> Model:
    """Return the model whose files `pack_model` returned.

    Args:
        files: Value from a pickle, which may come from anyone.

    Raises:
        CheckpointError: If the value isn't a dict of the files of a model folder, or a file is
            missing, damaged or invalid.
    """
    is_whole = isinstance(files, dict) and all(isinstance(each, bytes) for each in files.values())
    if not isinstance(files, dict) or not is_whole or not files.keys() <= MODEL_FILES:
        raise CheckpointError("pickle: expected the files of a model folder")
    with TemporaryDirectory() as folder:
        write_folder(Path(folder, "best"), files)
        model = load_model(Path(folder, "best"))
        if model.preprocessing.pretrained is not None:
            model.preprocessing.pretrained.load()  # the folder is removed below
        return model
