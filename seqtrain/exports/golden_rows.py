"""Golden rows: made-up sequences with the predictions of a model, for tests of its ports.

The sequences are drawn from the vocabulary, or around the mean of each channel. To models of text,
`TEXTS` are given, too. So an exported model contains no row of the user's data.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from seqtrain.errors import DataError
from seqtrain.evaluation.logits import check_finite, predict_logits
from seqtrain.runs.model_folder import Model
from seqtrain.sequences.columns.column_table import ColumnTable
from seqtrain.sequences.columns.series_column import SeriesColumn
from seqtrain.sequences.examples import Example, Steps
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore

SEED = 0
LENGTHS = (1, 2, 3, 1, 5, 8, 13, 21, 34, 4, 55, 89, 6, 144)
"""Time steps of the sequences. Length-1 rows are mixed with longer ones, to exercise packing."""
UNKNOWN_SYMBOL = "no such symbol"
TEXTS = (
    "It's 20% OFF, isn't it? naïve  café — ½ price; don't\tmiss (item_7)!",
    "東京 ΟΔΥΣΣΕΥΣ 😀 e\u0301 x̄ \u00a0 Ⅻ we'll've",
)
"""Texts on which tokenizers tend to differ."""


@dataclass(frozen=True)
class GoldenRows:
    """Made-up sequences with the predictions of a model.

    Attributes:
        rows: JSON object of each sequence: `sequence`, and `facts` if there are row features.
        store: The encoded sequences, in the same order.
        probabilities: Probability of each class, as the model predicts, (B, C) float64.
    """

    rows: list[dict[str, Any]]
    store: SequenceStore
    probabilities: torch.Tensor


def golden_rows(model: Model) -> GoldenRows:
    """Return made-up sequences with the predictions of a model.

    Equal models get equal rows. Sequences that the model refuses are left out.

    Raises:
        RunError: If a prediction isn't finite.
    """
    rules = model.preprocessing.for_prediction()
    draw = np.random.default_rng(SEED)
    rows: list[dict[str, Any]] = []
    examples: list[Example] = []
    for sequence in _sequences(rules):
        static = None if rules.row_features is None else _draw_steps(rules.row_features, draw, 1)
        example = Example(sequence, None, len(rows) + 1, static=static)
        try:
            list(rules.encode_chunks([[example]], "golden rows"))
        except DataError:  # empty or overlong, and the model refuses such sequences
            continue
        examples.append(example)
        row = {"sequence": _as_json(sequence, rules)}
        if rules.row_features is not None and static is not None:
            row["facts"] = rules.row_features.rows(static)[0]
        rows.append(row)
    ((_, store),) = rules.encode_chunks([examples], "golden rows")
    logits = check_finite(predict_logits(model.network, store, torch.device("cpu")), store)
    return GoldenRows(rows, store, model.network.probabilities(logits))


def _as_json(sequence: Any, rules: Preprocessing) -> Any:
    """Return a sequence of a reader as a JSON value: a text, or a list of tokens or time steps.

    A missing number of a series is None.
    """
    if isinstance(sequence, np.ndarray):
        return [[None if np.isnan(x) else x for x in step] for step in sequence.tolist()]
    if isinstance(sequence, Steps) and rules.steps is not None:
        return rules.steps.rows(sequence)
    return sequence


def _sequences(rules: Preprocessing) -> Iterator[Any]:
    """Yield made-up sequences as a reader returns them.

    Their lengths are `LENGTHS`, and one is empty. With a `max_length`, one sequence is longer by 7
    time steps, but has at most 1,007. If sequences are texts, `TEXTS` follow.
    """
    lengths = [*LENGTHS, 0]
    if rules.lengths.max_length is not None:
        lengths.append(min(rules.lengths.max_length, 1000) + 7)
    numbers, symbols = np.random.default_rng(SEED), random.Random(SEED)
    for length in lengths:
        if isinstance(rules.sequence, SeriesColumn):
            scale = rules.sequence.scale
            values = numbers.normal(scale.mean, scale.std, (length, len(scale)))
            if rules.sequence.has_indicators:
                values[numbers.random(values.shape) < 0.1] = np.nan
            yield as_float32(values)
        elif rules.steps is not None:
            yield _draw_steps(rules.steps, numbers, length)
        elif rules.vocabulary is not None:
            yield _draw_tokens(rules, rules.vocabulary.tokens, symbols, length)
    if rules.kind == "text":
        yield from TEXTS


def _draw_tokens(
    rules: Preprocessing, known: Sequence[str], draw: random.Random, length: int
) -> list[str] | str:
    """Return `length` random tokens: a list for sequences of tokens, or else a text.

    All tokens are known, except the last symbol of a list of more than two. In a text, blanks
    separate the tokens, and every third token is in title case.
    """
    tokens = [draw.choice(known) for _ in range(length)]
    if rules.kind == "tokens":
        return [*tokens[:-1], UNKNOWN_SYMBOL] if length > 2 else tokens
    return " ".join(x.title() if i % 3 == 2 else x for i, x in enumerate(tokens))


def _draw_steps(table: ColumnTable, draw: np.random.Generator, length: int) -> Steps:
    """Return `length` random time steps: known and unknown tokens, and numbers around each mean.

    If missing values have indicators, about a tenth of the numbers is missing.
    """
    tokens = tuple(
        tuple(draw.choice([*vocabulary.tokens, UNKNOWN_SYMBOL], length).tolist())
        for vocabulary in table.vocabularies
    )
    scales = table.scales().values() if table.numbers else []
    means, deviations = [mean for mean, _ in scales], [deviation for _, deviation in scales]
    numbers = draw.normal(means, deviations, (length, len(means)))
    if table.has_indicators:
        numbers[draw.random(numbers.shape) < 0.1] = np.nan
    return Steps(tokens, as_float32(numbers))


def as_float32(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return numbers as float32. Numbers beyond its range are clipped, and NaN remains."""
    largest = float(np.finfo(np.float32).max)
    return numbers.clip(-largest, largest).astype(np.float32)
