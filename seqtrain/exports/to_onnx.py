"""A trained classifier as an ONNX file: ids or feature vectors, and lengths, to probabilities."""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from seqtrain.errors import ConfigError, missing_package
from seqtrain.exports.padded import PaddedClassifier
from seqtrain.model.classifier import ClassifierNetwork

OPERATORS = 17
"""Version of ONNX's operators: those of 2022, which all runtimes know."""
LARGEST = 2**31 - 2**24
"""Bytes of weights that one file holds at most; the format ends at 2 GiB."""


def to_onnx(network: ClassifierNetwork) -> bytes:
    """Return the model as an ONNX file.

    Inputs are `input_ids` (B, T) int64 or `features` (B, T, F) float32, padded with anything, and
    `lengths` (B,) int64, each from 1 to T; with data.static `static` (B, F) float32; for n-grams
    and subwords those that `ExportedModel.inputs` makes. The output is `probabilities` (B, C)
    float32, calibrated as the model is.

    Raises:
        ConfigError: the model can't be exported, its weights are too many for one file, or a
            package isn't installed.
    """
    if network.config.initial_state == "carried":
        raise ConfigError(
            "model.initial_state: carried can't be exported: a prediction depends on the rows of "
            "its group before it, and an ONNX file keeps nothing from call to call"
        )
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing_package("export", error.name, "export") from None
    size = sum(weight.nbytes for weight in network.state_dict().values())
    if size > LARGEST:
        raise ConfigError(f"export: {size:,} bytes of weights; an ONNX file holds {LARGEST:,}")
    model = PaddedClassifier(network).eval()
    axes = {name: dict(enumerate(sizes)) for name, (_, sizes) in model.inputs.items()}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its age: the newer exporter lacks recurrent layers
        file = Path(folder, "model.onnx")
        torch.onnx.export(
            model,
            tuple(example for example, _ in model.inputs.values()),
            str(file),
            input_names=[*model.inputs],
            output_names=["probabilities"],
            dynamic_axes=axes | {"probabilities": {0: "batch"}},
            opset_version=OPERATORS,
            dynamo=False,
        )
        return file.read_bytes()
