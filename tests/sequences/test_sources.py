"""Files that a config names. Rows in several files give the same data as in one file."""

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.inspection import Inspection
from seqtrain.sequences.sources import check_files, data_sources, matching_files
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.summary import summarize, warnings

CUTS = (0, 1, 9, 30, 31, 44, 70, 80)  # of 80 rows into 7 files


def rows(kind: str) -> list[dict[str, Any]]:
    """Draw rows whose words, labels and groups come again later, and new ones in between."""
    draw = random.Random(1)
    sequences: dict[str, Callable[[int], Any]] = {
        "text": lambda i: " ".join(f"w{draw.randrange(5 + i)}" for _ in range(draw.randint(1, 6))),
        "tokens": lambda i: [f"w{draw.randrange(5 + i)}" for _ in range(draw.randint(1, 6))],
        "features": lambda i: [[draw.random(), i / 7] for _ in range(draw.randint(1, 6))],
    }
    return [
        {
            "text": sequences[kind](i),
            "label": f"l{draw.randrange(2 + i // 30)}",
            "group": f"g{i % 9}",
        }
        for i in range(80)
    ]


def contents(stores: dict[str, SequenceStore]) -> dict[str, Any]:
    return {
        f"{name}.{x}": (str(array.dtype), array.tolist())
        for name, store in stores.items()
        for x, array in store.arrays().items()
    }


@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "text", "validation": 0.2, "test": 0.1},
        {"kind": "text", "validation": {"fold": 2, "of": 4}, "min_count": 2},
        {"kind": "text", "tokenizer": "bpe", "max_vocab_size": 300, "validation": 0.2},
        {"kind": "text", "group": "group"},
        {"kind": "tokens", "max_length": 3},
        {"kind": "features", "validation": 0.2},
    ],
    ids=str,
)
def test_seven_files_are_one(write, tmp_path, make_config, keys):
    found = rows(keys["kind"])
    one = prepare(make_config(train=write("one.jsonl", found), **keys), cache_folder=None)
    for number, (start, stop) in enumerate(pairwise(CUTS)):
        write(f"part-{number}.jsonl", found[start:stop])
    config = make_config(train=str(tmp_path / "part-*.jsonl"), **keys)
    several, cached = (prepare(config, cache_folder=tmp_path / "cache") for _ in range(2))
    assert (several.from_cache, cached.from_cache) == (False, True)
    assert contents(several.splits) == contents(cached.splits) == contents(one.splits)
    assert several.preprocessing == one.preprocessing
    assert several.reports == one.reports
    assert len(several.digests) == 7
    train = cached.splits["train"]
    assert train.files == several.splits["train"].files is not None
    row = train.lines.searchsorted(46)  # line 46 of one file, or just behind
    assert train.place(row) == f"{tmp_path}/part-5.jsonl:{train.lines[row] - 44}"
    (tmp_path / "part-9.jsonl").write_text(json.dumps(found[0]) + "\n")
    assert not prepare(config, cache_folder=tmp_path / "cache").from_cache


def test_files_are_read_in_the_order_given_and_those_of_a_pattern_by_name(
    write, make_config, tmp_path
):
    for name in ("b10", "b9", "a", "c"):
        write(f"{name}.tsv", [("x", "1")])
    named = [str(tmp_path / "c.tsv"), str(tmp_path / "b*.tsv"), str(tmp_path / "a.tsv")]
    found = [Path(source.path).stem for _, source in data_sources(make_config(train=named))]
    assert found == ["c", "b10", "b9", "a"]
    odd = write("b[1].tsv", [("x", "1")])
    ((key, source),) = data_sources(make_config(train=odd))
    assert (key, source.path) == ("data.train", odd)


@pytest.mark.parametrize("absolute", [False, True])
def test_two_stars_match_any_folders_and_follow_no_links(write, tmp_path, monkeypatch, absolute):
    for name in ("a.tsv", "x/b.tsv", "x/y/c.tsv", "x/.hidden/d.tsv", ".e.tsv"):
        write(name, [("x", "1")])
    for number in range(12):  # where they were followed, each file had 12^40 names
        (tmp_path / f"link{number}").symlink_to(".")
    monkeypatch.chdir(tmp_path)
    base = f"{tmp_path}/" if absolute else ""
    found = [f"{base}{name}" for name in ("a.tsv", "x/b.tsv", "x/y/c.tsv")]
    assert matching_files(f"{base}**/*.tsv") == found
    assert matching_files(f"{base}x/**/c.*") == found[2:]
    assert matching_files(f"{base}**/no") == []


def test_bad_rows_are_named_by_file_and_line(write, make_config):
    good = [("up a", "1"), ("down b", "2")] * 3
    names = [write("p1.tsv", good), write("p2.tsv", [*good, (" ", "1")]), write("p3.tsv", good)]
    with pytest.raises(DataError, match=r"p2\.tsv:8: "):
        prepare(make_config(train=names), cache_folder=None)
    write("p3.tsv", [*good, ("x", " ")])
    config = make_config(train=names, bad_rows="drop", empty="drop")
    report = prepare(config, cache_folder=None).reports["train"]
    assert (report.rows, report.dropped, report.unreadable) == (18, 1, 1)
    assert "p3.tsv:8: " in report.shown[0]
    a = write("a.jsonl", [{"text": [[1, 2]], "label": "x"}] * 2)
    b = write("b.jsonl", [{"text": [[1, 2, 3]], "label": "y"}])
    with pytest.raises(DataError, match=r"b\.jsonl:1: 3 channels; expected 2$"):
        prepare(make_config(train=[a, b], kind="features"), cache_folder=None)


def test_labels_and_repeats_are_named_by_file_and_line(write, make_config):
    first = write("p1.tsv", [(f"word{i}", "12"[i % 2]) for i in range(20)])
    second = write("p2.tsv", [("other", "1"), ("word3", "1"), ("word4", "1")])
    config = make_config(train=[first, second])
    data = prepare(config, cache_folder=None)
    told = "\n".join(warnings(data, summarize(data), config))
    assert f"(lines {first}:5 and {second}:3)" in told
    found = Inspection(config, cache_folder=None)
    places = [place[1:] for place in found.duplicates[1]]
    assert places == [(first, 6), (second, 4)]


def test_missing_files_are_named(write, make_config, tmp_path, monkeypatch):
    write("a.tsv", [("x", "1")])
    write("configs/near.tsv", "x")
    monkeypatch.chdir(tmp_path)
    for named in ("q*.tsv", ["a.tsv", "*.tsv"], ["a.tsv", "missing.tsv"]):
        with pytest.raises(DataError):
            prepare(make_config(train=named), cache_folder=None)
    with pytest.raises(DataError) as caught:
        check_files(make_config(train="near.tsv", test="gone.tsv"), Path("configs"))
    assert caught.value.problems == (
        f"data.train: no file 'near.tsv' (looked for {tmp_path / 'near.tsv'}); paths are relative "
        "to the current directory: write configs/near.tsv",
        f"data.test: no file 'gone.tsv' (looked for {tmp_path / 'gone.tsv'})",
    )
