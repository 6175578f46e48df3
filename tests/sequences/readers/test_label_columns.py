"""Labels in columns that mark the label of their name: in every format with columns."""

from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.examples import BadRow
from seqtrain.sequences.read_options import FileFormat, Schema
from seqtrain.sequences.readers import FileSource, TableSource, read_rows
from seqtrain.sequences.readers.named_cells import is_mark

SCHEMA = Schema(sequence="text", one_hot=["login", "billing"])
EXPECTED = [("a b", ("login",)), ("c", ("billing", "login")), ("d", ())]
COLUMNS: dict[str, list[Any]] = {
    "text": ["a b", "c", "d"],
    "login": [1, 1, 0],
    "billing": [0, 1, 0],
}


def write_arff(path: Path) -> None:
    head = "@relation a\n@attribute text string\n@attribute login numeric\n"
    path.write_text(f"{head}@attribute billing {{0,1}}\n@data\n'a b',1,0\nc,1,1\nd,0,0\n")


def write_arrow(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table(COLUMNS), path)


def write_xlsx(path: Path) -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in [[*COLUMNS], *zip(*COLUMNS.values(), strict=True)]:
        book.active.append(row)
    book.save(path)


WRITERS = {
    "csv": lambda path: path.write_text("text,login,billing\na b,1,0\nc,yes,TRUE\nd,,0.0\n"),
    "tsv": lambda path: path.write_text("login\ttext\tbilling\n1\ta b\t0\n1\tc\t1\n0\td\t\n"),
    "jsonl": lambda path: path.write_text(
        '{"text": "a b", "login": true, "billing": false}\n'
        '{"text": "c", "login": 1, "billing": 1}\n{"text": "d", "login": null, "billing": 0}\n'
    ),
    "arff": write_arff,
    "parquet": write_arrow,
    "xlsx": write_xlsx,
}


@pytest.mark.parametrize("format", WRITERS)
def test_each_row_has_the_labels_that_are_marked(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"a.{format}"
    WRITERS[format](path)
    source = FileSource(str(path), FileFormat(format), SCHEMA)
    assert [(row.sequence, row.labels) for row in read_rows(source)] == EXPECTED
    unlabelled = read_rows(source, labelled=False)
    assert [(row.sequence, row.labels) for row in unlabelled] == [(x, None) for x, _ in EXPECTED]


def test_a_table_in_memory_has_label_columns() -> None:
    rows = read_rows(TableSource(COLUMNS, SCHEMA))
    assert [(row.sequence, row.labels) for row in rows] == EXPECTED
    with pytest.raises(DataError, match="billing"):
        [*read_rows(TableSource({"text": ["a"], "login": [1]}, SCHEMA))]


def test_the_other_columns_of_a_wide_series_are_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t0,t1,up,down\n1,2,1,0\n3,4,0,1\n")
    schema = Schema("features", one_hot=["up", "down"])
    rows = [*read_rows(FileSource(str(path), FileFormat("csv"), schema))]
    assert [row.sequence[:, 0].tolist() for row in rows] == [[1, 2], [3, 4]]
    assert [row.labels for row in rows] == [("up",), ("down",)]


def test_the_rows_of_an_id_share_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    schema = Schema("steps", id="id", steps={"event": "token"}, one_hot=["x", "y"])
    path.write_text("id,event,x,y\n1,a,1,0\n1,b,1,0\n2,a,1,1\n2,b,0,1\n3,a,0,0\n")
    rows = [*read_rows(FileSource(str(path), FileFormat("csv"), schema))]
    assert [row.labels for row in rows if row.problem is None] == [("x",), ()]
    assert [row.line for row in rows if row.problem] == [5]


@pytest.mark.parametrize("cell", ["2", "0.5", "maybe", 3, "1 0"])
def test_a_cell_that_is_no_mark_is_refused(cell: object) -> None:
    with pytest.raises(BadRow, match="login"):
        is_mark("login", cell)
