"""Quick tests of what tells a label: words and characters of texts, and codes of numbers."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.cell_kinds import Integers
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.roles import MOST_DETAILED

HASHED_FEATURES = 1 << 14
"""Number of buckets into which n-grams of characters are hashed."""
MOST_CHARACTERS = 200
"""Number of first characters of a text that are read."""
SCORED_EVERY = 4
"""Every fourth text is held out."""
SMOOTHING = 0.1
NEARLY_ALWAYS = 0.98
"""Share of rows from which on a word is said to tell the label."""
SHUFFLES, CLEARLY = 10, 5
"""Number of shuffles that measure what chance tells, and standard deviations above it."""


class TellingWord(NamedTuple):
    """The first or the last word of texts, which tells their labels.

    Attributes:
        place: first or last.
        word: The most frequent of these words.
        share: Share of the rows in which the word tells the label.
    """

    place: str
    word: str
    share: float


def telling_words(column: ColumnProfile, label: ColumnProfile) -> Iterator[TellingWord]:
    """Yield the first and the last word of texts or lists of symbols, each if it tells the label.

    Args:
        column: Column of a sequence.
        label: Column of the label.
    """
    if column.kind not in ("text", "symbols") or column.steps + column.words < 2:
        return
    parts = [_ends_of(column, value) for value in column.values]
    for place, name in ((0, "first"), (-1, "last")):
        words = [own[place] if own else "" for own in parts]
        ends, codes = np.unique(words, return_inverse=True)
        if len(ends) > MOST_DETAILED * label.distinct:
            continue
        pairs = np.zeros((len(ends), len(label.values)))
        np.add.at(pairs, (codes[column.codes], label.codes), 1)
        again = pairs[pairs.sum(axis=1) > 1]  # a word that occurs once tells nothing
        told, largest = again.max(axis=1).sum() / column.rows, pairs.sum(axis=0).max()
        if told >= NEARLY_ALWAYS and largest < NEARLY_ALWAYS * column.rows:
            yield TellingWord(name, str(ends[pairs.sum(axis=1).argmax()]), float(told))


def _ends_of(column: ColumnProfile, value: Any) -> list[str]:
    """Return the symbols of a list, or the first and the last word of a text."""
    if column.kind == "symbols":
        return column.strings_of(value)
    text = str(value)
    return [*text.split(maxsplit=1)[:1], *text.rsplit(maxsplit=1)[-1:]]


def error_by_characters(texts: Sequence[str], labels: Integers) -> float:
    """Return the share of errors of naive Bayes on one to three characters, on held-out texts.

    Args:
        texts: The texts.
        labels: Code of the label of each text.
    """
    classes, labels = np.unique(labels, return_inverse=True)
    counts = np.full((len(classes), HASHED_FEATURES), SMOOTHING)
    is_learned = np.arange(len(texts)) % SCORED_EVERY > 0
    grams = [_ngrams(text[:MOST_CHARACTERS]) for text in texts]
    for at in np.flatnonzero(is_learned).tolist():
        np.add.at(counts[labels[at]], grams[at], 1)
    prior = np.log(np.bincount(labels[is_learned], minlength=len(classes)) + SMOOTHING)
    weights = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))
    scored = np.flatnonzero(~is_learned).tolist()
    wrong = 0
    for at in scored:
        scores = prior + weights[:, grams[at]].sum(axis=1)
        wrong += int(scores.argmax() != labels[at])
    return wrong / max(1, len(scored))


def _ngrams(text: str) -> npt.NDArray[np.int64]:
    """Return the buckets of the n-grams of one to three characters of a text."""
    letters = np.array(list(map(ord, text)), dtype=np.int64)
    pairs = letters[:-1] * 1_000_003 + letters[1:]
    triples = pairs[:-1] * 1_000_003 + letters[2:]
    return np.concatenate((letters, pairs, triples)) % HASHED_FEATURES


def information(codes: Integers, ids: Integers, labels: Integers) -> float:
    """Return the information of the codes of steps about the labels of their ids, above chance.

    It is a share of the entropy of the labels, or 0 if chance often has as much. Chance is measured
    by shuffling the labels of ids: the steps of one id have one label, so that rare codes always
    seem to tell it.

    Args:
        codes: Code of each step, (N,).
        ids: Id of each step, (N,), from 0.
        labels: Code of the label of each id.
    """
    if not len(codes):
        return 0.0
    used = np.unique(ids)
    draw = np.random.default_rng(0)
    found = _mutual_information(codes, labels[ids])
    by_chance = []
    for _ in range(SHUFFLES):
        shuffled = labels.copy()
        shuffled[used] = draw.permutation(labels[used])
        by_chance.append(_mutual_information(codes, shuffled[ids]))
    above = float(found - np.mean(by_chance))
    if above < CLEARLY * np.std(by_chance):
        return 0.0
    return above / max(_entropy(np.bincount(labels[ids])), 1e-9)


def _mutual_information(one: Integers, other: Integers) -> float:
    one, other = (np.unique(codes, return_inverse=True)[1] for codes in (one, other))
    cells = np.bincount(one * (other.max() + 1) + other)
    return _entropy(np.bincount(one)) + _entropy(np.bincount(other)) - _entropy(cells)


def _entropy(counts: Integers) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
