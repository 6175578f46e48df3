"""Values of the n-grams in encoded sequences, for training, prediction, and exported models.

N steps of all sequences, B sequences, P pairs of a sequence and one of its known n-grams.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.ngram_vocabulary import SPELLING_SHARE, NgramVocabulary, row_keys
from seqtrain.data.store import Ints
from seqtrain.data.vocabulary import WordGrams


@dataclass(frozen=True, eq=False)
class NgramValues:
    """Known n-grams of sequences, ordered by row and n-gram id.

    Attributes:
        rows: sequence of each n-gram, (P,) int64.
        ngrams: n-gram ids, (P,) int64.
        values: (1 + ln(occurrences)) * idf, scaled so that the values of a sequence are a vector of
            length 1, (P,) float32. With spelling, character n-grams have a fixed share of its
            square.
    """

    rows: Ints
    ngrams: Ints
    values: npt.NDArray[np.float32]


def ngram_values(
    ids: npt.NDArray[Any],
    offsets: Ints,
    vocabulary: NgramVocabulary,
    words: WordGrams | None = None,
    spellings: npt.NDArray[Any] | None = None,
    unknown: WordGrams | None = None,
) -> NgramValues:
    """Return the known n-grams of sequences, and their values.

    Args:
        ids: ids of all sequences, one sequence after another.
        offsets: beginning of each sequence, and the end of the last.
        vocabulary: the known n-grams.
        words: character n-grams of the words of the vocabulary, or None without subwords.
        spellings: number of the unknown word at each step, -1 for other steps, or None.
        unknown: character n-grams of the unknown words, or None.

    Shape:
        ids: (N,), or (N, K) with K columns. offsets: (B + 1,). spellings: (N,).
    """
    count, known = len(offsets) - 1, len(vocabulary.keys)
    found = zip(*row_keys(ids, offsets, vocabulary.columns), strict=True)
    row, keys = (np.concatenate(arrays) for arrays in found)
    distinct, place = np.unique(keys, return_inverse=True)  # sorted keys are found faster
    index = np.searchsorted(vocabulary.keys, distinct).clip(max=known - 1)
    index = np.where(vocabulary.keys[index] == distinct, index, -1)[place]
    row, index, share = row[index >= 0], index[index >= 0], 0.0
    if vocabulary.has_spelling and words is not None:
        share = SPELLING_SHARE
        spelled = ids.astype(np.int64)
        if spellings is not None and unknown is not None:
            spelled = np.where(spellings < 0, spelled, len(words) + spellings)
            words = words.concatenate([words, unknown])
        buckets, counts = words.gather(spelled)
        row = np.append(row, np.arange(count).repeat(np.diff(offsets)).repeat(counts))
        index = np.append(index, known + buckets)
    pairs, times = np.unique(row * len(vocabulary) + index, return_counts=True)
    row, index = np.divmod(pairs, len(vocabulary))
    values = (1 + np.log(times)) * vocabulary.idf[index]
    vector = 2 * row + (index >= known)  # n-grams of tokens, or of characters
    squares = np.bincount(vector, values**2, minlength=2 * count).reshape(-1, 2)
    scales = np.sqrt([1 - share, share] / np.where(squares > 0, squares, 1)).ravel()
    return NgramValues(row, index, (values * scales[vector]).astype(np.float32))
