"""data.window: the rows of an id, cut into sequences."""

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("torch")

import itertools

from seqtrain.config import config_from_mapping
from seqtrain.errors import ConfigError
from seqtrain.sequences.dataset import prepare


def write(path: Path, ids: int = 8, seed: int = 0) -> None:
    """Write a table whose ids change their activity every few steps."""
    draw, lines = random.Random(seed), ["subject,time,x,activity"]
    for number in range(ids):
        time = 0
        for _ in range(5):
            label = draw.randrange(2)
            for _ in range(draw.randint(5, 9)):
                lines.append(f"s{number},{time},{2 * label + draw.gauss(0, 0.1):.3f},{'ab'[label]}")
                time += 1
    path.write_text("\n".join(lines) + "\n")


def prepared(folder: Path, window: dict, **data):
    write(folder / "a.csv")
    keys = {"id": "subject", "order": "time", "steps": {"x": "number"}, "label": "activity"}
    values = {"train": str(folder / "a.csv"), "window": window, **keys, **data}
    return prepare(config_from_mapping({"data": values}))


def windows(sizes: list[int], steps: int, stride: int) -> list[int]:
    """Return the lengths of the windows of sequences, counted in the plainest way."""
    found = []
    for size in sizes:
        start = 0
        while start < size:
            found.append(min(steps, size - start))
            if start + steps >= size:
                break
            start += stride
    return found


@pytest.mark.parametrize(("steps", "stride"), [(6, 6), (6, 3), (6, 1), (4, 9), (1000, 5)])
def test_windows_begin_every_stride_until_the_end(tmp_path, steps, stride):
    store = prepared(tmp_path, {"steps": steps, "stride": stride}).splits["train"]
    rows = (tmp_path / "a.csv").read_text().splitlines()[1:]
    ids = [row.partition(",")[0] for row in rows]
    sizes = [ids.count(name) for name in dict.fromkeys(ids)]
    assert store.lengths.tolist() == windows(sizes, steps, stride)


def test_the_label_is_that_of_the_last_step_or_of_most(tmp_path):
    labels = {}
    for rule in ("last", "majority"):
        prepared_data = prepared(tmp_path, {"steps": 7, "stride": 7, "label": rule})
        names = prepared_data.preprocessing.label_set.classes
        labels[rule] = [names[code] for code in prepared_data.splits["train"].labels.tolist()]
    rows = [row.split(",") for row in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    last, majority = [], []
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row[3] for row in rows if row[0] == name]
        for start in range(0, len(own), 7):
            part = own[start : start + 7]
            last.append(part[-1])
            majority.append(max("ab", key=lambda label: (part.count(label), part[-1] == label)))
    assert labels["last"] == last
    assert sum(x != y for x, y in zip(labels["majority"], majority, strict=True)) <= 2  # ties


def test_a_window_of_a_constant_label_ends_where_it_changes(tmp_path):
    store = prepared(tmp_path, {"label": "constant"}).splits["train"]
    rows = [row.split(",") for row in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    changes = sum(a[0] != b[0] or a[3] != b[3] for a, b in itertools.pairwise(rows))
    assert len(store) == changes + 1


def test_windows_of_an_id_stay_on_one_side(tmp_path):
    data = prepared(tmp_path, {"steps": 5, "stride": 2}, validation=0.3)
    rows = (tmp_path / "a.csv").read_text().splitlines()
    sides = []
    for split in ("train", "validation"):
        lines = data.splits[split].lines.tolist()
        sides.append({rows[line - 1].partition(",")[0] for line in lines})
    assert not sides[0] & sides[1]
    assert len(sides[0] | sides[1]) == 8


def test_each_window_is_predicted_with_its_lines(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv", ids=20)
    Path("c.yaml").write_text(
        "data: {train: a.csv, validation: 0.3, id: subject, order: time, steps: {x: number},\n"
        "  label: activity, window: {steps: 5}}\ntraining: {max_epochs: 2}\n"
    )
    cli("fit", "c.yaml", "--run-dir", "r")
    out = cli("predict", "a.csv", "r", "--format", "jsonl").out
    found = [json.loads(row) for row in out.splitlines()]
    rows = (tmp_path / "a.csv").read_text().splitlines()
    for row in found:
        first, last = row["first_line"], row["last_line"]
        assert 1 <= last - first + 1 <= 5
        assert {line.partition(",")[0] for line in rows[first - 1 : last]} == {row["subject"]}
    assert sum(row["last_line"] - row["first_line"] + 1 for row in found) == len(rows) - 1
    header = cli("predict", "a.csv", "r").out.splitlines()[0].split("\t")
    assert header[:3] == ["first_line", "last_line", "subject"]


@pytest.mark.parametrize(
    "window", [{}, {"steps": 0}, {"stride": 5}, {"steps": "last"}, {"label": "most"}, {"step": 5}]
)
def test_what_is_no_window(window):
    with pytest.raises(ConfigError, match=r"data\.window"):
        config_from_mapping(
            {"data": {"train": "a.csv", "id": "i", "steps": {"x": "number"}, "window": window}}
        )


def test_predict_and_init_say_that_borders_of_labels_are_not_known(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.csv")
    given = ["--label", "activity", "--id", "subject", "--set", "data.window={label: constant}"]
    said = cli("init", "a.csv", *given, "-o", "c.yaml").err
    store = prepared(tmp_path, {"label": "constant"}).splits["train"]
    assert f"{len(store)} windows" in Path("c.yaml").read_text()
    assert "data.window={steps:" in said
    cli("fit", "c.yaml", "--run-dir", "r", "--set", "training.max_epochs=1")
    ended = cli("predict", "a.csv", "r")
    assert len(ended.out.splitlines()) == 1 + 8
    assert "data.window" in ended.err
