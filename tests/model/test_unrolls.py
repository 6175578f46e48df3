"""Packed, padded and masked give the same logits and gradients, whatever the model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from seqtrain.data.batch import Batch
from seqtrain.model.classifier import SequenceClassifier
from tests.helpers.examples import some

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

GRID = [
    {"rnn": rnn, "num_layers": layers, "bidirectional": both, "pooling": pooling, "join": join}
    for rnn, layers, (both, join), pooling in product(
        ("gru", "lstm", "rnn"),
        (1, 3),
        ((False, "concat"), (True, "concat"), (True, "mean")),
        ("last", "mean", "max", "attention"),
    )
    if layers == 1 or pooling == "last"
]
MANY = [*range(1, 12, 4), 12, 12, 1, 7, 2]
CASES = [
    (MANY, torch.float32, 1e-5),
    (MANY, torch.float64, 1e-10),
    ([7], torch.float64, 1e-10),
    ([1], torch.float64, 1e-10),
    ([4] * 3, torch.float64, 1e-10),
]
"""Lengths, and how far numbers of a type may be from one another."""


def logits_and_gradients(model: SequenceClassifier, batch: Batch) -> dict[str, Tensor]:
    """Run both ways; gradients of a loss in which every logit counts differently."""
    model.zero_grad()
    logits = model(batch.packed)
    weights = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).reshape(logits.shape)
    (logits * weights).sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"logits": logits.detach(), **gradients}


@pytest.mark.parametrize("keys", some(GRID, 7), ids=lambda keys: "-".join(map(str, keys.values())))
def test_every_unroll_gives_equal_logits_and_gradients(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch
) -> None:
    packed = make_model(unroll="packed", engine="torch", **keys)
    others = {how: make_model(unroll=how, **keys) for how in ("padded", "masked")}
    for lengths, dtype, tolerance in CASES:
        generator = torch.Generator().manual_seed(len(lengths))
        ids = [torch.randint(1, 30, (length,), generator=generator) for length in lengths]
        batch = make_batch(ids)
        expected = logits_and_gradients(packed.to(dtype), batch)
        for how, model in others.items():
            found = logits_and_gradients(model.to(dtype), batch)
            assert found.keys() == expected.keys()
            for name, value in expected.items():
                scale = max(1.0, float(value.abs().max()))
                torch.testing.assert_close(
                    found[name], value, atol=tolerance * scale, rtol=0, msg=f"{how} {name}"
                )


@pytest.mark.parametrize("how", ["padded", "masked"])
@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
def test_bfloat16_runs_and_is_close(
    how: str, rnn: str, make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(unroll=how, rnn=rnn, bidirectional=True).train()
    packed = make_batch(sequences).packed
    exact = model(packed)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(packed)
    logits.float().square().mean().backward()
    torch.testing.assert_close(logits.float(), exact, atol=0.05, rtol=0.05)
