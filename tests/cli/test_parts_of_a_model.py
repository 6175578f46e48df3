"""Parts that a config adds to the model, through every command: fit, resume, eval, predict, check.

Tests of the single parts are in tests/model.
"""

import json
import re
from pathlib import Path

import pytest

import seqtrain
from seqtrain.errors import Interrupted
from tests.helpers.tiny import (
    assert_same_run,
    series,
    stopping_after,
    write_npz,
    write_text_project,
)
from tests.helpers.vectors import write_vectors

BASE = (
    *("data.validation=0.2", "batching.batch_size=8"),
    *("model.embedding_dim=4", "model.hidden_size=4", "model.dropout=0.2"),
    *("model.embedding_dropout=0.1", "training.max_epochs=2", "training.lr=0.02"),
    *("training.patience=null", "training.weight_decay=0.1"),
)
PARTS = {
    "text": "ngrams=[1, 3] subwords=[2, 4] ngrams_spelling=true "
    "convolutions=[[6, 5, 2], [4, 3, 1]] bidirectional=true "
    "pooling=[max, last, mean, attention] batching.sort=module",
    "bfloat16, refit": "ngrams=[1, 2] max_ngrams=3 subwords=[3, 5] training.precision=bfloat16 "
    "training.refit=true",
    "dense": "ngrams=[1, 2] rnn=lstm vectors=w.vec freeze=1 training.sparse_embedding=false "
    "training.optimizer=sgd",
    "vectors": "vectors=w.vec vectors_keep=3 freeze=1 subwords=[3, 5] "
    "pretraining.objective=language_model pretraining.max_epochs=1",
    "kernels": "kernels=true data.missing=mask training.refit=true data.validation=0.4",
    "series": "convolutions=[[6, 3, 2]] pooling=[last, max] data.standardize=both "
    "data.missing=mask training.augment={shift: 0.3, slice: 0.4}",
}
CONFIG = {
    False: "data: {train: train.tsv, test: test.tsv, sequence: text, label: label, min_count: 2}",
    True: "data: {train: train.npz, test: test.npz, kind: features}",
}


def config_of(part: str, *options: str) -> seqtrain.Config:
    is_series = part in ("series", "kernels")
    settings = re.split(r" (?=[\w.]+=)", PARTS[part])
    keys = [word if "." in word.split("=")[0] else f"model.{word}" for word in settings]
    Path("c.yaml").write_text(CONFIG[is_series])
    return seqtrain.load_config("c.yaml", [*BASE, *keys, *options])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    write_text_project(tmp_path)
    write_vectors(tmp_path / "w.vec")
    for name, count in (("train", 40), ("test", 20)):
        rows = series(count, seed=count)
        for i, row in enumerate(rows):
            row[:, 0] += i % 2
        write_npz(tmp_path / f"{name}.npz", rows, ["ab"[i % 2] for i in range(count)])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("part", PARTS)
def test_every_command_takes_it_and_a_resumed_run_is_the_run_never_stopped(part, folder, cli):
    config = config_of(part)
    seqtrain.fit(config, run_dir="whole")
    with pytest.raises(Interrupted):
        seqtrain.fit(config, run_dir="parts", listener=stopping_after(6))
    seqtrain.fit(config, run_dir="parts", resume=True)
    assert_same_run("whole", "parts")
    scored = cli("eval", "whole", "--json").json
    beside = "ngrams" if config.model.ngrams else "kernels" if config.model.kernels else None
    branches = ["recurrent", beside] if beside else []
    assert list(scored.get("parts", [])) == branches
    shown = [
        line.split()[0] for line in cli("eval", "whole", "--all").out.splitlines() if "%" in line
    ]
    assert shown[:3] == ["together", *branches] or not branches
    file = "test.npz" if part in ("series", "kernels") else "test.tsv"
    plain = cli("predict", file, "--run", "whole", "--format", "jsonl")
    steps = cli("predict", file, "--run", "whole", "--format", "jsonl", "--steps")
    last = {row["index"]: row for row in map(json.loads, steps.out.splitlines())}
    for row in map(json.loads, plain.out.splitlines()):
        found = last[row["index"]]["probabilities"]
        assert found == pytest.approx(row["probabilities"], abs=1e-5)
    cli("check", "whole")
    cli("eval", "whole", "--steps")


def test_parts_of_words_count_where_train_has_no_rare_ones(project, cli):
    keys = ("model.ngrams=[1, 2]", "model.subwords=[3, 4]", "model.ngrams_spelling=true")
    sets = [word for key in (*keys, "data.min_count=1") for word in ("--set", key)]
    cli("fit", "c.yaml", "--run-dir", "r", "--quiet", *sets)
    assert cli("eval", "r", "--json").json["num_examples"] == 20
