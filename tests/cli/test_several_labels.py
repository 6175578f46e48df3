"""Several labels per sequence: every verb, from csv with a separator and from lists in jsonl."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import average_precision_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

import seqtrain
from seqtrain.errors import ConfigError
from tests.helpers.tiny import Cli, fit, tsv_rows

TOPICS = {"food": "bread soup cook", "money": "bank coin debt", "sport": "ball goal team"}
OTHERS = ["the", "a", "some", "and", "then", "but", "we", "they", "saw", "had", "with"]
CONFIG = """\
data: {train: train.csv, validation: 0.2, test: test.csv, sequence: text, label: topics,
  label_separator: "|"}
batching: {batch_size: 16}
model: {embedding_dim: 8, hidden_size: 8, pooling: max, ngrams: [1, 2], dropout: 0.2}
training: {max_epochs: 6, lr: 0.02, monitor: micro_f1}
"""
SINGLE = ("--set", "data.label_separator=null", "--set", "training.monitor=accuracy")


def rows(count: int, seed: int) -> list[tuple[str, list[str]]]:
    """Return texts that hold a word of each of their topics, most of the time."""
    draw, found = random.Random(seed), list[tuple[str, list[str]]]()
    for _ in range(count):
        own = [topic for topic in TOPICS if draw.random() < 0.4]
        words = draw.choices(OTHERS, k=5) + [draw.choice(TOPICS[x].split()) for x in own]
        draw.shuffle(words)
        found.append((" ".join(words), own if draw.random() < 0.95 else []))
    return found


def write(path: Path, given: list[tuple[str, list[str]]]) -> None:
    with path.open("w", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps({"text": x, "topics": y}) + "\n" for x, y in given)
        else:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["text", "topics"])
            table.writerows((text, "|".join(own)) for text, own in given)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`."""
    folder = tmp_path_factory.mktemp("several")
    for ending in ("csv", "jsonl"):
        write(folder / f"train.{ending}", rows(300, 1))
        write(folder / f"test.{ending}", rows(100, 2))
    fit(folder, CONFIG)
    return folder


def predicted(cli: Cli, *options: str) -> list[Any]:
    found = cli("predict", "test.csv", "run", "--format", "jsonl", *options).out
    return [json.loads(line) for line in found.splitlines()]


def test_scores_are_those_of_scikit_learn(beside: Path, cli: Cli) -> None:
    scores, found = cli("eval", "run", "--json").json, predicted(cli)
    coder = MultiLabelBinarizer(classes=scores["labels"])
    true = coder.fit_transform([own for _, own in rows(100, 2)])
    chosen = coder.transform([row["labels"] for row in found])
    probabilities = [[row["probabilities"][x] for x in scores["labels"]] for row in found]
    assert scores["labels"] == [*TOPICS]
    assert scores["micro_f1"] == pytest.approx(f1_score(true, chosen, average="micro"))
    assert scores["macro_f1"] == pytest.approx(f1_score(true, chosen, average="macro"))
    assert scores["accuracy"] == (true == chosen).all(axis=1).mean()
    expected = average_precision_score(true, probabilities)
    assert scores["average_precision"] == pytest.approx(expected, abs=1e-4)
    assert scores["micro_f1"] > 0.8
    assert scores["confusion_matrix"] is None
    of_fit = json.loads(Path("run/test.json").read_text())
    assert {name: scores[name] for name in of_fit} == of_fit
    assert "label \\ predicted" not in cli("eval", "run").out


def test_rows_hold_the_labels_that_reach_their_thresholds(beside: Path, cli: Cli) -> None:
    per_class = cli("eval", "run", "--json").json["per_class"]
    found = predicted(cli)
    for row in found:
        found_of = row["probabilities"]
        reached = [x for x in TOPICS if found_of[x] >= per_class[x]["threshold"]]
        assert row["labels"] == reached  # in the order of the classes, as files have them
        assert row["probability"] == [found_of[x] for x in reached]
        assert row["label"] == "|".join(row["labels"])
    assert any(not row["labels"] for row in found)
    assert any(len(row["labels"]) > 1 for row in found)
    lines = tsv_rows(cli("predict", "test.csv", "run").out)
    assert [line["label"] for line in lines] == [row["label"] for row in found]
    numbers = [[float(x) for x in line["probability"].split("|") if x] for line in lines]
    assert numbers == [row["probability"] for row in found]
    ranked = cli("predict", "test.csv", "run", "--top-k", "2").out.splitlines()
    assert ranked[0].split("\t") == ["label_1", "probability_1", "label_2", "probability_2"]
    alike = seqtrain.load("run").predict([text for text, _ in rows(100, 2)])
    assert [list(each.labels) for each in alike] == [row["labels"] for row in found]


def test_thresholds_of_single_labels(beside: Path, cli: Cli) -> None:
    found = predicted(cli, "--threshold", "food=0", "--threshold", "money=1")
    assert all("food" in row["labels"] and "money" not in row["labels"] for row in found)
    sure = [p for row in predicted(cli, "--min-probability", "0.9") for p in row["probability"]]
    assert min(sure) >= 0.9
    assert predicted(cli, "--threshold", "0.9") == predicted(cli, "--min-probability", "0.9")
    assert 0 < seqtrain.load("run").threshold(0.9, "sport").min_probability < 1
    problem = cli("predict", "test.csv", "run", "--threshold", "sprt=0.5", code=2).problems
    assert problem == ["seqtrain: threshold: no label 'sprt'; did you mean 'sport'?"]


def test_lists_are_the_same_as_texts_with_a_separator(beside: Path, cli: Cli) -> None:
    lists = CONFIG.replace("csv", "jsonl").replace(',\n  label_separator: "|"', "")
    Path("lists.yaml").write_text(lists)
    cli("fit", "lists.yaml", "--run-dir", "lists", "--force")
    weights = [Path(run, "best/model.safetensors").read_bytes() for run in ("run", "lists")]
    assert weights[0] == weights[1]
    assert cli("diff", "run", "lists", "--data", "test.csv", "--json").json["right"]["only_a"] == 0


def test_mistakes_report_check_and_differences(beside: Path, tmp_path: Path, cli: Cli) -> None:
    wrong = cli("errors", "run", "--top", "100", "--json").json["errors"]
    assert len(wrong) == 100 - round(100 * cli("eval", "run", "--json").json["accuracy"])
    assert cli("errors", "run", "--top", "1", "--explain", "--json").json["errors"][0]["weights"]
    assert all({*row["label"].split("|")} != {*row["predicted"].split("|")} for row in wrong)
    cli("check", "run")
    page = tmp_path / "page.html"
    cli("report", "run", "-o", str(page))
    assert "largest classes" in page.read_text()
    assert "no confusion matrix" in page.read_text()
    of_set = "probability of the whole set of labels"
    assert of_set in page.read_text()
    assert of_set.replace("ty of", "ty: of") in cli("errors", "run").err
    found = cli("diff", "run", "run", "--json").json
    assert [*found["metrics"]] == ["accuracy", "micro_f1"]


def test_what_makes_no_sense_says_so(beside: Path, cli: Cli) -> None:
    for words, problem in (
        (["predict", "test.csv", "run", "--steps"], "--steps: follows one label"),
        (["eval", "run", "--steps"], "--steps: follows one label"),
    ):
        ended = cli(*words, code=2)
        assert ended.problems[-1].startswith(f"seqtrain: {problem}")
    with pytest.raises(ConfigError, match="several labels"):
        seqtrain.load("run").threshold(0.9)


def test_a_model_of_one_label_goes_on_with_one(beside: Path, cli: Cli) -> None:
    write(Path("one.csv"), [(text, own[:1] or ["none"]) for text, own in rows(100, 3)])
    one = ("--set", "data.train=one.csv", "--set", "data.test=null")
    ended = cli("fit", "c.yaml", "--init-from", "run", *one, *SINGLE, code=2)
    assert ended.problems[-1].startswith("seqtrain: data.label: ")
    assert "labels per row" in ended.problems[-1]
    found = predicted(cli, "--top-k", "1")
    cli("fit", "c.yaml", "--init-from", "run", "--run-dir", "further", "--force")
    assert len(found) == len(cli("predict", "test.csv", "further").out.splitlines()) - 1


def test_init_proposes_it(beside: Path, tmp_path: Path, cli: Cli) -> None:
    text = cli("init", "train.csv", "-o", "-").out
    assert 'label_separator: "|"' in text
    assert "monitor: micro_f1" in text
    assert "label_smoothing" not in text
    lists = cli("init", "train.jsonl", "-o", "-").out
    assert "label: topics" in lists
    assert "label_separator" not in lists


def test_weights_of_classes_and_one_threshold(beside: Path, cli: Cli) -> None:
    weights = "training.class_weights={food: 3, money: 1, sport: 1}"
    keys = ("--set", weights, "--set", "training.thresholds=one")
    cli("fit", "c.yaml", "--run-dir", "weighted", "--force", *keys)
    found = cli("eval", "weighted", "--json").json["per_class"]
    assert len({row["threshold"] for row in found.values()}) == 1
    assert found["food"]["recall"] > 0.7


def test_folds_predict_together_and_each_decides_by_its_own_thresholds(
    beside: Path, tmp_path: Path, cli: Cli
) -> None:
    folds = tmp_path / "folds"
    cli("fit", "c.yaml", "--run-dir", folds, "--folds", "2", "--set", "data.validation=0.3")
    assert cli("eval", folds, "--json").json["micro_f1"] > 0.7
    assert cli("predict", "test.csv", folds).out.count("\n") == 101
    scores = [
        cli("eval", folds / name, "--split", "validation", "--json").json
        for name in ("", "fold-1", "fold-2")
    ]
    assert scores[0]["num_examples"] == 300
    pooled, *each = (found["per_class"] for found in scores)
    thresholds = [[own[label]["threshold"] for own in each] for label in TOPICS]
    assert all(a != b for a, b in thresholds)
    for label in TOPICS:
        for name in ("support", "num_predicted"):
            assert pooled[label][name] == sum(own[label][name] for own in each)
