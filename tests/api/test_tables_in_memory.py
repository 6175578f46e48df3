"""Data in memory: frames, datasets, dicts and lists train, predict and score as a file does.

pandas, polars and datasets aren't needed here: `Frame` and `Dataset` have what their tables have.
"""

from __future__ import annotations

import csv
import gc
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import seqtrain
from seqtrain.errors import CheckpointError, ConfigError, DataError
from tests.helpers.tiny import Cli, rows

ROWS = [{"text": text, "label": label, "n": i} for i, (text, label) in enumerate(rows(60, seed=1))]
TEST = [{"text": text, "label": label} for text, label in rows(20, seed=2)]
CONFIG: dict[str, Any] = {
    "data": {"sequence": "text", "label": "label", "validation": 0.2},
    "batching": {"batch_size": 8},
    "model": {"embedding_dim": 4, "hidden_size": 4},
    "training": {"max_epochs": 2, "lr": 0.02},
}


class Frame:
    """A DataFrame as pandas and polars have it: names in `columns`, and columns that iterate."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self._values = list(columns), columns

    def __len__(self) -> int:
        return len(next(iter(self._values.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Any:
        return np.array(self._values[name], dtype=object)


class Dataset:
    """A Dataset of Hugging Face: names in `column_names`, and names of classes in `features`."""

    class ClassLabel:
        names = ("down", "up")

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.column_names = list(columns)
        self.features = {"text": None, "label": self.ClassLabel()}
        numbers = [self.ClassLabel.names.index(label) for label in columns["label"]]
        self._values = {**columns, "label": numbers}

    def __len__(self) -> int:
        return len(self._values["label"])

    def __getitem__(self, name: str) -> list[Any]:
        return self._values[name]


def columns(given: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in given] for name in given[0]}


class ArrowDataset(Dataset):
    """A Dataset whose rows may be read only as columns of Arrow."""

    def with_format(self, kind: str) -> ArrowColumns:
        assert kind == "arrow"
        return ArrowColumns(self._values)

    def __getitem__(self, name: str) -> list[Any]:
        raise AssertionError("read row by row")


class ArrowColumns:
    """What `Dataset.with_format("arrow")` returns."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    def __getitem__(self, rows: slice) -> Any:
        return pa.table(self.columns).slice(rows.start or 0)


KINDS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list of dicts": lambda given: given,
    "dict of lists": columns,
    "frame": lambda given: Frame(columns(given)),
    "dataset": lambda given: Dataset(columns(given)),
    "dataset of Arrow": lambda given: ArrowDataset(columns(given)),
    "pyarrow": lambda given: pa.table(columns(given)),
}


def write_csv(path: Path, given: list[dict[str, Any]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, given[0])
        writer.writeheader()
        writer.writerows(given)
    return str(path)


def weights(run: seqtrain.Run) -> bytes:
    return (run.path / "best" / "model.safetensors").read_bytes()


def fit(path: Path, **given: Any) -> seqtrain.Run:
    return seqtrain.fit(CONFIG, **given, run_dir=path, progress=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> seqtrain.Run:
    return fit(tmp_path_factory.mktemp("runs") / "r", train=ROWS, test=TEST)


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> seqtrain.Run:
    folder = tmp_path_factory.mktemp("files")
    files = {"train": write_csv(folder / "a.csv", ROWS), "test": write_csv(folder / "b.csv", TEST)}
    return fit(folder / "r", **files)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_read_as_a_file_is(kind: str, of_files: seqtrain.Run, tmp_path: Path) -> None:
    make = KINDS[kind]
    run = fit(tmp_path / "r", train=make(ROWS), test=make(TEST))
    assert weights(run) == weights(of_files)
    assert run.test == of_files.test
    texts = [row["text"] for row in TEST]
    expected = [each.label for each in seqtrain.load(of_files).predict(texts)]
    assert [each.label for each in seqtrain.load(run).predict(make(TEST))] == expected
    assert [each.label for each in seqtrain.predict(make(TEST), of_files)] == expected
    assert seqtrain.evaluate(of_files, data=make(TEST)).scores == run.test
    assert seqtrain.check(of_files, data=make(TEST)).passed


def test_a_run_remembers_the_data_that_it_was_given(run: seqtrain.Run) -> None:
    found = seqtrain.evaluate(run, split="validation")
    assert 0 < found.scores.num_examples < len(ROWS)
    assert seqtrain.evaluate(run).scores == run.test
    assert seqtrain.check(run).passed


def test_columns_to_keep_come_with_predictions(run: seqtrain.Run) -> None:
    first = next(seqtrain.predict(Frame(columns(ROWS)), run, keep=["n"]))
    assert first.example is not None
    assert first.example.kept == {"n": 0}


def test_a_run_goes_on_with_the_same_data_alone(tmp_path: Path, cli: Cli) -> None:
    own = ROWS[5:]
    run = fit(tmp_path / "r", train=own)
    recorded = (run.path / "environment.json").read_text()
    again = {"run_dir": run.path, "resume": True, "progress": False}
    before = weights(run)
    config = run.path / "config.yaml"
    assert weights(seqtrain.fit(config, train=Frame(columns(own)), **again)) == before
    reordered = {name: columns(own)[name] for name in ("n", "label", "text")}
    assert weights(seqtrain.fit(config, train=reordered, **again)) == before
    swapped = {**columns(own), "text": columns(own)["label"], "label": columns(own)["text"]}
    for others in (own[1:], [{**own[0], "text": "rise"}, *own[1:]], TEST, swapped):
        with pytest.raises(CheckpointError, match=r"^data\.train: not the data in memory"):
            seqtrain.fit(config, train=others, **again)
    assert run.tables[0].digest() in recorded
    del run
    gc.collect()
    ended = cli("fit", str(config), "--resume", "--run-dir", str(tmp_path / "r"), code=2)
    (line,) = ended.problems
    assert "data.train: memory:train-" in line
    assert "give the table again in Python (train=)" in line
    with pytest.raises(DataError, match=r"table again in Python \(train=\)"):
        seqtrain.fit(config, **again)
    with pytest.raises(ConfigError, match=r"^data\.train: missing.* table in Python \(train=\)"):
        seqtrain.fit(CONFIG, **again)
    other = ["eval", str(tmp_path / "r"), "--split", "validation"]
    (line,) = cli(*other, code=2).problems
    assert line.endswith("give the same data again, or a labelled file (--data)")


def test_a_search_takes_a_table(tmp_path: Path) -> None:
    tables = {"train": ROWS, "validation": TEST[::2], "test": TEST}
    found = seqtrain.tune(CONFIG, **tables, trials=1, run_dir=tmp_path / "t")
    assert weights(found.run) == weights(fit(tmp_path / "r", **tables))
    assert found.run.test == seqtrain.evaluate(tmp_path / "r", data=TEST).scores


def test_data_that_changed_since_it_was_given_is_not_read(tmp_path: Path) -> None:
    given = columns(TEST)
    run = seqtrain.fit(CONFIG, train=ROWS, test=given, run_dir=tmp_path / "r", progress=False)
    given["label"][0] = "down" if given["label"][0] == "up" else "up"
    with pytest.raises(DataError, match="test: was changed"):
        seqtrain.evaluate(run)


def test_blank_cells_of_frames(tmp_path: Path) -> None:
    """A missing label or text is a blank cell; labels that blanks made floats are whole numbers."""
    blank = [{"text": math.nan, "label": 1.0}, {"text": "rise", "label": math.nan}]
    with pytest.raises(DataError) as caught:
        fit(tmp_path / "r", train=[*ROWS, *blank])
    assert [problem.partition(": ")[2] for problem in caught.value.problems[:2]] == [
        "the sequence is empty; data.empty: drop or unk, set before training, accepts such rows",
        "the label is blank",
    ]
    config = {**CONFIG, "data": {**CONFIG["data"], "empty": "drop", "bad_rows": "drop"}}
    numbered = [{**row, "label": float(row["label"] == "up")} for row in ROWS]
    run = seqtrain.fit(config, train=[*numbered, *blank], run_dir=tmp_path / "r", progress=False)
    assert seqtrain.load(run).labels == ("0", "1")


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        ((0, 1), (0, 1)),
        ((False, True), (False, True)),
        ((9, 10), (10, 9)),
        ((1.0, math.nan, 2.0), (1, 2)),
        ((0, "1"), ("0", "1")),
        (([0, 2], [2]), (0, 2)),
    ],
)
def test_labels_come_back_with_the_type_of_the_table(
    cells: tuple[Any, ...], classes: tuple[Any, ...], tmp_path: Path
) -> None:
    texts = [f"{['fall', 'rise', 'sink'][i % len(cells)]} of n{i}" for i in range(60)]
    table = {"text": texts, "label": [cells[i % len(cells)] for i in range(60)]}
    config = {**CONFIG, "data": {**CONFIG["data"], "bad_rows": "drop"}}
    run = seqtrain.fit(config, train=table, run_dir=tmp_path / "r", progress=False)
    classifier, stream = seqtrain.load(run), seqtrain.predict(texts, run)
    found = classifier.predict(texts)
    assert found.classes == stream.classes == classes
    labels = [label for each in found for label in each.labels]
    assert {*map(type, [*found.classes, *found[0].probabilities, *labels])} == {type(classes[0])}
    np.testing.assert_array_equal(stream.probabilities, found.probabilities)
    if not isinstance(cells[0], list):
        assert found.labels == labels
    classifier.set_threshold(classes[1], 0.0)
    again = classifier.predict(texts)
    assert all(classes[1] in each.labels for each in again)
    assert {*again[0].as_text().probabilities} == {*classifier.labels}
    assert seqtrain.evaluate(run, data=table).scores.labels == [*classifier.labels]


@pytest.mark.parametrize("series", [np.array, torch.tensor, list, str])
def test_series_of_numbers(series: Callable[[Any], Any], tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    values = [draw.normal(size=(3 + i % 3, 2)).round(2).tolist() for i in range(20)]
    labels = ["ab"[i % 2] for i in range(20)]
    config = {**CONFIG, "data": {"sequence": "s", "label": "y", "kind": "features"}}
    given = Frame({"s": [series(each) for each in values], "y": labels})
    run = seqtrain.fit(config, train=given, run_dir=tmp_path / "r", progress=False)
    assert len(seqtrain.load(run).predict(given)) == 20


class DatasetDict(dict[str, Any]):
    column_names = {"train": ["text"], "test": ["text"]}  # noqa: RUF012


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": "rise"}, r"the column text is a str; .* for one row give a list of it: \[row\]"),
        ({"text": np.array("rise")}, "the column text is a ndarray"),
        ([{"title": "rise"}], "no column 'text'; found 'title'"),
        ({"text": ["rise", {"a": 5}]}, "data:2: text: expected a string, found an object"),
        (pa.table([["a"], ["b"]], names=["text", "text"]), "the column text occurs twice"),
        (DatasetDict(train=[]), r"several tables: train, test; give one: data\['train'\]"),
    ],
)
def test_what_is_wrong_with_a_table(run: seqtrain.Run, given: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        seqtrain.load(run).predict(given)
    assert len(re.findall(words, str(caught.value))) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([5], "train: found an object of type list; expected a file, or a DataFrame"),
        ({"text": ["rise"], "label": ["up", "up"]}, "found 1 values of text, 2 values of label"),
        ({"text": ["rise"]}, "no column 'label'; found 'text'"),
        ("nosuch.csv", r"data\.train: no file 'nosuch\.csv'"),
    ],
)
def test_what_cannot_be_trained_on(given: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        fit(tmp_path / "r", train=given)
    assert not (tmp_path / "r").exists()


def test_the_current_directory_may_be_the_run_of_data_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fit(Path(), train=ROWS)
    assert (tmp_path / "best" / "model.json").is_file()


def test_settings_of_a_split_are_those_of_the_config(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.validation"):
        fit(tmp_path / "r", train=ROWS, validation=1.5)
    run = fit(tmp_path / "r", train=ROWS, validation=0.5)
    assert seqtrain.evaluate(run, split="validation").scores.num_examples == 30


@pytest.mark.parametrize("kind", ["list of dicts", "frame"])
def test_a_row_per_time_step(kind: str, tmp_path: Path) -> None:
    """Rows of an id needn't follow one another; their order is a date."""
    given = [
        {"id": i, "day": f"2026-01-{9 - k:02}", "poi": "xyz"[(i + k) % 3], "user": "ab"[i % 2]}
        for k in range(5)
        for i in range(20)
    ]
    data = {"id": "id", "order": "day", "label": "user"}
    config = {**CONFIG, "data": data | {"steps": {"poi": "token", "since": "order"}}}
    files, table = write_csv(tmp_path / "a.csv", given), KINDS[kind](given)
    of_file = seqtrain.fit(config, train=files, run_dir=tmp_path / "f", progress=False)
    run = seqtrain.fit(config, train=table, run_dir=tmp_path / "r", progress=False)
    assert weights(run) == weights(of_file)
    predictions = seqtrain.load(run).predict(table)
    assert predictions == list(seqtrain.predict(files, of_file))
    assert [each.example.id for each in predictions if each.example] == [str(i) for i in range(20)]
    assert seqtrain.evaluate(run, data=table).scores.num_examples == 20
    for sequences in (["abc"], [["x", "y"]], np.zeros((2, 3))):
        with pytest.raises(DataError, match=r"reads the columns id, day, poi; give a table$"):
            seqtrain.load(run).predict(sequences)


def test_what_init_and_fit_expect_is_said_in_a_line() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'labl'"):
        seqtrain.init(ROWS, labl="label")
    with pytest.raises(DataError, match=r"^data: found an empty list"):
        seqtrain.init([])
    with pytest.raises(
        ConfigError, match=r"^config: .* of type list; .* fit\(init\(data\), train="
    ):
        seqtrain.fit(ROWS)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_init_proposes_what_it_does_for_a_file(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_file = seqtrain.init(write_csv(tmp_path / "a.csv", ROWS))
    said = capsys.readouterr().err
    assert "2 classes: " in said
    config = seqtrain.init(KINDS[kind](ROWS), output=tmp_path / "c.yaml")
    assert capsys.readouterr().err == said
    assert config.model_copy(update={"data": of_file.data}) == of_file
    assert seqtrain.load_config(tmp_path / "c.yaml") == config


@pytest.mark.parametrize("label", ["kind", 7])
def test_init_finds_columns_of_any_name(label: Any) -> None:
    given = {"question": [row["text"] for row in ROWS], label: [row["label"] for row in ROWS]}
    for chosen in ({}, {"label": label}):
        config = seqtrain.init(given, **chosen)
        assert (config.data.sequence, config.data.label) == ("question", str(label))
    assert config.data.train == seqtrain.init(given).data.train


def test_init_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("seed: 1\n")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data": ROWS, "output": tmp_path / "c.yaml"}, "exists"),
        ({"data": ROWS, "label": "stars"}, "no column 'stars'"),
        ({"data": 5}, "train: found an object of type int; expected a file, or a DataFrame"),
        ({"data": tmp_path / "no.csv"}, "no such file"),
    ]
    for given, words in wrong:
        with pytest.raises((ConfigError, DataError), match=words):
            seqtrain.init(given.pop("data"), **given)
    with pytest.raises(DataError, match=r"data\.train: memory:train-.*again"):
        seqtrain.fit(seqtrain.init(TEST))


@pytest.mark.parametrize("table", [columns(ROWS), ROWS, {"text": np.array(["a"]), "label": (1,)}])
def test_a_table_in_place_of_a_config_is_refused_with_advice(table: Any) -> None:
    with pytest.raises(ConfigError, match=r"fit\(init\(data\), train=data\)"):
        seqtrain.fit(table)


def test_paths_lists_of_paths_and_folds_are_given_as_in_a_config(tmp_path: Path) -> None:
    whole = Path(write_csv(tmp_path / "a.csv", ROWS))
    parts = [
        write_csv(tmp_path / f"{name}.csv", own) for name, own in (("b", ROWS[:9]), ("c", ROWS[9:]))
    ]
    expected = weights(fit(tmp_path / "r", train=str(whole)))
    given: tuple[Any, ...] = (whole, [whole], parts, [Path(part) for part in parts])
    for number, train in enumerate(given):
        assert weights(fit(tmp_path / f"{number}", train=train)) == expected
    fold = {"fold": 1, "of": 2}
    run = fit(tmp_path / "fold", train=parts, validation=fold)
    assert seqtrain.evaluate(run, split="validation").scores.num_examples == len(ROWS) // 2
    assert weights(fit(tmp_path / "rows", train=ROWS, validation=fold)) == weights(run)


def test_given_weights_are_as_good_as_a_column_and_multiply_it(tmp_path: Path) -> None:
    """Rows that are held out have theirs, too: calibration obeys them."""
    first, second = np.random.default_rng(0).integers(1, 4, (2, len(ROWS)))
    keys = {name: dict(CONFIG[name]) for name in ("batching", "model", "training")}
    found = list[tuple[Any, str]]()
    for name, column, given in (
        ("column", first * second, None),
        ("given", None, first * second),
        ("both", first, second),
    ):
        data = {**CONFIG["data"], "validation": 0.4}
        table = columns(ROWS)
        if column is not None:
            data["weight"], table["w"] = "w", column.tolist()
        run = seqtrain.fit(
            {**keys, "data": data},
            train=table,
            sample_weight=given,
            run_dir=tmp_path / name,
            progress=False,
        )
        saved = json.loads((run.path / "best" / "model.json").read_text())
        found.append((weights(run), saved["calibration"]))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("weights", [[1.0], [[1.0]] * 40, [-1.0] * 40, [float("nan")] * 40, "no"])
def test_wrong_weights_are_refused_in_a_line(weights, tmp_path):
    table = {"s": ["a b", "b c"] * 20, "l": ["x", "y"] * 20}
    config = {"data": {"sequence": "s", "label": "l"}}
    with pytest.raises(ConfigError, match=r"^sample_weight: ") as caught:
        seqtrain.fit(config, train=table, sample_weight=weights, run_dir=tmp_path / "r")
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "r").exists()
