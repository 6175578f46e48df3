"""`seqtrain eval`: splits, other files, the keys of its JSON, and refusals."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import seqtrain
from seqtrain.metrics import METRICS
from tests.helpers.tiny import fit, metrics, rows, sets, write_table


def test_json_has_the_contracts_keys_and_equals_test_json(beside, cli):
    ended = cli("eval", "run", "--json")
    scores = ended.json
    assert scores.pop("trained_on_rows") is False
    assert scores == json.loads((beside / "run/test.json").read_text())
    assert scores.keys() >= {"loss", "accuracy", "macro_f1", "num_examples", "labels", "per_class"}
    assert scores["num_examples"] == 20
    assert scores["labels"] == ["down", "up"]
    measured = {"precision", "recall", "f1", "support", "num_predicted"}
    measured |= {"auc", "average_precision"}
    assert scores["per_class"]["up"].keys() == measured
    matrix = scores["confusion_matrix"]
    supports = [scores["per_class"][label]["support"] for label in scores["labels"]]
    assert [sum(row) for row in matrix] == supports
    assert (matrix[0][0] + matrix[1][1]) / 20 == pytest.approx(scores["accuracy"])
    groups = scores["by_length"]
    assert all(g.keys() == {"min", "max", "num_examples", "accuracy"} for g in groups)
    assert sum(g["num_examples"] for g in groups) == 20


def test_other_file_with_labels_that_train_lacks(beside, tmp_path, cli):
    known = rows(6, seed=8)
    write_table(tmp_path / "more.tsv", [*known, ("rise", "sideways"), ("fall", "nowhere")])
    ended = cli("eval", "run", "--data", tmp_path / "more.tsv", "--json")
    scores = ended.json
    write_table(tmp_path / "known.tsv", known)
    of_known = cli("eval", "run", "--data", tmp_path / "known.tsv", "--json").json
    assert scores["num_examples"] == 8
    assert scores["accuracy"] == pytest.approx(of_known["accuracy"] * 6 / 8)
    assert "more.tsv:8" in ended.err
    assert "sideways" in ended.err
    assert "more.tsv:9" in ended.err


def test_model_folder_scores_a_file_but_names_no_split(beside, tmp_path, cli):
    shutil.copytree(beside / "run" / "best", tmp_path / "model")
    cli("eval", tmp_path / "model", "--data", "test.tsv", "--json")
    ended = cli("eval", tmp_path / "model", code=2)
    assert "--data" in ended.err


def test_validation_is_scored_where_there_is_no_test_split(project, cli):
    for run, test in (("r", "null"), ("with-test", "test.tsv")):
        cli("fit", "c.yaml", "--run-dir", run, "--set", f"data.test={test}")
    wanted = cli("eval", "r", "--json", "--split", "validation").json
    assert "validation" in cli("eval", "r", "--split", "test", code=2).err
    both = cli("eval", "r", "--split", "train", "--data", "test.tsv", code=2).err
    assert "--split: --data " in both
    ended = cli("eval", "r", "--json")
    assert (ended.code, ended.json) == (0, wanted)
    assert "no test split" in ended.err
    assert cli("errors", "r", "--json").json["num_examples"] == wanted["num_examples"]
    compared = cli("diff", "r", "with-test", "--json")
    assert compared.json["num_examples"] == wanted["num_examples"]
    assert "no test split" in compared.err
    reported = cli("report", "r")
    assert "no test split" in reported.err
    assert "no test split" in Path("report.html").read_text()
    cli("report", "r", code=2)  # it exists


def test_a_file_that_changed_since_the_run_is_warned_of(begun, cli):
    before = json.loads((begun / "r" / "environment.json").read_text())["data"]["test.tsv"]
    assert "changed" not in cli("eval", "r").err
    write_table(begun / "test.tsv", rows(21, seed=2))
    now = hashlib.sha256((begun / "test.tsv").read_bytes()).hexdigest()
    for command in ("eval", "errors", "report"):
        ended = cli(command, "r")
        said = f"test.tsv: changed since the run: SHA-256 {now[:12]}…, then {before[:12]}…"
        assert said in ended.err
    assert now in Path("report.html").read_text()


def test_held_out_rows_of_a_changed_file_are_refused(begun, cli):
    write_table(begun / "train.tsv", rows(41, seed=1))
    ended = cli("eval", "r", "--split", "validation", code=2)
    assert "SHA-256" in ended.err
    (begun / "r" / "environment.json").unlink()
    cli("eval", "r", "--split", "validation", code=2)


def test_without_a_test_split_the_splits_that_there_are_are_named(project, cli):
    none = ("--set", "data.test=null", "--set", "data.validation=null")
    cli("fit", "c.yaml", "--run-dir", "r", *none)
    found = cli("report", "r").problems
    assert found[0].startswith("warning: the model was trained on these rows")
    assert found[1:] == ["written: report.html"]
    for words in (["eval", "r"], ["errors", "r"]):
        advice = "r has no test split; give --split train, or a labelled file with --data"
        first, second = cli(*words, code=2).problems
        assert first == f"seqtrain: --split: {advice}"
        assert "--folds 5" in second
        cli(*words, "--split", "train")


def test_time_steps_that_train_names_are_found_by_name(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    columns = {"h0,h1,h2,kind": "train", "id,kind,h2,h0,h1": "other", "h0,h1,kind": "less"}
    for header, file in columns.items():
        lines = [header]
        for n in range(40):
            row = {"id": n, "h0": n % 2, "h1": 9 * (n % 2), "h2": n % 5, "kind": "ab"[n % 2]}
            lines.append(",".join(str(row[name]) for name in header.split(",")))
        Path(f"{file}.csv").write_text("\n".join(lines))
    fit(tmp_path, "data: {train: train.csv, kind: features, label: kind}")
    scores = [cli("eval", "run", "--data", x, "--json").json for x in ("train.csv", "other.csv")]
    learned = [each.pop("trained_on_rows") for each in scores]
    assert learned == [True, None]
    assert scores[0] == scores[1]
    assert re.search("less.csv:1: .*'h2'", cli("eval", "run", "--data", "less.csv", code=2).err)


def test_every_metric_is_in_json_and_those_of_epochs_wherever_scores_are(beside, cli):
    assert METRICS.keys() <= cli("eval", "run", "--json").json.keys()
    epoch: Any = next(line for line in metrics("run") if line["event"] == "epoch")
    for name, metric in METRICS.items():
        assert (name in epoch["validation"]) == metric.each_epoch
        cli("runs", ".", "--sort", name, "--json", code=0 if metric.each_epoch else 2)
        code = 0 if metric.monitored else 2
        cli("config", "c.yaml", "--set", f"training.monitor={name}", code=code)


def test_a_file_that_was_learned_is_said_to_be(beside, tmp_path, cli):
    shutil.copy("train.tsv", tmp_path / "copy.tsv")
    for data in ("train.tsv", tmp_path / "copy.tsv"):
        ended = cli("eval", "run", "--data", data, "--json")
        assert ended.json["trained_on_rows"] is True
        assert "data.train" in ended.err
        found = seqtrain.evaluate("run", data=str(data))
        assert "data.train" in repr(found)
    assert cli("eval", "run", "--data", "test.tsv", "--json").json["trained_on_rows"] is None


def test_the_headline_after_a_refit_without_test_is_the_first_models(project, cli):
    """The model has learned the rows of validation, so its own scores on them are too good."""
    settings = ("data.test=null", "training.refit=true", "training.max_epochs=3")
    cli("fit", "c.yaml", *sets(*settings), "--run-dir", "r", "--quiet")
    best: Any = json.loads(Path("r/validation.json").read_text())
    found = cli("eval", "r", "--json").json
    learned = found.pop("learned")
    assert found.pop("trained_on_rows") is False
    assert found == best
    assert {*learned} >= {*best}
    own = seqtrain.evaluate("r")
    assert own.scores.accuracy == best["accuracy"]
    assert own.learned is not None
    assert own.learned.accuracy == learned["accuracy"]
    shown = cli("eval", "r").out.splitlines()
    first, second = (
        next(number for number, line in enumerate(shown) if words in line)
        for words in ("scored on", "after training.refit")
    )
    assert f"{best['accuracy']:.2%}" in shown[first + 2]
    assert f"{learned['accuracy']:.2%}" in shown[second + 2]
    assert first < second
    Path("r/validation.json").write_text(json.dumps({**best, "labels": best["labels"][:1]}))
    assert "validation.json: damaged" in cli("eval", "r", code=2).err
    Path("r/validation.json").write_text(json.dumps(best))
    cli("report", "r", "-o", "r.html")
    page = Path("r.html").read_text()
    figures = re.findall(r"<div><b>(.*?)</b><span>(.*?)</span></div>", page)
    assert {name: value for value, name in figures}["accuracy"] == f"{best['accuracy']:.2%}"
    assert "model before the refit" in page
    cli("fit", "c.yaml", *sets("training.refit=true"), "--run-dir", "t", "--quiet")
    assert "learned" not in cli("eval", "t", "--json").json


def test_the_macro_mean_says_which_classes_have_no_row(project, cli):
    three = rows(60, seed=5)
    three[:9] = [(f"{text} zz", "odd") for text, _ in three[:9]]
    write_table(Path("three.tsv"), three)
    cli(
        "fit",
        "c.yaml",
        *sets("data.train=three.tsv", "data.test=null"),
        "--run-dir",
        "r",
        "--quiet",
    )
    two = [row for row in three if row[1] != "odd"]
    write_table(Path("two.tsv"), two)
    ended = cli("eval", "r", "--data", "two.tsv", "--json")
    assert "'odd'" in ended.err
    own = ended.json["per_class"]
    averaged = [x["f1"] for x in own.values() if x["support"] or x["num_predicted"]]
    assert ended.json["macro_f1"] == pytest.approx(sum(averaged) / len(averaged))
    assert f"mean of {len(averaged)} " in cli("eval", "r", "--data", "two.tsv").out


@pytest.mark.parametrize("place", ["labels.csv", "facts/labels.csv"])
def test_splits_of_recordings_join_the_file_of_the_config(tmp_path, monkeypatch, cli, place):
    """Beside the folder of the recordings, or elsewhere; other files join one of their folders."""
    monkeypatch.chdir(tmp_path)
    names = [f"rec_{number:02d}.csv" for number in range(12)]
    about = ["name,kind", *(f"{name},{'uv'[at % 2]}" for at, name in enumerate(names))]
    files = {place: about}
    for number, name in enumerate(names):
        files[f"data/{name}"] = ["ms,level", *(f"{at},{number % 2 + at / 10}" for at in range(6))]
    for path, lines in files.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("\n".join(lines) + "\n")
    cli("init", "data/*.csv", place, "-o", "c.yaml", "--label", "kind")
    cli("fit", "c.yaml", "--set", "training.max_epochs=1", "--run-dir", "run")
    shown = json.loads(cli("eval", "run", "--split", "train", "--json").out)
    assert shown["num_examples"] == 12
    cli("errors", "run", "--split", "train")
    if place == "labels.csv":
        shown = json.loads(cli("eval", "run", "--data", "data/*.csv", "--json").out)
        assert shown["num_examples"] == 12
