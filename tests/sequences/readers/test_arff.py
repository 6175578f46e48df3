"""Files of format arff, as Weka and the archives write them."""

import io
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.readers import read_rows
from tests.helpers.examples import seeds
from tests.helpers.reading import file_source, only_label

SERIES: dict[str, Any] = {"format": "arff", "kind": "features", "label": "class"}
HEAD = "@relation a\n@attribute t1 numeric\n@attribute t2 real\n@attribute class {up,'not up'}\n"


@pytest.mark.parametrize(
    "content",
    [
        f"% by hand\n{HEAD}@data\n% row\n1,?, 'not up'\n\n2,3,up\n",
        f'{HEAD.upper()}@DATA\n1, ?, "not up"\n2,3,up'.replace("CLASS", "class"),
        f"{HEAD}@data\n1\t?\t'not up'\n2\t3\tup\n".replace(" ", "\t").replace("t\tup", "t up"),
        f"{HEAD}@data\r\n1 ,? ,'not up'\r\n2 , 3,up \r\n",
    ],
    ids=["plain", "upper case", "tabs", "blanks"],
)
def test_attributes_name_the_columns(read, content):
    rows = read(content, "a.arff", **SERIES)
    assert [(x.sequence[:, 0].tolist(), only_label(x)) for x in rows] == [
        ([1], "not up"),
        ([2, 3], "up"),
    ]


def test_blank_cells_between_tabs(read):
    content = f"{HEAD}@data\n1\t\tup\n2\t3\tup\n"
    rows = read(content, "a.arff", **SERIES)
    assert [len(x.sequence) for x in rows] == [1, 2]


def test_names_and_cells_in_quotes(read):
    content = (
        "@relation a\n@attribute 'it\\'s, text' string\n@attribute \"the class\" {a,b}\n@data\n"
    )
    content += "'one, \\'two\\'',a\n\"three \\\" four\",b\nfive%,a\n"
    rows = read(content, "a.arff", format="arff", sequence="it's, text", label="the class")
    assert [x.sequence for x in rows] == ["one, 'two'", 'three " four', "five%"]
    assert [only_label(x) for x in rows] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{HEAD}@data\n{{0 1, 2 up}}\n", "a.arff:6: a sparse row"),
        (HEAD, "no line @data"),
        (f"{HEAD}@data\n1,2\n", "a.arff:6: expected 3 fields"),
    ],
)
def test_what_is_refused(refuse, content, words):
    assert words in refuse(content, "a.arff", **SERIES)[0]


@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e6, 1e6, width=32) | st.just(np.nan),
            st.floats(-1e6, 1e6, width=32),
            st.sampled_from(["up", "not up"]),
        ),
        min_size=1,
        max_size=8,
    ),
    delimiter=st.sampled_from([",", ", ", "\t"]),
)
def test_rows_are_those_of_scipy(rows, delimiter, tmp_path_factory):
    arff = pytest.importorskip("scipy.io.arff")
    lines = [
        delimiter.join(["?" if a != a else repr(a), repr(b), f"'{label}'"]) for a, b, label in rows
    ]
    content = f"{HEAD}@data\n" + "\n".join(lines) + "\n"
    path = tmp_path_factory.mktemp("a") / "a.arff"
    path.write_text(content)
    source = file_source(str(path), "arff", "features", sequence=["t1", "t2"], label="class")
    found = list(read_rows(source))
    data, _ = arff.loadarff(io.StringIO(content))
    assert [only_label(x) for x in found] == [x.decode() for x in data["class"]]
    expected = [np.float32([a, b]) for a, b in zip(data["t1"], data["t2"], strict=True)]
    for row, numbers in zip(found, expected, strict=True):
        assert np.array_equal(row.sequence[:, 0], numbers, equal_nan=True)


CELLS = ("a", "it's", 'say "so"', "x,y", "a\\b", "line\nbreak", "tab\there", "%", "{a}", "é", " b ")
PARTS = ("'", '"', ",", "\\", "\n", "\t", " ", "a", "%", "{", "}", "é", "?", "\r")


def written(cell: str, draw: random.Random) -> str:
    """Return a cell in either kind of quotes, with the escapes that Weka writes."""
    if cell.isalnum() and draw.random() < 0.5:
        return cell
    mark = draw.choice("'\"")
    for plain, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        cell = cell.replace(plain, escaped)
    if draw.random() < 0.5:
        cell = cell.replace("%", "\\%")
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
        source = file_source(str(path), "arff", sequence=names[:2], label=names[2])
        found = [(x.sequence, only_label(x)) for x in read_rows(source)]
        assert found == [(f"{a} {b}", label) for a, b, label in rows], seed
