"""The interface of engines, which compute a stack of recurrent layers, and their inputs.

Letters of shapes: B batch, N packed time steps, U distinct vectors, E input size, H hidden size,
L layers, D directions, S tensors of a state: 1 (h), or 2 (h and c of an LSTM).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

Between: TypeAlias = Callable[[Tensor, int], Tensor]
"""Function that is called between two layers, for example for dropout.

Takes the packed states of the lower layer (N, D * H) and its index, from 0. Returns the inputs of
the next layer.
"""


@dataclass(frozen=True, eq=False)
class DistinctInputs:
    """Packed time steps that share vectors, so that each distinct vector is projected once.

    Attributes:
        table: the distinct vectors, (U, E).
        index: row of the table for each packed time step, (N,) int64.
        batch_sizes: number of sequences at each time step, (T,) int64, on the CPU.
    """

    table: Tensor
    index: Tensor
    batch_sizes: Tensor


class Engine(ABC):
    """Implementation of a stack of recurrent layers.

    Attributes:
        name: value of model.engine that selects the engine.
        pads: True if the engine always pads batches. Then the recurrent branch doesn't cut
            sequences into segments in prediction.
        reason: reason why `choose_engine` chose the engine, for screens.
    """

    name: ClassVar[str]
    pads = False

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @abstractmethod
    def run(
        self,
        encoder: nn.RNNBase,
        inputs: PackedSequence | DistinctInputs,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers over packed sequences, as ``encoder(packed, start)`` does.

        Args:
            encoder: torch's module, which holds the parameters. Its own dropout isn't applied.
            inputs: the sequences, longest first: N vectors of size E.
            start: initial states of the packed rows, (S, L * D, B, H), or None for zeros.
            need_outputs: True to return the states of all time steps.
            between: function for the states between two layers, such as dropout, or None.

        Returns:
            The packed states of the top layer, (N, D * H), or None without `need_outputs`; and the
            last valid states of all layers, (S, L * D, B, H).
        """
