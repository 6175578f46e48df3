"""Times of random types in typed columns: sorted exactly, and of the type that texts have."""

import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.examples import seeds
from tests.helpers.reading import Given, completed, file_source, read_rows, schema_of, table_given

SCHEMA: dict[str, Any] = {
    "kind": "steps", "id": "id", "order": "t", "label": "l",
    "steps": {"place": "token", "since": "order"},
}  # fmt: skip
SECOND, DAY = 10**9, 86_400 * 10**9
UNITS = {"s": SECOND, "ms": 10**6, "us": 1000, "ns": 1}
TYPES = {"moment": "date", "zoned": "date", "day": "date", "clock": "duration",
         "length": "duration", "whole": "number", "real": "number", "exact": "number"}  # fmt: skip
EPOCH = datetime(1970, 1, 1)
OWN_ZONES = ("dict", "pandas", "polars")
"""Tables whose times keep the time zones that they were given with."""


def random_times(draw: random.Random, kind: str, unit: str) -> list[int]:
    """Return times as numbers of nanoseconds that the unit can hold; numbers as thousandths."""
    size, count = UNITS[unit], draw.randint(2, 7)
    if kind in ("whole", "real", "exact"):
        scale = {"whole": 1000, "real": 125, "exact": 1}[kind]
        return [scale * draw.randrange(-(10**5), 10**5) for _ in range(count)]
    if kind == "day":
        return [DAY * draw.randrange(-9000, 30000) for _ in range(count)]
    if kind == "clock":
        return [size * draw.randrange(DAY // size) for _ in range(count)]
    if kind == "length":
        return [size * draw.randrange(-9 * DAY // size, 99 * DAY // size) for _ in range(count)]
    first = size * draw.randrange(-9000 * DAY // size, 30000 * DAY // size)
    if draw.random() < 0.5:  # the smallest steps of the unit
        return [first + size * draw.randrange(5) for _ in range(count)]
    return [first, *(size * draw.randrange(30000 * DAY // size) for _ in range(1, count))]


def text_of(kind: str, value: int) -> str:
    """Return a time as a cell of text."""
    if kind in ("whole", "real", "exact"):
        return str(Decimal(value) / 1000)
    if kind == "day":
        return (EPOCH + timedelta(days=value // DAY)).date().isoformat()
    if kind in ("clock", "length"):
        whole, rest = divmod(abs(value), SECOND)
        sign = "-" if value < 0 else ""
        hours = f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{rest:09d}"
        return sign + hours
    moment = (EPOCH + timedelta(seconds=value // SECOND)).isoformat()
    return f"{moment}.{value % SECOND:09d}" + ("+00:00" if kind == "zoned" else "")


def python_of(kind: str, value: int, draw: random.Random) -> Any:
    """Return a time as an object of Python, which holds microseconds."""
    if kind in ("whole", "real", "exact"):
        number = Decimal(value) / 1000
        return int(number) if kind == "whole" else float(number) if kind == "real" else number
    length = timedelta(microseconds=value // 1000)
    if kind == "zoned":
        zone = timezone(timedelta(minutes=draw.choice([0, 90, -480])))
        return (EPOCH.replace(tzinfo=timezone.utc) + length).astimezone(zone)
    whole = {"length": length, "day": date(1970, 1, 1) + length, "clock": (EPOCH + length).time()}
    return whole.get(kind, EPOCH + length)


def numpy_of(kind: str, unit: str, values: list[int]) -> Any:
    """Return times as an array of numpy, or None if numpy has no such type."""
    numbers = np.array(values)
    if kind in ("moment", "length"):
        form = "datetime64" if kind == "moment" else "timedelta64"
        return (numbers // UNITS[unit]).astype(f"{form}[{unit}]")
    if kind == "day":
        return (numbers // DAY).astype("datetime64[D]")
    forms = {"whole": np.int32, "real": np.float32}
    return (numbers / 1000).astype(forms[kind]) if kind in forms else None


def arrow_of(kind: str, unit: str, values: list[int]) -> Any:
    """Return times as an array of pyarrow of the type that fits."""
    pa = pytest.importorskip("pyarrow")
    if kind in ("whole", "real", "exact"):
        forms = {"whole": pa.int16(), "real": pa.float32(), "exact": pa.decimal128(12, 3)}
        numbers = [python_of(kind, value, random.Random(0)) for value in values]
        return pa.array(numbers, pa.int32() if kind == "whole" else forms[kind])
    counts = [value // (DAY if kind == "day" else UNITS[unit]) for value in values]
    if kind == "clock":
        is_short = unit in ("s", "ms")
        form = pa.time32(unit) if is_short else pa.time64(unit)
        return pa.array(np.array(counts, np.int32 if is_short else np.int64)).cast(form)
    if kind == "day":
        return pa.array(np.array(counts, np.int32)).cast(pa.date32())
    zone = "+02:00" if kind == "zoned" else None
    form = pa.duration(unit) if kind == "length" else pa.timestamp(unit, zone)
    return pa.array(np.array(counts, np.int64)).cast(form)


def write_csv(path: Path, table: dict[str, list[Any]]) -> Given:
    lines = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True)), ""]
    path.write_text("\n".join(lines))
    return file_source(str(path), "csv", **SCHEMA)


def sources(kind: str, values: list[int], draw: random.Random, unit: str, folder: Path) -> Any:
    """Yield the name of each form of a table, and its source."""
    count = len(values)
    other = {"id": ["i"] * count, "place": [f"p{i}" for i in range(count)], "l": ["x"] * count}
    schema = schema_of(**SCHEMA)
    yield "csv", write_csv(folder / "a.csv", {**other, "t": [text_of(kind, x) for x in values]})
    array = numpy_of(kind, unit, values)
    if array is not None:
        yield "numpy", table_given({**other, "t": array}, schema)
    is_exact = all(value % 1000 == 0 for value in values) or TYPES[kind] == "number"
    objects = [python_of(kind, value, draw) for value in values]
    if is_exact:
        yield "dict", table_given({**other, "t": objects}, schema)
        table: Any = pytest.importorskip("pandas").DataFrame({**other, "t": objects})
        yield "pandas", table_given(table, schema)
        if kind != "zoned" or len({x.tzinfo for x in objects}) == 1:
            table = pytest.importorskip("polars").DataFrame({**other, "t": objects})
            yield "polars", table_given(table, schema)
    if array is not None:
        table = pytest.importorskip("pandas").DataFrame({**other, "t": array})
        yield "pandas of numpy", table_given(table, schema)
    arrow = pytest.importorskip("pyarrow").table({**other, "t": arrow_of(kind, unit, values)})
    yield "pyarrow", table_given(arrow, schema)
    yield "polars of arrow", table_given(pytest.importorskip("polars").from_arrow(arrow), schema)
    if unit != "ns" or kind not in ("clock", "length"):
        yield "pandas of arrow", table_given(arrow.to_pandas(), schema)
    pytest.importorskip("pyarrow.parquet").write_table(arrow, folder / "a.parquet")
    yield "parquet", file_source(str(folder / "a.parquet"), "parquet", **SCHEMA)
    if kind in ("moment", "day", "clock", "whole", "real") and unit == "s":
        book = pytest.importorskip("openpyxl").Workbook()
        rows = zip(*other.values(), objects, strict=True)
        for row in [[*other, "t"], *rows]:
            book.active.append([*row])
        book.save(folder / "a.xlsx")
        yield "xlsx", file_source(str(folder / "a.xlsx"), "xlsx", **SCHEMA)


@pytest.mark.parametrize("kind", TYPES)
def test_typed_columns_sort_and_grow_as_texts_do(kind, tmp_path):
    for seed in seeds(4):
        draw = random.Random(seed)
        unit = draw.choice([*UNITS])
        values = random_times(draw, kind, unit)
        order = sorted(range(len(values)), key=lambda i: values[i])
        grown = np.diff([values[i] for i in order], prepend=values[order[0]])
        scale = 1000 if TYPES[kind] == "number" else SECOND
        expected = np.float32([int(x) / scale for x in grown])
        for name, source in sources(kind, values, draw, unit, tmp_path):
            where = (seed, unit, name)
            own = source.with_schema(completed(source))
            assert own.schema.order_type == TYPES[kind], where
            (found,) = read_rows(own)
            assert found.problem is None, (where, found.problem)
            assert found.sequence.token_texts()[0] == [f"p{i}" for i in order], where
            np.testing.assert_array_equal(
                found.sequence.numbers[:, 0], expected, err_msg=str(where)
            )


def iso(kind: str, value: int) -> str:
    """Return a time as Python's `isoformat` writes it, with nanoseconds where there are any."""
    if kind == "length":
        rest = f".{abs(value) % SECOND:09d}" if value % SECOND else ""
        return f"{'-' * (value < 0)}PT{abs(value) // SECOND}{rest}S"
    text, rest = text_of(kind, value), ""
    if kind != "day":
        text, _, rest = text.removesuffix("+00:00").partition(".")
        rest = f".{rest.removesuffix('000')}" if rest.strip("0") else ""
    return text + rest + ("+00:00" if kind == "zoned" else "")


@pytest.mark.parametrize("kind", ["moment", "zoned", "day", "clock", "length"])
def test_times_that_are_tokens_have_one_text_in_all_tables(kind, tmp_path):
    schema = {**SCHEMA, "order": None, "steps": {"t": "token"}}
    for seed in seeds(4):
        draw = random.Random(seed)
        unit = draw.choice([*UNITS])
        values = random_times(draw, kind, unit)
        for name, source in sources(kind, values, draw, unit, tmp_path):
            is_other = name in ("csv", "xlsx") or (kind == "zoned" and name in OWN_ZONES)
            if is_other or (name == "pandas of numpy" and kind == "day"):  # pandas has no days
                continue
            (found,) = read_rows(
                source.with_schema(schema_of(**schema, format=source.schema.format))
            )
            expected = [iso(kind, value) for value in values]
            if kind == "zoned":  # 02:00 hours ahead
                expected = [iso("moment", value + 7200 * SECOND) + "+02:00" for value in values]
            assert found.sequence.token_texts()[0] == expected, (seed, unit, name)
