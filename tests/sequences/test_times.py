"""Times in the column of the order: exact, of one type, with or without time zones."""

from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import DataError
from seqtrain.sequences.examples import Example
from tests.helpers.reading import completed, file_source, read_rows

SCHEMA: dict[str, Any] = {
    "kind": "steps",
    "id": "id",
    "label": "l",
    "order": "t",
    "steps": {"place": "token", "since": "order"},
}


def sequences(path: Path, times: list[str], **keys: Any) -> list[Example]:
    """Return the sequence of rows with these times, whose places count the rows."""
    lines = [f'i,"{time}",{number},x' for number, time in enumerate(times)]
    path.write_text("\n".join(["id,t,place,l", *lines, ""]))
    source = file_source(str(path), "csv", **SCHEMA, **keys)
    return list(read_rows(source.with_schema(completed(source))))


def order_of(found: list[Example]) -> list[int]:
    (example,) = found
    assert example.problem is None, example.problem
    return [*map(int, example.sequence.token_texts()[0])]


@pytest.mark.parametrize(
    ("texts", "order_type", "expected"),
    [
        (["23.12.2024", "1.2.2024", "01.02.2024 10:00"], "day_first", [1, 2, 0]),
        (["12/23/2024", "2/1/2024", "02/01/2024 10:00 PM"], "month_first", [1, 2, 0]),
        (["23/12/2024", "1/2/2024", "01/02/2024 10:00"], "day_first", [1, 2, 0]),
        (["1/2/2024", "2/1/2024", "1/13/2024"], "month_first", [0, 2, 1]),
        (["12:30", "9:05", "09:05:01", "100:00"], "duration", [1, 2, 0, 3]),
        (["2024/03/09", "2024/03/10", "2024/03/01"], "date", [2, 0, 1]),
        (["2024-W10-2", "2024-W09-7", "2024-W10"], "date", [1, 2, 0]),
        (["9223372036854775807", "-9223372036854775808", "0"], "number", [1, 2, 0]),
        (["9007199254740993", "9007199254740992", "1e3"], "number", [2, 1, 0]),
    ],
)
def test_each_type_sorts(texts, order_type, expected, tmp_path):
    found = sequences(tmp_path / "a.csv", texts)
    assert order_of(found) == expected
    source = file_source(str(tmp_path / "a.csv"), "csv", **SCHEMA)
    assert completed(source).order_type == order_type


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1/2/2024", "3/4/2024"], "day or the month"),
        (["2024-01-01T00:00Z", "2024-01-01T00:00"], "a.csv:3: t: .*00:00Z.* on line 2.*time zone"),
        (["2024-01-01", "2024-01-02T00:00+01:00"], "a.csv:3: t: .*line 2.*time zone"),
    ],
)
def test_a_file_whose_dates_have_no_order_is_refused(texts, words, tmp_path):
    with pytest.raises(DataError, match=words):
        sequences(tmp_path / "a.csv", texts)


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["1", "inf"], "inf"),
        (["1", "-Infinity"], "-Infinity"),
        (["1", ""], ""),
        (["13/2/2024", "1/13/2024"], "1/13/2024"),
        (["1", "2024-01-01"], "2024-01-01"),
        (["2024-01-01", "12:30"], "12:30"),
        (["1", "x", "x"], "x"),
        (["2024-01-01", "2024-01-01T00:00:00.0000000001"], "2024-01-01T00:00:00.0000000001"),
    ],
)
def test_a_bad_cell_of_the_order_makes_its_sequence_bad(texts, value, tmp_path):
    (found,) = sequences(tmp_path / "a.csv", texts)
    assert (found.line, found.id) == (3, "i")
    assert found.problem is not None
    assert value in found.problem or "nine" in found.problem


@pytest.mark.parametrize("other", ["soon", "", "2024-01-01", "12:30"])
def test_a_bad_cell_does_not_hide_which_number_is_the_day(other, tmp_path):
    found = sequences(tmp_path / "a.csv", ["1/2/2024", other, "25/1/2024"])
    assert found[0].problem is not None
    source = file_source(str(tmp_path / "a.csv"), "csv", **SCHEMA)
    assert completed(source).order_type == "day_first"


def test_several_columns_sort_and_a_date_and_a_time_of_day_are_one_time(tmp_path):
    keys: dict[str, Any] = {**SCHEMA, "order": ("day", "t"), "steps": {**SCHEMA["steps"]}}
    for days, expected, growth in (
        (["2.1.2024", "31.12.2023"], [3, 1, 2, 0], [0, 7200, 126000, 3600]),
        (["2", "1"], [3, 1, 2, 0], [0, 0, 1, 0]),
    ):
        hours = enumerate([12, 24, 11, 22])
        lines = [f"i,{days[row % 2]},{hour}:00,{row},x" for row, hour in hours]
        (tmp_path / "a.csv").write_text("\n".join(["id,day,t,place,l", *lines, ""]))
        source = file_source(str(tmp_path / "a.csv"), "csv", **keys)
        found = list(read_rows(source.with_schema(completed(source))))
        assert order_of(found) == expected
        assert found[0].sequence.numbers[:, 0].tolist() == growth
