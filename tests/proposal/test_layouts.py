"""Labels that aren't columns of the data files: in other files, in folders, or nowhere."""

import gzip
import json
import random
import re
import shlex
from glob import glob
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqtrain.config import parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import InitOptions, propose
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import (
    commands_in,
    follow_printed,
    run_conversion,
    run_conversions,
)
from tests.proposal.test_forms import draw, follow, name, proposed, recording, sentence, write
from tests.tables.test_xlsx import write as write_workbook

__all__ = ["draw"]


def write_pair(folder: Path, split: str, draw, form: str, *, subjects: bool = False) -> None:
    """Write 120 series as X_SPLIT, their labels as y_SPLIT, and perhaps who they are of.

    The form "plain csv" has no names of columns, in "pandas csv" they are numbers from 0, and in
    "words csv" only the labels, which are words, have none.
    """
    labels: list[object] = [r % 2 for r in range(120)]
    values = [[round(draw.gauss(r % 2, 1), 3) for _ in range(15)] for r in range(120)]
    folder.mkdir(parents=True, exist_ok=True)
    if form == "npy":
        np.save(folder / f"X_{split}.npy", np.array(values))
        np.save(folder / f"y_{split}.npy", np.array(labels))
        return
    mark, head, name = {
        "csv": (",", [f"t{k}" for k in range(15)], ["direction"]),
        "plain csv": (",", [], []),
        "pandas csv": (",", [str(k) for k in range(15)], ["0"]),
        "words csv": (",", [f"t{k}" for k in range(15)], []),
        "txt": (" ", [], []),
    }[form]
    if form == "words csv":
        labels = [["down", "up"][r % 2] for r in range(120)]
    form = form.split()[-1]
    write(folder / f"X_{split}.{form}", head, values, mark)
    write(folder / f"y_{split}.{form}", name, [[x] for x in labels], mark)
    if subjects:
        rows = [[f"p{r // 8}"] for r in range(120)]
        write(folder / f"subject_{split}.{form}", ["subject"] if head else [], rows, mark)


@pytest.mark.parametrize("form", ["csv", "txt", "npy", "plain csv", "pandas csv", "words csv"])
@pytest.mark.parametrize("shape", ["flat", "folders"])
def test_a_folder_of_inputs_and_their_labels(tmp_path, monkeypatch, draw, form, shape):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        write_pair(Path("har") / (split if shape == "folders" else ""), split, draw, form)
    config, proposal = proposed("har")
    form = form.split()[-1]
    inputs = f"har/train/X_train.{form}" if shape == "folders" else f"har/X_train.{form}"
    assert (config.data.train, config.data.kind) in ((inputs, "features"), (inputs, "auto"))
    assert config.data.test == inputs.replace("train", "test")
    assert "120 rows, 2 classes" in proposal.text
    splits = prepare(config).splits
    assert len(splits["test"]) == 120
    assert set(splits["test"].lengths.tolist()) == {15}
    assert np.bincount(splits["test"].labels).tolist() == [60, 60]


@pytest.mark.parametrize(
    "names",
    [
        ("train_features", "train_labels"),
        ("features", "targets"),
        ("trainX", "trainY"),
        ("X", "y"),
    ],
)
@pytest.mark.parametrize("ending", ["npy", "txt"])
@pytest.mark.parametrize("given", ["folder", "files", "input", "pair"])
def test_names_of_inputs_labels_and_groups(tmp_path, monkeypatch, draw, names, ending, given):
    monkeypatch.chdir(tmp_path)
    Path("my d").mkdir()
    values = np.array([[draw.gauss(r % 2, 1) for _ in range(12)] for r in range(60)])
    labels, groups = np.arange(60) % 2 + 3, np.arange(60) // 6
    owner = "groups_train" if "train" in names[0] else "groups"
    paths = [f"my d/{name}.{ending}" for name in (*names, owner)]
    for path, array in zip(paths, (values, labels, groups), strict=True):
        if ending == "npy":
            np.save(path, array)
        else:
            np.savetxt(path, array, fmt="%.4f" if array is values else "%d")
    files = {"folder": ["my d"], "files": paths, "input": paths[:1], "pair": paths[:2]}[given]
    if given == "pair":
        Path(paths[2]).unlink()
    config = parse_config(propose(files, InitOptions()).text)
    data = prepare(config)
    assert config.data.train == paths[0]
    assert config.data.group == (None if given == "pair" else "groups")
    if given != "pair":
        assert len({*data.splits["train"].groups.tolist()}) == 10
    assert sorted(data.preprocessing.labels) == ["3", "4"]


@pytest.mark.parametrize("form", ["csv", "txt"])
def test_whom_a_row_is_of_is_joined_and_the_group(tmp_path, monkeypatch, draw, form):
    monkeypatch.chdir(tmp_path)
    write_pair(Path("har"), "train", draw, form, subjects=True)
    config, _ = proposed("har")
    assert config.data.group == "subject"
    assert config.data.label in ("y", "direction")
    assert [each["on"] for each in config.data.join or []] == ["row", "row"]
    splits = prepare(config).splits
    groups = [{*splits[name].groups.tolist()} for name in ("train", "validation")]
    assert not groups[0] & groups[1]


@pytest.mark.parametrize("form", ["csv", "npy"])
@pytest.mark.parametrize("given", ["file", "folder"])
def test_inputs_without_labels_anywhere_are_no_task(tmp_path, monkeypatch, draw, form, given):
    monkeypatch.chdir(tmp_path)
    write_pair(Path("data"), "train", draw, form)
    Path(f"data/y_train.{form}").unlink()
    with pytest.raises(DataError, match=r"X_train.*labels.*--label"):
        propose([f"data/X_train.{form}" if given == "file" else "data"], InitOptions())


@pytest.mark.parametrize("names", [("test", "validation"), ("val", "test"), ("test",)])
def test_files_of_other_splits_beside_train_are_read_by_one_printed_command(
    tmp_path, monkeypatch, draw, cli, names
):
    monkeypatch.chdir(tmp_path)
    for split in ("train", *names):
        rows = [[sentence(draw), "xy"[n % 2], draw.choice("uv")] for n in range(120)]
        write(Path(f"a b/{split}.csv"), ["text", "tone", "kind"], rows)
    said = cli("init", "a b/train.csv", "--label", "kind", "-o", "c.yaml").err
    (command,) = re.findall("^  seqtrain (init .*)", said, re.M)
    cli(*shlex.split(command))
    data = parse_config(Path("c.yaml").read_text()).data
    assert {str(data.validation), str(data.test)} >= {f"a b/{name}.csv" for name in names}
    assert data.label == "kind"


def test_a_test_file_without_labels_is_for_predict(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        write_pair(Path("a"), split, draw, "csv")
    Path("a/y_test.csv").unlink()
    proposal = propose(["a/X_train.csv", "a/X_test.csv"], InitOptions())
    assert parse_config(proposal.text).data.test is None
    assert any("has no labels" in line for line in proposal.warnings)


def test_several_files_of_labels_are_commands(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[sentence(draw), draw.random()] for _ in range(90)]
    write(Path("train.csv"), ["text", "score"], rows)
    for kind in ("labels", "target"):
        write(Path(f"train_{kind}.csv"), [kind], [["uv"[r % 2]] for r in range(90)])
    refused = cli("init", "train.csv", "-o", "c.yaml", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    assert len(commands) == 2
    for command in commands:
        cli(*shlex.split(command, comments=True), "--force")


@pytest.mark.parametrize("other", ["site", "None"])
def test_several_columns_of_a_file_of_labels_are_commands(tmp_path, monkeypatch, draw, cli, other):
    monkeypatch.chdir(tmp_path)
    rows = [[f"q{i}", k, draw.random(), draw.random()] for i in range(60) for k in range(5)]
    write(Path("train.csv"), ["series", "step", "u", "v"], rows)
    facts = [[f"q{i}", "xy"[i % 2], f"g{i // 6}"] for i in range(60)]
    write(Path("train_labels.csv"), ["series", "state", other], facts)
    refused = cli("init", "train.csv", "-o", "c.yaml", code=2).err
    command, _ = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    said = cli(*shlex.split(command, comments=True)).err
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.label, config.data.id, config.data.static) == ("state", "series", None)
    assert f"'{other}': columns of the file of labels" in said


@pytest.mark.parametrize("given", [["x.txt", "y.txt"], ["train.txt", "labels.txt"], ["x.txt"]])
def test_labels_of_lines_in_a_file_that_is_given_or_beside(tmp_path, monkeypatch, draw, given):
    monkeypatch.chdir(tmp_path)
    texts, labels = given[0], given[1] if len(given) > 1 else "y.txt"
    Path(texts).write_text("".join(sentence(draw) + "\n" for _ in range(60)))
    Path(labels).write_text("".join(f"{'uv'[i % 2]}\n" for i in range(60)))
    proposal = propose(given, InitOptions())
    assert len(prepare(parse_config(proposal.text)).preprocessing.labels) == 2
    assert "60 rows, 2 classes" in proposal.text


@pytest.mark.parametrize("file", ["news.txt", "train.txt"])
@pytest.mark.parametrize("form", ["a list of labels", "labels again", "labels alone"])
@pytest.mark.parametrize("given", ["file", "folder"])
def test_labels_before_a_tab_are_no_words_of_the_texts(
    tmp_path, monkeypatch, draw, file, form, given
):
    """A file beside lists the names of the classes, or has a label per line."""
    monkeypatch.chdir(tmp_path)
    labels = [name(draw) for _ in range(3)]
    rows = [[labels[i % 3], sentence(draw)] for i in range(60)]
    lines = [[label] for label in labels]
    if form != "a list of labels":
        lines = [[label] for label, _ in rows]
    if form == "labels alone":
        rows = [[text] for _, text in rows]
    write(Path("in/labels.txt"), [], lines)
    path = write(Path("in", file), [], rows, "\t")
    config = parse_config(propose([path if given == "file" else "in"], InitOptions()).text)
    assert (config.data.train, config.data.join is None) == (path, form != "labels alone")
    data = prepare(config)
    assert {*data.preprocessing.labels} == {*labels}
    assert data.splits["train"].lengths.max() == 7


def test_labels_in_folders_and_in_names_are_commands(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    sites, moves = [name(draw), name(draw)], [name(draw), name(draw)]
    for i in range(48):
        path = Path(f"rec/{sites[i % 2]}/{moves[i // 2 % 2]}_{i:02d}.csv")
        write(path, ["ax", "ay"], recording(draw, i // 2 % 2))
    refused = cli("init", "rec", "-o", "c.yaml", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    found = set()
    for command in commands:
        cli(*shlex.split(command, comments=True), "--force")
        config = parse_config(Path("c.yaml").read_text())
        found.add(frozenset(prepare(config).preprocessing.labels))
    assert found == {frozenset(sites), frozenset(moves)}


@pytest.mark.parametrize("given", ["folder", "files", "pattern"])
@pytest.mark.parametrize("form", ["{split}_{label}_{i}", "{label}-{i}-{split}"])
def test_names_tell_split_and_label(tmp_path, monkeypatch, draw, given, form):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw) for _ in range(3)]
    sizes = {"train": 24, "val": 9, "test": 6}
    files = []
    for split, size in sizes.items():
        for i in range(size):
            path = Path("in", form.format(split=split, label=labels[i % 3], i=i)).with_suffix(
                ".csv"
            )
            files.append(write(path, ["ax", "ay"], recording(draw, i % 3)))
    paths = {"folder": ["in"], "files": files, "pattern": ["in/*.csv"]}[given]
    config = parse_config(propose(paths, InitOptions()).text)
    assert (config.data.label, config.data.id) == ("label", "file")
    data = prepare(config)
    assert {*data.preprocessing.labels} == {*labels}
    found = {split: len(store) for split, store in data.splits.items()}
    assert found == {"train": 24, "validation": 9, "test": 6}


@pytest.mark.parametrize("given", ["a folder", "a pattern", "its files"])
@pytest.mark.parametrize("ending", ["csv", "npy", "xlsx"])
def test_folders_of_recordings_are_classes(tmp_path, monkeypatch, draw, given, ending):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(24):
        path, rows = Path(f"rec/{labels[i % 2]}/{i:03d}.{ending}"), recording(draw, i % 2)
        path.parent.mkdir(parents=True, exist_ok=True)
        if ending == "npy":
            np.save(path, rows)
        elif ending == "xlsx":
            write_workbook(path, Data=[["ax", "ay"], *rows])
        else:
            write(path, ["ax", "ay"], rows)
    pattern = f"rec/*/*.{ending}"
    files = {"a folder": ["rec"], "a pattern": [pattern]}.get(given) or sorted(glob(pattern))
    config = parse_config(propose(files, InitOptions()).text)
    assert config.data.id == "file"
    data = prepare(config)
    assert {*data.preprocessing.labels} == {*labels}
    assert sum(map(len, data.splits.values())) == 24


@pytest.mark.parametrize("names", [["ecg"], [], ["ax", "ay"]])
def test_recordings_of_one_channel_or_without_names(tmp_path, monkeypatch, draw, cli, names):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(30):
        rows = [row[: len(names) or 2] for row in recording(draw, i % 2)]
        write(Path(f"rec/{labels[i % 2]}_{i:02d}.csv"), names, rows)
    cli("init", "rec", "-o", "c.yaml")
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    assert len(cli("predict", "rec/*_1*.csv", "--run", "run").out.splitlines()) == 11


def test_folders_and_names_of_tables_with_labels_are_no_classes(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for i in range(8):
        rows = [[sentence(draw, way), way] for way in ("up", "down") * 20]
        write(Path(f"shards/{2020 + i % 2}/north_{i}.csv"), ["text", "label"], rows)
    config, _ = proposed("shards/*/*.csv")
    assert (config.data.label, config.data.path) == ("label", None)


def test_a_folder_of_folders_of_folders_is_refused_at_once(tmp_path):
    for i in range(3):
        (tmp_path / f"a{i}" / "b" / "c").mkdir(parents=True)
        (tmp_path / f"a{i}" / "notes.txt").write_text("some text\n")
    with pytest.raises(DataError, match="within folders"):
        propose([str(tmp_path)], InitOptions())


KEYS = {
    "names": "{}.csv",
    "stems": "{}",
    "numbers": "numbers",
    "paths": "rec/{}.csv",
}


def write_recordings(draw, keys: str, labels: str = "labels.csv") -> list[str]:
    """Write 30 recordings and the file with their labels, and return the recordings."""
    rows, found = [], []
    for i in range(30):
        found.append(f"rec/take_{i:03d}.csv")
        write(Path(found[-1]), ["ax", "ay"], recording(draw, i % 2))
        key = str(i) if keys == "numbers" else KEYS[keys].format(f"take_{i:03d}")
        rows.append([key, ["rest", "work"][i % 2], draw.choice("uvw")])
    draw.shuffle(rows)
    write(Path(labels), ["take", "activity", "by"], rows)
    return found


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (["rec", "labels.csv"], "labels.csv"),
        (["rec/*.csv", "names.csv"], "names.csv"),
        (["files", "labels.csv"], "labels.csv"),
        (["rec"], "labels.csv"),
        (["rec"], "rec/labels.csv"),
        (["."], "metadata.csv"),
        (["rec"], "rec/train.csv"),
        (["files", "rec/overview.csv"], "rec/overview.csv"),
    ],
)
def test_recordings_have_their_labels_in_a_file(tmp_path, monkeypatch, draw, keys, given, labels):
    monkeypatch.chdir(tmp_path)
    files = write_recordings(draw, keys, labels)
    given = [*files, *given[1:]] if given[0] == "files" else given
    config = parse_config(propose(given, InitOptions(label="activity")).text)
    assert (config.data.id, config.data.label) == ("file", "activity")
    assert "take" not in (config.data.static or {})
    data = prepare(config)
    assert {*data.preprocessing.labels} == {"rest", "work"}
    assert sum(map(len, data.splits.values())) == 30
    assert not [line for report in data.reports.values() for line in report.remarks]


@pytest.mark.parametrize("keys", ["stems", "numbers"])
def test_compressed_recordings_have_their_labels_in_a_file(tmp_path, monkeypatch, draw, keys):
    monkeypatch.chdir(tmp_path)
    for path in write_recordings(draw, keys):
        Path(f"{path}.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
        Path(path).unlink()
    config = parse_config(propose(["rec", "labels.csv"], InitOptions(label="activity")).text)
    assert (config.data.id, config.data.label) == ("file", "activity")
    assert sum(map(len, prepare(config).splits.values())) == 30


def test_labels_of_recordings_alone_are_refused_with_a_command(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    write_recordings(draw, "stems", "list.csv")
    refused = cli("init", "list.csv", "--label", "activity", "-o", "c.yaml", code=2).err
    (command,) = re.findall(r"seqtrain (init rec.*)", refused)
    cli(*shlex.split(command))


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("folder", ["", "set/"])
def test_paths_of_recordings_in_a_column_are_the_key(tmp_path, monkeypatch, draw, form, folder):
    """A column of the recordings is named like a label, too."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for i in range(30):
        path = f"takes/{i % 3 + 20}/{5000 + 7 * i}.{form}"
        steps = [[t, "hand", *step] for t, step in enumerate(recording(draw, i % 2))]
        names = ["frame", "type", "x", "y"]
        file = Path(folder + path)
        if form == "csv":
            write(file, names, steps)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            columns = dict(zip(names, zip(*steps, strict=True), strict=True))
            pq.write_table(pa.table(columns), file)
        rows.append([path, i % 3 + 20, ["rest", "wave"][i % 2]])
    draw.shuffle(rows)
    write(Path(f"{folder}train.csv"), ["path", "person_id", "sign"], rows)
    config = parse_config(propose([f"{folder}train.csv"], InitOptions()).text)
    assert (config.data.id, config.data.label) == ("file", "sign")
    data = prepare(config)
    assert {*data.preprocessing.labels} == {"rest", "wave"}
    assert sum(map(len, data.splits.values())) == 30


@pytest.mark.parametrize("given", [[], ["--format", "csv"]])
def test_tables_without_endings_in_folders_of_persons(tmp_path, monkeypatch, draw, cli, given):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        write(Path(f"moves/user{i % 2 + 3}/take_{70 + i}"), ["ax", "ay"], recording(draw, i % 2))
    refused = cli("init", "moves", *given, code=2).err
    (command,) = re.findall(r"seqtrain (init .*data\.path.*)", refused)
    cli(*shlex.split(command), "-o", "c.yaml")
    assert parse_config(Path("c.yaml").read_text()).data.id == "file"
    assert class_counts("c.yaml") == {"user3": 12, "user4": 12}


def test_keys_of_several_files_are_counted_together(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    files = write_recordings(draw, "names")
    with open("labels.csv", "a") as file:
        file.write("lost.csv,rest,u\n")
    config = f"""\
data:
  train: {files}
  id: file
  steps: {{ax: number, ay: number}}
  label: activity
  path: (?P<take>[^/]+)$
  join: [{{file: labels.csv, "on": take}}]
"""
    Path("c.yaml").write_text(config)
    shown = cli("data", "c.yaml")
    lines = [line for line in (shown.out + shown.err).splitlines() if "labels.csv" in line]
    assert len(lines) == 1
    assert "1 key of take in no row: 'lost.csv'" in lines[0]


def test_where_no_rows_are_held_out_init_says_so(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        write_pair(Path(), split, draw, "csv")
        for kind in ("X", "y"):
            path = Path(f"{kind}_{split}.csv")
            path.write_text("\n".join(path.read_text().splitlines()[:81]) + "\n")
    files = ["X_train.csv", "y_train.csv", "X_test.csv", "y_test.csv"]
    proposal = propose(files, InitOptions())
    assert parse_config(proposal.text).data.validation is None
    (said,) = [line for line in proposal.uses if line.startswith("validation = null")]
    setting = re.findall(r"--set (\S+)", said)
    config = parse_config(propose(files, InitOptions(setting)).text)
    assert len(prepare(config).splits["validation"]) >= 16


def class_counts(config_file: str) -> dict[str, int]:
    """Return the number of sequences of each class in all splits of a config."""
    data = prepare(parse_config(Path(config_file).read_text()))
    codes = np.concatenate([store.labels for store in data.splits.values()])
    return dict(zip(data.preprocessing.labels, np.bincount(codes).tolist(), strict=True))


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("train_data", "train_labels", "val_data", "val_labels"),
        ("Xtrain", "Ytrain", "Xtest", "Ytest"),
        ("X", "y", "X_dev", "y_dev"),
    ],
)
def test_splits_in_one_archive_are_divided_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, names
):
    monkeypatch.chdir(tmp_path)
    split = "test" if "est" in names[2] else "validation"
    rows = np.array([[[draw.gauss(i % 3, 1)] for _ in range(9)] for i in range(90)])
    labels = np.array([f"c{i % 3}" for i in range(90)])
    parts = [rows[:60], labels[:60], rows[60:], labels[60:]]
    np.savez("it's all.npz", **dict(zip(names, parts, strict=True)))
    refused = cli("init", "it's all.npz", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert getattr(config.data, split) == f"it's all-tables/{split}.npz"
    data = prepare(config)
    held_out = data.splits[split]
    assert np.bincount(held_out.labels).tolist() == [10, 10, 10]
    assert sum(map(len, data.splits.values())) == 90


@pytest.mark.parametrize("splits", [["train"], ["train", "test"]])
def test_arrays_of_lists_become_rows_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, splits
):
    """As Keras writes texts: arrays of Python objects, which only a trusting user reads."""
    monkeypatch.chdir(tmp_path)
    labels, arrays = [name(draw), name(draw)], dict[str, np.ndarray]()
    for split in splits:
        x = np.empty(40, object)
        for i in range(40):
            x[i] = draw.choices(range(9 * (i % 2), 40), k=draw.randint(5, 30))
        arrays |= {f"x_{split}": x, f"y_{split}": np.array([labels[i % 2] for i in range(40)])}
    np.savez("it's all.npz", **arrays)
    refused = cli("init", "it's all.npz", code=2).err
    assert "may run code" in refused
    assert not Path("it's all-lists").exists()
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.kind == "tokens"
    assert class_counts("c.yaml") == dict.fromkeys(labels, 20 * len(splits))


FORMS_OF_CLASSES = ["a series per row", "a text per row", "an id"]


@pytest.mark.parametrize("given", ["the folder", "its files"])
@pytest.mark.parametrize("form", FORMS_OF_CLASSES)
def test_a_file_of_each_class(tmp_path, monkeypatch, draw, given, form):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), f"{name(draw)} {name(draw)}", name(draw)]
    for shift, label in enumerate(labels):
        path, rows = Path(f"kinds/data_{label}.csv"), list[list[object]]()
        for i in range(30):
            if form == "a text per row":
                rows.append([sentence(draw, label), draw.random()])
            elif form == "an id":
                rows += [[f"{shift}x{i}", *row] for row in recording(draw, shift, 12)]
            else:
                rows.append([round(draw.gauss(shift, 1), 2) for _ in range(12)])
        names = {"a text per row": ["words", "n"], "an id": ["trip_id", "ax", "ay"]}
        write(path, names.get(form, [f"t{k}" for k in range(12)]), rows)
    files = ["kinds"] if given == "the folder" else sorted(glob("kinds/*.csv"))
    Path("c.yaml").write_text(propose(files, InitOptions()).text)
    assert class_counts("c.yaml") == dict.fromkeys(labels, 30)


@pytest.mark.parametrize("given", ["the folder", "its files"])
@pytest.mark.parametrize("trials", [1, 20])
def test_time_steps_in_a_file_of_each_class_are_joined_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, trials, given
):
    """A file is one recording, or its trials are counted from 1 in each file."""
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for shift, label in enumerate(labels):
        rows = [[t % 20, 1 + t // 20, *row] for t, row in enumerate(recording(draw, shift, 400))]
        names = ["time", "trial", "ax", "ay"]
        if trials == 1:
            names.remove("trial")
            rows = [[t, *row[2:]] for t, row in enumerate(rows)]
        write(Path(f"my runs/{label}.csv"), names, rows, ";")
    files = ["my runs"] if given == "the folder" else sorted(glob("my runs/*"))
    refused = cli("init", *files, code=2).err
    assert "no file" not in refused
    run_commands(cli, refused)
    counts = class_counts("c.yaml")
    assert {*counts} == {*labels}
    assert {*counts.values()} == {20 if trials > 1 else 13}


def test_columns_beside_classes_in_names_are_commands(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    for month in ("january", "february"):
        rows = [[sentence(draw, way), way] for way in ("up", "down") * 20]
        write(Path(f"logs/{month}.csv"), ["words", "way"], rows)
    refused = cli("init", "logs", "-o", "c.yaml", code=2).err
    found = []
    for command in re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M):
        cli(*shlex.split(command, comments=True), "--force")
        found.append({*class_counts("c.yaml")})
    assert found == [{"january", "february"}, {"up", "down"}]


@pytest.mark.parametrize("columns", [["x", "y"], ["ax", "ay"]])
@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_recordings_with_a_format_or_a_path_as_label(
    tmp_path, monkeypatch, draw, cli, columns, ending
):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(24):
        path = Path(f"takes/P{i // 4}_{labels[i % 2]}_{i:03d}.{ending}")
        write(path, columns, recording(draw, i % 2))
    cli("init", "takes", "--format", "csv", "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)
    if ending == "csv":
        refused = cli("init", "takes", "--set", "data.label=file", code=2).err
        (command,) = re.findall(r"seqtrain:   seqtrain (init .*)", refused)
        cli(*shlex.split(command), "-o", "c.yaml", "--force")
        assert class_counts("c.yaml") == dict.fromkeys(labels, 12)


def test_other_columns_of_a_file_of_labels_are_no_features(tmp_path, monkeypatch, cli):
    """A new recording has no row there, so that it could not be classified."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(4)
    for i in range(24):
        write(Path(f"rec/r{i:02d}.csv"), ["ax", "ay"], recording(draw, i % 2))
    facts = [[f"r{i:02d}.csv", "ab"[i % 2], f"p{i // 4}", 20 + i % 5] for i in range(24)]
    write(Path("labels.csv"), ["file", "label", "subject", "age"], facts)
    cli("init", "rec", "labels.csv", "-o", "c.yaml")
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    assert parse_config(Path("c.yaml").read_text()).data.group == "subject"
    write(Path("new/one.csv"), ["ax", "ay"], recording(draw, 1))
    assert len(cli("predict", "new/one.csv", "--run", "run").out.splitlines()) == 2


@pytest.mark.parametrize("form", ["npz", "npy", "recordings", "jsonl"])
def test_channels_first_in_arrays_are_doubted_with_a_command(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    channels, steps = draw.randint(2, 5), draw.randint(20, 40)
    rows = np.array(
        [[[draw.gauss(i % 2, 1) for _ in range(steps)] for _ in range(channels)] for i in range(24)]
    )
    labels, given = np.array(["u", "v"] * 12), f"it's x.{form}"
    if form == "npz":
        np.savez(given, x_train=rows, y_train=labels, n=[1])
    elif form == "npy":
        np.save("y a.npy", labels)
        np.save(given := "X a.npy", rows)
    elif form == "jsonl":
        both = zip(rows.tolist(), labels.tolist(), strict=True)
        objects = [{"wave": row, "beat": label} for row, label in both]
        Path(given := "it's.jsonl").write_text("\n".join(map(json.dumps, objects)))
    else:
        Path(given := "my takes").mkdir()
        for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
            np.save(f"{given}/{label}_{number}.npy", row)
    said = cli("init", given, "-o", "c.yaml").err
    convert, init = commands_in(said)
    cli(*convert)
    said = cli(*init, "-o", "c.yaml", "--force").err
    assert "channels come first" not in said
    assert class_counts("c.yaml") == {"u": 12, "v": 12}
    data = prepare(parse_config(Path("c.yaml").read_text()))
    for store in data.splits.values():
        assert {*store.lengths.tolist()} == {steps}


@pytest.mark.parametrize("given", ["folder", "files", "pattern"])
@pytest.mark.parametrize(("ending", "mark"), [("dat", " "), ("asc", "\t"), ("out", ";")])
def test_recordings_whose_endings_name_no_format_are_all_written_as_csv(
    tmp_path, monkeypatch, draw, cli, given, ending, mark
):
    """The label is in a column of each. One file has numbers that are missing, others comments."""
    monkeypatch.chdir(tmp_path)
    paths = []
    for i in range(8):
        rows = [[t, "135"[(t // 20 + i) % 3], *draw.choices("123456789", k=3)] for t in range(60)]
        rows[-1][2] = "NaN"
        paths.append(write(Path(f"my takes/who{i}.{ending}"), [], rows, mark))
        with open(paths[-1], "a") as file:
            file.write("\n" if i % 2 else "# the end\n")
    given = {"folder": ["my takes"], "files": paths, "pattern": [f"my takes/*.{ending}"]}[given]
    refused = cli("init", *given, code=2).err
    cli(*run_conversions(cli, refused), "--id", "file", "--label", "1", "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    data = prepare(config)
    assert {*data.preprocessing.labels} == {"1", "3", "5"}
    assert len(glob("my takes-measured/*.csv")) == 8


@pytest.mark.parametrize("odd", ["u/Summary.txt v/Summary.txt", "About it.txt", "u/Summary.txt"])
def test_files_that_are_no_texts_of_a_class_are_left_out_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, odd
):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        write(
            Path(f"my mails/{'uv'[i % 2]}/{i:03d}.2001-01-{i + 1:02d}.txt"), [], [[sentence(draw)]]
        )
    for path in odd.split(" v/"):
        folder = "v" if path == "Summary.txt" else ""
        write(Path("my mails", folder, path), [], [["12 texts"]])
    if odd == "u/Summary.txt":  # a single one may be a text
        assert "13 texts" not in propose(["my mails"], InitOptions()).text
        return
    refused = cli("init", "my mails", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    assert class_counts("c.yaml") == {"u": 12, "v": 12}


@pytest.mark.parametrize("mark", [",", " ", "\t", "; "])
@pytest.mark.parametrize("times", [False, True])
def test_files_of_texts_that_are_tables_are_recordings(
    tmp_path, monkeypatch, draw, cli, mark, times
):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(24):
        rows = recording(draw, i % 2)
        if times:
            rows = [[f"10:{r // 60:02d}:{r % 60:02d}", row[0]] for r, row in enumerate(rows)]
        write(Path(f"my takes/{labels[i % 2]}_{i:02d}.txt"), [], rows, mark)
    if mark == " ":
        follow(cli("init", "my takes", code=2).err, cli)
    else:
        assert "--format txt" in cli("init", "my takes", "-o", "c.yaml").err
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)
    assert parse_config(Path("c.yaml").read_text()).data.id == "file"


@pytest.mark.parametrize("given", [["set one", "Outcomes.txt"], ["."]])
def test_recordings_and_their_labels_in_texts_that_are_tables(
    tmp_path, monkeypatch, draw, cli, given
):
    """As PhysioNet's challenge of 2012 has them: a value per row, and its name in a column."""
    monkeypatch.chdir(tmp_path)
    lines = ["RecordID,SAPS,Died"]
    for i in range(40):
        rows = [
            [f"{t:02d}:{draw.randrange(60):02d}", kind, round(draw.gauss(80 + 9 * (i % 2), 3), 1)]
            for t in range(8)
            for kind in draw.sample(["HR", "Temp", "GCS"], 2)
        ]
        write(Path(f"set one/{1300 + i}.txt"), ["Time", "Parameter", "Value"], rows)
        lines.append(f"{1300 + i},{draw.randrange(20)},{i % 2}")
    Path("Outcomes.txt").write_text("\n".join(lines))
    cli("init", *given, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, list(data.steps)[:2]) == ("file", "Died", ["Parameter", "Value"])
    assert class_counts("c.yaml") == {"0": 20, "1": 20}


@pytest.mark.parametrize("ending", ["csv", "npy"])
@pytest.mark.parametrize("lacks", ["nothing", "some rows", "one of two equal rows", "agreement"])
@pytest.mark.parametrize("labels", ["labels.csv", "my rec/labels.csv"])
def test_files_of_labels_with_further_columns_and_faults(
    tmp_path, monkeypatch, draw, cli, ending, lacks, labels
):
    """A recording without a row, or with two different ones, is left out by the printed command."""
    monkeypatch.chdir(tmp_path)
    rows = [[f"r_{i:02d}", "ab"[i % 2], f"p{i // 4}", draw.random()] for i in range(24)]
    for i in range(24):
        path, values = Path(f"my rec/r_{i:02d}.{ending}"), recording(draw, i % 2)
        path.parent.mkdir(exist_ok=True)
        np.save(path, values) if ending == "npy" else write(path, [], values)
    gone = 0
    if lacks == "some rows":
        rows, gone = rows[:-4], 4
    elif lacks == "one of two equal rows":
        rows.append(rows[3])
    elif lacks == "agreement":
        rows.append(["r_03", "a", *rows[3][2:]])
        gone = 1
    draw.shuffle(rows)
    write(Path(labels), ["take", "label", "subject", "mood"], rows)
    ended = cli("init", "my rec", "-o", "c.yaml", code=2 if gone else 0).err
    if gone:
        (command,) = re.findall(r"to leave such rows out: seqtrain (.*)", ended)
        assert f"\n{gone} sequence" in "\n" + cli(*shlex.split(command)).err
    counts = class_counts("c.yaml")
    assert (sum(counts.values()), len(counts)) == (24 - gone, 2)


@pytest.mark.parametrize("form", ["{}_{:02d}", "{:02d} {}", "{}{:02d}", "K{:02d}-{}"])
def test_labels_in_names_are_of_any_script(tmp_path, monkeypatch, draw, form):
    monkeypatch.chdir(tmp_path)
    labels = draw.sample(["öffnen", "走る", "e\u0301te\u0301", "año", "бег"], 2)
    for i in range(24):
        parts = (labels[i % 2], i) if form.startswith("{}") else (i, labels[i % 2])
        write(Path(f"Daten ä/{form.format(*parts)}.csv"), ["x", "y"], recording(draw, i % 2))
    Path("c.yaml").write_text(propose(["Daten ä"], InitOptions()).text)
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)


@pytest.mark.parametrize("form", ["{}_{:02d}", "{} {:02d}", "{}{:02d}", "p{:02d}-{}-7"])
@pytest.mark.parametrize("other", [None, "calibration", "zz top"])
def test_labels_in_names_are_of_one_word_or_several(tmp_path, monkeypatch, draw, cli, form, other):
    """A file with another name is left out by the printed command."""
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), f"{name(draw)}{draw.choice('-_ ')}{name(draw)}"]
    for i in range(24):
        parts = (labels[i % 2], i) if form.startswith("{}") else (i % 4, labels[i % 2])
        file = f"my rec/{form.format(*parts)}"
        file += str(i // 4) if form.startswith("p") else ""
        write(Path(f"{file}.csv"), ["x", "y"], recording(draw, i % 2))
    if other:
        write(Path(f"my rec/{other}.csv"), ["volts"], [[1], [2]])
        refused = cli("init", "my rec", code=2).err
        assert f"{other}.csv" in refused
        (command,) = re.findall(r"to leave such rows out: seqtrain (.*)", refused)
        cli(*shlex.split(command), "-o", "c.yaml")
    else:
        cli("init", "my rec", "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)
    group = parse_config(Path("c.yaml").read_text()).data.group
    assert group == ("subject" if form.startswith("p") else None)


def test_no_command_rewrites_cells_for_labels_in_names(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        name = ["Fall", "fall", "Walk"][i % 3]
        write(Path(f"rec/{name}_{i:02d}.csv"), ["x", "y"], recording(draw, i % 3))
    said = cli("init", "rec", "-o", "c.yaml").err
    assert "'Fall'" in said
    assert "< rec" not in said


@pytest.mark.parametrize("count", [24, 200])
def test_folders_of_recordings_are_no_features_but_may_be_the_group(
    tmp_path, monkeypatch, draw, cli, count
):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(count):
        path = Path(f"my rec/{'person' if i % 8 else 'p'}{i % 8}/{i}.csv")
        write(path, ["x", "y"], recording(draw, i % 2, rows=5))
    rows = [[f"{i}.csv", labels[i % 2]] for i in range(count)]
    write(Path("labels.csv"), ["take", "activity"], rows)
    said = cli("init", "my rec", "labels.csv", "-o", "c.yaml").err
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.static, data.group) == (None, None)
    (setting,) = re.findall("--set (data.group=.*)", said)
    cli("init", "my rec", "labels.csv", "-o", "d.yaml", "--set", setting)
    assert parse_config(Path("d.yaml").read_text()).data.group == "folder"


@pytest.mark.parametrize("labels", ["labels.txt", "gold.txt"])
def test_given_labels_of_another_number_of_texts_are_refused(
    tmp_path, monkeypatch, draw, cli, labels
):
    """If blank lines are the reason, the printed command writes a mark there."""
    monkeypatch.chdir(tmp_path)
    texts = [sentence(draw) for _ in range(60)]
    Path(labels).write_text("".join(f"{'uv'[i % 2]}\n" for i in range(60)))
    Path("my texts.txt").write_text("\n".join(texts[:58]) + "\n")
    refused = cli("init", "my texts.txt", labels, code=2).err
    assert all(number in refused for number in ("58", "60"))
    texts[draw.randrange(1, 59)] = ""
    Path("my texts.txt").write_text("\n".join(texts) + "\n")
    refused = cli("init", "my texts.txt", labels, code=2).err
    follow(refused, cli)
    assert class_counts("c.yaml") == {"u": 30, "v": 30}


def test_keys_that_are_spelled_in_two_ways_are_named(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[f"{i:03d}", k, draw.gauss(i % 2, 1)] for i in range(40) for k in range(8)]
    write(Path("signals.csv"), ["rec", "t", "x"], rows)
    write(Path("labels.csv"), ["rec", "cls"], [[i, "AB"[i % 2]] for i in range(40)])
    refused = cli("init", "signals.csv", "labels.csv", code=2).err
    assert "'000'" in refused
    assert "'0'" in refused


def test_a_few_rows_of_labels_have_a_header_if_it_has_the_key(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    rows = [[f"s{i}", k, draw.gauss(i % 3, 1)] for i in range(8) for k in range(9)]
    write(Path("d/X_train.csv"), ["trip_id", "t", "v"], rows)
    labels = [[f"s{i}", ["wave", "sit down", "push"][i % 3]] for i in range(8)]
    write(Path("d/y_train.csv"), ["trip_id", "move"], labels)
    Path("c.yaml").write_text(propose(["d"], InitOptions()).text)
    assert sorted(class_counts("c.yaml").values()) == [2, 3, 3]


@pytest.mark.parametrize("key", ["{}.wav", "/mnt/x y/{}.csv", "C:\\takes\\{}.txt"])
def test_names_of_recordings_with_other_folders_and_endings(tmp_path, monkeypatch, draw, cli, key):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        write(Path(f"my rec/r_{i:02d}.csv"), ["ax", "ay"], recording(draw, i % 2))
    rows = [[key.format(f"r_{i:02d}"), "ab"[i % 2]] for i in range(24)]
    mark = draw.choice(",;")
    write(Path("my labels.csv"), ["clip", "label"], rows, mark)
    follow_printed(cli, cli("init", "my rec", "my labels.csv", code=2).err)
    assert class_counts("c.yaml") == {"a": 12, "b": 12}


@pytest.mark.parametrize("key", ["A{:03d}", "A{:03d}.wav"])
@pytest.mark.parametrize("given", [["in/rec", "in/REFERENCE.csv"], ["in/rec"], ["in"]])
def test_a_file_of_labels_without_a_header(tmp_path, monkeypatch, draw, cli, key, given):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        write(Path(f"in/rec/A{i:03d}.csv"), ["ecg"], [row[:1] for row in recording(draw, i % 2)])
    rows = [f"{key.format(i)},{'ab'[i % 2]}" for i in range(24)]
    Path("in/REFERENCE.csv").write_text("\n".join(rows) + "\n")
    refused = cli("init", *given, code=2).err
    if "wav" in key:  # once the columns have names, their other form is said
        (new,) = run_conversion(cli, refused)
        refused = cli("init", "in/rec", new, code=2).err
    follow_printed(cli, refused)
    assert class_counts("c.yaml") == {"a": 12, "b": 12}


def test_archives_with_an_array_each_are_written_as_arrays(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    Path("my pipe").mkdir()
    for i in range(24):
        signal = np.array(recording(draw, i % 2)[: draw.randint(5, 9)])
        np.savez(f"my pipe/{['leak', 'normal'][i % 2]}_{i:02d}.npz", signal=signal, fs=100)
    refused = cli("init", "my pipe", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    assert class_counts("c.yaml") == {"leak": 12, "normal": 12}


@pytest.mark.parametrize("key", ["doc{:02d}.txt", "doc{:02d}", "texts/doc{:02d}.txt"])
@pytest.mark.parametrize("given", [["my texts"], ["my texts", "my texts/metadata.csv"]])
def test_texts_in_files_with_labels_in_a_table(tmp_path, monkeypatch, draw, cli, key, given):
    monkeypatch.chdir(tmp_path)
    rows = []
    for i in range(40):
        words = [draw.choice(["rain", "wind", "sun", "goal"]) for _ in range(6)]
        Path("my texts").mkdir(exist_ok=True)
        Path(f"my texts/doc{i:02d}.txt").write_text(" ".join(words) + f"\nline {i}\n")
        rows.append([key.format(i), ["news", "sport"][i % 2]])
    write(Path("my texts/metadata.csv"), ["filename", "genre"], rows, draw.choice(",;"))
    follow_printed(cli, cli("init", *given, code=2).err)
    assert class_counts("c.yaml") == {"news": 20, "sport": 20}


@pytest.mark.parametrize("names", [("A1_{}", "B2_{}"), ("take {} 7", "take {} 8")])
def test_codes_and_numbers_in_names_that_may_be_labels_are_commands(
    tmp_path, monkeypatch, draw, cli, names
):
    """A page about the recordings is none of them."""
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        path = Path(f"my rec/{names[i % 2].format(f'{i:03d}')}.csv")
        write(path, ["ax", "ay"], recording(draw, i % 2))
    Path("my rec/README.txt").write_text("Recordings\n")
    refused = cli("init", "my rec", code=2).err
    (command,) = re.findall(r"^seqtrain:   seqtrain (init .* --set .*)", refused, re.M)
    cli(*shlex.split(command), "-o", "c.yaml")
    assert sorted(class_counts("c.yaml").values()) == [12, 12]


@pytest.mark.parametrize(("mark", "ending"), [(" ", "txt"), ("\t", "txt"), (",", "csv")])
def test_a_folder_of_channels_beside_features_is_read_by_the_printed_commands(
    tmp_path, monkeypatch, draw, cli, mark, ending
):
    monkeypatch.chdir(tmp_path)
    channels, steps, folder = draw.randint(2, 5), draw.randint(8, 20), "raw it's"
    for split, rows in (("train", 60), ("test", 30)):
        files: dict[str, list[list[object]]] = {
            f"X_{split}": [[draw.gauss(0, 1) for _ in range(40)] for _ in range(rows)],
            f"y_{split}": [[f"c{i % 3}"] for i in range(rows)],
            f"subject_{split}": [[1 + i // 6] for i in range(rows)],
        }
        for channel in range(channels):
            own = [[i % 3 + channel / 10 + step for step in range(steps)] for i in range(rows)]
            files[f"{folder}/part{channel}_{split}"] = own
        for stem, table in files.items():
            write(Path(f"all/{split}/{stem}.{ending}"), [], table, mark)
    said = cli("init", "all", "-o", "c.yaml").err
    features = prepare(parse_config(Path("c.yaml").read_text())).splits["train"]
    assert {*features.lengths.tolist()} == {40}
    *stack, init = commands_in(said)
    for command in stack:
        cli(*command)
    cli(*init, "-o", "c.yaml", "--force")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.group == "subject"
    data = prepare(config)
    assert len(data.splits["test"]) == 30
    assert {*data.splits["test"].lengths.tolist()} == {steps}
    assert data.splits["test"].values.shape[1] == channels
    assert class_counts("c.yaml") == {"c0": 30, "c1": 30, "c2": 30}
    if ending == "csv":  # such files may be tables as well
        return
    for split in ("train", "test"):
        Path(f"all/{split}/X_{split}.{ending}").unlink()
    refused = cli("init", "all", code=2).err
    found = commands_in(refused)
    assert sorted(found[:-1]) == sorted(stack)
    cli(*found[-1], "-o", "c.yaml", "--force")
    assert parse_config(Path("c.yaml").read_text()).data.group == "subject"
    assert class_counts("c.yaml") == {"c0": 30, "c1": 30, "c2": 30}


def test_the_labels_of_an_array_stay_its_labels_with_a_joined_file(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    rows = np.array([[draw.gauss(i % 2, 1) for _ in range(9)] for i in range(60)])
    np.savez("a.npz", X=rows, y=np.array(["u", "v"] * 30))
    write(Path("of.csv"), ["owner"], [[f"p{i // 6}"] for i in range(60)])
    cli("init", "a.npz", "--set", "data.join=[{file: of.csv, on: row}]", "-o", "c.yaml")
    assert class_counts("c.yaml") == {"u": 30, "v": 30}


@pytest.mark.parametrize("form", ["names", "folders", "texts in folders", "texts in files", "one"])
def test_other_files_in_a_folder_are_no_data(tmp_path, monkeypatch, draw, cli, form):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for number in range(40):
        label, rows = labels[number % 2], recording(draw, number % 2)
        if form == "names":
            write(Path(f"all/{label}_{number:02}.csv"), ["ax", "ay"], rows)
        elif form == "folders":
            write(Path(f"all/{label}/{number:02}.csv"), ["ax", "ay"], rows)
        elif form == "texts in folders":
            write(Path(f"all/{label}/{number:02}.txt"), [], [[sentence(draw, label)]])
        elif form == "texts in files":
            texts = [[sentence(draw, label)] for _ in range(20)]
            write(Path(f"all/{label}.txt"), [], texts)
        else:
            write(Path("all/a.csv"), ["text", "kind"], [[sentence(draw), x] for x in labels * 20])
    for other in ("README.txt", "Readme.md", "LICENSE", ".DS_Store", "Thumbs.db", "plot 1.PNG"):
        Path("all", other).write_bytes(b"\xd0\x00\xff one\ttwo\n")
    write(Path(f"all/__MACOSX/._{labels[0]}_01.csv"), [], [["\x00\x05"]])
    said = cli("init", "all", "-o", "c.yaml").err
    assert not re.search("README|LICENSE|Thumbs|MACOSX|plot", said)
    assert {*class_counts("c.yaml")} == {*labels}
    assert {*class_counts("c.yaml").values()} == {20}


@pytest.mark.parametrize("given", ["the folder", "two files", "one file"])
@pytest.mark.parametrize("channels", [2, 10])
@pytest.mark.parametrize("has_names", [True, False])
def test_files_of_a_subject_each_are_sequences_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, given, channels, has_names
):
    """The label is a column. Rows of many numbers could be series, so the command is in a doubt."""
    monkeypatch.chdir(tmp_path)
    labels, stem = [name(draw), name(draw)] if has_names else ["0", "1"], name(draw)
    names = ["time", *(f"ch{k}" for k in range(channels)), "state"] if has_names else []
    for number in range(12):
        rows = list[list[object]]()
        for step in range(40):
            label, shift = labels[(number + step // 20) % 2], draw.random() + step
            rows.append([step / 10, *(round(shift + k, 3) for k in range(channels)), label])
        write(Path(f"our runs/{stem}_{number:02}.csv"), names, rows)
    files = sorted(glob("our runs/*"))
    files = {"the folder": ["our runs"], "two files": files[:2], "one file": files[:1]}[given]
    code = 2 if channels == 2 else 0
    said = cli("init", *files, "-o", "c.yaml", code=code).err
    (command,) = re.findall(r"^(?:seqtrain: )?  seqtrain (init .* --id file)", said, re.M)
    read = ["our runs/*.csv"] if given == "one file" else files
    assert shlex.split(command)[1 : 1 + len(read)] == read
    cli(*shlex.split(command), "-o", "c.yaml", "--force")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.id == "file"
    assert config.data.window is not None
    assert {*class_counts("c.yaml")} == {*labels}
    cli("init", files[0], "--id", "file", "-o", "c.yaml", "--force")
    assert parse_config(Path("c.yaml").read_text()).data.window is not None


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
@pytest.mark.parametrize("has_names", [True, False])
@pytest.mark.parametrize("given", ["train", "both", "the folder"])
def test_the_command_predicts_a_test_file_without_labels(
    tmp_path, monkeypatch, draw, cli, ending, has_names, given
):
    monkeypatch.chdir(tmp_path)
    names, rows = (
        ["target", "words"],
        [[f"c{i % 2}", sentence(draw, f"c{i % 2}")] for i in range(60)],
    )
    names = names if has_names and ending != "txt" else []
    mark = "," if ending == "csv" else "\t"
    write(Path(f"my run/train.{ending}"), names, rows, mark)
    write(Path(f"my run/test.{ending}"), names[1:], [row[1:] for row in rows], mark)
    write(Path("my run/sample_submission.csv"), ["id", "target"], [[1, 0]])
    files = [f"my run/train.{ending}", f"my run/test.{ending}"]
    files = {"train": files[:1], "both": files, "the folder": ["my run"]}[given]
    if given == "the folder":
        Path("my run/sample_submission.csv").unlink()
    said = cli("init", *files, "-o", "c.yaml").err
    if given == "train":
        (command,) = re.findall(r"my run/test.*\n  seqtrain (init .*)", said)
        *given, last = shlex.split(command)[1:]
        assert given == [*files, "-o", "c.yaml", f"my run/test.{ending}"]
        assert last == "--force"
        return
    assert parse_config(Path("c.yaml").read_text()).data.test is None
    (command,) = re.findall(r"to predict it, after fit: seqtrain (predict .*)", said)
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    predicted = cli(*shlex.split(command), "--run", "run").out.splitlines()
    assert [row.split("\t")[0] for row in predicted[1:]] == [f"c{i % 2}" for i in range(60)]


@pytest.mark.parametrize("given", ["the folder", "the files", "X and y"])
@pytest.mark.parametrize("steps", [0, 9])
def test_a_key_may_have_another_name_in_each_file(tmp_path, monkeypatch, draw, cli, given, steps):
    """Rows of the two files stand in different orders."""
    monkeypatch.chdir(tmp_path)
    paths = ["my data/visits.csv", "my data/outcome.csv"]
    if given == "X and y":
        paths, steps = ["my data/X.csv", "my data/y.csv"], 0
    keys = [f"{name(draw)}{i}" for i in range(60)]
    label_of = {key: draw.choice("uv") for key in keys}
    if steps:
        rows = [[key, t, draw.random()] for key in keys for t in range(steps)]
        write(Path(paths[0]), ["case", "day", "ax"], rows)
    else:
        write(Path(paths[0]), ["case", "note"], [[key, sentence(draw)] for key in keys])
    shuffled = draw.sample(keys, len(keys))
    write(Path(paths[1]), ["who", "verdict"], [[key, label_of[key]] for key in shuffled])
    command = ["init", *(paths if given == "the files" else ["my data"])]
    if given != "X and y":
        refused = cli(*command, code=2).err
        found = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)[0]
        command = shlex.split(found, comments=True)
    cli(*command, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    (join,) = data.join
    files_and_keys = {data.train: join["on"]["left"], join["file"]: join["on"]["right"]}
    assert files_and_keys == dict(zip(paths, ["case", "who"], strict=True))
    assert (data.label, data.id) == ("verdict", "case" if steps else None)


@pytest.mark.parametrize("given", ["folder", "files", "beside"])
@pytest.mark.parametrize("steps", [4, 0])
def test_columns_are_a_key_together(tmp_path, monkeypatch, draw, given, steps):
    """No column of both files is a key, and the label follows from no part of the key."""
    monkeypatch.chdir(tmp_path)
    keys = [(who, run) for who in range(12) for run in range(1, 6)]
    label_of = {key: draw.choice("uv") for key in keys}
    inputs, labels = "in/signal.csv", "in/runs.csv"
    if given == "beside":
        inputs, labels = "in/train.csv", "in/labels.csv"
    if steps:
        rows = [[who, run, t, draw.random()] for who, run in keys for t in range(steps)]
        write(Path(inputs), ["patient", "run", "t", "ax"], rows)
    else:
        inputs = "in/X_train.csv"
        labels = "in/y_train.csv"
        shuffled = draw.sample(keys, len(keys))
        write(Path(inputs), ["patient", "run", "note"], [[*x, sentence(draw)] for x in shuffled])
    rows = [[run, label_of[who, run], who] for who, run in draw.sample(keys, len(keys))]
    write(Path(labels), ["run", "outcome", "patient"], rows)
    files = {"folder": ["in"], "files": [inputs, labels], "beside": [inputs]}[given]
    data = parse_config(propose(files, InitOptions()).text).data
    (join,) = data.join
    assert (data.train, join["file"], sorted(join["on"])) == (inputs, labels, ["patient", "run"])
    assert (data.label, data.id) == ("outcome", ["patient", "run"] if steps else None)


def test_keys_of_which_few_are_in_both_files_are_counted(tmp_path, monkeypatch, draw, cli):
    """The command leaves out the rows without a partner. Its comment has their number."""
    monkeypatch.chdir(tmp_path)
    keys = [f"{name(draw)}{i}" for i in range(90)]
    rows = [[i, key, t, draw.random()] for i, key in enumerate(keys[:60]) for t in range(4)]
    write(Path("in/visits.csv"), ["id", "case", "day", "ax"], rows)
    others = [[key, draw.choice("uv"), draw.randint(20, 60)] for key in keys[40:]]
    write(Path("in/people.csv"), ["id", "verdict", "age"], others)
    refused = cli("init", "in", code=2).err
    (command,) = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    assert "# 20 of 60 values of 'case'" in command
    cli(*shlex.split(command, comments=True), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    on = {"left": "case", "right": "id"}
    assert config.data.join == [{"file": "in/people.csv", "on": on}]
    assert sum(map(len, prepare(config).splits.values())) == 20


def test_rows_numbered_alike_by_a_file_of_other_data_are_joined_by_a_printed_command(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    write(Path("tickets.csv"), ["id", "words"], [[i, sentence(draw)] for i in range(60)])
    other = write(Path("label_shop.csv"), ["id", "kind"], [[i, "uv"[i % 2]] for i in range(60)])
    refused = cli("init", "tickets.csv", code=2).err
    (command,) = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    cli(*shlex.split(command), "-o", "c.yaml")
    assert parse_config(Path("c.yaml").read_text()).data.join == [{"file": other, "on": "id"}]
    Path(other).rename("tickets_labels.csv")
    cli("init", "tickets.csv", "-o", "d.yaml")
    assert parse_config(Path("d.yaml").read_text()).data.label == "kind"


def nested_rows(draw, form: str, labels: list[str]) -> tuple[object, str]:
    """Return texts and labels deep inside JSON, and the name of the label."""
    texts = [(draw.choice(labels), sentence(draw)) for _ in range(90)]
    if form == "annotations":
        name_of_label = name(draw)
        result = {"from_name": name_of_label, "type": "choices", "id": "x"}
        rows = [
            {
                "id": i,
                "annotations": [{"result": [{**result, "value": {"choices": [label]}}]}],
                "data": {"words": text},
            }
            for i, (label, text) in enumerate(texts)
        ]
        return rows, name_of_label
    lists = {label: [text for own, text in texts if own == label] for label in labels}
    if form == "lists":
        rows = [{"topic": x, "says": lists[x], "answers": ["ok"]} for x in labels]
        return {"topics": rows}, "topic"
    parts = [({"text": text[:5]}, {"text": text[5:], "entity": "e"}) for _, text in texts]
    objects = {x: [{"data": parts[i]} for i in range(90) if texts[i][0] == x] for x in labels}
    return objects, "label"


@pytest.mark.parametrize("form", ["annotations", "lists", "objects by label"])
@pytest.mark.parametrize("indent", [None, 1])
def test_texts_and_labels_deep_in_json_are_written_as_rows_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, form, indent
):
    monkeypatch.chdir(tmp_path)
    labels = [f"{name(draw)}{x}" for x in "uvw"]
    value, name_of_label = nested_rows(draw, form, labels)
    Path("it's.json").write_text(json.dumps(value, indent=indent))
    refused = cli("init", "it's.json", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    assert parse_config(Path("c.yaml").read_text()).data.label == name_of_label
    counts = class_counts("c.yaml")
    assert {*counts} == {*labels}
    assert sum(counts.values()) == 90


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("comments", ["", "%Recorder\n%Rate = 250 Hz\n"])
def test_texts_of_numbers_in_folders_are_tables(tmp_path, monkeypatch, draw, cli, mark, comments):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), f"{name(draw)} 2"]
    for take in range(12):
        rows = recording(draw, take % 2)
        path = Path(write(Path(f"takes/{labels[take % 2]}/{take}.txt"), ["ax", "ay"], rows, mark))
        path.write_text(comments + path.read_text())
    for options, steps in (([], {"ax": "number", "ay": "number"}), (["--format", "txt"], None)):
        cli("init", "takes", *options, "-o", "c.yaml", "--force")
        assert class_counts("c.yaml") == dict.fromkeys(labels, 6)
        assert parse_config(Path("c.yaml").read_text()).data.steps == steps


@pytest.mark.parametrize("key", ["signs/{}/{}.csv", "{}/{}.csv", "{1}"])
def test_an_index_above_folders_of_recordings_is_the_first_command(
    tmp_path, monkeypatch, draw, cli, key
):
    monkeypatch.chdir(tmp_path)
    rows, labels = [], [name(draw), name(draw)]
    for i in range(24):
        place = (f"{16000 + i % 4}", f"take{i}")
        path = Path("all of it", "signs", place[0], f"{place[1]}.csv")
        write(path, ["ax", "ay"], recording(draw, i % 2))
        rows.append([key.format(*place), place[0], labels[i % 2]])
    write(Path("all of it/index.csv"), ["path", "who", "sign"], rows)
    refused = cli("init", "all of it", code=2).err
    command = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)[0]
    cli(*shlex.split(command), "--label", "sign", "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)


def run_commands(cli, said: str, *, first: int = 2) -> None:
    """Run the first printed commands: conversions, and those of `init`, which write c.yaml."""
    lines = re.findall(r"^seqtrain:   (.*)", said, re.M)[:first]
    for line in lines:
        if line.startswith("seqtrain convert "):
            cli(*shlex.split(line)[1:], "--force")
        else:
            cli(*shlex.split(line)[1:], "-o", "c.yaml", "--force")


@pytest.mark.parametrize("given", ["the folder", "its files"])
def test_endings_of_files_may_be_labels(tmp_path, monkeypatch, draw, cli, given):
    monkeypatch.chdir(tmp_path)
    Path("my texts").mkdir()
    paths = [f"my texts/it's {name(draw)}.{ending}" for ending in ("glad", "sad")]
    paths[1] = paths[0].replace("glad", "sad")
    for path in paths:
        Path(path).write_text("".join(sentence(draw) + "\n" for _ in range(30)))
    files = ["my texts"] if given == "the folder" else paths
    run_commands(cli, cli("init", *files, code=2).err, first=3)
    assert class_counts("c.yaml") == {"glad": 30, "sad": 30}


@pytest.mark.parametrize("ending", ["label", "txt"])
def test_labels_with_a_finer_one_before_texts_are_read_by_printed_commands(
    tmp_path, monkeypatch, draw, cli, ending
):
    monkeypatch.chdir(tmp_path)
    coarse = [name(draw).upper() for _ in range(2)]
    fine = [f"{draw.choice(coarse)}:{draw.choice('uv')}{i % 2}" for i in range(4)]
    labels = [fine[i % 4] for i in range(80)]
    path = Path(f"it's.{ending}")
    path.write_text("".join(f"{label} {sentence(draw)} ?\n" for label in labels))
    refused = cli("init", path, code=2).err
    run_commands(cli, refused)
    assert {*class_counts("c.yaml")} == {*labels}
    run_commands(cli, refused, first=4)
    assert {*class_counts("c.yaml")} == {label.partition(":")[0] for label in labels}


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_column_for_each_sequence_is_turned_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, mark
):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    names = ["time", *(f"{label}_{i}" for i in range(20) for label in labels)]
    rows = [[t, *(round(draw.gauss(t, 1), 3) for _ in names[1:])] for t in range(30)]
    write(Path("it's.csv"), names, rows, mark)
    refused = cli("init", "it's.csv", code=2).err
    run_commands(cli, refused.partition("its name begins")[2])
    assert class_counts("c.yaml") == dict.fromkeys(labels, 20)


@pytest.mark.parametrize("form", ["{}_{:02}", "{} {}", "{}{}"])
def test_columns_numbered_through_classes_are_turned_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    names = [form.format(labels[i % 2], i) for i in range(30)]
    rows = [[t / 10, *(round(draw.gauss(t, 1), 3) for _ in names)] for t in range(40)]
    write(Path("it's.csv"), ["Zeit", *names], rows)
    run_commands(cli, cli("init", "it's.csv", code=2).err)
    assert class_counts("c.yaml") == dict.fromkeys(labels, 15)


@pytest.mark.parametrize("given", ["the table", "both files", "the folder"])
def test_columns_whose_labels_are_in_another_file_are_turned_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, given
):
    """Names of columns are codes, which the other file has."""
    monkeypatch.chdir(tmp_path)
    names = [f"{name(draw)}{i}" if given != "the table" else f"S{i:03d}" for i in range(24)]
    label_of = {each: "uv"[i % 2] for i, each in enumerate(names)}
    rows = [[400 + 5 * t, *(round(draw.gauss(t, 1), 3) for _ in names)] for t in range(30)]
    spectra = write(Path("my lab/spectra.csv"), ["nm", *names], rows)
    found = [[each, label_of[each]] for each in draw.sample(names, len(names))]
    samples = write(Path("my lab/samples.csv"), ["sample", "species"], found)
    paths = {"the table": [spectra], "both files": [samples, spectra], "the folder": ["my lab"]}
    refused = cli("init", *paths[given], code=2).err
    (turned,) = run_conversion(cli, refused)
    asked = cli("init", turned, samples, code=2).err
    joining = re.findall(r"^seqtrain:   seqtrain (.*)", asked, re.M)[0]
    cli(*shlex.split(joining, comments=True), "--label", "species", "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.train, config.data.sequence) == (turned, "series")
    data = prepare(config)
    assert {*data.splits["train"].lengths.tolist()} == {30}
    assert sum(map(len, data.splits.values())) == 24


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_texts_in_files_of_folders_of_classes_are_rows_or_turns(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    for file in ("up/1", "up/2", "down/1", "down/2", "down/3", "up/3"):
        words = [sentence(draw) for _ in range(12)]
        path = Path(f"a b/{file}.{form}")
        if form == "csv":
            write(path, ["words"], [[text] for text in words])
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(json.dumps({"words": text}) for text in words))
    refused = cli("init", "a b", code=2).err
    found = re.findall(r"^seqtrain:   seqtrain (init .*)  # an? (\w+)", refused, re.M)
    assert [kind for _, kind in found] == ["example", "turn"]
    for (command, _), rows in zip(found, (36, 3), strict=True):
        cli(*shlex.split(command), "-o", "c.yaml", "--force")
        assert class_counts("c.yaml") == {"up": rows, "down": rows}


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_text_in_each_file_of_folders_of_classes(tmp_path, monkeypatch, draw, form):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        text, path = sentence(draw, "xy"[i % 2]), Path(f"takes/{'uv'[i % 2]}/{i}.{form}")
        write(path, ["words"], [[text]])
        if form == "jsonl":
            path.write_text(json.dumps({"words": text}))
    config, _ = proposed("takes")
    assert (config.data.sequence, config.data.id) == ("words", None)


def test_files_of_labels_with_further_words_are_commands(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[i, step, draw.gauss(i % 2, 1)] for i in range(40) for step in range(6)]
    write(Path("X_train.csv"), ["take", "step", "volt"], rows)
    write(Path("y_train.csv"), ["take", "state"], [[i, "uv"[i % 2]] for i in range(40)])
    write(Path("y_train_fine.csv"), ["take", "part"], [[i, "pqrs"[i % 4]] for i in range(40)])
    write(Path("y_test.csv"), ["take", "state"], [[i, "uv"[i % 2]] for i in range(40)])
    refused = cli("init", "X_train.csv", code=2).err
    found = list[int]()
    for command in re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M):
        cli(*shlex.split(command), "-o", "c.yaml", "--force")
        found.append(len(class_counts("c.yaml")))
    assert found == [2, 4]
    cli("init", "X_train.csv", "--label", "part", "-o", "c.yaml", "--force")
    assert len(class_counts("c.yaml")) == 4


def test_a_column_that_is_constant_in_each_file_may_be_the_label(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    for i in range(24):
        rows = [[step, draw.gauss(i % 2, 1), ["on", "off"][i % 3 == 0]] for step in range(9)]
        write(Path(f"takes/{'uv'[i % 2]}_{i:02}.csv"), ["step", "volt", "fan"], rows)
    said = cli("init", "takes", "-o", "c.yaml").err
    (options,) = re.findall("(--id file --label .*)", said)
    cli("init", "takes", *shlex.split(options), "-o", "c.yaml", "--force")
    assert class_counts("c.yaml") == {"on": 16, "off": 8}


def test_recordings_without_labels_anywhere_are_told_apart(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    for i in range(12):
        write(Path(f"takes/{i:03}.csv"), ["step", "volt"], [[s, draw.random()] for s in range(20)])
    refused = cli("init", "takes", code=2).err
    assert "no labels" in refused
    assert "--sequence" not in refused
    assert "…" not in refused


@pytest.mark.parametrize("others", [["act"], []])
def test_points_are_no_sequences_beside_events(tmp_path, monkeypatch, draw, cli, others):
    monkeypatch.chdir(tmp_path)
    objects = list[dict[str, object]]()
    for game in range(40):
        for step in range(12):
            each = {"game": game, "minute": step, "won": "uv"[game % 2]}
            each |= {name: draw.choice("abc") for name in others}
            objects.append(each | {"place": [draw.randrange(100), draw.randrange(60)]})
    Path("it's.jsonl").write_text("\n".join(map(json.dumps, objects)))
    said = cli("init", "it's.jsonl", "--label", "won", "-o", "c.yaml").err
    follow_printed(cli, said, "-o", "d.yaml")
    for file in ["c.yaml", "d.yaml"][not others :]:
        data = parse_config(Path(file).read_text()).data
        assert (data.id, data.order, data.label) == ("game", "minute", "won")
    assert [*data.steps] == [*others, "place_0", "place_1"]


@pytest.mark.parametrize("content", [b"PAR1junk", b"\x93NUMPY", b"\0\xff\0junk,\n", b""])
def test_files_beside_that_have_nothing_to_do_with_a_table(tmp_path, monkeypatch, draw, content):
    """They are in a folder beside it, or are named like labels, but the table has its own."""
    monkeypatch.chdir(tmp_path)
    numbers = [f"c{i}" for i in range(12)]
    rows = [[*(draw.random() for _ in numbers), "ab"[i % 2]] for i in range(60)]
    write(Path("wide.csv"), [*numbers, "label"], rows)
    rows = [[draw.choice("uvw"), draw.choice("xyz"), "ab"[i % 2]] for i in range(60)]
    write(Path("words.csv"), ["word", "size", "label"], rows)
    for ending in ("parquet", "npz", "csv", "csv.gz"):
        for file in (f"lab/labels.{ending}", f"lab/t0.{ending}", f"lab/t1.{ending}"):
            Path(file).parent.mkdir(exist_ok=True)
            Path(file).write_bytes(content)
    Path("labels.csv").write_bytes(content)
    for file in ("wide.csv", "words.csv"):
        config, _ = proposed(file)
        assert config.data.label == "label"
        assert config.data.join is None


@pytest.mark.parametrize("form", ["ids in files", "a file for each sequence", "texts", "deeper"])
@pytest.mark.parametrize("given", ["a folder", "a pattern", "its files"])
def test_folders_of_partitions_give_a_column_and_its_values(
    tmp_path, monkeypatch, draw, cli, form, given
):
    """As Spark and Hive write them: site=north/part-0.csv."""
    monkeypatch.chdir(tmp_path)
    key, values = name(draw), [f"{name(draw)} {name(draw)}", name(draw)]
    names = {"texts": ["words"], "a file for each sequence": ["ax", "ay"]}
    above = "year=2024/" if form == "deeper" else ""
    for i in range(20):
        rows: list[list[object]] = [
            [f"r{i}x{take}", *row] for take in (1, 2) for row in recording(draw, i % 2, 9)
        ]
        if form == "texts":
            rows = [[sentence(draw)] for _ in range(6)]
        elif form == "a file for each sequence":
            rows = recording(draw, i % 2, 9)
        path = Path(f"all/{above}{key}={values[i % 2]}/part-{i}.csv")
        write(path, names.get(form, ["rec_id", "ax", "ay"]), rows)
        path.with_name("_SUCCESS").touch()
    pattern = "all/**/*.csv"
    files = {"a folder": ["all"], "a pattern": [pattern]}.get(given)
    files = files or sorted(glob(pattern, recursive=True))
    if form == "a file for each sequence":
        refused = cli("init", *files, "-o", "c.yaml", code=2).err
        (command,) = re.findall("^seqtrain:   seqtrain (init .* --id file)$", refused, re.M)
        files = shlex.split(command)[1:]
    cli("init", *files, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.label == key
    data = prepare(config)
    assert {*data.preprocessing.labels} == {*values}
    sequences = {"texts": 120, "a file for each sequence": 20}.get(form, 40)
    assert sum(map(len, data.splits.values())) == sequences


def write_texts(folder: Path, draw, form: str, *, files: int = 60, lines: int = 3) -> list[str]:
    """Write texts with labels in their names, such as a03_LABEL.txt; return the labels."""
    labels = [name(draw) for _ in range(3)]
    folder.mkdir()
    for i in range(files):
        own = [sentence(draw, labels[i % 3]) for _ in range(lines)]
        text = "".join(f"{line}\n" for line in own)
        Path(folder, form.format(label=labels[i % 3], i=f"{i:02}")).write_text(text)
    return labels


@pytest.mark.parametrize("form", ["{label}_{i}.txt", "a{i}-{label}.txt", "{i} {label}.txt"])
@pytest.mark.parametrize("given", ["folder", "pattern", "files"])
def test_a_text_with_a_label_in_its_name_is_a_row(tmp_path, monkeypatch, draw, cli, form, given):
    monkeypatch.chdir(tmp_path)
    labels = write_texts(Path("calls"), draw, form)
    Path("calls/README").write_text("Calls of customers.\n")
    files = {"folder": ["calls"], "pattern": ["calls/*.txt"], "files": sorted(glob("calls/*.txt"))}
    said = cli("init", *files[given], "-o", "c.yaml").err
    assert class_counts("c.yaml") == dict.fromkeys(labels, 20)
    assert "--set data.id=null" in said
    cli("init", *files[given], "--set", "data.id=null", "-o", "lines.yaml")
    assert class_counts("lines.yaml") == dict.fromkeys(labels, 60)
    if given != "pattern":
        return
    cli("fit", "c.yaml", "--set", "training.max_epochs=1")
    one = sorted(glob("calls/*.txt"))[0]
    for path, rows in (("calls/*.txt", 60), (one, 1)):
        predicted = cli("predict", path).out.splitlines()
        assert len(predicted) == 1 + rows
        assert predicted[1].startswith(f"{one}\t")


def test_texts_of_a_line_each_are_rows_without_a_doubt(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    labels = write_texts(Path("notes"), draw, "{label}-{i}.txt", lines=1)
    assert "data.id=null" not in cli("init", "notes", "-o", "c.yaml").err
    assert class_counts("c.yaml") == dict.fromkeys(labels, 20)


@pytest.mark.parametrize("later", ["new.csv", "predictions.csv"])
def test_a_file_that_is_written_later_is_no_class(tmp_path, monkeypatch, draw, cli, later):
    monkeypatch.chdir(tmp_path)
    for label in "uv":
        write(Path(f"{label}.csv"), ["title", "text"], [[sentence(draw), label] for _ in range(40)])
    cli("init", "u.csv", "v.csv", "-o", "c.yaml")
    write(Path(later), ["title", "text"], [[sentence(draw), "u"]])
    assert class_counts("c.yaml") == {"u": 40, "v": 40}


def test_few_files_of_many_lines_are_asked_about(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    labels = write_texts(Path("parts"), draw, "{label}_{i}.txt", files=6, lines=40)
    refused = cli("init", "parts", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*?)  #", refused, re.M)
    cli(*shlex.split(commands[0]), "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 80)


@pytest.mark.parametrize("form", ["{}_labelled.txt", "{}.txt", "part-{}.txt"])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("given", ["folder", "files"])
def test_lines_with_labels_arent_classes_by_their_file(
    tmp_path, monkeypatch, draw, cli, form, side, header, given
):
    monkeypatch.chdir(tmp_path)
    words = ["amazon", "imdb", "yelp"] if form != "part-{}.txt" else ["1", "2", "3"]
    for word in words:
        rows = [[sentence(draw), r % 2] for r in range(40)]
        names = ["text", "sentiment"] if header else []
        rows = [row[::-1] if side == 0 else row for row in rows]
        names = names[::-1] if side == 0 else names
        write(Path("shops", form.format(word)), names, rows, "\t")
    files = ["shops"] if given == "folder" else sorted(glob("shops/*.txt"))
    if given == "files" and form == "part-{}.txt":  # files of one table
        cli("init", *files, "-o", "c.yaml")
    elif header and given == "files":
        refused = cli("init", *files, code=2).err
        cli(*shlex.split(re.findall(r"seqtrain (init .*)", refused)[-1]), "-o", "c.yaml")
    elif header:
        cli("init", *files, "-o", "c.yaml")
    else:
        refused = cli("init", *files, code=2).err
        commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
        (of_column,) = (line for line in commands if "--label " in line)
        (of_names,) = (line for line in commands if "data.path" in line)
        cli(*shlex.split(of_names, comments=True), "-o", "names.yaml")
        assert class_counts("names.yaml") == {
            form.format(word).removesuffix("_labelled.txt").removesuffix(".txt"): 40
            for word in words
        }
        cli(*shlex.split(of_column, comments=True), "-o", "c.yaml")
    assert class_counts("c.yaml") == {"0": 60, "1": 60}


@pytest.mark.parametrize(
    "files", [("mytrain.csv", "htest.csv"), ("MyTestset.tsv", "MyTrainingData.tsv")]
)
def test_a_test_file_of_any_name_is_a_command(tmp_path, monkeypatch, draw, cli, files):
    monkeypatch.chdir(tmp_path)
    for at, file in enumerate(files):
        rows = [[sentence(draw, "xy"[r % 2]), "xy"[r % 2]] for r in range(60 + 20 * at)]
        write(Path(file), ["text", "label"], rows, "," if file.endswith(".csv") else "\t")
    refused = cli("init", *files, code=2).err
    command = re.findall(r"seqtrain (init .* --test .*)", refused)[0]
    cli(*shlex.split(command), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert sorted(files, key=str.lower) == [data.test, data.train]


def test_a_file_beside_one_named_train_is_no_class(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    for file, size in {"asked_train.txt": 60, "HARD_10.txt": 20}.items():
        write(
            Path(file), [], [["xy"[r % 2], sentence(draw, "xy"[r % 2])] for r in range(size)], "\t"
        )
    refused = cli("init", "asked_train.txt", "HARD_10.txt", code=2).err
    (command,) = re.findall(r"seqtrain (init .* --test .*)", refused)
    cli(*shlex.split(command), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.train, data.test) == ("asked_train.txt", "HARD_10.txt")


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("gaitTRAINset.csv", "gaitTESTset.csv"),
        ("mailtraining.csv", "mailtest.csv"),
        ("digits.trn", "digits.tst"),
        ("strokes.tra", "strokes.tes"),
        ("census.data", "census.test"),
        ("vowels.train", "vowels.test"),
    ],
)
def test_parts_of_names_are_splits_and_no_classes(tmp_path, monkeypatch, draw, cli, train, test):
    monkeypatch.chdir(tmp_path)
    for file, size in ((train, 60), (test, 20)):
        rows = [[sentence(draw, "xy"[r % 2]), "xy"[r % 2]] for r in range(size)]
        write(Path(file), ["text", "kind"], rows)
    given = ["init", test, train, "--label", "kind"]
    if not train.endswith(".csv"):  # the command that names the format has both files
        refused = cli(*given, code=2).err
        given = shlex.split(re.findall("seqtrain (init .* --format csv)", refused)[0])
    cli(*given, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.train, data.test) == (train, test)


def write_archive(folder: Path, endings: list[str], draw) -> None:
    """Write series of two classes as TRAIN and TEST, each in several formats."""
    for split, size in {"TRAIN": 40, "TEST": 20}.items():
        rows = [[round(draw.gauss(r % 2, 1), 3) for _ in range(12)] for r in range(size)]
        for ending in endings:
            path = folder / f"Pulse_{split}.{ending}"
            labelled = [[*row, "uv"[r % 2]] for r, row in enumerate(rows)]
            if ending == "txt":
                write(path, [], [[r % 2, *row] for r, row in enumerate(rows)], "  ")
            else:
                write(path, [], labelled)
            head = {
                "ts": "@problemName Pulse\n@univariate true\n@classLabel true u v\n@data\n",
                "arff": "@relation Pulse\n"
                + "".join(f"@attribute t{k} numeric\n" for k in range(12))
                + "@attribute target {u,v}\n@data\n",
                "csv": ",".join([*(f"t{k}" for k in range(12)), "target"]) + "\n",
            }
            text = path.read_text()
            if ending == "ts":
                text = re.sub(",([uv])$", r":\1", text, flags=re.M)
            path.write_text(head.get(ending, "") + text)


@pytest.mark.parametrize("given", ["folder", "files"])
@pytest.mark.parametrize(
    ("endings", "read"),
    [(["arff", "ts", "txt"], "ts"), (["arff", "ts"], "ts"), (["arff", "txt"], "arff")],
)
def test_files_of_a_split_in_several_formats_are_read_once(
    tmp_path, monkeypatch, draw, given, endings, read
):
    monkeypatch.chdir(tmp_path)
    write_archive(Path("Pulse"), endings, draw)
    if read == "ts":  # a dimension alone, as in archives of UEA
        write_archive(Path("other"), ["arff"], draw)
        for path in Path("other").iterdir():
            path.rename(f"Pulse/{path.name.replace('_', 'Dimension1_')}")
    files = ["Pulse"] if given == "folder" else sorted(glob("Pulse/Pulse_*"))
    proposal = propose(files, InitOptions())
    data = parse_config(proposal.text).data
    assert (data.train, data.test) == (f"Pulse/Pulse_TRAIN.{read}", f"Pulse/Pulse_TEST.{read}")
    (said,) = [line for line in proposal.uses if "not read" in line]
    assert f"Pulse/Pulse_TEST.{endings[0 if read == 'ts' else 1]}" in said


def test_channels_of_relational_arff_are_read_from_the_file_of_all(
    tmp_path, monkeypatch, draw, cli
):
    """As archives of UEA hold them, beside a file for each channel."""
    monkeypatch.chdir(tmp_path)
    channels = draw.randint(2, 4)
    names = "".join(f"  @attribute t{step} numeric\n" for step in range(9))
    head = f"@relation W\n@attribute W relational\n{names}@end W\n@attribute kind {{u,v}}\n@data\n"
    write_archive(Path("Waves"), ["arff"], draw)
    for split in ("TRAIN", "TEST"):
        Path(f"Waves/Pulse_{split}.arff").rename(f"Waves/WavesDimension1_{split}.arff")
        rows = ""
        for i in range(24):
            series = [[f"{draw.gauss(i % 2, 1):.2f}" for _ in range(9)] for _ in range(channels)]
            rows += "'" + r"\n".join(map(",".join, series)) + f"','{'uv'[i % 2]}'\n"
        Path(f"Waves/Waves_{split}.arff").write_text(head + rows)
    cli("init", "Waves", "-o", "c.yaml")
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert class_counts("c.yaml") == {"u": 24, "v": 24}
    for store in data.splits.values():
        assert store.values.shape == (9 * len(store), channels)
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    predicted = cli("predict", "Waves/Waves_TEST.arff", "--run", "run").out.splitlines()
    assert len(predicted) == 25


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("given", ["", "--format"])
@pytest.mark.parametrize("inner", ["data", "some/set"])
def test_the_only_folder_with_data_is_the_data_set(
    tmp_path, monkeypatch, draw, cli, form, given, inner
):
    monkeypatch.chdir(tmp_path)
    folder = Path("corpus", inner)
    folder.mkdir(parents=True)
    for file in ("README.md", "dataset_infos.json", ".gitattributes"):
        Path("corpus", file).write_text("{}\n")
    for split, size in {"train": 60, "test": 20}.items():
        rows = [[sentence(draw, "xy"[r % 2]), "xy"[r % 2]] for r in range(size)]
        path = folder / f"{split}-00000-of-00001.{form}"
        if form == "csv":
            write(path, ["text", "label"], rows)
        else:
            columns = list(zip(*rows, strict=True))
            pq.write_table(pa.table({"text": columns[0], "label": columns[1]}), path)
    cli("init", "corpus", *([given, form] if given else []), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert data.train == f"corpus/{inner}/train-00000-of-00001.{form}"
    assert data.test == f"corpus/{inner}/test-00000-of-00001.{form}"


def test_one_folder_of_texts_of_a_class_is_no_data_set(tmp_path, draw, cli):
    for i in range(6):
        write(tmp_path / f"mails/spam/{i:02d}.txt", [], [[sentence(draw)]])
    cli("init", tmp_path / "mails", code=2)


@pytest.mark.parametrize("given", ["folder", "files"])
@pytest.mark.parametrize("form", ["sample_submission.csv", "sampleSubmission.csv"])
def test_a_form_for_predictions_is_left_out(tmp_path, monkeypatch, draw, given, form):
    monkeypatch.chdir(tmp_path)
    for split, size in {"train": 60, "test": 20}.items():
        rows = [[i, sentence(draw, "xy"[i % 2]), i % 2] for i in range(size)]
        names = ["id", "review", "target"]
        if split == "test":
            names, rows = names[:2], [row[:2] for row in rows]
        write(Path(f"task/{split}.csv"), names, rows)
    write(Path("task", form), ["id", "target"], [[i, 0] for i in range(20)])
    files = (
        ["task"] if given == "folder" else [f"task/{x}" for x in ("train.csv", "test.csv", form)]
    )
    proposal = propose(files, InitOptions())
    assert parse_config(proposal.text).data.train == "task/train.csv"
    assert any("not read" in line and form in line for line in proposal.uses)


@pytest.mark.parametrize("word", ["text", "sentences"])
def test_texts_and_labels_of_each_split_are_joined(tmp_path, monkeypatch, draw, word):
    monkeypatch.chdir(tmp_path)
    for split, size in {"train": 60, "val": 24, "test": 20}.items():
        lines = [[sentence(draw, "xyz"[i % 3])] for i in range(size)]
        write(Path(f"irony/{split}_{word}.txt"), [], lines)
        write(Path(f"irony/{split}_labels.txt"), [], [[i % 3] for i in range(size)])
    write(Path("irony/mapping.txt"), [], [[i, name(draw)] for i in range(3)], "\t")
    proposal = propose(["irony"], InitOptions())
    data = prepare(parse_config(proposal.text))
    found = {split: len(store) for split, store in data.splits.items()}
    assert found == {"train": 60, "validation": 24, "test": 20}
    assert len(data.preprocessing.labels) == 3
    assert any("irony/mapping.txt" in line for line in proposal.uses)


@pytest.mark.parametrize("given", ["folder", "files", "file"])
@pytest.mark.parametrize("others", [["topic"], ["topic", "act", "emotions"]])
def test_parallel_files_of_texts_and_labels_are_no_classes(
    tmp_path, monkeypatch, draw, cli, given, others
):
    """`topic` and `act` have a label per line, `emotions` has a list."""
    monkeypatch.chdir(tmp_path)
    size = 80
    write(Path("chats_words.txt"), [], [[sentence(draw, "uv"[i % 2])] for i in range(size)])
    for kind in others:
        length = 3 if kind == "emotions" else 1
        rows = [[" ".join(str((i + k) % 2) for k in range(length))] for i in range(size)]
        write(Path(f"chats_{kind}.txt"), [], rows)
    files = {"folder": ["."], "file": ["chats_words.txt"]}.get(given) or sorted(glob("*.txt"))
    if len(others) > 1:
        refused = cli("init", *files, code=2).err
        commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
        assert len(commands) == 2
        cli(*shlex.split(commands[-1]), "-o", "c.yaml")
    else:
        cli("init", *files, "-o", "c.yaml")
    assert parse_config(Path("c.yaml").read_text()).data.label == "chats_topic"
    assert class_counts("c.yaml") == {"0": 40, "1": 40}


@pytest.mark.parametrize("rows_are_named", [False, True])
def test_tables_in_txt_of_two_splits(tmp_path, monkeypatch, draw, cli, rows_are_named):
    """R writes no name above the names of the rows."""
    monkeypatch.chdir(tmp_path)
    for file, size in {"roomtraining.txt": 40, "roomtest.txt": 12}.items():
        rows = []
        for trial in range(size):
            rows += [[trial, *row, "uv"[trial % 2]] for row in recording(draw, trial % 2)]
        if rows_are_named:
            rows = [[at, *row] for at, row in enumerate(rows, start=1)]
        write(Path(file), ["trial", "ax", "ay", "state"], rows)
    cli("init", "roomtraining.txt", "roomtest.txt", "--id", "trial", "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.format, config.data.label) == ("csv", "state")
    assert len(prepare(config).splits["test"]) == 12


@pytest.mark.parametrize("names", [("a_TRAIN.txt", "a_TEST.txt"), ("it's.txt", "--test", "b.txt")])
@pytest.mark.parametrize("packed", [False, True])
def test_commands_that_rewrite_files_rewrite_all_of_them(
    tmp_path, monkeypatch, draw, cli, names, packed
):
    monkeypatch.chdir(tmp_path)
    files = [f"{file}.gz" if packed and ".txt" in file else file for file in names]
    for file in files:
        lines = [
            [r % 2 + 1, *(round(draw.gauss(r % 2, 1), 4) for _ in range(9))] for r in range(60)
        ]
        text = "".join("  ".join(map(str, line)) + "\n" for line in lines)
        if packed and file != "--test":
            Path(file).write_bytes(gzip.compress(text.encode()))
        elif file != "--test":
            Path(file).write_text(text)
    refused = cli("init", *files, code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.test is not None
    assert {name: len(x) for name, x in prepare(config).splits.items()}["test"] == 60


@pytest.mark.parametrize("mark", [",", "\t"])
@pytest.mark.parametrize("place", [0, 1])
def test_labels_by_a_key_without_a_name_are_a_command(
    tmp_path, monkeypatch, draw, cli, mark, place
):
    monkeypatch.chdir(tmp_path)
    ending = "csv" if mark == "," else "tsv"
    events, labels = [], []
    for key in range(1, 61):
        events += [[key * 3, t, name(draw)[: 1 + key % 2]] for t in range(draw.randint(3, 6))]
        labels.append([key % 2, key * 3] if place else [key * 3, key % 2])
    write(Path("log_train.csv"), ["enrollment", "time", "event"], events)
    write(Path(f"truth_train.{ending}"), [], labels, mark)
    refused = cli("init", "log_train.csv", f"truth_train.{ending}", code=2).err
    run_commands(cli, refused)
    assert class_counts("c.yaml") == {"0": 30, "1": 30}


def test_a_recording_from_stdin_needs_no_key_of_its_label(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    files = write_recordings(draw, "stems")
    cli("init", "rec", "labels.csv", "--label", "activity", "-o", "c.yaml")
    cli("fit", "c.yaml", "--set", "training.max_epochs=1")
    by_path = cli("predict", files[3]).out.splitlines()[1].partition("\t")[2]
    text = Path(files[3]).read_text()
    by_pipe = cli("predict", "-", "--input-format", "csv", stdin=text).out.splitlines()[1]
    assert by_pipe.partition("\t")[2] == by_path


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_test_file_whose_labels_are_marks_has_none(tmp_path, monkeypatch, draw, cli, form):
    """Hugging Face writes -1 for a hidden label: as no name in parquet, as a number in csv."""
    monkeypatch.chdir(tmp_path)
    names = [name(draw), name(draw)]
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    told = json.dumps({"info": {"features": features}})
    files = []
    Path("data").mkdir()
    for split, rows in (("train", 60), ("validation", 20), ("test", 20)):
        labels = [-1 if split == "test" else i % 2 for i in range(rows)]
        texts = [sentence(draw, names[label]) for label in labels]
        files.append(f"data/{split}-00000-of-00001.{form}")
        if form == "csv":
            write(Path(files[-1]), ["sentence", "label"], list(zip(texts, labels, strict=True)))
            continue
        table = pa.table({"sentence": texts, "label": labels})
        pq.write_table(table.replace_schema_metadata({"huggingface": told}), files[-1])
    cli("init", "data", "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.train, data.validation, data.test) == (*files[:2], None)
    said = propose(files[:2], InitOptions()).uses
    (command,) = [line for line in said if line.startswith("  seqtrain init")]
    cli(*shlex.split(command)[1:], "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.train, data.validation, data.test) == (*files[:2], None)


@pytest.mark.parametrize("key", ["name", "path", "stem"])
def test_one_folder_of_recordings_beside_their_labels_is_no_class(
    tmp_path, monkeypatch, draw, cli, key
):
    monkeypatch.chdir(tmp_path)
    folder, labels = name(draw), [name(draw), name(draw)]
    rows = []
    for i in range(24):
        write(Path(f"{folder}/{i:03d}.csv"), ["ax", "ay"], recording(draw, i % 2))
        keys = {"name": f"{i:03d}.csv", "path": f"{folder}/{i:03d}.csv", "stem": f"{i:03d}"}
        rows.append([keys[key], labels[i % 2]])
    write(Path("labels.csv"), ["recording", "condition"], rows)
    cli("init", ".", "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 12)


@pytest.mark.parametrize("target", ["labels.csv", "y.csv", "classes.tsv"])
def test_a_folder_of_one_text_file_and_its_labels(tmp_path, monkeypatch, draw, cli, target):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    own = [labels[i % 2] for i in range(60)]
    Path("calls.txt").write_text("".join(f"{sentence(draw, label)}\n" for label in own))
    write(Path(target), [], [[label] for label in own])
    cli("init", ".", "-o", "c.yaml")
    assert class_counts("c.yaml") == dict.fromkeys(labels, 30)


@pytest.mark.parametrize("mark", [",", ";"])
@pytest.mark.parametrize("places", [["text", "label"], ["label", "text"]])
def test_a_test_file_with_a_header_that_train_lacks(tmp_path, monkeypatch, draw, cli, mark, places):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    rows = [{"label": labels[i % 2], "text": sentence(draw, labels[i % 2])} for i in range(80)]
    train = [[row[place] for place in places] for row in rows]
    write(Path("train.csv"), [], train, mark)
    new = [[i, sentence(draw, labels[i % 2])] for i in range(20)]
    write(Path("test.csv"), ["reviewID", "review"], new, mark)
    said = cli("init", "train.csv", "test.csv", "-o", "c.yaml").err
    assert parse_config(Path("c.yaml").read_text()).data.test is None
    command, predict = re.findall("seqtrain (convert .*); .*seqtrain (predict .*)", said)[0]
    cli(*shlex.split(command))
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    texts = [text for _, text in new]
    expected = cli("predict", "-", "run", "--input-format", "lines", stdin="\n".join(texts)).out
    assert cli(*shlex.split(predict), "run").out == expected
