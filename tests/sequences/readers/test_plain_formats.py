"""Formats fasttext, txt, ts and, for prediction, lines."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.readers import read_rows
from tests.helpers.packing import ENDINGS, pack
from tests.helpers.reading import file_source, only_label, read_examples
from tests.sequences.readers.conftest import seen

PREDICTED: dict[str, Any] = {"labelled": False}
FASTTEXT = (
    "__label__a one two\r\n__label__b\tthree x__label__y\n__label__c\u00a0d e\n__label__f\n\n"
)
FASTA = (
    "; a comment\n>seq1 some gene coding\nACGTACG\r\nTAC\n\n\n>sp|P1|noncoding\n"
    ">seq3 label=coding|\nMKV*\n"
)
TS_HEAD = """# A comment

@problemName Demo
@timeStamps false
@univariate false
@dimensions 2
@equalLength false
@classLabel true a b
@data
"""


@pytest.mark.parametrize(
    ("format", "content", "options", "expected"),
    [
        ("fasttext", FASTTEXT, {}, [
            ("one two", "a", 1), ("three x__label__y", "b", 2), ("e", "c\u00a0d", 3), ("", "f", 4),
        ]),
        ("fasttext", "__label__a one two", {"kind": "tokens"}, [(["one", "two"], "a", 1)]),
        ("fasttext", "one two\n\n__label__a b", PREDICTED, [
            ("one two", None, 1), ("", None, 2), ("b", "a", 3),
        ]),
        ("txt", "a\tone\ttwo\nb\t\n\n", {}, [("one\ttwo", "a", 1), ("", "b", 2)]),
        ("txt", "one\n\nb\ttwo", PREDICTED, [("one", None, 1), ("", None, 2), ("two", "b", 3)]),
        ("fasta", FASTA, {}, [
            ("ACGTACGTAC", "coding", 2), ("", "noncoding", 7), ("MKV*", "coding", 8),
        ]),
        ("fasta", ">x\nAC\nGT\n>y b\nA", PREDICTED, [("ACGT", None, 1), ("A", "b", 4)]),
        ("lines", " a\tb \r\n\nc\u2028d\x0b\x85\re", PREDICTED, [
            (" a\tb ", None, 1), ("", None, 2), ("c\u2028d\x0b\x85\re", None, 3),
        ]),
        ("lines", "a  b\n\n", PREDICTED | {"kind": "tokens"}, [
            (["a", "b"], None, 1), ([], None, 2),
        ]),
    ],
)  # fmt: skip
def test_rows(read, format, content, options, expected):
    assert seen(read(content, "a", format=format, **options)) == expected


def test_series(read):
    vectors = "[[1, 2]]\n\n[[3, 4], [5, 6]]\n"
    rows = read(vectors, "a", format="lines", kind="features", labelled=False)
    assert [np.shape(row.sequence) for row in rows] == [(1, 2), (0, 0), (2, 2)]
    series: dict[str, Any] = {"format": "ts", "kind": "features"}
    rows = read(TS_HEAD + "1,2.5e-1,?:NaN,-4,+.5:a\n# x\n1:2:b\n::a\n", "a", **series)
    expected = np.array([[1, np.nan], [0.25, -4], [np.nan, 0.5]], dtype=np.float32)
    np.testing.assert_array_equal(rows[0].sequence, expected)
    assert [(only_label(row), row.line) for row in rows] == [("a", 10), ("b", 12), ("a", 13)]
    assert [row.sequence.shape for row in rows] == [(3, 2), (1, 2), (0, 2)]
    (row,) = read("@classLabel false\n@data\n1,2:3,4\n", "a", **series, labelled=False)
    assert (only_label(row), row.sequence.tolist()) == (None, [[1, 3], [2, 4]])
    assert read("", "a", **series, labelled=False) == []


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def folder_problems(folder: Path, kind: str = "text") -> list[str]:
    with pytest.raises(DataError) as caught:
        list(read_examples(file_source(str(folder), "txt", kind)))
    return [each.replace(str(folder), "F") for each in caught.value.problems]


def test_folder_with_a_sub_folder_a_class(tmp_path):
    files = {
        "pos/b.txt": b"two\nlines\r\n",
        "pos/a.txt": b"one",
        "neg/c.gz": gzip.compress(b"three\n"),
        "neg/.hidden": b"\xff",
        "README.md": b"what this is",
    }
    write(tmp_path, files)
    rows = list(read_examples(file_source(str(tmp_path), "txt")))
    assert seen(rows) == [("three", "neg", 1), ("one", "pos", 1), ("two\nlines", "pos", 1)]
    names = [str(row.file).removeprefix(f"{tmp_path}/") for row in rows]
    assert names == ["neg/c.gz", "pos/a.txt", "pos/b.txt"]
    (tmp_path / "pos/b.txt").write_bytes(b"two\n\xff")
    assert folder_problems(tmp_path) == [
        "F/pos/b.txt:2: byte 1 is not UTF-8 (0xff); save the file as UTF-8, "
        "or set data.encoding (--encoding), such as cp1252"
    ]
    (tmp_path / "loose.txt").write_bytes(b"four")
    assert folder_problems(tmp_path) == [
        "F: holds both sub-folders and .txt files (loose.txt); expected one kind"
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_folder_with_a_file_a_class(tmp_path, ending):
    write(tmp_path, {"b.txt": b"one\n\ntwo", f"a.txt.{ending}": pack(b"[3]\n", ending)})
    rows = list(read_examples(file_source(str(tmp_path), "txt")))
    assert seen(rows) == [("[3]", "a", 1), ("one", "b", 1), ("", "b", 2), ("two", "b", 3)]
    assert folder_problems(tmp_path, "features") == [
        f"F/b.txt:{line}: expected a number, found '{found}'"
        for line, found in ((1, "one"), (3, "two"))
    ]


def test_folders_that_hold_nothing(tmp_path):
    nothing = "F: no rows; expected one sub-folder or one file <class>.txt per class"
    assert folder_problems(tmp_path) == [nothing]
    (tmp_path / "a1.csv.gz").touch()
    assert folder_problems(tmp_path) == [f"{nothing}; for its .csv.gz files give 'F/*.csv.gz'"]
    (tmp_path / "a1.csv.gz").unlink()
    (tmp_path / "pos/deeper").mkdir(parents=True)
    assert folder_problems(tmp_path) == ["F/pos/deeper: is a folder; expected a regular file"]


def test_a_folder_of_recordings_with_other_files(tmp_path):
    write(tmp_path, {"up/1.csv": b"x,y\n1,2\n3,4\n", "unsup/1.txt": b"x", "urls_up.txt": b"y"})
    (row,) = read_examples(file_source(str(tmp_path), "txt", kind="features"))
    assert (row.sequence.tolist(), only_label(row)) == ([[1, 2], [3, 4]], "up")


def test_classes_of_fasta_have_a_file_or_a_folder_each(tmp_path):
    for name in ("files/x.fa", "files/y.fasta", "folders/x/1.fasta", "folders/y/2.fa"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(">1 of two\nAC\nGT\n>2\nAA\n")
    for folder in ("files", "folders"):
        rows = list(read_examples(file_source(str(tmp_path / folder), "txt")))
        labelled = [("ACGT", "x", 1), ("AA", "x", 4), ("ACGT", "y", 1), ("AA", "y", 4)]
        assert seen(rows) == labelled
    whole = file_source(str(tmp_path / "folders"), "txt", whole_files=True)
    rows = list(read_examples(whole, labelled=False))
    assert [row.sequence for row in rows] == ["ACGT", "AA"] * 2


def test_a_file_is_no_row_only_where_it_lists_the_links_of_a_class(tmp_path):
    write(tmp_path, {"pos/a.txt": b"one", "neg/b.txt": b"two", "urls_pos.txt": b"http://x"})
    source = file_source(str(tmp_path), "txt")
    assert [x.sequence for x in read_examples(source)] == ["two", "one"]
    for name in ("pos_extra.txt", "other.txt"):
        (tmp_path / name).write_bytes(b"three")
        assert name in folder_problems(tmp_path)[0]
        (tmp_path / name).unlink()


def test_a_file_that_cannot_be_read_is_left_out_if_bad_rows_are_dropped(tmp_path):
    files = {"pos/a.txt": b"one", "pos/b.txt": b"\xff\xfe\x00", "neg/c.txt": b"two\x00"}
    write(tmp_path, {**files, "neg/d.gz": gzip.compress(b"x" * 999)[:20], "neg/e.txt": b"three"})
    source = file_source(str(tmp_path), "txt", bad_rows="drop")
    found = list(read_rows(source))
    good = [(x.sequence, only_label(x)) for x in found if x.problem is None]
    assert good == [("three", "neg"), ("one", "pos")]
    bad = [str(x.file).removeprefix(f"{tmp_path}/") for x in found if x.problem is not None]
    assert bad == ["neg/c.txt", "neg/d.gz", "pos/b.txt"]
    assert len(folder_problems(tmp_path)) == 1
