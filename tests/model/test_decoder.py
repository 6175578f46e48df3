"""Pretraining's losses equal a loop over one sequence and one step at a time, without padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.decoder import (
    END,
    Autoencoder,
    LanguageModel,
    PretrainingModel,
    neighbours,
    token_softmax,
)
from seqtrain.model.engines.native import why_not

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

OBJECTIVES: tuple[type[LanguageModel | Autoencoder], ...] = (LanguageModel, Autoencoder)
CELLS = (("gru", "native"), ("gru", "torch"), ("lstm", "torch"), ("rnn", "torch"))
CASES = [
    (
        objective,
        {"rnn": rnn, "bidirectional": bidirectional, "num_layers": layers, "engine": engine},
    )
    for objective in OBJECTIVES
    for rnn, engine in CELLS
    for bidirectional in (False, True)
    for layers in (1, 2)
    if engine != "native" or not why_not()
    if objective is Autoencoder or layers == 1 or not bidirectional
]


@pytest.fixture
def make_pretraining(make_model: MakeModel) -> Callable[..., PretrainingModel]:
    """Build what pretrains a small classifier, its own weights drawn too."""

    def run(
        objective: type[LanguageModel | Autoencoder], dropout: float = 0.0, **keys: object
    ) -> PretrainingModel:
        model = objective(make_model(**keys), dropout)
        model.initialize(seed=0)
        return model

    return run


def losses_of_one(model: PretrainingModel, sequence: Tensor) -> list[float]:
    """Predict one sequence with torch's own modules, token by token; END at its ends."""
    classifier = model.classifier
    states, last = classifier.encoder(classifier.embedding(sequence)[None])
    if isinstance(model, LanguageModel):
        half = classifier.config.hidden_size
        following = [*sequence.tolist()[1:], END]
        predicted = [(states[0, t, :half], token) for t, token in enumerate(following)]
        if classifier.config.bidirectional:
            preceding = [END, *sequence.tolist()[:-1]]
            predicted += [(states[0, t, half:], token) for t, token in enumerate(preceding)]
    else:
        assert isinstance(model, Autoencoder)
        directions = 2 if classifier.config.bidirectional else 1
        parts = last if isinstance(last, tuple) else (last,)
        state = [part[-directions:].transpose(0, 1).reshape(1, 1, -1) for part in parts]
        predicted = [(state[0][0, 0], int(sequence[0]))]
        for t, token in enumerate([*sequence.tolist()[1:], END]):
            given = classifier.embedding(sequence[t])[None, None]
            start = tuple(state) if len(state) > 1 else state[0]
            _, after = model.decoder(given, start)
            state = list(after) if len(state) > 1 else [after]
            predicted.append((state[0][0, 0], token))
    probabilities = [model.softmax.log_prob(h[None])[0, token] for h, token in predicted]
    return [-float(p.detach()) for p in probabilities]


@pytest.mark.parametrize(("objective", "shape"), CASES)
def test_losses_equal_a_loop_over_single_steps(
    objective: type[LanguageModel | Autoencoder],
    shape: dict[str, Any],
    make_pretraining: Callable[..., PretrainingModel],
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    model = make_pretraining(objective, 0.3, **shape).eval()
    packed_losses = model(make_batch(sequences).packed)
    alone = [loss for sequence in sequences for loss in losses_of_one(model, sequence)]
    torch.testing.assert_close(packed_losses.sort().values, torch.tensor(alone).sort().values)
    assert float(packed_losses.detach().mean()) == pytest.approx(sum(alone) / len(alone), rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_batch_mates_change_no_loss_and_no_gradient(
    objective: type[LanguageModel | Autoencoder],
    make_pretraining: Callable[..., PretrainingModel],
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    model = make_pretraining(objective, bidirectional=True)
    parameters = [p for name, p in model.named_parameters() if "head" not in name.split(".")[1]]

    def gradients(batches: list[list[Tensor]]) -> list[Tensor]:
        total = sum(model(make_batch(batch).packed).sum() for batch in batches)
        assert isinstance(total, Tensor)
        return [
            torch.zeros_like(p) if g is None else g
            for p, g in zip(
                parameters,
                torch.autograd.grad(total, parameters, allow_unused=True),
                strict=True,
            )
        ]

    together, alone = gradients([sequences]), gradients([[one] for one in sequences])
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_neighbours_stand_beside_each_step() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.tensor(s) for s in ([2, 3, 4], [5, 6], [7])])
    following, preceding = neighbours(packed)
    assert following.tolist() == [2, 5, 7, 3, 6, END, 4, END, END]
    assert preceding.tolist() == [END, END, END, 2, 5, 3]


@pytest.mark.parametrize(("width", "vocab_size"), [(64, 60_000), (128, 30_000), (128, 200_000)])
def test_rare_tokens_are_scored_in_some_dimensions(width: int, vocab_size: int) -> None:
    softmax = token_softmax(width, vocab_size)
    narrowest = min(int(group[0].out_features) for group in softmax.tail)
    assert 7 <= narrowest <= 12


@pytest.mark.parametrize("vocab_size", [3, 100, 101, 501, 2500])
def test_probabilities_add_up_to_one(vocab_size: int) -> None:
    log_probabilities = token_softmax(8, vocab_size).log_prob(torch.randn(4, 8))
    assert log_probabilities.shape == (4, vocab_size)
    torch.testing.assert_close(log_probabilities.exp().sum(1), torch.ones(4))


@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_free_running_equals_a_loop_over_one_sequence(
    rnn: str,
    make_pretraining: Callable[..., PretrainingModel],
    make_batch: MakeBatch,
    sequences: list[Tensor],
) -> None:
    model = make_pretraining(Autoencoder, rnn=rnn, bidirectional=True).eval()
    batch = make_batch(sequences)
    together = model.reconstruct(batch.packed, steps=9)
    for place, row in enumerate(batch.sorted_indices.tolist()):
        alone = PackedSequence(sequences[row], torch.ones(len(sequences[row]), dtype=torch.int64))
        assert model.reconstruct(alone, steps=9) == [together[place]]
        assert len(together[place]) <= 9
        assert END not in together[place]
