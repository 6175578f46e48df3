"""Formats csv and tsv."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.readers import ReadOptions, delimited, read_examples
from seqtrain.errors import DataError
from tests.helpers.examples import examples

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

NAMED: dict[str, Any] = {"sequence": "text", "label": "label"}
CSV: dict[str, Any] = {"format": "csv", **NAMED}
TSV: dict[str, Any] = {"format": "tsv", **NAMED}


def seen(rows: list[Any]) -> list[tuple[Any, str | None, int]]:
    return [(row.sequence, row.label, row.line) for row in rows]


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
FIELD = st.one_of(TEXT, st.text('",\t\r\n\x0b\x0c\x85\u2028 a', max_size=12))
LABEL = FIELD.filter(lambda label: label.strip())


@examples(200)
@given(
    rows=st.lists(st.tuples(FIELD, LABEL, FIELD), min_size=1, max_size=6),
    delimiter=st.sampled_from(",\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    last_end=st.booleans(),
    mark=st.booleans(),
    packed=st.booleans(),
    every=st.booleans(),
)
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[str, str, str]],
    delimiter: str,
    end: str,
    last_end: bool,
    mark: bool,
    packed: bool,
    every: bool,
) -> None:
    text = io.StringIO(newline="")
    plain = csv.writer(text, delimiter=delimiter, lineterminator=end)
    full = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer = full if every or end == "\n" else plain
    writer.writerow(["text", "label", "more"])
    expected = []
    for sequence, label, more in rows:
        expected.append((sequence, label, text.getvalue().count("\n") + 1))
        writer.writerow([sequence, label, more])
    written = text.getvalue() if last_end else text.getvalue().removesuffix(end)
    content = (b"\xef\xbb\xbf" if mark else b"") + written.encode()
    options = ReadOptions("csv" if delimiter == "," else "tsv", quoting="standard", **NAMED)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("a.gz" if packed else "a")
        path.write_bytes(gzip.compress(content, 1) if packed else content)
        assert seen(list(read_examples(str(path), options))) == expected


@examples(100)
@given(
    rows=st.lists(
        st.tuples(*[st.text("\"',\x0b\x0c\x85\u2028 ab", max_size=8)] * 2).filter(
            lambda row: row[1].strip()
        ),
        min_size=1,
    ),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_unquoted_tsv_is_parted_at_tabs_alone(rows: list[tuple[str, str]], end: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tsv"
        path.write_bytes(end.join("\t".join(row) for row in rows).encode())
        found = list(read_examples(str(path), ReadOptions("tsv", sequence=0, label=1)))
    assert seen(found) == [(*row, line) for line, row in enumerate(rows, start=1)]


def test_columns_by_index_have_no_header(read: Read) -> None:
    content = "label\ttext\na\tone\n"
    by_index: dict[str, Any] = {"format": "tsv", "sequence": 1, "label": 0}
    assert seen(read(content, "a", **by_index)) == [("text", "label", 1), ("one", "a", 2)]
    assert seen(read(content, "a", **by_index, header=True)) == [("one", "a", 2)]
    mixed: dict[str, Any] = {"format": "tsv", "sequence": "text", "label": 0}
    assert seen(read(content, "a", **mixed)) == [("one", "a", 2)]


def test_several_columns_are_joined_by_a_space(read: Read) -> None:
    content = "a,b,label\none,two,x\n"
    options: dict[str, Any] = {"format": "csv", "sequence": ["a", "b"], "label": "label"}
    assert read(content, "a", **options)[0].sequence == "one two"
    assert read(content, "a", **options, kind="tokens")[0].sequence == ["one", "two"]


def test_features_stand_in_a_cell_as_json(read: Read, refuse: Refuse) -> None:
    content = "label\ttext\na\t[[1, 2], [null, 4]]\nb\tone\n"
    options: dict[str, Any] = {**TSV, "kind": "features"}
    (row,) = read(content[:-6], "a", **options)
    assert row.sequence.shape == (2, 2)
    assert refuse(content, "a", **options) == (
        "a:3: expected a JSON list of vectors or numbers, found 'one'",
    )
    options["sequence"] = ["text", "label"]
    assert "several columns of features" in refuse(content, "a", **options)[0]


def test_labels_may_be_absent_in_prediction_alone(read: Read, refuse: Refuse) -> None:
    assert seen(read("text\none\n", "a", **TSV, labelled=False)) == [("one", None, 2)]
    assert seen(read("label,text\na,one\n,two", "a", **CSV, labelled=False)) == [
        ("one", "a", 2),
        ("two", None, 3),
    ]
    options: dict[str, Any] = {"format": "tsv", "sequence": 0, "label": 1}
    assert seen(read("one\n", "a", **options, labelled=False)) == [("one", None, 1)]
    assert refuse("text\none\n", "a", **TSV) == ("a:1: no column 'label'; found 'text'",)


def test_labels_are_kept_as_written_and_never_blank(read: Read, refuse: Refuse) -> None:
    assert read("label,text\n a ,one\n", "a", **CSV)[0].label == " a "
    assert refuse("label,text\na,one\n,two\n  ,three\n", "a", **CSV) == (
        "a:3: the label is blank",
        "a:4: the label is blank",
    )


def test_missing_and_repeated_columns(refuse: Refuse) -> None:
    assert refuse("txt,label\na,b\n", "a", **CSV) == (
        "a:1: no column 'text'; found 'txt, label'; did you mean 'txt'?",
    )
    assert refuse("text,label,text\na,b,c\n", "a", **CSV) == (
        "a:1: column 'text' occurs twice in the header",
    )
    assert refuse("a,b\n", "a", format="csv", sequence=0, label=2) == (
        "a:1: no column 2; the row has 2, counted from 0",
    )
    assert refuse("a,b\n", "a", **CSV, header=False) == (
        "data.header: false, but column 'text' is named; give its index from 0",
    )
    assert refuse("a,b\n", "a", format="csv", label=0) == (
        "a: found format csv; the model reads text without named columns; expected fasttext or txt",
    )
    assert refuse("a,b\n", "a", format="csv", sequence=0) == (
        "data.label: missing; format csv needs a column",
    )


def test_ragged_rows_name_both_counts(refuse: Refuse) -> None:
    assert refuse("text,label\na\nb,c\nd,e,f\n", "a", **CSV) == (
        "a:2: expected 2 fields as in the first row, found 1",
        "a:4: expected 2 fields as in the first row, found 3",
    )


def test_blank_lines_are_dropped_at_the_end_alone(read: Read, refuse: Refuse) -> None:
    assert len(read("text,label\na,b\n\n\r\n", "a", **CSV)) == 1
    assert refuse("text,label\n\n\na,b\nc,d\n\n", "a", **CSV) == (
        "a:2: the line is blank",
        "a:3: the line is blank",
    )
    one: dict[str, Any] = {"format": "tsv", "sequence": "text", "labelled": False}
    assert seen(read("text\na\n\nb\n\n", "a", **one)) == [
        ("a", None, 2),
        ("", None, 3),
        ("b", None, 4),
        ("", None, 5),
    ]


def test_an_unclosed_quote_names_the_line_where_it_opens(refuse: Refuse) -> None:
    rest = "".join(f"{i},x\n" for i in range(1000))
    closed = 'text,label\n"a\nb",x\n'
    assert refuse(f'{closed}c,"x\n{rest}', "a", **CSV) == (
        "a:4: the quote that opens on this line is never closed",
    )
    assert refuse(f'{closed}c,"x\n{rest}"d",x\n', "a", **CSV) == (
        "a:4: the quoted field that opens here ends before 'd\",x'; "
        'write "" for a quote inside it',
    )
    assert refuse('text,label\n"a" b,x\n', "a", **CSV) == (
        "a:2: the quoted field that opens here ends before ' b,x'; "
        'write "" for a quote inside it',
    )


def test_fields_may_be_long_up_to_a_limit(
    read: Read, refuse: Refuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = "long, \n" * 50_000
    content = f'text,label\n"{field}",x\n'
    assert read(content, "a", **CSV)[0].sequence == field
    monkeypatch.setattr(delimited, "LINE_BYTES", 10_000)
    assert refuse(content, "a", **CSV) == ("a:2: the quoted field is longer than 10000 characters",)


@pytest.mark.parametrize("columns", [["c5"], "c5x", [f"c{i}" for i in range(50_000)]])
def test_a_header_of_100_000_columns_takes_seconds(read: Read, columns: list[str] | str) -> None:
    """Where each name was looked for among all, it took minutes."""
    rows = ["\t".join(f"c{i}" for i in range(100_000)), "\t".join(["1"] * 100_000)]
    begin = time.process_time()
    with suppress(DataError):
        (row,) = read("\n".join(rows), "a", format="tsv", sequence=columns, label="c99999")
        assert len(row.sequence.split()) == len(columns)
    assert time.process_time() - begin < 10


def test_quotes_inside_an_unquoted_field_are_data(read: Read) -> None:
    assert read('text,label\n5" pipe,x\n', "a", **CSV)[0].sequence == '5" pipe'
    assert read('text,label\n"a",x\n', "a", **CSV, quoting="none")[0].sequence == '"a"'
    assert read('text\tlabel\n"a\tx\n', "a", **TSV)[0].sequence == '"a'


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_csv_by_another_mark(read: Read, mark: str) -> None:
    content = f'text{mark}label\na, b{mark}x\n"c{mark} d"{mark}y\n'
    assert seen(read(content, "a.csv", **CSV)) == [("a, b", "x", 2), (f"c{mark} d", "y", 3)]


def test_a_quoted_field_may_go_on_behind_the_lines_that_tell_the_mark(read: Read) -> None:
    long = "one;\n" * delimited.SNIFFED_LINES
    content = f'text;label\na;x\n"{long}";y\n'
    assert seen(read(content, "a.csv", **CSV)) == [("a", "x", 2), (long, "y", 3)]


@pytest.mark.parametrize("first", ['5" pipe', 'he said "hi', 'text, "note'])
def test_a_quote_within_a_field_hides_no_mark(read: Read, first: str) -> None:
    content = f"text;label\n{first};x\nfoo;y\n"
    assert seen(read(content, "a.csv", **CSV)) == [(first, "x", 2), ("foo", "y", 3)]


def test_a_comma_goes_first_and_is_the_last_resort(read: Read) -> None:
    assert seen(read("text,label\na;b,x\nc;d,y\n", "a.csv", **CSV)) == [
        ("a;b", "x", 2),
        ("c;d", "y", 3),
    ]
    one = {"format": "csv", "sequence": "text"}
    assert seen(read("text\na; b\nc\n", "a.csv", labelled=False, **one)) == [
        ("a; b", None, 2),
        ("c", None, 3),
    ]


def test_excel_names_the_mark_in_a_line_of_its_own(read: Read) -> None:
    assert seen(read("\ufeffsep=;\r\ntext;label\r\na,b;x\r\n", "a.csv", **CSV)) == [("a,b", "x", 3)]


def test_the_mark_that_is_set_counts(read: Read) -> None:
    content = "text,label;more\na,x;y\n"
    rows = read(content, "a.csv", **{**CSV, "label": "label;more"}, delimiter="comma")
    assert seen(rows) == [("a", "x;y", 2)]
    rows = read("text|label\na\tb|x\n", "a.tsv", **TSV, delimiter="pipe")
    assert seen(rows) == [("a\tb", "x", 2)]
