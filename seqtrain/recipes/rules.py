"""Which settings suit which data: rules, each with its reason. README.md here has the measurements.

A rule looks at `Facts` and gives `Choice`s. Settings that no rule names keep their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seqtrain.recipes.inspection import Facts

UPDATES = 2000
"""Updates that a small data set is trained for, about."""
EPOCHS = 3, 60
"""Passes over train, at least and at most."""


@dataclass(frozen=True)
class Choice:
    """One key of the config.

    Attributes:
        key: as `model.pooling`.
        value: what it is set to.
        why: the reason, a few words.
    """

    key: str
    value: Any
    why: str


def choices(facts: Facts) -> list[Choice]:
    """Return what suits this data, section by section."""
    return [*_data(facts), *_batching(facts), *_model(facts), *_training(facts)]


def family(facts: Facts) -> str:
    """Name the family of data that the rules tell apart.

    Returns:
        words, characters, alphabet (few characters, long), symbols, series (one channel) or
        channels (several).
    """
    kind = facts.reading.kind
    if kind == "features":
        return "series" if facts.channels == 1 else "channels"
    if kind == "tokens" or facts.text is None:
        return "symbols"
    return facts.text.split


def _data(facts: Facts) -> Iterator[Choice]:
    kind = family(facts)
    if kind in ("characters", "alphabet") and facts.text is not None:
        yield Choice("data.tokenizer", "char", facts.text.why)
        if not facts.text.lowercase:
            yield Choice("data.lowercase", False, "capitals may tell")
    if kind == "words" and facts.rows >= 1000:
        yield Choice(
            "data.min_count", 2, "words seen once are read as unknown, which is so learned"
        )
    if kind == "series":
        yield Choice("data.standardize", "both", "one channel: its own scale may mislead")


def _batching(facts: Facts) -> Iterator[Choice]:
    if facts.rows < 1000:
        yield Choice("batching.batch_size", 16, f"{facts.rows:,} rows: more updates per epoch")


def _model(facts: Facts) -> Iterator[Choice]:
    kind = family(facts)
    if kind == "words":
        yield Choice("model.ngrams", [1, 2], "words and pairs of words, classified beside the GRU")
        yield Choice("model.subwords", [3, 5], "rare words are also read by their parts")
    elif kind == "characters":
        yield Choice("model.ngrams", [1, 5], "up to 5 characters in a row, beside the GRU")
    elif kind == "alphabet":
        yield Choice("model.ngrams", [1, 6], "up to 6 symbols in a row, beside the GRU")
    elif kind == "symbols":
        yield Choice("model.ngrams", [1, 2], "symbols and pairs of symbols, beside the GRU")
    elif kind == "series":
        stem = [[32, 7, 2], [64, 5, 2]]
        yield Choice("model.convolutions", stem, "width, kernel, stride: a quarter of the steps")
    if kind in ("characters", "alphabet", "symbols"):
        yield Choice("model.embedding_dim", 64, "few different tokens")
        yield Choice("model.embedding_std", 1.0, "few different tokens, each seen often")
    elif kind == "words":
        yield Choice("model.embedding_std", 0.3, "of the initial word vectors")
    yield Choice("model.bidirectional", True, "read each sequence backward too")
    if kind in ("words", "series", "characters"):
        yield Choice("model.pooling", "max", "largest value of each unit over the sequence")
    elif kind == "alphabet":
        pooling = ["last", "mean", "max"]
        yield Choice("model.pooling", pooling, "joined: signals may stand anywhere")
    yield Choice("model.dropout", 0.3 if kind in ("series", "channels") else 0.5, "before the head")
    if kind == "words":
        yield Choice("model.embedding_dropout", 0.5, "of the word vectors")


def _training(facts: Facts) -> Iterator[Choice]:
    size = 16 if facts.rows < 1000 else 64
    per_epoch = -(-facts.rows * 9 // 10 // size)
    fewest, most = EPOCHS
    epochs = max(fewest, min(most, round(UPDATES / per_epoch)))
    yield Choice("training.max_epochs", epochs, f"about {epochs * per_epoch:,} updates")
    yield Choice("training.lr", 0.003, "peak learning rate")
    yield Choice("training.schedule", "linear", "falls to zero over all epochs")
    yield Choice("training.patience", None, "train all epochs; the best one is kept all the same")
    if family(facts) == "series":
        yield Choice("training.augment", {"slice": 0.2}, "random windows, in training alone")
    if family(facts) == "channels" and facts.lengths[1] <= 100:
        yield Choice("training.augment", {"shift": 0.3}, "random offsets, in training alone")
