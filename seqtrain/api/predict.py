"""Predictions for the rows of a file or of standard input, and reconstructions of rows.

Rows are predicted as they arrive. T steps of a sequence, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import eq
from typing import Any

import torch
from torch import Tensor

from seqtrain.api.classifier import load, one_model, refuse_multi_label
from seqtrain.api.named_runs import RunLike, directory_of
from seqtrain.api.prediction import NO_EXAMPLE, PredictionStream
from seqtrain.api.prediction_input import input_parts, missing_borders
from seqtrain.engines.devices import select_device
from seqtrain.errors import parameter
from seqtrain.evaluation.logits import EVALUATION_BATCHING
from seqtrain.evaluation.prefixes import predict_step_logits
from seqtrain.model.carried import CarriedStates
from seqtrain.runs.model_folder import load_autoencoder
from seqtrain.sequences.batch import map_batches
from seqtrain.sequences.decisions import best_class
from seqtrain.sequences.encoder import EncodingReport, encode_for_prediction, unknown_shares
from seqtrain.sequences.examples import Example, chunked
from seqtrain.sequences.plan import plan_in_order_of_length

LEAVING_BLANK = f"to leave its label empty and go on: {parameter('bad_rows', 'blank')}"
STEP_ROWS = 128
"""Number of sequences that are read together in `predict_steps`. Each has a prediction per step."""


def predict(
    source: Any,
    run: RunLike = None,
    *,
    device: str = "auto",
    report: EncodingReport | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    keep: Sequence[str] = (),
    empty: str | None = None,
    bad_rows: str | None = None,
) -> PredictionStream:
    """Classify every row of a file, a folder, or standard input.

    A file is read as the training file was, with these exceptions:

    - A .txt file and standard input have one sequence per line. For a model of feature vectors, a
      line is a JSON list of vectors.
    - If the model was trained on whole files, a .txt file is one sequence, and so is each file of a
      folder.

    Args:
        source: Path, or - for standard input; or sequences as `Classifier.predict` takes them.
        run: What `fit` or `load` returned, a run directory, a model folder, or None for the newest
            run.
        device: auto, cpu, cuda, cuda:N or mps.
        report: Receives counts of the rows that were read, cut or empty, or None.
        input_format: csv, tsv, jsonl, fasttext, txt or lines, or None to go by the file's name.
        delimiter: Delimiter of a csv file: comma, semicolon, tab or pipe; or None for the one of
            training.
        encoding: Encoding of a file, such as cp1252; or None for the one of training.
        keep: Columns whose cells come with the predictions, as `Prediction.example.kept`.
        empty: Treatment of empty sequences: error, unk or blank, as for
            `Classifier.predict_parts`.
        bad_rows: Treatment of rows that can't be read: error, or blank to make no prediction. None
            for blank if the model was trained with ``data.bad_rows: drop``, and error if not.

    Returns:
        An iterator that yields one prediction per row, in input order, as soon as it is known. Its
        `to_frame()` and `probabilities` compute all of them.

    Raises:
        CheckpointError: If there is no complete model.
        ConfigError: If columns are to be kept of a format without columns, or there is no such
            device or encoding.
        DataError: If a file is missing, or a row can't be read and `bad_rows` is error. For a row,
            the iterator raises it after the predictions for the rows before it.
        RunError: If memory ran out, or a prediction isn't finite.
    """
    classifier = load(run, device=device)
    fitted = classifier.preprocessing
    report = report or EncodingReport()
    parts, name = input_parts(
        source, fitted, input_format, delimiter, encoding, keep, report.remarks
    )
    advice = []
    if bad_rows is None:
        advice = [LEAVING_BLANK]
    report.remarks += missing_borders(fitted.schema)
    found = classifier.predict_parts(parts, name, report, empty, bad_rows, advice)
    return PredictionStream(found, fitted.label_set.values)


@dataclass(frozen=True, eq=False)
class StepPredictions:
    """Predictions for one sequence after each of its steps, as if it ended there.

    Attributes:
        labels: Labels of the columns of `probabilities`.
        probabilities: Probability of each class after every step, (T, C) float64.
        tokens: Token of each step as the model reads it, or None for feature vectors.
        tokenizer: Name of the tokenizer that split the text, or None if it was already split.
        unknown: Share of the tokens that the model doesn't know, in [0, 1].
        example: The sequence, its line, file and kept columns.
        thresholds: Threshold of each class, or empty to predict the most probable class.
    """

    labels: tuple[str, ...]
    probabilities: Tensor
    tokens: list[str] | None
    tokenizer: str | None
    unknown: float
    example: Example = NO_EXAMPLE
    thresholds: Sequence[float] = ()

    @cached_property
    def predicted(self) -> list[int]:
        """Index in `labels` of the predicted label after every step."""
        indexes: list[int] = best_class(self.probabilities, self.thresholds).tolist()
        return indexes

    @property
    def decided(self) -> int:
        """Number of the first step, from 1, after which the predicted label stays the same."""
        changes = enumerate(pairwise(self.predicted), start=2)
        return max((step for step, (a, b) in changes if a != b), default=1)


def predict_steps(
    source: Any,
    run: RunLike = None,
    *,
    device: str = "auto",
    report: EncodingReport | None = None,
    input_format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    keep: Sequence[str] = (),
) -> Iterator[StepPredictions]:
    """Classify every row of a file, or of standard input, after each of its time steps.

    A model that only reads forward reads each sequence once. Any other model reads each prefix
    separately: T (T + 1) / 2 steps for a sequence of T steps.

    Arguments are as for `predict`. An empty sequence is an error if the model was trained with
    ``data.empty: error``.

    Returns:
        An iterator that yields the predictions for each row, in input order. It raises the errors
        of rows.

    Raises:
        ConfigError: If the run is an ensemble, or the task is multi-label.
        CheckpointError, ConfigError, DataError, RunError: If `predict` would raise it.
    """
    one = one_model(load(run, device=device), parameter("steps"))
    refuse_multi_label(one)
    fitted = one.preprocessing
    report = report or EncodingReport()
    parts, name = input_parts(
        source, fitted, input_format, delimiter, encoding, keep, report.remarks
    )

    def predictions() -> Iterator[StepPredictions]:
        carried = CarriedStates()
        small = (piece for part in parts for piece in chunked(part, STEP_ROWS))
        for part, store in encode_for_prediction(fitted.for_prediction(), small, name, report):
            every_logits = predict_step_logits(one.network, store, one.device, carried)
            unknown = unknown_shares(store, len(fitted.sequence.tokens))
            for index, logits in enumerate(every_logits):
                example = part.example(index)
                yield StepPredictions(
                    one.labels,
                    torch.softmax(logits.double(), dim=1),
                    fitted.step_texts(example.sequence),
                    fitted.sequence.tokenizer_name,
                    unknown[index],
                    example,
                    one.decision_thresholds,
                )

    return predictions()


@dataclass(frozen=True)
class Reconstruction:
    """A sequence that an autoencoder encoded and decoded.

    Attributes:
        sequence: Tokens of the sequence as the model reads them.
        tokens: Tokens that the decoder returned.
        agreement: Share of steps at which `sequence` and `tokens` are equal, in [0, 1]. It is
            relative to the longer of them.
    """

    sequence: tuple[str, ...]
    tokens: tuple[str, ...]
    agreement: float


def reconstruct(
    source: Any, run: RunLike = None, *, max_steps: int = 100, device: str = "auto"
) -> Iterator[Reconstruction]:
    """Yield the reconstruction of each row of a file, of standard input, or of a table.

    All errors are raised while the result is iterated over.

    Args:
        source: As for `predict`.
        run: Run with a pretrained autoencoder (``pretraining.objective: autoencoder``), as
            `predict` takes it.
        max_steps: Largest number of tokens to decode for each row.
        device: As for `predict`.

    Raises:
        CheckpointError: If there is no run, or the run has no autoencoder.
        ConfigError, DataError: If `predict` would raise it.
    """
    chosen = select_device(device)
    autoencoder, fitted = load_autoencoder(directory_of(run).pretrained)
    autoencoder.to(chosen)
    assert fitted.vocabulary is not None, "an autoencoder's kind is text or tokens"
    known = fitted.vocabulary.tokens
    parts, name = input_parts(source, fitted)
    for _, store in encode_for_prediction(fitted.for_prediction(), parts, name):
        found: list[list[int]] = [[]] * len(store)
        plan = plan_in_order_of_length(store.lengths, EVALUATION_BATCHING)
        for batch, decoded in map_batches(
            lambda batch: autoencoder.reconstruct(batch, max_steps), store, plan, chosen
        ):
            for row, ids in zip(batch.examples, batch.restore(decoded), strict=True):
                found[row] = ids
        for row, ids in enumerate(found):
            read = store[row][0].tolist()
            share = sum(map(eq, read, ids)) / max(len(read), len(ids))
            sequence, tokens = (tuple(known[i] for i in each) for each in (read, ids))
            yield Reconstruction(sequence, tokens, share)
