"""Every way to compute gives what single sequences give: padding and batch-mates don't count."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, pad_sequence

from seqtrain.model.branches import BRANCHES, recurrent
from seqtrain.model.calibration import LogitCalibration
from seqtrain.model.convolutions import Convolutions
from seqtrain.model.network import ClassifierNetwork, combined
from seqtrain.model.randomness import RandomNumbers
from seqtrain.sequences.batch import Spellings, spellings
from seqtrain.sequences.vocabulary import UNK, word_grams
from tests.helpers.batches import batch_of, classify, classify_by_branch
from tests.helpers.examples import some
from tests.helpers.networks import (
    CPU_WAYS,
    LENGTHS,
    POOLING_NAMES,
    WORDS,
    alone,
    assert_equal_gradients,
    gradients,
    ids,
    make_network,
    series,
)

CELLS = ("gru", "lstm", "rnn")
DIRECTIONS = (
    {"bidirectional": False},
    {"bidirectional": True},
    {"bidirectional": True, "join": "mean"},
)
POOLINGS = (*POOLING_NAMES, ["max", "last", "attention"])
STARTS = ("zeros", "learned")
GRID = [
    {"rnn": cell, "num_layers": layers, "pooling": pooling, "initial_state": start, **both}
    for both, pooling, layers, cell, start in product(DIRECTIONS, POOLINGS, (1, 2), CELLS, STARTS)
]
TEXT: dict[str, dict[str, Any]] = {
    "ngrams": {"ngrams": [1, 3]},
    "subwords": {"subwords": [3, 5]},
    "convolutions": {"convolutions": [[8, 3, 2], [6, 5, 1]]},
    "all": {
        "ngrams": [1, 2],
        "subwords": [2, 4],
        "convolutions": [[8, 5, 2]],
        "pooling": ["last", "mean"],
    },
}
SERIES: dict[str, dict[str, Any]] = {
    "linear": {},
    "series": {"standardize": "series"},
    "both": {"standardize": "both"},
    "convolutions": {"convolutions": [[8, 7, 2], [6, 3, 2]]},
    "kernels": {"kernels": True, "standardize": "both"},
    "trees": {"trees": True},
    "all": {"standardize": "both", "convolutions": [[8, 7, 2]], "pooling": ["max", "last"]},
}
UNKNOWN = ["unheard", "unseen", "x"]
every_way = pytest.mark.parametrize("way", CPU_WAYS, ids=str)
in_both_directions = pytest.mark.parametrize("bidirectional", [False, True])


def network(branch: str, **keys: Any) -> ClassifierNetwork:
    """Return a model of TEXT, or with a name that ends in series one of SERIES."""
    kind, _, name = branch.partition(" ")
    own = SERIES[name] if kind == "series" else TEXT[name]
    return make_network(features=2 if kind == "series" else 0, **own, **keys)


MODELS = [*(f"text {name}" for name in TEXT), *(f"series {name}" for name in SERIES)]
every_branch = pytest.mark.parametrize("branch", MODELS)


def test_every_branch_is_compared():
    """But the pretrained one, which reads vectors and no time steps."""
    compared = {name for model in MODELS for name in network(model).branch_names}
    assert compared == {branch.name for branch in BRANCHES} - {"pretrained"}


def rows_of(branch: str) -> list[Tensor]:
    return series() if branch.startswith("series") else ids()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@every_way
@pytest.mark.parametrize("keys", some(GRID, 19), ids=lambda keys: "-".join(map(str, keys.values())))
def test_logits_and_gradients_are_those_of_single_sequences(keys, way):
    model = make_network(**keys, **way)
    logits = classify(model, pack_sequence(ids()))
    expected = torch.stack([alone(model, sequence) for sequence in ids()])
    assert expected.std(0).min() > 0.01, "the sequences must be told apart"
    close(logits, expected)
    found, wanted = gradients(model, logits), gradients(model, expected)
    assert_equal_gradients(found, wanted)
    assert found.keys() == dict(model.named_parameters()).keys()
    assert all(gradient.abs().sum() > 0 for gradient in found.values())


@in_both_directions
@pytest.mark.parametrize("engine", ["auto", "torch"])
@every_branch
def test_batch_mates_order_and_padding_change_nothing(branch, engine, bidirectional):
    model = network(branch, engine=engine, bidirectional=bidirectional)
    rows = rows_of(branch)
    order = [3, 0, 5, 1, 4, 6, 2]
    junk = torch.full((len(rows), 15, *rows[0].shape[1:]), 7, dtype=rows[0].dtype)
    for place, row in enumerate(order):
        junk[place, : LENGTHS[row]] = rows[row]
    with torch.inference_mode():
        one_by_one = torch.cat([classify(model, pack_sequence([row])) for row in rows])
        close(classify(model, pack_sequence(rows)), one_by_one)
        shuffled = classify(model, junk, torch.tensor([LENGTHS[row] for row in order]))
        close(shuffled, one_by_one[order])
        short = pad_sequence([rows[row] for row in order], batch_first=True)
        assert torch.equal(
            classify(model, short, torch.tensor([LENGTHS[r] for r in order])), shuffled
        )
    assert one_by_one.std(0).min() > 1e-3


@every_branch
def test_every_weight_learns(branch):
    model = network(branch, dropout=0.2, embedding_dropout=0.2, num_layers=2).train()
    random = RandomNumbers.of(0, 0, torch.arange(len(LENGTHS)))
    logits, _ = classify_by_branch(model, pack_sequence(rows_of(branch)), random=random)
    found = gradients(model, torch.cat(logits))
    assert found.keys() == dict(model.named_parameters()).keys()
    assert all(gradient.abs().sum() > 0 for gradient in found.values())


@every_branch
def test_long_sequences_are_predicted_in_segments(branch, monkeypatch):
    model = network(branch, rnn="lstm")
    packed = pack_sequence(rows_of(branch))
    with torch.inference_mode():
        whole, states = classify_by_branch(model, packed)
        monkeypatch.setattr(recurrent, "PREDICTION_STEPS", 3)
        found, states_in_segments = classify_by_branch(model, packed)
    close(torch.cat(found), torch.cat(whole))
    close(states_in_segments, states)


@every_way
@pytest.mark.parametrize("rnn", CELLS)
def test_bfloat16_is_close(rnn, way):
    model = make_network(rnn=rnn, bidirectional=True, pooling=["last", "mean"], **way).train()
    packed = pack_sequence(ids())
    exact = classify(model, packed)
    with torch.autocast("cpu", torch.bfloat16):
        logits = classify(model, packed)
    torch.testing.assert_close(logits.float(), exact, atol=0.05, rtol=0.05)
    assert all(gradient.isfinite().all() for gradient in gradients(model, logits.float()).values())


@every_way
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("rnn", CELLS)
def test_a_random_state_is_drawn_per_example_in_training_alone(rnn, bidirectional, way):
    keys: dict[str, Any] = {"rnn": rnn, "bidirectional": bidirectional, "num_layers": 2, **way}
    packed = pack_sequence([torch.tensor([3, 4]), torch.tensor([3, 4])])
    model = make_network(initial_state="random", initial_scale=1.0, **keys)
    assert torch.equal(classify(model, packed), classify(make_network(**keys), packed))
    model.train()
    first, second = (RandomNumbers.of(5, update, torch.tensor([8, 3])) for update in (0, 1))
    drawn = classify(model, packed, random=first)
    assert not torch.allclose(drawn[0], drawn[1]), "each sequence has its own"
    assert not torch.allclose(drawn, classify(model, packed, random=second)), "in each update"
    assert torch.equal(classify(model, packed, random=first), drawn)
    with pytest.raises(ValueError, match="random: missing"):
        classify(model, packed)


def test_branches_predict_alone_and_together():
    model = make_network(ngrams=[1, 2])
    packed = pack_sequence(ids())
    with torch.inference_mode():
        (steps, wide), _ = classify_by_branch(model, packed)
        expected = (steps.softmax(1) * wide.softmax(1)).sqrt()
        found = classify(model, packed).softmax(1)
        torch.testing.assert_close(found, expected / expected.sum(1, keepdim=True))
        model.calibration = LogitCalibration(temperature=2.0)
        assert torch.equal(model.combine([steps, wide]), combined([steps, wide]) / 2)
        (alone,) = model.branch_logits(batch_of(packed), names=["recurrent"])
        assert torch.equal(alone, steps)


def spelled(rows: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Make every third step an unknown word: ids, and numbers of spellings."""
    unknown = [torch.arange(len(row)) % 3 == 1 for row in rows]
    marked = [torch.where(where, UNK, row) for where, row in zip(unknown, rows, strict=True)]
    numbers = [torch.where(w, row % len(UNKNOWN), -1) for w, row in zip(unknown, rows, strict=True)]
    return marked, numbers


def spellings_of(numbers: Tensor) -> Spellings:
    return spellings(numbers.numpy().astype(np.int32), word_grams(UNKNOWN, 3, 5))


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize("branch", ["subwords", "all"])
def test_unknown_words_count_by_their_spelling_whatever_the_batch(branch, rate):
    """With dropout too: it goes by the word, so that other processes and batches drop the same."""
    keys = {**TEXT[branch], "subwords": [3, 5]}
    model = make_network(**keys, embedding_dropout=rate).train(rate > 0)
    for layers in model.modules():
        if isinstance(layers, Convolutions):
            layers.eval()
    rows, numbers = spelled(ids())

    def classified(places: list[int]) -> Tensor:
        packed = pack_sequence([rows[place] for place in places])
        own = spellings_of(pack_sequence([numbers[place] for place in places]).data)
        random = RandomNumbers.of(0, 0, torch.tensor(places)) if rate else None
        return classify(model, packed, spellings=own, random=random)

    every = [*range(len(rows))]
    expected = torch.cat([classified([place]) for place in every])
    close(classified(every), expected)
    padded, layout = (
        pad_sequence(given, batch_first=True, padding_value=fill)
        for given, fill in ((rows, 0), (numbers, -1))
    )
    random = RandomNumbers.of(0, 0, torch.tensor(every)) if rate else None
    own = spellings_of(layout)
    close(classify(model, padded, torch.tensor(LENGTHS), spellings=own, random=random), expected)
    if not rate:
        assert (expected - classify(model, pack_sequence(rows)))[0].abs().max() > 1e-3


def test_a_known_word_counts_as_much_spelled_out():
    """E of <unk> and of the word are equal here, so that only the spelling is left."""
    model = make_network(subwords=[3, 5])
    with torch.no_grad():
        model.get_parameter("recurrent.embedding.weight").zero_()
    own = spellings(np.array([0, -1], dtype=np.int32), word_grams([WORDS[2]], 3, 5))
    with torch.inference_mode():
        found = classify(model, pack_sequence([torch.tensor([UNK, 3])]), spellings=own)
        close(found, classify(model, pack_sequence([torch.tensor([2, 3])])))
