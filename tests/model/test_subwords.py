"""Subwords: the formula word by word, and words that the vocabulary lacks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqtrain.data.spelling import Grams, buckets_of, word_grams
from seqtrain.model.subwords import Subwords

WORDS = ["", "", "card", "cards", "a", "of"]
UNKNOWN = ["cardboard", "i"]


def make() -> Subwords:
    torch.manual_seed(0)
    model = Subwords(word_grams(WORDS, 3, 5), 4)
    model.initialize(0.5)
    return model


def by_hand(model: Subwords, word: str) -> Tensor:
    grams = buckets_of(word, 3, 5)
    total = sum((model.weight[gram] for gram in grams), torch.zeros(4))
    return total / max(1, len(grams)) ** 0.5


def test_each_word_has_the_sum_of_its_ngrams_divided_by_the_root_of_their_number() -> None:
    model = make()
    ids = torch.tensor([0, 2, 3, 4, 6, 7])
    expected = [by_hand(model, (WORDS + UNKNOWN)[i]) for i in ids.tolist()]
    found = model(ids, Grams.of(word_grams(UNKNOWN, 3, 5)))
    torch.testing.assert_close(found, torch.stack(expected))


def test_words_that_the_vocabulary_lacks_have_the_row_of_unk() -> None:
    assert make().rows(torch.tensor([0, 1, 2, 5, 6, 900])).tolist() == [0, 1, 2, 5, 1, 1]


def test_a_word_is_the_same_known_or_unknown() -> None:
    model = make()
    known = model(torch.tensor([2]))
    unknown = model(torch.tensor([len(WORDS)]), Grams.of(word_grams(["card"], 3, 5)))
    assert torch.equal(known, unknown)


def test_unknown_words_without_their_ngrams_are_refused() -> None:
    with pytest.raises(ValueError, match="found 6; the vocabulary has 6 words"):
        make()(torch.tensor([2, 6]))


def test_sparse_gradients_hold_the_rows_of_the_ngrams() -> None:
    model = make()
    ids = torch.tensor([1, 2, 3])
    model(ids).square().sum().backward()
    dense, model.weight.grad, model.sparse = model.weight.grad, None, True
    model(ids).square().sum().backward()
    gradient = model.weight.grad
    assert dense is not None
    assert gradient is not None
    rows = gradient._indices()[0].tolist()
    assert rows == sorted({*buckets_of("card", 3, 5), *buckets_of("cards", 3, 5)})
    torch.testing.assert_close(gradient.to_dense(), dense)


def test_the_weight_alone_is_saved() -> None:
    assert make().state_dict().keys() == {"weight"}
