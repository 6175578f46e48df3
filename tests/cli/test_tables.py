"""Tables on terminals of any width: columns go before a digit does."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from seqtrain.cli.output.table import TableColumn, aligned, fitting, print_table

COLUMNS = [
    TableColumn("line"),
    TableColumn("probability"),
    TableColumn("label", "words"),
    TableColumn("loss", rank=2),
    TableColumn("sequence", "text", rank=1),
]
ROWS = [
    ("7", "99.87%", "short", "0.1234", "日本語の文章です" * 20),
    ("1234567", "5.00%", "a label of many letters, \x1b[31mred", "12.5000", "words " * 40),
]


def printed(width: int) -> list[str]:
    file = io.StringIO()
    print_table(Console(file=file, width=width, color_system=None), COLUMNS, ROWS)
    return file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(200, ()), (80, ()), (62, ("loss",)), (45, ("loss", "sequence")), (12, ("loss", "sequence"))],
)
def test_columns_go_by_rank_and_no_digit_is_lost(
    width: int, left_out: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(width)
    text = "\n".join(lines)
    assert width < 40 or all(cell_len(line) <= width for line in lines)
    for column, *cells in zip(COLUMNS, *ROWS, strict=True):
        assert (column.name in text) != (column.name in left_out)
        if column.kind == "number" and column.name not in left_out:
            assert all(cell in text for cell in cells)
    assert "\x1b" not in text
    said = capsys.readouterr().err
    rest = ("", "no room for 1 column\n", "no room for 2 columns\n")
    assert said == rest[len(left_out)]


def test_words_go_on_in_the_next_line_and_texts_are_cut() -> None:
    text = "\n".join(printed(80))
    assert "…" in text
    assert "words words" in text
    folded = "".join(printed(36)[3:]).replace(" ", "").replace("12345675.00%", "")
    assert "alabelofmanyletters" in folded


def test_rows_one_by_one_fill_their_widths() -> None:
    columns = [TableColumn("label", "words", width=5), TableColumn("p", rank=1, width=6)]
    assert [aligned(columns, row) for row in (("a label", "5%"), ("日", "50%"))] == [
        *("a la…     5%", "日       50%"),
    ]
    assert fitting(columns, 11) == columns[:1]
