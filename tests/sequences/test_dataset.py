"""From a config to encoded splits: held-out rows, and fitting on train only."""

import gzip
import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.columns import tokens as token_columns
from seqtrain.sequences.dataset import PreparedData, prepare
from tests.helpers.reading import file_source

Ready = Callable[..., PreparedData]


@pytest.fixture
def ready(make_config) -> Ready:
    return lambda **keys: prepare(make_config(**keys))


def tokens(data: PreparedData) -> tuple[str, ...]:
    return data.preprocessing.vocabulary.tokens[2:]


def words(data: PreparedData, split: str) -> list[list[str]]:
    vocabulary = data.preprocessing.vocabulary
    store = data.splits[split]
    return [[vocabulary.tokens[i] for i in store[row][0]] for row in range(len(store))]


def lines(data: PreparedData) -> dict[str, list[int]]:
    return {name: store.lines.tolist() for name, store in data.splits.items()}


def objects(*rows: tuple[Any, str]) -> list[dict[str, Any]]:
    return [{"text": text, "label": label} for text, label in rows]


def test_vocabulary_and_labels_come_from_train_alone(write, ready):
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


@pytest.mark.parametrize("tokenizer", ["word", "whitespace", "char", "byte"])
def test_tokens_have_the_same_ids_however_many_pieces_are_remembered(
    write, ready, monkeypatch, tokenizer
):
    draw = random.Random(0)
    texts = ["".join(draw.choices([*"abΣ'. \u3000", "long" * 20], k=9)) + "a" for _ in range(60)]
    path = write("train.tsv", [(text, "xy"[i % 2]) for i, text in enumerate(texts)])
    found = []
    for remembered in (10_000, 20, 0):
        monkeypatch.setattr(token_columns, "REMEMBERED_CHARACTERS", remembered)
        data = ready(train=path, tokenizer=tokenizer, min_count=3)
        found.append((words(data, "train"), data.splits["train"].values.tolist()))
    assert found[0] == found[1] == found[2]


def test_what_is_held_out_teaches_nothing(write, ready):
    rows = [(f"shared only{i}", "xy"[i % 2]) for i in range(40)]
    keys = {"train": write("train.tsv", rows), "validation": 0.25, "tokenizer": "whitespace"}
    alone, both = ready(**keys), ready(**keys, test=0.1)
    assert [len(part) for part in lines(alone).values()] == [30, 10]
    assert [len(part) for part in lines(both).values()] == [26, 10, 4]
    assert sorted(line for own in lines(both).values() for line in own) == list(range(2, 42))
    assert lines(both)["validation"] == lines(alone)["validation"]
    for data in (alone, both):
        assert set(tokens(data)) == {"shared", *(f"only{i - 2}" for i in lines(data)["train"])}
        assert all(text == ["shared", "<unk>"] for text in words(data, "validation"))


@pytest.mark.parametrize("groups", [False, True])
def test_bpe_merges_are_learned_from_the_training_part(write, ready, groups):
    rows = [
        {
            "text": f"{'zq' * 8 if i % 10 == 0 else 'ab ba'} {i}",
            "label": "xy"[i % 3 % 2],
            "g": i % 10 and i,
        }
        for i in range(100)
    ]
    path = write("train.jsonl", rows)
    keys = {"train": path, "tokenizer": "bpe", "max_vocab_size": 300}
    keys |= {"group": "g"} if groups else {}
    assert any("zq" in token for token in tokens(ready(**keys)))
    for number in range(20):
        held_out = {"fold": number % 4 + 1, "of": 4} if groups else 0.9
        data = ready(**keys, validation=held_out, seed=number)
        if not any(line % 10 == 1 for line in lines(data)["train"]):
            assert "zq" not in str(data.preprocessing.sequence)
            return
    raise AssertionError("no seed holds out all rows of one sort")


ENCODINGS = (
    {"max_length": 2},
    {"max_length": 3, "overlong": "tail"},
    {"tokenizer": "char", "empty": "unk"},
    {"tokenizer": "bpe", "max_vocab_size": 300},
    {"min_count": 2, "empty": "unk"},
)


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ({"validation": 0.3, "test": 0.1}, False),
        ({"validation": {"fold": 1, "of": 3}}, False),
        ({"validation": {"fold": 1, "of": 3}}, True),
    ],
    ids=str,
)
def test_which_rows_are_held_out_depends_on_rows_not_on_how_they_are_encoded(
    write, ready, parts, groups
):
    draw = random.Random(0)
    rows = [
        {
            "text": " ".join(draw.choices(["A", "a", "b", "C c"], k=draw.randint(1, 5))),
            "label": draw.choice("xxy"),
            "g": i // 3,
        }
        for i in range(200)
    ]
    rows += [] if groups else [{"text": "  ", "label": "z", "g": 99}, {"text": "z", "label": "z"}]
    path = write("train.jsonl", rows)
    keys = {"train": path, **parts, **({"group": "g"} if groups else {"empty": "drop"})}
    found = lines(ready(**keys))
    assert found["validation"]
    for change in ENCODINGS:
        again = lines(ready(**{**keys, **change}))
        assert {name: again[name] for name in parts} == {name: found[name] for name in parts}


@pytest.mark.parametrize(
    ("overlong", "kept"), [("head", "a b c"), ("tail", "e f g"), ("middle", "c d e")]
)
def test_the_part_of_an_overlong_sequence_that_is_kept(write, ready, overlong, kept):
    path = write("train.tsv", [("a b c d e f g", "x"), ("h i", "y")])
    data = ready(train=path, max_length=3, overlong=overlong)
    assert words(data, "train") == [kept.split(), ["h", "i"]]
    assert data.reports["train"].truncated == 1


def test_empty_rows_are_dropped_or_read_as_unknown(write, ready):
    path = write("train.tsv", [("a", "x"), (" ", "y"), ("b", "y")])
    assert lines(ready(train=path, empty="drop")) == {"train": [2, 4]}
    assert words(ready(train=path, empty="unk"), "train") == [["a"], ["<unk>"], ["b"]]


@pytest.mark.parametrize("tokenizer", ["word", "bpe"])
def test_equal_sequences_stay_on_one_side(write, ready, tokenizer):
    rows = [(f"{'A' if i % 2 else 'a'}{i % 30} b", "xy"[i % 3 % 2]) for i in range(120)]
    path = write("train.tsv", rows)
    data = ready(train=path, validation=0.25, tokenizer=tokenizer, max_vocab_size=300)
    train, held_out = ({line % 30 for line in own} for own in lines(data).values())
    assert len(data.splits["validation"]) in range(27, 34)
    assert not train & held_out


def test_features_are_standardised_on_train_and_constant_channels_kept(write, ready):
    data = ready(
        kind="features",
        train=write("a.jsonl", objects(([[1, 7, 0.1]], "x"), ([[3, 7, 0.1], [8, 7, 0.1]], "y"))),
        test=write("b.jsonl", objects(([[4, 9, 0.1]], "x"))),
    )
    train = data.splits["train"].values
    assert train.dtype == np.float32
    np.testing.assert_allclose(train[:, 0].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(train[:, 0].std(), 1, atol=1e-6)
    assert (train[:, 1:] == 0).all()
    np.testing.assert_allclose(data.splits["test"].values, [[0, 2, 0]], atol=1e-6)
    assert data.preprocessing.input_size == 3


def test_missing_values_become_zero_with_an_indicator(write, ready):
    rows = (([[1, None], [3, None]], "x"), ([[None, None]], "y"))
    data = ready(kind="features", missing="mask", train=write("a.jsonl", objects(*rows)))
    assert data.splits["train"].values.tolist() == [[-1, 0, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]]
    assert data.preprocessing.input_size == 4


@pytest.mark.parametrize("missing", ["error", "mask"])
def test_an_empty_series_is_read_as_zeros(write, ready, missing):
    rows = (([], "x"), ([[1, 2], [5, 6]], "y"))
    train = write("a.jsonl", objects(*rows))
    data = ready(kind="features", empty="unk", missing=missing, train=train)
    assert (data.splits["train"][0][0][:, :2] == 0).all()
    assert np.isfinite(data.splits["train"].values).all()
    assert data.reports["train"].filled == 1
    empty = write("b.jsonl", objects(([], "x"), ([], "y")))
    with pytest.raises(DataError, match=r"every sequence is empty"):
        ready(kind="features", empty="unk", train=empty)


@pytest.mark.parametrize(("texts", "label"), [(["a", "b"], []), (["a", "b"], ["x"]), ([""], ["x"])])
def test_train_needs_rows_of_two_classes(write, ready, texts, label):
    train = write("a.jsonl", objects(*((text, label) for text in texts)))
    with pytest.raises(DataError, match=r"^data\.(train|label): "):
        ready(train=train, label_separator="|", empty="drop")


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="Linux counts what is read")
@pytest.mark.parametrize("ending", ["csv", "jsonl.gz"])
def test_a_file_is_read_once(tmp_path, ready, ending):
    path, draw = tmp_path / f"train.{ending}", random.Random(0)
    kinds = [f"{draw.random()}"[2:42] for _ in range(1000)]
    rows = [draw.choices(kinds, k=500) for _ in range(200)]
    if ending == "csv":
        path.write_text("text,label\n" + "".join(f"{' '.join(x)},{x[0][0]}\n" for x in rows))
    else:
        lines = (json.dumps({"text": " ".join(x), "label": x[0][0]}) + "\n" for x in rows)
        path.write_bytes(gzip.compress("".join(lines).encode(), 1))
    before = bytes_read()
    data = ready(train=str(path), sequence="text", label="label")
    assert bytes_read() - before < 1.5 * path.stat().st_size
    assert data.digests[str(path)] == hashlib.sha256(path.read_bytes()).hexdigest()


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


def test_rows_of_a_folder_are_numbered_through_its_files(tmp_path, ready):
    for label, count in (("x", 2), ("y", 3)):
        (tmp_path / "set" / label).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "set" / label / f"{number}.txt").write_text(f"word{number}")
    data = ready(train=str(tmp_path / "set"), format="txt", sequence=None, label=None)
    assert lines(data) == {"train": [1, 2, 3, 4, 5]}
    before = file_source(str(tmp_path / "set"), "txt").source.digest()
    assert data.digests == {str(tmp_path / "set"): before}
    for unread in (".git", "x/.1.swp", "README"):
        (tmp_path / "set" / unread).write_text("other")
    assert file_source(str(tmp_path / "set"), "txt").source.digest() == before
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "set" / "z").symlink_to(elsewhere)
    (elsewhere / "1.txt").write_text("one")
    assert file_source(str(tmp_path / "set"), "txt").source.digest() != before


def test_ids_that_train_has_are_reported_in_other_splits(tmp_path, make_config):
    rows = ["id,place,l", *(f"i{n},{'ab'[n % 2]},{'xy'[n % 2]}" for n in range(8)), ""]
    others = ["id,place,l", "i3,b,y", "new,a,x", "i4,a,x", "i4,a,x", ""]
    for name, lines in (("a.csv", rows), ("b.csv", others)):
        (tmp_path / name).write_text("\n".join(lines))
    config = make_config(
        train=str(tmp_path / "a.csv"),
        validation=str(tmp_path / "b.csv"),
        sequence=None,
        id="id",
        steps={"place": "token"},
        label="l",
    )
    data = prepare(config)
    assert data.reports["validation"].learned_ids == 2
    assert "2 sequences" in " ".join(data.reports["validation"].notices("validation"))
    assert data.reports["train"].learned_ids == 0


def test_zeros_without_a_sign_are_equal_to_those_with_one(tmp_path, ready):
    """Equal sequences have equal keys, so none is both learned and held out."""
    cells, labels = ["0.0 1 2", "-0.0 1 2", "1 1 2"], "aab"
    rows = [f"{row},{cell},{cell.split()[0]}" for row, cell in enumerate(cells)]
    lines = [f"{row},{label}" for row, label in zip(rows, labels, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["id,x,y,label", *lines, ""]))
    path = str(tmp_path / "a.csv")
    series = ready(train=path, kind="features", sequence="x")
    steps = ready(train=path, id="id", steps={"y": "number"}, sequence=None)
    for data in (series, steps):
        first, second, third = data.splits["train"].keys.tolist()
        assert first == second != third
