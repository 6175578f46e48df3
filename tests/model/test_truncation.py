"""Truncated backpropagation and prediction in segments, against one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from seqtrain.data.batch import Batch
from seqtrain.model import classifier
from seqtrain.model.classifier import SequenceClassifier
from seqtrain.model.engines.native import why_not
from seqtrain.model.truncation import segments_of
from tests.helpers.examples import some

MakeModel = Callable[..., SequenceClassifier]
MakeBatch = Callable[[list[Tensor]], Batch]

ENGINES = [("gru", "torch"), ("lstm", "torch"), ("rnn", "torch")]
if not why_not():
    ENGINES.append(("gru", "native"))
KEYS = [
    {"rnn": rnn, "engine": engine, "pooling": pooling, "num_layers": 2, "initial_state": start}
    for (rnn, engine), pooling, start in product(
        ENGINES, ("last", "mean", "max", "attention"), ("zeros", "learned")
    )
]
STARTS = [("concat", "zeros"), ("sum", "learned")]
"""How the directions are joined, and where they begin."""
every_way = pytest.mark.parametrize(
    "keys", some(KEYS, 3), ids=lambda keys: "-".join(map(str, keys.values()))
)


def gradients(model: SequenceClassifier, logits: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    weights = torch.linspace(-1, 1, logits.numel()).reshape(logits.shape)
    (logits * weights).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def randomize_start(model: SequenceClassifier) -> None:
    if model.config.initial_state == "learned":
        with torch.no_grad():
            model.initial_state.normal_()


def truncated(model: SequenceClassifier, ids: Tensor, steps: int) -> Tensor:
    """Classify one sequence with torch's module; gradients are cut every steps from its end."""
    state: Any = None
    if model.config.initial_state == "learned":
        parts = [part.unsqueeze(1).contiguous() for part in model.initial_state]
        state = tuple(parts) if model.config.rnn == "lstm" else parts[0]
    outputs = []
    first = len(ids) % steps or steps
    for segment in ids.split([first, *[steps] * ((len(ids) - first) // steps)]):
        out, state = model.encoder(model.embedding(segment).unsqueeze(0), state)
        outputs.append(out[0])
        state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
    states = torch.cat(outputs)
    if model.config.pooling == "last":
        return model.head(states[-1])
    return model.head(model.pooling(states, torch.ones(len(states), dtype=torch.int64))[0])


@every_way
def test_gradients_reach_back_so_many_steps_and_no_further(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys)
    randomize_start(model)
    batch = make_batch(sequences)
    logits = model(batch.packed, bptt=3)[batch.unsorted_indices]
    found = gradients(model, logits)
    reference = torch.stack([truncated(model, sequence, 3) for sequence in sequences])
    expected = gradients(model, reference)
    torch.testing.assert_close(logits, reference, atol=1e-5, rtol=0)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=2e-5, rtol=1e-4, msg=name)
    full = gradients(model, model(batch.packed))
    assert not torch.allclose(found["encoder.weight_hh_l0"], full["encoder.weight_hh_l0"])


@every_way
def test_as_many_steps_as_the_longest_sequence_has_give_the_full_gradient(
    keys: dict[str, Any], make_model: MakeModel, make_batch: MakeBatch, sequences: list[Tensor]
) -> None:
    model = make_model(**keys)
    packed = make_batch(sequences).packed
    full = gradients(model, model(packed))
    for steps in (12, 1000):
        found = gradients(model, model(packed, bptt=steps))
        assert all(torch.equal(found[name], value) for name, value in full.items())


@every_way
@pytest.mark.parametrize("steps", [1, 5])
def test_prediction_in_segments_gives_equal_logits(
    keys: dict[str, Any],
    steps: int,
    make_model: MakeModel,
    make_batch: MakeBatch,
    sequences: list[Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make_model(**keys)
    randomize_start(model)
    packed = make_batch(sequences).packed
    with torch.no_grad():
        whole = model(packed)
        monkeypatch.setattr(classifier, "PREDICTION_STEPS", steps)
        torch.testing.assert_close(model(packed), whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("cell", "pooling", "start", "steps"),
    some(product(ENGINES, ("last", "mean", "max", "attention"), STARTS, (1, 5)), 3),
)
def test_prediction_in_segments_in_both_directions_gives_equal_logits_and_states(
    cell: tuple[str, str],
    pooling: str,
    start: tuple[str, str],
    steps: int,
    make_model: MakeModel,
    make_batch: MakeBatch,
    sequences: list[Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (rnn, engine), (join, state) = cell, start
    keys = {"rnn": rnn, "engine": engine, "pooling": pooling, "initial_state": state}
    model = make_model(**keys, join=join, num_layers=1, bidirectional=True)
    randomize_start(model)
    packed = make_batch(sequences).packed
    with torch.no_grad():
        (logits,), states = model.carry_parts(packed)
        monkeypatch.setattr(classifier, "PREDICTION_STEPS", steps)
        (in_segments,), states_in_segments = model.carry_parts(packed)
    torch.testing.assert_close(in_segments, logits, atol=1e-6, rtol=0)
    torch.testing.assert_close(states_in_segments, states, atol=1e-6, rtol=0)


@pytest.mark.parametrize("pooling", ["last", "mean", "attention"])
def test_under_bfloat16_every_parameter_still_gets_its_gradient(
    pooling: str, make_model: MakeModel, make_batch: MakeBatch
) -> None:
    model = make_model(features=3, pooling=pooling, engine="torch").train()
    packed = make_batch([torch.randn(9, 3), torch.randn(2, 3)]).packed
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(packed, bptt=2)
    found = gradients(model, logits.float())
    assert found.keys() == dict(model.named_parameters()).keys()
    assert all(gradient.abs().sum() > 0 for gradient in found.values())


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 25))
def test_segments_hold_every_step_once_in_order_and_end_with_the_ends(
    lengths: list[int], steps: int
) -> None:
    lengths = sorted(lengths, reverse=True)
    rows = [torch.arange(length) + 100 * row for row, length in enumerate(lengths)]
    segments = [*segments_of(pack_sequence(rows), steps)]
    found: list[list[int]] = [[] for _ in rows]
    for segment in segments:
        assert len(segment.packed.batch_sizes) <= steps
        for row, part in enumerate(unpack(segment.packed)):
            assert len(found[row]) == int(segment.begin[row])
            found[row] += part
    assert found == [row.tolist() for row in rows]
    assert [segment.later for segment in segments] == [*range(len(segments))][::-1]
    assert [len(part) for part in unpack(segments[-1].packed)] == [min(steps, n) for n in lengths]


def unpack(packed: PackedSequence) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(int(packed.batch_sizes[0]))]
    for step in packed.data.split(packed.batch_sizes.tolist()):
        for row, value in enumerate(step.tolist()):
            rows[row].append(value)
    return rows
