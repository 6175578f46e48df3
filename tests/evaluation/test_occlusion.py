"""Weights of time steps: falls of the log-probability of the decisions that were made."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from seqtrain.evaluation.logits import predict_logits
from seqtrain.evaluation.occlusion import occlusion_weights
from seqtrain.sequences.examples import Example
from tests.helpers.small_models import WORDS, make_model

CPU = torch.device("cpu")


@pytest.mark.parametrize("decided", [True, False])
def test_a_multi_label_decision_is_that_at_the_thresholds(decided):
    """A label below one half may be predicted; its weights must not be those of its absence."""
    model = make_model("tokens")
    model.network.multi_label = True
    sequences = [WORDS[2:6], [*WORDS[2:3], *WORDS[4:6]]]
    rows = [Example(words, None, number) for number, words in enumerate(sequences, start=1)]
    ((_, store),) = model.preprocessing.encode_chunks([rows], "rows")
    logits = predict_logits(model.network, store, CPU).double()
    thresholds = [0.0 if decided else 1.0] * logits.shape[1]
    weights, _ = occlusion_weights(model.network, store, 0, CPU, thresholds, None, None)
    chances = functional.logsigmoid(logits if decided else -logits).sum(1)
    assert len(weights) == 4
    assert weights[1] == pytest.approx(float(chances[0] - chances[1]), abs=1e-5)
    assert np.abs(weights).max() > 1e-4
