"""Vocabularies: ids of tokens, and character n-grams of words.

<pad> has id 0 and <unk> has id 1. The tokens of train follow, most frequent first. The character
n-grams of a word are hashed into buckets. V words, G n-grams of all words.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from seqtrain.tables.blocks import Codes, Ints

PAD, UNK = 0, 1
SPECIAL = ("<pad>", "<unk>")
BUCKETS = 2**15
"""Number of buckets of n-grams. Several buckets can share a row of the embedding table."""
MOST_GRAMS = 1024
"""Largest number of n-grams of a word. Further ones are left out."""


def runs(starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return the indices of runs of consecutive entries of an array, one run after the other.

    Args:
        starts: Index of the first entry of each run, (R,).
        lengths: Number of entries of each run, (R,).

    Returns:
        The indices, (P,). Then the index in these of the first entry of each run, and P: (R + 1,).
    """
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths), offsets


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that a model knows.

    Attributes:
        tokens: Different tokens in the order of their ids. `SPECIAL` comes first.
    """

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.tokens[: len(SPECIAL)] != SPECIAL:
            raise ValueError(f"tokens: expected {', '.join(SPECIAL)} first")
        if len(set(self.tokens)) < len(self.tokens):
            raise ValueError("tokens: expected strings, each once")

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _grams(self) -> dict[tuple[int, int], WordGrams]:
        return {}

    def grams(self, shortest: int, longest: int) -> WordGrams:
        """Return the character n-grams of each token. <pad> and <unk> have none.

        Args:
            shortest: Number of characters of the shortest n-gram.
            longest: Number of characters of the longest n-gram.
        """
        sizes = shortest, longest
        if sizes not in self._grams:
            words = [""] * len(SPECIAL) + list(self.tokens[len(SPECIAL) :])
            self._grams[sizes] = word_grams(words, *sizes)
        return self._grams[sizes]

    @cached_property
    def index(self) -> dict[str, int]:
        """Maps each token to its id. It lacks <pad>, so that "<pad>" in the data is unknown."""
        return {token: i for i, token in enumerate(self.tokens) if i != PAD}


class TokenIndex(dict[str, int]):
    """Ids of the tokens of a vocabulary, and temporary numbers of others, as they are looked up.

    The first other tokens get the numbers that follow the ids. Further ones have the id of <unk>.

    Args:
        vocabulary: The vocabulary.
        most: Largest number of other tokens that get a number.

    Attributes:
        first: Number of the first other token: the size of the vocabulary.
        others: The other tokens in the order of their numbers.
    """

    def __init__(self, vocabulary: Vocabulary, most: float = 0) -> None:
        super().__init__()
        self._known = vocabulary.index
        self._most = most
        self.first = len(vocabulary)
        self.others = list[str]()

    def __missing__(self, token: str) -> int:
        number = self._known.get(token)
        if number is None:
            if len(self.others) >= self._most:
                return UNK
            number = self.first + len(self.others)
            self.others.append(token)
        self[token] = number
        return number

    @property
    def size(self) -> int:
        """One more than the largest number that a token can have."""
        return self.first + len(self.others)

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Return the id or the number of each token. New tokens are added."""
        return list(map(self.__getitem__, tokens))


def fit_vocabulary(
    index: TokenIndex,
    counts: Ints,
    *,
    min_count: int,
    max_size: int,
    known: Vocabulary | None = None,
) -> tuple[Vocabulary, Codes]:
    """Choose a vocabulary by frequency. Equally frequent tokens are chosen in sorted order.

    Args:
        index: Index of `UNFITTED` with all tokens.
        counts: Number of occurrences in train, by temporary id.
        min_count: Smallest number of occurrences of a token in the vocabulary.
        max_size: Largest size of the vocabulary, including <pad> and <unk>.
        known: Vocabulary of an earlier model, or None. Its tokens keep their ids, and new tokens
            follow.

    Returns:
        The vocabulary. The final id of each temporary id, which is that of <unk> if the
        vocabulary lacks the token.

    Shape:
        counts, final ids: (V,).
    """
    tokens = [*SPECIAL, *index.others]
    old = known or UNFITTED
    final_ids = np.array([old.index.get(token, UNK) for token in tokens], dtype=np.int32)
    is_new = (counts >= min_count) & (final_ids == UNK)
    candidates = [i for i in np.flatnonzero(is_new).tolist() if tokens[i] not in SPECIAL]
    candidates.sort(key=lambda i: (-counts[i], tokens[i]))
    kept = candidates[: max(0, max_size - len(old))]
    final_ids[kept] = np.arange(len(old), len(old) + len(kept), dtype=np.int32)
    return Vocabulary(old.tokens + tuple(tokens[i] for i in kept)), final_ids


UNFITTED = Vocabulary(SPECIAL)
"""Vocabulary of a column before the fit."""


@dataclass(frozen=True, eq=False)
class WordGrams:
    """Character n-grams of V words, as numbers of buckets.

    Attributes:
        buckets: Bucket of each n-gram, word after word, (G,) int32.
        offsets: Index in `buckets` of the first n-gram of each word, then G: (V + 1,).
    """

    buckets: Codes
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def gather(self, words: npt.NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
        """Return the n-grams of some words.

        Args:
            words: Index of each word, (W,).

        Returns:
            The buckets of all these words, word after word. Then the number of n-grams of each
            word, (W,).
        """
        counts = self.offsets[words + 1] - self.offsets[words]
        index, _ = runs(self.offsets[words], counts)
        return self.buckets[index].astype(np.int64), counts

    def table_rows(self) -> int:
        """Return a number of rows for an embedding table of these n-grams, a power of two.

        It exceeds twice the number of distinct buckets, but is at most BUCKETS.
        """
        distinct = len(np.unique(self.buckets))
        return min(BUCKETS, 1 << (2 * distinct).bit_length())

    @classmethod
    def concatenate(cls, tables: Sequence[WordGrams]) -> WordGrams:
        """Return the words of several objects as one. At least one is needed."""
        buckets = np.concatenate([table.buckets for table in tables])
        counts = np.concatenate([np.diff(table.offsets) for table in tables])
        return cls(buckets, np.append(0, counts.cumsum()))


def word_grams(words: Iterable[str], shortest: int, longest: int) -> WordGrams:
    """Return the character n-grams of words.

    Angle brackets mark both ends of a word before it is cut: "word" becomes "<word>". The bucket of
    an n-gram is the CRC-32 of its UTF-8 bytes, modulo BUCKETS. An empty word has no n-grams.

    Args:
        words: The words.
        shortest: Number of characters of the shortest n-gram.
        longest: Number of characters of the longest n-gram.

    Reference:
        Bojanowski et al. 2017, arXiv:1607.04606, section 3.2, with another hash.
    """
    sums, ends, sizes = array("I"), [0], range(shortest, longest + 1)
    for word in words:
        marked = f"<{word}>"[: MOST_GRAMS + longest] if word else ""
        data = marked.encode("utf-8", "surrogatepass")
        at: Sequence[int] = range(len(data) + 1)  # where each character begins
        if not marked.isascii():
            at = [i for i in at if i == len(data) or data[i] & 0xC0 != 0x80]
        grams = [data[i:j] for size in sizes for i, j in zip(at, at[size:], strict=False)]
        sums.extend(map(crc32, grams[:MOST_GRAMS]))
        ends.append(len(sums))
    buckets = np.frombuffer(sums, dtype=np.uint32) % BUCKETS
    return WordGrams(buckets.astype(np.int32), np.array(ends))
