"""The linear part on n-grams: equal to a dictionary's sums, whatever the batch-mates."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from seqtrain.data.batch import collate
from seqtrain.data.ngram_vocabulary import fit_ngrams, folded
from seqtrain.data.store import SequenceStore
from seqtrain.model.ngrams import GAIN, NgramClassifier, joint

VOCAB_SIZE = 9
SIZES = [(1, 1), (1, 2), (2, 3), (1, 5)]


def store_of(rows: list[list[int]]) -> SequenceStore:
    values = np.array([i for row in rows for i in row], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, rows)])
    return SequenceStore(values, offsets, np.zeros(len(rows), np.int64), np.arange(len(rows)))


def some_rows(seed: int, ids: int = VOCAB_SIZE) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    return [generator.integers(1, ids, size).tolist() for size in generator.integers(1, 12, 40)]


def make(sizes: tuple[int, int], most: int = 60) -> NgramClassifier:
    store = store_of(some_rows(seed=0))
    chosen = fit_ngrams(store.values, store.offsets, shortest=sizes[0], longest=sizes[1], most=most)
    model = NgramClassifier(chosen, num_classes=3)
    torch.manual_seed(1)
    torch.nn.init.normal_(model.weight)
    torch.nn.init.normal_(model.bias)
    return model


def by_hand(model: NgramClassifier, row: list[int]) -> Tensor:
    """The formula, n-gram by n-gram."""
    vocabulary = model.vocabulary
    numbers = {key: i for i, key in enumerate(vocabulary.keys.tolist())}
    whole = [0, *row, 0]
    counts: Counter[int] = Counter()
    for size in range(vocabulary.shortest, vocabulary.longest + 1):
        source = row if size == 1 else whole
        for start in range(len(source) - size + 1):
            key = np.zeros(1, dtype=np.int64)
            for i in source[start : start + size]:
                key = folded(key, np.array([i]))
            if int(key[0]) in numbers:
                counts[numbers[int(key[0])]] += 1
    values = {i: (1 + math.log(n)) * float(vocabulary.idf[i]) for i, n in counts.items()}
    length = math.sqrt(sum(value**2 for value in values.values())) or 1.0
    total = sum((value / length * model.weight[i] for i, value in values.items()), torch.zeros(3))
    return GAIN * total + model.bias


@pytest.mark.parametrize("most", [3, 60])
@pytest.mark.parametrize("sizes", SIZES)
def test_logits_are_those_of_the_formula(sizes: tuple[int, int], most: int) -> None:
    """Few n-grams are counted in another way than many."""
    model = make(sizes, most)
    rows = [*some_rows(seed=2), [7]]
    batch = collate(store_of(rows))
    logits = model(model.find(batch.packed))[batch.unsorted_indices]
    expected = torch.stack([by_hand(model, row) for row in rows])
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_answer_after_a_step_is_that_of_the_prefix(sizes: tuple[int, int]) -> None:
    model = make(sizes)
    rows = some_rows(seed=3)
    batch = collate(store_of(rows))
    logits = model.step_logits(batch.packed)
    starts = batch.packed.batch_sizes.cumsum(0) - batch.packed.batch_sizes
    for place, row in enumerate(batch.sorted_indices.tolist()):
        for step, start in enumerate(starts[: len(rows[row])].tolist()):
            expected = by_hand(model, rows[row][: step + 1])
            torch.testing.assert_close(logits[start + place], expected, rtol=1e-5, atol=1e-5)


def test_a_row_without_known_ngrams_has_the_bias() -> None:
    model = make((3, 3), most=1)
    packed = collate(store_of([[8], [2, 8, 2, 8]])).packed
    logits = model(model.find(packed))
    assert torch.equal(logits, model.bias.expand(2, 3))
    torch.testing.assert_close(model.step_logits(packed), model.bias.expand(5, 3))


def test_sparse_gradients_hold_the_rows_of_the_batch() -> None:
    model = make((1, 2))
    ngrams = model.find(collate(store_of([[2, 3], [4]])).packed)
    model(ngrams).square().sum().backward()
    dense = model.weight.grad
    model.weight.grad, model.sparse = None, True
    model(ngrams).square().sum().backward()
    assert dense is not None
    gradient = model.weight.grad
    assert gradient is not None
    rows = gradient._indices()[0]
    assert rows.tolist() == ngrams.index.unique().tolist()
    torch.testing.assert_close(gradient.to_dense(), dense)


def test_weights_start_at_zero_and_alone_are_saved() -> None:
    model = make((1, 2))
    model.initialize()
    assert model.state_dict().keys() == {"weight", "bias"}
    assert not model.weight.any()
    assert not model.bias.any()


def test_a_joint_answer_is_the_mean_of_log_probabilities() -> None:
    first, second = torch.randn(2, 5, 3)
    assert joint([first]) is first
    probabilities = joint([first, second]).softmax(1)
    expected = (first.softmax(1) * second.softmax(1)).sqrt()
    torch.testing.assert_close(probabilities, expected / expected.sum(1, keepdim=True))
