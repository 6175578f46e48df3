"""Sheets of workbooks."""

from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest

from seqtrain.errors import ConfigError, DataError
from seqtrain.tables.blocks import Dialect
from seqtrain.tables.sources import open_source
from tests.tables.conftest import rows_of, select


def write(path: Path, **sheets: list[list[Any]]) -> str:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return str(path)


def read(path: str, *columns: str, **form: Any) -> list[Any]:
    selection = select(*columns) if columns else None
    found = rows_of(open_source(path, Dialect("xlsx", **form)), selection)
    return [(row.line, *row.cells.values()) for row in found]


def test_the_first_row_names_the_columns(tmp_path):
    rows = [[], ["label", None, "text"], ["a", 1, "one"], [], [2, None, "two, \n three"]]
    path = write(tmp_path / "a.xlsx", S=rows)
    assert read(path, "text", "label") == [(3, "one", "a"), (5, "two, \n three", 2)]


@pytest.mark.parametrize(
    "titles",
    [
        [["Complaints 2024"]],
        [["Complaints"], [], ["by the hotline", None]],
        [["Report", None, "2024-05-01"], [None, "internal"]],
    ],
)
def test_titles_above_the_header_are_skipped(tmp_path, titles):
    table = [["id", "text", "label", "day"], [1, "one", "a", None], [2, "two", "b", None]]
    path = write(tmp_path / "a.xlsx", S=[*titles, *table])
    assert [row[1:] for row in read(path, "text", "label")] == [("one", "a"), ("two", "b")]
    assert read(path, "text")[0][0] == len(titles) + 2


def test_a_sheet_is_chosen_by_its_name(tmp_path):
    data = [["text", "label"], ["one", "a"]]
    path = write(tmp_path / "a.xlsx", Notes=[["about"], ["nothing"]], Data=data)
    assert read(path, "text", "label", sheet="Data") == [(2, "one", "a")]
    with pytest.raises(DataError, match=r"no column 'text'.*sheet 'Notes'.*'Data'.*data\.sheet"):
        read(path, "text", "label")
    with pytest.raises(DataError, match="no sheet 'data'; found 'Notes', 'Data'"):
        read(path, "text", sheet="data")
    only = write(tmp_path / "b.xlsx", Sheet1=[["text", "label"], ["one", "a"]])
    assert read(only, "text", "label", sheet="Data") == [(2, "one", "a")]


def test_dates_are_the_texts_of_csv(tmp_path):
    rows = [
        ["day", "moment", "clock"],
        [datetime(2024, 1, 2), datetime(2024, 1, 2, 3, 4), time(5, 6)],
    ]
    path = write(tmp_path / "a.xlsx", S=rows)
    assert read(path) == [(2, "2024-01-02", "2024-01-02T03:04:00", "05:06:00")]


def test_what_is_refused(tmp_path):
    path = write(tmp_path / "a.xlsx", S=[["text", "text"], ["a", "b"]])
    with pytest.raises(DataError, match=r"a\.xlsx:1: column 'text' occurs twice"):
        read(path)
    content = Path(path).read_bytes()
    for damaged in (content[:200], content[:-100], b"PK\x03\x04", b"text,label\n"):
        Path(path).write_bytes(damaged)
        with pytest.raises(DataError, match="not a sound xlsx file"):
            read(path)


def test_the_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"openpyxl.*seqtrain\[excel\].*csv"):
        read(str(tmp_path / "a.xlsx"))


@pytest.mark.parametrize("rows", [[], [["read me"]], [["text", "label"]]])
def test_a_sheet_without_rows_is_refused_with_the_names_of_others(tmp_path, rows):
    path = write(tmp_path / "a.xlsx", Notes=rows, Answers=[["text", "label"], ["one", "a"]])
    with pytest.raises(DataError, match=r"no rows.*'Notes'.*'Answers'.*data\.sheet"):
        read(path, "text", "label")
    assert read(path, "text", "label", sheet="Answers") == [(2, "one", "a")]
