"""The answer after step t is the plain answer to the first t steps, whatever the architecture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqtrain.data.store import SequenceStore
from seqtrain.evaluation import prefixes
from seqtrain.evaluation.logits import predict_logits
from seqtrain.evaluation.prefixes import predict_step_logits, score_prefixes
from seqtrain.model.classifier import SequenceClassifier
from tests.helpers.examples import examples, some
from tests.helpers.stores import StoreBuilder

CPU = torch.device("cpu")
ARCHITECTURES = [
    {"rnn": rnn, "engine": engine, "bidirectional": both, "pooling": pooling, "num_layers": layers}
    for (rnn, engine), both, pooling, layers in product(
        (("gru", "auto"), ("gru", "torch"), ("lstm", "auto"), ("rnn", "auto")),
        (False, True),
        ("last", "mean", "max", "attention"),
        (1, 2),
    )
]
MakeConfig = Callable[..., Any]
MakeStore = Callable[..., SequenceStore]


def network(make_config: MakeConfig, **keys: Any) -> SequenceClassifier:
    model = SequenceClassifier(
        make_config(model=keys).model, input_size=12, num_classes=3, features=False
    )
    model.initialize(seed=0)
    with torch.no_grad():
        model.embedding.weight[1:].normal_()
    return model.eval()


def one_by_one(model: SequenceClassifier, store: SequenceStore, row: int) -> Tensor:
    """Return the plain logits of every prefix of one sequence, each a store of its own."""
    ids, _ = store[row]
    alone = []
    for stop in range(1, len(ids) + 1):
        builder = StoreBuilder()
        builder.add_ids(ids[:stop].tolist(), 0, 1)
        alone.append(predict_logits(model, builder.build(), CPU))
    return torch.cat(alone)


@pytest.mark.parametrize(
    "keys", some(ARCHITECTURES, 3), ids=lambda k: "-".join(map(str, k.values()))
)
def test_every_step_answers_as_the_sequence_cut_there(
    keys: dict[str, Any], make_config: MakeConfig, make_store: MakeStore
) -> None:
    model, store = network(make_config, **keys), make_store(7)
    found = predict_step_logits(model, store, CPU)
    assert [len(logits) for logits in found] == store.lengths.tolist()
    for row, logits in enumerate(found):
        torch.testing.assert_close(logits, one_by_one(model, store, row), atol=1e-5, rtol=0)
    plain = predict_logits(model, store, CPU)
    torch.testing.assert_close(torch.stack([x[-1] for x in found]), plain, atol=1e-5, rtol=0)
    assert plain.std(0).min() > 1e-3, "the sequences must be told apart"


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_running_pooling_holds_over_long_sequences_and_steep_scores(
    pooling: str, make_config: MakeConfig, make_store: MakeStore
) -> None:
    model, store = network(make_config, pooling=pooling), make_store(2, longest=3000, seed=3)
    if pooling == "attention":
        with torch.no_grad():
            model.pooling.score.weight.mul_(1000)
    last = torch.stack([logits[-1] for logits in predict_step_logits(model, store, CPU)])
    torch.testing.assert_close(last, predict_logits(model, store, CPU), atol=1e-5, rtol=0)


def test_prefixes_laid_out_in_parts_give_the_same(
    make_config: MakeConfig, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, store = network(make_config, bidirectional=True), make_store(9)
    at_once = torch.cat(predict_step_logits(model, store, CPU))
    monkeypatch.setattr(prefixes, "STEPS_AT_ONCE", 7)
    in_parts = torch.cat(predict_step_logits(model, store, CPU))
    torch.testing.assert_close(in_parts, at_once, atol=1e-6, rtol=0)


def test_feature_vectors(make_config: MakeConfig) -> None:
    generator = np.random.default_rng(0)
    builder = StoreBuilder(channels=2)
    for row, length in enumerate((4, 1, 6)):
        builder.add_features(generator.normal(size=(length, 2)), 0, row)
    store = builder.build()
    keys = make_config(model={"pooling": "max"}).model
    model = SequenceClassifier(keys, input_size=2, num_classes=3, features=True).eval()
    model.initialize(seed=0)
    found = predict_step_logits(model, store, CPU)
    assert [len(logits) for logits in found] == [4, 1, 6]
    plain = predict_logits(model, store.prefixes(np.array([2, 0]), np.array([3, 2])), CPU)
    torch.testing.assert_close(torch.stack((found[2][2], found[0][1])), plain, atol=1e-5, rtol=0)


def test_bidirectional_states_are_refused(make_config: MakeConfig) -> None:
    model = network(make_config, bidirectional=True)
    packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([3, 4])])
    with pytest.raises(ValueError, match="bidirectional"):
        model.step_logits(packed)


@pytest.mark.parametrize("both", [False, True])
def test_scores_after_shares(both: bool, make_config: MakeConfig, make_store: MakeStore) -> None:
    model, store = network(make_config, bidirectional=both), make_store(40, longest=23)
    store.labels[3] = -1
    by_share = score_prefixes(model, store, CPU)
    assert [row["share"] for row in by_share] == [n / 10 for n in range(1, 11)]
    steps = [logits.argmax(1).numpy() for logits in predict_step_logits(model, store, CPU)]
    final = np.array([answers[-1] for answers in steps])
    for tenths, row in enumerate(by_share, start=1):
        read = np.array([-(-len(answers) * tenths // 10) for answers in steps])
        found = np.array([answers[n - 1] for answers, n in zip(steps, read, strict=True)])
        assert row["accuracy"] == pytest.approx((found == store.labels).mean())
        assert row["agreement"] == pytest.approx((found == final).mean())
        assert row["median_steps"] == np.median(read)
    assert by_share[-1]["agreement"] == 1
    assert by_share[0]["agreement"] < 1


@examples(50)
@given(st.data())
def test_prefixes_of_a_store(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    builder = StoreBuilder()
    for row, length in enumerate(lengths):
        builder.add_ids(range(10 * row, 10 * row + length), row, row)
    pairs = data.draw(
        st.lists(
            st.integers(0, len(lengths) - 1).flatmap(
                lambda row: st.tuples(st.just(row), st.integers(1, lengths[row]))
            )
        )
    )
    rows, stops = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    cut = builder.build().prefixes(rows, stops)
    assert len(cut) == len(pairs)
    for place, (row, stop) in enumerate(pairs):
        ids, label = cut[place]
        assert ids.tolist() == list(range(10 * row, 10 * row + stop))
        assert label == row
