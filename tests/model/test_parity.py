"""Packed batches against one sequence at a time without packing, for every architecture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from tests.helpers.examples import some

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

ARCHITECTURES = [
    {
        "rnn": rnn,
        "engine": engine,
        "num_layers": layers,
        "bidirectional": bidirectional,
        "pooling": pooling,
    }
    for (rnn, engine), layers, bidirectional, pooling in product(
        (("gru", "torch"), ("gru", "auto"), ("lstm", "torch"), ("rnn", "torch")),
        (1, 2),
        (False, True),
        ("last", "mean", "max", "attention"),
    )
]
every_architecture = pytest.mark.parametrize(
    "keys", some(ARCHITECTURES, 3), ids=lambda keys: "-".join(map(str, keys.values()))
)


def one_by_one(model: SequenceClassifier, sequence: Tensor) -> Tensor:
    """Classify one sequence from first principles: torch's module on (1, T, E), no packing."""
    config = model.config
    outputs, _ = model.encoder(model.embedding(sequence).unsqueeze(0))
    states = outputs[0]
    if config.pooling == "last":
        pooled = torch.cat((states[-1, : config.hidden_size], states[0, config.hidden_size :]))
    elif config.pooling == "mean":
        pooled = states.mean(0)
    elif config.pooling == "max":
        pooled = states.max(0).values
    else:
        scores = model.pooling.score(torch.tanh(model.pooling.project(states)))
        pooled = (torch.softmax(scores, 0) * states).sum(0)
    logits: Tensor = model.head(pooled)
    return logits


@every_architecture
def test_packed_logits_equal_an_unpadded_loop_over_single_sequences(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys)
    batch = make_batch(sequences)
    with torch.no_grad():
        logits = model(batch.packed)[batch.unsorted_indices]
        expected = torch.stack([one_by_one(model, sequence) for sequence in sequences])
    assert expected.std(0).min() > 0.01, "the sequences must be told apart"
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)


@every_architecture
def test_sorting_in_collate_and_in_the_module_give_equal_bits(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys)
    batch = make_batch(sequences)
    padded = pad_sequence(sequences, batch_first=True, padding_value=17)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    with torch.no_grad():
        assert torch.equal(
            model(padded, lengths), model(batch.inputs, batch.lengths)[batch.unsorted_indices]
        )


def test_padded_sequences_need_their_lengths(make_model: MakeModel) -> None:
    with pytest.raises(ValueError, match="lengths: missing; padded inputs need them"):
        make_model()(torch.ones(2, 3, dtype=torch.int64))


@every_architecture
def test_batch_mates_and_padding_change_nothing(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys)
    batch = make_batch(sequences)
    junk = batch.input_ids.clone()
    junk[torch.arange(junk.shape[1]) >= batch.lengths[:, None]] = 17
    with torch.no_grad():
        together = model(batch.packed)[batch.unsorted_indices]
        junk_packed = pack_padded_sequence(junk, batch.lengths, batch_first=True)
        assert torch.equal(model(junk_packed)[batch.unsorted_indices], together)
        others = make_batch([*sequences[3:], *sequences[:3], torch.arange(1, 30)])
        mixed = model(others.packed)[others.unsorted_indices]
        alone = torch.cat([model(make_batch([sequence]).packed) for sequence in sequences])
    torch.testing.assert_close(torch.cat((mixed[4:7], mixed[:4])), together, atol=1e-6, rtol=0)
    torch.testing.assert_close(alone, together, atol=1e-6, rtol=0)


@every_architecture
def test_every_parameter_gets_a_gradient(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys).train()
    torch.nn.functional.cross_entropy(
        model(make_batch(sequences).packed), torch.arange(len(sequences)) % 4
    ).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        if name == "embedding.weight":
            seen = set(torch.cat(sequences).tolist())
            moved = set(parameter.grad.abs().sum(1).nonzero().flatten().tolist())
            assert moved == seen
        else:
            assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_feature_vectors_are_classified_like_single_sequences(
    engine: str, make_model: MakeModel, make_batch: MakeBatch
) -> None:
    model = make_model(features=3, engine=engine, bidirectional=True)
    generator = torch.Generator().manual_seed(0)
    series = [torch.randn(n, 3, generator=generator) for n in (2, 9, 1)]
    batch = make_batch(series)
    with torch.no_grad():
        logits = model(batch.packed)[batch.unsorted_indices]
        expected = torch.stack([one_by_one(model, vectors) for vectors in series])
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)


@every_architecture
def test_bfloat16_runs_and_is_close(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys).train()
    batch = make_batch(sequences)
    exact = model(batch.packed)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch.packed)
    logits.float().square().mean().backward()
    torch.testing.assert_close(logits.float(), exact, atol=0.05, rtol=0.05)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
