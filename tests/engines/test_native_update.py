"""Adam and the norms of gradients are torch's."""

import pytest
import torch
from torch import Tensor

from seqtrain.engines.native.library import Weight
from seqtrain.engines.native.update import adam, describe_weight
from tests.helpers.networks import needs_library, num_threads

pytestmark = needs_library

SHAPES = [(9, 37), (5,), (1,), (300, 301), (2, 3, 4), (1, 40_000), (0, 4)]
"""Some end within a vector, and together they are so many numbers that threads share them."""
State = dict[str, Tensor]


def described(weight: Tensor, **keys: float) -> tuple[Weight, State]:
    state = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
    state["step"] = torch.tensor(0.0)
    return describe_weight(weight, state, **keys), state


@pytest.mark.parametrize("kind", ["AdamW", "Adam"])
def test_an_update_of_many_weights_is_torchs_with_the_same_bits_by_any_threads(kind):
    torch.manual_seed(0)
    weights = [torch.randn(shape) for shape in SHAPES]
    expected = [weight.clone().requires_grad_() for weight in weights]
    theirs = getattr(torch.optim, kind)(
        expected, lr=0.1, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2
    )
    decay = {"decay" if kind == "AdamW" else "l2": 0.2}
    ours = [described(weight, **decay) for weight in weights]
    for threads in (1, 2, 3, 7):
        gradients = [torch.randn_like(weight) for weight in weights]
        found = [(d, g) for (d, _), g in zip(ours, gradients, strict=True)]
        for weight, gradient in zip(expected, gradients, strict=True):
            weight.grad = gradient.clone()
        norm = float(torch.nn.utils.clip_grad_norm_(expected, 7.0))
        theirs.step()
        keys = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3}
        with num_threads(threads):
            assert adam(found, limit=7.0, **keys) == pytest.approx(norm, rel=1e-5)
    for own, weight, (_, state) in zip(weights, expected, ours, strict=True):
        torch.testing.assert_close(own, weight.detach(), rtol=1e-4, atol=1e-5)
        for name, tensor in theirs.state[weight].items():
            torch.testing.assert_close(state[name], tensor, rtol=1e-4, atol=1e-6, msg=name)
