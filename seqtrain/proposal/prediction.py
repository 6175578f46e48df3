"""Quick tests of what tells a label: characters of texts, and codes of numbers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

BUCKETS = 1 << 14
"""Number of buckets into which n-grams of characters are hashed."""
PROBED_CHARACTERS = 200
"""Number of first characters of a text that are read."""
HELD_OUT = 4
"""Every fourth text is held out."""
SMOOTHING = 0.1


def error_by_characters(texts: Sequence[str], labels: npt.NDArray[np.integer]) -> float:
    """Return the share of errors of naive Bayes on one to three characters, on held-out texts.

    Args:
        texts: The texts.
        labels: Code of the label of each text.
    """
    classes, labels = np.unique(labels, return_inverse=True)
    counts = np.full((len(classes), BUCKETS), SMOOTHING)
    is_learned = np.arange(len(texts)) % HELD_OUT > 0
    grams = [_ngrams(text[:PROBED_CHARACTERS]) for text in texts]
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
    letters = np.array([*map(ord, text)], dtype=np.int64)
    pairs = letters[:-1] * 1_000_003 + letters[1:]
    triples = pairs[:-1] * 1_000_003 + letters[2:]
    return np.concatenate((letters, pairs, triples)) % BUCKETS


def shared_information(one: npt.NDArray[np.integer], other: npt.NDArray[np.integer]) -> float:
    """Return the mutual information of two codings, adjusted for chance, as a share of entropy.

    It is about 0 for independent codings, and 1 for equal ones. The expectation by chance is the
    first term of its expansion, (K - 1)(C - 1) / 2N.

    Args:
        one: Codes, (N,).
        other: Other codes, (N,).
    """
    one, other = (np.unique(codes, return_inverse=True)[1] for codes in (one, other))
    if not len(one):
        return 0.0
    sizes = one.max() + 1, other.max() + 1
    cells = np.unique(one * sizes[1] + other, return_counts=True)[1]
    entropies = _entropy(np.bincount(one)), _entropy(np.bincount(other))
    chance = (sizes[0] - 1) * (sizes[1] - 1) / (2 * len(one))
    information = sum(entropies) - _entropy(cells)
    return float((information - chance) / max(sum(entropies) / 2 - chance, 1e-9))


def _entropy(counts: npt.NDArray[np.integer]) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())
