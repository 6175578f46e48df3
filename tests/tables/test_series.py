"""Series of numbers in cells."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.tables.blocks import BadCellError
from seqtrain.tables.series import channels_of, series_of

NAN = np.nan


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("[0.5, 1]", [[0.5], [1]]),
        ("0.5 1e0", [[0.5], [1]]),
        ("0.5;;2", [[0.5], [NAN], [2]]),
        ("[0.5 1.\n 2.]", [[0.5], [1], [2]]),
        ("[[0.5, 1], [2, 3]]", [[0.5, 1], [2, 3]]),
        ("[0.5, null]", [[0.5], [NAN]]),
        ("x,y\n0.5,1\n2,3\n", [[0.5, 1], [2, 3]]),
        ("0.5\n1\n", [[0.5], [1]]),
        ("5, 1, 2", [[5], [1], [2]]),
        ("5", [[5]]),
        ([1, None, 3], [[1], [NAN], [3]]),
        ([[1, 2.5], [None, -4]], [[1, 2.5], [NAN, -4]]),
        ((1, 2), [[1], [2]]),
        (np.arange(3), [[0], [1], [2]]),
        (np.ones((2, 3), np.float16), np.ones((2, 3))),
        (np.ma.array([1, 2], mask=[False, True]), [[1], [NAN]]),
    ],
)
def test_a_cell_of_numbers_is_a_series(cell, expected):
    found = series_of(cell)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


@pytest.mark.parametrize("cell", ["", "[]", [], None, " "])
def test_a_missing_series_has_no_time_steps(cell):
    assert len(series_of(cell)) == 0


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("a b", "expected a number, found 'a'"),
        ("1,5 2,5 3,5 4,5", "decimal commas"),
        ("1,5;2,5", "both , and ;"),
        ("[1, 2 ... 9]", "left numbers out"),
        ("[1, x]", "expected a list of numbers"),
        ('["1", 2', "expected a list of numbers"),
        ([1, True], "true or false"),
        ([[1], [2, 3]], "step 2: 2 values, but step 1 has 1"),
        ([[1], 2], "step 2: expected a vector"),
        ([[]], "hold no values"),
        ([1, 1e39], "step 2: 1e+39 is infinite or too large"),
        (np.array([1, np.inf]), "step 2: inf is infinite"),
        (np.array([1j]), "complex"),
        (np.array(["2024-01-01"], "M8[s]"), "datetime64"),
        ({"a": 1}, "found an object"),
        (5.5, "found a number"),
    ],
)
def test_what_is_no_series(cell, said):
    with pytest.raises(BadCellError) as caught:
        series_of(cell)
    assert said in str(caught.value)


def test_decimal_commas_are_read_where_they_are_set():
    np.testing.assert_array_equal(series_of("1,5 2 -0,25", ","), [[1.5], [2], [-0.25]])
    np.testing.assert_array_equal(channels_of(["1,5", "2"], ","), [[1.5], [2]])
    expected = [[1234.5], [2.75], [-3456], [0]]
    np.testing.assert_array_equal(series_of("1.234,5; 2,75;-3.456;0", ","), expected)
    with pytest.raises(BadCellError, match="point"):
        series_of("1.5 2", ",")


def test_several_cells_are_time_steps_or_channels():
    np.testing.assert_array_equal(channels_of(["1", "", "3", "NaN"]), [[1], [NAN], [3]])
    np.testing.assert_array_equal(channels_of([1, None, 2.5]), [[1], [NAN], [2.5]])
    np.testing.assert_array_equal(channels_of(["1 2", "[3, 4]"]), [[1, 3], [2, 4]])
    np.testing.assert_array_equal(channels_of([[1, 2], [3, None]]), [[1, 3], [2, NAN]])
    with pytest.raises(BadCellError, match="channels of equal length"):
        channels_of(["1 2", "3"])


@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=2), min_size=2))
def test_a_matrix_is_the_same_in_every_form(rows):
    expected = np.array(rows, np.float32)
    lines = "\n".join(" ".join(map(repr, row)) for row in rows)
    forms: list[Any] = [rows, expected, str(rows), lines, lines.replace(" ", ";")]
    for form in forms:
        np.testing.assert_array_equal(series_of(form), expected)


def test_tensors_are_series():
    torch = pytest.importorskip("torch")
    values = torch.arange(6).reshape(3, 2)
    for tensor in (values, values.to(torch.bfloat16), values.float().requires_grad_()):
        np.testing.assert_array_equal(series_of(tensor), values.numpy())
