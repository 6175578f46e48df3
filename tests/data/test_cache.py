"""Data from the cache equals data read from its files, whatever happened to the cache."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.data import cache
from seqtrain.data.dataset import PreparedData, load_prepared, prepare

Write = Callable[[str, str | list[tuple[str, str]]], str]
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


@pytest.fixture
def make(make_config: Callable[..., Config]) -> Callable[..., Config]:
    """Build a config whose keys of other sections are given as section__key."""

    def run(**keys: Any) -> Config:
        config = make_config(**{name: x for name, x in keys.items() if "__" not in name})
        values = config.model_dump()
        for name, value in keys.items():
            section, _, key = name.partition("__")
            if key:
                values[section][key] = value
        return config_from_mapping(values)

    return run


Make = Callable[..., Config]


def same(one: PreparedData, other: PreparedData) -> bool:
    arrays = [
        {
            (name, x): (a.dtype, a.tolist())
            for name, s in d.splits.items()
            for x, a in s.arrays().items()
        }
        for d in (one, other)
    ]
    facts = [
        (d.preprocessing, d.reports, d.eligible_tokens, d.digests, list(d.splits))
        for d in (one, other)
    ]
    return arrays[0] == arrays[1] and facts[0] == facts[1]


def test_cached_data_equals_fresh_data(make: Make, folder: Path, keys: dict[str, Any]) -> None:
    config = make(**keys)
    fresh, cached = (prepare(config, cache_folder=folder) for _ in range(2))
    assert (fresh.from_cache, cached.from_cache) == (False, True)
    assert same(fresh, cached)
    assert same(prepare(config, cache_folder=None), cached)
    assert fresh.entry is not None
    shared = load_prepared(config, fresh.entry)
    assert shared is not None
    assert same(fresh, shared)


PARTS = {"model__subwords": [3, 5], "model__ngrams": [1, 2], "model__max_ngrams": 4}


@pytest.mark.parametrize(
    "change",
    [
        {"lowercase": False},
        {"max_length": 2},
        {"max_vocab_size": 4},
        {"tokenizer": "whitespace"},
        {"validation": 0.3},
        {"test": None},
        {"seed": 1},
        {"model__subwords": [2, 3]},
        {"model__ngrams": [1, 3]},
        {"model__max_ngrams": 3},
        {"pretraining__objective": "language_model"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_the_data_means_another_entry(
    make: Make, folder: Path, keys: dict[str, Any], change: dict[str, Any]
) -> None:
    keys |= {**PARTS, "max_length": None, "min_count": 2}
    prepare(make(**keys), cache_folder=folder)
    cached = prepare(make(**keys), cache_folder=folder)
    assert cached.from_cache
    ngrams = cached.preprocessing.ngrams
    assert ngrams is not None
    assert len(ngrams.keys) == 4
    assert cached.splits["test"].words is not None
    data = prepare(make(**{**keys, **change}), cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(make(**{**keys, **change}), cache_folder=None))


def test_what_does_not_change_the_data_means_the_same_entry(
    make: Make, folder: Path, keys: dict[str, Any]
) -> None:
    prepare(make(**keys), cache_folder=folder)
    os.utime(keys["train"], (1, 1))
    changed = make(**keys, model__hidden_size=7, training__lr=0.1)
    assert prepare(changed, cache_folder=folder).from_cache


def test_a_changed_file_is_read_again(
    make: Make, folder: Path, keys: dict[str, Any], write: Write
) -> None:
    prepare(make(**keys), cache_folder=folder)
    write("train.tsv", [("changed again", "x"), *ROWS[1:]])
    data = prepare(make(**keys), cache_folder=folder)
    assert not data.from_cache
    assert same(data, prepare(make(**keys), cache_folder=None))
    assert same(data, prepare(make(**keys), cache_folder=folder))
    assert len(list(folder.iterdir())) == 1, "in the place of the entry before"


@pytest.mark.parametrize(
    ("keys_of_bpe", "attribute"),
    [({}, "unicodedata.unidata_version"), ({"tokenizer": "bpe"}, "tokenizers.__version__")],
)
def test_another_version_of_what_splits_texts_means_another_entry(
    make: Make,
    folder: Path,
    keys: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    keys_of_bpe: dict[str, str],
    attribute: str,
) -> None:
    config = make(**keys, **keys_of_bpe)
    prepare(config, cache_folder=folder)
    assert prepare(config, cache_folder=folder).from_cache
    monkeypatch.setattr(attribute, "0.0.0")
    assert not prepare(config, cache_folder=folder).from_cache


@pytest.mark.parametrize("name", ["train.values", "test.labels", "entry.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_entry_is_ignored_and_replaced(
    make: Make, folder: Path, keys: dict[str, Any], name: str, damage: str
) -> None:
    fresh = prepare(make(**keys), cache_folder=folder)
    assert fresh.entry is not None
    path = fresh.entry / name
    content = path.read_bytes()
    if damage == "remove":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:-3])
    else:
        path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    again = prepare(make(**keys), cache_folder=folder)
    assert not again.from_cache
    assert same(fresh, again)
    assert prepare(make(**keys), cache_folder=folder).from_cache


@pytest.mark.parametrize("obstacle", ["a file", "below a file"])
def test_a_cache_that_cannot_be_written_is_no_failure(
    make: Make, tmp_path: Path, keys: dict[str, Any], obstacle: str
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    folder = blocked if obstacle == "a file" else blocked / "cache"
    for _ in range(2):
        data = prepare(make(**keys), cache_folder=folder)
        assert (data.from_cache, data.entry) == (False, None)
    assert blocked.read_text() == ""


def test_old_and_abandoned_entries_go_and_those_in_use_stay(
    make: Make, folder: Path, keys: dict[str, Any]
) -> None:
    folder.mkdir()
    for age in range(cache.KEPT_ENTRIES + 5):
        entry = folder / f"{age:064}"
        entry.mkdir()
        os.utime(entry, (1_000_000 - age, 1_000_000 - age))
    (folder / "unrelated").mkdir()
    prepare(make(**keys), cache_folder=folder)
    left = {path.name for path in folder.iterdir()}
    assert f"{0:064}" in left
    assert f"{cache.KEPT_ENTRIES + 4:064}" not in left
    assert "unrelated" in left
    assert len([name for name in left if len(name) == 64]) == cache.KEPT_ENTRIES
