"""Answers after every step of each sequence of a file or of standard input, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from seqtrain.api.classifier import Classifier
from seqtrain.api.ensemble import Ensemble
from seqtrain.api.events import RunLike
from seqtrain.api.loading import load
from seqtrain.api.predict import arrivals, input_options
from seqtrain.data.chunks import encoded_chunks
from seqtrain.data.encoding import EncodingReport, unknown_shares
from seqtrain.errors import ConfigError
from seqtrain.evaluation.carried import CarriedStates
from seqtrain.evaluation.prefixes import predict_step_logits
from seqtrain.runs.members import name_one
from seqtrain.text import display_name

ROWS_AT_ONCE = 128
"""Sequences at once: each has as many answers as steps."""


@dataclass(frozen=True, eq=False)
class StepPredictions:
    """The answers for one sequence, had it ended after its first step, its second, and so on.

    Attributes:
        labels: of the columns of probabilities.
        probabilities: after every step, in [0, 1].
        tokens: what each step is, as the model reads it; None for feature vectors.
        tokenizer: what split a text into them; None where they came split.
        unknown: share of the tokens that the model doesn't know, in [0, 1].

    Shape:
        probabilities: (T, C) float64.
    """

    labels: tuple[str, ...]
    probabilities: Tensor
    tokens: list[str] | None
    tokenizer: str | None
    unknown: float

    @cached_property
    def answers(self) -> list[int]:
        """Index of the most probable label after every step."""
        ranks = self.probabilities.argsort(dim=1, descending=True, stable=True)
        indexes: list[int] = ranks[:, 0].tolist()
        return indexes

    @property
    def turns(self) -> list[int]:
        """The steps, from 1, after which the answer is another than before."""
        return [step for step, (a, b) in enumerate(pairwise(self.answers), start=2) if a != b]

    @property
    def decided(self) -> int:
        """The step, from 1, from which on the answer stays what it is at the end."""
        return max(self.turns, default=1)


def predict_steps(
    source: str,
    run: RunLike = None,
    *,
    device: str = "auto",
    classifier: Classifier | None = None,
    report: EncodingReport | None = None,
    input_format: str | None = None,
) -> Iterator[StepPredictions]:
    """Classify every row of a file, or of standard input, after every step.

    A model that reads in one direction reads each sequence once. A bidirectional one has to read
    each prefix: T (T + 1) / 2 steps for a sequence of T.

    Args:
        source: path of a file, or "-" for standard input; read as `predict` reads it.
        run: a run directory, a model folder, or what `fit` returned; None: the newest run.
        device: auto, cpu, cuda, cuda:N or mps.
        classifier: a loaded one, in place of run and device.
        report: counts up the rows, and those cut or empty.
        input_format: as for `predict`.

    Yields:
        The answers for one row, in input order; the last of them is what `predict` answers.

    Raises:
        DataError: a row can't be read; the answers for the rows before it come first.
    """
    classifier = classifier or load(run, device=device)
    if isinstance(classifier, Ensemble):
        raise ConfigError(f"--steps: {name_one(classifier.path)}")
    network, preprocessing = classifier.network, classifier.preprocessing
    chunks = encoded_chunks(
        classifier.for_prediction,
        arrivals(source, input_options(preprocessing.reading, source, input_format)),
        display_name(source),
        report,
        rows=ROWS_AT_ONCE,
    )
    carried = CarriedStates()
    for examples, store in chunks:
        logits = predict_step_logits(network, store, classifier.device, carried)
        rows = zip(examples, logits, unknown_shares(store), strict=True)
        for example, of_steps, unknown in rows:
            yield StepPredictions(
                classifier.labels,
                torch.softmax(of_steps.double(), dim=1),
                preprocessing.tokens(example.sequence),
                preprocessing.tokenizer if preprocessing.kind == "text" else None,
                unknown,
            )
