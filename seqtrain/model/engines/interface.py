"""What every engine is: how it runs a stack of layers, and what it reads.

Legend of shapes: B batch, N packed time steps, U distinct vectors, E input size, H hidden size,
L layers, D directions, S tensors of a state: 1 (h), or 2 (h and c of an LSTM).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

Between: TypeAlias = Callable[[Tensor, int], Tensor]
"""A layer's states (N, D * H), packed, and its number from 0 -> what the next layer reads."""


@dataclass(frozen=True, eq=False)
class DistinctInputs:
    """Packed time steps many of which share a vector, so that each vector is projected once.

    Shape:
        table: (U, E). index: row of the table of every packed time step, (N,), in PackedSequence's
        order. batch_sizes: sequences at every time step, (T,), int64, on the CPU.
    """

    table: Tensor
    index: Tensor
    batch_sizes: Tensor


class Engine(ABC):
    """Computes a stack of recurrent layers; `reason` is why `choose_engine` chose it."""

    name: ClassVar[str]

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
        """Run all layers over packed vectors: what `encoder(packed, start)` does.

        Args:
            encoder: torch's module, owner of the parameters; its own dropout isn't applied.
            inputs: the sequences, longest first.
            start: initial states, row by packed row; None: zeros.
            need_outputs: whether the states of all time steps are wanted too.
            between: changes a layer's states before the next layer reads them: dropout.

        Shape:
            inputs: N vectors of size E. start: (S, L * D, B, H). Returns: outputs (N, D * H) of the
            top layer, packed (None where not wanted), and the last valid states (S, L * D, B, H).
        """
