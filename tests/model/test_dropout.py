"""Dropout: where it acts, the same with every engine, batch and segment, and never unsaid."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import Autoencoder, LanguageModel
from seqtrain.model.engines.choice import serving_engines
from seqtrain.model.randomness import Noise, PackedNoise, Site

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]
RATES = {"dropout": 0.4, "embedding_dropout": 0.3}


def noise_of(batch: Batch, examples: list[int] | None = None, update: int = 3) -> Noise:
    """Return the noise of a batch whose examples have these numbers, as they came in."""
    numbers = torch.tensor(examples) if examples else torch.arange(len(batch.lengths))
    return Noise.of(11, update, numbers[batch.sorted_indices])


def by_hand(model: SequenceClassifier, sequence: Tensor, example: int) -> Tensor:
    """Classify one sequence layer by layer in torch's own modules, with units dropped between."""
    config = model.config
    noise = Noise.of(11, 3, torch.tensor([example]))
    own = PackedNoise(noise, torch.ones(len(sequence), dtype=torch.int64))
    vectors = noise.drop(
        model.embedding(sequence), config.embedding_dropout, Site.EMBEDDING, sequence
    )
    directions = 2 if config.bidirectional else 1
    weights = model.encoder.all_weights
    for layer in range(config.num_layers):
        single = type(model.encoder)(
            vectors.shape[1], config.hidden_size, bidirectional=config.bidirectional
        )
        own_weights = chain(*weights[layer * directions : (layer + 1) * directions])
        for parameter, weight in zip(single.parameters(), own_weights, strict=True):
            parameter.data.copy_(weight)
        if layer:
            vectors = own.drop(vectors, config.dropout, Site.ABOVE_LAYER + layer - 1)
        vectors = single(vectors)[0]
    half = config.hidden_size
    last = torch.cat((vectors[-1, :half], vectors[0, half:]))[None]
    return model.head(noise.drop(last, config.dropout, Site.HEAD, torch.tensor([example])))[0]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
def test_every_engine_drops_what_a_loop_over_single_sequences_drops(
    rnn: str, both: bool, make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(rnn=rnn, bidirectional=both, num_layers=3, **RATES).train()
    expected = torch.stack([by_hand(model, s, example) for example, s in enumerate(sequences)])
    batch = make_batch(sequences)
    ways = [{"engine": e} for e in serving_engines(model.config, torch.device("cpu"))]
    for way in (*ways, {"unroll": "padded"}, {"unroll": "masked"}):
        other = model.computed_by(**way)
        logits = other(batch.packed, noise=noise_of(batch))[batch.unsorted_indices]
        torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0, msg=str(way))
    assert not torch.allclose(model.eval()(batch.packed)[batch.unsorted_indices], expected)


def test_neither_batch_mates_nor_order_change_what_is_dropped(
    make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(num_layers=2, initial_state="random", **RATES).train()
    batch = make_batch(sequences)
    together = model(batch.packed, noise=noise_of(batch))[batch.unsorted_indices]
    some = [5, 3, 0]
    fewer = make_batch([sequences[place] for place in some])
    logits = model(fewer.packed, noise=noise_of(fewer, some))[fewer.unsorted_indices]
    torch.testing.assert_close(logits, together[some], atol=1e-6, rtol=0)
    padded = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    lengths = torch.tensor([len(s) for s in sequences])
    noise = Noise.of(11, 3, torch.arange(len(sequences)))
    torch.testing.assert_close(model(padded, lengths, noise=noise), together, atol=1e-6, rtol=0)


@pytest.mark.parametrize("pooling", ["last", "mean", "attention"])
def test_segments_drop_what_the_whole_drops(
    pooling: str, make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(num_layers=2, pooling=pooling, **RATES).train()
    batch = make_batch(sequences)
    whole, cut = (model(batch.packed, noise=noise_of(batch), bptt=bptt) for bptt in (None, 3))
    torch.testing.assert_close(cut, whole, atol=1e-6, rtol=0)


def test_updates_and_seeds_differ_and_evaluation_drops_nothing(
    make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**RATES).train()
    batch = make_batch(sequences)
    one, other = (model(batch.packed, noise=noise_of(batch, update=u)) for u in (0, 1))
    assert not torch.allclose(one, other)
    with pytest.raises(ValueError, match="noise: missing; dropout and random initial states"):
        model(batch.packed)
    plain = make_model()
    plain.load_state_dict(model.state_dict())
    assert torch.equal(model.eval()(batch.packed), plain(batch.packed))


@pytest.mark.parametrize("objective", [LanguageModel, Autoencoder])
def test_pretraining_drops_by_example_too(
    objective: type[LanguageModel | Autoencoder],
    make_model: MakeModel,
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    keys: dict[str, Any] = {"num_layers": 2, "dropout": 0.2, "initial_state": "random"}
    model = objective(make_model(**keys), 0.4)
    model.initialize(seed=0)
    model.train()
    batch, alone = make_batch(sequences), make_batch([sequences[3]])
    losses = model(batch.packed, noise_of(batch))
    own = model(alone.packed, noise_of(alone, [3]))
    # The longest sequence is row 0, and row 0 of each time step's rows.
    assert batch.sorted_indices[0] == 3
    sizes = batch.packed.batch_sizes
    starts = sizes.cumsum(0) - sizes
    if objective is Autoencoder:
        starts = torch.cat((torch.tensor([0]), starts + int(sizes[0])))
    torch.testing.assert_close(losses[starts], own, atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="noise: missing"):
        model(batch.packed)


def test_no_part_touches_the_global_generator(
    make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    config = make_model(num_layers=2, pooling="attention", **RATES).config
    torch.set_rng_state(before)
    model = SequenceClassifier(config, input_size=30, num_classes=4, features=False)
    model.initialize(seed=5)
    pretraining = Autoencoder(model, 0.3)
    pretraining.initialize(seed=5)
    batch = make_batch(sequences)
    model.train()(batch.packed, noise=noise_of(batch)).sum().backward()
    pretraining.train()(batch.packed, noise_of(batch)).sum().backward()
    assert torch.equal(torch.get_rng_state(), before)


def test_equal_seeds_draw_equal_weights_and_others_do_not(make_model: MakeModel) -> None:
    config = make_model(pooling="attention").config
    drawn = []
    for seed in (4, 4, 5):
        torch.rand(seed)
        model = SequenceClassifier(config, input_size=30, num_classes=4, features=False)
        model.initialize(seed)
        drawn.append(model.state_dict())
    assert all(torch.equal(drawn[0][name], drawn[1][name]) for name in drawn[0])
    for name, weight in drawn[0].items():
        assert torch.equal(weight, drawn[2][name]) == ("bias" in name and "pooling" not in name)
