"""The branch of n-grams: equal to a dictionary's sums, whatever the batch-mates."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from seqtrain.model.branches.ngrams import GAIN, NgramBranch
from seqtrain.sequences.batch import Grams, Spellings
from seqtrain.sequences.ngram_vocabulary import (
    ONLY,
    GramColumn,
    extended_keys,
    fit_ngrams,
    with_spelling,
)
from seqtrain.sequences.vocabulary import UNK, WordGrams, word_grams
from tests.helpers.batches import batch_of
from tests.helpers.spelling import buckets_of

VOCAB_SIZE = 9
SIZES = [(1, 1), (1, 2), (2, 3), (1, 5)]


def some_rows(seed: int) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    sizes = sorted(generator.integers(1, 12, 40), reverse=True)
    return [generator.integers(1, VOCAB_SIZE, size).tolist() for size in sizes]


def make(sizes: tuple[int, int], most: int = 60, spelled: WordGrams | None = None) -> NgramBranch:
    rows = some_rows(seed=0)
    values, offsets = np.concatenate(rows).astype(np.int32), np.cumsum([0, *map(len, rows)])
    chosen = fit_ngrams(values, offsets, GramColumn(ONLY, *sizes), most=most)
    if spelled is not None:
        chosen = with_spelling(chosen, values.astype(np.int64), offsets, spelled)
    model = NgramBranch(chosen, num_classes=3, words=spelled)
    torch.manual_seed(1)
    torch.nn.init.normal_(model.weight)
    torch.nn.init.normal_(model.bias)
    return model


def by_hand(model: NgramBranch, row: list[int]) -> Tensor:
    """The formula, n-gram by n-gram."""
    return GAIN * of_ids(model, row) + model.bias


def of_ids(model: NgramBranch, row: list[int]) -> Tensor:
    vocabulary = model.vocabulary
    numbers = {key: i for i, key in enumerate(vocabulary.keys.tolist())}
    whole, (shortest, longest) = [0, *row, 0], vocabulary.sizes
    counts: Counter[int] = Counter()
    for size in range(shortest, longest + 1):
        source = row if size == 1 else whole
        for start in range(len(source) - size + 1):
            key = np.zeros(1, dtype=np.int64)
            for i in source[start : start + size]:
                key = extended_keys(key, np.array([i]))
            if int(key[0]) in numbers:
                counts[numbers[int(key[0])]] += 1
    return weighted(model, counts)


def weighted(model: NgramBranch, counts: Counter[int]) -> Tensor:
    idf = model.vocabulary.idf
    values = {i: (1 + math.log(n)) * float(idf[i]) for i, n in counts.items()}
    length = math.sqrt(sum(value**2 for value in values.values())) or 1.0
    return sum((value / length * model.weight[i] for i, value in values.items()), torch.zeros(3))


@pytest.mark.parametrize("most", [3, 60])
@pytest.mark.parametrize("sizes", SIZES)
def test_logits_of_rows_are_those_of_the_formula(sizes, most):
    """Rows without a known n-gram have the bias."""
    model, rows = make(sizes, most), [*some_rows(seed=2), [7]]
    packed = pack_sequence([torch.tensor(row) for row in rows])
    expected = torch.stack([by_hand(model, row) for row in rows])
    torch.testing.assert_close(
        model.score(model.find(batch_of(packed))), expected, rtol=1e-5, atol=1e-5
    )


def test_where_spelling_counts_characters_have_two_thirds():
    """Of words that the vocabulary lacks, too: they come with the batch."""
    names = [f"word{'xyzuvw'[i % 6] * (i % 4)}{i}" for i in range(VOCAB_SIZE + 2)]
    words = word_grams(["", "", *names[2:VOCAB_SIZE]], 3, 4)
    beside = word_grams(names[VOCAB_SIZE:], 3, 4)
    model = make((1, 2), spelled=words)
    first = len(model.vocabulary.keys)
    rows = [*some_rows(seed=2), [VOCAB_SIZE, 3, VOCAB_SIZE + 1, VOCAB_SIZE], [1]]
    rows.sort(key=len, reverse=True)

    def expected(row: list[int]) -> Tensor:
        counts = Counter(
            first + bucket for i in row if i >= 2 for bucket in buckets_of(names[i], 3, 4)
        )
        known = of_ids(model, [i if i < VOCAB_SIZE else 1 for i in row])
        both = math.sqrt(1 / 3) * known + math.sqrt(2 / 3) * weighted(model, counts)
        return GAIN * both + model.bias

    packed = pack_sequence([torch.tensor(row) for row in rows])
    numbers = torch.where(packed.data < VOCAB_SIZE, -1, packed.data - VOCAB_SIZE)
    ids = PackedSequence(packed.data.where(numbers < 0, torch.tensor(UNK)), packed.batch_sizes)
    unknown = Grams.of(beside)
    spellings = Spellings(unknown.buckets, unknown.offsets, numbers)
    found = model.score(model.find(batch_of(ids, spellings=spellings)))
    torch.testing.assert_close(
        found, torch.stack([expected(row) for row in rows]), rtol=1e-5, atol=1e-5
    )


def test_sparse_gradients_hold_the_rows_of_the_batch():
    model = make((1, 2))
    ngrams = model.find(batch_of(pack_sequence([torch.tensor([2, 3]), torch.tensor([4])])))
    (dense,) = torch.autograd.grad(model.score(ngrams).square().sum(), [model.weight])
    model.sparse = True
    (sparse,) = torch.autograd.grad(model.score(ngrams).square().sum(), [model.weight])
    assert {*sparse._indices()[0].tolist()} == {*ngrams.which.tolist()}
    torch.testing.assert_close(sparse.to_dense(), dense)
