"""Calibrated probabilities everywhere, and rows left undecided below a threshold."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import seqtrain
from seqtrain.errors import ConfigError
from seqtrain.evaluation.calibration import Calibration, CoveragePoint
from tests.helpers.tiny import fit, metrics, rows, run_in, sets, tsv_rows, write_table

CONFIG = """\
data: {train: train.tsv, validation: validation.tsv, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 16}
model: {embedding_dim: 8, hidden_size: 8, dropout: 0.0, ngrams: [1, 2]}
training: {max_epochs: 3, patience: null, lr: 0.05, schedule: constant}
"""


def noisy(count: int, seed: int) -> list[tuple[str, str]]:
    """Return rows of which every fifth has the other label: no answer should be sure of them."""
    draw = random.Random(seed)
    other = {"up": "down", "down": "up"}
    return [(t, other[y] if draw.random() < 0.2 else y) for t, y in rows(count, seed)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with `run`, trained on noisy labels until it is too sure of itself."""
    folder = tmp_path_factory.mktemp("calibrated")
    for name, count, seed in (("train", 120, 1), ("validation", 100, 2), ("test", 60, 3)):
        write_table(folder / f"{name}.tsv", noisy(count, seed))
    fit(folder, CONFIG)
    return folder


def test_validations_loss_falls_at_about_the_same_accuracy(beside, cli):
    assert json.loads(Path("run/best/model.json").read_text())["calibration"]["temperature"] != 1
    scores = cli("eval", "run", "--split", "validation", "--json").json
    before: Any = [line for line in metrics("run") if line.get("best")][-1]["validation"]
    assert scores["accuracy"] == pytest.approx(before["accuracy"], abs=0.05)
    assert scores["loss"] < before["loss"] - 0.01
    assert scores["ece"] < 0.15
    assert scores["risk_coverage"][-1]["accuracy"] == pytest.approx(scores["accuracy"])
    shown = cli("eval", "run", "--all").out
    assert "calibration error" in shown
    assert "most confident" in shown


@pytest.mark.parametrize("key", ["data.validation=null", "seed=1", "training.refit=true"])
def test_predictions_lean_to_rare_classes_as_they_are_adjusted(beside, tmp_path, key):
    """Each probability is divided by a power of the class's frequency in train."""
    found = []
    for share in (0.0, 0.4):
        given = [key, "training.max_epochs=1", f"training.logit_adjustment={share}"]
        config = seqtrain.load_config("c.yaml", given)
        run = seqtrain.fit(config, run_dir=tmp_path / f"{share}")
        found.append(seqtrain.load(run).predict(["the rise", "fall slip", "n1"]))
    learned = [label for _, label in noisy(120, 1)]
    for plain, adjusted in zip(*found, strict=True):
        wanted = {k: p / learned.count(k) ** 0.4 for k, p in plain.probabilities.items()}
        total = sum(wanted.values())
        assert adjusted.probabilities == pytest.approx({k: p / total for k, p in wanted.items()})


@pytest.mark.parametrize(("hints", "told"), [(0, "gained nothing"), (1, "traded accuracy")])
def test_accuracy_that_an_adjustment_cost_is_told(tmp_path, hints, told):
    """Words hint little or not at all at three uneven classes, so that the largest is predicted."""
    draw, table = random.Random(0), list[tuple[str, str]]()
    for label, count in {"most": 240, "some": 90, "few": 60}.items():
        words = [*"abcd", *[label] * hints]
        table += [(" ".join(draw.choices(words, k=2)), label) for _ in range(count)]
    draw.shuffle(table)
    for name, part in (("train", table[:200]), ("validation", table[200:]), ("test", table[:9])):
        write_table(tmp_path / f"{name}.tsv", part)
    (tmp_path / "c.yaml").write_text(CONFIG)
    keys = ("training.logit_adjustment=0.9", "training.max_epochs=1", "model.ngrams=null")
    said = run_in(tmp_path, "fit", "c.yaml", *sets(*keys), "--run-dir", "r").err
    line = next(x for x in said.splitlines() if "training.logit_adjustment" in x)
    assert f"calibration {told}" in line
    assert "below the majority class" in line
    shown = [float(x) / 100 for x in re.findall(r"[0-9.]+(?=%)", line)]
    accuracy, adjusted, majority, macro_f1, adjusted_f1 = shown
    assert adjusted < majority <= accuracy
    assert (macro_f1 < adjusted_f1) == (hints > 0)
    plain = run_in(tmp_path, "fit", "c.yaml", *sets(*keys[1:]), "--run-dir", "plain").err
    assert "calibration gained nothing" not in plain
    assert "calibration traded" not in plain
    scores = run_in(tmp_path, "eval", "r", "--split", "validation", "--json").json
    found = [scores["accuracy"], scores["macro_f1"]]
    assert found == pytest.approx([adjusted, adjusted_f1], abs=1e-3)


def test_undecided_rows_come_out_with_their_guess(beside, cli):
    plain = tsv_rows(cli("predict", "test.tsv", "--run", "run").out)
    ended = cli("predict", "test.tsv", "--run", "run", "--min-probability", "0.8")
    found = tsv_rows(ended.out)
    undecided = [row for row in found if not row["label"]]
    assert 0 < len(undecided) < len(found) == len(plain)
    assert f"{len(undecided)} of 60 rows " in ended.err
    for row, before in zip(found, plain, strict=True):
        assert (row["guess"], row["probability"]) == (before["label"], before["probability"])
        assert row["label"] == (row["guess"] if float(row["probability"]) >= 0.8 else "")


def test_a_precision_holds_on_validation(beside, cli):
    found = seqtrain.load("run").threshold(0.8)
    options = ("--min-probability", str(found.min_probability))
    answers = tsv_rows(cli("predict", "validation.tsv", "--run", "run", *options).out)
    labels = [row["label"] for row in tsv_rows(Path("validation.tsv").read_text())]
    decided = [(a["label"], y) for a, y in zip(answers, labels, strict=True) if a["label"]]
    assert sum(a == y for a, y in decided) >= 0.8 * len(decided)
    assert len(decided) / len(labels) == pytest.approx(found.coverage, abs=0.02)


def test_a_threshold_is_of_one_class(beside, cli):
    def predicted(*options):
        return tsv_rows(cli("predict", "validation.tsv", "--run", "run", *options).out)

    both = predicted("--probabilities")
    found = predicted("--threshold", "up=0.9")
    assert [row["label"] for row in found] == [
        "up" if float(row["probability_up"]) >= 0.9 else "down" for row in both
    ]
    assert {row["label"] for row in predicted("--threshold", "up=0")} == {"up"}
    least = seqtrain.load("run").threshold(0.75, "up").min_probability
    answers = predicted("--threshold", f"up={least}")
    labels = [row["label"] for row in tsv_rows(Path("validation.tsv").read_text())]
    pairs = [(a["label"], y) for a, y in zip(answers, labels, strict=True)]
    right = [y == "up" for label, y in pairs if label == "up"]
    assert sum(right) >= 0.75 * len(right) > 0
    assert "LABEL=0.9" in cli("predict", "test.tsv", "run", "--threshold", "0.9", code=2).err
    for text in ("up=2", "=0.5", "up=x", "x"):
        refused = cli("predict", "validation.tsv", "run", "--threshold", text, code=2)
        (problem,) = refused.problems
        assert problem.startswith(f"seqtrain: --threshold: found '{text}'; expected LABEL=NUMBER")


@pytest.mark.parametrize("label", ["upp", 0.5])
def test_an_unknown_label_has_no_threshold(beside, label):
    classifier = seqtrain.load("run")
    for ask in (classifier.threshold, lambda share, label: classifier.set_threshold(label, share)):
        with pytest.raises(ConfigError, match=r"^threshold: "):
            ask(0.5, label)


def test_a_precision_that_nothing_reaches_names_the_best(beside):
    classifier = seqtrain.load("run")
    parts = ((0.25, 0.8, 0.727), (1.0, 0.36, 0.6))
    points = [CoveragePoint(coverage=c, min_probability=p, accuracy=a) for c, p, a in parts]
    classifier.models[0] = classifier.models[0].calibrated(Calibration(coverage=points))
    message = (
        "threshold: none reaches 95.00% on validation; at best 72.70% of the "
        "predictions are right (from probability 0.8000 on)"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        classifier.threshold(0.95)
