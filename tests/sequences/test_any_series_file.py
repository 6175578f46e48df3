"""Random ts, npz and npy files give the series that plain readers of these formats give."""

import gzip
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.errors import DataError
from tests.helpers.examples import seeds
from tests.helpers.reading import file_source, read_rows

Series = list[tuple[np.ndarray, str | None]]
LABELS = ("a", "0", "-1", "1.0", "Café", "not up", "x,y", "?", "NaN", "#1", "@b")
NUMBERS = ("0", "-1", "+2.5", "1e-3", "-7E+2", ".5", "3.", "1e-45", "3.4e38", "-0.0", "16777217")
MISSING = ("?", "nan", "", "-", "na", "n/a", "null", "none")

KEYS = ("@problemName Odd One", "@timeStamps false", "@missing true", "@univariate false",
        "@equalLength false", "@seriesLength 3", "@dimensions 2", "# a comment", "")  # fmt: skip


def ts_text(draw: random.Random) -> str:
    """Return a ts file with keys, comments, blank lines and blanks as the archives have them."""
    channels, end = draw.randint(1, 3), draw.choice(["\n", "\r\n"])
    lines = draw.sample(KEYS, draw.randint(0, len(KEYS)))
    key = draw.choice(["@classLabel true", "@classlabel TRUE", "@ClassLabel  true a b"])
    lines.insert(draw.randint(0, len(lines)), key)
    lines.append(draw.choice(["@data", "@DATA"]))
    for _ in range(draw.randint(1, 9)):
        length, gap = draw.randint(0 if channels > 1 else 1, 6), draw.choice(["", " "])
        cells = [
            f",{gap}".join(
                draw.choice([*NUMBERS, *NUMBERS, "?", "NaN", "nan"]) for _ in range(length)
            )
            for _ in range(channels)
        ]
        lines.append(f"{gap}:{gap}".join([*cells, draw.choice(LABELS)]))
        lines += draw.choice([[], [], ["", "# one more"], ["% and one"], ["   "]])
    return end.join(lines) + draw.choice(["", end])


def read_ts(text: str) -> Series:
    """Read a ts file in the plainest way."""
    found, in_data = Series(), False
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if in_data and line.strip() and line[0] not in "#%":
            *channels, label = line.split(":")
            cells = [[*map(str.strip, x.split(","))] if x.strip() else [] for x in channels]
            numbers = [
                [math.nan if x.lower() in MISSING else float(x) for x in own] for own in cells
            ]
            with np.errstate(over="ignore"):
                values = np.array(numbers, np.float64).astype(np.float32).T
            if np.isinf(values).any():
                raise ValueError("too large")
            found.append((values, label.strip()))
        in_data = in_data or line.lower().split()[:1] == ["@data"]
    return found


def content(path: Path, format: str, **options: Any) -> Series:
    source = file_source(str(path), format, **{"kind": "features"} | options)
    found = list(read_rows(source, labelled=options.pop("labelled", True)))
    assert [x.problem for x in found] == [None] * len(found)
    return [(x.sequence, None if x.labels is None else x.labels[0]) for x in found]


def assert_equal(found: Series, wanted: Series, where: Any) -> None:
    assert [label for _, label in found] == [label for _, label in wanted], where
    for (one, _), (other, _) in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=str(where))


def test_ts_files_give_the_series_of_a_plain_reader(tmp_path):
    for seed in seeds(40):
        draw = random.Random(seed)
        text = ts_text(draw)
        raw = draw.choice([b"", b"\xef\xbb\xbf"]) + text.encode()
        is_packed = draw.random() < 0.3
        path = tmp_path / ("a.ts.gz" if is_packed else "a.ts")
        path.write_bytes(gzip.compress(raw) if is_packed else raw)
        assert_equal(content(path, "ts"), read_ts(text), seed)


def test_damaged_ts_files_are_refused_or_give_the_series_of_a_plain_reader(tmp_path):
    num_read = 0
    for seed in seeds(60):
        draw = random.Random(seed)
        text = [*ts_text(draw)]
        for _ in range(draw.choice([1, 1, 4])):
            place = draw.randrange(len(text))
            text[place : place + draw.choice([0, 1, 1, 3])] = draw.choice(
                [*",:?@#%.e-+ \n\t1", "inf", "1_0", "٣", "::", ",,", "true"]
            )
        (tmp_path / "a.ts").write_bytes("".join(text).encode())
        source = file_source(str(tmp_path / "a.ts"), "ts", kind="features")
        try:
            found = list(read_rows(source))
        except DataError:
            continue
        wanted = read_by_row("".join(text), len(found))
        for example, other in zip(found, wanted, strict=True):
            if example.problem is None:
                num_read += 1
                assert other is not None, seed
                label = (example.labels or ("",))[0]  # 1.0 is the class 1
                assert label.removesuffix(".0") == other[1].removesuffix(".0"), seed
                np.testing.assert_array_equal(example.sequence, other[0], err_msg=str(seed))
    assert num_read


def read_by_row(text: str, number: int) -> list[Any]:
    """Return the series of each row, or None if the plain reader fails at the row."""
    head, rows = list[str](), list[str]()
    for line in text.split("\n"):
        in_data = any(x.lower().split()[:1] == ["@data"] for x in head)
        is_row = in_data and line.strip() and line[0] not in "#%"
        (rows if is_row else head).append(line)
    found = list[Any]()
    for row in rows:
        values, colon, label = row.rpartition(":")
        truth = values.replace("true", "1")  # a cell of a column of numbers
        try:
            found += read_ts(f"@data\n{truth}{colon}{label}")
        except ValueError:
            found.append(None)
    assert len(found) == number
    return found


INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64)
TYPES = (*INTEGERS, np.float16, np.float32, np.float64, ">f4", ">i2")


def labels_of(generator: np.random.Generator, count: int) -> tuple[np.ndarray, list[str]]:
    """Return labels as an array of any type, and as text."""
    names = [*map(str, generator.choice(["a", "Café", "x y", "0", "-"], count))]
    numbers = generator.integers(-3, 4, count)
    array = [np.array(names), numbers, numbers.astype(np.float64), numbers.astype(">i4"),
             numbers.astype(np.float32)[:, None]][generator.integers(5)]  # fmt: skip
    return array, names if array.dtype.kind == "U" else [*map(str, numbers)]


def values_of(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers of any type and memory order; some are missing."""
    dtype = np.dtype(TYPES[generator.integers(len(TYPES))])
    with np.errstate(all="ignore"):
        array = (generator.normal(size=shape) * 50).astype(dtype)
    if dtype.kind == "f":
        array[generator.random(shape) < 0.15] = np.nan
    return np.asfortranarray(array) if generator.random() < 0.3 else array


def save(path: Path, generator: np.random.Generator, **arrays: np.ndarray) -> None:
    (np.savez if generator.random() < 0.5 else np.savez_compressed)(path, **arrays)


@pytest.mark.parametrize("layout", ["flat", "rectangle", "npy"])
def test_arrays_give_the_series_that_numpy_reads(layout, tmp_path):
    for seed in seeds(25):
        generator = np.random.default_rng(seed)
        count, channels = int(generator.integers(1, 9)), int(generator.integers(1, 4))
        is_one = generator.random() < 0.4  # then there is no axis of channels
        labels, names = labels_of(generator, count)
        path = tmp_path / ("X.npy" if layout == "npy" else "a.npz")
        if layout == "flat":
            lengths = generator.integers(0, 5, count)
            lengths[0] += 1
            shape = (int(lengths.sum()), *(() if is_one else (channels,)))
            values = values_of(generator, *shape)
            offsets = np.cumsum([0, *lengths])
            borders = {"offsets": offsets} if generator.random() < 0.5 else {"lengths": lengths}
            save(path, generator, values=values, labels=labels, **borders)
            parts = [values[a:b] for a, b in pairwise(offsets)]
        else:
            x = values_of(generator, count, 5, *(() if is_one else (channels,)))
            for row in range(count):
                if x.dtype.kind == "f":
                    x[row, generator.integers(0, 6) :] = np.nan
            if layout == "npy":
                np.save(path, x)
                np.save(tmp_path / "y.npy", labels)
            else:
                key = ["y", "Y", "y_train", "labels"][generator.integers(4)]
                save(
                    path,
                    generator,
                    **{["X", "x", "X_train"][generator.integers(3)]: x, key: labels},
                )
            parts = [without_padding(row) for row in x]
        wanted = [
            (part.reshape(len(part), 1 if is_one else channels).astype(np.float64), name)
            for part, name in zip(parts, names, strict=True)
        ]
        with np.errstate(all="ignore"):
            wanted = [(part.astype(np.float32), name) for part, name in wanted]
        found = content(path, "npz")
        assert_equal(found, wanted, seed)


def without_padding(row: np.ndarray) -> np.ndarray:
    """Return the steps up to the last one that has a value."""
    length = len(row)
    while length and row.dtype.kind == "f" and np.isnan(row[length - 1]).all():
        length -= 1
    return row[:length]


def test_symbols_in_arrays_are_their_numbers(tmp_path):
    for seed in seeds(10):
        generator = np.random.default_rng(seed)
        dtype = INTEGERS[generator.integers(len(INTEGERS))]
        lengths = generator.integers(0, 5, 6)
        values = generator.integers(0, 100, lengths.sum()).astype(dtype)
        labels, names = labels_of(generator, 6)
        save(tmp_path / "a.npz", generator, values=values, lengths=lengths, labels=labels)
        source = file_source(str(tmp_path / "a.npz"), "npz", kind="tokens")
        found = [(x.sequence, (x.labels or ("",))[0]) for x in read_rows(source)]
        parts = np.split(values, np.cumsum(lengths)[:-1])
        assert found == [([*map(str, x)], y) for x, y in zip(parts, names, strict=True)], seed
