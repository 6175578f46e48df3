"""Golden rows: sequences with the predictions of the run, so that every port can test itself.

They are made up from the vocabulary, or around the mean of each channel: no row of the data leaves
with an exported model.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from seqtrain.data.examples import Example
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import DataError
from seqtrain.evaluation.logits import check_finite, predict_logits
from seqtrain.runs.model_folder import Model

SEED = 0
LENGTHS = (1, 2, 3, 1, 5, 8, 13, 21, 34, 4, 55, 89, 6, 144)
"""Steps of the sequences; those of one step stand among longer ones."""
TEXTS = (
    "It's 20% OFF, isn't it? naïve  café — ½ price; don't\tmiss (item_7)!",
    "東京 ΟΔΥΣΣΕΥΣ 😀 e\u0301 x̄ \u00a0 Ⅻ we'll've",
)
"""Texts on which tokenizers tend to differ."""


def golden_rows(model: Model) -> tuple[list[Any], SequenceStore, torch.Tensor]:
    """Return made-up sequences, as JSON and encoded, and each class's probability, (B, C).

    The same model gives the same ones.
    """
    rules = model.preprocessing.for_prediction()
    kept: list[Any] = []
    examples: list[Example] = []
    for sequence in _sequences(rules):
        example = Example(sequence, None, len(kept) + 1)
        try:
            rules.encode([example], "golden rows")
        except DataError:  # empty or overlong, and the model takes none such
            continue
        examples.append(example)
        kept.append(_plain(sequence))
    store, _ = rules.encode(examples, "golden rows")
    logits = predict_logits(model.network, store, torch.device("cpu"))
    return kept, store, check_finite(logits, store).double().softmax(dim=1)


def _sequences(rules: Preprocessing) -> Iterator[Any]:
    """Yield sequences as a reader would, also empty and overlong ones."""
    lengths = [*LENGTHS, 0]
    if rules.lengths.max_length is not None:
        lengths.append(min(rules.lengths.max_length, 1000) + 7)
    if rules.kind == "features":
        numbers = np.random.default_rng(SEED)
        for length in lengths:
            vectors = numbers.normal(rules.mean, rules.std, (length, len(rules.mean)))
            if rules.missing == "mask":
                vectors[numbers.random(vectors.shape) < 0.1] = np.nan
            yield vectors.astype(np.float32)
        return
    assert rules.vocabulary is not None, "text and tokens have a vocabulary"
    draw = random.Random(SEED)
    known = rules.vocabulary.tokens
    for length in lengths:
        tokens = [draw.choice(known) for _ in range(length)]
        if rules.kind == "tokens":
            yield [*tokens[:-1], "no such symbol"] if length > 2 else tokens
        else:
            yield _as_text(tokens, rules.tokenizer)
    if rules.kind == "text":
        yield from TEXTS


def _as_text(tokens: list[str], tokenizer: str) -> str:
    """Write tokens as a text that holds most of them, some in capitals."""
    if tokenizer == "byte":
        return "".join(tokens[:200]).encode("latin-1", "replace").decode("utf-8", "replace")
    if tokenizer == "bpe":
        return "".join(tokens).replace("Ġ", " ")
    words = [token.title() if index % 3 == 2 else token for index, token in enumerate(tokens)]
    return ("" if tokenizer == "char" else " ").join(words)


def _plain(sequence: Any) -> Any:
    if not isinstance(sequence, np.ndarray):
        return sequence
    return [[None if np.isnan(x) else x for x in vector] for vector in sequence.tolist()]
