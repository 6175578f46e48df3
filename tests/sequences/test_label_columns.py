"""Labels in columns that mark the label of their name: in every format with columns."""

from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import DataError
from tests.helpers.reading import read_rows, schema_of, table_given, with_format

SCHEMA = schema_of(sequence="text", one_hot=["login", "billing"])
EXPECTED = [("a b", ("login",)), ("c", ("billing", "login")), ("d", ())]
COLUMNS: dict[str, list[Any]] = {
    "text": ["a b", "c", "d"],
    "login": [1, 1, 0],
    "billing": [0, 1, 0],
}


def test_a_table_in_memory_has_label_columns() -> None:
    rows = read_rows(table_given(COLUMNS, SCHEMA))
    assert [(row.sequence, row.labels) for row in rows] == EXPECTED
    with pytest.raises(DataError, match="billing"):
        [*read_rows(table_given({"text": ["a"], "login": [1]}, SCHEMA))]


def test_the_other_columns_of_a_wide_series_are_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t0,t1,up,down\n1,2,1,0\n3,4,0,1\n")
    schema = schema_of("features", one_hot=["up", "down"])
    rows = [*read_rows(with_format(str(path), "csv", schema))]
    assert [row.sequence[:, 0].tolist() for row in rows] == [[1, 2], [3, 4]]
    assert [row.labels for row in rows] == [("up",), ("down",)]


def test_the_rows_of_an_id_share_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    schema = schema_of("steps", id="id", steps={"event": "token"}, one_hot=["x", "y"])
    path.write_text("id,event,x,y\n1,a,1,0\n1,b,1,0\n2,a,1,1\n2,b,0,1\n3,a,0,0\n")
    rows = [*read_rows(with_format(str(path), "csv", schema))]
    assert [row.labels for row in rows if row.problem is None] == [("x",), ()]
    assert [row.line for row in rows if row.problem] == [5]
