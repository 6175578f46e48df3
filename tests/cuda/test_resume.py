"""A run that is stopped and resumed on the device ends with the bits of one that wasn't."""

import pytest

from tests.helpers.tiny import assert_same_run, fit_until

PARTS = [
    (),
    ("model.ngrams=[1, 2]", "model.subwords=[3, 5]", "model.embedding_dropout=0.3"),
    ("training.optimizer=sgd", "model.num_layers=2", "training.refit=true"),
    ("model.ngrams=[1, 2]", "training.ngrams_lr=1.5", "model.initial_state=random"),
]


@pytest.mark.parametrize("parts", PARTS)
def test_equal_bits_after_a_stop(parts, project, device, cli):
    settings = ("training.deterministic=true", "training.max_epochs=3", *parts)
    settings = (*settings, f"training.device={device.type}")
    options = [word for setting in settings for word in ("--set", setting)]
    cli("fit", "c.yaml", "--run-dir", "whole", "--quiet", *options)
    fit_until(2, "parts", *settings)
    cli("fit", "c.yaml", "--run-dir", "parts", "--resume", "--quiet", *options)
    assert_same_run("whole", "parts")
