"""Today's recipes give the logits and gradients of the model whose weights they borrow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.recipes import recipe_logits

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

every_recipe = pytest.mark.parametrize("packed", [True, False], ids=["packed", "padded"])


@pytest.mark.parametrize(
    ("rnn", "layers", "bidirectional", "pooling"),
    [*product(("gru", "lstm", "rnn"), (1, 2), (False, True), ("last", "mean", "max", "attention"))],
)
@every_recipe
def test_logits_and_gradients_are_the_models(
    rnn: str,
    layers: int,
    bidirectional: bool,
    pooling: str,
    packed: bool,
    make_model: MakeModel,
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    model = make_model(
        rnn=rnn, num_layers=layers, bidirectional=bidirectional, pooling=pooling, engine="torch"
    )
    batch = make_batch(sequences)
    expected = model(batch.packed)[batch.unsorted_indices]
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    padded = pad_sequence(sequences, batch_first=True, padding_value=5)  # an id like any other
    logits = recipe_logits(model, padded, lengths, packed=packed)
    torch.testing.assert_close(logits, expected, atol=1e-6, rtol=1e-5)
    weights = [p for name, p in model.named_parameters() if not name.startswith("embedding")]
    gradients = [torch.autograd.grad(y.square().sum(), weights) for y in (logits, expected)]
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


@every_recipe
def test_feature_vectors(packed: bool, make_model: MakeModel, make_batch: MakeBatch) -> None:
    series = [torch.randn(n, 3, generator=torch.Generator().manual_seed(n)) for n in (2, 5, 1)]
    model = make_model(features=3, bidirectional=True)
    batch = make_batch(series)
    logits = recipe_logits(
        model, pad_sequence(series, batch_first=True), torch.tensor([2, 5, 1]), packed=packed
    )
    expected = model(batch.packed)[batch.unsorted_indices]
    torch.testing.assert_close(logits, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("join", ["sum", "mean"])
@every_recipe
def test_joined_directions(
    pooling: str,
    join: str,
    packed: bool,
    make_model: MakeModel,
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    model = make_model(bidirectional=True, pooling=pooling, join=join)
    batch = make_batch(sequences)
    logits = recipe_logits(
        model,
        pad_sequence(sequences, batch_first=True),
        torch.tensor([len(sequence) for sequence in sequences]),
        packed=packed,
    )
    expected = model(batch.packed)[batch.unsorted_indices]
    torch.testing.assert_close(logits, expected, atol=1e-6, rtol=1e-5)
