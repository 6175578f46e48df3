"""Recordings with the label in a name, and labels in other files: fit and predict."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def series(draw: random.Random, label: int) -> list[list[float]]:
    count = draw.randint(5, 15)
    return [[4 * label + draw.gauss(0, 0.2), draw.random()] for _ in range(count)]


@pytest.mark.parametrize("format", ["csv", "npy", "parquet"])
def test_each_file_is_a_sequence_with_the_label_in_its_name(format, cli):
    draw = random.Random(0)
    Path("rec").mkdir()
    for number in range(24):
        label = number % 2
        path, values = f"rec/{['sit', 'walk'][label]}_{number:02d}.{format}", series(draw, label)
        if format == "npy":
            np.save(path, np.array(values))
        elif format == "parquet":
            pa = pytest.importorskip("pyarrow")
            x, y = np.array(values).T
            pytest.importorskip("pyarrow.parquet").write_table(pa.table({"0": x, "1": y}), path)
        else:
            lines = ["# by hand", "0,1", *(",".join(map(str, row)) for row in values)]
            Path(path).write_text("\n".join(lines) + "\n")
    Path("c.yaml").write_text(
        f"data: {{train: rec/*.{format}, validation: 0.25, id: file, label: activity,\n"
        "  path: '(?P<activity>[a-z]+)_', steps: {'0': number, '1': number}}\n"
        "training: {max_epochs: 8}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r")
    names = sorted(str(path) for path in Path("rec").iterdir())
    for given, files in (
        ("rec", names),
        (f"rec/walk*.{format}", names[12:]),
        (names[0], names[:1]),
    ):
        rows = [
            json.loads(row)
            for row in cli("predict", given, "r", "--format", "jsonl").out.splitlines()
        ]
        assert [row["file"] for row in rows] == files
        right = [row["label"] in row["file"] for row in rows]
        assert sum(right) >= 0.9 * len(right)


def test_labels_of_another_file_are_joined(cli):
    draw = random.Random(1)
    for split, count in (("train", 40), ("test", 10)):
        rows, labels = ["id,t,x"], ["key,surface"]
        for number in range(count):
            label = draw.randrange(2)
            rows += [f"s{number},{t},{x:.3f}" for t, (x, _) in enumerate(series(draw, label))]
            labels.append(f"s{number},{['soft', 'hard'][label]}")
        Path(f"X_{split}.csv").write_text("\n".join(rows) + "\n")
        Path(f"y_{split}.csv").write_text("\n".join([*labels, "s999,soft"]) + "\n")
    Path("c.yaml").write_text(
        f"data: {{train: {Path.cwd()}/X_train.csv, validation: 0.25, test: X_test.csv,\n"
        "  id: id, order: t,\n"
        "  steps: {x: number}, label: surface,\n"
        f"  join: [{{file: {Path.cwd()}/y_train.csv, on: {{left: id, right: key}}}}]}}\n"
        "training: {max_epochs: 8}\n"
    )
    ended = cli("fit", "c.yaml", "--run-dir", "r")
    assert "s999" in ended.err
    assert json.loads(Path("r/test.json").read_text())["accuracy"] >= 0.9
    Path("elsewhere").mkdir()
    for name in ("X_test.csv", "y_test.csv"):
        Path(name).rename(Path("elsewhere", name))
    scores = cli("eval", "r", "--data", "elsewhere/X_test.csv", "--json").json
    assert scores["accuracy"] == json.loads(Path("r/test.json").read_text())["accuracy"]
    Path("elsewhere/X_test.csv").rename("X_test.csv")
    Path("y_train.csv").unlink()
    rows = cli("predict", "X_test.csv", "r").out.splitlines()
    assert len(rows) == 11
    assert str(Path.cwd()) not in Path("r/best/model.json").read_text()


def test_files_aligned_row_by_row_are_joined(cli):
    draw = random.Random(2)
    for split, count in (("train", 40), ("test", 10)):
        labels = [draw.randrange(2) for _ in range(count)]
        lines = [" ".join(f"{x:.3f}" for x, _ in series(draw, label)) for label in labels]
        Path(f"X_{split}.txt").write_text("\n".join(lines) + "\n")
        Path(f"y_{split}.txt").write_text("\n".join(str(label + 5) for label in labels) + "\n")
    Path("c.yaml").write_text(
        "data: {train: X_train.txt, validation: 0.25, test: X_test.txt, format: txt,\n"
        "  kind: features, label: 'y', join: [{file: y_train.txt, on: row}]}\n"
        "training: {max_epochs: 8}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r")
    scores = json.loads(Path("r/test.json").read_text())
    assert scores["labels"] == ["5", "6"]
    assert scores["accuracy"] >= 0.8
