"""Pooling beyond what test_equality.py compares: ties, long means, two directions."""

import pytest
import torch

from seqtrain.engines.layout import Packed
from seqtrain.model.pooling import PoolingList


def test_equal_largest_steps_share_the_gradient():
    """Those of an earlier segment too."""
    states = torch.tensor([[1.0], [2.0], [0.0], [2.0], [1.0]], requires_grad=True)
    pooling, summary = PoolingList(["max"], 1), None
    for part, sizes in ((states[:2], [2]), (states[2:], [2, 1])):
        layout = Packed(torch.tensor(sizes), part.device)
        summary = pooling.add_segment(summary, part, layout)
    pooling.finalize(summary).backward(torch.tensor([[4.0], [6.0]]))
    assert states.grad.flatten().tolist() == [2.0, 3.0, 0.0, 3.0, 2.0]


def test_long_means_are_summed_in_full_precision():
    states = torch.ones(5000, 1, dtype=torch.bfloat16)
    one_row = Packed(torch.ones(5000, dtype=torch.int64), states.device)
    pooled = PoolingList(["mean"], 1)(states, one_row)
    assert pooled.item() == pytest.approx(1.0)
