"""Golden rows: made-up sequences with the predictions of a model, for tests of its ports.

The sequences are drawn from the vocabulary, or around the mean of each channel. To models of text,
`TRICKY_TEXTS` are given, too. So an exported model contains no row of the user's data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.encoder import encode_for_prediction
from seqtrain.sequences.examples import Sequences, Steps
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore
from seqtrain.tables.blocks import Coded, Float64s

DRAWN_LENGTHS = (1, 2, 3, 1, 5, 8, 13, 21, 34, 4, 55, 89, 6, 144, 0)
"""Time steps of the sequences. Length-1 rows are mixed with longer ones, to exercise packing."""
UNKNOWN_SYMBOL = "no such symbol"
TRICKY_TEXTS = (
    "It's 20% OFF, isn't it? naïve  café — ½ price; don't\tmiss (item_7)!",
    "東京 ΟΔΥΣΣΕΥΣ 😀 e\u0301 x̄ \u00a0 Ⅻ we'll've",
)
"""Texts on which tokenizers tend to differ."""
LARGEST_FLOAT = float(np.finfo(np.float32).max)


def golden_rows(fitted: Preprocessing) -> tuple[list[dict[str, Any]], SequenceStore]:
    """Return made-up sequences as JSON objects, and encoded.

    An object has a `sequence`, and `row_features` if there are any. Equal models get equal rows.
    Sequences that the model refuses are left out.
    """
    rules = fitted.for_prediction()
    draw = np.random.default_rng(0)
    sequences = _sequences(rules, draw)
    if rules.row_features is not None:
        sequences.static = _draw_steps(rules.row_features, draw, len(sequences))
    # Sequences that the model refuses, as empty or too long, have a problem.
    ((found, store),) = encode_for_prediction(rules, [sequences], "golden rows", bad_rows="blank")
    kept = np.array([row for row in range(len(found)) if row not in found.problems])
    found = found.at(kept)
    rows = []
    for index in range(len(found)):
        example = found.example(index)
        row = {"sequence": _as_json(example.sequence, rules)}
        if rules.row_features is not None and example.static is not None:
            row["row_features"] = rules.row_features.rows(example.static)[0]
        rows.append(row)
    return rows, store.__getitems__(kept)


def _as_json(sequence: Any, rules: Preprocessing) -> Any:
    """Return a sequence as a JSON value: a text, or a list of tokens or time steps.

    A missing number of a series is None.
    """
    if isinstance(sequence, np.ndarray):
        return [[None if np.isnan(x) else x for x in step] for step in sequence.tolist()]
    if isinstance(sequence, Steps) and rules.steps is not None:
        return rules.steps.rows(sequence)
    return sequence


def _sequences(rules: Preprocessing, draw: np.random.Generator) -> Sequences:
    """Return made-up sequences as a reader returns them.

    Their lengths are `DRAWN_LENGTHS`. With a `max_length`, one sequence is longer by 7 time steps,
    but has at most 1,007. If sequences are texts, `TRICKY_TEXTS` follow.
    """
    lengths = list(DRAWN_LENGTHS)
    content = list[Any]()
    if rules.lengths.max_length is not None:
        lengths.append(min(rules.lengths.max_length, 1000) + 7)
    for length in lengths:
        if rules.steps is None and isinstance(rules.sequence, ColumnTable):
            content.append(_draw_steps(rules.sequence, draw, length).numbers)
        elif rules.vocabulary is not None:
            content.append(_draw_tokens(rules, rules.vocabulary.tokens, draw, length))
    if rules.kind == "text":
        content += TRICKY_TEXTS
    count = len(lengths) if rules.steps is not None else len(content)
    lines = np.arange(1, count + 1)
    if rules.steps is None:
        return Sequences(content, lines)
    steps = _draw_steps(rules.steps, draw, sum(lengths))
    return Sequences(steps, lines, offsets=np.cumsum([0, *lengths]))


def _draw_tokens(
    rules: Preprocessing, known: Sequence[str], draw: np.random.Generator, length: int
) -> list[str] | str:
    """Return `length` random tokens: a list for sequences of tokens, or else a text.

    All tokens are known, except the last symbol of a list of more than two. In a text, blanks
    separate the tokens, and every third token is in title case.
    """
    tokens = [known[index] for index in draw.integers(len(known), size=length)]
    if rules.kind == "tokens":
        if length > 2:
            return [*tokens[:-1], UNKNOWN_SYMBOL]
        return tokens
    tokens[2::3] = [token.title() for token in tokens[2::3]]
    return " ".join(tokens)


def _draw_steps(table: ColumnTable, draw: np.random.Generator, length: int) -> Steps:
    """Return `length` random time steps: known and unknown tokens, and numbers around each mean.

    If missing values have indicators, about a tenth of the numbers is missing. Numbers beyond the
    range of float32 are clipped.
    """
    tokens = []
    for vocabulary in table.vocabularies:
        values = [*vocabulary.tokens, UNKNOWN_SYMBOL]
        tokens.append(Coded(draw.integers(len(values), size=length).astype(np.int32), values))
    scales = table.scales().values()
    means = [mean for mean, _ in scales]
    deviations = [deviation for _, deviation in scales]
    numbers: Float64s = draw.normal(means, deviations, (length, len(means)))
    if table.has_indicators:
        numbers[draw.random(numbers.shape) < 0.1] = np.nan
    clipped = numbers.clip(-LARGEST_FLOAT, LARGEST_FLOAT).astype(np.float32)
    return Steps(tuple(tokens), clipped)
