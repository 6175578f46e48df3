"""From a config to encoded splits: what is fitted on train, and on train alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config
from seqtrain.data.configured import check_files
from seqtrain.data.digests import digest
from seqtrain.data.preparation import prepare
from seqtrain.data.prepared import PreparedData
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import read_examples
from seqtrain.errors import DataError

Write = Callable[[str, str | list[tuple[str, str]]], str]
MakeConfig = Callable[..., Config]


@pytest.fixture
def ready(make_config: MakeConfig) -> Callable[..., PreparedData]:
    return lambda **keys: prepare(make_config(**keys), cache_folder=None)


Ready = Callable[..., PreparedData]


def tokens(data: PreparedData) -> tuple[str, ...]:
    assert data.preprocessing.vocabulary is not None
    return data.preprocessing.vocabulary.tokens[2:]


def words(data: PreparedData, split: str) -> list[list[str]]:
    vocabulary = data.preprocessing.vocabulary
    store = data.splits[split]
    assert vocabulary is not None
    return [[vocabulary.tokens[i] for i in store[row][0]] for row in range(len(store))]


def test_vocabulary_and_labels_come_from_train_alone(write: Write, ready: Ready) -> None:
    data = ready(
        train=write("train.tsv", [("b a b", "yes"), ("<pad> b", "no")]),
        validation=write("validation.tsv", [("a new", "no"), ("b", "maybe")]),
        test=write("test.tsv", [("new", "yes")]),
    )
    assert data.preprocessing.labels == ("no", "yes")
    assert words(data, "train")[0] == ["b", "a", "b"]
    assert words(data, "validation") == [["a", "<unk>"], ["b"]]
    assert words(data, "test") == [["<unk>"]]
    assert data.splits["train"].labels.tolist() == [1, 0]
    assert data.splits["validation"].labels.tolist() == [0, -1]
    assert data.reports["validation"].unknown_labels == 1
    assert set(tokens(data)) == {"a", "b", "<", "pad", ">"}


def test_a_held_out_part_teaches_nothing(write: Write, ready: Ready) -> None:
    rows = [(f"shared only{i}", "xy"[i % 2]) for i in range(40)]
    for tokenizer in ("whitespace", "bpe"):
        data = ready(train=write("train.tsv", rows), validation=0.25, tokenizer=tokenizer)
        train, held_out = data.splits["train"], data.splits["validation"]
        assert (len(train), len(held_out)) == (30, 10)
        assert sorted([*train.lines, *held_out.lines]) == list(range(2, 42))
        if tokenizer == "whitespace":
            assert set(tokens(data)) == {"shared", *(f"only{i - 2}" for i in train.lines)}
            assert all(text == ["shared", "<unk>"] for text in words(data, "validation"))


def test_validation_and_test_are_both_held_out_of_train(write: Write, ready: Ready) -> None:
    rows = [(f"shared only{i}", "xy"[i % 2]) for i in range(40)]
    for tokenizer in ("whitespace", "bpe"):
        keys = {"train": write("train.tsv", rows), "validation": 0.25, "tokenizer": tokenizer}
        alone, data = ready(**keys), ready(**keys, test=0.1)
        parts = [data.splits[name].lines.tolist() for name in ("train", "validation", "test")]
        assert [len(part) for part in parts] == [26, 10, 4]
        assert sorted(line for part in parts for line in part) == list(range(2, 42))
        assert parts[1] == alone.splits["validation"].lines.tolist()
        if tokenizer == "whitespace":
            assert set(tokens(data)) == {"shared", *(f"only{i - 2}" for i in parts[0])}


def test_bpe_merges_are_learned_from_the_training_part(write: Write, ready: Ready) -> None:
    rows = [(("zq" * 8 if i % 10 == 0 else "ab ba") + str(i), "xy"[i % 2]) for i in range(100)]
    path = write("train.tsv", rows)
    whole = ready(train=path, tokenizer="bpe", max_vocab_size=300)
    held_out = next(
        data
        for data in (
            ready(train=path, tokenizer="bpe", max_vocab_size=300, validation=0.9, seed=seed)
            for seed in range(20)
        )
        if not any(line % 10 == 2 for line in data.splits["train"].lines)
    )
    assert any("zq" in token for token in tokens(whole))
    assert "zq" not in str(held_out.preprocessing.bpe_model)


@pytest.mark.parametrize("tokenizer", ["word", "bpe"])
def test_equal_sequences_stay_on_one_side(write: Write, ready: Ready, tokenizer: str) -> None:
    rows = [(f"{'A' if i % 2 else 'a'}{i % 30} b", "xy"[i % 3 % 2]) for i in range(120)]
    path = write("train.tsv", rows)
    data = ready(train=path, validation=0.25, tokenizer=tokenizer, max_vocab_size=300)
    train, held_out = ({line % 30 for line in store.lines} for store in data.splits.values())
    assert len(data.splits["validation"]) in range(27, 34)
    assert not train & held_out


def test_the_split_is_the_seeds(write: Write, ready: Ready) -> None:
    path = write("train.tsv", [*((f"t{i}", "xy"[i % 2]) for i in range(40))])
    parts = [
        ready(train=path, validation=0.25, seed=seed).splits["validation"].lines.tolist()
        for seed in (3, 3, 4)
    ]
    assert parts[0] == parts[1] != parts[2]


def jsonl(*rows: tuple[Any, str]) -> str:
    return "".join(json.dumps({"text": x, "label": y}) + "\n" for x, y in rows)


def test_features_are_standardised_on_train_and_constant_channels_kept(
    write: Write, ready: Ready
) -> None:
    data = ready(
        kind="features",
        train=write("a.jsonl", jsonl(([[1, 7, 0.1]], "x"), ([[3, 7, 0.1], [8, 7, 0.1]], "y"))),
        test=write("b.jsonl", jsonl(([[4, 9, 0.1]], "x"))),
    )
    train = data.splits["train"].values
    assert train.dtype == np.float32
    np.testing.assert_allclose(train[:, 0].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(train[:, 0].std(), 1, atol=1e-6)
    assert (train[:, 1:] == 0).all()
    np.testing.assert_allclose(data.splits["test"].values, [[0, 2, 0]], atol=1e-6)
    assert data.preprocessing.input_size == 3
    assert data.eligible_tokens == 0


def test_missing_values_become_zero_with_an_indicator(write: Write, ready: Ready) -> None:
    data = ready(
        kind="features",
        missing="mask",
        train=write("a.jsonl", jsonl(([[1, None], [3, None]], "x"), ([[None, None]], "y"))),
    )
    values = data.splits["train"].values
    assert values.tolist() == [[-1, 0, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]]
    assert data.preprocessing.input_size == 4


@pytest.mark.parametrize("missing", ["error", "mask"])
def test_an_empty_series_is_read_as_zeros(write: Write, ready: Ready, missing: str) -> None:
    data = ready(
        kind="features",
        empty="unk",
        missing=missing,
        train=write("a.jsonl", jsonl(([], "x"), ([[1, 2], [5, 6]], "y"))),
    )
    store = data.splits["train"]
    assert np.isfinite(store.values).all()
    assert (store[0][0][:, :2] == 0).all()
    assert data.reports["train"].filled == 1


def test_tiny_and_huge_channels_stay_finite(write: Write, ready: Ready) -> None:
    rows = (([[1e-42, 1e38], [-1e-42, -1e38]], "x"), ([[0, 3e38]], "y"))
    data = ready(kind="features", train=write("a.jsonl", jsonl(*rows)))
    assert np.isfinite(data.splits["train"].values).all()


def test_preprocessing_survives_json_and_encodes_the_same(write: Write, ready: Ready) -> None:
    path = write("train.tsv", [("Move 20 é", "x"), ("back again", "y")])
    for keys in (
        {},
        {"tokenizer": "bpe"},
        {"max_length": 2, "overlong": "tail", "lowercase": False},
    ):
        fitted = ready(train=path, **keys).preprocessing
        values = json.loads(json.dumps(fitted.to_json()))
        assert fitted.vocabulary is not None
        copy = Preprocessing.from_json(values, list(fitted.vocabulary.tokens))
        assert copy == fitted
        stores = [
            each.encode(read_examples(path, each.reading), path)[0] for each in (fitted, copy)
        ]
        assert stores[0].values.tolist() == stores[1].values.tolist()


def test_prediction_answers_rows_that_training_would_drop(write: Write, ready: Ready) -> None:
    path = write("train.tsv", [("a", "x"), ("", "y"), ("b", "y")])
    fitted = ready(train=path, empty="drop").preprocessing
    store, report = fitted.for_prediction().encode(read_examples(path, fitted.reading), path)
    assert (len(store), report.filled) == (3, 1)
    refusing = ready(train=write("b.tsv", [("a", "x"), ("b", "y")])).preprocessing
    assert refusing.for_prediction() == refusing


@pytest.mark.parametrize(
    ("rows", "keys", "message"),
    [
        ([("a", "x")] * 3, {}, "data.label: all 3 rows of train are of one class ('x')"),
        ([("a", "x"), ("b", "y")], {"validation": 0.1}, "data.validation: 0.1 holds out no row"),
        ([("", "x"), ("", "y")], {"empty": "drop"}, "data.train: no rows are left"),
    ],
)
def test_data_that_can_teach_nothing_is_refused(
    write: Write, ready: Ready, rows: list[tuple[str, str]], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        ready(train=write("train.tsv", rows), **keys)
    assert str(caught.value).startswith(message)


def test_a_split_that_is_train_itself_is_refused(write: Write, ready: Ready) -> None:
    content = [("a", "x"), ("b", "y")]
    with pytest.raises(DataError, match=r"^data\.test: .*b\.tsv has the same content as data\.tr"):
        ready(train=write("a.tsv", content), test=write("b.tsv", content))


def test_folders_and_pipes_are_refused_before_they_are_read(tmp_path: Path, ready: Ready) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name, found in (("folder", "a folder"), ("pipe", "a pipe")):
        with pytest.raises(DataError, match=f"{name}.csv: is {found}; expected a regular file"):
            ready(train=str(tmp_path / f"{name}.csv"))


def test_missing_files_are_reported_together_and_looked_for_beside_the_config(
    write: Write, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("configs/near.tsv", "x")
    monkeypatch.chdir(tmp_path)
    config = make_config(train="near.tsv", test="gone.tsv")
    with pytest.raises(DataError) as caught:
        check_files(config, Path("configs"))
    assert caught.value.problems == (
        f"data.train: no file 'near.tsv' (looked for {tmp_path / 'near.tsv'}); paths are relative "
        "to the current directory: write configs/near.tsv",
        f"data.test: no file 'gone.tsv' (looked for {tmp_path / 'gone.tsv'})",
    )


def test_a_file_behind_a_linked_folder_enters_the_digest(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "1.txt").write_text("one")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "x").symlink_to(elsewhere)
    before = digest(str(tmp_path / "set"))
    (elsewhere / "2.txt").write_text("two")
    assert digest(str(tmp_path / "set")) != before


def test_what_is_not_read_of_a_folder_stays_out_of_its_digest(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "1.txt").write_text("one")
    before = digest(str(tmp_path))
    (tmp_path / ".git").mkdir()
    for unread in (".git/HEAD", "x/.1.swp", "README"):
        (tmp_path / unread).write_text("other")
    assert digest(str(tmp_path)) == before
    os.mkfifo(tmp_path / "x" / "2.txt")
    with pytest.raises(DataError, match=r"x/2\.txt: is a pipe; expected a regular file"):
        digest(str(tmp_path))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sequence": 0, "label": "text"}, "data.label: 'text' is a column of data.sequence too"),
        ({"sequence": ["text", 0]}, "names a column twice"),
        ({"min_count": 9}, "data.min_count: no token of train occurs 9 times"),
    ],
)
def test_what_could_not_be_learned_from_is_refused(
    write: Any, make_config: Any, keys: dict[str, Any], message: str
) -> None:
    train = write("train.tsv", [("a b", "x"), ("c", "y")])
    with pytest.raises(DataError, match=message):
        prepare(make_config(**{"train": train, "header": True, **keys}), cache_folder=None)


def test_validation_of_other_labels_is_refused(write: Any, make_config: Any) -> None:
    train = write("train.tsv", [("a b", "x"), ("c", "y")])
    other = write("other.tsv", [("a b", "p"), ("c", "q")])
    with pytest.raises(DataError, match="none of its labels occurs in train"):
        prepare(make_config(train=train, validation=other), cache_folder=None)


def test_values_out_of_range_stay_finite(make_config: Any, tmp_path: Path) -> None:
    for name, values in (("train", [1e-30, 2e-30, 3e-30, 1e-30]), ("test", [3e38, -3e38])):
        labels = np.array(["x", "y"] * (len(values) // 2))
        np.savez(
            tmp_path / f"{name}.npz",
            values=np.array(values),
            offsets=np.arange(len(values) + 1),
            labels=labels,
        )
    paths = {name: str(tmp_path / f"{name}.npz") for name in ("train", "test")}
    data = prepare(
        make_config(**paths, kind="features", sequence=None, label=None), cache_folder=None
    )
    assert np.isfinite(data.splits["test"].values).all()


def test_rows_of_a_folder_are_numbered_through_its_files(tmp_path: Path, make_config: Any) -> None:
    for label, count in (("x", 2), ("y", 3)):
        (tmp_path / "set" / label).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "set" / label / f"{number}.txt").write_text(f"word{number}")
    config = make_config(train=str(tmp_path / "set"), format="txt", sequence=None, label=None)
    data = prepare(config, cache_folder=None)
    assert data.splits["train"].lines.tolist() == [1, 2, 3, 4, 5]
