"""Formats fasttext, txt and, for prediction, lines."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.data.examples import Example
from seqtrain.data.readers import ReadOptions, read_examples
from seqtrain.errors import DataError
from tests.helpers.packing import ENDINGS, pack

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

FASTTEXT: dict[str, Any] = {"format": "fasttext"}
TXT: dict[str, Any] = {"format": "txt"}


def seen(rows: list[Example]) -> list[tuple[Any, str | None, int]]:
    return [(row.sequence, row.label, row.line) for row in rows]


def test_fasttext(read: Read, refuse: Refuse) -> None:
    content = (
        "__label__a one two\r\n__label__b\tthree x__label__y\n__label__c\u00a0d e\n__label__f\n\n"
    )
    assert seen(read(content, "a", **FASTTEXT)) == [
        ("one two", "a", 1),
        ("three x__label__y", "b", 2),
        ("e", "c\u00a0d", 3),
        ("", "f", 4),
    ]
    assert read("__label__a one two", "a", **FASTTEXT, kind="tokens")[0].sequence == ["one", "two"]
    content = "__label__a __label__b one\none\n__label__ two\none __label__a\n\n__label__a x\n"
    assert refuse(content, "a", **FASTTEXT) == (
        "a:1: 2 labels, 'a, b'; expected exactly one",
        "a:2: expected __label__NAME at the start of the line",
        "a:3: the label is blank",
        "a:4: expected __label__NAME at the start of the line",
        "a:5: the line is blank",
    )


def test_fasttext_prediction_needs_no_label(read: Read) -> None:
    assert seen(read("one two\n\n__label__a b", "a", **FASTTEXT, labelled=False)) == [
        ("one two", None, 1),
        ("", None, 2),
        ("b", "a", 3),
    ]


def test_txt_lines(read: Read, refuse: Refuse) -> None:
    assert seen(read("a\tone\ttwo\nb\t\n\n", "a", **TXT)) == [("one\ttwo", "a", 1), ("", "b", 2)]
    assert refuse("a\tone\nb two\n\tthree\n", "a", **TXT) == (
        "a:2: no tab; expected label<TAB>text",
        "a:3: the label is blank",
    )
    assert seen(read("one\n\nb\ttwo", "a", **TXT, labelled=False)) == [
        ("one", None, 1),
        ("", None, 2),
        ("two", "b", 3),
    ]


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def folder_problems(folder: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        list(read_examples(str(folder), ReadOptions("txt")))
    return [each.replace(str(folder), "F") for each in caught.value.problems]


def test_txt_folder_with_a_sub_folder_a_class(tmp_path: Path) -> None:
    files = {
        "pos/b.txt": b"two\nlines\r\n",
        "pos/a.txt": b"one",
        "neg/c.gz": gzip.compress(b"three\n"),
        "neg/.hidden": b"\xff",
        "README.md": b"what this is",
    }
    write(tmp_path, files)
    rows = list(read_examples(str(tmp_path), ReadOptions("txt")))
    assert seen(rows) == [("three", "neg", 1), ("one", "pos", 1), ("two\nlines", "pos", 1)]
    assert [row.file for row in rows] == [
        f"{tmp_path}/{name}" for name in ("neg/c.gz", "pos/a.txt", "pos/b.txt")
    ]
    (tmp_path / "pos/b.txt").write_bytes(b"two\n\xff")
    assert folder_problems(tmp_path) == [
        "F/pos/b.txt:2: byte 1 is not UTF-8 (0xff); save the file as UTF-8"
    ]
    (tmp_path / "loose.txt").write_bytes(b"four")
    assert folder_problems(tmp_path) == [
        "F: holds both sub-folders and .txt files (loose.txt); expected one kind"
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_txt_folder_with_a_file_a_class(tmp_path: Path, ending: str) -> None:
    write(tmp_path, {"b.txt": b"one\n\ntwo", f"a.txt.{ending}": pack(b"three\n", ending)})
    rows = list(read_examples(str(tmp_path), ReadOptions("txt")))
    assert seen(rows) == [("three", "a", 1), ("one", "b", 1), ("", "b", 2), ("two", "b", 3)]


def test_txt_folder_names_the_file_of_a_bad_row(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": b"[[1, 2]]\n[]\n", "b.txt": b"[1]\nx\n"})
    with pytest.raises(DataError) as caught:
        list(read_examples(str(tmp_path), ReadOptions("txt", kind="features")))
    assert caught.value.problems == (
        f"{tmp_path}/b.txt:2: expected a JSON list of vectors or numbers, found 'x'",
    )


def test_txt_folders_that_hold_nothing(tmp_path: Path) -> None:
    (message,) = folder_problems(tmp_path)
    assert message == "F: no rows; expected one sub-folder or one file <class>.txt per class"
    (tmp_path / "a1.csv.gz").touch()
    (message,) = folder_problems(tmp_path)
    assert message.endswith("per class; for its .csv.gz files give 'F/*.csv.gz'")
    (tmp_path / "a1.csv.gz").unlink()
    (tmp_path / "pos/deeper").mkdir(parents=True)
    assert folder_problems(tmp_path) == ["F/pos/deeper: is a folder; expected a regular file"]


def test_lines_are_sequences_as_they_are(read: Read, refuse: Refuse) -> None:
    options: dict[str, Any] = {"format": "lines", "labelled": False}
    content = " a\tb \r\n\nc\u2028d\x0b\x85\re"
    assert seen(read(content, "a", **options)) == [
        (" a\tb ", None, 1),
        ("", None, 2),
        ("c\u2028d\x0b\x85\re", None, 3),
    ]
    tokens = read("a  b\n\n", "a", **options, kind="tokens")
    assert [row.sequence for row in tokens] == [["a", "b"], []]
    vectors = read("[[1, 2]]\n\n[[3, 4], [5, 6]]\n", "a", **options, kind="features")
    assert [np.shape(row.sequence) for row in vectors] == [(1, 2), (0, 0), (2, 2)]
