"""Data from the cache equals data read anew, whatever happened to the cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config
from seqtrain.data import cache
from seqtrain.data.preparation import prepare
from seqtrain.data.prepared import PreparedData

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]

ROWS = [(f"word{i} again", "xy"[i % 2]) for i in range(20)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def keys(write: Write) -> dict[str, Any]:
    return {
        "train": write("train.tsv", ROWS),
        "test": write("test.tsv", [("word1 other", "x"), ("word2 again", "z")]),
        "validation": 0.2,
        "max_length": 1,
    }


def same(one: PreparedData, other: PreparedData) -> bool:
    arrays = [
        np.array_equal(one_array, other_array)
        and getattr(one_array, "dtype", None) == getattr(other_array, "dtype", None)
        for name in one.splits
        for array in {*one.splits[name].arrays(), *other.splits[name].arrays()}
        for one_array in [one.splits[name].arrays().get(array)]
        for other_array in [other.splits[name].arrays().get(array)]
    ]
    facts = [
        (data.preprocessing, data.reports, data.eligible_tokens, data.digests, list(data.splits))
        for data in (one, other)
    ]
    return all(arrays) and facts[0] == facts[1]


def test_cached_data_equals_fresh_data(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any]
) -> None:
    config = make_config(**keys)
    fresh = prepare(config, cache_folder=folder)
    cached = prepare(config, cache_folder=folder)
    assert (fresh.from_cache, cached.from_cache) == (False, True)
    assert same(fresh, cached)
    assert same(prepare(config, cache_folder=None), cached)


def test_unknown_words_and_ngrams_are_cached_too(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any]
) -> None:
    config = make_config(**{**keys, "max_length": None, "min_count": 2})
    parts = {"subwords": [3, 5], "ngrams": [1, 2], "max_ngrams": 4}
    model = config.model.model_copy(update=parts)
    config = config.model_copy(update={"model": model})
    fresh, cached = (prepare(config, cache_folder=folder) for _ in range(2))
    assert cached.from_cache
    assert same(fresh, cached)
    assert len(cached.preprocessing.ngrams or []) == 4
    assert cached.splits["test"].words is not None
    for change in ({"subwords": [2, 3]}, {"ngrams": [1, 3]}, {"max_ngrams": 3}):
        changed = model.model_copy(update=change)
        again = prepare(config.model_copy(update={"model": changed}), cache_folder=folder)
        assert not again.from_cache


def test_features_are_cached_too(make_config: MakeConfig, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": [[1, null], [2, 3]], "label": "x"}\n{"text": [[4, 5]], "label": "y"}\n'
    )
    config = make_config(train=str(path), kind="features", missing="mask")
    fresh, cached = (prepare(config, cache_folder=folder) for _ in range(2))
    assert cached.from_cache
    assert same(fresh, cached)


@pytest.mark.parametrize(
    "change",
    [
        {"lowercase": False},
        {"max_length": 2},
        {"max_vocab_size": 4},
        {"tokenizer": "char", "max_length": None},
        {"validation": 0.3},
        {"test": None},
        {"seed": 1},
    ],
)
def test_another_key_means_another_entry(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any], change: dict[str, Any]
) -> None:
    prepare(make_config(**keys), cache_folder=folder)
    changed = make_config(**{**keys, **change})
    data = prepare(changed, cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(changed, cache_folder=None))


def test_a_changed_file_means_another_entry_and_a_touched_one_does_not(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any], write: Write
) -> None:
    config = make_config(**keys)
    prepare(config, cache_folder=folder)
    os.utime(keys["train"], (1, 1))
    assert prepare(config, cache_folder=folder).from_cache
    write("train.tsv", [("changed again", "x"), *ROWS[1:]])
    data = prepare(config, cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(config, cache_folder=None))


@pytest.mark.parametrize(
    ("keys_of_bpe", "place"),
    [({}, "unicodedata.unidata_version"), ({"tokenizer": "bpe"}, "tokenizers.__version__")],
)
def test_another_version_of_what_splits_texts_means_another_entry(
    make_config: MakeConfig,
    folder: Path,
    keys: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    keys_of_bpe: dict[str, str],
    place: str,
) -> None:
    config = make_config(**keys, **keys_of_bpe)
    prepare(config, cache_folder=folder)
    assert prepare(config, cache_folder=folder).from_cache
    monkeypatch.setattr(place, "0.0.0")
    assert not prepare(config, cache_folder=folder).from_cache


def entry_of(folder: Path) -> Path:
    (entry,) = folder.iterdir()
    return entry


@pytest.mark.parametrize("name", ["train.values", "test.labels", "entry.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_entry_is_ignored_and_replaced(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any], name: str, damage: str
) -> None:
    config = make_config(**keys)
    fresh = prepare(config, cache_folder=folder)
    path = entry_of(folder) / name
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:-3])
    else:
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    again = prepare(config, cache_folder=folder)
    assert not again.from_cache
    assert same(fresh, again)
    assert prepare(config, cache_folder=folder).from_cache


@pytest.mark.parametrize("obstacle", ["a file", "below a file"])
def test_a_cache_that_cannot_be_written_is_no_failure(
    make_config: MakeConfig, tmp_path: Path, keys: dict[str, Any], obstacle: str
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    folder = blocked if obstacle == "a file" else blocked / "cache"
    for _ in range(2):
        assert not prepare(make_config(**keys), cache_folder=folder).from_cache
    assert blocked.read_text() == ""


def test_old_and_abandoned_entries_go_and_those_in_use_stay(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any]
) -> None:
    folder.mkdir()
    for age in range(cache.KEPT_ENTRIES + 5):
        entry = folder / f"{age:064}"
        entry.mkdir()
        os.utime(entry, (1_000_000 - age, 1_000_000 - age))
    for name, when in ((".x-1-0", 1_000_000), (".x-2-0", None), ("unrelated", 1)):
        (folder / name).mkdir()
        if when:
            os.utime(folder / name, (when, when))
    prepare(make_config(**keys), cache_folder=folder)
    names = {path.name for path in folder.iterdir()}
    assert {".x-2-0", "unrelated", f"{0:064}"} <= names
    assert ".x-1-0" not in names
    assert len([name for name in names if len(name) == 64]) == cache.KEPT_ENTRIES


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEQTRAIN_CACHE", str(tmp_path))
    assert cache.default_folder() == tmp_path
    monkeypatch.delenv("SEQTRAIN_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_folder() == tmp_path / "seqtrain"


def test_entries_that_hold_something_else_have_another_format(
    make_config: MakeConfig, folder: Path, keys: dict[str, Any]
) -> None:
    """An entry of an earlier version isn't read: count FORMAT up, then change what is here."""
    prepare(make_config(**keys), cache_folder=folder)
    (entry,) = folder.iterdir()
    found = cache.load(folder, entry.name)
    assert found is not None
    _, values, _ = found
    reports = {name for report in values["reports"].values() for name in report}
    held = {"coverage", "eligible_tokens", "files", "preprocessing", "reports", "tokens"}
    said = {
        *("rows", "held_out", "truncated", "dropped", "filled", "unanswered", "unanswered_rows"),
        *("problems", "unreadable", "unreadable_rows", "unknown_labels", "unknown_label_rows"),
    }
    assert (cache.FORMAT, values.keys(), reports) == (10, held, said)
