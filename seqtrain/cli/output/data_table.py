"""The figures of a data set: what `fit` shows first, and `data` too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seqtrain.cli.output.columns import Column
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.summary import SplitSummary


def data_table(preprocessing: Preprocessing, summaries: Mapping[str, SplitSummary]) -> list[Column]:
    """Return the figures of the splits, one column each."""
    vocabulary = preprocessing.vocabulary
    classes = f"{len(preprocessing.labels)} classes"
    heading = f"{classes}, {len(vocabulary):,} tokens" if vocabulary else classes
    rows: dict[str, Callable[[SplitSummary], str]] = {
        "rows": lambda s: f"{s.rows:,}",
        "tokens" if vocabulary else "steps": lambda s: f"{s.steps:,}",
        "length: shortest": lambda s: f"{s.length_quantiles[0]:,}",
        "length: 5 %": lambda s: f"{s.length_quantiles[1]:,}",
        "length: median": lambda s: f"{s.length_quantiles[2]:,}",
        "length: 95 %": lambda s: f"{s.length_quantiles[3]:,}",
        "length: longest": lambda s: f"{s.length_quantiles[4]:,}",
        "unknown tokens": lambda s: f"{s.unknown:.2%}",
        "also in train": lambda s: f"{s.repeats:,}",
        "always the largest class": lambda s: f"{s.majority:.2%}",
    }
    if not vocabulary:
        del rows["unknown tokens"]
    return [
        Column(heading, list(rows), "words"),
        *(Column(name, [row(each) for row in rows.values()]) for name, each in summaries.items()),
    ]


def padding_line(padding: tuple[float, float]) -> str:
    """Say how much of train's batches is padding."""
    without, within = padding
    return f"padding: {without:.1%} in random batches, {within:.1%} in buckets of like length"
