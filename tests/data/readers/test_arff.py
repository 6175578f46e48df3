"""Files of format arff, as Weka and the archives write them."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.readers import read_rows
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
