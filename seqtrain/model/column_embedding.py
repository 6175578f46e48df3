"""Embedding of several columns: vectors of tokens and numbers, concatenated.

With data.number_bins, each number is also encoded piecewise linearly, as one value per bin. The
value is 1 for a bin below the number, and 0 for a bin above it. For the bin that contains the
number, it is the fraction of the bin's width below the number.

K values of a row: ids of the token columns, then numbers. Indicators of missing numbers and the
times since numbers were seen may follow; they aren't put into bins. E width of the result.

Reference:
    Gorishniy, Rubachev, Babenko 2022, "On Embeddings for Numerical Features in Tabular Deep
    Learning", arXiv:2203.05556.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.model.initialization import draw_embedding, token_embedding
from seqtrain.sequences.columns.tables import ColumnTable

MAX_WIDTH = 64
"""Largest width of the embedding of a column."""
STEEPEST = 1e9
"""Largest slope of an encoded number, for bins without width in float32."""


class ColumnEmbedding(nn.Module):
    """One table of vectors for each token column, and with `width` a linear map of all columns.

    Args:
        coding: the fitted columns, with vocabularies and edges of bins.
        columns: number K of values of a row.
        width: width E of the result, or None to return vectors and numbers without a linear map.

    Attributes:
        width: width E of the result.
    """

    def __init__(self, coding: ColumnTable, columns: int, width: int | None = None) -> None:
        super().__init__()
        self.columns = columns
        sizes = [len(vocabulary) for vocabulary in coding.vocabularies]
        widths = [min(MAX_WIDTH, round(1.6 * size**0.56)) for size in sizes]
        self.tables = nn.ModuleList(map(token_embedding, sizes, widths))
        self.edges = [column.edges for column in coding.numbers]
        most = max(map(len, self.edges), default=0) - 1
        self.bins: Tensor | None
        self.register_buffer("bins", torch.zeros(2, len(self.edges), most) if most > 0 else None)
        numbers = columns - len(sizes) + max(0, most) * len(self.edges)
        self.width = sum(widths) + numbers
        self.linear = None
        if width is not None:
            self.linear = nn.Linear(self.width, width)
            self.width = width

    @property
    def embeddings(self) -> list[nn.Embedding]:
        """Table of vectors of each token column."""
        return [table for table in self.tables if isinstance(table, nn.Embedding)]

    def initialize(self, std: float, generator: torch.Generator) -> None:
        """Draw the tables from a normal distribution, and set the bins.

        The vector of <pad> becomes zero. The linear map isn't changed.

        Args:
            std: standard deviation of the distribution.
            generator: generator of random numbers.
        """
        for table in self.embeddings:
            draw_embedding(table, std, generator)
        if self.bins is None:
            return
        self.bins.zero_()
        for column, edges in enumerate(self.edges):
            edge = torch.tensor(edges, device="cpu")
            self.bins[0, column, : len(edge) - 1] = edge[:-1]
            self.bins[1, column, : len(edge) - 1] = (1 / edge.diff()).clamp(max=STEEPEST)

    def forward(self, values: Tensor) -> Tensor:
        """Return the embedding of rows or time steps, (…, K) -> (…, E)."""
        tables = self.embeddings
        parts = [
            functional.embedding(ids.long(), table.weight, sparse=table.sparse)
            for ids, table in zip(values.unbind(-1), tables, strict=False)
        ]
        numbers = values[..., len(tables) :]
        parts.append(numbers)
        if self.bins is not None:
            low, factor = self.bins
            shares = (numbers[..., : len(low), None] - low) * factor
            parts.append(shares.clamp(0, 1).flatten(-2))
        joined = torch.cat(parts, dim=-1)
        if self.linear is not None:
            joined = self.linear(joined)
        return joined
