"""Embedding of several columns: vectors of tokens and numbers, concatenated.

K numbers of a row: ids of each token column, then numbers. E width of the result.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.data.columns.column_table import ColumnTable
from seqtrain.model.initialization import draw_embedding, token_embedding

MAX_WIDTH = 64
"""Largest width of the embedding of a column."""


class ColumnEmbedding(nn.Module):
    """One table of vectors for each token column, and a linear map of all columns together.

    Args:
        coding: the columns with their vocabularies.
        columns: numbers K of a row.
        width: width E of the result, or None to return vectors and numbers without a linear map.
    """

    def __init__(self, coding: ColumnTable, columns: int, width: int | None = None) -> None:
        super().__init__()
        self.columns = columns
        sizes = [len(vocabulary) for vocabulary in coding.vocabularies]
        widths = [min(MAX_WIDTH, round(1.6 * size**0.56)) for size in sizes]
        self.tables = nn.ModuleList(map(token_embedding, sizes, widths))
        numbers = columns - len(sizes)
        self.width = sum(widths) + numbers if width is None else width
        self.linear = None if width is None else nn.Linear(sum(widths) + numbers, width)

    @property
    def embeddings(self) -> list[nn.Embedding]:
        """Tables of the token columns."""
        return [table for table in self.tables if isinstance(table, nn.Embedding)]

    def initialize(self, std: float, generator: torch.Generator) -> None:
        """Draw the tables from a normal distribution with this standard deviation."""
        for table in self.embeddings:
            draw_embedding(table, std, generator)

    def forward(self, values: Tensor) -> Tensor:
        """Return the vectors of rows, (…, K) -> (…, E)."""
        tables = self.embeddings
        parts = [
            functional.embedding(ids.long(), table.weight, sparse=table.sparse)
            for ids, table in zip(values.unbind(-1), tables, strict=False)
        ]
        joined = torch.cat([*parts, values[..., len(tables) :]], dim=-1)
        return joined if self.linear is None else self.linear(joined)
