"""N-grams: counted as a dictionary counts them, chosen by frequency, in bounded memory."""

import math
from collections import Counter

import numpy as np
import pytest

from seqtrain.sequences import ngram_vocabulary as ngrams
from seqtrain.sequences.ngram_vocabulary import (
    ONLY,
    GramColumn,
    extended_keys,
    fit_ngrams,
)

Gram = tuple[int, ...]


def flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([i for row in rows for i in row], dtype=np.int32)
    return values, np.cumsum([0, *map(len, rows)])


def grams_of(row: list[int], shortest: int, longest: int) -> list[Gram]:
    """Return all n-grams of a row. N-grams of two ids and more may include its ends, 0."""
    found: list[Gram] = [(i,) for i in row] if shortest == 1 else []
    whole = [0, *row, 0]
    for size in range(max(2, shortest), longest + 1):
        found += [tuple(whole[i : i + size]) for i in range(len(whole) - size + 1)]
    return found


def key_of(gram: Gram) -> int:
    key = np.zeros(1, dtype=np.int64)
    for i in gram:
        key = extended_keys(key, np.array([i]))
    return int(key[0])


def some_rows(seed: int, ids: int = 9) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(1, ids, size).tolist() for size in generator.integers(1, 14, 60)]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 2), (2, 4), (3, 3), (1, 6)])
@pytest.mark.parametrize("steps", [20, ngrams.CHUNK_STEPS])
def test_counted_as_a_dictionary_counts(sizes, steps, monkeypatch):
    monkeypatch.setattr(ngrams, "CHUNK_STEPS", steps)
    rows = some_rows(seed=sizes[1])
    chosen = fit_ngrams(*flat(rows), GramColumn(ONLY, *sizes), most=10**6)
    holders = Counter(gram for row in rows for gram in set(grams_of(row, *sizes)))
    idf = {key_of(gram): math.log((1 + len(rows)) / (1 + n)) + 1 for gram, n in holders.items()}
    assert chosen.keys.tolist() == sorted(idf)
    assert chosen.idf == pytest.approx([idf[key] for key in chosen.keys.tolist()])


def test_the_most_frequent_are_chosen_and_ties_go_by_key():
    rows = [[2, 2, 2, 3, 3, 4, 5], [2, 3, 6]]
    chosen = fit_ngrams(*flat(rows), GramColumn(ONLY, 1, 1), most=4)
    tied = sorted(key_of((i,)) for i in (4, 5, 6))[:2]
    assert chosen.keys.tolist() == sorted([key_of((2,)), key_of((3,)), *tied])


def test_the_rarest_are_forgotten_where_too_many_are_distinct(monkeypatch):
    common = [[2, 3, 4]] * 30
    rare = [[i] for i in range(100, 400)]
    rows = [row for pair in zip(common * 10, rare, strict=True) for row in pair]
    monkeypatch.setattr(ngrams, "CHUNK_STEPS", 40)
    monkeypatch.setattr(ngrams, "MOST_DISTINCT", 30)
    chosen = fit_ngrams(*flat(rows), GramColumn(ONLY, 1, 1), most=3)
    assert chosen.keys.tolist() == sorted(key_of((i,)) for i in (2, 3, 4))


def test_keys_stay_as_they_are():
    """Keys are part of saved models. They are computed here by integers of any size."""

    def exact(gram: Gram) -> int:
        key = 0
        for i in gram:
            mixed = (key + i + 1) * 0x9E3779B97F4A7C15 % 2**64
            key = mixed ^ (mixed >> 32)
        return key - 2**64 if key >= 2**63 else key

    for gram in ((1,), (0, 29999, 2), tuple(range(2, 30))):
        assert key_of(gram) == exact(gram)
    assert key_of((0, 29999, 2)) == -982202701857862009
