"""Columns of tokens and numbers as one vector: embeddings side by side, and the numbers.

N rows, K numbers of a row: ids of each column of tokens, then numbers. E width of the result.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqtrain.data.column_coding import ColumnCoding
from seqtrain.data.vocabulary import PAD

WIDEST = 64
"""Largest width of the embedding of a column."""


class ColumnEmbedding(nn.Module):
    """Embeds each column of tokens by a table of its own; one linear map makes a step of all.

    `columns` is K. Without a `width` there is no map: embeddings and numbers are the result.
    """

    def __init__(self, coding: ColumnCoding, columns: int, width: int | None = None) -> None:
        super().__init__()
        self.columns = columns
        sizes = [len(vocabulary) for vocabulary in coding.vocabularies]
        widths = [min(WIDEST, round(1.6 * size**0.56)) for size in sizes]
        self.tables = nn.ModuleList(map(nn.Embedding, sizes, widths))
        numbers = columns - len(sizes)
        self.width = sum(widths) + numbers if width is None else width
        self.linear = None if width is None else nn.Linear(sum(widths) + numbers, width)

    @property
    def embeddings(self) -> list[nn.Embedding]:
        """The tables, a row for each token."""
        return [table for table in self.tables if isinstance(table, nn.Embedding)]

    @torch.no_grad()
    def initialize(self, std: float, generator: torch.Generator) -> None:
        """Draw the tables from a normal distribution of this standard deviation."""
        for table in self.embeddings:
            nn.init.normal_(table.weight, std=std, generator=generator)
            table.weight[PAD].zero_()

    def forward(self, values: Tensor) -> Tensor:
        """Return the vectors (…, E) of rows (…, K)."""
        tables = self.embeddings
        parts = [
            functional.embedding(ids.long(), table.weight, sparse=table.sparse)
            for ids, table in zip(values.unbind(-1), tables, strict=False)
        ]
        joined = torch.cat([*parts, values[..., len(tables) :]], dim=-1)
        return joined if self.linear is None else self.linear(joined)
