"""Data in several files is the data of one that holds all, however rows are parted."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config, config_from_mapping
from seqtrain.data.configured import check_files, data_files
from seqtrain.data.inspection import inspect
from seqtrain.data.preparation import prepare
from seqtrain.data.prepared import PreparedData
from seqtrain.data.store import SequenceStore
from seqtrain.data.summary import summarize, warnings
from seqtrain.errors import ConfigError, DataError

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]
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


def write_rows(write: Write, name: str, rows: list[dict[str, Any]]) -> str:
    return write(name, "".join(json.dumps(row) + "\n" for row in rows))


def digest(stores: dict[str, SequenceStore]) -> str:
    total = hashlib.sha256()
    for name, store in stores.items():
        for array_name, array in store.arrays().items():
            total.update(f"{name} {array_name} {array.dtype} {array.shape}".encode())
            total.update(array.tobytes())
    return total.hexdigest()


@pytest.fixture
def in_pieces(write: Write, tmp_path: Path) -> Callable[[list[dict[str, Any]]], str]:
    """Write rows as one file and as 7; return the pattern of these."""

    def run(found: list[dict[str, Any]]) -> str:
        write_rows(write, "one.jsonl", found)
        for number, (start, stop) in enumerate(pairwise(CUTS)):
            write_rows(write, f"part-{number}.jsonl", found[start:stop])
        return str(tmp_path / "part-*.jsonl")

    return run


@pytest.mark.parametrize(
    "keys",
    [
        {"kind": "text"},
        {"kind": "text", "validation": 0.2, "test": 0.1},
        {"kind": "text", "validation": {"fold": 2, "of": 4}, "min_count": 2},
        {"kind": "tokens", "max_length": 3},
        {"kind": "features", "validation": 0.2},
    ],
)
def test_seven_files_are_one(
    in_pieces: Callable[..., str], tmp_path: Path, make_config: MakeConfig, keys: Any
) -> None:
    pattern = in_pieces(rows(keys["kind"]))
    one = prepare(make_config(train=str(tmp_path / "one.jsonl"), **keys), cache_folder=None)
    config = make_config(train=pattern, **keys)
    several = prepare(config, cache_folder=None)
    assert digest(several.splits) == digest(one.splits)
    assert several.preprocessing == one.preprocessing
    assert several.reports == one.reports
    assert len(several.digests) == 7
    kept = prepare(make_config(train=pattern, **keys), cache_folder=tmp_path / "cache")
    again = prepare(make_config(train=pattern, **keys), cache_folder=tmp_path / "cache")
    assert (kept.from_cache, again.from_cache) == (False, True)
    assert digest(again.splits) == digest(one.splits)
    train = again.splits["train"]
    assert train.files == several.splits["train"].files is not None
    row = int(np.searchsorted(train.lines, 46))  # line 46 of one file, or just behind
    assert train.place(row) == f"{tmp_path}/part-5.jsonl:{train.lines[row] - 44}"


def test_groups_go_on_in_the_next_file(
    in_pieces: Callable[..., str], tmp_path: Path, write: Write
) -> None:
    pattern = in_pieces(rows("text"))

    def stores(train: str) -> dict[str, SequenceStore]:
        columns = {"sequence": "text", "label": "label", "group": "group"}
        held_out = write_rows(write, "v.jsonl", rows("text")[:30])
        data = {"train": train, "validation": [held_out], **columns}
        model = {"initial_state": "carried"}
        return prepare(
            config_from_mapping({"data": data, "model": model}), cache_folder=None
        ).splits

    whole = stores(str(tmp_path / "one.jsonl"))
    assert whole["train"].groups is not None
    assert digest(stores(pattern)) == digest(whole)


def test_bpe_learns_from_all_files(
    in_pieces: Callable[..., str], tmp_path: Path, make_config: MakeConfig
) -> None:
    pytest.importorskip("tokenizers")
    pattern = in_pieces(rows("text"))
    keys = {"tokenizer": "bpe", "max_vocab_size": 300, "validation": 0.2}
    one = prepare(make_config(train=str(tmp_path / "one.jsonl"), **keys), cache_folder=None)
    several = prepare(make_config(train=pattern, **keys), cache_folder=None)
    assert digest(several.splits) == digest(one.splits)


def test_files_are_read_in_the_order_given_and_those_of_a_pattern_by_name(
    write: Write, make_config: MakeConfig, tmp_path: Path
) -> None:
    for name in ("b10", "b9", "a", "c"):
        write(f"{name}.tsv", [("x", "1")])
    named = [str(tmp_path / "c.tsv"), str(tmp_path / "b*.tsv"), str(tmp_path / "a.tsv")]
    found = [Path(path).stem for _, path in data_files(make_config(train=named))]
    assert found == ["c", "b10", "b9", "a"]
    odd = write("b[1].tsv", [("x", "1")])
    assert data_files(make_config(train=odd)) == [("data.train", odd)]


def test_bad_rows_are_named_by_file_and_line(write: Write, make_config: MakeConfig) -> None:
    good = [("up a", "1"), ("down b", "2")] * 3
    names = [write("p1.tsv", good), write("p2.tsv", [*good, (" ", "1")]), write("p3.tsv", good)]
    with pytest.raises(DataError, match=r"p2\.tsv:8: the sequence is empty"):
        prepare(make_config(train=names), cache_folder=None)
    write("p3.tsv", [*good, ("x", " ")])
    data = prepare(make_config(train=names, bad_rows="drop", empty="drop"), cache_folder=None)
    report = data.reports["train"]
    assert (report.rows, report.dropped, report.unreadable) == (18, 1, 1)
    assert "p3.tsv:8: the label is blank" in report.unreadable_rows[0]


def test_what_is_odd_is_named_by_file_and_line(write: Write, make_config: MakeConfig) -> None:
    first = write("p1.tsv", [(f"word{i}", "12"[i % 2]) for i in range(20)])
    second = write("p2.tsv", [("other", "1"), ("word3", "1"), ("word4", "1")])
    config = make_config(train=[first, second])
    data = prepare(config, cache_folder=None)
    told = "\n".join(warnings(data, summarize(data), config.data))
    assert f"(lines {first}:5 and {second}:3)" in told
    found = inspect(config, cache_folder=None)
    places = [found.file_line(place) for place in found.duplicates[1]]
    assert places == [(first, 6), (second, 4)]


def test_series_of_other_widths_are_refused(write: Write, make_config: MakeConfig) -> None:
    a = write_rows(write, "a.jsonl", [{"text": [[1, 2]], "label": "x"}] * 2)
    b = write_rows(write, "b.jsonl", [{"text": [[1, 2, 3]], "label": "y"}])
    with pytest.raises(DataError, match=r"b\.jsonl:1: 3 channels; expected 2, as .*a\.jsonl:1 has"):
        prepare(make_config(train=[a, b], kind="features"), cache_folder=None)


def test_what_is_named_wrong_is_told(
    write: Write, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.tsv", [("x", "1")])
    monkeypatch.chdir(tmp_path)
    for named, problem in (
        ("q*.tsv", r"data\.train: no file matches 'q\*\.tsv' \(looked for /"),
        (["a.tsv", "*.tsv"], r"data\.train: names 'a\.tsv' twice; expected each"),
        (["a.tsv", "missing.tsv"], r"data\.train: no file 'missing\.tsv'"),
    ):
        with pytest.raises(DataError, match=problem):
            check_files(make_config(train=named), None)
        with pytest.raises(DataError):
            prepare(make_config(train=named), cache_folder=None)
    with pytest.raises(
        ConfigError, match=r"found 'a\.tsv' \(tsv\), 'b\.jsonl' \(jsonl\); expected"
    ):
        make_config(train=["a.tsv", "b.jsonl"])
    write("b.tsv", [("y", "2")])
    write("same.tsv", [("x", "1")])
    with pytest.raises(DataError, match=r"data\.test: same\.tsv has the same content as 'a\."):
        prepare(make_config(train=["a.tsv", "b.tsv"], test=["same.tsv"]), cache_folder=None)


def test_the_cache_tells_patterns_by_their_files(
    in_pieces: Callable[..., str], tmp_path: Path, make_config: MakeConfig
) -> None:
    config = make_config(train=in_pieces(rows("text")))
    prepare(config, cache_folder=tmp_path / "cache")
    (tmp_path / "part-9.jsonl").write_text('{"text": "new words", "label": "l1"}\n')
    more: PreparedData = prepare(config, cache_folder=tmp_path / "cache")
    assert not more.from_cache
    assert len(more.splits["train"]) == 81
