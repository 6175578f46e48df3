"""Conversations whose predictions depend on rows before: read, learned, scored and predicted."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seqtrain
from seqtrain.api import predict, prediction_input
from seqtrain.api.classifier import Classifier
from seqtrain.api.prediction_input import memory_parts
from seqtrain.config import resolved_config
from seqtrain.errors import DataError, Interrupted
from seqtrain.sequences.dataset import prepare
from tests.helpers.small_models import LABELS, WORDS, make_model
from tests.helpers.tiny import stopping_after, write_jsonl


def conversations(count: int, seed: int) -> list[dict[str, str]]:
    """Rows of mixed conversations; only the first one of each says its label."""
    draw = random.Random(seed)
    labels: dict[str, str] = {}
    rows = []
    for row in range(count):
        talk = f"talk {draw.randrange(row // 20 * 2, row // 20 * 2 + 4)}"
        text = "and then"
        if talk not in labels:
            text = labels[talk] = draw.choice(["ja", "nein"])
        rows.append({"text": text, "label": labels[talk], "talk": talk})
    return rows


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("data")
    return {
        "data": {
            "train": write_jsonl(folder / "train.jsonl", conversations(240, 0)),
            "validation": write_jsonl(folder / "validation.jsonl", conversations(100, 1)),
            "sequence": "text",
            "label": "label",
            "group": "talk",
        },
        "model": {"embedding_dim": 8, "hidden_size": 16, "initial_state": "carried"},
        "batching": {"batch_size": 8},
        "training": {"max_epochs": 10, "lr": 0.05},
    }


@pytest.fixture(scope="module")
def run(config, tmp_path_factory) -> seqtrain.Run:
    return seqtrain.fit(config, run_dir=tmp_path_factory.mktemp("runs") / "r", device="cpu")


def test_predict_goes_on_within_groups_across_chunks(run, tmp_path, monkeypatch):
    rows = conversations(120, 2)
    found = list(seqtrain.predict(write_jsonl(tmp_path / "more.jsonl", rows), run))
    assert np.mean([a.label == r["label"] for a, r in zip(found, rows, strict=True)]) > 0.97
    texts, talks = [row["text"] for row in rows], [row["talk"] for row in rows]
    monkeypatch.setattr(prediction_input, "CHUNK_ROWS", 7)
    again = seqtrain.load(run).predict(texts, groups=talks)
    assert [a.label for a in again] == [a.label for a in found]
    assert [a.probability for a in again] == pytest.approx([a.probability for a in found])
    alone = seqtrain.load(run).predict(texts)
    assert [a.label for a in alone] != [a.label for a in found]
    one_by_one = [seqtrain.load(run).predict([text])[0].probability for text in texts[:5]]
    assert [a.probability for a in alone[:5]] == pytest.approx(one_by_one)


def test_every_steps_prediction_goes_on_within_groups_too(run, config, tmp_path, monkeypatch):
    path = write_jsonl(tmp_path / "more.jsonl", conversations(40, 3))
    plain = [each.probability for each in seqtrain.predict(path, run)]
    monkeypatch.setattr(predict, "STEP_ROWS", 7)
    last = [float(steps.probabilities[-1].max()) for steps in seqtrain.predict_steps(path, run)]
    assert last == pytest.approx(plain)
    evaluation = seqtrain.evaluate(run, data=config["data"]["validation"], steps=True)
    assert evaluation.by_share[-1]["accuracy"] == evaluation.scores.accuracy > 0.97


def test_states_of_several_models_pass_from_burst_to_burst():
    models = [make_model("tokens", initial_state="carried") for _ in range(3)]
    for model, factor in zip(models, (1.0, -2.0, 0.5), strict=True):
        model.network.recurrent.head.weight.data *= factor
    *members, ensemble = (
        Classifier(some, torch.device("cpu"), Path("m")) for some in (*zip(models), models)
    )
    draw = random.Random(0)
    words = [draw.choices(WORDS[2:], k=1 + n % 4) for n in range(60)]
    groups = [f"g{n % 3}" for n in range(60)]
    ((rows,), _) = memory_parts(words, ensemble.preprocessing, groups)
    whole = list(ensemble.predict_parts([rows], "rows"))
    cuts = [(0, 25), (25, 25), (25, 26), (26, 60)]
    parts = [rows.at(np.arange(start, stop)) for start, stop in cuts]
    for found, expected in zip(ensemble.predict_parts(parts, "rows"), whole, strict=True):
        assert found.label == expected.label
        assert found.probabilities == pytest.approx(expected.probabilities, abs=1e-5)
    each = [list(member.predict_parts([rows], "rows")) for member in members]
    for row, together in enumerate(whole):
        for label in LABELS:
            mean = np.mean([own[row].probabilities[label] for own in each])
            assert together.probabilities[label] == pytest.approx(mean)


def test_a_blank_group_stands_alone_and_a_missing_column_is_refused(run, tmp_path):
    rows = [{"talk": "", "text": "ja", "label": "ja"}] * 3
    found = list(seqtrain.predict(write_jsonl(tmp_path / "blank.jsonl", rows), run))
    assert len({each.probability for each in found}) == 1
    none = write_jsonl(tmp_path / "none.jsonl", [{"text": "ja", "label": "ja"}])
    with pytest.raises(DataError, match=r"none\.jsonl:1: .*'talk'"):
        list(seqtrain.predict(none, run))
    with pytest.raises(DataError, match=r"^groups: found 1"):
        seqtrain.load(run).predict(["ja", "nein"], groups=["a"])


def test_a_run_stopped_in_the_middle_of_groups_goes_on_exactly(run, config, tmp_path):
    with pytest.raises(Interrupted):  # its data come from the cache, with their groups
        seqtrain.fit(config, run_dir=tmp_path / "r", device="cpu", listener=stopping_after(70))
    seqtrain.fit(config, run_dir=tmp_path / "r", device="cpu", resume=True)
    one, other = (path / "last" / "model.safetensors" for path in (run.path, tmp_path / "r"))
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("carried", [False, True])
def test_whole_groups_are_held_out_and_only_carried_states_need_them_later(
    config: dict[str, Any], carried: bool, tmp_path: Path
) -> None:
    data = {**config["data"], "validation": 0.25}
    model = {**config["model"], "initial_state": "carried" if carried else "zeros"}
    resolved = resolved_config({**config, "data": data, "model": model})
    prepared = prepare(resolved)
    rows = conversations(240, 0)
    groups = {
        split: {rows[line - 1]["talk"] for line in store.lines.tolist()}
        for split, store in prepared.splits.items()
    }
    assert not groups["train"] & groups["validation"]
    assert 30 <= len(prepared.splits["validation"]) <= 90
    training = {"max_epochs": 1}
    seqtrain.fit({**resolved.model_dump(), "training": training}, run_dir=tmp_path / "r")
    without = write_jsonl(tmp_path / "a.jsonl", [{"text": row["text"]} for row in rows[:5]])
    if carried:
        with pytest.raises(DataError, match="talk"):
            list(seqtrain.predict(without, tmp_path / "r"))
    else:
        assert len(list(seqtrain.predict(without, tmp_path / "r"))) == 5
