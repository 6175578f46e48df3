"""What belongs together in a comparison, under which words, in the table and in the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqtrain.workflows.compare import Comparison
    from seqtrain.workflows.recommendation import Row

CELLS = {"gru": "nn.GRU", "lstm": "nn.LSTM", "rnn": "nn.RNN"}
HEADINGS = {
    ("engine",): "engines (model.engine)",
    ("option",): "options of seqtrain (model.unroll, batching.sort, batching.bucketing)",
    ("recipe",): "{cell} as used elsewhere (sorted: by like length; mask: finds the last step)",
    ("wrong", "pooling"): "wrong (!): padding read as data, and right beside it",
}
"""Of the rows of some kinds."""


def sections(comparison: Comparison) -> list[tuple[str, list[Row]]]:
    """Return the heading and the rows of each section."""
    found = []
    for kinds, heading in HEADINGS.items():
        rows = [row for row in comparison.candidates if row.kind in kinds]
        found.append((heading.format(cell=CELLS[comparison.rnn]), rows))
    return [(heading, rows) for heading, rows in found if rows]
