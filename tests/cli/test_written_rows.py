"""Rows of csv, tsv and jsonl that commands write are read back equal by common readers."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.text import delimited_line
from tests.helpers.examples import SOME
from tests.helpers.tiny import Cli, write_jsonl
from tests.helpers.written_rows import by_csv, by_pandas, by_polars, random_cells

DELIMITERS = {"csv": ",", "tsv": "\t"}


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
        pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
        table = pandas.read_json(io.StringIO(text), lines=True, dtype=False)
        assert table[["a", "b", "c"]].to_numpy().tolist() == cells
        rows = polars.read_ndjson(text.encode())["a", "b", "c"].rows()
        assert [list(row) for row in rows] == cells
