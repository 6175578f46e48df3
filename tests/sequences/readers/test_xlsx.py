"""Sheets of Excel as data files."""

from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import ConfigError, DataError
from seqtrain.sequences.readers import read_rows
from tests.helpers.reading import file_source, only_label

COLUMNS: dict[str, Any] = {"sequence": "text", "label": "label"}


def write_sheet(path: Path, rows: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_the_first_row_names_the_columns(tmp_path):
    rows = [[], ["label", None, "text"], ["a", 1, "one"], [], [2, None, "two, \n three"]]
    path = write_sheet(tmp_path / "a.xlsx", rows)
    found = list(read_rows(file_source(str(path), "xlsx", **COLUMNS)))
    assert [(x.line, only_label(x), x.sequence) for x in found] == [
        (3, "a", "one"),
        (5, "2", "two, \n three"),
    ]


def test_rows_that_are_time_steps(tmp_path):
    rows: list[list[Any]] = [["id", "day", "clock", "heat", "label"]]
    for number, (day, hour) in enumerate([(2, 1), (1, 2), (3, 3)]):
        rows.append(["i", datetime(2024, 1, day), time(hour, 30), number + 0.5, "x"])
    path = write_sheet(tmp_path / "a.xlsx", rows)
    keys: dict[str, Any] = {"id": "id", "label": "label", "steps": {"heat": "number"}}
    for order, expected in (("day", [1.5, 0.5, 2.5]), ("clock", [0.5, 1.5, 2.5])):
        source = file_source(str(path), "xlsx", "steps", order=order, **keys)
        (found,) = read_rows(source)
        assert found.sequence.numbers[:, 0].tolist() == expected


def test_what_is_refused(tmp_path):
    path = write_sheet(tmp_path / "a.xlsx", [["text", "text"], ["a", "b"]])
    source = file_source(str(path), "xlsx", **COLUMNS)
    with pytest.raises(DataError, match=r"a\.xlsx:1: column 'text'"):
        list(read_rows(source))
    content = path.read_bytes()
    for damaged in (content[:200], content[:-100], b"PK\x03\x04", b"text,label\n"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="xlsx"):
            list(read_rows(source))


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"openpyxl.*seqtrain\[excel\].*csv"):
        list(read_rows(file_source(str(tmp_path / "a.xlsx"), "xlsx", **COLUMNS)))
