"""Format jsonl, and JSON in cells."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.sequences.readers import read_rows
from tests.helpers.reading import file_source, only_label, read_examples

OPTIONS: dict[str, Any] = {"format": "jsonl", "sequence": "text", "label": "label"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def row(text: object, label: object = "a") -> str:
    return json.dumps({"text": text, "label": label}) + "\n"


@given(
    rows=st.lists(st.tuples(TEXT, TEXT.filter(str.strip)), min_size=1),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_json_writes_is_read_back(rows, ascii_only, end):
    written = [json.dumps({"text": a, "label": b}, ensure_ascii=ascii_only) for a, b in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(end.join(written).encode())
        found = list(read_examples(file_source(str(path), **OPTIONS)))
    assert [(each.sequence, only_label(each)) for each in found] == rows
    assert [each.line for each in found] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("value", "label"), [("a", "a"), (3, "3"), (-1, "-1"), (True, "true"), (False, "false")]
)
def test_labels(read, value, label):
    assert only_label(read(row("x", value), "a", **OPTIONS)[0]) == label


def test_blank_and_absent_labels(read):
    for content in ('{"text": "x"}', row("x", None), row("x", "")):
        assert only_label(read(content, "a", **OPTIONS, labelled=False)[0]) is None


def test_depth_and_blank_lines_at_the_end(read):
    brackets = row('["{[\\"' * 200).rstrip()
    nested = '{"text": "x", "label": "y", "more": ' + "[" * 90 + "]" * 90 + "}"
    escaped = r'{"text": "\ud83d\ude00", "label": 1}'
    found = read(f"{brackets}\n{nested}\n{escaped}\n\n \n", "a", **OPTIONS)
    assert [each.sequence for each in found[1:]] == ["x", "😀"]


def test_several_fields_are_joined(read):
    options = {**OPTIONS, "sequence": ["a", "b"]}
    assert read('{"a": "one", "b": "two", "label": 1}', "a", **options)[0].sequence == "one two"
    content = '{"a": ["one"], "b": "two 3", "label": 1}'
    assert read(content, "a", **options, kind="tokens")[0].sequence == ["one", "two", "3"]


def test_a_field_of_an_object_within(read):
    names = {"format": "jsonl", "sequence": "doc.text", "label": "meta.gold.label"}
    line = json.dumps({"doc": {"text": "a b"}, "meta": {"gold": {"label": "x"}}}) + "\n"
    (found,) = read(line, "a.jsonl", **names)
    assert (found.sequence, only_label(found)) == ("a b", "x")
    plain = json.dumps({"doc.text": "whole", "meta": {"gold": {"label": "x"}}}) + "\n"
    assert read(plain, "a.jsonl", **names)[0].sequence == "whole"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["a b", ""], ["a b", ""]),
        (" a  b", ["a", "b"]),
        (["a", 1, -2], ["a", "1", "-2"]),
        ("[1, -2]", ["1", "-2"]),
        ("[1 -2]", ["[1", "-2]"]),
    ],
)
def test_tokens(read, value, expected):
    assert read(row(value), "a", **OPTIONS, kind="tokens")[0].sequence == expected


def test_features(read):
    content = row([[1, 2.5], [None, -4]]) + row([]) + row([1, None, 3])
    vectors, empty, channel = read(content, "a", **OPTIONS, kind="features")
    expected = np.array([[1, 2.5], [np.nan, -4]], dtype=np.float32)
    np.testing.assert_array_equal(vectors.sequence, expected)
    assert vectors.sequence.dtype == np.float32
    assert empty.sequence.shape == (0, 0)
    np.testing.assert_array_equal(channel.sequence, [[1], [np.nan], [3]])


def test_lists_of_sentences_and_chats_are_texts(read):
    chat = [{"role": "user", "content": "hi there"}, {"from": "bot", "value": "hello"}]
    rows = read(row(["one two", "three"]) + row(chat), "a", **OPTIONS)
    assert [x.sequence for x in rows] == ["one two ¶ three", "user : hi there ¶ bot : hello"]


def test_an_array_of_objects(read):
    pretty = json.dumps([{"text": "one", "label": "a"}, {"text": "two", "label": None}], indent=1)
    rows = read("\n" + pretty, "a.json", **OPTIONS, labelled=False)
    assert [(x.sequence, only_label(x), x.line) for x in rows] == [
        ("one", "a", 1),
        ("two", None, 2),
    ]


def test_columns_of_numbers_and_of_lists_are_steps_and_channels(read):
    keys = {"format": "jsonl", "kind": "features", "sequence": ["x", "y"], "label": "l"}
    rows = read('{"x": [1, 2], "y": [3, null], "l": 0}\n{"x": 1, "y": 2, "l": 0}\n', "a", **keys)
    assert np.array_equal(rows[0].sequence, [[1, 3], [2, np.nan]], equal_nan=True)
    assert rows[1].sequence.tolist() == [[1], [2]]


def test_a_missing_text_is_empty_as_a_blank_cell_is(read):
    keys: dict[str, Any] = {"format": "jsonl", "label": "l"}
    rows = read('{"t": null, "l": "a"}\n{"t": "x", "l": "a"}\n', "a", sequence="t", **keys)
    assert [row.sequence for row in rows] == ["", "x"]
    both = read('{"t": null, "u": "x", "l": "a"}\n', "a", sequence=["t", "u"], **keys)
    assert [row.sequence.strip() for row in both] == ["x"]


@pytest.mark.parametrize("label", [1.5, {"a": 1}, [[1]], "[x"])
def test_a_label_that_cannot_be_read_plays_no_part_in_prediction(label, tmp_path):
    (tmp_path / "a.jsonl").write_text(row("one", label))
    options: dict[str, Any] = {"sequence": "text", "label": "label", "label_separator": "|"}
    source = file_source(str(tmp_path / "a.jsonl"), "jsonl", **options)
    (labelled,), (unlabelled,) = read_rows(source), read_rows(source, labelled=False)
    assert (labelled.problem is None) == (label == "[x")
    assert (unlabelled.sequence, unlabelled.problem) == ("one", None)
