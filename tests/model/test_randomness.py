"""Random numbers are a pure function of what they are for, and random all the same."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch

from seqtrain.model.randomness import Noise, PackedNoise, Site, normals, number, numbers

SPLITMIX64 = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
"""First numbers of the stream with seed 1234567, as other implementations have them."""


def test_streams_are_those_of_splitmix64() -> None:
    assert [number(1234567, index) for index in range(4)] == SPLITMIX64
    found = numbers(torch.tensor(1234567), torch.arange(4))
    assert [value % 2**64 for value in found.tolist()] == SPLITMIX64


def test_tensors_and_single_numbers_have_equal_bits() -> None:
    seeds = [0, 1, 2**63 - 1, -1, -(2**63), 987654321]
    indices = [0, 1, 70_000, 2**40]
    found = numbers(torch.tensor(seeds)[:, None], torch.tensor(indices))
    expected = [[number(seed % 2**64, index) for index in indices] for seed in seeds]
    assert [[value % 2**64 for value in row] for row in found.tolist()] == expected
    many = numbers(2**64 - 3, torch.arange(200_000))
    assert many[131_072].item() % 2**64 == number(2**64 - 3, 131_072)


def kept(rate: float, rows: int = 2000, width: int = 512, **at: int) -> torch.Tensor:
    """Return which units of many rows one site keeps."""
    noise = Noise.of(at.get("seed", 0), at.get("update", 0), torch.arange(rows))
    ones = torch.ones(rows, width)
    dropped = noise.drop(ones, rate, at.get("site", Site.HEAD), noise.examples + at.get("by", 0))
    return dropped != 0


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.2, 0.5, 0.9, 0.999])
def test_the_rate_is_the_one_asked_for(rate: float) -> None:
    found = (~kept(rate)).double()
    limit = 5 * math.sqrt(rate * (1 - rate))
    assert abs(found.mean() - rate) < limit / math.sqrt(found.numel())
    for axis in (0, 1):
        assert (found.mean(axis) - rate).abs().max() < limit / math.sqrt(found.shape[axis])


def test_units_rows_sites_updates_and_seeds_are_independent() -> None:
    """Bits that have nothing to do with each other agree as often as coins do."""
    one = kept(0.5)
    limit = 5 / math.sqrt(one.numel())
    pairs = [(one, kept(0.5, **{name: 1})) for name in ("seed", "update", "by")]
    pairs += [(one, kept(0.5, site=Site.EMBEDDING))]
    pairs += [(one[:, :-by], one[:, by:]) for by in (1, 2, 3, 4, 8, 64, 128)]
    pairs += [(one[:-by], one[by:]) for by in (2, 7, 64, 1024)]
    for first, second in pairs:
        agreement = (first == second).double().mean() - 0.5
        assert abs(agreement) < limit * math.sqrt(one.numel() / first.numel())
    # Three units at once: their exclusive or is a coin as well.
    parity = one[:, :-3] ^ one[:, 1:-2] ^ one[:, 3:]
    assert abs(parity.double().mean() - 0.5) < 1.1 * limit


def test_numbers_are_uniform() -> None:
    """Each of the four units of a number: counts of 256 values are as chance has them."""
    found = numbers(number(5, 6), torch.arange(100_000)).view(torch.int16).view(-1, 4)
    for unit in found.T:
        counts = ((unit.int() + 2**15) // 256).bincount(minlength=256).double()
        mean = len(unit) / 256
        chi_square = float(((counts - mean) ** 2 / mean).sum())
        assert abs(chi_square - 255) < 5 * math.sqrt(2 * 255)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1 - 1e-9])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(rate: float) -> None:
    noise = Noise.of(0, 0, torch.arange(4000))
    values = torch.full((4000, 100), 2.0)
    found = noise.drop(values, rate, Site.HEAD, noise.examples)
    assert set(found.unique().tolist()) <= {0.0, found.max().item()}
    assert found.isfinite().all()
    if rate < 0.9:
        assert found.mean().item() == pytest.approx(2.0, rel=0.01)
    if not rate:
        assert found is values


def test_gradients_pass_where_units_are_kept() -> None:
    noise = Noise.of(0, 0, torch.arange(50))
    values = torch.randn(50, 30, requires_grad=True)
    found = noise.drop(values, 0.4, Site.HEAD, noise.examples)
    (gradient,) = torch.autograd.grad(found.sum(), values)
    torch.testing.assert_close(gradient * values, found)


def test_normals_are_normal() -> None:
    found = normals(torch.arange(1000), 200).double().flatten().sort().values
    n = len(found)
    expected = 0.5 * (1 + torch.erf(found / math.sqrt(2)))
    distance = (expected - (torch.arange(n) + 0.5) / n).abs().max()
    assert distance < 1.95 / math.sqrt(n), "Kolmogorov and Smirnov, 0.1 %"
    assert abs(found.mean()) < 5 / math.sqrt(n)
    assert 3.5 < found.abs().max() < 6.5


def test_time_steps_have_the_numbers_of_their_example_and_place() -> None:
    """Whatever else the batch holds, and where in a segment the time step is."""
    sizes = torch.tensor([3, 2, 2])
    noise = Noise.of(3, 4, torch.tensor([40, 7, 12]))
    whole = PackedNoise(noise, sizes).drop(torch.ones(7, 90), 0.5, Site.HEAD)
    alone = PackedNoise(Noise.of(3, 4, torch.tensor([7])), torch.ones(3, dtype=torch.int64))
    assert torch.equal(alone.drop(torch.ones(3, 90), 0.5, Site.HEAD), whole[[1, 4, 6]])
    later = PackedNoise(noise, torch.tensor([2, 2]), torch.tensor([1, 1, 0]))
    assert torch.equal(later.drop(torch.ones(4, 90), 0.5, Site.HEAD), whole[3:])


def test_the_numbers_never_change() -> None:
    """Runs are resumed by later versions and on other machines."""
    noise = Noise.of(0, 9, torch.arange(64))
    mask = noise.drop(torch.ones(64, 65), 0.3, Site.HEAD, noise.examples) != 0
    digest = hashlib.sha256(mask.numpy().tobytes()).hexdigest()[:16]
    assert digest == "e10f3e3535f6c5e6"
    assert noise.normals(Site.INITIAL_STATE, 2)[5].tolist() == pytest.approx(
        [-0.88221, -0.029321], abs=1e-5
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_gpu_has_the_same_bits() -> None:
    noise = Noise.of(0, 9, torch.arange(64))
    values = torch.ones(64, 65)
    on_gpu = noise.drop(values.cuda(), 0.3, Site.HEAD, noise.examples)
    assert torch.equal(on_gpu.cpu(), noise.drop(values, 0.3, Site.HEAD, noise.examples))
