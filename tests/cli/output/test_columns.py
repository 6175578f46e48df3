"""Tables on terminals of any width: columns go before a digit does."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from seqtrain.cli.output.columns import Column, fitting, print_columns

COLUMNS = [
    Column("line", ["7", "1234567"]),
    Column("probability", ["99.87%", "5.00%"]),
    Column("label", ["short", "a label of many letters, \x1b[31mred"], "words"),
    Column("loss", ["0.1234", "12.5000"], rank=2),
    Column("sequence", ["日本語の文章です" * 20, "words " * 40], "text", rank=1),
]


def printed(width: int) -> list[str]:
    file = io.StringIO()
    print_columns(Console(file=file, width=width, color_system=None), COLUMNS)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [45, 60, 80, 120, 200])
def test_no_digit_is_lost_and_no_line_is_wider(width: int) -> None:
    lines = printed(width)
    shown = [column.name for column in fitting(COLUMNS, width)]
    assert all(cell_len(line) <= width for line in lines)
    text = "\n".join(lines)
    for column in COLUMNS:
        if column.name in shown and column.kind == "number":
            assert all(cell in text for cell in column.cells)
    assert all(name in text for name in shown)
    assert "\x1b" not in text


def test_what_is_never_left_out_keeps_its_digits() -> None:
    lines = printed(12)
    assert any("1234567" in line and "5.00%" in line for line in lines)


def test_room_is_shared_evenly() -> None:
    columns = [Column(name, ["w" * 40], "words") for name in "ab"]
    file = io.StringIO()
    print_columns(Console(file=file, width=45, color_system=None), columns)
    row = next(line for line in file.getvalue().splitlines() if "w" in line)
    assert [len(cell) for cell in row.split()] == [20, 20]


def test_columns_go_by_rank() -> None:
    names = [[column.name for column in fitting(COLUMNS, width)] for width in (200, 62, 45, 9)]
    assert names == [
        ["line", "probability", "label", "loss", "sequence"],
        ["line", "probability", "label", "sequence"],
        ["line", "probability", "label"],
        ["line", "probability", "label"],  # of rank 0: never left out
    ]


def test_words_go_on_in_the_next_line_and_texts_are_cut() -> None:
    text = "\n".join(printed(80))
    assert "…" in text
    assert "words words" in text
    folded = "".join(printed(36)[3:]).replace(" ", "").replace("12345675.00%", "")
    assert "alabelofmanyletters" in folded
