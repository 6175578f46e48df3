"""Tables in memory."""

import random
import time
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from seqtrain.tables.blocks import as_list
from seqtrain.tables.cells import CodedColumn, numbers_of
from seqtrain.tables.memory import TableSource
from tests.helpers.examples import seeds
from tests.tables.conftest import rows_of, select

LIBRARIES = ["dict", "records", "pandas", "pandas nullable", "polars", "pyarrow"]


def table_of(library: str, columns: dict[str, list[Any]]) -> Any:
    if library == "dict":
        return columns
    if library == "records":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if library == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    if library == "pandas nullable":
        frame = pytest.importorskip("pandas").DataFrame(columns)
        return frame.convert_dtypes()
    return pytest.importorskip(library).DataFrame(columns)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_cells_come_from_every_library(library):
    columns: dict[str, list[Any]] = {
        "text": ["a", "", None, "é"],
        "integer": [1, None, 3, 4],
        "number": [0.5, None, -1.0, 2.0],
        "truth": [True, False, None, True],
        "day": [date(2024, 1, 1), None, date(2024, 1, 3), date(2024, 1, 4)],
        "moment": [datetime(2024, 1, 1), None, datetime(2024, 1, 3, 4), datetime(2024, 1, 4)],
    }
    texts: dict[str, list[str]] = {name: [] for name in columns}
    for block in TableSource(table_of(library, columns)).blocks():
        for name, cells in block.columns.items():
            column = CodedColumn()
            codes, problems = column.codes_of(cells)
            assert problems == {}
            texts[name] += [column.known.names[code] for code in codes]
    assert texts == {
        "text": ["a", "", "", "é"],
        "integer": ["1", "", "3", "4"],
        "number": ["0.5", "", "-1", "2"],
        "truth": ["true", "false", "", "true"],
        "day": ["2024-01-01", "", "2024-01-03", "2024-01-04"],
        "moment": ["2024-01-01", "", "2024-01-03T04:00:00", "2024-01-04"],
    }


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_selected_and_rows_numbered(library):
    table = table_of(library, {"a": [1, 2, 3], "b": ["x", "y", "z"]})
    found = list(rows_of(TableSource(table), select("b", optional=("a", "c")), 2))
    assert [(row.line, row.cells["b"], row.cells["a"]) for row in found] == [
        (1, "x", 1), (2, "y", 2), (3, "z", 3),
    ]  # fmt: skip
    with pytest.raises(
        DataError, match=r"data: no column 'bb'; found 'a', 'b'; did you mean 'b'|'bb'"
    ):
        list(TableSource(table).blocks(select("bb")))


@pytest.mark.parametrize("kind", ["uint8", "uint32", "int64"])
def test_categories_have_indices_of_any_type(kind):
    """Those of polars are unsigned."""
    pa = pytest.importorskip("pyarrow")
    indices = pa.array([1, None, 0], kind)
    table = pa.table({"l": pa.DictionaryArray.from_arrays(indices, ["up", "down"])})
    (block,) = TableSource(table).blocks()
    assert as_list(block.columns["l"]) == ["down", None, "up"]


def test_sparse_columns_are_numbers():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"l": pd.arrays.SparseArray([2, 0, 2])})
    (block,) = TableSource(table).blocks()
    assert as_list(block.columns["l"]) == [2, 0, 2]


def test_names_of_columns_are_compared_as_texts_and_in_linear_time():
    with pytest.raises(DataError, match="the column 1 occurs twice"):
        TableSource({"1": [2], 1: [3]})
    began = time.process_time()
    TableSource({f"a long name of column {number}": [1] for number in range(60_000)})
    assert time.process_time() - began < 5


@pytest.mark.parametrize("library", LIBRARIES)
def test_lists_and_objects(library):
    rows = {
        "s": [["a", "b"], [], ["c"]],
        "n": [[1.5, 2.5], [3.5], []],
        "o": [{"y": 1}, {"y": 2}, {"y": 3}],
    }
    found = list(rows_of(TableSource(table_of(library, rows)), select("s", "n", "o.y")))
    assert [list(row.cells["s"]) for row in found] == rows["s"]
    assert [list(row.cells["n"]) for row in found] == rows["n"]
    assert [row.cells["o.y"] for row in found] == [1, 2, 3]


def test_arrays_tensors_and_masks():
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    table: dict[str, Any] = {
        "m": masked,
        "x": np.arange(6).reshape(3, 2),
        "f": np.float32([1, 2, 3]),
    }
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    if torch is not None:
        table |= {"t": torch.arange(3), "u": [torch.ones(2), torch.ones(1), torch.ones(0)]}
    (block,) = TableSource(table).blocks()
    numbers, problems = numbers_of(block.columns["m"])
    np.testing.assert_array_equal(numbers, [1, np.nan, 3])
    assert problems == {}
    assert [list(x) for x in as_list(block.columns["x"])] == [[0, 1], [2, 3], [4, 5]]
    if torch is not None:
        assert as_list(block.columns["t"]) == [0, 1, 2]
        assert [len(x) for x in as_list(block.columns["u"])] == [2, 1, 0]


def test_types_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "category": pandas.Categorical(["b", None, "a"], categories=["a", "b", "c"]),
            "arrow": pandas.array([1, None, 3], dtype="int64[pyarrow]"),
            "text": pandas.array(["x", None, "z"], dtype="string"),
            "mixed": [1, "x", [2]],
            0: [7, 8, 9],
        }
    )
    found = list(rows_of(TableSource(frame), select("category", "arrow", "text", "mixed", 0)))
    assert [list(row.cells.values()) for row in found] == [
        ["b", 1, "x", 1, 7], [None, None, None, "x", 8], ["a", 3, "z", [2], 9],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"a": [1, 2], "b": [1]}, "2 values of a, 1 values of b"),
        ({"a": "text"}, "the column a is a str; expected its values; for one row"),
        (5, "found an object of type int; expected a file, or a DataFrame"),
        ([1, 2], "found an object of type list"),
        ([], "found an object of type list"),
        ("text", "found an object of type str"),
    ],
)
def test_what_is_no_table(table, said):
    with pytest.raises(DataError, match=said):
        list(TableSource(table).blocks())


def test_the_digest_covers_the_selected_cells():
    one = {"a": [1, 2], "b": ["x", "y"]}
    digest = TableSource(one).digest(select("a"))
    assert TableSource({"a": [1, 2], "b": ["x", "z"]}).digest(select("a")) == digest
    assert TableSource({"a": [1, 3], "b": ["x", "y"]}).digest(select("a")) != digest
    assert TableSource({"a": [np.ones(2)]}).digest() != TableSource({"a": [np.zeros(2)]}).digest()


def test_random_tables_have_the_same_cells_from_every_library():
    pools: list[list[Any]] = [
        ["a", "b", None, "1.0", "TRUE"],
        [1, 2, None, -3],
        [0.5, 1.0, None],
        [True, False],
    ]
    for seed in seeds(20):
        draw = random.Random(seed)
        size = draw.randint(1, 9)
        columns = {
            f"c{i}": [draw.choice(pool) for _ in range(size)] for i, pool in enumerate(pools)
        }
        found = []
        for library in LIBRARIES:
            names = list[list[str]]()
            for name in columns:
                column, codes = CodedColumn(), list[int]()
                for block in TableSource(table_of(library, columns)).blocks(select(name)):
                    codes += column.codes_of(block.columns[name])[0].tolist()
                names.append([column.known.names[code] for code in codes])
            found.append(names)
        assert all(names == found[0] for names in found), seed
