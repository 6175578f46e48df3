"""Format npz."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from seqtrain.data.readers import npz, opening
from seqtrain.errors import DataError
from tests.helpers.packing import ENDINGS, NAMES
from tests.helpers.packing import pack as pack_file

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

OPTIONS: dict[str, Any] = {"format": "npz", "kind": "features"}
VALUES = np.arange(8.0).reshape(4, 2)


def pack(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def archive_of(arrays: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip archive of these members, as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in arrays:
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("borders", [{"offsets": [0, 3, 3, 4]}, {"lengths": [3, 0, 1]}])
def test_features(read: Read, borders: dict[str, list[int]]) -> None:
    rows = read(pack(values=VALUES, labels=["a", "b", "a"], **borders), "a", **OPTIONS)
    assert [row.sequence.tolist() for row in rows] == [VALUES[:3].tolist(), [], [[6.0, 7.0]]]
    assert [row.sequence.shape for row in rows] == [(3, 2), (0, 2), (1, 2)]
    assert all(row.sequence.dtype == np.float32 for row in rows)
    assert [(row.label, row.line) for row in rows] == [("a", 1), ("b", 2), ("a", 3)]


def test_one_channel_and_integer_labels(read: Read) -> None:
    (row,) = read(pack(values=np.arange(3), lengths=[3], labels=[-7]), "a", **OPTIONS)
    assert row.sequence.tolist() == [[0], [1], [2]]
    assert row.label == "-7"


def test_tokens_are_spelled_integers(read: Read, refuse: Refuse) -> None:
    options: dict[str, Any] = {"format": "npz", "kind": "tokens", "labelled": False}
    rows = read(pack(values=np.array([5, -1, 7]), lengths=[2, 1]), "a", **options)
    assert [row.sequence for row in rows] == [["5", "-1"], ["7"]]
    assert [row.label for row in rows] == [None, None]
    assert refuse(pack(values=VALUES, lengths=[4]), "a", **options) == (
        "a: values: expected integers (N,), found float64 (4, 2)",
    )


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        (
            {"lengths": [4]},
            "no array values; found of values, offsets or lengths, labels: lengths, labels",
        ),
        ({"values": VALUES}, "expected exactly one of the arrays offsets and lengths"),
        (
            {"values": VALUES, "lengths": [3]},
            "lengths: expected to cover 0 to 4, the values; 0 to 3",
        ),
        ({"values": VALUES, "lengths": [5, -1]}, "lengths: -1 is negative"),
        (
            {"values": VALUES, "lengths": [4.0]},
            "lengths: expected integers (B,), found float64 (1,)",
        ),
        (
            {"values": VALUES, "offsets": [0, 3, 2, 4]},
            "offsets: row 2 ends at 2, before its start 3",
        ),
        (
            {"values": VALUES, "offsets": [1, 4]},
            "offsets: expected to cover 0 to 4, the values; 1 to 4",
        ),
        (
            {"values": ["x"], "lengths": [1]},
            "values: expected numbers (N,) or (N, C), the time steps of all sequences one after "
            "another, found <U1 (1,)",
        ),
        (
            {"values": VALUES, "lengths": [2, 2]},
            "labels: expected integers or strings (2,), found <U1 (1,)",
        ),
    ],
)
def test_arrays_that_do_not_fit(refuse: Refuse, arrays: dict[str, Any], problem: str) -> None:
    assert refuse(pack(labels=["a"], **arrays), "a", **OPTIONS) == (f"a: {problem}",)


def test_bad_rows_and_labels(refuse: Refuse) -> None:
    values = np.array([1.0, np.nan, np.inf])
    assert refuse(pack(values=values, lengths=[2, 1], labels=["a", "b"]), "a", **OPTIONS) == (
        "a:2: step 1: inf is infinite or too large for float32",
    )
    assert refuse(pack(values=values[:1], lengths=[1], labels=[" "]), "a", **OPTIONS) == (
        "a:1: the label is blank",
    )
    assert refuse(pack(values=values[:1], lengths=[1]), "a", **OPTIONS) == (
        "a: no array labels; found of values, offsets or lengths, labels: values, lengths",
    )


def test_pickles_text_and_other_files_are_refused(
    refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pack(values=np.array([{}], dtype=object), lengths=[1], labels=["a"])
    (message,) = refuse(packed, "a", **OPTIONS)
    assert "Object arrays cannot be loaded" in message
    (message,) = refuse(b"values", "a", **OPTIONS)
    assert message == "a: not a sound npz file of plain arrays (File is not a zip file)"
    assert refuse(packed, "a", format="npz") == (
        "a: found format npz; the model reads text without named columns; expected fasttext or txt",
    )
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 1000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 100)
    monkeypatch.setattr(npz, "BOMB_RATIO", 100)
    (message,) = refuse(pack(values=np.zeros(10**6), lengths=[10**6], labels=[1]), "a", **OPTIONS)
    assert message == "a: the arrays expand more than 100 times; refused"


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0x80000000, 0xFFFFFFFF])
@pytest.mark.parametrize("order", "<>")
def test_labels_of_no_character_are_refused(refuse: Refuse, code: int, order: str) -> None:
    packed = pack(values=VALUES, lengths=[2, 2], labels=np.array(["a", "b"], dtype=f"{order}U1"))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist()}
    codes = np.array([code, 98], dtype=f"{order}u4").tobytes()
    arrays["labels.npy"] = arrays["labels.npy"][: -len(codes)] + codes
    assert refuse(archive_of(arrays.items()), "a", **OPTIONS) == (
        "a: labels: a string holds what is no character",
    )


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["values.npy", "values", "labels.npy"])
def test_an_array_given_twice_is_refused(refuse: Refuse, name: str) -> None:
    with zipfile.ZipFile(
        io.BytesIO(pack(values=VALUES, lengths=[2, 2], labels=["a", "b"]))
    ) as archive:
        arrays = [(name, archive.read(name)) for name in archive.namelist()]
    key = name.removesuffix(".npy")
    twice = [*arrays, (name, dict(arrays)[f"{key}.npy"])]
    assert refuse(archive_of(twice), "a", **OPTIONS) == (
        f"a: the array {key} occurs twice; save it once",
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_compression_around_npz(
    read: Read, refuse: Refuse, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    packed = pack(values=VALUES, lengths=[3, 1], labels=["a", "b"])
    plain, unpacked = (
        [(row.sequence.tolist(), row.label, row.line) for row in read(content, name, **OPTIONS)]
        for content, name in ((packed, "a.npz"), (pack_file(packed, ending), f"a.npz.{ending}"))
    )
    assert plain == unpacked
    (message,) = refuse(pack_file(packed, ending)[:-30], f"a.npz.{ending}", **OPTIONS)
    assert message.startswith(f"a.npz.{ending}: not a sound npz file")
    assert f"the {NAMES[ending]} data are cut off after" in message
    monkeypatch.setattr(opening, "BOMB_FREE_BYTES", 100_000)
    monkeypatch.setattr(opening, "BOMB_RATIO", 500)
    bomb = pack_file(b"PK" + b"\0" * 400_000, ending)
    (message,) = refuse(bomb, f"b.npz.{ending}", **OPTIONS)
    assert "expand more than 500 times; refused as a bomb" in message


def test_damage_never_escapes_as_another_error(read: Read) -> None:
    packed = pack(values=VALUES, lengths=[4], labels=["a"])
    draw = random.Random(0)
    for _ in range(300):
        damaged = bytearray(packed)
        for _ in range(draw.choice([1, 2, 8])):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with suppress(DataError):
            read(bytes(damaged[: draw.choice([None, draw.randrange(len(packed))])]), "a", **OPTIONS)
