"""The prediction after step t is that for the first t steps, whatever branches a model has."""

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
import torch

from seqtrain.config.value_types import PoolingName
from seqtrain.evaluation import prefixes
from seqtrain.evaluation.logits import predict_logits
from seqtrain.evaluation.prefixes import predict_step_logits, score_prefixes
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.store import SequenceStore
from tests.helpers.reading import encoded
from tests.helpers.small_models import PARTS, WORDS, make_model

CPU = torch.device("cpu")
CARRIED = {"initial_state": "carried"}
CELLS = [
    {"rnn": rnn, "bidirectional": both, "pooling": pooling, "num_layers": layers}
    for rnn, both, pooling, layers in product(
        ("gru", "lstm", "rnn"), (False, True), get_args(PoolingName), (1, 2)
    )
]
WAYS = [("engine", "torch"), ("unroll", "padded"), ("unroll", "masked")]
MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    **PARTS,
    **{"-".join(map(str, keys.values())): ("tokens", {}, keys) for keys in CELLS[::5]},
    **{f"{value}": ("tokens", {}, {key: value, "num_layers": 2}) for key, value in WAYS},
    "carried": ("tokens", {}, CARRIED | {"rnn": "lstm"}),
    "carried n-grams and subwords": (
        "text",
        PARTS["n-grams and long subwords"][1],
        PARTS["n-grams and long subwords"][2] | CARRIED,
    ),
    "carried convolutions": ("tokens", {}, CARRIED | {"convolutions": [[5, 3, 1], [4, 5, 2]]}),
    "carried series": ("features", {"standardize": "series"}, CARRIED),
}


def network_and_store(name: str, rows: int) -> tuple[ClassifierNetwork, SequenceStore]:
    """Return a model and random sequences for it, in three groups."""
    kind, rules, settings = MODELS[name]
    model, draw = make_model(kind, rules, **settings), np.random.default_rng(1)
    given, labels = [], list[int]()
    for _ in range(rows):
        length = int(draw.integers(1, 9))
        words = draw.choice([*WORDS[2:], "unknown", "words"], length).tolist()
        sequence: Any = draw.normal(size=(length, 2)).astype(np.float32)
        if kind != "features":
            sequence = " ".join(words) if kind == "text" else words
        given.append(sequence)
        labels.append(int(draw.integers(3)))
    groups = [f"g{row % 3}" for row in range(rows)]
    store = encoded(model.preprocessing, given, groups)
    return model.network, replace(store, labels=np.array(labels))


@pytest.mark.parametrize("name", MODELS)
def test_every_step_predicts_as_the_sequence_cut_there(name):
    model, store = network_and_store(name, 5)
    found = predict_step_logits(model, store, CPU)
    assert [len(logits) for logits in found] == store.lengths.tolist()
    for row, logits in enumerate(found):
        for step in range(1, len(logits) + 1):
            rows = np.arange(row + 1)  # those before it may carry their state to it
            ends = np.append(store.lengths[:row], step)
            plain = predict_logits(model, store.windows(rows, store.offsets[rows], ends), CPU)[-1]
            torch.testing.assert_close(logits[step - 1], plain, atol=1e-5, rtol=0)
    plain = predict_logits(model, store, CPU)
    torch.testing.assert_close(torch.stack([x[-1] for x in found]), plain, atol=1e-5, rtol=0)
    assert plain.std(0).max() > 1e-3, "the sequences must differ"


@pytest.mark.parametrize("name", [*MODELS][::4])
def test_scores_after_shares_end_with_those_of_whole_sequences(name):
    model, store = network_and_store(name, 20)
    store.labels[3] = -1
    by_share = score_prefixes(model, store, CPU)
    assert [row["share"] for row in by_share] == [n / 10 for n in range(1, 11)]
    steps = [logits.argmax(1).numpy() for logits in predict_step_logits(model, store, CPU)]
    whole = predict_logits(model, store, CPU).argmax(1).numpy()
    for tenths, row in enumerate(by_share, start=1):
        read = np.array([-(-len(each) * tenths // 10) for each in steps])
        found = np.array([each[n - 1] for each, n in zip(steps, read, strict=True)])
        assert row["accuracy"] == pytest.approx((found == store.labels).mean())
        assert row["agreement"] == pytest.approx((found == whole).mean())
        assert row["median_steps"] == np.median(read)
    assert by_share[-1]["accuracy"] == (whole == store.labels).mean()
    assert by_share[-1]["agreement"] == 1


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_running_pooling_holds_over_long_sequences_and_steep_scores(pooling):
    model = make_model("tokens", pooling=pooling)
    network, words = model.network, np.random.default_rng(3).choice(WORDS[2:], 3000).tolist()
    if pooling == "attention":
        with torch.no_grad():
            network.recurrent.pooling["attention"].score.weight.mul_(1000)
    store = encoded(model.preprocessing, [words])
    (steps,) = predict_step_logits(network, store, CPU)
    torch.testing.assert_close(steps[-1:], predict_logits(network, store, CPU), atol=1e-5, rtol=0)


def test_prefixes_laid_out_in_parts_give_the_same(monkeypatch):
    model, store = network_and_store("convolutions", 9)
    at_once = torch.cat(predict_step_logits(model, store, CPU))
    monkeypatch.setattr(prefixes, "PREFIX_STEPS_AT_ONCE", 7)
    in_parts = torch.cat(predict_step_logits(model, store, CPU))
    torch.testing.assert_close(in_parts, at_once, atol=1e-6, rtol=0)
