"""The trained classifier as a module on padded sequences, of operations that ONNX has.

B sequences, T longest length, F numbers of a time step, C classes.
"""

import torch
from torch import Tensor, nn

from seqtrain.model.branches.branch import ExampleInputs, PaddedBatch
from seqtrain.model.classifier import ClassifierNetwork

IDS, FEATURES, LENGTHS = "input_ids", "features", "lengths"


class PaddedClassifier(nn.Module):
    """Probabilities of padded sequences, (B, C) float64, with the weights of a network.

    Attributes:
        inputs: for each input by name an example, and names of its variable axes.
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
        """Return the calibrated probabilities; the inputs are in the order of `self.inputs`."""
        named = dict(zip(self.inputs, inputs, strict=True))
        batch = PaddedBatch(inputs[0].transpose(0, 1), named[LENGTHS], named)
        logits = [branch.export(batch) for branch in self.network.branches]
        return self.network.probabilities(self.network.combine(logits))
