"""`seqtrain convert`: each form, its options, and files that are never lost."""

import csv
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_blank_cells_get_the_cell_above(cli):
    Path("a.csv").write_text('id,v\n"b ""x""",1\n,2\nc;d,3\n')
    assert cli("convert", "a.csv", "--to", "filled", "--column", "id").out == "a-filled.csv\n"
    names = ["id", 'b "x"', 'b "x"', "c;d"]
    assert rows_of("a-filled.csv") == [[name, x] for name, x in zip(names, "v123", strict=True)]


def test_files_and_folders_are_converted_together(cli):
    for folder in ("d", "d/e"):
        Path(folder).mkdir()
        Path(folder, "a.tsv").write_text("id\tv\nb\t1\n\t2\n")
    text = "id;v\nGerät für Öl;1\n;2\n"
    Path("b.csv").write_bytes(text.encode("cp1252"))
    out = cli("convert", "d", "b.csv", "--to", "filled", "--column", "id").out
    assert out.split() == ["d-filled", "b-filled.csv"]
    for folder in ("d-filled", "d-filled/e"):
        assert Path(folder, "a.tsv").read_text() == "id\tv\nb\t1\nb\t2\n"
    filled = text.replace("\n;", "\nGerät für Öl;")
    assert Path("b-filled.csv").read_text(encoding="utf-8") == filled


def test_another_file_is_replaced_only_if_it_is_asked_for(cli):
    Path("a.csv").write_text("title\nid,v\nb,1\n")
    for _ in range(2):
        cli("convert", "a.csv", "--to", "table", "--line", "2")
    Path("a-table.csv").write_text("mine")
    command = ("convert", "a.csv", "--to", "table", "--line", "2")
    assert "--force" in cli(*command, code=2).err
    assert Path("a-table.csv").read_text() == "mine"
    cli(*command, "--force")
    assert Path("a-table.csv").read_text() == "id,v\nb,1\n"
    cli(*command, "-o", "a.csv", "--force", code=2)
    assert Path("a.csv").read_text() == "title\nid,v\nb,1\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "fild"], "filled"),
        (["--to", "filled"], "--column"),
        (["--to", "filled", "--column", "idd"], "'id'"),
        (["--to", "filled", "--column", "id", "--line", "2"], "--line"),
        (["--to", "filled", "--column", "id", "--sheet"], "--sheet"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(cli, options, said):
    Path("a.csv").write_text("id,v\nb,1\n")
    assert said in cli("convert", "a.csv", *options, code=2).err
    assert [path.name for path in Path().iterdir()] == ["a.csv"]
