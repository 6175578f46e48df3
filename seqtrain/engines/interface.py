"""The interface of engines and of operations, with a reference implementation in torch.

An engine computes a stack of recurrent layers. Operations are the other computations
of a network, before and after it. `Ops` computes them by torch, for any device. A faster backend
overrides what it speeds up.

B sequences, N packed time steps, U distinct vectors, E size of a vector, H width of a state,
L layers, D directions, S tensors of a state: 1 (h), or 2 (h and c of an LSTM). V rows of a table,
P entries of a sparse matrix of R rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.engines.layout import Layout
from seqtrain.engines.splitmix64 import numbers
from seqtrain.sequences.batch import entries_of
from seqtrain.sequences.transfer import move_together, to_device

DROP_BITS = 16
"""Number of random bits that decide about one unit. Probabilities are multiples of 2**-16."""

Between: TypeAlias = Callable[[Tensor, int], Tensor]
"""Function that is called between two layers, for example for dropout.

Takes the states of the lower layer (steps, D * H) and its index, from 0. Returns the inputs of the
next layer.
"""


@dataclass(frozen=True, eq=False)
class DistinctInputs:
    """Vectors of time steps, of which several may share one, so that it is projected once.

    Attributes:
        table: the distinct vectors, (U, E).
        index: row of the table for each time step, int64, packed (N,) or padded (T, B).
    """

    table: Tensor
    index: Tensor

    def vectors(self) -> Tensor:
        """Return the vector of each time step, (steps, E)."""
        return self.table[self.index]


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
        inputs: Tensor | DistinctInputs,
        layout: Layout,
        start: Tensor | None = None,
        *,
        need_outputs: bool = True,
        between: Between | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """Run all layers over the sequences, as ``encoder(packed, start)`` does.

        Args:
            encoder: torch's module, which holds the parameters. Its own dropout isn't applied.
            inputs: vector of each time step, (steps, E), or distinct vectors.
            layout: positions of the time steps.
            start: initial states of the rows, (S, L * D, B, H), or None for zeros.
            need_outputs: True to return the states of all time steps.
            between: function for the states between two layers, such as dropout, or None.

        Returns:
            The states of the top layer, (steps, D * H), or None without `need_outputs`; and the
            last valid states of all layers, (S, L * D, B, H).
        """


@dataclass(frozen=True)
class SparseRows:
    """Sparse matrix of R rows with P entries.

    Attributes:
        which: column of each entry, row by row, (P,) int32. A row may repeat a column.
        weights: value of each entry, (P,).
        offsets: row r has the entries from offsets[r] to offsets[r + 1] - 1. (R + 1,) int64.
    """

    which: Tensor
    weights: Tensor
    offsets: Tensor

    @classmethod
    def of(cls, which: Tensor, weights: Tensor, counts: Tensor) -> SparseRows:
        """Return the matrix with `counts[r]` entries in row r, (R,) int64."""
        return cls(which, weights, functional.pad(counts.cumsum(0), (1, 0)))


@dataclass(frozen=True)
class DropRule:
    """Random numbers, threshold and scale of one dropout: they fix which units become 0.

    Each row has a SplitMix64 stream, which gives the random bits of its units. The seed of row n's
    stream is itself a random number: number keys[n] of the stream with seed seeds[n].

    Attributes:
        seeds: one seed for all rows, or one seed per row, (N,) int64.
        keys: one index per row, (N,) int64.
        least: a unit is kept if its 16 random bits, as a signed number, are at least `least`.
        scale: factor by which kept units are multiplied.
    """

    seeds: Tensor | int
    keys: Tensor
    least: int
    scale: float


class Ops:
    """Operations around the recurrence, by torch, for any device and floating-point type.

    All operations are differentiable. Gradients reach tables, values, states, and the parameters of
    the pooling.
    """

    def sum_rows(self, table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return the products of some rows of a sparse matrix with a table: weighted sums of rows.

        Args:
            table: the vectors that are added up.
            matrix: weights of the vectors in each sum. It has V columns. If it is on the CPU and
                the table isn't, the device isn't waited for.
            rows: indices of the rows of the matrix to compute, on the device of the matrix.
            sparse: True if the gradient of the table should be sparse.

        Shape:
            table: (V, E). rows: (B,) int64. Returns: (B, E). A row without entries gives zeros.

        Raises:
            ValueError, IndexError, RuntimeError: If a row or an entry is out of range.
        """
        entries, counts = entries_of(matrix.offsets, rows.to(matrix.offsets.device))
        parts = [matrix.which[entries].long(), matrix.weights[entries], counts.cumsum(0) - counts]
        which, weights, starts = move_together(parts, table.device)
        return functional.embedding_bag(
            *(which, table, starts),
            mode="sum",
            per_sample_weights=weights.to(table.dtype),
            sparse=sparse,
        )

    def drop(self, values: Tensor, rule: DropRule) -> Tensor:
        """Return `values` after dropout: each unit times the rule's scale, or times 0.

        Shape:
            values: (N, E). Returns: (N, E).
        """
        # Seeds are computed where the keys are. On the CPU that saves kernel launches of CUDA.
        seeds = to_device(numbers(rule.seeds, rule.keys), values.device)
        width = values.shape[1]
        per_number = 64 // DROP_BITS
        columns = torch.arange(-(-width // per_number), dtype=torch.int64, device=values.device)
        units = numbers(seeds.unsqueeze(1), columns).view(torch.int16)[:, :width]
        kept = (units >= rule.least).to(values.dtype)
        return values * kept.mul_(rule.scale)

    def pool(self, pooling: Any, states: Tensor, layout: Layout) -> Tensor:
        """Return the pooled states of whole sequences, (B, H), in at least float32.

        Args:
            pooling: a `Pooling` of the model, with its summaries, its kind and its parameters.
            states: states of all time steps, packed (N, H) or padded (T, B, H).
            layout: positions of the time steps.
        """
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        pooled: Tensor = pooling.finalize(pooling.summarize(states, layout))
        return pooled


class PaddedOps(Ops):
    """Operations over padded layouts, by operations that ONNX has."""

    def sum_rows(self, table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return weighted sums of rows of a table; see `Ops.sum_rows`.

        ONNX has no sum over ranges. Such a sum is a difference of sums from the beginning, which
        are in float64, so that the result is exact to float32.
        """
        terms = table[matrix.which].double() * matrix.weights.double()[:, None]
        sums_from_start = functional.pad(terms.cumsum(0), (0, 0, 1, 0))
        first, beyond = matrix.offsets[rows], matrix.offsets[rows + 1]
        return (sums_from_start[beyond] - sums_from_start[first]).to(table.dtype)
