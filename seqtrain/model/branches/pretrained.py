"""The pretrained branch: a linear classifier on the vectors of a frozen encoder of texts.

The encoder belongs to the preprocessing: it turns each text into a vector of length 1 once. The
branch multiplies these vectors by weights that scikit-learn's logistic regression finds.

B sequences, E numbers of a vector, C classes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.layout import Layout
from seqtrain.model.branches.branch import Branch, ForwardContext
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.store import SequenceStore

INVERSE_PENALTY = 10.0
"""C of the logistic regression. On folds of four small sets, 10 had the best accuracy in the mean
of 3, 10, 30 and 100 (tests/benchmarks/README.md)."""


class PretrainedBranch(Branch):
    """Branch whose logits are linear in the vector of each text.

    Args:
        size: number of numbers of a vector.
        num_classes: number of classes.

    Attributes:
        weight: (C, E). bias: (C,).
    """

    name = "pretrained"
    fixed = True
    weight: Tensor
    bias: Tensor

    def __init__(self, size: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(num_classes, size))
        self.register_buffer("bias", torch.zeros(num_classes))

    @classmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> PretrainedBranch | None:
        """Return the branch, or None without model.pretrained."""
        return None if spec.vectors is None else cls(spec.vectors, spec.num_classes)

    def initialize(self, generator: torch.Generator) -> None:
        """Do nothing: weights are zero until `solve` sets them."""

    @torch.no_grad()
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits, (B, C), without gradients; see `Branch.forward`.

        Raises:
            ValueError: If the batch has no vectors.
        """
        if side.vectors is None:
            raise ValueError("pretrained: expected the vectors of the texts")
        return side.vectors @ self.weight.T + self.bias
