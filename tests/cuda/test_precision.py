"""float32 means float32 on a GPU, TF32 and bfloat16 are used only where a run asks for them."""

import json

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

import seqtrain
from seqtrain.sequences.precision import float32_products
from tests.helpers.batches import classify
from tests.helpers.networks import gradients, ids, make_network
from tests.helpers.tiny import Cli, sets

SENTENCES = ["rise the lift", "fall", "the n1 unknown", "slip drop sink climb"]


def fit(*changes: str, run_dir: str = "r") -> str:
    return seqtrain.fit(seqtrain.load_config("c.yaml", list(changes)), run_dir=run_dir)


@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_default_predictions_are_the_cpus_and_pass_check(rnn, project, device, cli: Cli):
    """Torch's own default, TF32 for recurrences, would differ by more."""
    run = fit(f"model.rnn={rnn}", "model.hidden_size=32", f"training.device={device.type}")
    on_both = [
        [
            list(p.probabilities.values())
            for p in seqtrain.load(run, device=where).predict(SENTENCES)
        ]
        for where in ("cpu", device.type)
    ]
    np.testing.assert_allclose(*on_both, atol=3e-6)
    cli("check", "--run", "r", "--device", device.type)


def test_torchs_settings_are_restored(device, on_cuda):
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    with float32_products(device, tf32=True):
        assert torch.backends.cudnn.allow_tf32
        assert torch.backends.cuda.matmul.allow_tf32
        with float32_products(device):
            assert not torch.backends.cudnn.allow_tf32
            assert not torch.backends.cuda.matmul.allow_tf32
    assert before == (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)


@pytest.mark.parametrize(
    ("precision", "training", "tf32"),
    [
        ("float32", torch.float32, False),
        ("tf32", torch.float32, True),
        ("bfloat16", torch.bfloat16, False),
    ],
)
@pytest.mark.parametrize("keys", [(), ("model.num_layers=2", "model.bidirectional=true")])
def test_recurrences_have_the_type_that_training_asks_for(
    keys, precision, training, tf32, project, fake
):
    """Autocast would compute in float16. Validation and predictions are in float32."""
    fake.recurrences.clear()
    run = fit(*keys, f"training.precision={precision}", "training.device=cuda")
    assert {call[:2] for call in fake.recurrences} == {(training, tf32), (torch.float32, False)}
    fake.recurrences.clear()
    seqtrain.evaluate(run, device="cuda")
    assert {call[:2] for call in fake.recurrences} == {(torch.float32, False)}


def test_tf32_is_float32_on_the_cpu(project):
    runs = [
        fit(f"training.precision={x}", "training.device=cpu", run_dir=x)
        for x in ("tf32", "float32")
    ]
    probabilities = [
        [p.probabilities for p in seqtrain.load(run).predict(SENTENCES)] for run in runs
    ]
    assert probabilities[0] == probabilities[1]


@pytest.mark.parametrize("unroll", ["packed", "padded", "masked"])
def test_a_model_in_evaluation_mode_has_gradients(unroll, device):
    """Saliency maps need them. The grad mode decides, and not the mode of the module."""
    found = []
    for where in ("cpu", device.type):
        model = make_network(unroll=unroll, engine="torch", num_layers=2).to(where).eval()
        with float32_products(device):
            logits = classify(model, pack_sequence(ids()).to(where))
            found.append({name: g.cpu() for name, g in gradients(model, logits).items()})
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-3, atol=1e-4)


def test_a_second_device_is_the_one_that_is_timed(project, fake, cli: Cli):
    """Each update reads its loss, and so waits for the device."""
    before = fake.waits()
    options = ("--device", "cuda:1", "--seconds", "1", "--json")
    found = json.loads(cli("compare", "c.yaml", *options, *sets("training.max_epochs=1")).out)
    assert found["device"] == "cuda:1"
    assert fake.waits() > before
