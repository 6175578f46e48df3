"""The interface of branches: parts of the classifier with separate logits.

B sequences, T longest length, N packed time steps, C classes, H hidden size, L layers,
D directions, S tensors of a state.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.interface import Engine
from seqtrain.engines.layout import Layout
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import SideInputs
from seqtrain.model.randomness import RandomNumbers
from seqtrain.model.subwords import Subwords


@dataclass
class ForwardContext:
    """Settings of one forward pass that aren't part of the batch, and its final states.

    Attributes:
        random: random numbers of the update, for dropout and random initial states, or None for
            prediction. Its `examples` are in the order of the rows of the batch.
        start: state before the first time step of each row, or None to use model.initial_state.
        bptt: largest number of time steps of a segment in truncated backpropagation through time,
            or None for whole sequences. It is only used with gradients.
        engine: engine that computes the recurrence, or None for the default of `choose_engine`.
        final_states: the last valid state of each row, or None until the recurrent branch sets it.

    Shape:
        start, final_states: (S, L * D, B, H), row by row of the batch. If the engine pads, the
        final states of an LSTM are only h (S = 1).
    """

    random: RandomNumbers | None = None
    start: Tensor | None = None
    bptt: int | None = None
    engine: Engine | None = None
    final_states: Tensor | None = None


VectorTable = nn.Embedding | Subwords
"""Module with a table of vectors, whose gradient is sparse if the attribute `sparse` is True."""


class Branch(nn.Module):
    """Part of the classifier with its own logits.

    A branch is one file in this folder and one entry of `BRANCHES`. In the state dict, the names of
    its parameters begin with the name of the branch. Only the first branch has no such prefix.

    Attributes:
        name: name of the branch in state dicts and in JSON. For a solved branch it is also its key
            in the section model.
        title: name of the branch on screens.
        default_weight: weight of the branch in predictions, relative to the other branches. The
            calibration may replace it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    default_weight: ClassVar[float] = 1.0

    @classmethod
    @abstractmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> Branch | None:
        """Return the branch for a config, or None if the config doesn't use it.

        The caller has set torch's default device to "meta", on which tensors have no memory; see
        `initialization`.

        Args:
            config: the section model of a config.
            spec: description of inputs and classes.
        """

    @abstractmethod
    def initialize(self, generator: torch.Generator) -> None:
        """Set the initial weights, after `draw_defaults` has drawn torch's default weights.

        Args:
            generator: generator of random numbers on the CPU.
        """

    @abstractmethod
    def forward(
        self, steps: Tensor, layout: Layout, side: SideInputs, context: ForwardContext
    ) -> Tensor:
        """Return the logits of a batch, (B, C), row by row of the layout.

        The same computation serves packed batches, padded batches and ONNX, which only know the
        operations of `Padded`. With `layout.every_step`, return the logits after each time step,
        (N, C): row n is the result for the sequence if it ended at that step.

        Args:
            steps: ids, or numbers in float32.
            layout: positions of the steps. `layout.pad` returns them padded.
            side: inputs besides the time steps.
            context: settings of the forward pass.

        Shape:
            steps: (N,) or (N, F) if the layout is `Packed`; (T, B) or (T, B, F) if it is `Padded`.
        """

    def tables(self) -> list[VectorTable]:
        """Return the tables whose gradients can be sparse.

        These are tables of which a batch uses only some rows.
        """
        return []

    @property
    def whole_sequence_key(self) -> str | None:
        """Config key that makes the branch need whole sequences, or None.

        Without such a key, `forward` takes layouts with `every_step`.
        """
        return f"model.{self.name}"
