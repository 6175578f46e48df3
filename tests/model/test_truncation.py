"""Truncated backpropagation: gradients reach back so many time steps, and no further."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from seqtrain.engines.cells import as_one_tensor, as_torch_takes
from seqtrain.engines.layout import Packed
from seqtrain.model.network import ClassifierNetwork
from tests.helpers.batches import classify
from tests.helpers.examples import some
from tests.helpers.networks import (
    CPU_WAYS,
    POOLING_NAMES,
    assert_equal_gradients,
    gradients,
    ids,
    make_network,
    series,
)

WAYS = [
    {"rnn": rnn, "pooling": pooling, "initial_state": start, "num_layers": 2}
    for pooling, start, rnn in product(POOLING_NAMES, ("zeros", "learned"), ("gru", "lstm", "rnn"))
]
every_way = pytest.mark.parametrize(
    "keys", some(WAYS, 3), ids=lambda keys: "-".join(map(str, keys.values()))
)
on_each_engine = pytest.mark.parametrize("engine", CPU_WAYS[:2], ids=str)


def truncated(model: ClassifierNetwork, sequence: Tensor, steps: int) -> Tensor:
    """Classify one sequence with torch's module; gradients are cut every steps from its end."""
    start = model.recurrent.start(1)
    state = (model.recurrent.zero_state(1) if start is None else start).contiguous()
    outputs, first = [], len(sequence) % steps or steps
    for segment in sequence.split([first, *[steps] * ((len(sequence) - first) // steps)]):
        vectors = model.recurrent.embedding(segment).unsqueeze(0)
        states, last = model.recurrent.encoder(vectors, as_torch_takes(state))
        outputs.append(states[0])
        state = as_one_tensor(last).detach()
    states = torch.cat(outputs)
    pooled = states[-1]
    if model.recurrent.pooling is not None:
        one_row = Packed(torch.ones(len(states), dtype=torch.int64), states.device)
        pooled = model.recurrent.pooling(states, one_row)[0]
    logits: Tensor = model.recurrent.head(pooled)
    return logits


@on_each_engine
@every_way
def test_gradients_are_cut_so_many_steps_from_the_end(keys, engine):
    model = make_network(**keys, **engine)
    packed = pack_sequence(ids())
    logits = classify(model, packed, bptt=3)
    expected = torch.stack([truncated(model, sequence, 3) for sequence in ids()])
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    found = gradients(model, logits)
    assert_equal_gradients(found, gradients(model, expected))
    full = gradients(model, classify(model, packed))
    assert not torch.allclose(
        found["recurrent.encoder.weight_hh_l0"], full["recurrent.encoder.weight_hh_l0"]
    )


@pytest.mark.parametrize("pooling", ["last", ["last", "max"], ["mean"]])
@pytest.mark.parametrize("features", [0, 2])
def test_they_reach_the_convolutions_before_the_encoder(pooling, features):
    model = make_network(features=features, convolutions=[[8, 3, 2]], pooling=pooling).train()
    packed = pack_sequence(series() if features else ids())
    whole, long, short = (
        gradients(model, classify(model, packed, bptt=steps)) for steps in (None, 6, 2)
    )
    assert_equal_gradients(long, whole)
    assert short["recurrent.convolutions.0.weight"].abs().sum() > 0
    assert not torch.allclose(
        short["recurrent.convolutions.0.weight"], whole["recurrent.convolutions.0.weight"]
    )
