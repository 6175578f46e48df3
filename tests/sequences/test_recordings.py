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


@pytest.mark.parametrize("format", ["txt", "csv"])
def test_predictions_need_no_file_of_labels_with_as_many_rows(format, cli):
    rows = [f"{'late' if number % 3 else 'good'} word{number % 7}" for number in range(20)]
    labels = ["bad" if "late" in row else "fine" for row in rows]
    is_table = format == "csv"
    names = {"text": ["text"] * is_table, "mood": ["mood"] * is_table}
    Path(f"texts.{format}").write_text("\n".join([*names["text"], *rows]) + "\n")
    Path(f"mood.{format}").write_text("\n".join([*names["mood"], *labels]) + "\n")
    columns = "sequence: text," if is_table else "format: txt,"
    Path("c.yaml").write_text(
        f"data: {{train: texts.{format}, validation: 0.2, {columns} label: mood,\n"
        f"  join: [{{file: mood.{format}, on: row}}]}}\ntraining: {{max_epochs: 1}}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r")
    for count in (1, 20, 25):
        given = [*names["text"], *(rows + rows)[:count]]
        Path(f"new.{format}").write_text("\n".join(given) + "\n")
        found = cli("predict", f"new.{format}", "r", *["--keep", "all"] * is_table).out
        assert len(found.splitlines()) == 1 + count
        if is_table:
            assert found.startswith("text\tlabel\t")
    assert len(cli("predict", "-", "r", stdin="late\ngood\n").out.splitlines()) == 3


def write_recordings(draw: random.Random, count: int = 12) -> None:
    Path("rec").mkdir()
    for number in range(count):
        lines = [",".join(map(str, row)) for row in series(draw, number % 2)]
        name = f"rec/{['sit', 'walk'][number % 2]}_{number:02d}.csv"
        Path(name).write_text("\n".join(["x,y", *lines]) + "\n")


def test_predict_reads_files_of_any_name(cli):
    """The label isn't needed; a row feature from the name is, and it is named where it lacks."""
    write_recordings(random.Random(3))
    table = "data: {train: rec/*.csv, id: file, label: activity, steps: {x: number, y: number},\n"
    for name, features in (("a", ""), ("b", ", static: {take: number}")):
        Path(f"{name}.yaml").write_text(
            f"{table}  path: '(?P<activity>[a-z]+)_(?P<take>[0-9]+)'{features}}}\n"
            "training: {max_epochs: 1}\n"
        )
        cli("fit", f"{name}.yaml", "--run-dir", name)
    Path("far").mkdir()
    named, content = Path("rec/walk_03.csv"), Path("rec/walk_03.csv").read_text()
    known = cli("predict", named, "a").out.splitlines()[1].split("\t")[1:]
    for path in ("new.csv", "far/take.csv"):
        Path(path).write_text(content)
        assert cli("predict", path, "a").out.splitlines()[1].split("\t") == [path, *known]
    assert cli("predict", "-", "a", stdin=content).out.split("\t")[-2:] == [
        known[0],
        known[1] + "\n",
    ]
    refused = cli("predict", "new.csv", "b", code=2).err
    assert "new.csv: " in refused
    assert "'take'" in refused
    cli("eval", "a", "--data", "new.csv", code=2)
    cli("eval", "a", "--data", named)


def test_keys_of_a_file_of_labels_are_counted_over_all_recordings(cli):
    write_recordings(random.Random(4))
    lines = [f"{path},{path.name.partition('_')[0]}" for path in sorted(Path("rec").iterdir())]
    Path("labels.csv").write_text("\n".join(["file,activity", *lines, "rec/gone.csv,sit"]) + "\n")
    Path("c.yaml").write_text(
        "data: {train: rec/*.csv, join: [{file: labels.csv, on: file}], id: file,\n"
        "  label: activity, steps: {x: number, y: number}}\n"
        "training: {max_epochs: 1}\n"
    )
    said = [
        line for line in cli("fit", "c.yaml", "--run-dir", "r").err.splitlines() if "key" in line
    ]
    assert len(said) == 1
    assert "1 key" in said[0]
    assert "rec/gone.csv" in said[0]


def test_a_single_file_has_no_folder_of_a_class(cli):
    draw = random.Random(5)
    for label in ("sit", "walk"):
        Path("set", label).mkdir(parents=True)
        for number in range(4):
            rows = [" ".join(map(str, row)) for row in series(draw, label == "walk")]
            Path("set", label, f"{number}.csv").write_text("\n".join(rows) + "\n")
    Path("c.yaml").write_text("data: {train: set, kind: features}\ntraining: {max_epochs: 1}\n")
    cli("fit", "c.yaml", "--run-dir", "r")
    Path("new.csv").write_text(Path("set/sit/0.csv").read_text())
    assert cli("predict", "new.csv", "r").out.count("\n") == 2
    refused = cli("eval", "r", "--data", "new.csv", code=2).err
    assert "folder per class" in refused
    cli("eval", "r", "--data", "set")


@pytest.mark.parametrize("format", ["csv", "npy"])
@pytest.mark.parametrize("id", ["file", "take"])
def test_predict_reads_a_folder_of_folders_and_a_file_elsewhere(format, id, cli):
    """A file whose path lacks the part that names it is named by its path."""
    draw = random.Random(3)
    for number in range(12):
        path = Path("in", ["up", "down"][number % 2] + f"_{number % 3}", f"t{number}.{format}")
        path.parent.mkdir(parents=True, exist_ok=True)
        values = series(draw, number % 2)
        if format == "npy":
            np.save(path, np.array(values))
        else:
            path.write_text("\n".join(["0,1", *(",".join(map(str, row)) for row in values)]) + "\n")
    Path("c.yaml").write_text(
        f"data: {{train: in/*/*.{format}, validation: 0.25, id: {id}, label: way,\n"
        "  path: '(?P<way>[a-z]+)_[0-9]/(?P<take>t[0-9]+)', steps: {'0': number, '1': number}}\n"
        "model: {hidden_size: 4}\ntraining: {max_epochs: 1}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r", "--quiet")
    Path("new").mkdir()
    Path("in", "up_0", f"t0.{format}").rename(f"new/one.{format}")
    for given, count in (
        ("in", 11),
        (f"in/*/*.{format}", 11),
        (f"new/one.{format}", 1),
        ("new", 1),
    ):
        rows = cli("predict", given, "r", "--format", "jsonl").out.splitlines()
        assert len({json.loads(row)[id] for row in rows}) == count
    assert json.loads(rows[0])[id] == f"new/one.{format}"
