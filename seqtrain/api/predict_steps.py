"""Predictions after every step of each sequence of a file or of standard input, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from os import PathLike

import torch
from torch import Tensor

from seqtrain.api.events import RunLike
from seqtrain.api.load import load
from seqtrain.api.predict import arrivals, path_of_file
from seqtrain.api.predictors import Classifier, Predictor, one_model
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.data.readers import ReadOptions
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.prefixes import predict_step_logits
from seqtrain.text import display_name

ROWS_AT_ONCE = 128
"""Sequences at once: each has as many predictions as steps."""


@dataclass(frozen=True, eq=False)
class StepPredictions:
    """The predictions for one sequence, had it ended after its first step, its second, and so on.

    Attributes:
        labels: of the columns of probabilities.
        probabilities: after every step, (T, C) float64.
        tokens: what each step is, as the model reads it; None for feature vectors.
        tokenizer: what split a text into them; None where they came split.
        unknown: share of the tokens that the model doesn't know, in [0, 1].
    """

    labels: tuple[str, ...]
    probabilities: Tensor
    tokens: list[str] | None
    tokenizer: str | None
    unknown: float

    @cached_property
    def predicted(self) -> list[int]:
        """Index of the most probable label after every step."""
        ranks = self.probabilities.argsort(dim=1, descending=True, stable=True)
        indexes: list[int] = ranks[:, 0].tolist()
        return indexes

    @property
    def turns(self) -> list[int]:
        """The steps, from 1, after which another label is predicted than before."""
        return [step for step, (a, b) in enumerate(pairwise(self.predicted), start=2) if a != b]

    @property
    def decided(self) -> int:
        """The step, from 1, from which on the predicted label stays what it is at the end."""
        return max(self.turns, default=1)


def predict_steps(
    source: str | PathLike[str],
    run: RunLike = None,
    *,
    device: str = "auto",
    classifier: Predictor | None = None,
    report: EncodingReport | None = None,
    input_format: str | None = None,
) -> Iterator[StepPredictions]:
    """Classify every row of a file, or of standard input, after every step.

    A model that reads in one direction reads each sequence once. One that looks ahead reads each
    prefix again: T (T + 1) / 2 steps for a sequence of T. Arguments and errors are those of
    `predict`; an ensemble is refused.

    Returns:
        The predictions for each row, in input order; the last of a row is that of `predict`.
    """
    path = path_of_file(source)
    one = one_model(classifier or load(run, device=device), "--steps")
    options = one.preprocessing.reading.for_input(path, input_format)
    return _predictions(one, path, report, options)


def _predictions(
    one: Classifier, path: str, report: EncodingReport | None, options: ReadOptions
) -> Iterator[StepPredictions]:
    fitted, carried = one.preprocessing, CarriedStates()
    chunks = fitted.for_prediction().encode_chunks(
        arrivals(path, options),
        display_name(path),
        report,
        rows=ROWS_AT_ONCE,
    )
    for examples, store in chunks:
        logits = predict_step_logits(one.network, store, one.device, carried)
        rows = zip(examples, logits, unknown_shares(store), strict=True)
        for example, of_steps, unknown in rows:
            yield StepPredictions(
                one.labels,
                torch.softmax(of_steps.double(), dim=1),
                fitted.tokens(example.sequence),
                fitted.tokenizer if fitted.kind == "text" else None,
                unknown,
            )
