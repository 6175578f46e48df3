"""Format npz."""

import io
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.readers import opening
from tests.helpers.packing import ENDINGS, NAMES
from tests.helpers.packing import pack as pack_file
from tests.helpers.reading import damaged_copies, file_source, only_label, read_examples

OPTIONS: dict[str, Any] = {"format": "npz", "kind": "features"}
VALUES = np.arange(8.0).reshape(4, 2)


def pack(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def archive_of(arrays: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in arrays:
            archive.writestr(name, content)
    return buffer.getvalue()


def members(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.mark.parametrize("borders", [{"offsets": [0, 3, 3, 4]}, {"lengths": [3, 0, 1]}])
def test_features(read, borders):
    rows = read(pack(values=VALUES, labels=["a", "b", "a"], **borders), "a", **OPTIONS)
    assert [row.sequence.tolist() for row in rows] == [VALUES[:3].tolist(), [], [[6.0, 7.0]]]
    assert [row.sequence.shape for row in rows] == [(3, 2), (0, 2), (1, 2)]
    assert all(row.sequence.dtype == np.float32 for row in rows)
    assert [(only_label(row), row.line) for row in rows] == [("a", 1), ("b", 2), ("a", 3)]
    (row,) = read(pack(values=np.arange(3), lengths=[3], labels=[-7]), "a", **OPTIONS)
    assert (row.sequence.tolist(), only_label(row)) == ([[0], [1], [2]], "-7")


def test_flat_values_go_before_other_arrays_and_y_before_labels(read, refuse):
    flat = {"values": VALUES, "lengths": [3, 1], "labels": ["a", "b"]}
    plain = [row.sequence.tolist() for row in read(pack(**flat), "a", **OPTIONS)]
    beside = pack(**flat, X=np.ones((2, 2)), y=[3, 4])
    assert [row.sequence.tolist() for row in read(beside, "a", **OPTIONS)] == plain
    assert [only_label(row) for row in read(beside, "a", **OPTIONS)] == ["a", "b"]
    wide = pack(X=np.ones((2, 2)), y=[3, 4], labels=["a", "b"])
    assert [only_label(row) for row in read(wide, "a", **OPTIONS)] == ["3", "4"]
    (both,) = refuse(pack(**flat, offsets=[0, 3, 4]), "a", **OPTIONS)
    assert both.startswith("a: ")
    assert "offsets and lengths" in both


def test_tokens_are_spelled_integers(read, refuse):
    options: dict[str, Any] = {"format": "npz", "kind": "tokens", "labelled": False}
    rows = read(pack(values=np.array([5, -1, 7]), lengths=[2, 1]), "a", **options)
    assert [(row.sequence, only_label(row)) for row in rows] == [(["5", "-1"], None), (["7"], None)]
    rows = read(pack(values=np.array([5.0, -1.0, 7.0], np.float32), lengths=[2, 1]), "a", **options)
    assert [row.sequence for row in rows] == [["5", "-1"], ["7"]]
    for value in (0.5, np.nan, np.inf, 2.0**60):
        (problem,) = refuse(pack(values=np.array([5.0, value]), lengths=[2]), "a", **options)
        assert problem == "a: values: expected integers (N,), found float64 (2,)"
    problem = "a: values: expected integers (N,), found float64 (4, 2)"
    assert refuse(pack(values=VALUES, lengths=[4]), "a", **options) == (problem,)


ONE = {"values": [1.0], "lengths": [1]}


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"lengths": [4], "labels": [1]}, ": no array values; found labels, lengths; "),
        ({"values": VALUES}, ": no array lengths; found values; expected values, "),
        ({"values": VALUES, "lengths": [3]}, ": lengths: expected to cover 0 to 4, the "),
        ({"values": VALUES, "lengths": [5, -1]}, ": lengths: expected to cover 0 to 4, th"),
        ({"values": VALUES, "lengths": [4.0]}, ": lengths: expected integers (B,), found float64"),
        ({"values": VALUES, "offsets": [0, 3, 2, 4]}, ": offsets: expected to cover 0 to "),
        ({"values": VALUES, "offsets": [1, 4]}, ": offsets: expected to cover 0 to 4, the values"),
        ({"values": ["x"], "lengths": [1]}, ": values: expected numbers (N,) or (N, C), the step"),
        (ONE | {"labels": [1, 2]}, ": labels: expected integers or strings (1,), found int64 (2,"),
        (ONE | {"labels": [" "]}, ":1: the label is blank"),
        (ONE, ": no array labels; found lengths, values; expected"),
        (ONE | {"values": [np.inf], "labels": [1]}, ":1: step 1: inf is infinite or too large"),
        ({"values": np.array([{}], dtype=object)}, ": an array of Python objects can't be read"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit(refuse, arrays, problem):
    (found,) = refuse(pack(**arrays), "a", **OPTIONS)
    assert found.startswith(f"a{problem}")


def test_other_files_and_bombs_are_refused(refuse, monkeypatch):
    assert refuse(b"values", "a", **OPTIONS) == (
        "a: not a sound npz file of plain arrays (File is not a zip file)",
    )
    assert refuse(b"", "a", format="npz") == (
        "a: found format npz; the model reads text without named columns; "
        "expected fasttext, txt or fasta",
    )
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 1000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 100)
    assert refuse(pack(values=np.zeros(10**6), lengths=[10**6], labels=[1]), "a", **OPTIONS) == (
        "a: not a sound npz file of plain arrays (the arrays expand more than 100 times; refused "
        "as a bomb)",
    )


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0x80000000, 0xFFFFFFFF])
@pytest.mark.parametrize("order", "<>")
def test_labels_of_no_character_are_refused(refuse, code, order):
    labels = np.array(["a", "b"], dtype=f"{order}U1")
    arrays = members(pack(values=VALUES, lengths=[2, 2], labels=labels))
    codes = np.array([code, 98], dtype=f"{order}u4").tobytes()
    arrays["labels.npy"] = arrays["labels.npy"][: -len(codes)] + codes
    problem = "a: labels: a string holds what is no character"
    assert refuse(archive_of(arrays.items()), "a", **OPTIONS) == (problem,)


@pytest.mark.parametrize("ending", ENDINGS)
def test_compression_around_npz(read, refuse, ending):
    packed = pack(values=VALUES, lengths=[3, 1], labels=["a", "b"])
    plain, unpacked = (
        [
            (row.sequence.tolist(), only_label(row), row.line)
            for row in read(content, name, **OPTIONS)
        ]
        for content, name in ((packed, "a.npz"), (pack_file(packed, ending), f"a.npz.{ending}"))
    )
    assert plain == unpacked
    (message,) = refuse(pack_file(packed, ending)[:-30], f"a.npz.{ending}", **OPTIONS)
    assert message.startswith(f"a.npz.{ending}: not a sound npz file")
    assert f"{NAMES[ending]} data are cut off" in message


def test_damage_never_escapes_as_another_error(read):
    packed = pack(values=VALUES, lengths=[4], labels=["a"])
    for number, damaged in enumerate(damaged_copies(packed)):
        with suppress(DataError):
            read(damaged[: None if number % 2 else number * len(packed) // 300], "a", **OPTIONS)


@pytest.mark.parametrize(("x", "y"), [("X.npy", "y.npy"), ("train_x.npy", "train_y.npy")])
def test_labels_of_an_array_are_in_a_second_file(x, y, tmp_path):
    path = str(tmp_path / x)
    series = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    np.save(path, series)
    with pytest.raises(
        DataError, match=rf"{x}: no array labels; found X; .*, or y\.npy next to X\.npy"
    ):
        list(read_examples(file_source(path, **OPTIONS)))
    np.save(tmp_path / y, np.array(["a", "b"]))
    rows = list(read_examples(file_source(path, **OPTIONS)))
    assert [(row.sequence.tolist(), only_label(row)) for row in rows] == [
        ([[1], [2]], "a"),
        ([[3], [4], [5]], "b"),
    ]
    before = file_source(path, "txt").digest()
    np.save(tmp_path / y, np.array(["b", "a"]))
    assert file_source(path, "txt").digest() != before
    np.save(tmp_path / y, np.array(["a"]))
    with pytest.raises(DataError, match=r"labels: .*\(2,\)"):
        list(read_examples(file_source(path, **OPTIONS)))
