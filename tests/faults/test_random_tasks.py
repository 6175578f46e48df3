"""Random tasks through every command: the figures are those that scikit-learn computes."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqtrain
from tests.helpers.examples import seeds
from tests.helpers.exported import by_script
from tests.helpers.tasks import Task, random_task
from tests.helpers.tiny import run_in, tsv_rows

metrics = pytest.importorskip("sklearn.metrics")
NO_LABEL = "(a label that train lacks)"
LOOSE = 2e-6
"""Largest difference of two probabilities of the same model."""
EXPORTED = 1e-5
"""Largest difference of an exported model's probability."""


class Predictions:
    """What `predict` writes about the test split of a task."""

    def __init__(self, task: Task, folder: Path, run: str, path: str) -> None:
        out = run_in(folder, "predict", path, run, "--format", "jsonl").out
        self.task, self.rows = task, [json.loads(line) for line in out.splitlines()]
        self.classes = [*self.rows[0]["probabilities"]]
        self.classes.sort()
        assert self.classes == [*task.classes]
        self.probabilities = np.array(
            [[row["probabilities"][x] for x in self.classes] for row in self.rows]
        )
        self.labels = [
            tuple(row["labels"]) if task.multi_label else (row["label"],) for row in self.rows
        ]


def decided(task: Task, found: Predictions, per_class: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the labels that the thresholds give, computed from the probabilities.

    A multi-label row with a probability within the printed digits of a threshold keeps its labels.
    """
    thresholds = [per_class[x].get("threshold") for x in found.classes]
    if task.multi_label:
        reached = found.probabilities >= np.array(thresholds)
        is_near = (abs(found.probabilities - np.array(thresholds)) <= 1e-6).any(1)
        labels = [tuple(np.array(found.classes)[row]) for row in reached]
        return [a if near else b for a, b, near in zip(found.labels, labels, is_near, strict=True)]
    if thresholds[0] is None:
        return [(found.classes[i],) for i in found.probabilities.argmax(1)]
    assert sum(thresholds) == pytest.approx(1)
    small = int(np.argmin(thresholds))
    chosen = found.probabilities[:, small] >= thresholds[small]
    return [(found.classes[small if yes else 1 - small],) for yes in chosen]


def expected_scores(task: Task, found: Predictions) -> dict[str, float]:
    """Return the metrics of the predictions by scikit-learn."""
    true = task.labels("test")
    known = np.array([{*own} <= {*task.classes} for own in true])
    names = [*found.classes, NO_LABEL]

    def coded(labels: list[tuple[str, ...]]) -> np.ndarray:
        own = [{x if x in task.classes else NO_LABEL for x in row} for row in labels]
        return np.array([[name in row for name in names] for row in own])

    has, chose = coded(true), coded(found.labels)
    if task.multi_label:
        occurs = np.flatnonzero((has | chose).any(0))
        options = {"labels": occurs, "zero_division": 0}
        one, other = has, chose
    else:
        one, other = has.argmax(1), chose.argmax(1)
        options = {"zero_division": 0}
    p, is_class = found.probabilities.clip(1e-12, 1 - 1e-12), has[:, :-1]
    scores = {
        "accuracy": (has == chose).all(1).mean(),
        "macro_f1": metrics.f1_score(one, other, average="macro", **options),
        "weighted_f1": metrics.f1_score(one, other, average="weighted", **options),
        "micro_f1": metrics.f1_score(one, other, average="micro", **options),
        "macro_precision": metrics.precision_score(one, other, average="macro", **options),
        "macro_recall": metrics.recall_score(one, other, average="macro", **options),
    }
    if known.all():
        flat = (has[:, :-1].ravel(), chose[:, :-1].ravel()) if task.multi_label else (one, other)
        kappa = metrics.cohen_kappa_score(*flat)
        scores["cohen_kappa"] = 0.0 if math.isnan(kappa) else kappa
        # Rows that tie in six digits may not tie in memory, so ranks are compared without them.
        columns = [i for i in range(len(found.classes)) if 0 < is_class[:, i].sum() < len(has)]
        areas = [metrics.roc_auc_score(is_class[:, i], p[:, i]) for i in columns]
        scores["auc"] = float(np.mean(areas))
        precisions = [metrics.average_precision_score(is_class[:, i], p[:, i]) for i in columns]
        scores["average_precision"] = float(np.mean(precisions))
    is_known, p_known = is_class[known], p[known]
    if task.multi_label:
        losses = -np.where(is_known, np.log(p_known), np.log(1 - p_known)).sum(1)
    else:
        losses = -np.log(p_known[is_known])
    scores["loss"] = losses.mean()
    scores["brier"] = np.square(p_known - is_known).sum(1).mean()
    return scores


def check_errors(task: Task, folder: Path, found: Predictions) -> None:
    """The mistakes are the rows whose prediction isn't their label."""
    wrong = run_in(folder, "errors", "run", "--top", "999", "--json").json
    true, lines = task.labels("test"), {}
    for row in wrong["errors"]:
        lines[row["line"]] = row
    rows = [i for i, own in enumerate(true) if {*own} != {*found.labels[i]}]
    assert wrong["num_errors"] == len(rows) == len(wrong["errors"])
    assert wrong["num_examples"] == len(true)
    sure = [row["probability"] for row in wrong["errors"]]
    assert sure == sorted(sure, reverse=True)
    predicted = sorted(tuple(sorted(found.labels[i])) for i in rows)
    separator = "|" if task.multi_label else None
    told = [tuple(sorted(filter(None, row["predicted"].split(separator)))) if separator
            else (row["predicted"],) for row in wrong["errors"]]  # fmt: skip
    assert sorted(told) == predicted


def check_difference(task: Task, folder: Path, first: Predictions, second: Predictions) -> None:
    """Both sides of `diff` are the scores of `eval`."""
    found = run_in(folder, "diff", "run", "other", "--json", "--top", "999").json
    true = [{*own} for own in task.labels("test")]
    right = [[{*a} == b for a, b in zip(x.labels, true, strict=True)] for x in (first, second)]
    pairs = list(zip(*right, strict=True))
    assert found["right"] == {
        "both": pairs.count((True, True)),
        "only_a": pairs.count((True, False)),
        "only_b": pairs.count((False, True)),
        "neither": pairs.count((False, False)),
    }
    differing = [{*a} != {*b} for a, b in zip(first.labels, second.labels, strict=True)]
    assert found["num_differing"] == sum(differing) == len(found["rows"])
    name = "micro_f1" if task.multi_label else "macro_f1"
    for side, run in (("a", "run"), ("b", "other")):
        scores = run_in(folder, "eval", run, "--json").json
        for metric in ("accuracy", name):
            assert found["metrics"][metric][side] == pytest.approx(scores[metric]), metric
    for metric in found["metrics"].values():
        assert metric["difference"] == pytest.approx(metric["b"] - metric["a"])
        assert metric["low"] <= metric["difference"] + 1e-12 <= metric["high"] + 2e-12


def check_scores(task: Task, folder: Path, run: str, found: Predictions) -> dict[str, Any]:
    """The scores of fit and eval are those of scikit-learn."""
    scores = run_in(folder, "eval", run, "--json").json
    of_fit = json.loads((folder / run / "test.json").read_text())
    assert {name: scores[name] for name in of_fit} == of_fit
    assert found.labels == decided(task, found, scores["per_class"])
    compare_scores(scores, expected_scores(task, found))
    return scores


def compare_scores(scores: dict[str, Any], expected: dict[str, float]) -> None:
    """Compare scores with expected ones of rounded probabilities, some of which then tie."""
    for name, value in expected.items():
        within = {"loss": 2e-5, "brier": 2e-5, "auc": 5e-3, "average_precision": 5e-3}
        assert scores[name] == pytest.approx(value, abs=within.get(name, 1e-9), rel=1e-5), name


def check_export(folder: Path, path: str, found: Predictions) -> None:
    """The exported script writes the labels and probabilities of `predict`."""
    run_in(folder, "export", "run", "port")
    ended = by_script(folder / "port", str(folder / path))
    assert ended.code == 0, ended.err
    rows, plain = tsv_rows(ended.out), tsv_rows(run_in(folder, "predict", path, "run").out)
    assert [row["label"] for row in rows] == [row["label"] for row in plain]
    for row, other in zip(rows, plain, strict=True):
        one, two = ([float(x) for x in p["probability"].split("|") if x] for p in (row, other))
        np.testing.assert_allclose(one, two, rtol=0, atol=EXPORTED)


@pytest.mark.parametrize("seed", seeds(1))
def test_every_command_agrees(seed, tmp_path):
    check_task(random_task(seed), tmp_path)


def check_task(task: Task, folder: Path) -> None:
    """Run every command on a task."""
    task.write(folder)
    path = f"test.{task.ending}"
    run_in(folder, "fit", "c.yaml", "--run-dir", "run", "--quiet")
    found = Predictions(task, folder, "run", path)
    check_scores(task, folder, "run", found)
    check_errors(task, folder, found)
    run_in(folder, "fit", "c.yaml", "--run-dir", "other", "--set", "seed=12345", "--quiet")
    second = Predictions(task, folder, "other", path)
    check_scores(task, folder, "other", second)
    check_difference(task, folder, found, second)
    check_export(folder, path, found)
    check_report(folder)
    run_in(folder, "check", "run")
    check_memory(task, folder, found)
    if task.seed % 2 == 0:
        check_ensemble(task, folder, path)


def check_report(folder: Path) -> None:
    """A page about one run or two holds the accuracies of `eval`."""
    shares = [run_in(folder, "eval", x, "--json").json["accuracy"] for x in ("run", "other")]
    for runs in (["run"], ["run", "other"]):
        run_in(folder, "report", *runs, "-o", "page.html", "--force")
        page = (folder / "page.html").read_text()
        assert all(f"{share:.2%}" in page for share in shares[: len(runs)])


def check_ensemble(task: Task, folder: Path, path: str) -> None:
    """An ensemble predicts by the mean of its members, and is scored as it predicts."""
    is_fraction = "validation" not in task.splits
    repeats = ("--folds", "2") if task.seed % 4 == 2 and is_fraction else ("--seeds", "0,1")
    run_in(folder, "fit", "c.yaml", "--run-dir", "many", "--quiet", *repeats)
    found = Predictions(task, folder, "many", path)
    members = sorted(p.parent for p in (folder / "many").glob("*/config.yaml"))
    assert len(members) == 2
    each = [Predictions(task, folder, str(run), path).probabilities for run in members]
    np.testing.assert_allclose(np.mean(each, axis=0), found.probabilities, rtol=0, atol=LOOSE)
    scores = run_in(folder, "eval", "many", "--json").json
    assert found.labels == decided(task, found, scores["per_class"])
    compare_scores(scores, expected_scores(task, found))
    if repeats[0] == "--folds":
        check_folds(task, folder, members)


def check_folds(task: Task, folder: Path, members: list[Path]) -> None:
    """The scores of validation are those of each fold's own run on the rows that it held out."""
    pooled = run_in(folder, "eval", "many", "--split", "validation", "--json").json
    own = [run_in(folder, "eval", str(x), "--split", "validation", "--json").json for x in members]
    assert pooled["num_examples"] == sum(scores["num_examples"] for scores in own)
    right = sum(scores["accuracy"] * scores["num_examples"] for scores in own)
    assert pooled["accuracy"] == pytest.approx(right / pooled["num_examples"])
    for label, row in pooled["per_class"].items():
        for name in ("support", "num_predicted"):
            assert row[name] == sum(scores["per_class"][label][name] for scores in own)


def check_memory(task: Task, folder: Path, found: Predictions) -> None:
    """Rows from Python, and a file in another format, get the predictions of the file."""
    classifier = seqtrain.load(folder / "run")
    rows = task.table(task.splits["test"], ".jsonl")
    reads_tables = task.kind == "steps" or task.data.get("static")
    given = rows if reads_tables else [row["s"] for row in rows]
    again = classifier.predict(given)
    np.testing.assert_allclose(again.probabilities, found.probabilities, rtol=0, atol=LOOSE)
    assert [each.labels for each in again] == found.labels
    scored = seqtrain.evaluate(folder / "run", data=rows).scores
    assert scored.accuracy == run_in(folder, "eval", "run", "--json").json["accuracy"]
