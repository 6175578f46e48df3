"""Which settings suit which data: rules, each with its reason. README.md here has the measurements.

A rule looks at `Facts` and gives `Choice`s. Settings that no rule names keep their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seqtrain.proposal.inspection import Facts

UPDATES, UPDATES_PER_CLASS = 1000, 20
"""Updates of the optimizer that training needs, about: so many, and so many more per class."""
EPOCHS = 2, 80
"""Passes over train, at least and at most."""
MANY_CLASSES = 20
"""Classes above which single words tell much, as those of intents."""
LONG = 40
"""Median time steps from which convolutions read an alphabet or one channel first."""
FEW_ROWS = 1000
"""Rows of a data set that learns better in small batches."""
REFIT_ROWS, REFIT_FRACTION = 200, 0.1
"""A refit gains with fewer rows per class than this, where at least this fraction is held out."""
LEARN_ALL_AT_MOST = 100
"""Series up to which all are learned: a fifth of them is too few to choose the best epoch by."""


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


def choices(facts: Facts, validation: object) -> list[Choice]:
    """Return what suits this data, section by section.

    Args:
        facts: of train.
        validation: `data.validation` of the config: a file, a fraction of train, or None.
    """
    found = [*_data(facts), *_batching(facts), *_model(facts), *_training(facts)]
    if isinstance(validation, float) and validation >= REFIT_FRACTION and _gains_by_refit(facts):
        why = "few rows per class: learned anew with those held out"
        found.append(Choice("training.refit", True, why))
    return found


def _gains_by_refit(facts: Facts) -> bool:
    measured = family(facts) in ("words", "characters", "series")
    return measured and facts.rows < REFIT_ROWS * len(facts.classes)


def should_hold_out(facts: Facts) -> bool:
    """Say whether a part of train is better spent on choosing the best epoch than learned."""
    return facts.rows > LEARN_ALL_AT_MOST or facts.reading.kind != "features"


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
    if kind == "series":
        yield Choice("data.standardize", "both", "each series by its own scale, and by train's")


def _batching(facts: Facts) -> Iterator[Choice]:
    if facts.rows < FEW_ROWS:
        yield Choice("batching.batch_size", 16, "few rows: more updates per epoch")


def _model(facts: Facts) -> Iterator[Choice]:
    kind, steps = family(facts), facts.lengths[1]
    if kind == "words":
        yield Choice("model.ngrams", [1, 2], "words and pairs of words, classified beside the GRU")
        yield Choice("model.subwords", [3, 5], "rare words are also read by their parts")
        if not _has_many_classes(facts):
            yield Choice("model.embedding_std", 0.1, "of the initial word vectors")
    elif kind == "symbols":
        yield Choice("model.ngrams", [1, 2], "symbols and pairs of symbols, beside the GRU")
    elif kind == "characters":
        longest = 5 if steps < 30 else 4
        yield Choice("model.ngrams", [1, longest], "characters in a row, classified beside the GRU")
    elif kind == "alphabet":
        yield Choice("model.ngrams", [1, 6], "symbols in a row, classified beside the GRU")
    first = {"alphabet": 64, "series": 32}.get(kind)
    if first is not None and steps >= LONG:
        why = "width, kernel, stride: a quarter of the steps"
        yield Choice("model.convolutions", [[first, 7, 2], [64, 5, 2]], why)
    if kind in ("characters", "alphabet"):
        yield Choice("model.embedding_dim", 64 if steps < 30 else 32, "few different characters")
    elif kind == "channels" or (kind == "series" and steps < LONG):
        yield Choice("model.embedding_dim", 32, "size that the channels are mapped to")
    if kind in ("characters", "alphabet") or (kind == "symbols" and facts.symbols < 500):
        yield Choice("model.embedding_std", 1.0, "few different tokens, each seen often")
    if kind == "characters":
        yield Choice("model.hidden_size", 192, "spellings of many words are learned by heart")
    if kind != "characters" or steps < 30:
        yield Choice("model.bidirectional", True, "read each sequence backward too")
    if (kind == "characters" and steps < 30) or kind == "alphabet":
        yield Choice("model.pooling", ["last", "mean", "max"], "joined: signals stand anywhere")
    elif kind == "words" and not _has_many_classes(facts):
        yield Choice("model.pooling", "attention", "learned weights over the words")
    elif kind != "channels":
        yield Choice("model.pooling", "max", "largest value of each unit over the sequence")
    yield from _dropout(facts, kind)


def _has_many_classes(facts: Facts) -> bool:
    return len(facts.classes) > MANY_CLASSES


def _dropout(facts: Facts, kind: str) -> Iterator[Choice]:
    if kind == "words":
        share = 0.3 if _has_many_classes(facts) else 0.6
        yield Choice("model.embedding_dropout", share, "of the word vectors")
        return
    yield Choice("model.dropout", 0.3, "before the head")
    if kind in ("series", "channels"):
        yield Choice("model.embedding_dropout", 0.0, "measurements aren't dropped")
    else:
        yield Choice("model.embedding_dropout", 0.1, "of the vectors of few different tokens")


def _training(facts: Facts) -> Iterator[Choice]:
    kind = family(facts)
    size = 16 if facts.rows < FEW_ROWS else 64
    per_epoch = -(-facts.rows * 9 // 10 // size)
    updates = UPDATES + UPDATES_PER_CLASS * len(facts.classes)
    updates *= 2 if kind == "characters" else 1
    fewest, most = EPOCHS
    epochs = max(fewest, min(most, round(updates / per_epoch)))
    yield Choice("training.max_epochs", epochs, f"about {epochs * per_epoch:,} updates")
    few = kind == "words" and not _has_many_classes(facts)
    lr = 0.002 if few else 0.004 if kind in ("words", "series") else 0.003
    yield Choice("training.lr", lr, "peak learning rate")
    if few:
        yield Choice("training.label_smoothing", 0.1, "of the target, spread over all classes")
    yield Choice("training.patience", None, "train all epochs; the best one is kept all the same")
    if kind == "series":
        yield Choice("training.augment", {"slice": 0.2}, "random windows, in training alone")
    elif kind == "channels" and facts.lengths[1] <= 100:
        yield Choice("training.augment", {"shift": 0.3}, "random offsets, in training alone")
