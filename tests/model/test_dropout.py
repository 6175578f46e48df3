"""Dropout: the same with every engine, batch and segment, and never left out unsaid."""

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, pad_sequence

from seqtrain.model.decoder import Autoencoder, LanguageModel
from seqtrain.model.randomness import RandomNumbers
from tests.helpers.batches import batch_of, classify
from tests.helpers.networks import (
    CPU_WAYS,
    LENGTHS,
    alone,
    assert_equal_gradients,
    gradients,
    ids,
    make_network,
)

RATES = {"dropout": 0.4, "embedding_dropout": 0.3}
EVERY = [*range(len(LENGTHS))]


def numbers_of(examples: list[int], update: int = 3) -> RandomNumbers:
    return RandomNumbers.of(11, update, torch.tensor(examples))


@pytest.mark.parametrize("way", CPU_WAYS, ids=str)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
def test_it_drops_what_a_loop_over_single_sequences_drops(rnn, both, way):
    keys: dict[str, Any] = {"rnn": rnn, "bidirectional": both, "num_layers": 3, **RATES}
    model = make_network(**keys, **way).train()
    logits = classify(model, pack_sequence(ids()), random=numbers_of(EVERY))
    rows = enumerate(ids())
    expected = torch.stack([alone(model, row, numbers_of([example])) for example, row in rows])
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    assert_equal_gradients(gradients(model, logits), gradients(model, expected))
    assert not torch.allclose(classify(model.eval(), pack_sequence(ids())), expected)


@pytest.mark.parametrize("features", [0, 2])
def test_neither_batch_mates_nor_order_change_what_is_dropped(features):
    model = make_network(features=features, num_layers=2, initial_state="random", **RATES).train()
    rows = ids() if not features else [torch.randn(n, features) for n in LENGTHS]
    together = classify(model, pack_sequence(rows), random=numbers_of(EVERY))
    some = [0, 3, 5]
    fewer = classify(model, pack_sequence([rows[row] for row in some]), random=numbers_of(some))
    torch.testing.assert_close(fewer, together[some], atol=1e-6, rtol=0)
    order = [4, 1, 6, 0, 2, 5, 3]
    padded = pad_sequence([rows[row] for row in order], batch_first=True)
    lengths = torch.tensor([LENGTHS[row] for row in order])
    found = classify(model, padded, lengths, random=numbers_of(order))
    torch.testing.assert_close(found, together[order], atol=1e-6, rtol=0)


@pytest.mark.parametrize("features", [0, 2])
@pytest.mark.parametrize("pooling", ["last", "mean", "attention"])
def test_segments_drop_what_the_whole_drops(pooling, features):
    model = make_network(features=features, num_layers=2, pooling=pooling, **RATES).train()
    rows = ids() if not features else [torch.randn(n, features) for n in LENGTHS]
    packed = pack_sequence(rows)
    whole, cut = (
        classify(model, packed, random=numbers_of(EVERY), bptt=bptt) for bptt in (None, 3)
    )
    torch.testing.assert_close(cut, whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("objective", [LanguageModel, Autoencoder])
def test_pretraining_drops_by_example_too(objective):
    keys: dict[str, Any] = {"num_layers": 2, "dropout": 0.2, "initial_state": "random"}
    model = objective(make_network(**keys), 0.4)
    model.initialize(seed=0)
    model.train()
    packed = pack_sequence(ids())
    losses = model(batch_of(packed), numbers_of(EVERY))
    first = model(batch_of(pack_sequence(ids()[:1])), numbers_of([0]))
    # Row 0 is the first of each time step's rows; an autoencoder's first tokens come before.
    starts = packed.batch_sizes.cumsum(0) - packed.batch_sizes
    if objective is Autoencoder:
        starts = torch.cat((torch.tensor([0]), starts + len(LENGTHS)))
    torch.testing.assert_close(losses[starts], first, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="random: missing"):
        model(batch_of(packed))
