"""Data from the cache equals data read from its files, whatever happened to the cache."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import seqtrain
from seqtrain.api.predictions import predict_split
from seqtrain.config import Config, config_from_mapping
from seqtrain.sequences import cache
from seqtrain.sequences.dataset import PreparedData, load_prepared, prepare
from tests.helpers.tiny import run_in

Make = Callable[..., Config]
ROWS = [(f"word{i} again", "xy"[i % 2]) for i in range(20)]


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def make(write) -> Make:
    """Build a config of two files with these options."""
    files = {"train": write("train.tsv", ROWS), "validation": 0.2, "max_length": 1}
    files["test"] = write("test.tsv", [("word1 other", "x"), ("word2 again", "z")])
    data = {"data": {"sequence": "text", "label": "label", **files}}
    return lambda *options: config_from_mapping(data, options)


def same(one: PreparedData, other: PreparedData) -> bool:
    arrays, facts = (
        [each(data) for data in (one, other)]
        for each in (
            lambda data: {
                (name, x): (array.dtype, array.tolist())
                for name, store in data.splits.items()
                for x, array in store.arrays().items()
            },
            lambda data: (data.preprocessing, data.reports, data.eligible_tokens, data.digests),
        )
    )
    return arrays[0] == arrays[1] and facts[0] == facts[1]


@pytest.mark.parametrize("kind", ["text", "features"])
def test_cached_data_equals_fresh_data(make, folder, tmp_path, kind):
    options = []
    if kind == "features":
        rows = '{"text": [[1, null], [2, 3]], "label": "x"}\n{"text": [[4, 5]], "label": "y"}\n'
        (tmp_path / "a.jsonl").write_text(rows)
        options = [f"data.train={tmp_path}/a.jsonl", "data.test=null", "data.validation=null"]
        options += ["data.kind=features", "data.missing=mask"]
    config = make(*options)
    fresh, cached = (prepare(config, cache_folder=folder) for _ in range(2))
    assert (fresh.from_cache, cached.from_cache) == (False, True)
    assert same(fresh, cached)
    assert same(prepare(config, cache_folder=None), cached)
    shared = load_prepared(config, fresh.entry)
    assert same(fresh, shared)


PARTS = ["model.subwords=[3, 5]", "model.ngrams=[1, 2]", "model.max_ngrams=4"]


@pytest.mark.parametrize(
    "change",
    [
        *("data.lowercase=false", "data.max_length=2", "data.max_vocab_size=4", "seed=1"),
        *("data.tokenizer=whitespace", "data.validation=0.3", "data.test=null"),
        *("model.subwords=[2, 3]", "model.ngrams=[1, 3]", "model.max_ngrams=3"),
        "model.ngrams_spelling=true",
        "pretraining.objective=language_model",
    ],
)
def test_what_changes_the_data_means_another_entry(make, folder, change):
    options = [*PARTS, "data.max_length=null", "data.min_count=2"]
    prepare(make(*options), cache_folder=folder)
    cached = prepare(make(*options), cache_folder=folder)
    assert cached.from_cache
    ngrams = cached.preprocessing.ngrams
    assert ngrams is not None
    assert len(ngrams.keys) == 4
    assert cached.splits["test"].words is not None
    changed = make(*options, change)
    data = prepare(changed, cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(changed, cache_folder=None))


def test_what_does_not_change_the_data_means_the_same_entry(make, folder):
    (path,) = prepare(make("data.test=null"), cache_folder=folder).digests
    os.utime(path, (1, 1))
    changed = make("data.test=null", "model.hidden_size=7", "training.lr=0.1")
    assert prepare(changed, cache_folder=folder).from_cache


def test_another_version_of_what_splits_texts_means_another_entry(make, folder, monkeypatch):
    prepare(make(), cache_folder=folder)
    monkeypatch.setattr("unicodedata.unidata_version", "0.0.0")
    assert not prepare(make(), cache_folder=folder).from_cache


def test_a_changed_file_is_read_again(make, folder, write):
    prepare(make(), cache_folder=folder)
    write("train.tsv", [("changed again", "x"), *ROWS[1:]])
    data = prepare(make(), cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(make(), cache_folder=None))
    assert same(data, prepare(make(), cache_folder=folder))
    assert len(list(folder.iterdir())) == 1, "in the place of the entry before"


@pytest.mark.parametrize("name", ["train.values", "test.labels", "entry.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_entry_is_ignored_and_replaced(make, folder, name, damage):
    fresh = prepare(make(), cache_folder=folder)
    path = fresh.entry / name
    content = path.read_bytes()
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[:-3])
    elif damage == "flip":
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    again = prepare(make(), cache_folder=folder)
    assert not again.from_cache
    assert same(fresh, again)
    assert prepare(make(), cache_folder=folder).from_cache


@pytest.mark.parametrize("below", ["", "cache"])
def test_a_cache_that_cannot_be_written_is_no_failure(make, tmp_path, below):
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    for _ in range(2):
        data = prepare(make(), cache_folder=blocked / below)
        assert (data.from_cache, data.entry) == (False, None)
    assert blocked.read_text() == ""


def test_other_source_code_means_another_entry(make, folder, monkeypatch, tmp_path):
    prepare(make(), cache_folder=folder)
    copy = tmp_path / "package"
    shutil.copytree(cache.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    monkeypatch.setattr(cache, "PACKAGE", copy)
    cache.source_digest.cache_clear()
    assert prepare(make(), cache_folder=folder).from_cache
    with (copy / "sequences" / "columns" / "text_column.py").open("a") as file:
        file.write("# another version\n")
    cache.source_digest.cache_clear()
    assert not prepare(make(), cache_folder=folder).from_cache
    monkeypatch.undo()
    cache.source_digest.cache_clear()


def test_the_size_in_bytes_is_bounded(make, folder, monkeypatch):
    for age in range(9):
        entry = folder / f"{age:064}"
        entry.mkdir(parents=True)
        (entry / "content").write_bytes(bytes(10_000))
        os.utime(entry, (1_000_000 - age, 1_000_000 - age))
    (folder / "unrelated").mkdir()
    monkeypatch.setattr(cache, "MOST_BYTES", 60_000)
    new = prepare(make(), cache_folder=folder).entry
    assert new is not None
    left = {path.name for path in folder.iterdir()}
    assert {f"{0:064}", "unrelated", new.name} <= left
    assert f"{8:064}" not in left
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= 60_000


def test_an_entry_above_the_bound_is_not_written(make, folder, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 100)
    assert prepare(make(), cache_folder=folder).entry is None
    assert not folder.exists()


def test_a_read_only_use_writes_no_entry_and_loads_one(make, folder):
    assert not prepare(make(), cache_folder=folder, read_only=True).from_cache
    assert not folder.exists()
    prepare(make(), cache_folder=folder)
    assert prepare(make(), cache_folder=folder, read_only=True).from_cache


def test_the_folder_is_the_systems_unless_a_variable_names_one(monkeypatch, tmp_path):
    monkeypatch.setenv("SEQTRAIN_CACHE", str(tmp_path))
    assert cache.default_folder() == tmp_path
    monkeypatch.delenv("SEQTRAIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert cache.default_folder() == tmp_path / "xdg" / "seqtrain"


def test_what_fit_does_not_cache_no_other_function_caches(make, folder, monkeypatch, tmp_path):
    monkeypatch.setenv("SEQTRAIN_CACHE", str(folder))
    config = make("training.max_epochs=1", "model.hidden_size=4", "model.embedding_dim=4")
    run = tmp_path / "run"
    seqtrain.fit(config, run_dir=run, cache=False)
    seqtrain.evaluate(run)
    seqtrain.evaluate(run, split="train")
    seqtrain.diff(run, run)
    seqtrain.check(run)
    seqtrain.report(run, tmp_path / "report.html")
    predict_split(run)
    assert not folder.exists()


def test_a_search_and_the_list_of_errors_cache_nothing_where_told(
    make, folder, monkeypatch, tmp_path
):
    pytest.importorskip("optuna")
    monkeypatch.setenv("SEQTRAIN_CACHE", str(folder))
    settings = "training.max_epochs=1", "model.hidden_size=4", "model.embedding_dim=4"
    run = tmp_path / "run"
    seqtrain.tune(make(*settings), trials=1, run_dir=run, cache=False)
    for split in ("train", "test"):
        run_in(tmp_path, "errors", str(run), "--split", split, "--explain")
    assert not folder.exists()
