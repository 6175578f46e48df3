"""Every command on the device, with every kind of data, gives the results of the CPU."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from seqtrain.sklearn import SequenceClassifier
from tests.helpers.tables import write_table_project
from tests.helpers.tiny import Cli, listing, rows, series, sets, tsv_rows, write_npz, write_table

SERIES = """\
data: {train: x.npz, validation: 0.3, test: y.npz, kind: features}
batching: {batch_size: 8}
model: {embedding_dim: 6, hidden_size: 5, dropout: 0.2}
training: {max_epochs: 2, patience: null, lr: 0.02, schedule: constant}
"""
MULTI_LABEL = """\
data: {train: many.tsv, validation: 0.3, test: more.tsv, sequence: text, label: label,
       label_separator: "|"}
batching: {batch_size: 8}
model: {embedding_dim: 6, hidden_size: 5, dropout: 0.2}
training: {max_epochs: 2, patience: null, lr: 0.02, schedule: constant}
"""
CARRIED = ("data.group=chat", "data.validation=0.3", "model.initial_state=carried")


def write_series(folder: Path) -> None:
    write_npz(folder / "x.npz", series(40, seed=1), ["ab"[i % 2] for i in range(40)])
    write_npz(folder / "y.npz", series(20, seed=2), ["ab"[i % 2] for i in range(20)])
    (folder / "c.yaml").write_text(SERIES)


def write_many(folder: Path) -> None:
    labels = ["down|long", "up", "up|long", "down", ""]
    examples = [(text, labels[i % 5]) for i, (text, _) in enumerate(rows(40, seed=1))]
    write_table(folder / "many.tsv", examples)
    write_table(folder / "more.tsv", examples[7:27])
    (folder / "c.yaml").write_text(MULTI_LABEL)


def write_chats(folder: Path) -> None:
    for name in ("train", "test"):
        heading, *lines = (folder / f"{name}.tsv").read_text().splitlines()
        chats = [f"{line}\tc{row % 7}\n" for row, line in enumerate(lines)]
        (folder / f"{name}.tsv").write_text(f"{heading}\tchat\n{''.join(chats)}")


def prepared(kind: str, folder: Path) -> tuple[str, ...]:
    """Write the data and the config of a kind into a folder; return further settings."""
    if kind == "series":
        write_series(folder)
    elif kind == "kernels":
        write_series(folder)
        return ("model.kernels=true", "data.standardize=both")
    elif kind in ("step tables", "trees"):
        write_table_project(folder)
        return ("model.trees=true",) if kind == "trees" else ()
    elif kind == "multi-label":
        write_many(folder)
    elif kind == "carried":
        write_chats(folder)
        return CARRIED
    return {
        "padded": ("model.unroll=padded",),
        "masked": ("model.unroll=masked",),
        "class weights": ("training.class_weights=balanced", "batching.sort=module"),
        "convolutions": ("model.convolutions=[[8, 3, 2]]", "model.pooling=[max, sum]"),
    }.get(kind, ())


@pytest.mark.parametrize(
    "kind",
    [
        *("series", "kernels", "step tables", "trees", "multi-label", "carried"),
        *("padded", "masked", "class weights", "convolutions"),
    ],
)
def test_each_kind_of_data_and_of_unroll(kind, project, device, cli: Cli):
    settings = sets(*prepared(kind, project))
    fit = ("fit", "c.yaml", "--run-dir", "r", "--quiet", "--device", device.type)
    cli(*fit, *settings)
    scores = [cli("eval", "r", "--json", "--device", where).json for where in ("cpu", device.type)]
    assert scores[0]["accuracy"] == scores[1]["accuracy"]
    assert scores[0]["loss"] == pytest.approx(scores[1]["loss"], abs=1e-4)
    cli("check", "--run", "r", "--device", device.type)
    losses = [json.loads(line) for line in Path("r/metrics.jsonl").read_text().splitlines()]
    cli("fit", "c.yaml", "--run-dir", "cpu", "--quiet", "--device", "cpu", *settings)
    expected = [json.loads(line) for line in Path("cpu/metrics.jsonl").read_text().splitlines()]
    for one, other in zip(losses, expected, strict=True):
        assert one["event"] == other["event"]
        if one["event"] == "epoch":
            assert one["train"]["loss"] == pytest.approx(other["train"]["loss"], abs=2e-3)


def test_a_run_is_explained_reported_exported_and_predicted(project, device, cli: Cli):
    keys = ("model.ngrams=[1, 2]", "model.subwords=[3, 5]", "model.pooling=[last, attention]")
    where = ("--device", device.type)
    cli("fit", "c.yaml", "--run-dir", "r", "--quiet", *where, *sets(*keys))
    explained = cli("errors", "r", "--explain", "--json", *where).out.splitlines()
    assert all(json.loads(line) for line in explained)
    cli("report", "r", "--output", "r.html", *where)
    cli("export", "r", "exported")
    cli("predict", "test.tsv", "--run", "r", "--output", "steps.jsonl", "--steps", *where)
    found = [
        tsv_rows(cli("predict", "test.tsv", "--run", "r", "--device", name).out)
        for name in ("cpu", device.type)
    ]
    assert [row["label"] for row in found[0]] == [row["label"] for row in found[1]]


def test_search_folds_and_seeds(project, device, cli: Cli):
    where = ("--device", device.type, "--quiet")
    best = cli("tune", "c.yaml", "--budget", "60s", "--trials", "2", "--run-dir", "t", *where)
    assert Path(best.out.strip()).is_dir()
    cli("fit", "c.yaml", "--run-dir", "f", "--folds", "2", *where)
    cli("fit", "c.yaml", "--run-dir", "s", "--seeds", "0,1", *where)


def test_the_estimator(device):
    texts, labels = zip(*rows(40, seed=1), strict=True)
    small = {"embedding_dim": 8, "hidden_size": 8, "max_epochs": 3, "lr": 0.02}
    found = []
    for name in ("cpu", device.type):
        model = SequenceClassifier(**small, device=name).fit(list(texts), list(labels))
        found.append(model.predict_proba(list(texts)))
    np.testing.assert_allclose(*found, atol=1e-3)


def test_a_loss_that_is_not_finite_names_its_examples_and_changes_nothing(
    project, device, cli: Cli
):
    cli("fit", "c.yaml", "--run-dir", "r", "--quiet", "--device", device.type)
    before = listing(Path("r"))
    settings = sets("training.lr=1000", "training.weight_decay=1000", "training.max_epochs=9")
    options = ("--init-from", "r", "--run-dir", "other", "--quiet", "--device", device.type)
    ended = cli("fit", "c.yaml", *options, *settings, code=3)
    assert re.search(r"update \d+: the (loss|gradient) isn't finite for train lines \d+", ended.err)
    assert listing(Path("r")) == before
