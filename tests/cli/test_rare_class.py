"""Two classes, one of them rare: one threshold decides in every verb."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import seqtrain
from seqtrain.sequences.labels import rare_class
from tests.helpers.tiny import fit, run_in, sets, tsv_rows

CONFIG = """\
data: {train: train.tsv, validation: 0.3, test: test.tsv, sequence: text, label: label}
batching: {batch_size: 16}
model: {embedding_dim: 8, hidden_size: 8, dropout: 0.0, ngrams: [1, 2]}
training: {max_epochs: 6, lr: 0.02}
"""
WORDS = ["the", "a", "some", "and", "then", "but", "we", "they", "saw", "had", "with"]


def write(path: Path, count: int, seed: int) -> None:
    """Write texts of which an eighth are rare; half of those with the word decide so."""
    draw, lines = random.Random(seed), ["label\ttext"]
    for _ in range(count):
        has_word = draw.random() < 0.25
        words = draw.choices(WORDS, k=4) + ["alarm"] * has_word
        draw.shuffle(words)
        label = "rare" if has_word and draw.random() < 0.4 else "usual"
        lines.append(f"{label}\t{' '.join(words)}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rare")
    write(folder / "train.tsv", 600, 1)
    write(folder / "test.tsv", 200, 2)
    fit(folder, CONFIG)
    return folder


@pytest.mark.parametrize(
    ("counts", "rare"),
    [((1, 5), 0), ((5, 1), 1), ((1, 4), None), ((0, 9), None), ((1, 5, 9), None)],
)
def test_the_rare_one_of_two_classes(counts, rare):
    assert rare_class(counts) == rare


def test_every_verb_decides_alike(trained: Path) -> None:
    model = json.loads((trained / "run/best/model.json").read_text())
    threshold = model["calibration"]["thresholds"][0]
    assert 0 < threshold < 0.5
    scores = run_in(trained, "eval", "run", "--steps", "--json").json
    assert scores["per_class"]["rare"]["threshold"] == threshold
    of_fit = json.loads((trained / "run/test.json").read_text())
    assert {name: scores[name] for name in of_fit} == of_fit

    rows = tsv_rows(run_in(trained, "predict", "test.tsv", "run", "--probabilities").out)
    share, predicted = [float(row["probability_rare"]) for row in rows], [r["label"] for r in rows]
    assert predicted == ["rare" if p >= threshold else "usual" for p in share]
    assert predicted.count("rare") == scores["per_class"]["rare"]["num_predicted"]
    assert any(p < 0.5 and label == "rare" for p, label in zip(share, predicted, strict=True))

    wrong = run_in(trained, "errors", "run", "--top", "200", "--json").json["errors"]
    assert len(wrong) == round((1 - scores["accuracy"]) * 200)
    assert scores["by_share"][-1]["accuracy"] == scores["accuracy"]
    steps = run_in(trained, "predict", "test.tsv", "run", "--steps", "--format", "jsonl").out
    last = {row["index"]: row["label"] for row in map(json.loads, steps.splitlines())}
    assert [*last.values()] == predicted

    pytest.importorskip("onnx")
    run_in(trained, "export", "run", "port")
    command = [sys.executable, "port/predict.py", "test.tsv"]
    port = subprocess.run(command, cwd=trained, capture_output=True, text=True, check=True)
    assert [row["label"] for row in tsv_rows(port.stdout)] == predicted


def test_fit_ends_with_the_area_under_the_curve(trained: Path) -> None:
    ended = run_in(trained, "fit", "c.yaml", "--run-dir", "shown", *sets("data.test=null"))
    (line,) = [line for line in ended.err.splitlines() if "at the best epoch" in line]
    assert re.search(r"AUC \d\d\.\d+%.*average precision \d\d\.\d+%", line)


def test_branches_decide_as_often_for_the_rare_class(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict on branches without thresholds would favour the whole model."""
    monkeypatch.chdir(trained)
    found = seqtrain.evaluate("run")
    often = found.scores.per_class["rare"]["num_predicted"]
    assert often > 0
    assert len(found.parts) == 2
    for name, own in found.parts.items():
        assert own.per_class["rare"]["num_predicted"] == often, name
    assert "macro F1" in run_in(trained, "eval", "run").err


def test_the_decision_is_printed_and_can_be_switched_off(trained: Path) -> None:
    data, init = ("data", "c.yaml"), ("init", "train.tsv", "-o", "new.yaml", "--force")
    for said in (run_in(trained, *data).out, run_in(trained, *init).err):
        assert "training.thresholds" in said
        assert "average precision" in said
    run_in(trained, "fit", "c.yaml", "--run-dir", "off", *sets("training.thresholds=none"))
    model = json.loads((trained / "off/best/model.json").read_text())
    assert model["calibration"]["thresholds"] == []
    # The most probable of two classes has at least one half, and so do the points of its coverage.
    assert all(point["min_probability"] >= 0.5 for point in model["calibration"]["coverage"])
