"""Random cells, and common readers that read them back."""

import csv
import io
import random

import pytest

PIECES = ['"', '""', "'", "\t", ",", "\n", "\r\n", "\r", " ", "\\", "\ufeff", "NA", "#", "=1+1"]
PIECES += ["x", "é", "字", "\u2028", "\x85", "0012", "1e5", ";", "|", "{", "[1]", "null"]


def random_cells(seed: int, count: int) -> list[list[str]]:
    """Return rows of three cells that are built from pieces which readers treat specially."""
    drawn = random.Random(seed)
    return [
        ["".join(drawn.choices(PIECES, k=drawn.randint(0, 4))) for _ in range(3)]
        for _ in range(count)
    ]


def by_csv(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def by_pandas(text: str, delimiter: str) -> list[list[str]]:
    pandas = pytest.importorskip("pandas")
    file = io.BytesIO(text.encode())
    table = pandas.read_csv(file, sep=delimiter, dtype=str, keep_default_na=False, header=None)
    return [list(map(str, row)) for row in table.to_numpy().tolist()]


def by_polars(text: str, delimiter: str) -> list[list[str]]:
    """Polars reads empty cells as null."""
    polars = pytest.importorskip("polars")
    table = polars.read_csv(
        text.encode(), separator=delimiter, infer_schema=False, has_header=False
    )
    return [["" if cell is None else cell for cell in row] for row in table.rows()]
