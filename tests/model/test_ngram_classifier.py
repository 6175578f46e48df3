"""The branch of n-grams: equal to a dictionary's sums, whatever the batch-mates."""

import math
import resource
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from seqtrain.engines.layout import Packed
from seqtrain.model.branches import logistic
from seqtrain.model.branches.branch import ForwardContext
from seqtrain.model.branches.by_updates import _batches, solve_by_updates
from seqtrain.model.branches.logistic import solve_logistic
from seqtrain.model.branches.ngrams import NgramBranch
from seqtrain.model.inputs import SideInputs
from seqtrain.sequences.batch import Batch, Grams, Spellings
from seqtrain.sequences.ngram_vocabulary import (
    ONLY,
    GramColumn,
    extended_keys,
    fit_ngrams,
    with_spelling,
)
from seqtrain.sequences.vocabulary import UNK, WordGrams, word_grams
from tests.helpers.batches import batch_of
from tests.helpers.program import FORKS
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
    torch.nn.init.normal_(model.intercept)
    return model


def score(model: NgramBranch, batch: Batch) -> Tensor:
    layout = Packed.of(batch.packed)
    return model(batch.packed.data, layout, SideInputs.of(batch), ForwardContext())


def by_hand(model: NgramBranch, row: list[int]) -> Tensor:
    """The formula, n-gram by n-gram."""
    return of_ids(model, row) + model.intercept


def of_ids(model: NgramBranch, row: list[int]) -> Tensor:
    vocabulary = model.vocabulary
    numbers = {key: i for i, key in enumerate(vocabulary.keys.tolist())}
    ((_, shortest, longest),) = vocabulary.columns
    whole = [0, *row, 0]
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
    torch.testing.assert_close(score(model, batch_of(packed)), expected, rtol=1e-5, atol=1e-5)


def test_where_spelling_counts_characters_have_half():
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
        both = math.sqrt(1 / 2) * (known + weighted(model, counts))
        return both + model.intercept

    packed = pack_sequence([torch.tensor(row) for row in rows])
    numbers = torch.where(packed.data < VOCAB_SIZE, -1, packed.data - VOCAB_SIZE)
    ids = PackedSequence(packed.data.where(numbers < 0, torch.tensor(UNK)), packed.batch_sizes)
    unknown = Grams.of(beside)
    spellings = Spellings(unknown.buckets, unknown.offsets, numbers)
    found = score(model, batch_of(ids, spellings=spellings))
    torch.testing.assert_close(
        found, torch.stack([expected(row) for row in rows]), rtol=1e-5, atol=1e-5
    )


def sentences(count: int, classes: int, seed: int) -> tuple[csr_matrix, np.ndarray]:
    """Features of which one tells the class, but for noise, (count, 30), and labels."""
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, classes, count)
    features = (draws.random((count, 30)) < 0.1).astype(np.float32)
    features[np.arange(count), labels] += 2
    return csr_matrix(features), labels


def by_updates(features, labels, weights, classes, seed):
    weight, intercept = torch.ones(features.shape[1], classes), torch.ones(classes)
    solve_by_updates(weight, intercept, features, labels, weights, seed)
    return weight.T.numpy(), intercept.numpy()


@pytest.mark.parametrize(
    ("solve", "rows"), [(solve_logistic, 600), (solve_logistic, 2500), (by_updates, 6001)]
)
@pytest.mark.parametrize("classes", [2, 5])
def test_few_and_many_rows_are_learned(classes, solve, rows):
    features, labels = sentences(rows, classes, seed=0)
    coefficients, intercepts = solve(features, labels, np.ones(rows), classes, seed=0)
    others, expected = sentences(600, classes, seed=1)
    logits = others @ coefficients.T + intercepts
    assert coefficients.shape == (classes, 30)
    assert (logits.argmax(1) == expected).mean() > 0.9


def test_a_weight_of_two_is_the_row_twice_and_classes_without_rows_are_never_predicted():
    features, labels = sentences(60, 3, seed=0)
    weights = np.where(np.arange(60) < 20, 2.0, 1.0)
    rows = np.arange(60).repeat(weights.astype(int))
    strength = 1.0  # so that few epochs are enough
    once = logistic._fit(features, labels, weights, 5, strength, 0)
    twice = logistic._fit(features[rows], labels[rows], np.ones(len(rows)), 5, strength, 0)
    for found, expected in zip(once, twice, strict=True):
        np.testing.assert_allclose(found, expected, atol=5e-3)
    logits = features @ once[0].T + once[1]
    assert set(logits.argmax(1)) == {0, 1, 2}


def test_rows_of_greater_weight_count_more_in_many_rows_too():
    """Each row is there with both labels, and the weight decides between them."""
    features, labels = sentences(6001, 2, seed=0)
    both = csr_matrix(vstack([features, features]))
    weights = np.repeat([5.0, 1.0], len(labels))
    found = by_updates(both, np.concatenate([labels, 1 - labels]), weights, 2, seed=0)
    predicted = (features @ found[0].T + found[1]).argmax(1)
    assert (predicted == labels).mean() > 0.9


@pytest.mark.parametrize(("rows", "times"), [(6001, 3), (90_000, 3), (150_000, 2), (250_000, 1)])
def test_the_more_rows_the_fewer_epochs(rows, times):
    learned = torch.cat(_batches(rows, seed=0)).bincount(minlength=rows)
    assert set(learned.tolist()) == {times}


@pytest.mark.parametrize("solve", [solve_logistic, by_updates])
def test_each_of_several_labels_is_learned(solve):
    features, labels = sentences(600, 4, seed=0)
    several = np.zeros((600, 4), np.int8)
    several[np.arange(600), labels] = 1
    several[:, 3] = 0
    coefficients, intercepts = solve(features, several, np.ones(600), 4, seed=0)
    found = features @ coefficients.T + intercepts > 0
    assert (found == several).mean() > 0.95
    assert not found[:, 3].any()


def solve_many_classes() -> None:
    features = csr_matrix((np.ones(40, np.float32), (np.arange(40), np.arange(40))), (40, 20_000))
    weight, intercept = torch.zeros(20_000, 1000), torch.zeros(1000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    solve_by_updates(weight, intercept, features, np.arange(40), np.ones(40), seed=0)
    added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert added < 2.5 * weight.nbytes / 1024  # the moments; kilobytes on Linux


@pytest.mark.skipif(sys.platform != "linux", reason="counts kilobytes")
def test_weights_of_many_classes_are_learned_without_copies_of_them():
    process = FORKS.Process(target=solve_many_classes)
    process.start()
    process.join()
    assert process.exitcode == 0
