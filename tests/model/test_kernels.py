"""The bank of kernels: equal to the formula whatever the batch-mates; what it learns."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence

import seqtrain
from seqtrain.engines.layout import Packed
from seqtrain.model.branches.kernels import KERNELS, KernelBranch
from seqtrain.model.branches.solved import SolverInput
from seqtrain.model.input_spec import KernelSizes
from seqtrain.runs.model_folder import load_model
from seqtrain.sequences.store import SequenceStore
from tests.helpers.batches import branch_logits
from tests.helpers.small_models import series_store
from tests.helpers.tiny import write_npz

LENGTHS = (70, 41, 40, 9, 8, 3, 2, 1)


def series(channels: int, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [scale * torch.randn(n, channels, generator=generator).cumsum(0) for n in LENGTHS]


def fitted(channels: int, lengths: tuple[int, int, int] = (3, 20, 40)) -> KernelBranch:
    bank = KernelBranch(KernelSizes(channels, indicators=False, lengths=lengths), num_classes=3)
    solve(bank, series_store(channels))
    return bank


def solve(bank: KernelBranch, store: SequenceStore) -> None:
    bank.solve(SolverInput(store, np.ones(len(store)), seed=0, num_train=len(store)))


def logits_of(bank: KernelBranch, rows: list[Tensor]) -> Tensor:
    return branch_logits(bank, pack_sequence(rows))


def shares_of(bank: KernelBranch, rows: list[Tensor]) -> Tensor:
    packed = pack_sequence(rows)
    return bank.shares(packed.data, Packed.of(packed))


def by_hand(bank: KernelBranch, row: Tensor) -> Tensor:
    """The features of one series by torch's own convolution, view by view."""
    own = (row.double() - row.double().mean(0)) / row.double().std(0, correction=0)
    views = [row, torch.where(own.isfinite(), own, 0.0).float()]
    views += [torch.cat((torch.zeros_like(x[:1]), x.diff(dim=0))) for x in views]
    found = []
    for kind, relative in enumerate(bank.relative):
        for number, dilation in enumerate(bank.dilations):
            if relative:
                dilation = max(1, int(dilation * len(row) / bank.length + 0.5))
            for view, values in enumerate(views):
                whole = (values * bank.gain[view]).round().clamp(-(2**17), 2**17)
                weights = (
                    torch.from_numpy(KERNELS)[:, None]
                    * bank.channels[kind, number, view][:, :, None]
                )
                keys = {"padding": 4 * dilation, "dilation": dilation}
                outputs = functional.conv1d(whole.T[None].double(), weights.double(), **keys)[0]
                above = outputs[:, None] > bank.bias[kind, number, view][:, :, None]
                found.append(above.float().mean(-1).flatten())
    return torch.cat(found)


@pytest.mark.parametrize("lengths", [(3, 20, 40), (20, 20, 20), (1, 1, 2), (5, 400, 900)])
@pytest.mark.parametrize("channels", [1, 3, 12])
def test_features_are_those_of_the_formula(channels, lengths, monkeypatch):
    """Of rows shorter than a kernel too, and where a row is computed in several pieces."""
    bank, rows = fitted(channels, lengths), series(channels)
    expected = torch.stack([by_hand(bank, row) for row in rows])
    found = shares_of(bank, rows)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    monkeypatch.setattr("seqtrain.model.branches.kernels.MAX_NUMBERS", 17 * found.shape[1])
    assert torch.equal(shares_of(bank, rows), found)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e30])
def test_a_row_alone_has_the_same_bits_as_in_a_batch(scale):
    bank, rows = fitted(3), series(3, scale)
    together = shares_of(bank, rows)
    for row, found in zip(rows, together, strict=True):
        assert torch.equal(shares_of(bank, [row])[0], found)
    with torch.autocast("cpu", torch.bfloat16):
        lowered = logits_of(bank, rows)
    assert torch.equal(lowered, logits_of(fitted(3), rows))
    bank.weight.normal_(generator=torch.Generator().manual_seed(0))
    alone = torch.cat([logits_of(bank, [row]) for row in rows])
    torch.testing.assert_close(alone, logits_of(bank, rows), rtol=3e-7, atol=0)


def test_logits_follow_the_weights_that_the_branch_has_now():
    """Equal batches after other weights are loaded, and after a change of the type."""
    bank, rows = fitted(3), series(3)
    before = logits_of(bank, rows)
    state = {name: tensor.clone() for name, tensor in bank.state_dict().items()}
    state["intercept"] += 1.0
    bank.load_state_dict(state)
    torch.testing.assert_close(logits_of(bank, rows), before + 1.0)
    found = logits_of(bank.to(torch.float64), rows)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, before.double() + 1.0, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_series_that_are_all_alike_leave_the_shares_of_the_classes(rows):
    bank = KernelBranch(KernelSizes(2, indicators=False, lengths=(1, 4, 9)), num_classes=3)
    store = series_store(2, [4] * rows)
    store.values[:] = 3.0
    solve(bank, store)
    logits = logits_of(bank, [torch.full((4, 2), 3.0)])
    assert bool(logits.isfinite().all())
    assert int(logits.argmax()) == 0


def waves(count: int, seed: int) -> list[np.ndarray]:
    """Every other one has a wave of 6 time steps, the others one of 8, at any phase and length."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        steps = np.arange(generator.integers(5, 60)) + generator.uniform(0, 24)
        wave = np.sin(2 * np.pi * steps / (6 if number % 2 else 8))
        rows.append(np.stack((wave, 0 * wave), 1) + generator.normal(0, 0.3, (len(steps), 2)))
    return [row.astype(np.float32) for row in rows]


@pytest.fixture
def config(tmp_path, monkeypatch) -> dict[str, dict[str, object]]:
    """One update of a tiny GRU, so that only the kernels can classify."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("train", 60), ("test", 100)):
        write_npz(
            tmp_path / f"{name}.npz", waves(count, len(name)), ["ab"[i % 2] for i in range(count)]
        )
    return {
        "data": {"train": "train.npz", "test": "test.npz", "kind": "features"},
        "model": {"kernels": True, "hidden_size": 2, "embedding_dim": 2},
        "training": {"max_epochs": 1, "lr": 1e-9},
    }


def test_it_tells_waves_apart_without_any_update(config: dict[str, dict[str, object]]) -> None:
    run = seqtrain.fit(config, run_dir="run")
    assert run.test.accuracy > 0.95
    assert load_model(Path("run/best")).calibration.branch_weights == [pytest.approx(0.2), 0.8]
    alone = seqtrain.evaluate("run").parts
    assert alone["kernels"].accuracy > 0.95 > 0.7 > alone["recurrent"].accuracy


def test_a_new_train_fits_it_again(config):
    """A run that begins from an old model, with one label more and longer series."""
    seqtrain.fit(config, run_dir="old")
    labels = [*"ab" * 20, *"c" * 20]
    rows = waves(40, 8) + [np.cumsum(row, 0) for row in waves(20, 9)]
    rows[0] = np.repeat(rows[0], 9, axis=0)
    write_npz(Path("train.npz"), rows, labels)
    seqtrain.fit(config, run_dir="new", init_from="old")
    assert seqtrain.evaluate("new", data="train.npz").parts["kernels"].accuracy > 0.9
    kernels = load_model(Path("new/best")).network.find(KernelBranch)
    lengths = [*map(len, rows)]
    assert kernels.lengths == (min(lengths), int(np.median(lengths)), max(lengths))
