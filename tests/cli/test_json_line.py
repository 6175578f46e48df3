"""JSON lines: nothing is lost, and nothing steers a terminal."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from seqtrain.cli.json_line import json_line

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, st.lists(TEXT) | st.floats(allow_nan=False, allow_infinity=False)))
def test_lines_are_printable_and_lossless(value: object) -> None:
    line = json_line(value)
    assert line.isprintable()
    assert json.loads(line) == value


def test_letters_stay_as_they_are() -> None:
    assert json_line({"é漢🙂": 1}) == '{"é漢🙂": 1}'
    assert json_line("u\u202ep\x9b") == '"u\\u202ep\\u009b"'
