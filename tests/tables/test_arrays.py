"""Formats npz and npy."""

import io
import zipfile
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.tables import opening
from seqtrain.tables.blocks import Dialect
from seqtrain.tables.sources import open_source
from tests.helpers.packing import ENDINGS, NAMES
from tests.helpers.packing import pack as pack_file
from tests.tables.conftest import rows_of, select

VALUES = np.arange(8.0).reshape(4, 2)
ONE: dict[str, Any] = {"values": [1.0], "lengths": [1]}


def pack(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


@pytest.mark.parametrize("borders", [{"offsets": [0, 3, 3, 4]}, {"lengths": [3, 0, 1]}])
def test_values_of_all_sequences_one_after_another(read, borders):
    found = read(pack(values=VALUES, labels=["a", "b", "a"], **borders), "a.npz")
    assert [row.cells["text"].tolist() for row in found] == [VALUES[:3].tolist(), [], [[6, 7]]]
    assert [(row.line, row.cells["label"]) for row in found] == [(1, "a"), (2, "b"), (3, "a")]


def test_padded_sequences_with_lengths_or_missing_values(read):
    x = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]])
    found = read(pack(X=x, lengths=[2, 3], y=[7, 8]), "a.npz")
    for name in ("length", "seq_len", "len", "X_lengths", "seqlen"):
        assert str(read(pack(X=x, y=[7, 8], **{name: [2, 3]}), "a.npz")) == str(found)
    assert [row.cells["text"].tolist() for row in found] == [[1, 2], [3, 4, 5]]
    assert [row.cells["label"] for row in found] == [7, 8]
    found = read(pack(X=np.where(x == 0, np.nan, x), y=[7, 8]), "a.npz")
    assert [row.cells["text"].tolist() for row in found] == [[1, 2], [3, 4, 5]]
    found = read(pack(X=np.array([[5, 0, 0], [1, 2, 3]]), lengths=[1, 3]), "a.npz", "text")
    assert [row.cells["text"].tolist() for row in found] == [[5], [1, 2, 3]]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"lengths": [4], "labels": [1]}, "no array values; found "),
        ({"values": VALUES}, "no array lengths; found values; expected values, "),
        ({"values": VALUES, "lengths": [3]}, "lengths: expected to cover 0 to 4, the "),
        ({"values": VALUES, "lengths": [5, -1]}, "lengths: expected to cover 0 to 4, th"),
        ({"values": VALUES, "lengths": [4.0]}, "lengths: expected integers (B,), found float64"),
        ({"values": VALUES, "offsets": [0, 3, 2, 4]}, "offsets: expected to cover 0 to "),
        ({"values": VALUES, "offsets": [0, 4], "lengths": [4]}, "found the arrays offsets and"),
        ({"values": ["x"], "lengths": [1]}, "values: expected numbers (N,) or (N, C), the step"),
        ({"X": VALUES, "lengths": [1, 2, 3, 4]}, "lengths: expected 4 lengths of at most 2"),
        (ONE | {"labels": [1, 2]}, "labels: expected integers or strings (1,), or marks"),
        (ONE, "no array labels; found "),
        ({"X": VALUES, "y": np.eye(4)[:, :2] * 2}, "labels: expected integers or strings (4,)"),
        ({"X": VALUES, "y": np.ones((4, 2))}, "labels: expected integers or strings (4,), or m"),
        ({"values": np.array([{}], dtype=object)}, "an array of Python objects can't be read"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(refuse, arrays, problem):
    (found,) = refuse(pack(**arrays), "a.npz", "text", "label")
    assert found.startswith(f"a.npz: {problem}")


def test_other_files_and_bombs_are_refused(refuse, monkeypatch):
    assert "not a sound npz file" in refuse(b"values", "a.npz")[0]
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 1000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 100)
    bomb = pack(values=np.zeros(10**6), lengths=[10**6], labels=[1])
    assert "refused as a bomb" in refuse(bomb, "a.npz")[0]


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0x80000000, 0xFFFFFFFF])
def test_labels_of_no_character_are_refused(refuse, code):
    labels = np.array(["a", "b"], dtype="<U1")
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(pack(values=VALUES, lengths=[2, 2], labels=labels))) as old:
        arrays = {name: old.read(name) for name in old.namelist()}
    codes = np.array([code, 98], dtype="<u4").tobytes()
    arrays["labels.npy"] = arrays["labels.npy"][: -len(codes)] + codes
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    assert refuse(buffer.getvalue(), "a.npz")[0].startswith("a.npz: labels: a string holds what")


@pytest.mark.parametrize("ending", ENDINGS)
def test_compression_around_npz(read, refuse, ending):
    packed = pack(values=VALUES, lengths=[3, 1], labels=["a", "b"])
    found = read(pack_file(packed, ending), f"a.npz.{ending}")
    assert [row.cells["text"].tolist() for row in found] == [VALUES[:3].tolist(), [[6, 7]]]
    (message,) = refuse(pack_file(packed, ending)[:-30], f"a.npz.{ending}")
    assert f"{NAMES[ending]} data are cut off" in message


def test_damage_never_escapes_as_another_error(read):
    packed, draw = pack(values=VALUES, lengths=[4], labels=["a"]), np.random.default_rng(0)
    for number in range(300):
        damaged = bytearray(packed[: None if number % 2 else number * len(packed) // 300])
        for place in draw.integers(0, max(1, len(damaged)), 3) if damaged else ():
            damaged[place] = draw.integers(256)
        with suppress(DataError):
            read(bytes(damaged), "a.npz")


@pytest.mark.parametrize(("x", "y"), [("X.npy", "y.npy"), ("train_x.npy", "train_y.npy")])
def test_labels_of_an_array_are_in_a_second_file(x, y, tmp_path):
    np.save(tmp_path / x, np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]]))
    source = open_source(str(tmp_path / x), Dialect("npz"))
    with pytest.raises(DataError, match=rf"{x}: no array labels; found X; .*, or y\.npy next to"):
        list(rows_of(source, select("text", "label")))
    np.save(tmp_path / y, np.array(["a", "b"]))
    found = list(rows_of(source, select("text", "label")))
    assert [(row.cells["text"].tolist(), row.cells["label"]) for row in found] == [
        ([1, 2], "a"),
        ([3, 4, 5], "b"),
    ]
    before = source.digest()
    np.save(tmp_path / y, np.array(["b", "a"]))
    assert source.digest() != before


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.bool_])
def test_labels_may_be_marked_by_ones(read, dtype):
    """A column for each class. One 1 in each row is a label, several are a list of marks."""
    one_hot = np.eye(3, dtype=dtype)[[2, 0, 1, 2]]
    found = read(pack(X=VALUES, y=one_hot), "a.npz")
    assert [row.cells["label"] for row in found] == [2, 0, 1, 2]
    one_hot[0, :] = one_hot[1, 0] = 0
    found = read(pack(X=VALUES, y=one_hot), "a.npz")
    assert [row.cells["label"] for row in found] == one_hot.astype(int).tolist()


def test_the_rows_of_an_array_may_be_time_steps(tmp_path):
    np.save(tmp_path / "walk.npy", VALUES)
    source = open_source(str(tmp_path / "walk.npy"), Dialect("npz"))
    found = list(rows_of(source, select(0, 1, "file")))
    assert [row.cells[1] for row in found] == [1, 3, 5, 7]
    assert {row.cells["file"] for row in found} == {f"{tmp_path}/walk.npy"}
