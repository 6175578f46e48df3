"""Error of a naive Bayes classifier on n-grams: a quick test of ways to split sequences.

All counting happens in arrays, so that thousands of texts take a fraction of a second.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.tokenizers import make_tokenizer

Ids: TypeAlias = npt.NDArray[np.int64]

MOST_CLASSES = 200
"""Largest number of classes that are compared. Rows of rarer classes are left out."""
FEATURES_AT_ONCE = 2048
"""Number of features whose weights are in memory at once."""
DENSE = 8
"""Values up to this many times their number are ranked by a table, without sorting them."""
SMOOTHING = 0.1
"""Count that every feature has in every class from the beginning."""
SIGNIFICANT = 5.0
"""Standard deviations by which the G statistic of a kept feature exceeds its expectation."""
HELD_OUT = 4
"""Period of held-out rows: rows 0, 4, 8, … are held out, and all other rows are learned."""


@dataclass(frozen=True)
class Occurrences:
    """Occurrences of features, such as n-grams, in the rows of a data set.

    Equal features have equal ids in all rows.

    Attributes:
        rows: Index of the row of each occurrence, (N,).
        features: Id of the feature of each occurrence, (N,).
    """

    rows: Ids
    features: Ids

    def joined(self, other: "Occurrences") -> "Occurrences":
        """Return the occurrences of both objects. The features of `other` get new, higher ids."""
        shifted = other.features + self.features.max(initial=-1) + 1
        return Occurrences(
            np.concatenate((self.rows, other.rows)), np.concatenate((self.features, shifted))
        )


def token_ngrams(sequences: Sequence[Sequence[str]], longest: int) -> Occurrences:
    """Return the occurrences of n-grams of 1 to `longest` tokens in each sequence."""
    known: dict[str, int] = {}
    ids = [known.setdefault(token, len(known)) for tokens in sequences for token in tokens]
    return _ngrams(np.array(ids, dtype=np.int64), [len(tokens) for tokens in sequences], longest)


def character_ngrams(texts: Sequence[str], longest: int) -> Occurrences:
    """Return the occurrences of n-grams of 1 to `longest` characters in each text."""
    whole = "".join(texts).encode("utf-32-le", "surrogatepass")
    ids = _numbered(np.frombuffer(whole, dtype=np.uint32).astype(np.int64))
    return _ngrams(ids, [len(text) for text in texts], longest)


def word_ngrams(texts: Sequence[str], longest: int = 2) -> Occurrences:
    """Return the occurrences of n-grams of 1 to `longest` words in each text.

    The tokenizer "word" of `fit` splits the texts. Upper and lower case stay different.
    """
    split = make_tokenizer("word", lowercase=False)
    return token_ngrams([split(text) for text in texts], longest)


def _ngrams(ids: Ids, lengths: Sequence[int], longest: int) -> Occurrences:
    """Return the occurrences of n-grams of 1 to `longest` consecutive ids within a row.

    Args:
        ids: Ids of the tokens of all rows, row by row, (N,).
        lengths: Number of tokens of each row.
        longest: Largest length of an n-gram.
    """
    own_row = np.repeat(np.arange(len(lengths)), lengths)
    grams, rows, features, first = ids, [own_row], [ids], ids.max(initial=-1) + 1
    for size in range(2, longest + 1):
        if len(ids) < size:
            break
        pairs = grams[:-1] * (ids.max() + 1) + ids[size - 1 :]
        grams = _numbered(pairs)
        within = own_row[: len(grams)] == own_row[size - 1 :]
        rows.append(own_row[: len(grams)][within])
        features.append(grams[within] + first)
        first += grams.max() + 1
    return Occurrences(np.concatenate(rows), np.concatenate(features))


def _numbered(values: Ids) -> Ids:
    """Return the rank of each value among the distinct values, from 0: (N,).

    Values must not be negative.
    """
    largest = int(values.max(initial=0))
    if largest > DENSE * len(values):
        return np.unique(values, return_inverse=True)[1]
    occurs = np.zeros(largest + 1, dtype=np.int64)
    occurs[values] = 1
    ranks: Ids = (np.cumsum(occurs) - 1)[values]
    return ranks


def telling(found: Occurrences, labels: Sequence[Hashable]) -> Occurrences:
    """Return only the occurrences of features that are clearly more frequent in some classes.

    A feature is kept if the G statistic of its counts per class exceeds its expectation by
    `SIGNIFICANT` standard deviations. Only rows that `naive_bayes_error` learns are counted. The
    result has the kept features of all rows. A row without a kept feature gets one occurrence of an
    additional feature.

    Args:
        found: Occurrences of features in the rows.
        labels: Label of each row.
    """
    classes, sizes = _classes(labels)
    num_classes = len(sizes)
    is_learned = (np.arange(len(labels)) % HELD_OUT > 0) & (classes >= 0)
    used = is_learned[found.rows]
    cells = found.features[used] * num_classes + classes[found.rows[used]]
    cells, counts = np.unique(cells, return_counts=True)
    features, own_classes = np.divmod(cells, num_classes)
    of_feature = np.bincount(features, weights=counts)
    of_class = np.bincount(own_classes, weights=counts, minlength=num_classes)
    expected = of_feature[features] * of_class[own_classes] / of_class.sum()
    statistic = 2 * np.bincount(features, weights=counts * np.log(counts / expected))
    freedom = num_classes - 1
    kept = np.flatnonzero(statistic > freedom + SIGNIFICANT * np.sqrt(2 * freedom))
    is_kept = np.isin(found.features, kept)
    without = np.setdiff1d(np.arange(len(labels)), found.rows[is_kept])
    kept_only = Occurrences(found.rows[is_kept], found.features[is_kept])
    return kept_only.joined(Occurrences(without, np.zeros(len(without), dtype=np.int64)))


def _classes(labels: Sequence[Hashable]) -> tuple[Ids, list[int]]:
    """Return the index of each row's class, (N,), and the number of learned rows of each class.

    Rows 0, 4, 8, … (`HELD_OUT`) aren't learned. Classes are numbered by decreasing frequency in the
    learned rows. Only the first `MOST_CLASSES` have a number. The index of all other labels is -1.
    """
    is_held_out = np.arange(len(labels)) % HELD_OUT == 0
    sizes = Counter(label for label, out in zip(labels, is_held_out, strict=True) if not out)
    frequent = sizes.most_common(MOST_CLASSES)
    numbers = {label: i for i, (label, _) in enumerate(frequent)}
    classes = np.array([numbers.get(label, -1) for label in labels], dtype=np.int64)
    return classes, [size for _, size in frequent]


def naive_bayes_error(found: Occurrences, labels: Sequence[Hashable]) -> float:
    """Return the share of wrong predictions of multinomial naive Bayes, in [0, 1].

    Rows 0, 4, 8, … are predicted, and the classifier learns all other rows. Only the `MOST_CLASSES`
    most frequent labels and the features of learned rows are used. The share is 0 if no row can be
    predicted.

    Args:
        found: Occurrences of features in the rows.
        labels: Label of each row.
    """
    is_held_out = np.arange(len(labels)) % HELD_OUT == 0
    classes, sizes = _classes(labels)
    scored = np.flatnonzero(is_held_out & (classes >= 0))
    if len(scored) == 0:
        return 0.0
    is_learned = ~is_held_out[found.rows] & (classes[found.rows] >= 0)
    learned_features = found.features[is_learned]
    learned_classes = classes[found.rows[is_learned]]
    in_class = np.bincount(learned_classes, minlength=len(sizes))
    is_known = np.zeros(found.features.max(initial=0) + 1, dtype=bool)
    is_known[learned_features] = True
    totals = np.log(in_class + SMOOTHING * max(1, int(np.count_nonzero(is_known))))
    scores = np.tile(np.log(sizes), (len(scored), 1))

    is_scored = np.isin(found.rows, scored) & is_known[found.features]
    scored_rows = np.searchsorted(scored, found.rows[is_scored])
    scored_features = found.features[is_scored]
    used = np.flatnonzero(np.bincount(scored_features))
    for start in range(0, len(used), FEATURES_AT_ONCE):
        block = used[start : start + FEATURES_AT_ONCE]
        counts = _counts(learned_features, block, learned_classes, len(sizes))
        present = _counts(scored_features, block, scored_rows, len(scored))
        scores += present @ (np.log(counts + SMOOTHING) - totals[:, None]).T
    return float(np.mean(scores.argmax(axis=1) != classes[scored]))


def _counts(features: Ids, block: Ids, groups: Ids, num_groups: int) -> npt.NDArray[np.float64]:
    """Return how often each feature of a block occurs in each group: (num_groups, block).

    Args:
        features: Id of the feature of each occurrence, (N,).
        block: Distinct ids of the features to count, (block,), at least one.
        groups: Index of the group of each occurrence, such as its class, (N,).
        num_groups: Number of groups.
    """
    place_of = np.full(max(features.max(initial=0), block.max()) + 1, -1)
    place_of[block] = np.arange(len(block))
    places = place_of[features]
    cells = (groups * len(block) + places)[places >= 0]
    counts = np.bincount(cells, minlength=num_groups * len(block))
    return counts.reshape(num_groups, len(block)).astype(np.float64)
