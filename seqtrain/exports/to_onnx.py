"""Conversion of a trained classifier to an ONNX file.

B sequences, T longest length, F numbers of a time step, R numbers of row features, C classes.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from seqtrain.errors import ConfigError, missing_package
from seqtrain.model.branches.branch import ExampleInputs, PaddedBatch
from seqtrain.model.classifier import ClassifierNetwork

IDS, FEATURES, LENGTHS = "input_ids", "features", "lengths"
OPERATORS = 17
"""Version of the set of ONNX operators. It is from 2022, and all runtimes support it."""
LARGEST = 2**31 - 2**24
"""Largest total size of the weights in bytes. The format is limited to 2 GiB."""


class PaddedClassifier(nn.Module):
    """Trained classifier as a module of operations that ONNX has. It reads padded sequences.

    The module returns the calibrated probabilities, (B, C) float64.

    Args:
        network: The classifier.

    Attributes:
        inputs: Maps the name of each input to an example and the names of its variable axes.
    """

    def __init__(self, network: ClassifierNetwork) -> None:
        super().__init__()
        self.network = network
        self.inputs: ExampleInputs = {}
        if network.reads_ids:
            self.inputs[IDS] = torch.ones(2, 3, dtype=torch.int64), ["batch", "time"]
        else:
            self.inputs[FEATURES] = torch.ones(2, 3, network.input_size), ["batch", "time"]
        self.inputs[LENGTHS] = torch.tensor([3, 2]), ["batch"]
        for branch in network.branches:
            self.inputs |= branch.begin_export()

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the calibrated probabilities, (B, C) float64.

        Args:
            inputs: Tensors in the order of the attribute `inputs`.
        """
        named = dict(zip(self.inputs, inputs, strict=True))
        batch = PaddedBatch(inputs[0].transpose(0, 1), named[LENGTHS], named)
        logits = [branch.export(batch) for branch in self.network.branches]
        return self.network.probabilities(self.network.combine(logits))


def to_onnx(network: ClassifierNetwork) -> bytes:
    """Return the content of an ONNX file with the model.

    The output is `probabilities` (B, C) float64, with the calibration of the model. The inputs are:

    - `input_ids` (B, T) int64 or `features` (B, T, F) float32, with any padding,
    - `lengths` (B,) int64, each from 1 to T,
    - `static` (B, R) float32, if there are row features,
    - inputs for n-grams and subwords, if the model has them: see `ExportedModel.inputs`.

    Raises:
        ConfigError: If the model has a carried initial state, its weights are too many for one
            file, or a package isn't installed.
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
        warnings.simplefilter("ignore")  # a deprecation: the newer exporter lacks recurrent layers
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
