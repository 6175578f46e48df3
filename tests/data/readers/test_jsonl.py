"""Format jsonl, and JSON in cells."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.data.readers import ReadOptions, read_examples

Read = Callable[..., list[Any]]
Refuse = Callable[..., tuple[str, ...]]

DEEP = "JSON nested too deeply"
OPTIONS: dict[str, Any] = {"format": "jsonl", "sequence": "text", "label": "label"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def row(text: object, label: object = "a") -> str:
    return json.dumps({"text": text, "label": label}) + "\n"


@given(
    rows=st.lists(st.tuples(TEXT, TEXT.filter(str.strip)), min_size=1),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_json_writes_is_read_back(
    rows: list[tuple[str, str]], ascii_only: bool, end: str
) -> None:
    written = [json.dumps({"text": a, "label": b}, ensure_ascii=ascii_only) for a, b in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(end.join(written).encode())
        found = list(read_examples(str(path), ReadOptions(**OPTIONS)))
    assert [(each.sequence, each.label) for each in found] == rows
    assert [each.line for each in found] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("value", "label"), [("a", "a"), (3, "3"), (-1, "-1"), (True, "true"), (False, "false")]
)
def test_labels(read: Read, value: object, label: str) -> None:
    assert read(row("x", value), "a", **OPTIONS)[0].label == label


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.5, "a number with a fraction"),
        (None, "null"),
        (["a"], "a list"),
        ({}, "an object"),
    ],
)
def test_labels_of_other_types_are_refused(refuse: Refuse, value: object, found: str) -> None:
    assert refuse(row("x", value), "a", **OPTIONS) == (
        f"a:1: label: expected a string, an integer, true or false, found {found}",
    )


def test_blank_and_absent_labels(read: Read, refuse: Refuse) -> None:
    assert refuse(row("x", " "), "a", **OPTIONS) == ("a:1: the label is blank",)
    assert refuse('{"text": "x", "labell": 1}', "a", **OPTIONS) == (
        "a:1: no field 'label'; found 'text, labell'; did you mean 'labell'?",
    )
    problems = refuse(row("x", "y") + '{"text": "x", "labell": 1}', "a", **OPTIONS)
    assert problems == ("a:2: no field 'label'; found 'text, labell'",)  # the name was right before
    for content in ('{"text": "x"}', row("x", None), row("x", "")):
        assert read(content, "a", **OPTIONS, labelled=False)[0].label is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "x" "label": 1}', "not JSON at column 14: Expecting ',' delimiter"),
        ("{} {}", "not JSON at column 4: Extra data"),
        ('["x"]', "expected a JSON object, found a list"),
        ('{"text": 1, "label": "a", "text": 2}', "JSON with the key 'text' twice"),
        ('{"text": "x", "label": {"b": 1, "b": 2}}', "JSON with the key 'b' twice"),
        ('{"text": NaN}', "NaN is not JSON; write null for a missing value"),
        ('{"text": [-Infinity]}', "-Infinity is not JSON; write null for a missing value"),
        (r'{"text": "\ud800"}', "JSON with a lone surrogate escape (\\ud800 to \\udfff)"),
        (
            r'{"text": "x", "more": ["\uDC00"]}',
            "JSON with a lone surrogate escape (\\ud800 to \\udfff)",
        ),
        ('{"text": ' + "[" * 100_000, DEEP),
        ('{"text": ' + "[" * 990 + "]" * 990 + "}", DEEP),
        ('{"text": ' + "1" * 5000 + "}", "JSON with an integer of thousands of digits"),
        ('{"text": 1, "label": 1}', "text: expected a string, found a number (data.kind is text)"),
        (
            '{"text": ["x"], "label": 1}',
            "text: expected a string, found a list (data.kind is text)",
        ),
    ],
)
def test_strictness(refuse: Refuse, line: str, problem: str) -> None:
    assert refuse(row("fine") + line + "\n", "a", **OPTIONS) == (f"a:2: {problem}",)


def test_escaped_pairs_of_surrogates_are_text(read: Read) -> None:
    assert read(r'{"text": "\ud83d\ude00", "label": 1}', "a", **OPTIONS)[0].sequence == "😀"


def test_blank_lines(read: Read, refuse: Refuse) -> None:
    assert len(read(row("x") + "\n \n", "a", **OPTIONS)) == 1
    assert refuse(row("x") + "\n" + row("y"), "a", **OPTIONS) == ("a:2: the line is blank",)


def test_columns_are_names(refuse: Refuse) -> None:
    assert refuse(row("x"), "a", format="jsonl", sequence=0, label="label") == (
        "data.sequence: 0 is an index; format jsonl needs a field's name",
    )
    assert refuse(row("x"), "a", format="jsonl", sequence="text", label=1) == (
        "data.label: 1 is an index; format jsonl needs a field's name",
    )


def test_several_fields_are_joined(read: Read) -> None:
    content = '{"a": "one", "b": "two", "label": 1}'
    options: dict[str, Any] = {"format": "jsonl", "sequence": ["a", "b"], "label": "label"}
    assert read(content, "a", **options)[0].sequence == "one two"
    content = '{"a": ["one"], "b": "two 3", "label": 1}'
    assert read(content, "a", **options, kind="tokens")[0].sequence == ["one", "two", "3"]


def test_tokens(read: Read, refuse: Refuse) -> None:
    options: dict[str, Any] = {**OPTIONS, "kind": "tokens"}
    assert read(row(["a b", ""]), "a", **options)[0].sequence == ["a b", ""]
    assert read(row(" a  b"), "a", **options)[0].sequence == ["a", "b"]
    assert read(row(["a", 1, -2]), "a", **options)[0].sequence == ["a", "1", "-2"]
    assert read(row("[1, -2]"), "a", **options)[0].sequence == ["1", "-2"]
    assert read(row("[1 -2]"), "a", **options)[0].sequence == ["[1", "-2]"]
    assert refuse(row(["a", True]), "a", **options) == (
        "a:1: text: expected strings or integers in the list, found true or false",
    )
    assert refuse(row(["a", 1.5]), "a", **options) == (
        "a:1: text: expected strings or integers in the list, found a number with a fraction",
    )
    assert refuse(row(1), "a", **options) == (
        "a:1: text: expected a list of strings or a string, found a number",
    )


def test_features(read: Read) -> None:
    options: dict[str, Any] = {**OPTIONS, "kind": "features"}
    vectors, empty = read(row([[1, 2.5], [None, -4]]) + row([]), "a", **options)
    np.testing.assert_array_equal(
        vectors.sequence, np.array([[1, 2.5], [np.nan, -4]], dtype=np.float32)
    )
    assert vectors.sequence.dtype == np.float32
    assert empty.sequence.shape == (0, 0)
    (channel,) = read(row([1, None, 3]), "a", **options)
    np.testing.assert_array_equal(channel.sequence, [[1], [np.nan], [3]])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[1, 2], [3]]", "text: step 2: 1 values, but step 1 has 2"),
        ("[[1], 2]", "text: step 2: expected a vector, found a number"),
        ("[1, [2]]", "text: expected a number or null, found a list"),
        ("[[1], [true]]", "text: expected a number or null, found true or false"),
        ('["1"]', "text: expected a number or null, found a string"),
        ("[[], []]", "text: the vectors hold no values"),
        ("[1, 1e999]", "text: step 2: inf is infinite or too large for float32"),
        ("[1, -1e39]", "text: step 2: -1e+39 is infinite or too large for float32"),
        ("[[1, 2], [1, 2], [3, 1e39]]", "text: step 3: 1e+39 is infinite or too large for float32"),
        ("[1" + "0" * 400 + "]", "text: a number is too large for float32"),
        ('"1 2"', "text: expected a list of vectors or numbers, found a string"),
    ],
)
def test_features_that_are_refused(refuse: Refuse, text: str, problem: str) -> None:
    content = f'{{"text": [[1, 2]], "label": 1}}\n{{"text": {text}, "label": 1}}\n'
    assert refuse(content, "a", **OPTIONS, kind="features") == (f"a:2: {problem}",)


def test_a_field_of_an_object_within(read: Read, refuse: Refuse) -> None:
    names = {"format": "jsonl", "sequence": "doc.text", "label": "meta.gold.label"}
    line = json.dumps({"doc": {"text": "a b"}, "meta": {"gold": {"label": "x"}}}) + "\n"
    assert [(each.sequence, each.label) for each in read(line, "a.jsonl", **names)] == [
        ("a b", "x")
    ]
    plain = json.dumps({"doc.text": "whole", "meta": {"gold": {"label": "x"}}}) + "\n"
    assert read(plain, "a.jsonl", **names)[0].sequence == "whole"
    (problem,) = refuse(line, "a.jsonl", **{**names, "sequence": "doc.txet"})
    assert problem == ("a.jsonl:1: no field 'doc.txet'; found 'doc.text'; did you mean 'doc.text'?")
