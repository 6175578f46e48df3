"""What every engine is: which cells it serves, how it runs a stack of layers, and what it reads.

Legend of shapes: B batch, N packed time steps, U distinct vectors, E input size, H hidden size,
L layers, D directions, P parts of a state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.model.cells import Cell

Between: TypeAlias = Callable[[Tensor, int], Tensor]
"""A layer's states (N, D * H), packed, and its number from 0 -> what the next layer reads."""


class ProjectedTable(Sized):
    """A table of vectors as an engine has projected it beforehand; its length is the table's.

    It stands for the table and the weights as they were: project again once either changed.
    """


@dataclass(frozen=True, eq=False)
class DistinctInputs:
    """Packed time steps many of which share a vector, so that each vector is projected once.

    Attributes:
        table: the distinct vectors (U, E), or what `Engine.project` made of them.
        index: row of the table of every packed time step (N,), in PackedSequence's order.
        batch_sizes: number of sequences at every time step (T,), int64, on the CPU.
    """

    table: Tensor | ProjectedTable
    index: Tensor
    batch_sizes: Tensor


class Engine(ABC):
    """Computes a stack of recurrent layers; `choose_engine` says which one a model has.

    Args:
        reason: why it was chosen.

    Attributes:
        name: as model.engine has it.
        cells: those it serves.
        reads_distinct: whether equal vectors of a batch are better given once, as `DistinctInputs`.
        reason: why it was chosen.
    """

    name: ClassVar[str]
    cells: ClassVar[tuple[Cell, ...]]
    reads_distinct: ClassVar[bool]

    def __init__(self, reason: str) -> None:
        self.reason = reason

    @classmethod
    def why_not(cls, cell: Cell, device: torch.device, dtype: torch.dtype) -> str:
        """Return in one line why it can't run; empty where it can.

        Args:
            cell: of the layers.
            device: of the weights.
            dtype: of the weights.
        """
        return "" if cell in cls.cells else f"it has no {cell.name}"

    @property
    def over_packed(self) -> Engine:
        """The engine for where all parts of the last states are wanted."""
        return self

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
            between: what becomes of a layer's states before the next layer reads them: dropout;
                None: nothing.

        Shape:
            inputs: N vectors of size E. start: (P, L * D, B, H). Returns: outputs (N, D * H) of the
            top layer, packed (None where not wanted), and the last valid states (P, L * D, B, H).
        """

    def project(self, table: Tensor, encoder: nn.RNNBase) -> ProjectedTable | None:
        """Project a table once for many runs without gradients, while the weights stay as they are.

        Args:
            table: the vectors (U, E), such as the weight of an embedding.
            encoder: whose first layer reads them.

        Returns:
            What `DistinctInputs.table` may be; None where this engine has no use for it.
        """
        return None
