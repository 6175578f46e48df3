"""Series standardised by themselves, whatever their batch-mates, scales and missing values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from seqtrain.model.standardization import SeriesStandardization

LENGTHS = [50, 20, 7, 2, 1]


def rows(channels: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(length, channels, generator=generator) * 10.0 ** (i - 2) + 3 * i
        for i, length in enumerate(LENGTHS)
    ]


def standard(row: Tensor) -> Tensor:
    deviation = row.double().std(0, correction=0)
    return torch.where(deviation > 0, (row - row.double().mean(0)) / deviation, 0.0)


@pytest.mark.parametrize("both", [False, True])
def test_each_series_by_its_own_mean_and_deviation(both: bool) -> None:
    model = SeriesStandardization(2, both=both, indicators=False)
    found = unpack_sequence(model(pack_sequence(rows(2))))
    for row, scaled in zip(rows(2), found, strict=True):
        own = standard(row).float()
        expected = torch.cat((row, own), dim=1) if both else own
        torch.testing.assert_close(scaled, expected, rtol=1e-4, atol=1e-4)
        assert scaled.shape[1] == model.width


def test_a_prefix_is_standardised_by_its_own_steps() -> None:
    model = SeriesStandardization(1, both=False, indicators=False)
    long = rows(1)[0]
    prefix = model(pack_sequence([long[:9]])).data
    torch.testing.assert_close(prefix, standard(long[:9]).float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", [0.0, 1.0, -3e5, 0.1])
def test_constant_series_become_zero(level: float) -> None:
    model = SeriesStandardization(1, both=False, indicators=False)
    assert not model(pack_sequence([torch.full((999, 1), level)])).data.any()


def test_missing_values_do_not_count() -> None:
    model = SeriesStandardization(2, both=True, indicators=True)
    row = rows(2)[0]
    absent = torch.zeros_like(row)
    absent[::3, 0] = 1
    absent[:, 1] = 1
    row = row * (1 - absent)
    scaled = model(pack_sequence([torch.cat((row, absent), dim=1)])).data
    assert scaled.shape[1] == model.width == 6
    present = absent[:, 0] == 0
    expected = standard(row[present, :1])[:, 0].float()
    torch.testing.assert_close(scaled[present, 2], expected, rtol=1e-4, atol=1e-4)
    assert not scaled[~present, 2].any()
    assert not scaled[:, 3].any()
    assert torch.equal(scaled[:, :2], row)
    assert torch.equal(scaled[:, 4:], absent)
