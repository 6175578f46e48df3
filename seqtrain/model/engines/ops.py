"""Operations before and after the recurrence, computed by torch. Faster backends override them.

B sequences, N packed time steps, H width of a state. V rows of a table, E size of a row, P entries
of a sparse matrix of R rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from seqtrain.model.packing import PackedSequences
from seqtrain.model.pooling import AnyPooling, pool
from seqtrain.model.splitmix64 import numbers
from seqtrain.sequences.batch import entries_of
from seqtrain.sequences.transfer import to_device

DROP_BITS = 16
"""Number of random bits that decide about one unit. Probabilities are multiples of 2**-16."""


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
    """Reference implementation in torch, for any device and floating-point type.

    All operations are differentiable. Gradients reach tables, values, states, and the parameters of
    the pooling.
    """

    def sum_rows(self, table: Tensor, matrix: SparseRows, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return the products of some rows of a sparse matrix with a table: weighted sums of rows.

        Args:
            table: the vectors that are added up.
            matrix: weights of the vectors in each sum. It has V columns.
            rows: indices of the rows of the matrix to compute.
            sparse: True if the gradient of the table should be sparse.

        Shape:
            table: (V, E). rows: (B,) int64. Returns: (B, E). A row without entries gives zeros.

        Raises:
            ValueError, IndexError, RuntimeError: If a row or an entry is out of range.
        """
        rows = rows.to(table.device)
        entries, counts = entries_of(matrix.offsets, rows)
        which, weights = matrix.which[entries].long(), matrix.weights[entries].to(table.dtype)
        starts = counts.cumsum(0) - counts
        return functional.embedding_bag(
            which, table, starts, mode="sum", per_sample_weights=weights, sparse=sparse
        )

    def distinct_rows(self, table: Tensor, rows: Tensor, *, sparse: bool) -> Tensor:
        """Return some rows of a table.

        Args:
            table: the vectors.
            rows: indices of the rows, ascending and distinct.
            sparse: True if the gradient of the table should be sparse.

        Shape:
            table: (V, E). rows: (U,) int64. Returns: (U, E).
        """
        return functional.embedding(rows, table, sparse=sparse)

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

    def pool(self, pooling: AnyPooling, states: Tensor, batch_sizes: Tensor) -> Tensor:
        """Return the pooled states of packed sequences.

        Args:
            pooling: one pooling, or several.
            states: states of all packed time steps.
            batch_sizes: number of sequences at each time step.

        Shape:
            states: (N, H). batch_sizes: (T,), on the CPU. Returns: (B, H) for one pooling, or
            (B, number of poolings * H), in at least float32.
        """
        return pool(pooling, states, PackedSequences(batch_sizes, states.device))
