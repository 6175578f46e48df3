"""Input layers: subwords word by word, and series standardized by themselves."""

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from seqtrain.config.schema import ModelConfig
from seqtrain.engines.layout import Packed
from seqtrain.model.input_spec import InputSpec
from seqtrain.model.inputs import Inputs, SideInputs
from seqtrain.model.standardization import SeriesStandardization
from seqtrain.model.subwords import Subwords
from seqtrain.sequences.batch import Grams, Spellings
from seqtrain.sequences.vocabulary import BUCKETS, word_grams
from tests.helpers.batches import layout_of
from tests.helpers.spelling import buckets_of

WORDS = ["", "", "card", "cards", "a", "of"]
UNKNOWN = ["cardboard", "i"]


def make_subwords(rows: int = BUCKETS) -> Subwords:
    model = Subwords(word_grams(WORDS, 3, 5), 4, rows)
    model.initialize(0.5, torch.Generator().manual_seed(0))
    return model


def by_hand(model: Subwords, word: str) -> Tensor:
    grams = buckets_of(word, 3, 5)
    total = sum((model.weight[gram % len(model.weight)] for gram in grams), torch.zeros(4))
    return total / max(1, len(grams)) ** 0.5


@pytest.mark.parametrize("rows", [BUCKETS, 32])
def test_each_word_has_the_sum_of_its_ngrams_divided_by_the_root_of_their_number(rows):
    model = make_subwords(rows)
    ids = torch.tensor([0, 2, 3, 4, 6, 7])
    expected = [by_hand(model, (WORDS + UNKNOWN)[i]) for i in ids.tolist()]
    found = model(ids[:4], ids[4:] - 6, Grams.of(word_grams(UNKNOWN, 3, 5)))
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.parametrize("known", [[2, 5], [1, 2, 5], []])
def test_unknown_words_share_the_vector_of_unk_whose_gradient_has_one_row(known):
    model, table = make_subwords(32), torch.nn.Embedding(6, 4)
    table.sparse = True
    inputs = Inputs(ModelConfig(embedding_dim=4), InputSpec(6, 2))
    inputs.embedding, inputs.subwords = table, model
    ids = torch.tensor([*known, 6, 7, 7])
    grams = Grams.of(word_grams(UNKNOWN, 3, 5))
    packed = PackedSequence(ids, torch.tensor([len(ids)]))
    spellings = Spellings(grams.buckets, grams.offsets, (ids - 6).clamp(min=-1))
    read = inputs.embed_tokens(ids, layout_of(packed), SideInputs(spellings=spellings), None)
    words = [(WORDS + UNKNOWN)[i] for i in ids.tolist()]
    rows = torch.stack([table.weight[i if i < 6 else 1] for i in ids.tolist()])
    expected = rows + torch.stack([by_hand(model, word) for word in words])
    torch.testing.assert_close(read.table[read.index], expected)
    (gradient,) = torch.autograd.grad(read.table[read.index].sum(), [table.weight])
    assert gradient._indices()[0].tolist() == sorted({1, *known})
    assert gradient.to_dense()[1].tolist() == [3.0 + known.count(1)] * 4


def rows_of_series(channels: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(length, channels, generator=generator) * 10.0 ** (i - 2) + 3 * i
        for i, length in enumerate([50, 20, 7, 2, 1])
    ]


def standardized(model: SeriesStandardization, packed: PackedSequence) -> PackedSequence:
    sequences = Packed(packed.batch_sizes, packed.data.device)
    return PackedSequence(model(packed.data, sequences), packed.batch_sizes)


def standard(row: Tensor) -> Tensor:
    deviation = row.double().std(0, correction=0)
    return torch.where(deviation > 0, (row - row.double().mean(0)) / deviation, 0.0).float()


@pytest.mark.parametrize("both", [False, True])
def test_each_series_by_its_own_mean_and_deviation(both):
    model, rows = SeriesStandardization(2, both=both, indicators=False), rows_of_series(2)
    found = unpack_sequence(standardized(model, pack_sequence(rows)))
    for row, scaled in zip(rows, found, strict=True):
        own = standard(row)
        expected = torch.cat((row, own), dim=1) if both else own
        torch.testing.assert_close(scaled, expected, rtol=1e-4, atol=1e-4)
        assert scaled.shape[1] == model.width


@pytest.mark.parametrize("level", [0.0, 1.0, -3e5, 0.1])
def test_constant_series_become_zero(level):
    model = SeriesStandardization(1, both=False, indicators=False)
    assert not standardized(model, pack_sequence([torch.full((999, 1), level)])).data.any()


def test_missing_values_do_not_count():
    model, row = SeriesStandardization(2, both=True, indicators=True), rows_of_series(2)[0]
    absent = torch.zeros_like(row)
    absent[::3, 0] = 1
    absent[:, 1] = 1
    row = row * (1 - absent)
    scaled = standardized(model, pack_sequence([torch.cat((row, absent), dim=1)])).data
    assert scaled.shape[1] == model.width == 6
    present = absent[:, 0] == 0
    expected = standard(row[present, :1])[:, 0]
    torch.testing.assert_close(scaled[present, 2], expected, rtol=1e-4, atol=1e-4)
    assert not scaled[~present, 2].any()
    assert not scaled[:, 3].any()
    assert torch.equal(scaled[:, :2], row)
    assert torch.equal(scaled[:, 4:], absent)
