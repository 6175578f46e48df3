"""The state before the first step: zeros, random in training, or learned."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.randomness import Noise

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

WAYS = [
    {"rnn": rnn, "engine": engine, "unroll": unroll, "bidirectional": both, "num_layers": 2}
    for (rnn, engine, unroll), both in product(
        (
            ("gru", "auto", "packed"),
            *product(("gru", "lstm", "rnn"), ("torch",), ("packed", "padded", "masked")),
        ),
        (False, True),
    )
]
every_way = pytest.mark.parametrize(
    "keys", WAYS, ids=lambda keys: "-".join(map(str, keys.values()))
)


@every_way
def test_a_learned_state_is_where_every_sequence_starts(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(initial_state="learned", **keys)
    model.initial_state.data.normal_()
    parts = [part.unsqueeze(1) for part in model.initial_state]
    start = tuple(parts) if keys["rnn"] == "lstm" else parts[0]
    expected = []
    for sequence in sequences:
        outputs, _ = model.encoder(model.embedding(sequence).unsqueeze(0), start)
        size = model.config.hidden_size
        last = torch.cat((outputs[0, -1, :size], outputs[0, 0, size:]))
        expected.append(model.head(last))
    batch = make_batch(sequences)
    logits = model(batch.packed)[batch.unsorted_indices]
    torch.testing.assert_close(logits, torch.stack(expected), atol=1e-5, rtol=0)
    gradients = [
        torch.autograd.grad(result.square().sum(), model.initial_state)[0]
        for result in (logits, torch.stack(expected))
    ]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)
    assert (gradients[0].abs().sum(-1) > 0).all(), "every part, layer and direction learns"


def test_a_learned_state_begins_as_zeros(
    make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    packed = make_batch(sequences).packed
    learned = make_model(initial_state="learned")
    zeros = make_model()
    zeros.load_state_dict(learned.state_dict(), strict=False)
    assert torch.equal(learned(packed), zeros(packed))


@every_way
def test_a_random_state_is_drawn_anew_in_training_alone(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch
) -> None:
    packed = make_batch([torch.tensor([3, 4]), torch.tensor([3, 4])]).packed
    model = make_model(initial_state="random", initial_scale=1.0, **keys)
    zeros = make_model(**keys)
    assert torch.equal(model(packed), zeros(packed))
    model.train()
    first, second = (Noise.of(5, update, torch.tensor([8, 3])) for update in (0, 1))
    drawn = model(packed, noise=first)
    assert not torch.allclose(drawn[0], drawn[1]), "each sequence has its own"
    assert not torch.allclose(drawn, model(packed, noise=second)), "in each update"
    assert torch.equal(model(packed, noise=first), drawn)
    with pytest.raises(ValueError, match="noise: missing"):
        model(packed)


def test_the_scale_is_the_standard_deviation(make_model: MakeModel) -> None:
    model = make_model(initial_state="random", initial_scale=0.3, hidden_size=50).train()
    drawn = model.start(400, Noise.of(0, 0, torch.arange(400)))
    assert drawn is not None
    assert 0.29 < drawn.std() < 0.31
