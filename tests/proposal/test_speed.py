"""Time that `init` takes, large files, and lines about what takes long."""

import gzip
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.proposal import InitOptions, propose, reading


def seconds(path: Path) -> float:
    began = time.process_time()
    propose([str(path)], InitOptions())
    return time.process_time() - began


def wide_table(folder: Path, width: int, values: str) -> Path:
    """Write a csv file with so many columns of eight rows, and return its path."""
    draw = random.Random(0)
    text = "text" if values == "abc" else "c"
    lines = [",".join(["label", text, *(f"c{number}" for number in range(width))])]
    for row in range(8):
        cells = [draw.choice(values) for _ in range(width)]
        first = f"some words {row}" if text == "text" else "5"
        lines.append(",".join(["ab"[row % 2], first, *cells]))
    path = folder / f"{width}.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("values", ["abc", "123456789"])
def test_time_is_linear_in_the_columns(tmp_path, values):
    """24 times as many columns beside a text, or time steps, take about 26 times as long.

    It was 67 times when a name was looked for among all names.
    """
    narrow, wide = (wide_table(tmp_path, width, values) for width in (1000, 24_000))
    small = min(seconds(narrow) for _ in range(3))
    assert seconds(wide) < 45 * small


@pytest.mark.parametrize(("ending", "each"), [("csv", 30_000), ("csv.gz", 3000)])
def test_all_rows_of_a_file_that_is_sorted_by_label_are_counted(tmp_path, ending, each):
    lines = ["label,text", *(f'{"abcd"[i // each]},"some words, {i}"' for i in range(4 * each))]
    lines.append('e,"the last rows of all"')
    content = ("\n".join([*lines, lines[-1]]) + "\n").encode()
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    text = propose([str(path)], InitOptions()).text
    assert f"{4 * each + 2:,} rows, 5 classes" in text
    assert parse_config(text).data.validation == (0.02 if each > 10_000 else 0.1)


def test_ids_of_scattered_rows_are_counted_over_the_whole_file(tmp_path):
    draw, ids = random.Random(0), 4000
    outcome = [draw.choice(["buy", "leave"]) for _ in range(ids)]
    with open(tmp_path / "log.csv", "w") as file:
        file.write("time,customer,page,outcome\n")
        for i in range(120_000):
            own = draw.randrange(ids)
            file.write(f"{1700000000 + i},K{own:05d},{draw.choice('abcd')},{outcome[own]}\n")
    text = propose([str(tmp_path / "log.csv")], InitOptions(label="outcome")).text
    config = parse_config(text)
    assert (config.data.id, config.data.order) == ("customer", "time")
    assert f"{ids:,} sequences" in text


def test_quoted_texts_of_several_lines_are_whole_records(tmp_path):
    draw = random.Random(0)
    with open(tmp_path / "a.csv", "w") as file:
        file.write("review,label\n")
        for i in range(60_000):
            lines = "\n".join("words of a line" for _ in range(draw.choice([1, 2, 5])))
            file.write(f'"{lines} {i}",class_{"ab"[i % 2]}\n')
    assert "60,000 rows" in propose([str(tmp_path / "a.csv")], InitOptions()).text


def write_rows(path: Path, rows: list[tuple[str, str]]) -> str:
    """Write labelled texts in the form that the name of the path tells, and return the path."""
    if path.suffix == ".parquet":
        arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        labels, texts = zip(*rows, strict=True)
        writer.write_table(arrow.table({"label": labels, "text": texts}), path, row_group_size=300)
    elif path.suffix == ".npz":
        series = np.array([[len(text) / 3, *range(7)] for _, text in rows], dtype=np.float32)
        np.savez(path, X=series, y=np.array([label for label, _ in rows]))
    else:
        for number, (label, text) in enumerate(rows):
            folder = path / label
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_text(text)
    return str(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.npz", "folder"])
def test_all_rows_of_other_inputs_are_counted(tmp_path, name):
    rows = [("abcd"[i // 400], f"some words {i}") for i in range(1600)]
    text = propose([write_rows(tmp_path / name, rows)], InitOptions()).text
    assert "1,600 rows, 4 classes" in text


def test_long_steps_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FIRST_SECONDS", 0.0)
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "".join(f"{'ab'[i % 2]},words {i}\n" for i in range(5000)))
    reports: list[tuple[str, int, float]] = []
    propose([str(path)], InitOptions(), progress=lambda *report: reports.append(report))
    steps, rows, shares = zip(*reports, strict=True)
    assert "a.csv" in steps[0]
    assert list(rows) == sorted({*rows})
    assert shares[-1] == pytest.approx(rows[-1] / 5000, abs=0.2)


def test_init_does_not_import_torch(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,text\n" + "".join(f"{'ab'[i % 2]},some words {i}\n" for i in range(60)))
    script = (
        "import sys; from seqtrain.proposal import InitOptions, propose;"
        f"propose([{str(path)!r}], InitOptions()); assert 'torch' not in sys.modules;"
        "assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ))
