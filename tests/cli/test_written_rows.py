"""Rows of csv, tsv and jsonl that commands write are read back equal by common readers."""

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.text import delimited_line
from tests.helpers.examples import SOME
from tests.helpers.tiny import Cli, write_jsonl

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

PIECES = ['"', '""', "'", "\t", ",", "\n", "\r\n", "\r", " ", "\\", "\ufeff", "NA", "#", "=1+1"]
PIECES += ["x", "é", "字", "\u2028", "\x85", "0012", "1e5", ";", "|", "{", "[1]", "null"]
DELIMITERS = {"csv": ",", "tsv": "\t"}


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
    file = io.BytesIO(text.encode())
    table = pd.read_csv(file, sep=delimiter, dtype=str, keep_default_na=False, header=None)
    return [list(map(str, row)) for row in table.to_numpy().tolist()]


def by_polars(text: str, delimiter: str) -> list[list[str]]:
    """Polars reads empty cells as null."""
    table = pl.read_csv(text.encode(), separator=delimiter, infer_schema=False, has_header=False)
    return [["" if cell is None else cell for cell in row] for row in table.rows()]


@pytest.mark.parametrize("reader", [by_csv, by_pandas, by_polars], ids=lambda each: each.__name__)
@pytest.mark.parametrize("delimiter", DELIMITERS.values(), ids=DELIMITERS)
def test_readers_return_the_cells(reader: Callable[[str, str], list[list[str]]], delimiter):
    for seed in range(10 * SOME):
        rows = [["a", "b", "c"], *random_cells(seed, 6)]
        text = "".join(delimited_line(row, delimiter) for row in rows)
        assert reader(text, delimiter) == rows, seed


def kept_cells(cli: Cli, source: Path, run: Path, *options: str) -> list[dict[str, str]]:
    """Return the columns a, b and c of a file, as seqtrain reads them."""
    out = cli("predict", source, run, "--keep", "a,b,c", "--format", "jsonl", *options).out
    return [{name: json.loads(line)[name] for name in "abc"} for line in out.splitlines()]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_seqtrain_reads_what_predict_writes(trained, tmp_path, cli, ending):
    run, source = trained / "run", tmp_path / "in.jsonl"
    cells = random_cells(1, 200)
    rows = [dict(zip("abc", row, strict=True)) for row in cells]
    write_jsonl(source, [{**row, "text": 'rise "so'} for row in rows])
    written = tmp_path / f"out.{ending}"
    cli("predict", source, run, "--keep", "a,b,c,text", "--output", written)
    assert kept_cells(cli, written, run) == rows
    text = written.read_bytes().decode()
    if ending in DELIMITERS:
        for reader in (by_csv, by_pandas, by_polars):
            assert [row[:3] for row in reader(text, DELIMITERS[ending])[1:]] == cells
    else:
        table = pd.read_json(io.StringIO(text), lines=True, dtype=False, convert_dates=False)
        assert table[["a", "b", "c"]].to_numpy().tolist() == cells
        assert [list(row) for row in pl.read_ndjson(text.encode())["a", "b", "c"].rows()] == cells
