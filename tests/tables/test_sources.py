"""Files, folders, patterns of paths, and the columns that every file has."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.tables.blocks import Dialect, missing_columns
from seqtrain.tables.sources import matching_files, open_source, stamps
from tests.helpers.packing import ENDINGS, pack
from tests.tables.conftest import rows_of, select


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def seen(path: str, format: str = "txt", **options):
    return [
        (row.cells["text"], row.cells.get("label"), row.line)
        for row in rows_of(open_source(path, Dialect(format, blank_lines=True), **options))
        if row.problem is None
    ]


def problems(path: str, format: str = "txt", **options) -> list[str]:
    with pytest.raises(DataError) as caught:
        list(rows_of(open_source(path, Dialect(format), **options)))
    return list(caught.value.problems)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_file_has_the_columns_file_and_folder():
    write(Path(), {"rec/walk/1.csv": b"x,file\n1,own\n", "rec/run/2.csv": b"x\n2\n"})
    one = open_source("rec/walk/1.csv", Dialect("csv"))
    (row,) = rows_of(one, select("x", "file", "folder"))
    assert row.cells == {"x": "1", "file": "own", "folder": "walk"}  # the table's own column
    both = open_source("rec", Dialect("csv"))
    found = list(rows_of(both, select("x", "folder", optional=("file",))))
    assert [tuple(row.cells[name] for name in ("x", "folder", "file")) for row in found] == [
        ("2", "run", "rec/run/2.csv"),
        ("1", "walk", "own"),
    ]
    (row,) = rows_of(one)
    assert set(row.cells) == {"x", "file"}


@pytest.mark.parametrize("format", ["csv", "npz", "parquet", "jsonl", "lines"])
def test_the_groups_of_a_pattern_are_columns(format):
    names = ["walking_003", "s07_run_2", "sit_11"]
    endings = {"csv": "csv", "npz": "npy", "parquet": "parquet", "jsonl": "jsonl", "lines": "txt"}
    Path("rec").mkdir()
    for name in names:
        path = f"rec/{name}.{endings[format]}"
        if format == "npz":
            np.save(path, np.zeros((2, 3)))
        elif format == "parquet":
            pa = pytest.importorskip("pyarrow")
            pytest.importorskip("pyarrow.parquet").write_table(pa.table({"x": [1, 2]}), path)
        else:
            Path(path).write_text(
                {"csv": "x\n1\n2\n", "jsonl": '{"x": 1}\n' * 2}.get(format, "a\nb\n")
            )
    pattern = r"(?P<activity>[a-z]+)_(?P<take>\d+)"
    paths = sorted(f"rec/{name}.{endings[format]}" for name in names)
    source = open_source(paths, Dialect(format), pattern=pattern)
    found = [row.cells for row in rows_of(source, select("activity", "take", "file"))]
    assert [(row["activity"], row["take"]) for row in found[::2]] == [
        ("run", "2"), ("sit", "11"), ("walking", "003"),
    ]  # fmt: skip
    assert [row["file"] for row in found[::2]] == paths
    one = open_source(paths[0], Dialect(format), pattern=pattern)
    assert next(rows_of(one, select("activity"))).cells == {"activity": "run"}


def test_a_pattern_may_name_folders_and_must_match():
    write(Path(), {"u_1/walking/003.csv": b"x\n1\n"})
    found = rows_of(open_source("u_1", Dialect("csv"), pattern=r"(?P<activity>\w+)/(?P<take>\d+)"))
    assert next(found).cells == {"x": "1", "activity": "walking", "take": "003"}
    write(Path(), {"u_1/walking/b.csv": b"y\n2\n3\n"})
    found = rows_of(open_source("u_1", Dialect("csv"), pattern=r"(?P<take>\d+)\.csv"))
    assert [(row.file, row.problem is None) for row in found] == [
        ("u_1/walking/003.csv", True),
        ("u_1/walking/b.csv", False),
    ]


def test_a_group_replaces_a_column_of_the_file():
    write(Path(), {"walk_1.csv": b"x,act\n1,?\n"})
    source = open_source("walk_1.csv", Dialect("csv"), pattern=r"(?P<act>[a-z]+)_")
    assert next(rows_of(source, select("x", "act"))).cells == {"x": "1", "act": "walk"}


def test_folder_with_a_sub_folder_a_class():
    files = {
        "F/pos/b.txt": b"two\nlines\r\n",
        "F/pos/a.txt": b"one",
        "F/neg/c.gz": gzip.compress(b"three\n"),
        "F/neg/.hidden": b"\xff",
        "F/unsup/d.txt": b"none",
        "F/urls_pos.txt": b"http://x",
        "F/README.md": b"what this is",
    }
    write(Path(), files)
    assert seen("F") == [("three", "neg", 1), ("one", "pos", 1), ("two\nlines", "pos", 1)]
    source = open_source("F", Dialect("txt"))
    assert [row.file for row in rows_of(source)] == ["F/neg/c.gz", "F/pos/a.txt", "F/pos/b.txt"]
    assert [name for name, _, _ in stamps(source)] == source.files()
    write(Path(), {"F/loose.txt": b"four"})
    assert problems("F") == [
        "F: holds both sub-folders and .txt files (loose.txt); expected one kind"
    ]


@pytest.mark.parametrize("ending", ENDINGS)
def test_folder_with_a_file_a_class(ending):
    write(Path(), {"F/b.txt": b"one\n\ntwo", f"F/a.txt.{ending}": pack(b"[3]\n", ending)})
    assert seen("F") == [("[3]", "a", 1), ("one", "b", 1), ("", "b", 2), ("two", "b", 3)]


def test_folders_that_hold_nothing():
    nothing = "F: no rows; expected one sub-folder or one file <class>.txt per class"
    os.mkdir("F")
    assert problems("F") == [nothing]
    assert problems("F", "csv") == ["F: holds no file of format csv"]
    write(Path(), {"F/a1.csv.gz": b""})
    assert problems("F") == [f"{nothing}; for its .csv.gz files give 'F/*.csv.gz'"]


def test_classes_of_fasta_have_a_file_or_a_folder_each():
    records = b">1 of two\nAC\nGT\n>2\nAA\n"
    write(
        Path(),
        {"A/x.fa": records, "A/y.fasta": records, "B/x/1.fasta": records, "B/y/2.fa": records},
    )
    for folder in ("A", "B"):
        assert seen(folder) == [("ACGT", "x", 1), ("AA", "x", 4), ("ACGT", "y", 1), ("AA", "y", 4)]
    assert [row[0] for row in seen("B", whole_files=True)] == ["ACGT", "AA"] * 2


def test_recordings_in_folders_of_classes_are_whole_files():
    write(Path(), {"F/up/1.csv": b"x,y\n1,2\n3,4\n"})
    Path("F/down").mkdir()
    np.save("F/down/2.npy", np.ones((3, 2)))
    (down, up) = rows_of(open_source("F", Dialect("txt")))
    assert (down.cells["label"], down.cells["text"].shape) == ("down", (3, 2))
    assert up.cells == {"text": "x,y\n1,2\n3,4", "label": "up"}


def test_a_file_of_a_folder_that_cannot_be_read_is_a_bad_row():
    files = {"pos/a.txt": b"one", "pos/b.txt": b"\xff\xfe\x00", "neg/c.txt": b"two\x00"}
    write(Path("F"), {**files, "neg/d.gz": gzip.compress(b"x" * 999)[:20], "neg/e.txt": b"three"})
    found = list(rows_of(open_source("F", Dialect("txt")), select("text", "label")))
    bad = {str(row.file): str(row.problem) for row in found if row.problem is not None}
    assert list(bad) == ["F/neg/c.txt", "F/neg/d.gz", "F/pos/b.txt"]
    assert "NUL" in bad["F/neg/c.txt"]
    assert "cut off" in bad["F/neg/d.gz"]
    assert "UTF-16" in bad["F/pos/b.txt"]
    assert [row.cells["text"] for row in found if row.problem is None] == ["three", "one"]


def test_patterns_of_files():
    write(
        Path(),
        {"a10.csv": b"", "a9.csv": b"", "d/e/a1.csv": b"", "d/.h/a2.csv": b"", "x[1].csv": b""},
    )
    assert matching_files("a*.csv") == ["a10.csv", "a9.csv"]
    assert matching_files("**/a*.csv") == ["a10.csv", "a9.csv", "d/e/a1.csv"]
    assert matching_files("x[1].csv") == ["x[1].csv"]
    assert matching_files("none*.csv") == []
    assert matching_files("none.csv") == ["none.csv"]


def test_the_digest_of_a_folder_covers_names_and_contents():
    write(Path(), {"F/a.csv": b"x\n1\n", "F/b.csv": b"x\n2\n"})
    source = open_source("F", Dialect("csv"))
    first = source.digest()
    assert source.digest() == first
    list(rows_of(source))
    assert source.digest() == first
    write(Path(), {"F/b.csv": b"x\n3\n"})
    second = open_source("F", Dialect("csv")).digest()
    os.rename("F/b.csv", "F/c.csv")
    assert len({first, second, open_source("F", Dialect("csv")).digest()}) == 3


@pytest.mark.parametrize("ending", [".psv", ".dat", "", ".rec.gz", ".TXT"])
def test_files_of_any_ending_have_the_format_that_is_given(ending):
    content = b"on|off\n0.5|1\n2|3\n"
    files = {f"in/{name}{ending}": content for name in ("a/one", "a/two", "b/one")}
    if ending.endswith(".gz"):
        files = {name: gzip.compress(each) for name, each in files.items()}
    write(Path(), files | {"in/list.jsonl": b"{}"})
    found = list(rows_of(open_source("in", Dialect("csv"))))
    assert {row.file for row in found} == set(files)
    assert [row.cells["off"] for row in found] == ["1", "3"] * 3
    write(Path(), {"in/c/own.csv": b"off\n7\n"})
    own = [row.cells["off"] for row in rows_of(open_source("in", Dialect("csv")))]
    assert own == (["1", "3"] * 3 if ending == ".psv" else []) + ["7"]


def test_a_column_that_the_config_names_is_no_misspelling_of_another():
    keys: dict[str | int, str] = {f"W{number}": "data.sequence" for number in (8, 9, 10)}
    (line,) = missing_columns(["W10"], ["W8", "W9"], keys)
    assert "did you mean" not in line
    (line,) = missing_columns(["W10"], ["W8", "W9", "w10"], keys)
    assert "did you mean 'w10'" in line
