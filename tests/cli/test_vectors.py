"""Runs that begin with word vectors of a file: what they learn, keep, and need afterwards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from seqtrain.comparison.task import prepare_task
from seqtrain.config import load_config
from seqtrain.tuning.space import space_of
from tests.helpers.tiny import Cli, assert_same_run, rows, series, write_npz, write_table
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
def folder(project: Path) -> Path:
    write_vectors(project / "w.vec")
    (project / "c.yaml").write_text(CONFIG)
    return project


def fit(cli: Cli, run: str, *settings: str, options: tuple[str, ...] = ()) -> str:
    """Train; return what was said."""
    given = [word for setting in settings for word in ("--set", setting)]
    ended = cli("fit", "c.yaml", "--run-dir", run, *given, *options)
    assert ended.code == 0, ended.err
    return ended.err


def embedding(model: str) -> dict[str, np.ndarray]:
    """Return the vector of each token of a model folder."""
    weight = safetensors.numpy.load_file(f"{model}/model.safetensors")["embedding.weight"]
    names = json.loads(Path(model, "vocabulary.json").read_text())["tokens"]
    return dict(zip(names, weight, strict=True))


def as_in_the_file(found: dict[str, np.ndarray]) -> list[str]:
    """Return the words whose vectors are those of the file, to the bit."""
    return [w for w in WORDS if w in found and np.array_equal(found[w], np.float32(vector(w, 4)))]


def test_a_run_begins_with_the_vectors_and_says_what_they_cover(folder: Path, cli: Cli) -> None:
    said = fit(cli, "run", "training.lr=1e-12", "training.weight_decay=0")
    found = embedding("run/best")
    assert [*found][-2:] == ["ocean", "river"]  # "Paris" is no token in lower case
    for word in (*KNOWN, "ocean", "river"):
        assert found[word] == pytest.approx(vector(word, 4), abs=1e-6)
    mean = np.mean([vector(word, 4) for word in (*KNOWN, "ocean", "river")], axis=0)
    assert found["<unk>"] == pytest.approx(mean, abs=1e-6)
    own = len(found) - 4
    assert f"vectors: w.vec has 6 of {own} tokens (" in said
    assert "2 of its other words are kept" in said
    recorded = json.loads(Path("run/environment.json").read_text())
    assert set(recorded["data"]) == {"train.tsv", "test.tsv", "w.vec"}
    facts = recorded["vectors"]
    assert (facts["words"], facts["found"], facts["more"], facts["size"]) == (10, 6, 2, 4)
    lines = [line.split("\t")[0].split() for line in Path("train.tsv").read_text().splitlines()]
    assert 0 < facts["share"] < 1
    assert {word for line in lines for word in line}.issuperset(KNOWN)
    shown = json.loads(cli("data", "c.yaml", "--json").out)["vectors"]
    assert shown == facts
    # From the cache it is all the same.
    assert "from the cache" in fit(cli, "again", "training.lr=1e-12", "training.weight_decay=0")
    assert_same_run("run", "again")


VARIANTS = {
    "native": (),
    "torch": ("model.engine=torch", "model.rnn=lstm", "model.bidirectional=true"),
    "dense": ("training.sparse_embedding=false",),
    "sgd": ("training.optimizer=sgd", "model.embedding_dropout=0"),
    "bfloat16": ("training.precision=bfloat16", "model.engine=torch"),
    "subwords": ("model.subwords=[3, 5]", "model.ngrams=[1, 2]"),
    "padded": ("model.unroll=padded",),
    "refit": ("training.refit=true", "seed=3"),
    "pretrained": ("pretraining.objective=language_model", "pretraining.max_epochs=1"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_frozen_vectors_stay_for_so_many_epochs(variant: str, folder: Path, cli: Cli) -> None:
    settings = ("training.max_epochs=2", *VARIANTS[variant])
    kept = [*KNOWN, "ocean", "river"]
    fit(cli, "two", "model.freeze=2", *settings)
    assert as_in_the_file(embedding("two/last")) == kept
    fit(cli, "one", "model.freeze=1", "training.lr=0.05", *settings)
    assert as_in_the_file(embedding("one/last")) != kept


@pytest.mark.parametrize("variant", ["native", "subwords", "pretrained"])
def test_frozen_vectors_stay_for_ever(variant: str, folder: Path, cli: Cli) -> None:
    fit(cli, "ever", "model.freeze=true", *VARIANTS[variant])
    assert as_in_the_file(embedding("ever/last")) == [*KNOWN, "ocean", "river"]


def test_vectors_that_arent_frozen_learn_and_fade(folder: Path, cli: Cli) -> None:
    fit(cli, "run")
    assert as_in_the_file(embedding("run/last")) == []


@pytest.mark.parametrize("freeze", ["2", "true"])
def test_a_run_goes_on_where_it_thaws(freeze: str, folder: Path, cli: Cli) -> None:
    frozen = f"model.freeze={freeze}"
    fit(cli, "whole", frozen)
    for epochs in (1, 2, 3):
        options = ("--resume",) if epochs > 1 else ()
        fit(cli, "parts", frozen, f"training.max_epochs={epochs}", options=options)
    assert_same_run("whole", "parts")


def test_a_model_needs_the_file_no_more(folder: Path, cli: Cli) -> None:
    fit(cli, "run")
    for folder_of_model in ("best", "last"):
        text = Path("run", folder_of_model, "model.json").read_text()
        assert "w.vec" not in text
    Path("w.vec").unlink()
    answered = cli("predict", "test.tsv", "--run", "run/best")
    assert answered.code == 0, answered.err
    assert cli("eval", "run").code == 0
    assert cli("check", "run").code == 0
    assert cli("errors", "run").code == 0
    shutil.copytree("run/best", "alone")
    assert cli("predict", "test.tsv", "--run", "alone").out == answered.out
    ended = cli("fit", "c.yaml", "--run-dir", "run", "--resume")
    assert ended.code == 2
    assert ended.problems == [
        f"seqtrain: model.vectors: no file 'w.vec' (looked for {folder.resolve()}/w.vec)"
    ]


def test_another_file_is_refused_on_resume(folder: Path, cli: Cli) -> None:
    fit(cli, "run")
    write_vectors(folder / "w.vec", WORDS[:-1])
    ended = cli("fit", "c.yaml", "--run-dir", "run", "--resume")
    assert ended.code == 2
    assert "w.vec: changed since the run: SHA-256" in ended.err


def test_an_old_model_keeps_its_vectors_and_new_words_take_theirs(folder: Path, cli: Cli) -> None:
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


def test_symbols_and_characters_have_vectors_too(folder: Path, cli: Cli) -> None:
    write_vectors(folder / "w.vec", ["e", "h", "New_York", "é"])
    fit(cli, "run", "data.tokenizer=char", "model.freeze=true")
    found = embedding("run/best")
    assert found["e"] == pytest.approx(vector("e", 4))
    assert found["é"] == pytest.approx(vector("é", 4))
    assert "New_York" not in found
    examples = [{"text": ["the", "New York"], "label": "up"}, {"text": ["fall"], "label": "down"}]
    lines = [json.dumps(example) + "\n" for example in examples * 9]
    (folder / "train.jsonl").write_text("".join(lines))
    write_vectors(folder / "w.vec", ["the", "New York", "a b"], head=False)
    kind = ("data.kind=tokens", "data.train=train.jsonl", "data.test=null")
    fit(cli, "symbols", *kind, "data.validation=null", "model.freeze=true")
    found = embedding("symbols/best")
    assert found["New York"] == pytest.approx(vector("New York", 4))
    assert found["a b"] == pytest.approx(vector("a b", 4))


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "width": (
        ("model.embedding_dim=300",),
        "model.embedding_dim: found 300, but the vectors of w.vec have 4 numbers; expected 4 or "
        "null",
    ),
    "bytes": (
        ("data.tokenizer=byte",),
        "model.vectors: found 'w.vec', but data.tokenizer is 'byte', whose tokens are no words; "
        "expected null",
    ),
    "binary": (
        ("model.vectors=wiki.bin",),
        "found 'wiki.bin'; a binary file; expected text, such as a .vec file or one of GloVe",
    ),
    "zip": (("model.vectors=glove.zip",), "found 'glove.zip'; unpack it first: unzip 'glove.zip'"),
    "missing": (("model.vectors=w.txt",), "model.vectors: no file 'w.txt' (looked for "),
    "no file to keep of": (
        ("model.vectors=null", "model.vectors_keep=5"),
        "model.vectors_keep=5: found 5, but model.vectors is null; name the file there",
    ),
    "never": (("model.freeze=0",), "found 0; expected true, false or a whole number from 1 to"),
    "folder": (("model.vectors=.",), ".: is a folder; expected a regular file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, folder: Path, cli: Cli) -> None:
    settings, said = REFUSED[name]
    given = [word for setting in settings for word in ("--set", setting)]
    ended = cli("fit", "c.yaml", "--run-dir", "run", *given)
    assert ended.code == 2
    assert said in ended.err, ended.err
    assert len(ended.problems) == 1
    assert not Path("run").exists()


def test_series_have_no_words(folder: Path, cli: Cli) -> None:
    write_npz(folder / "train.npz", series(20, 1), ["ab"[i % 2] for i in range(20)])
    config: dict[str, Any] = {"data": {"train": "train.npz"}, "model": {"vectors": "w.vec"}}
    (folder / "c.yaml").write_text(json.dumps(config))
    ended = cli("fit", "c.yaml", "--set", "model.freeze=true")
    assert ended.code == 2
    assert "found 'w.vec', but data.kind is 'features'; expected null" in ended.err
    assert "found true, but data.kind is 'features'; expected false" in ended.err


def test_a_doubtful_file_is_told(folder: Path, cli: Cli) -> None:
    write_vectors(folder / "w.vec", ["the", "THE", "the"])
    said = fit(cli, "run")
    assert "of train's text has no vector in w.vec; words are compared as data.tokenizer" in said
    assert "w.vec: 1 word again, of which the first one counts" in said


def test_compare_measures_without_them(folder: Path) -> None:
    task = prepare_task(load_config("c.yaml", []), torch.device("cpu"), None)
    assert task.warnings[0] == "compared without model.vectors, model.vectors_keep"
    assert task.config.model.embedding_dim == 4
    assert task.new_model(task.config).embedding.embedding_dim == 4


def test_tune_leaves_the_width_alone(folder: Path) -> None:
    assert "model.embedding_dim" not in space_of(load_config("c.yaml", []))
    without = load_config("c.yaml", ["model.vectors=null", "model.vectors_keep=20000"])
    assert "model.embedding_dim" in space_of(without)
