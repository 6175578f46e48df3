"""Runs that begin with word vectors of a file: what they learn, keep, and need afterwards."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from tests.helpers.tiny import Cli, assert_same_run, rows, sets, write_table
from tests.helpers.vectors import WORDS, vector, write_vectors

CONFIG = """\
data: {train: train.tsv, validation: 0.2, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 8}
model: {vectors: w.vec, vectors_keep: 2, hidden_size: 4}
training: {max_epochs: 3, patience: null, lr: 0.02, schedule: constant, weight_decay: 0.5}
"""
KNOWN = ("the", "fall", "sink", "rise", "climb", "grow")
"""Words of the file that train has."""


@pytest.fixture
def folder(project) -> Path:
    write_vectors(project / "w.vec")
    (project / "c.yaml").write_text(CONFIG)
    return project


def fit(cli: Cli, run: str, *settings: str, options: tuple[str, ...] = ()) -> str:
    """Train; return what was said."""
    ended = cli("fit", "c.yaml", "--run-dir", run, *sets(*settings), *options)
    return ended.err


def embedding(model: str) -> dict[str, np.ndarray]:
    """Return the vector of each token of a model folder."""
    weight = safetensors.numpy.load_file(f"{model}/model.safetensors")["embedding.weight"]
    names = json.loads(Path(model, "vocabulary.json").read_text())["tokens"]
    return dict(zip(names, weight, strict=True))


def as_in_the_file(found: dict[str, np.ndarray]) -> list[str]:
    """Return the words whose vectors equal the file's vectors bit by bit."""
    return [w for w in WORDS if w in found and np.array_equal(found[w], np.float32(vector(w, 4)))]


def test_a_run_begins_with_the_vectors_and_says_what_they_cover(folder, cli):
    verbose = ("--verbose",)
    said = fit(cli, "run", "training.lr=1e-12", "training.weight_decay=0", options=verbose)
    found = embedding("run/best")
    assert [*found][-2:] == ["ocean", "river"]  # "Paris" is no token in lower case
    for word in (*KNOWN, "ocean", "river"):
        assert found[word] == pytest.approx(vector(word, 4), abs=1e-6)
    mean = np.mean([vector(word, 4) for word in (*KNOWN, "ocean", "river")], axis=0)
    assert found["<unk>"] == pytest.approx(mean, abs=1e-6)
    own = len(found) - 4
    assert f"vectors: w.vec has 6 of {own} tokens (" in said
    assert "2 of its other words" in said
    recorded = json.loads(Path("run/environment.json").read_text())
    assert set(recorded["data"]) == {"train.tsv", "test.tsv", "w.vec"}
    facts = recorded["vectors"]
    assert (facts["words"], facts["found"], facts["more"], facts["size"]) == (10, 6, 2, 4)
    lines = [line.split("\t")[0].split() for line in Path("train.tsv").read_text().splitlines()]
    assert 0 < facts["share"] < 1
    assert {word for line in lines for word in line}.issuperset(KNOWN)
    shown = cli("data", "c.yaml", "--json").json["vectors"]
    assert shown == facts
    fit(cli, "again", "training.lr=1e-12", "training.weight_decay=0", options=verbose)
    assert_same_run("run", "again")


VARIANTS = {
    "torch": ("model.engine=torch", "model.rnn=lstm", "training.precision=bfloat16"),
    "dense": ("training.sparse_embedding=false", "training.optimizer=sgd"),
    "subwords": ("model.subwords=[3, 5]", "model.ngrams=[1, 2]", "training.refit=true", "seed=3"),
    "pretrained": ("pretraining.objective=language_model", "pretraining.max_epochs=1"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_frozen_vectors_stay_for_so_many_epochs(variant, folder, cli):
    settings = ("training.max_epochs=2", "training.lr=0.05", *VARIANTS[variant])
    kept = [*KNOWN, "ocean", "river"]
    for freeze, stay in (("2" if variant == "torch" else "true", True), ("1", False)):
        fit(cli, freeze, f"model.freeze={freeze}", *settings)
        assert (as_in_the_file(embedding(f"{freeze}/last")) == kept) == stay


def test_an_old_model_keeps_its_vectors_and_new_words_take_theirs(folder, cli):
    fit(cli, "old")
    table = [*rows(40, seed=1), *((f"fish moves {i}", "up") for i in range(4))]
    write_table(folder / "train.tsv", table)
    slow = ("training.lr=1e-12", "training.weight_decay=0")
    fit(cli, "new", *slow, "training.max_epochs=1", options=("--init-from", "old"))
    before, after = embedding("old/best"), embedding("new/best")
    assert [*after][: len(before)] == [*before]
    for word, values in before.items():
        assert after[word] == pytest.approx(values, abs=1e-6)
    assert after["fish"] == pytest.approx(vector("fish", 4), abs=1e-6)
    assert after["moves"] == pytest.approx(before["<unk>"], abs=1e-6)
    fit(cli, "new", *slow, "training.max_epochs=2", options=("--resume",))
    assert [*embedding("new/last")] == [*after]
    cli("eval", "new", "--split", "validation")
