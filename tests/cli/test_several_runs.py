"""fit --seeds and --folds: runs in one directory, which answer together."""

import json
import os
import random
import re
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import seqtrain
from seqtrain.config import load_config
from seqtrain.errors import ConfigError
from seqtrain.sequences.dataset import prepare
from tests.helpers.program import started
from tests.helpers.tiny import (
    CONFIG,
    Cli,
    assert_same_run,
    rows,
    run_in,
    sets,
    write_table,
    write_text_project,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with `many`: runs of three seeds. Read only."""
    folder = tmp_path_factory.mktemp("three")
    write_text_project(folder)
    ended = run_in(folder, "fit", "c.yaml", "--run-dir", "many", "--seeds", "0,1,10")
    assert ended.out == "many\n"
    (folder / "said").write_text(ended.err)
    return folder


def test_several_runs_may_be_the_newest(beside, cli, tmp_path, monkeypatch):
    shutil.copytree("many", tmp_path / "runs/many")
    shutil.copytree("many/seed-0", tmp_path / "runs/old")
    shutil.copy("test.tsv", tmp_path)
    monkeypatch.chdir(tmp_path)
    os.utime("runs/old/config.yaml", (1, 1))
    assert cli("predict", "test.tsv").err.startswith("run: runs/many\n")
    for command in ("check", "errors"):  # of one model
        assert "runs/many" in cli(command, code=2).problems[0]
    Path("runs/many/ensemble.json").unlink()
    ended = cli("predict", "test.tsv")
    assert ": runs/many\nrun: runs/old\n" in ended.err


def test_a_signal_names_the_command_that_goes_on_with_all(project):
    words = ("fit", "c.yaml", "--seeds", "0,1", "--run-dir", "k")
    with started(project, *words, "--set", "training.max_epochs=9999") as running:
        running.wait_for(project / "k/seed-0/last/manifest.json")
        running.send(signal.SIGINT)
        assert running.end() == 130
    command = f"seqtrain {shlex.join(words)} --set training.max_epochs=9999 --resume"
    assert running.err.endswith(f": {command}\n")
    assert not (project / "k/ensemble.json").exists()


def test_one_that_fails_ends_the_others(beside, cli):
    settings = ("--set", "data.label=nosuch")
    ended = cli("fit", "c.yaml", "--run-dir", "none", "--seeds", "0,1", *settings, code=2)
    assert ended.problems[-1].startswith("seqtrain: train.tsv:1: no column 'nosuch'")
    assert not Path("none").exists()


def test_the_runs_are_listed(beside, cli):
    found = cli("runs", ".", "--json").json
    assert {run["path"] for run in found["runs"]} == {f"many/seed-{seed}" for seed in (0, 1, 10)}
    assert found["differing"] == ["seed"]
    names = [line.split()[0] for line in cli("runs", ".").out.splitlines() if "%" in line]
    assert sorted(names) == ["many/seed-0", "many/seed-1", "many/seed-10"]


def answers(cli: Cli, run: str) -> list[dict[str, float]]:
    ended = cli("predict", "test.tsv", "--run", run, "--format", "jsonl")
    return [json.loads(line)["probabilities"] for line in ended.out.splitlines()]


def test_the_runs_answer_by_their_mean(beside, cli):
    each = [answers(cli, f"many/seed-{seed}") for seed in (0, 1, 10)]
    for row, *parts in zip(answers(cli, "many"), *each, strict=True):
        for label, probability in row.items():
            mean = np.mean([part[label] for part in parts])
            assert probability == pytest.approx(mean, abs=2e-6)
    first = cli("predict", "test.tsv", "--run", "many", "--top-k", "1").out.splitlines()[1]
    best = max(answers(cli, "many")[0].items(), key=lambda item: item[1])
    assert first.split("\t")[0] == best[0]


def test_eval_says_what_the_ensemble_adds(beside, cli):
    ended = cli("eval", "many", "--json")
    scores = ended.json
    assert list(scores["parts"]) == ["seed-0", "seed-1", "seed-10"]
    alone = cli("eval", "many/seed-1", "--json").json
    assert scores["parts"]["seed-1"]["loss"] == pytest.approx(alone["loss"])
    mean = np.mean([part["accuracy"] for part in scores["parts"].values()])
    parts = [line.split() for line in cli("eval", "many").out.splitlines() if "seed-" in line]
    assert np.mean([float(part[1].rstrip("%")) for part in parts]) == pytest.approx(100 * mean)
    labels = [line.split("\t")[1] for line in Path("test.tsv").read_text().splitlines()[1:]]
    right = [
        max(row, key=row.get) == y for row, y in zip(answers(cli, "many"), labels, strict=True)
    ]  # type: ignore[arg-type]
    assert scores["accuracy"] == pytest.approx(np.mean(right))


def test_mean_and_standard_error_are_shown(beside):
    tests = [
        json.loads(Path("many", f"seed-{seed}", "test.json").read_text())["accuracy"]
        for seed in (0, 1, 10)
    ]
    error = np.std(tests, ddof=1) / np.sqrt(3)
    said = Path("said").read_text()
    line = next(line for line in said.splitlines() if "test accuracy" in line)
    assert line.split()[2:4] == [f"{np.mean(tests):.2%}", f"{error:.2%}"]
    assert "seed-10:" in said
    assert said.count("also in train") == 1  # the data are the same
    assert "next: seqtrain predict FILE many, seqtrain eval many" in said


def test_folds_hold_out_every_row_once(project, cli):
    cli("fit", "c.yaml", "--run-dir", "many", "--folds", "4", "--quiet")
    held_out = []
    for number in range(1, 5):
        config = load_config(f"many/fold-{number}/config.yaml", [])
        data = prepare(config)
        held_out += data.splits["validation"].lines.tolist()
        assert len(data.splits["validation"]) == 10
        shown = cli("eval", f"many/fold-{number}", "--split", "validation", "--json")
        assert shown.json["num_examples"] == 10
    assert sorted(held_out) == list(range(2, 42))
    assert cli("eval", "many", "--json").json["num_examples"] == 20
    pooled = cli("eval", "many", "--split", "validation", "--json")
    scores = pooled.json
    assert "by the one run" in pooled.err
    assert scores["num_examples"] == 40
    means = [part["accuracy"] for part in scores["parts"].values()]
    assert scores["accuracy"] == pytest.approx(np.mean(means))  # 10 rows each
    assert min(means) < max(means)
    cli("fit", "c.yaml", "--run-dir", "two", "--folds", "2", "--quiet")
    for runs in ("many", "two"):  # of two folds no row is in both trains
        refused = cli("eval", runs, "--split", "train", code=2).err
        assert f"{runs}/fold-1" in refused
        assert refused.rstrip().endswith("--data")


def test_seeds_without_test_are_scored_on_what_each_held_out(project, cli):
    without = ("--set", "data.test=null", "--set", "data.validation=0.25")
    cli("fit", "c.yaml", "--run-dir", "many", "--seeds", "0,1", *without, "--quiet")
    scores = cli("eval", "many", "--json").json
    assert scores["num_examples"] == 20
    alone = [cli("eval", f"many/seed-{n}", "--json").json["accuracy"] for n in (0, 1)]
    assert scores["accuracy"] == pytest.approx(np.mean(alone))


def test_a_run_that_was_killed_before_its_config_begins_again(project, beside, cli):
    """A run that ended before isn't trained again."""
    parts = project / "parts"
    shutil.copytree("many", parts)
    shutil.rmtree(parts / "seed-10")
    (parts / "ensemble.json").unlink()
    for path in (parts / "seed-1").iterdir():
        if path.name not in (".lock", "environment.json", "last"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    file = parts / "seed-0/environment.json"  # a new run writes it anew
    before = file.stat().st_ino
    cli("fit", "c.yaml", "--run-dir", parts, "--seeds", "0,1,10", "--resume", "--quiet")
    assert file.stat().st_ino == before
    for name in ("seed-1", "seed-10"):
        assert_same_run(f"many/{name}", str(parts / name))
    names = json.loads((parts / "ensemble.json").read_text())["members"]
    assert names == ["seed-0", "seed-1", "seed-10"]


@pytest.mark.parametrize(
    "words",
    [
        ("errors", "many"),
        ("check", "many"),
        ("predict", "test.tsv", "--run", "many", "--steps"),
        ("eval", "many", "--steps"),
        ("fit", "c.yaml", "--init-from", "many"),
    ],
)
def test_what_needs_one_run_says_so(beside, cli, words):
    said = cli(*words, code=2).err
    assert re.search("many: .*many/seed-0", said)
    with pytest.raises(ConfigError, match="several runs"):
        seqtrain.load("many").threshold(0.9)


def test_a_fold_is_not_trained_anew_on_what_it_is_scored_on(project, cli):
    settings = ("--set", "data.test=null", "--set", "training.max_epochs=1")
    settings += ("--set", "training.refit=true", "--folds", "2", "--run-dir", "folds")
    said = cli("fit", "c.yaml", *settings).err
    assert "seqtrain eval folds, seqtrain errors folds\n" in said
    assert not load_config("folds/fold-1/config.yaml", []).training.refit
    assert cli("eval", "folds", "--json").json["trained_on_rows"] is False


def test_errors_over_folds_list_the_rows_that_contradict_their_labels(tmp_path, monkeypatch, cli):
    """Flipped labels come first, whatever fold held their rows out."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    other = {"up": "down", "down": "up"}
    given = rows(240, seed=8)
    flipped = sorted(draw.sample(range(240), 8))
    labels = [other[label] if i in flipped else label for i, (_, label) in enumerate(given)]
    write_table(
        Path("train.tsv"), [(text, label) for (text, _), label in zip(given, labels, strict=True)]
    )
    settings = ("data.validation=0.2", "data.test=null", "batching.batch_size=32")
    settings += ("training.max_epochs=12", "training.lr=0.08")
    Path("c.yaml").write_text(CONFIG)
    cli("fit", "c.yaml", *sets(*settings), "--folds", "3", "--run-dir", "folds", "--quiet")
    found = cli("errors", "folds", "--json").json
    assert found["num_examples"] == 240
    lines = [row["line"] - 2 for row in found["errors"]]
    assert len({*lines}) == len(lines) == found["num_errors"]
    assert len({*lines[:8]} & {*flipped}) >= 6
    shares = [row["probability"] for row in found["errors"]]
    assert shares == sorted(shares, reverse=True)
    pooled = cli("eval", "folds", "--split", "validation", "--json").json
    assert found["num_errors"] == round(240 * (1 - pooled["accuracy"]))
    table = cli("errors", "folds", "--explain", "--top", "3")
    assert f"{len(lines)} of 240 predictions are wrong" in table.err
    assert table.out.count("strongest: ") == 3
