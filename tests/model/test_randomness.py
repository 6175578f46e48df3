"""Random numbers are a pure function of what they are for, and random all the same."""

import hashlib
import math

import pytest
import torch

from seqtrain.model.randomness import Purpose, RandomNumbers


def kept(
    rate: float, *, seed: int = 0, update: int = 0, by: int = 0, purpose: int = Purpose.HEAD
) -> torch.Tensor:
    """Return which units of many rows are kept."""
    random = RandomNumbers.of(seed, update, torch.arange(2000))
    return random.drop(torch.ones(2000, 512), rate, purpose, random.examples + by) != 0


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.999])
def test_the_rate_is_the_one_asked_for(rate):
    found = (~kept(rate)).double()
    limit = 5 * math.sqrt(rate * (1 - rate))
    assert abs(found.mean() - rate) < limit / math.sqrt(found.numel())
    for axis in (0, 1):
        assert (found.mean(axis) - rate).abs().max() < limit / math.sqrt(found.shape[axis])


@pytest.mark.parametrize("rate", [0.0, 0.3, 1 - 1e-9])
def test_what_is_kept_is_scaled_and_passes_gradients(rate):
    random = RandomNumbers.of(0, 0, torch.arange(4000))
    values = torch.full((4000, 100), 2.0, requires_grad=True)
    found = random.drop(values, rate, Purpose.HEAD, random.examples)
    assert set(found.unique().tolist()) <= {0.0, found.max().item()}
    assert found.isfinite().all()
    assert rate > 0.9 or found.mean().item() == pytest.approx(2.0, rel=0.01)
    (gradient,) = torch.autograd.grad(found.sum(), values)
    torch.testing.assert_close(gradient * values, found)


def test_normals_are_normal():
    random = RandomNumbers.of(0, 0, torch.arange(1000))
    found = random.normals(Purpose.INITIAL_STATE, 200).double().flatten().sort().values
    n = len(found)
    expected = 0.5 * (1 + torch.erf(found / math.sqrt(2)))
    distance = (expected - (torch.arange(n) + 0.5) / n).abs().max()
    assert distance < 1.95 / math.sqrt(n), "Kolmogorov and Smirnov, 0.1 %"
    assert 3.5 < found.abs().max() < 6.5


def test_the_numbers_never_change():
    """Runs are resumed by later versions and on other machines."""
    random = RandomNumbers.of(0, 9, torch.arange(64))
    mask = random.drop(torch.ones(64, 65), 0.3, Purpose.HEAD, random.examples) != 0
    digest = hashlib.sha256(mask.numpy().tobytes()).hexdigest()[:16]
    assert digest == "e10f3e3535f6c5e6"
    assert random.normals(Purpose.INITIAL_STATE, 2)[5].tolist() == pytest.approx(
        [-0.88221, -0.029321], abs=1e-5
    )
