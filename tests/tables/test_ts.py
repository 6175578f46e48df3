"""Formats ts of the time-series archives, and arff of Weka."""

import math
import random

import numpy as np
import pytest

from seqtrain.tables.blocks import BadCellError, Dialect
from seqtrain.tables.series import series_of
from seqtrain.tables.sources import open_source
from tests.helpers.examples import seeds
from tests.tables.conftest import rows_of

NAN = np.nan
TS_HEAD = "# A comment\n\n@problemName Demo\n@timeStamps false\n@classLabel true a b\n@data\n"
HEAD = "@relation a\n@attribute t1 numeric\n@attribute t2 real\n@attribute class {up,'not up'}\n"


def test_series_of_channels(read):
    found = read(TS_HEAD + "1,2.5e-1,?:NaN,-4,+.5:a\n# x\n1:2:b\n::a\n1,2:a\n1,x:2,3:a\n", "a.ts")
    np.testing.assert_array_equal(
        found[0].cells["text"], np.array([[1, NAN], [0.25, -4], [NAN, 0.5]], np.float32)
    )
    assert [(row.cells["label"], row.line) for row in found[:3]] == [("a", 7), ("b", 9), ("a", 10)]
    assert [row.cells["text"].shape for row in found[:3]] == [(3, 2), (1, 2), (0, 2)]
    assert "1 channel; expected 2" in str(found[3].problem)
    assert "expected a number, found 'x'" in str(found[4].problem)
    (row,) = read("@classLabel false\n@data\n1,2:3,4\n", "a.ts", "text")
    assert row.cells["text"].tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("@classLabel false\n@data\n1,2:a\n", "a.ts:2: no labels: expected '@classLabel true'"),
        ("@timestamps true\n@data\n", "a.ts:1: @timestamps true is not supported"),
        ("@problemName x\n1,2:a\n", "a.ts:2: expected a header line"),
        ("@problemName x\n", "a.ts:1: the file ends before a line @data"),
    ],
)
def test_headers_that_are_refused(refuse, content, said):
    assert refuse(content, "a.ts", "text", "label")[0].startswith(said)


def test_random_series_are_read_as_by_the_plainest_reader(tmp_path):
    numbers = ("0", "-1", "+2.5", "1e-3", "-7E+2", ".5", "3.", "-0.0", "?", "NaN", "nan")
    for seed in seeds(40):
        draw = random.Random(seed)
        lines, expected = [TS_HEAD.replace("\n", draw.choice(["\n", "\r\n"]))], []
        channels = draw.randint(1, 3)
        for _ in range(draw.randint(1, 9)):
            length, gap = draw.randint(1, 6), draw.choice(["", " "])
            cells = [[draw.choice(numbers) for _ in range(length)] for _ in range(channels)]
            lines.append(f"{gap}:{gap}".join([*map(f",{gap}".join, cells), "a"]) + "\n")
            lines += draw.choice([[], ["\n# one more\n"], ["% and one\n"], ["   \n"]])
            missing = [[math.nan if x in "?NaN nan" else float(x) for x in one] for one in cells]
            expected.append(np.array(missing, np.float32).T)
        path = tmp_path / "a.ts"
        path.write_bytes("".join(lines).encode())
        found = list(rows_of(open_source(str(path), Dialect("ts"))))
        assert len(found) == len(expected)
        for row, values in zip(found, expected, strict=True):
            np.testing.assert_array_equal(row.cells["text"], values, str(seed))


@pytest.mark.parametrize(
    "content",
    [
        f"% by hand\n{HEAD}@data\n% row\n1,?, 'not up'\n\n2,3,up\n",
        f'{HEAD.upper()}@DATA\n1, ?, "not up"\n2,3,up'.replace("CLASS", "class").replace(
            "T1", "t1"
        ),
        f"{HEAD}@data\n1\t?\t'not up'\n2\t3\tup\n".replace(" ", "\t").replace("t\tup", "t up"),
        f"{HEAD}@data\r\n1 ,? ,'not up'\r\n2 , 3,up \r\n",
    ],
    ids=["plain", "upper case", "tabs", "blanks"],
)
def test_attributes_name_the_columns(read, content):
    found = read(content, "a.arff", "t1", 1, "class")
    assert [list(row.cells.values()) for row in found] == [["1", "?", "not up"], ["2", "3", "up"]]


RELATIONAL = """@relation waves
@attribute 'the wave' relational
  @attribute t1 numeric
  @attribute t2 numeric
@end 'the wave'
@attribute kind {up,down}
@data
"""


@pytest.mark.parametrize("mark", ["'", '"'])
def test_relational_attributes_are_series_with_a_line_for_each_channel(read, mark):
    """As the time-series archives write them: `?` at the end of all channels is padding."""
    cells = [r"0.5,-2,?,4\n1,?,3e-1,?", r"1,2,?\n3,4,?", "?,7", r"1,2\n3", r"1,x\n2,3"]
    rows = "".join(f"{mark}{cell}{mark},up\n" for cell in cells)
    found = read(RELATIONAL + rows, "a.arff", "the wave", "kind")
    series = [series_of(row.cells["the wave"]).tolist() for row in found[:3]]
    np.testing.assert_allclose(series[0], [[0.5, 1], [-2, NAN], [NAN, 0.3], [4, NAN]])
    assert series[1] == [[1, 3], [2, 4]]
    np.testing.assert_equal(series[2], [[NAN], [7]])
    assert [row.cells["kind"] for row in found[:3]] == ["up"] * 3
    assert found[3].line == 11
    assert "different lengths" in str(found[3].problem)
    with pytest.raises(BadCellError, match="x"):
        series_of(found[4].cells["the wave"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{HEAD}@data\n{{0 1, 2 up}}\n", "a.arff:6: a sparse row"),
        (HEAD, "a.arff:1: no line @data"),
        (f"{HEAD}@data\n", "a.arff:5: no column 't9'"),
    ],
)
def test_tables_that_are_refused(refuse, content, words):
    assert words in refuse(content, "a.arff", "t1" if "t9" not in words else "t9")[0]


def test_a_short_row_is_bad(read):
    (found,) = read(f"{HEAD}@data\n1,2\n", "a.arff", "t1")
    assert "expected 3 fields" in str(found.problem)


CELLS = ("a", "it's", 'say "so"', "x,y", "a\\b", "line\nbreak", "tab\there", "%", "{a}", "é", " b ")
PARTS = ("'", '"', ",", "\\", "\n", "\t", " ", "a", "%", "{", "}", "é", "?", "\r")


def written(cell: str, draw: random.Random) -> str:
    """Return a cell in either kind of quotes, with the escapes that Weka writes."""
    if cell.isalnum() and draw.random() < 0.5:
        return cell
    mark = draw.choice("'\"")
    for plain, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        cell = cell.replace(plain, escaped)
    for quote in "'\"":
        if quote == mark or draw.random() < 0.5:
            cell = cell.replace(quote, "\\" + quote)
    return mark + cell + mark


def test_cells_with_both_kinds_of_quotes_and_escapes(tmp_path):
    for seed in seeds(50):
        draw, rows = random.Random(seed), []
        for _ in range(draw.randint(1, 9)):
            cells = [draw.choice([draw.choice(CELLS), "".join(draw.choices(PARTS, k=4)), "q" * 9])
                     for _ in range(3)]  # fmt: skip
            rows.append([cell if cell.strip() else "a" for cell in cells])
        names = ["one", "it's, two", "cl%ass"]
        lines = ["% comment", "@relation r"]
        for name in names:
            lines.append(f"@attribute {written(name, draw)} string")
            lines += draw.choice([[], ["", "  % one more"]])
        lines.append("@data")
        for row in rows:
            gap = draw.choice(["", " ", "  "])
            lines.append(gap + f"{gap},{gap}".join(written(cell, draw) for cell in row) + gap)
            lines += draw.choice([[], ["% a, comment"], [""]])
        path = tmp_path / "a.arff"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        found = rows_of(open_source(str(path), Dialect("arff")))
        assert [list(row.cells.values()) for row in found] == rows, seed
