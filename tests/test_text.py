"""Text from outside: short, on one line, and nothing in it steers a terminal."""

import json

from hypothesis import given
from hypothesis import strategies as st

from seqtrain.text import (
    PROBLEM_LENGTH,
    display_name,
    json_line,
    one_line,
    printable,
    quote,
    shorten,
)

ANY_TEXT = st.text(st.characters())
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, st.lists(TEXT) | st.floats(allow_nan=False, allow_infinity=False)))
def test_lines_of_json_are_printable_and_lossless(value):
    line = json_line(value)
    assert line.isprintable()
    assert json.loads(line) == value


@given(ANY_TEXT, st.integers(2, 100))
def test_whatever_the_text_holds_it_is_printable_and_short(text, limit):
    assert printable(text).isprintable()
    assert shorten(text, limit).isprintable()
    assert len(shorten(text, limit)) <= limit
    assert quote(text, limit + 2).isprintable()
    assert len(quote(text, limit + 2)) <= limit + 2
    assert one_line(text).isprintable()
    assert len(one_line(text.lstrip(" "))) <= PROBLEM_LENGTH
    assert display_name(text).isprintable()


def test_control_characters_and_marks_of_direction_are_escaped():
    assert printable("é\x1b[31m\u202e\ud800 ok") == "é\\x1b[31m\\u202e\\ud800 ok"
    assert quote("a 'b'") == "'a 'b''"
    assert quote("a\x1b[31m\n") == "'a\\x1b[31m\\n'"
    assert quote("\u202e") == "'\\u202e'"
    assert display_name("-") == "stdin"
    assert display_name("") == "''"


def test_a_long_place_keeps_its_end():
    assert one_line(f"d/a.csv:1: {'p' * 80}") == f"d/a.csv:1: {'p' * 80}"
    long = one_line(f"a.csv:1: found {'x ' * 200}; expected a number; set data.missing: -")
    assert long.startswith("a.csv:1: found x x")
    assert long.endswith("…; set data.missing: -")
    line = one_line(f"{'d/' * 200}a.csv:1: {'p' * 80}")
    assert len(line) == PROBLEM_LENGTH
    assert line.startswith("…")
    assert line.endswith(f"/a.csv:1: {'p' * 80}")
