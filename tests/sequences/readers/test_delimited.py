"""Formats csv and tsv."""

import csv
import gzip
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.readers import delimited, read_rows
from tests.helpers.examples import examples
from tests.helpers.reading import file_source, only_label, read_examples
from tests.sequences.readers.conftest import seen

NAMED: dict[str, Any] = {"sequence": "text", "label": "label"}
CSV: dict[str, Any] = {"format": "csv", **NAMED}
TSV: dict[str, Any] = {"format": "tsv", **NAMED}
BY_INDEX: dict[str, Any] = {"format": "tsv", "sequence": 1, "label": 0}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
FIELD = st.one_of(TEXT, st.text('",\t\r\n\x0b\x0c\x85\u2028 a', max_size=12))
LABEL = FIELD.filter(lambda label: label.strip())


@examples(200)
@given(
    rows=st.lists(st.tuples(FIELD, LABEL, FIELD), min_size=1, max_size=6),
    delimiter=st.sampled_from(",\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    forms=st.tuples(*[st.booleans()] * 4),
)
def test_what_the_csv_module_writes_is_read_back(rows, delimiter, end, forms):
    last_end, mark, packed, every = forms
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if every or end == "\n" else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(["text", "label", "more"])
    expected = []
    for sequence, label, more in rows:
        expected.append((sequence, label, text.getvalue().count("\n") + 1))
        writer.writerow([sequence, label, more])
    written = text.getvalue() if last_end else text.getvalue().removesuffix(end)
    content = (b"\xef\xbb\xbf" if mark else b"") + written.encode()
    format = "csv" if delimiter == "," else "tsv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("a.gz" if packed else "a")
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        assert (
            seen(list(read_examples(file_source(str(path), format, quoting="standard", **NAMED))))
            == expected
        )


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("label\ttext\na\tone\n", BY_INDEX, [("text", "label", 1), ("one", "a", 2)]),
        ("label\ttext\na\tone\n", BY_INDEX | {"header": True}, [("one", "a", 2)]),
        ("label\ttext\na\tone\n", TSV | {"label": 0}, [("one", "a", 2)]),
        ("label\ttext\n\"'a\rb\x85\t\"one\r\n", TSV, [('"one', "\"'a\rb\x85", 2)]),
        ("a,text,label\nb,c,x\n", CSV | {"sequence": ["a", "text"]}, [("b c", "x", 2)]),
        ('text,label\n5" pipe,x\n', CSV, [('5" pipe', "x", 2)]),
        ('text,label\n"a",x\n', CSV | {"quoting": "none"}, [('"a"', "x", 2)]),
        ("label,text\n a ,one\n", CSV, [("one", " a ", 2)]),
        ("text,label\na,b\n\n\r\n", CSV, [("a", "b", 2)]),
        ("text;label\na, b;x\n\"c; d\";y\n", CSV, [("a, b", "x", 2), ("c; d", "y", 3)]),
        ('text|label\nhe said "hi|x\nfoo|y\n', CSV, [('he said "hi', "x", 2), ("foo", "y", 3)]),
        ("text,label\na;b,x\nc;d,y\n", CSV, [("a;b", "x", 2), ("c;d", "y", 3)]),
        ("\ufeffsep=;\r\ntext;label\r\na,b;x\r\n", CSV, [("a,b", "x", 3)]),
        ("text,b;l\na,x;y\n", CSV | {"label": "b;l", "delimiter": "comma"}, [("a", "x;y", 2)]),
        ("text|label\na\tb|x\n", TSV | {"delimiter": "pipe"}, [("a\tb", "x", 2)]),
    ],
)  # fmt: skip
def test_rows(read, content, options, expected):
    assert seen(read(content, "a.csv", **options)) == expected


def test_a_quoted_field_may_extend_beyond_the_lines_that_give_the_delimiter(read):
    long = "one;\n" * delimited.SNIFFED_LINES
    content = f'text;label\na;x\n"{long}";y\n'
    assert seen(read(content, "a.csv", **CSV)) == [("a", "x", 2), (long, "y", 3)]


def test_prediction_needs_no_labels_and_one_column_may_be_blank(read):
    assert seen(read("text\none\n", "a", **TSV, labelled=False)) == [("one", None, 2)]
    found = seen(read("label,text\na,one\n,two", "a", **CSV, labelled=False))
    assert found == [("one", "a", 2), ("two", None, 3)]
    found = seen(read("one\n", "a", format="tsv", sequence=0, label=1, labelled=False))
    assert found == [("one", None, 1)]
    found = seen(read("text\na; b\n\nb\n\n", "a", format="csv", sequence="text", labelled=False))
    assert found == [("a; b", None, 2), ("", None, 3), ("b", None, 4), ("", None, 5)]


def test_fields_may_be_long_up_to_a_limit(read, refuse, monkeypatch):
    field = "long, \n" * 50_000
    content = f'text,label\n"{field}",x\n'
    assert read(content, "a", **CSV)[0].sequence == field
    monkeypatch.setattr(delimited, "LINE_BYTES", 10_000)
    (problem,) = refuse(content, "a", **CSV)
    assert problem.startswith("a:2: ")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("[0.5, 1]", [[0.5], [1]]),
        ("0.5 1e0", [[0.5], [1]]),
        ("0.5;;2", [[0.5], [None], [2]]),
        ("[0.5 1.\n 2.]", [[0.5], [1], [2]]),
        ("[[0.5 1.]\n [2.  3.]]", [[0.5, 1], [2, 3]]),
        ("[0.5, nan]", [[0.5], [None]]),
        ("x,y\n0.5,1\n2,3\n", [[0.5, 1], [2, 3]]),
        ("0.5\n1\n", [[0.5], [1]]),
        ("5, 1, 2", [[5], [1], [2]]),
        ("5,1,2", [[5], [1], [2]]),
    ],
)
def test_cells_of_numbers_are_series(read, cell, expected):
    (row,) = read(f'text,label\n"{cell}",a\n', "a", **CSV, kind="features")
    assert np.array_equal(row.sequence, np.array(expected, dtype=np.float32), equal_nan=True)


def test_a_column_for_each_time_step_or_channel(read):
    series: dict[str, Any] = {"format": "csv", "kind": "features"}
    rows = read("b,1,2,NaN\na,0.5,,3\n", "a", **series, label=0)
    assert [(x.sequence[:, 0].tolist(), only_label(x)) for x in rows[:1]] == [([1, 2], "b")]
    assert np.array_equal(rows[1].sequence[:, 0], [0.5, np.nan, 3], equal_nan=True)
    content = 'x,y,label\n1 2,"[3, 4]",a\n'
    (row,) = read(content, "a", **series, sequence=["x", "y"], label="label")
    assert row.sequence.tolist() == [[1, 3], [2, 4]]
    (row,) = read(",t1,t2,label\n0,1,2,a\n", "a", **series, label="label")
    assert row.sequence.tolist() == [[1], [2]]  # without the index that pandas writes
    (row,) = read("id,t1,t2\n7,1,2\n", "a", **series, label="y", keep=("id",), labelled=False)
    assert (row.sequence.tolist(), row.kept) == ([[1], [2]], {"id": "7"})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(rows=st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=6))
def test_records_in_quotes_are_read_in_a_tsv_file(end, rows, tmp_path_factory):
    """Rows of which any cell needs quotes are written with all cells in quotes."""
    lines = ["text\tlabel"]
    for cells in rows:
        bare = not any(mark in cell for cell in cells for mark in '\t\r\n"')
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        lines.append("\t".join(cells if bare else quoted))
    path = tmp_path_factory.mktemp("a") / "a.tsv"
    path.write_bytes((end.join(lines) + end).encode())
    found = list(read_rows(file_source(str(path), "tsv", **NAMED), labelled=False))
    assert [(x.sequence, only_label(x)) for x in found] == [
        (text, label if label.strip() else None) for text, label in rows
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('"open\tx', '"open'),
        ('"a" b\tx', '"a" b'),
        ('5" pipe\tx', '5" pipe'),
        ('"one"\tx', '"one"'),
        ('"a""b"\tx', '"a""b"'),
    ],
)
def test_other_quotes_in_a_tsv_file_are_ordinary_characters(read, line, text):
    rows = read(f"text\tlabel\n{line}\nlast\ty\n", "a.tsv", format="tsv", **NAMED)
    assert [(x.sequence, only_label(x)) for x in rows] == [(text, "x"), ("last", "y")]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_a_blank_line_is_no_row(read, format):
    lines = {
        "csv": ["text,label", "one,x", "two,y"],
        "tsv": ["text\tlabel", "one\tx", "two\ty"],
        "jsonl": ["", '{"text": "one", "label": "x"}', '{"text": "two", "label": "y"}'],
    }[format]
    content = "\n \n\n".join(lines).replace("\n \n", "\n\n") + "\n\n"
    for labelled in (True, False):
        rows = read(content, f"a.{format}", format=format, labelled=labelled, **NAMED)
        assert [(x.sequence, x.line) for x in rows] == [("one", 4), ("two", 7)]


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ('["billing", "urgent"]', ("billing", "urgent")),
        ("[]", ()),
        ('["a,b"]', ("a,b",)),
        ("billing, urgent", ("billing", "urgent")),
    ],
)
def test_a_cell_may_hold_a_json_list_of_labels(read, cell, labels):
    quoted = cell.replace('"', '""')
    content = f'text,label\none,"{quoted}"\n'
    (row,) = read(content, "a.csv", format="csv", label_separator=",", **NAMED)
    assert row.labels == labels


def test_an_empty_list_means_no_label_without_a_separator_too(read):
    content = 'text,label\none,"[""a"", ""b""]"\ntwo,[]\n'
    found = read(content, "a.csv", format="csv", **NAMED)
    assert [row.labels for row in found] == [("a", "b"), ()]


def test_a_list_of_labels_that_is_not_json_is_refused(refuse):
    content = "text,label\none,\"['billing', 'urgent']\"\n"
    (problem,) = refuse(content, "a.csv", format="csv", label_separator=",", **NAMED)
    assert problem.startswith("a.csv:2: the label looks like a list")


@pytest.mark.parametrize("ragged", ["one;two;three", "one", "x,y;two;3,5;6"])
def test_a_ragged_row_does_not_hide_the_delimiter(ragged, read):
    content = f"text;label\na;x\n{ragged}\nb;y\nc;x\n"
    rows = read(content, "a.csv", format="csv", sequence="text", label="label", bad_rows="drop")
    assert [row.sequence for row in rows] == ["a", "b", "c"]


def test_a_ragged_row_in_quotes_keeps_its_id(tmp_path):
    lines = ["id,place,l", "a,p,x", "a,q,x,more", "b,p,y"]
    cells = ("\t".join(f'"{cell}"' for cell in line.split(",")) for line in lines)
    (tmp_path / "a.tsv").write_text("\n".join(cells) + "\n")
    columns: dict[str, Any] = {"id": "id", "steps": {"place": "token"}, "label": "l"}
    found = read_rows(file_source(str(tmp_path / "a.tsv"), "tsv", "steps", **columns))
    assert [(row.id, row.problem is None) for row in found] == [("a", False), ("b", True)]


def test_a_short_row_in_quotes_is_no_plain_row_because_of_a_tab_in_a_cell(tmp_path):
    rows = [("id", "place", "l"), ("a\tc", "p", "x"), ("a\tc", "q"), ("b", "p", "y")]
    lines = ["\t".join(f'"{cell}"' for cell in row) for row in rows]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n")
    columns: dict[str, Any] = {"id": "id", "steps": {"place": "token"}, "label": "l"}
    found = read_rows(file_source(str(tmp_path / "a.tsv"), "tsv", "steps", **columns))
    assert [(row.id, row.problem is None) for row in found] == [("a\tc", False), ("b", True)]
