"""Format jsonl."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.tables.blocks import Dialect
from seqtrain.tables.sources import open_source
from tests.tables.conftest import rows_of

VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=2), inner),
    max_leaves=5,
)  # fmt: skip


@given(
    rows=st.lists(VALUE, min_size=2, max_size=5),
    ascii_only=st.booleans(),
    form=st.sampled_from(["lines", "array", "pretty", "inside"]),
)
def test_what_json_writes_is_read_back(rows, ascii_only, form, tmp_path):
    objects = [{"text": value, "more": index} for index, value in enumerate(rows)]
    if form == "lines":
        text = "\r\n".join(json.dumps(each, ensure_ascii=ascii_only) for each in objects)
    elif form == "inside":
        text = json.dumps({"version": 1, "data": objects}, indent=2 if ascii_only else None)
    else:
        text = json.dumps(objects, ensure_ascii=ascii_only, indent=1 if form == "pretty" else None)
    path = tmp_path / "a.jsonl"
    path.write_bytes(text.encode())
    found = list(rows_of(open_source(str(path), Dialect("jsonl"))))
    assert [row.cells["text"] for row in found] == rows
    assert [row.line for row in found] == list(range(1, len(rows) + 1))


def test_fields_inside_objects(read):
    line = json.dumps({"doc": {"text": "a"}, "meta": {"gold": {"label": "x"}}, "a.b": 1})
    (found,) = read(line + "\n", "a.jsonl", "doc.text", "meta.gold.label", "a.b")
    assert list(found.cells.values()) == ["a", "x", 1]


def test_a_row_that_is_no_object_or_lacks_a_field_is_bad(read):
    lines = ['{"a": 1}', '{"b": 2}', "[1]", '{"a":}', '{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 5}']
    found = read("\n".join(lines), "a.jsonl", "a", optional=("b",))
    assert [row.line for row in found if row.problem is None] == [1, 7]
    said = [str(row.problem) for row in found]
    assert "no field 'a'; found 'b'" in said[1]
    assert "found a list" in said[2]
    assert "not JSON at column 6" in said[3]
    assert "twice" in said[4]
    assert "NaN" in said[5]


@pytest.mark.parametrize(
    "text",
    [
        '{"data": [{"a": 1}, {"a": 2}], "version": "1.0"}',
        '{"meta": {"n": 2},\n "rows": [\n  {"a": 1},\n  {"a": 2}\n ]\n}\n',
        '{\n"result": {"count": 2, "items": [{"a": 1}, {"a": 2}]}}',
        '{"u7": {"a": 1, "b": "x"}, "u9": {"a": 2}}',
        '{"version": "1", "items": {"u7": {"a": 1}, "u9": {"a": 2}}}',
        '{\n "0": {"a": 1, "0": 5},\n "1": {"a": 2, "0": 6}\n}',
        '{"a": {"0": 1, "1": 2}, "b": {"0": "x", "1": "y"}}',
        '{"columns": ["a", "b"], "index": [0, 1], "data": [[1, [3]], [2, [4]]]}',
        '{"schema": {"fields": [], "pandas_version": "1"}, "data": [{"a": 1}, {"a": 2}]}',
    ],
)
def test_one_object_may_hold_the_rows(read, text):
    assert [row.cells["a"] for row in read(text, "a.json", "a", format="jsonl")] == [1, 2]


def test_an_object_whose_fields_are_selected_is_a_row(read):
    text = '{"events": [{"page": "home"}, {"page": "cart"}], "bought": "yes"}\n'
    (found,) = read(text, "a.jsonl", "events", "bought")
    assert found.cells["bought"] == "yes"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": [1, 2], "b": [3, 4]}', "one object per row"),
        ('{\n "a": 1\n}\n{\n "a": 2\n}\n', "an object over several lines"),
        ('{\n "a": 1\n}\n', "an object over several lines"),
        ("[{}, ", "a.jsonl:1: not JSON"),
        ("[[1, 2], [3, 4]]", "a list of lists"),
        ('{"u": ["a b", "c d"], "v": ["e f", "g h", "i"]}', "keys are labels"),
        ('[{"a": "\xff"}]'.encode("latin-1"), "a.jsonl:1: byte 9 is not UTF-8"),
    ],
)
def test_what_is_refused(refuse, text, said):
    assert said in refuse(text, "a.jsonl", "x")[0]


def test_a_pipe_of_objects_yields_each_line_as_it_comes(read):
    found = read('{"a": 1}\n{"a": 2}\n', "a.jsonl", "a", rows=1)
    assert [row.cells["a"] for row in found] == [1, 2]


def test_the_only_list_of_objects_is_found_among_other_objects(read):
    content = '{"about": {"made": 2023},\n "body": {"n": 2, "items": [{"a": 1}, {"a": 2}]}}\n'
    assert [row.cells["a"] for row in read(content, "a.json", "a", format="jsonl")] == [1, 2]
