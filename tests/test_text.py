"""Text from outside: short, on one line, and nothing in it steers a terminal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqtrain.text import (
    PROBLEM_LENGTH,
    counted,
    display_name,
    json_line,
    listed,
    located,
    nearest,
    one_line,
    one_of,
    printable,
    quote,
    shorten,
)

ANY_TEXT = st.text(st.characters())
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, st.lists(TEXT) | st.floats(allow_nan=False, allow_infinity=False)))
def test_lines_of_json_are_printable_and_lossless(value: object) -> None:
    line = json_line(value)
    assert line.isprintable()
    assert json.loads(line) == value


def test_letters_stay_in_json_as_they_are() -> None:
    assert json_line({"é漢🙂": 1}) == '{"é漢🙂": 1}'
    assert json_line("u\u202ep\x9b") == '"u\\u202ep\\u009b"'


@given(ANY_TEXT, st.integers(2, 100))
def test_whatever_the_text_holds_it_is_printable_and_short(text: str, limit: int) -> None:
    assert printable(text).isprintable()
    assert shorten(text, limit).isprintable()
    assert len(shorten(text, limit)) <= limit
    assert quote(text, limit + 2).isprintable()
    assert len(quote(text, limit + 2)) <= limit + 2
    assert one_line(text).isprintable()
    assert len(one_line(text)) <= PROBLEM_LENGTH
    assert display_name(text).isprintable()


def test_control_characters_and_marks_of_direction_are_escaped() -> None:
    assert printable("é\x1b[31m\u202e\ud800 ok") == "é\\x1b[31m\\u202e\\ud800 ok"
    assert quote("a 'b'") == "'a 'b''"
    assert quote("a\x1b[31m\n") == "'a\\x1b[31m\\n'"
    assert quote("\u202e") == "'\\u202e'"
    assert display_name("-") == "stdin"
    assert display_name("") == "''"


@pytest.mark.parametrize("text", ["x" * 10**6, "\x00" * 10**6])
def test_a_million_characters_are_cut(text: str) -> None:
    assert quote(text).endswith("…'")
    assert len(quote(text)) <= 80


def test_a_long_place_keeps_its_end() -> None:
    assert located("d/a.csv:1", "p" * 80) == f"d/a.csv:1: {'p' * 80}"
    assert located("", "p") == "p"
    line = located(f"{'d/' * 200}a.csv:1", "p" * 80)
    assert len(line) == PROBLEM_LENGTH
    assert line.startswith("…")
    assert line.endswith(f"/a.csv:1: {'p' * 80}")


def test_long_paths_in_a_problem_keep_their_ends() -> None:
    line = one_line(f"/{'a/' * 100}end.txt: no such file; {'b' * 60}")
    assert len(line) <= PROBLEM_LENGTH
    assert "end.txt: no such file" in line


def test_lists_counts_and_choices() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcdefgh")) == "a, b, c, d, e and 3 more"
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"
    assert one_of(["a", "b", "c"]) == "a, b or c"
    assert one_of(["a"]) == "a"


def test_the_nearest_name() -> None:
    assert nearest("trian", ["train", "test"]) == "train"
    assert nearest("x" * 10**6, ["train", "test"]) is None
