"""Language model and autoencoder, packed, against loops over single time steps."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from seqtrain.engines.cells import as_one_tensor, as_torch_takes
from seqtrain.model.decoder import END, OBJECTIVES, LanguageModel, PretrainingModel, token_softmax
from seqtrain.sequences.batch import spellings
from seqtrain.sequences.vocabulary import UNK, word_grams
from tests.helpers.batches import batch_of
from tests.helpers.examples import some
from tests.helpers.networks import CPU_WAYS, assert_equal_gradients, gradients, ids, make_network

CASES = [
    (objective, {"rnn": rnn, "bidirectional": both, "num_layers": layers})
    for objective, rnn, both, layers in product(
        OBJECTIVES, ("gru", "lstm", "rnn"), (False, True), (1, 2)
    )
    if objective == "autoencoder" or layers == 1 or not both
]
every_way = pytest.mark.parametrize("way", CPU_WAYS[:3], ids=str)


def make_pretraining(objective: str, **keys: Any) -> PretrainingModel:
    model = OBJECTIVES[objective](make_network(**keys), 0.0)
    model.initialize(seed=0)
    return model


def losses_of_one(model: PretrainingModel, sequence: Tensor) -> list[Tensor]:
    """Predict one sequence with torch's own modules, token by token; END at its ends."""
    classifier = model.classifier
    states, last = classifier.recurrent.encoder(classifier.recurrent.embedding(sequence)[None])
    both, half = classifier.config.bidirectional, classifier.config.hidden_size
    tokens = sequence.tolist()
    if isinstance(model, LanguageModel):
        following, preceding = [*tokens[1:], END], [END, *tokens[:-1]]
        predicted = [(states[0, t, :half], token) for t, token in enumerate(following)]
        if both:
            predicted += [(states[0, t, half:], token) for t, token in enumerate(preceding)]
    else:
        state = as_one_tensor(last)[:, -2 if both else -1 :].transpose(1, 2).flatten(2)[:, None]
        predicted = [(state[0, 0, 0], tokens[0])]
        for t, token in enumerate([*tokens[1:], END]):
            given = classifier.recurrent.embedding(sequence[t])[None, None]
            state = as_one_tensor(model.decoder(given, as_torch_takes(state))[1])
            predicted.append((state[0, 0, 0], token))
    return [-model.softmax.log_prob(h[None])[0, token] for h, token in predicted]


@every_way
@pytest.mark.parametrize(("objective", "shape"), some(CASES, 4))
def test_losses_and_gradients_equal_a_loop_over_single_steps(objective, shape, way):
    model = make_pretraining(objective, **shape, **way)
    packed = model(batch_of(pack_sequence(ids())))
    loop = torch.stack([loss for sequence in ids() for loss in losses_of_one(model, sequence)])
    torch.testing.assert_close(packed.sort().values, loop.sort().values)
    found, expected = gradients(model, packed.mean()), gradients(model, loop.mean())
    zeros = {name: torch.zeros_like(gradient) for name, gradient in expected.items()}
    assert_equal_gradients(zeros | found, expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_subwords_are_read_and_learned(objective):
    """Unknown words too: their spelling comes with the batch, and the predicted token is <unk>."""
    model = make_pretraining(objective, subwords=[3, 5]).eval()
    packed = pack_sequence([torch.tensor([2, UNK, 4]), torch.tensor([5])])
    words = word_grams(["unheard", "unseen"], 3, 5)

    def losses(word: int) -> Tensor:
        numbers = np.where(packed.data.numpy() == UNK, word, -1).astype(np.int32)
        found: Tensor = model(batch_of(packed, spellings=spellings(numbers, words)))
        return found

    assert not torch.allclose(losses(0), losses(1))
    found = gradients(model, losses(0))
    assert found["classifier.recurrent.subwords.weight"].abs().sum() > 0
    with torch.no_grad():
        before = losses(0)
        model.recurrent.subwords.weight.zero_()
        assert not torch.allclose(losses(0), before)


@pytest.mark.parametrize("vocab_size", [3, 100, 101, 501, 2500])
def test_probabilities_add_up_to_one(vocab_size):
    log_probabilities = token_softmax(8, vocab_size).log_prob(torch.randn(4, 8))
    assert log_probabilities.shape == (4, vocab_size)
    torch.testing.assert_close(log_probabilities.exp().sum(1), torch.ones(4))


@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_free_running_equals_a_loop_over_one_sequence(rnn):
    model = make_pretraining("autoencoder", rnn=rnn, bidirectional=True).eval()
    together = model.reconstruct(batch_of(pack_sequence(ids())), steps=9)
    for found, sequence in zip(together, ids(), strict=True):
        assert model.reconstruct(batch_of(pack_sequence([sequence])), steps=9) == [found]
        assert len(found) <= 9
        assert END not in found
