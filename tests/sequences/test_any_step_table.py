"""Random step tables in every format give the sequences that an independent reading gives."""

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.examples import seeds
from tests.helpers.reading import file_source, read_rows, schema_of, table_given
from tests.helpers.step_tables import (
    SCHEMA,
    Step,
    assert_equal,
    cells_of,
    content,
    expected,
    random_table,
)
from tests.helpers.tasks import write_table


def write(path: Path, rows: list[Step], draw: random.Random) -> Path:
    """Write a table as the ending of the path says."""
    table = cells_of(rows)
    order = draw.sample([*table[0]], len(table[0]))
    table = [{name: row[name] for name in order} for row in table]
    package = {".parquet": "pyarrow", ".xlsx": "openpyxl"}.get(path.suffix)
    if package is not None:
        pytest.importorskip(package)
    write_table(path, table, draw, row_group_size=3)
    return path


ENDINGS = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx", "arff")


@pytest.mark.parametrize("ending", ENDINGS)
def test_files_give_the_sequences_of_an_independent_reading(ending, tmp_path):
    for seed in seeds(14):
        kind, rows = random_table(seed)
        draw = random.Random(seed)
        path = write(tmp_path / f"a.{ending}", rows, draw)
        name = "jsonl" if ending == "json" else ending
        found = [content(x) for x in read_rows(file_source(str(path), name, **SCHEMA))]
        assert_equal(found, expected(kind, rows), (seed, kind))


def typed(kind: str, row: Step) -> Any:
    """Return a time of the order as Python's own type, or as it is."""
    if kind in ("naive", "zoned") and row.moment % 1000 == 0:
        zone = timezone.utc if kind == "zoned" else None
        return datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=row.moment // 1000)
    return row.at


@pytest.mark.parametrize("library", ["dict", "records", "pandas", "polars", "pyarrow"])
def test_tables_in_memory_give_the_same(library, tmp_path):
    for seed in seeds(14):
        kind, rows = random_table(seed)
        if random.Random(seed).random() < 0.5 and all(
            isinstance(typed(kind, row), datetime) for row in rows
        ):
            rows = [row._replace(at=typed(kind, row)) for row in rows]
        records = cells_of(rows)
        columns = {name: [row[name] for row in records] for name in records[0]}
        data: Any = {"dict": columns, "records": records}.get(library)
        if data is None and library == "pyarrow":
            data = pytest.importorskip("pyarrow").table(columns)
        elif data is None:
            data = pytest.importorskip(library).DataFrame(columns)
        found = [content(x) for x in read_rows(table_given(data, schema_of(**SCHEMA)))]
        assert_equal(found, expected(kind, rows), (seed, kind))
