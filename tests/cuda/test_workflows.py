"""Training, scoring, prediction and checks on the device."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain

SENTENCES = ["rise the lift", "fall", "the n1 unknown", "slip drop sink climb"]
CELLS = ("gru", "lstm", "rnn")


def configured(*changes: str) -> seqtrain.Config:
    return seqtrain.load_config("c.yaml", list(changes))


def probabilities(run: Any, device: str) -> np.ndarray:
    answers = seqtrain.load(run, device=device).predict(SENTENCES)
    return np.array([list(answer.probabilities.values()) for answer in answers])


def weights(run: str) -> bytes:
    return Path(run, "best/model.safetensors").read_bytes()


@pytest.mark.parametrize("rnn", CELLS)
def test_a_model_of_one_device_answers_alike_on_the_other(rnn, project, device):
    for number, trained in enumerate((device.type, "cpu")):
        run = seqtrain.fit(configured(f"model.rnn={rnn}"), run_dir=f"on-{number}", device=trained)
        on_both = [probabilities(run, where) for where in (device.type, "cpu")]
        np.testing.assert_allclose(*on_both, atol=1e-4)
        scores = [seqtrain.evaluate(run, device=where).scores for where in (device.type, "cpu")]
        assert scores[0].accuracy == scores[1].accuracy
        assert seqtrain.check(run, device=device.type).passed


@pytest.mark.parametrize("parts", [(), ("model.ngrams=[1, 2]", "model.subwords=[3, 5]")])
def test_equal_seeds_give_equal_bits_where_asked_for(parts, project, device):
    config = configured("training.deterministic=true", "model.embedding_dropout=0.3", *parts)
    for name in ("a", "b"):
        seqtrain.fit(config, run_dir=name, device=device.type)
    assert weights("a") == weights("b")


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("rnn", CELLS)
def test_bfloat16_learns(rnn, layers, project, device):
    changes = (f"model.rnn={rnn}", "training.precision=bfloat16", "training.max_epochs=12")
    changes += (f"model.num_layers={layers}", "model.bidirectional=true")
    run = seqtrain.fit(configured(*changes), run_dir="r", device=device.type)
    assert seqtrain.evaluate(run, device=device.type).scores.accuracy > 0.8


@pytest.mark.parametrize(
    "keys",
    [
        ("model.ngrams=[1, 2]", "model.subwords=[3, 5]"),
        ("model.convolutions=[[8, 3, 2]]", "model.pooling=[max, last, attention]"),
        ("training.bptt=3",),
        ("model.initial_state=learned", "model.num_layers=2", "model.bidirectional=true"),
        ("training.refit=true",),
        ("pretraining.objective=language_model", "pretraining.max_epochs=2"),
        ("pretraining.objective=autoencoder", "pretraining.max_epochs=2"),
    ],
)
def test_parts_train(keys, project, device):
    run = seqtrain.fit(configured(*keys), run_dir="r", device=device.type)
    on_both = [probabilities(run, where) for where in (device.type, "cpu")]
    np.testing.assert_allclose(*on_both, atol=1e-4)
