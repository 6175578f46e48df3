"""The difference of two runs on the same examples, and the examples where they differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqtrain.api.events import RunLike
from seqtrain.api.labelled import NO_TEST, default_split
from seqtrain.api.predictions import SplitPredictions, predict_split
from seqtrain.errors import DataError
from seqtrain.evaluation.bootstrap import Difference, paired_bootstrap
from seqtrain.report import PredictedExample
from seqtrain.text import display_name, quote


@dataclass(frozen=True)
class RunDifference:
    """Two runs side by side.

    Attributes:
        runs: both runs or model folders.
        data: the file that was read.
        metrics: accuracy and macro F1, with an interval of their difference.
        num_examples: examples that both answered.
        left_out: examples that one of them alone answered.
        counts: examples by who is right: both, only_a, only_b, neither.
        rows: the pairs of answers that differ: those where one is right first, then the others,
            each from the most confident on.
        warnings: of reading the data, a line each.
    """

    runs: tuple[Path, Path]
    data: str
    metrics: list[Difference]
    num_examples: int
    left_out: int
    counts: dict[str, int]
    rows: list[tuple[PredictedExample, PredictedExample]]
    warnings: list[str]


def diff(
    a: RunLike,
    b: RunLike,
    *,
    split: str | None = None,
    data: str | None = None,
    device: str = "auto",
) -> RunDifference:
    """Compare two runs on the same split.

    Args:
        a: a run directory, a model folder, or what `fit` returned.
        b: the other one.
        split: test, validation or train, as the runs' configs name them; None: test, or validation
            where one of them has no test.
        data: a labelled file to compare on instead.
        device: auto, cpu, cuda, cuda:N or mps.

    Raises:
        CheckpointError, ConfigError, DataError: as for `evaluate`; or the runs name different data.
    """
    name = split or (default_split(a, b) if data is None else None)
    told = [NO_TEST] if name == "validation" and split is None else []
    first, second = (predict_split(run, split=name, data=data, device=device) for run in (a, b))
    pairs, left_out = _pairs(first, second)
    names: dict[str, int] = {}
    columns = [
        [names.setdefault(name, len(names)) for name in column]
        for column in zip(*((x.label, x.predicted, y.predicted) for x, y in pairs), strict=True)
    ]
    labels, of_a, of_b = (np.array(column, dtype=np.int64) for column in columns)
    right = [(x.is_correct, y.is_correct) for x, y in pairs]
    differing = [(x, y) for x, y in pairs if x.predicted != y.predicted]
    return RunDifference(
        runs=(first.run, second.run),
        data=first.data,
        metrics=paired_bootstrap(labels, of_a, of_b),
        num_examples=len(pairs),
        left_out=left_out,
        counts={
            "both": right.count((True, True)),
            "only_a": right.count((True, False)),
            "only_b": right.count((False, True)),
            "neither": right.count((False, False)),
        },
        rows=sorted(differing, key=_interest),
        warnings=list(dict.fromkeys(told + first.warnings + second.warnings)),
    )


def _interest(pair: tuple[PredictedExample, PredictedExample]) -> tuple[bool, float]:
    """Order pairs: where one is right first, then by the more confident answer."""
    a, b = pair
    return not (a.is_correct or b.is_correct), -max(a.probability, b.probability)


def _pairs(
    a: SplitPredictions, b: SplitPredictions
) -> tuple[list[tuple[PredictedExample, PredictedExample]], int]:
    """Return both answers to each example that both have, and how many only one of them has.

    Raises:
        DataError: the runs don't share data.
    """
    hint = "give one labelled file for both with --data"
    names = " and ".join(display_name(found.data) for found in (a, b))
    if a.data != b.data and a.digests != b.digests:
        raise DataError(f"{names} differ, so the runs can't be compared on them; {hint}")
    of_b = {(row.file, row.line): row for row in b.rows}
    pairs = [(row, of_b[row.file, row.line]) for row in a.rows if (row.file, row.line) in of_b]
    if not pairs:
        raise DataError(f"{names}: the runs hold out different rows; {hint}")
    for x, y in pairs:
        if x.label != y.label:
            raise DataError(
                f"{display_name(a.data)}:{x.line}: the label is {quote(x.label)} for one run and "
                f"{quote(y.label)} for the other; do both read the same column?"
            )
    return pairs, len(a.rows) + len(b.rows) - 2 * len(pairs)
