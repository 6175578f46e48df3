"""The meaning of cells: the same from every format."""

import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.tables.blocks import BadCellError, Coded
from seqtrain.tables.cells import (
    CodedColumn,
    is_multi_hot,
    items_of,
    mark_of,
    marked_positions,
    name_of,
    numbers_of,
    text_of,
)
from seqtrain.tables.python_values import cells_of_values
from tests.helpers.examples import seeds


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (["0", "0.0", 0, 0.0, "-0.0", np.int8(0), np.float32(0), Decimal(0), "0.00"], "0"),
        (["1", "1.0", 1, "+1", "+1.0", 1.0, np.int64(1), np.float64(1)], "1"),
        (["-12", "-12.0", -12, -12.0], "-12"),
        (["True", "TRUE", "true", True, np.bool_(True)], "true"),
        (["False", "FALSE", "false", False], "false"),
        (["", " ", "\t", None, float("nan"), np.nan], ""),
        (["0.5", 0.5, Decimal("0.5"), f"{0.5:.18e}"], "0.5"),
        ([f"{40:.18e}", "40", 40.0, f"{40:.3E}"], "40"),
        ([f"{-0.0:.18e}", 0], "0"),
        (["12345678901234567890", 12345678901234567890], "12345678901234567890"),
    ],
)
def test_equal_values_have_one_name_in_every_form(cells, name):
    column = CodedColumn()
    assert column.codes_of(cells_of_values(list(cells)))[1] == {}
    assert column.known.names == [name]


@pytest.mark.parametrize("text", ["007", "1.50", "v1.0", "1e3", "+01", "Tru", " x", "1.0.0", "1,0"])
def test_other_texts_are_names_as_they_are_written(text):
    assert name_of(text) == text


def test_a_name_keeps_its_first_spelling():
    column = CodedColumn()
    assert column.codes_of(["TRUE", "x", "True", "TRUE"])[0].tolist() == [0, 1, 0, 0]
    later = Coded(np.array([0, -1, 1], np.int32), [True, "1.0"])
    assert column.codes_of(later)[0].tolist() == [0, 2, 3]
    assert column.known.names == ["true", "x", "", "1"]
    assert column.known.spellings == ["TRUE", "x", "", "1.0"]


@pytest.mark.parametrize("cell", [[1], {"a": 1}, b"\xff", (1,)])
def test_what_is_neither_text_nor_number_is_refused(cell):
    with pytest.raises(BadCellError, match="expected a text or a number"):
        text_of(cell)
    codes, problems = CodedColumn().codes_of(["a", cell, "b"])
    assert (codes.tolist(), list(problems)) == ([0, 1, 2], [1])


def test_numbers_are_the_same_from_every_form():
    texts = ["1", "2.5", "-1e3", "", "NA", "n/a", "None", "nan", "?", "TRUE", "false", "12:30"]
    expected = [1, 2.5, -1000, *[np.nan] * 6, 1, 0, 45000]
    numbers, problems = numbers_of(texts)
    np.testing.assert_array_equal(numbers, expected)
    assert problems == {}
    values, problems = numbers_of(
        [1, 2.5, -1000.0, None, float("nan"), True, False, Decimal("0.5")]
    )
    np.testing.assert_array_equal(values, [1, 2.5, -1000, np.nan, np.nan, 1, 0, 0.5])
    coded = Coded(np.array([1, -1, 0, 1], np.int32), ["x", "2"])
    numbers, problems = numbers_of(coded)
    np.testing.assert_array_equal(numbers, [2, np.nan, np.nan, 2])
    assert list(problems) == [2]


@pytest.mark.parametrize(
    "cell",
    ["ERR", "#REF!", "---", "\\N", "<0.5", "1_000", "١٢", "1,5", "inf", "1e99", 10**400, [1]],
)
def test_a_cell_that_is_no_number_is_named_by_its_row(cell):
    numbers, problems = numbers_of(["1", "2", cell, "4"])
    np.testing.assert_array_equal(numbers, [1, 2, np.nan, 4])
    assert list(problems) == [2]


def test_decimal_commas():
    numbers, problems = numbers_of(["1,5", "2", "-0,25", "1.5"], ",")
    np.testing.assert_array_equal(numbers, [1.5, 2, -0.25, np.nan])
    assert "point" in problems[3]


ITEM = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)


@given(st.lists(ITEM, min_size=1, max_size=5))
def test_lists_as_json_and_python_print_them(items):
    for text in (json.dumps(items), json.dumps(items, ensure_ascii=False), str(items)):
        assert items_of(text) == items, text
    assert items_of(str(tuple(items))) == items
    assert sorted(items_of(str(set(items))) or []) == sorted(set(items))
    assert items_of(items) == items_of(tuple(items)) == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("['Drama', 'Film Noir']", ["Drama", "Film Noir"]),
        ("{'A', 'B'}", ["A", "B"]),
        ("('A',)", ["A"]),
        ("['a' 'b'\n 'c']", ["a", "b", "c"]),
        ("[\"it's\", 'x']", ["it's", "x"]),
        ("[0, 1, 0]", [0, 1, 0]),
        ("[0 1 0]", [0, 1, 0]),
        ("[None, 'x']", [None, "x"]),
        ("[]", []),
        ("plain", None),
        ("[deleted]", None),
        ("(see below)", None),
        ("[laugh] he said [x]", None),
        ("{'a': 1}", None),
        ('{"a": 1}', None),
        ("['a'", None),
        ("a]", None),
        ("", None),
    ],
)
def test_lists_and_what_is_none(text, items):
    assert items_of(text) == items


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[E5,E22,E11]", ["E5", "E22", "E11"]),
        ("[E5 E22]", ["E5", "E22"]),
        ("[E5]", ["E5"]),
        ("{A,B C}", ["A", "B C"]),
        ("<a><b c>", ["a", "b c"]),
        ("[laugh] he said [x]", None),
        ("(see below)", None),
        ("a,b", None),
    ],
)
def test_words_without_quotes_are_items_where_a_list_is_expected(text, items):
    assert items_of(text, bare=True) == items


def test_lists_of_marks_stand_for_positions():
    assert is_multi_hot([[0, 1, 0], [1, 1, 0]])
    assert is_multi_hot([["0", "1.0"], [False, True]])
    for lists in ([[0, 1], [1]], [[0, 2]], [[1, 1]], [["a", "b"]], [], [[0], [1]]):
        assert not is_multi_hot(lists)
    assert marked_positions([0, 1, "1.0", True, "0"]) == ["1", "2", "3"]


def test_classes_as_numpy_prints_them_are_spelled_plainly(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)
    rows = [[row % 3 - 1, *draw.normal(row % 3, 1, 12)] for row in range(60)]
    np.savetxt("a.csv", rows, delimiter=",")
    assert "3 classes: -1, 0, 1" in cli("init", "a.csv", "-o", "c.yaml").err
    Path("b.csv").write_text(Path("a.csv").read_text().replace(f"{1:.18e}", "1.0"))
    found = cli("data", "c.yaml", "--json", "--set", "data.validation=b.csv").json["splits"]
    assert {*found["train"]["labels"]} == {*found["validation"]["labels"]} == {"-1", "0", "1"}


def test_marks_of_columns_of_classes():
    for cell in ("1", 1, 1.0, "1.0", True, "TRUE", "Yes", " yes "):
        assert mark_of(cell) is True
    for cell in ("0", 0, 0.0, False, "false", "No", "", None, float("nan")):
        assert mark_of(cell) is False
    with pytest.raises(BadCellError, match="1 or 0"):
        mark_of("2")


def test_columns_of_random_forms_have_the_codes_of_a_plain_dict():
    for seed in seeds(40):
        draw = random.Random(seed)
        pool: list[Any] = ["a", "b", "", "1", "1.0", "TRUE", 1, 1.0, True, None, 0.5, "0"]
        column, names, found = CodedColumn(), list[str](), list[int]()
        for _ in range(draw.randint(1, 6)):
            cells = [draw.choice(pool) for _ in range(draw.randint(0, 9))]
            names += [name_of(text_of(cell)) for cell in cells]
            form = draw.choice(["list", "tuple", "coded"])
            if form == "coded":
                codes = np.array([-1 if x is None else index for index, x in enumerate(cells)])
                found += column.codes_of(Coded(codes.astype(np.int32), cells))[0].tolist()
            else:
                found += column.codes_of(tuple(cells) if form == "tuple" else cells)[0].tolist()
        assert [column.known.names[code] for code in found] == names, seed
        assert len(set(column.known.names)) == len(column.known.names)


def test_marks_between_thousands():
    cells = ["1.234,5", "-12.345.678,25", " 1,5", "7", "1.234", "1 234", "2\u202f345,5", "1.2345,5"]
    found, wrong = numbers_of([*cells, "0.234", "1,234.5"], ",")
    expected = [1234.5, -12345678.25, 1.5, 7, 1234, 1234, 2345.5]
    assert found[:7].tolist() == expected
    assert list(wrong) == [7, 8, 9]
    cells = [
        "1,234.5",
        "-12'345",
        "1,234",
        "\N{MINUS SIGN}1 234 567.5",
        "0,234",
        "1,5",
        "1.234.567",
    ]
    found, wrong = numbers_of(cells)
    assert found[:4].tolist() == [1234.5, -12345, 1234, -1234567.5]
    assert list(wrong) == [4, 5, 6]
