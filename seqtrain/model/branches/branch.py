"""The interface of branches: parts of the classifier with separate logits.

B sequences, T longest length, C classes, H hidden size, L layers, D directions, S tensors of a
state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from seqtrain.config.schema import ModelConfig
from seqtrain.model.engines.interface import Engine
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.packing import PaddedSequences
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Batch
from seqtrain.sequences.store import SequenceStore

STATIC = "static"
"""Name of the input of an exported model that holds the row features."""


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
        prepared: maps the name of a branch to the result of `Branch.prepare` for the store of the
            batch.
        final_states: the last valid state of each row, or None until the recurrent branch sets it.

    Shape:
        start, final_states: (S, L * D, B, H), row by row of the batch. If the engine pads, the
        final states of an LSTM are only h (S = 1).
    """

    random: RandomNumbers | None = None
    start: Tensor | None = None
    bptt: int | None = None
    engine: Engine | None = None
    prepared: Mapping[str, Any] = field(default_factory=dict)
    final_states: Tensor | None = None


class PaddedBatch:
    """A padded batch as an exported model reads it, time first.

    Attributes:
        steps: ids (T, B) or numbers (T, B, F). Steps of padding are 0.
        lengths: number of time steps of each row, (B,).
        valid: True where a step isn't padding, (T, B, 1).
        sequences: layout of the steps, for pooling and standardization.
        inputs: maps the name of each input of the graph to its tensor, such as row features.
    """

    def __init__(self, steps: Tensor, lengths: Tensor, inputs: Mapping[str, Tensor]) -> None:
        self.lengths = lengths
        self.inputs = inputs
        self.valid = valid_steps(steps, lengths)
        self.sequences = PaddedSequences(self.valid, lengths)
        mask = self.valid if steps.ndim == 3 else self.valid[:, :, 0]
        self.steps = torch.where(mask, steps, 0)


def valid_steps(steps: Tensor, lengths: Tensor) -> Tensor:
    """Return a mask of valid steps, (T, B, 1): False at padding.

    Args:
        steps: padded time steps, (T, B, …). Only T is used.
        lengths: number of valid steps of each row, (B,), on the CPU. The result is on the CPU.
    """
    return (torch.arange(steps.shape[0])[:, None] < lengths)[:, :, None]


class Table(Protocol):
    """Module with a table of vectors.

    Attributes:
        sparse: True if the gradient of `weight` is a sparse tensor, with the rows of a batch only.
    """

    sparse: bool

    @property
    def weight(self) -> Tensor:
        """The table, one vector per row."""


ExampleInputs = dict[str, tuple[Tensor, list[str]]]
"""Maps the name of an input of an exported model to an example tensor and its axis names.

The names are those of the leading axes, whose sizes vary.
"""


class Branch(nn.Module):
    """Part of the classifier with its own logits.

    A branch is one file in this folder and one entry of `BRANCHES`. In the state dict, the names of
    its parameters begin with the name of the branch. Only the first branch has no such prefix.

    Attributes:
        name: name of the branch in state dicts, in JSON, and on screens.
        fixed: True if `fit` sets all arrays of the branch, and training doesn't change them. The
            classifier leaves out such a branch in training mode.
        default_weight: weight of the branch in predictions, relative to the other branches. The
            calibration may replace it.
    """

    name: ClassVar[str]
    fixed: ClassVar[bool] = False
    default_weight: ClassVar[float] = 1.0

    @classmethod
    @abstractmethod
    def build(cls, config: ModelConfig, spec: InputSpec) -> Branch | None:
        """Return the branch for a config, or None if the config doesn't use it.

        The caller has set torch's default device to "meta", on which tensors have no memory; see
        `initialization`.

        Args:
            config: the section model of a config.
            spec: facts about inputs and classes.
        """

    @abstractmethod
    def initialize(self, generator: torch.Generator) -> None:
        """Set the initial weights, after `draw_defaults` has drawn torch's default weights.

        Args:
            generator: generator of random numbers on the CPU.
        """

    @abstractmethod
    def forward(self, batch: Batch, context: ForwardContext) -> Tensor:
        """Return the logits of a packed batch, (B, C), row by row of the batch.

        Args:
            batch: packed.
            context: settings of the forward pass.
        """

    @abstractmethod
    def export(self, batch: PaddedBatch) -> Tensor:
        """Return the logits of a padded batch, (B, C), by operations that ONNX has.

        Up to rounding, they equal the logits that `forward` returns in prediction.
        """

    def begin_export(self) -> ExampleInputs:
        """Prepare `export`, and return examples of the inputs that it reads.

        Call it before `export`. Time steps and lengths are always inputs, and aren't included.
        """
        return {}

    def fit(self, train: SequenceStore, seed: int) -> None:
        """Fit the arrays that training doesn't change, in place. By default, do nothing.

        Args:
            train: labelled sequences.
            seed: seed of all random choices.
        """

    def prepare(self, store: SequenceStore) -> Any:
        """Return values of all rows of a store for reuse in every epoch, or None by default.

        The caller passes the result as ``context.prepared[name]`` to each forward pass on rows of
        the store.
        """

    def tables(self) -> list[Table]:
        """Return the tables whose gradients can be sparse.

        These are tables of which a batch uses only some rows.
        """
        return []

    @property
    def whole_sequence_key(self) -> str | None:
        """Config key that makes the branch need whole sequences, or None.

        Without such a key, `step_logits` can return the logits after every time step.
        """
        return f"model.{self.name}"

    def step_logits(self, batch: Batch, context: ForwardContext) -> Tensor:
        """Return the logits after each time step of a packed batch, (N, C), in packed order.

        Row n equals the logits of the sequence if it ended at that step. Call it only if
        `whole_sequence_key` is None.

        Raises:
            NotImplementedError: If the branch always needs whole sequences.
        """
        raise NotImplementedError(f"{self.name}: needs whole sequences")
