"""Random numbers are a pure function of what they are for, and random all the same."""

import hashlib
import math

import pytest
import torch

from seqtrain.model.randomness import Purpose, RandomNumbers, number, numbers

SPLITMIX64 = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
"""First numbers of the stream with seed 1234567, as other implementations have them."""


def test_streams_are_those_of_splitmix64():
    assert [number(1234567, index) for index in range(4)] == SPLITMIX64
    seeds, indices = [0, 1, 2**63 - 1, -1, -(2**63), 1234567], [0, 1, 70_000, 2**40]
    found = numbers(torch.tensor(seeds)[:, None], torch.tensor(indices))
    expected = [[number(seed % 2**64, index) for index in indices] for seed in seeds]
    assert [[value % 2**64 for value in row] for row in found.tolist()] == expected
    many = numbers(2**64 - 3, torch.arange(200_000))
    assert many[131_072].item() % 2**64 == number(2**64 - 3, 131_072)


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
