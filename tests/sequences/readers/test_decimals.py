"""Numbers with decimal commas: data.decimal."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.readers import read_rows
from tests.helpers.reading import file_source

COMMA: dict[str, Any] = {"format": "csv", "kind": "features", "decimal": ",", "label": "l"}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("0,5 1,25 -3", [0.5, 1.25, -3]),
        ("0,5;1,25; 2", [0.5, 1.25, 2]),
        ("1,5e2 ?", [150, None]),
        ("[0.5, 1.25]", [0.5, 1.25]),
    ],
)
def test_series_in_a_cell(read, cell, expected):
    (row,) = read(f'l;s\nx;"{cell}"\n', "a.csv", sequence="s", **COMMA)
    found = [None if x != x else x for x in row.sequence[:, 0].tolist()]
    assert found == expected


@pytest.mark.parametrize("cell", ["0.5", "1.234,5", "1.5 2", "1,2,3"])
def test_points_and_separating_commas_are_refused(refuse, cell):
    (problem,) = refuse(f"l;s\nx;{cell}\n", "a.csv", sequence="s", **COMMA)
    assert problem.startswith("a.csv:2: ")


def test_the_advice_names_the_key(refuse):
    content = "l;s\nx;0,5 1,5\n"
    (problem,) = refuse(content, "a.csv", sequence="s", **{**COMMA, "decimal": "."})
    assert "data.decimal" in problem


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=6))
def test_columns_are_read_as_with_points(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("a")
    columns = [f"c{i}" for i in range(len(numbers))]
    found = []
    for decimal in (".", ","):
        cells = [repr(number).replace(".", decimal) for number in numbers]
        text = ";".join(["l", *columns]) + "\n" + ";".join(["x", *cells]) + "\n"
        (folder / "a.csv").write_text(text)
        keys = {**COMMA, "decimal": decimal, "sequence": columns}
        (row,) = read_rows(file_source(str(folder / "a.csv"), **keys))
        assert row.problem is None
        found.append(row.sequence.tolist())
    assert found[0] == found[1]


def test_steps_row_features_and_order(tmp_path):
    text = "id;t;heat;age;l\ni;1,5;0,25;30,5;x\ni;0,5;;30,5;x\n"
    (tmp_path / "a.csv").write_text(text)
    keys: dict[str, Any] = {"id": "id", "order": "t", "label": "l", "decimal": ","}
    steps = {"heat": "number", "since": "order"}
    source = file_source(
        str(tmp_path / "a.csv"), "csv", "steps", steps=steps, static={"age": "number"}, **keys
    )
    (row,) = read_rows(source)
    assert row.sequence.numbers.tolist()[1] == [0.25, 1.0]
    assert row.static.numbers.tolist() == [[30.5]]


@pytest.mark.parametrize(
    ("column", "cell"), [("t", "1.5"), ("heat", "0.25"), ("heat", "1.5,0"), ("age", "3.5")]
)
def test_a_point_in_a_step_is_a_bad_row(refuse, column, cell):
    cells = {"i": "i", "t": "1,5", "heat": "0,25", "age": "30", "l": "x", column: cell}
    content = ";".join(cells) + "\n" + ";".join(cells.values()) + "\n"
    keys: dict[str, Any] = {"id": "i", "order": "t", "label": "l", "decimal": ","}
    keys |= {"format": "csv", "kind": "steps", "static": {"age": "number"}}
    (problem,) = refuse(content, "a.csv", steps={"heat": "number"}, **keys)
    assert problem.startswith(f"a.csv:2: {column}: ")
    assert cell in problem


def test_an_order_may_be_dates_with_fractions_of_seconds(tmp_path):
    text = "i;t;heat;l\ni;2024-01-01 00:00:00.5;0,5;x\ni;2024-01-01 00:00:00.25;1,5;x\n"
    (tmp_path / "a.csv").write_text(text)
    keys: dict[str, Any] = {"id": "i", "order": "t", "label": "l", "decimal": ","}
    source = file_source(str(tmp_path / "a.csv"), "csv", "steps", steps={"heat": "number"}, **keys)
    (row,) = read_rows(source)
    assert row.sequence.numbers.tolist() == [[1.5], [0.5]]
