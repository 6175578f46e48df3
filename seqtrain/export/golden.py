"""Golden rows: sequences with the answers of the run, so that every port can test itself.

They are made up from the vocabulary, or around the mean of each channel: no row of the data leaves
with an exported model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.examples import Example
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import SequenceStore
from seqtrain.errors import DataError
from seqtrain.evaluation.logits import predict_logits
from seqtrain.export.inputs import FEATURES, IDS, UNKNOWN_BUCKETS, UNKNOWN_COUNTS
from seqtrain.export.ngrams import NUMBERS, VALUES
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.runs.model_folder import Model

SEED = 0
LENGTHS = (1, 2, 3, 1, 5, 8, 13, 21, 34, 4, 55, 89, 6, 144)
"""Steps of the sequences; those of one step stand among longer ones."""
TEXTS = (
    "It's 20% OFF, isn't it? naïve  café — ½ price; don't\tmiss (item_7)!",
    "東京 ΟΔΥΣΣΕΥΣ 😀 e\u0301 x̄ \u00a0 Ⅻ we'll've",
)
"""Texts on which tokenizers tend to differ."""


@dataclass(frozen=True)
class GoldenRow:
    """A sequence and what the run makes of it.

    Attributes:
        sequence: as `predict` takes it: text, symbols, or vectors (null where missing).
        inputs: of the graph, for this row alone: ids, or scaled vectors, and what else it takes.
        label: the most probable one.
        probabilities: of each class.
    """

    sequence: Any
    inputs: dict[str, npt.NDArray[Any]]
    label: str
    probabilities: list[float]

    def to_json(self) -> dict[str, Any]:
        """Return the row as golden.jsonl holds it."""
        return {
            "sequence": self.sequence,
            **{name: values.tolist() for name, values in self.inputs.items()},
            "label": self.label,
            "probabilities": self.probabilities,
        }


def golden_rows(model: Model) -> list[GoldenRow]:
    """Return golden rows, the same for the same model, with the answers of its network."""
    rules = model.preprocessing.for_prediction()
    rows = []
    for sequence in _sequences(rules):
        read = np.float32(sequence) if rules.kind == "features" else sequence
        try:
            store, _ = rules.encode([Example(read, None, 1)], "golden rows")
        except DataError:  # empty or overlong, and the model takes none such
            continue
        logits = predict_logits(model.network, store, torch.device("cpu"))
        probabilities = torch.softmax(logits.double(), dim=1)[0].tolist()
        label = rules.labels[int(np.argmax(probabilities))]
        inputs = _inputs(model.network, store)
        rows.append(GoldenRow(_plain(sequence), inputs, label, probabilities))
    return rows


def _inputs(network: SequenceClassifier, store: SequenceStore) -> dict[str, npt.NDArray[Any]]:
    """Return what the graph takes for a store of one sequence, but its length and row."""
    values = np.array(store.values)
    if values.ndim > 1:
        return {FEATURES: values}
    given: dict[str, npt.NDArray[Any]] = {IDS: values.astype(np.int64)}
    if network.ngrams is not None:
        ids = torch.from_numpy(given[IDS])
        found = network.ngrams.find(PackedSequence(ids, torch.ones_like(ids)))
        given |= {NUMBERS: found.index.numpy(), VALUES: found.values.numpy()}
    if store.spellings is not None and store.words is not None:
        beyond = store.spellings >= 0
        given[IDS][beyond] = network.input_size + store.spellings[beyond]
        given |= {
            UNKNOWN_COUNTS: np.diff(store.words.offsets),
            UNKNOWN_BUCKETS: store.words.buckets,
        }
    return given


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
    words = [token.title() if place % 3 == 2 else token for place, token in enumerate(tokens)]
    return ("" if tokenizer == "char" else " ").join(words)


def _plain(sequence: Any) -> Any:
    """Return a sequence as JSON has it."""
    if not isinstance(sequence, np.ndarray):
        return sequence
    return [[None if np.isnan(x) else x for x in vector] for vector in sequence.tolist()]
