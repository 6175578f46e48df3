"""What is said of scores of rows that the model was trained on, and where no others are scored."""

from __future__ import annotations

import json
from pathlib import Path

from tests.helpers.tiny import Cli

SETTINGS = ("--set", "training.max_epochs=12", "--set", "training.lr=0.05")
ALONE = ("--set", "data.validation=null", "--set", "data.test=null")
REFIT = ("--set", "data.validation=0.2", "--set", "training.refit=true")


def test_without_validation_the_lowest_loss_decides_among_equal_epochs(
    project: Path, cli: Cli
) -> None:
    ended = cli("fit", "c.yaml", "--run-dir", "r", *SETTINGS, *ALONE)
    assert ended.code == 0, ended.err
    lines = map(json.loads, Path("r/metrics.jsonl").read_text().splitlines())
    epochs = [line["train"] for line in lines if line["event"] == "epoch"]
    most = max(epoch["accuracy"] for epoch in epochs)
    equal = [number for number, epoch in enumerate(epochs, 1) if epoch["accuracy"] == most]
    assert len(equal) > 1
    kept = min(equal, key=lambda number: epochs[number - 1]["loss"])
    assert kept != equal[0]
    assert f"best epoch {kept} of 12" in ended.err
    assert "next: seqtrain predict FILE r\n" in ended.err  # eval and errors have no split


def test_scores_of_learned_rows_say_so(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml", "--run-dir", "r", *SETTINGS, *REFIT)
    assert ended.code == 0, ended.err
    before, _, after = ended.err.partition("refit 1: ")
    said = " ".join(before.split())
    assert said.endswith("(training.refit); the validation scores above are of the first one")
    assert after.count("refit 2: ") == 1
    assert "the model of the refit is kept" in after
    assert "next: seqtrain predict FILE r, seqtrain eval r, seqtrain errors r\n" in ended.err
    no_test = ("--set", "data.test=null", "--set", "training.max_epochs=1")
    refitted = cli("fit", "c.yaml", "--run-dir", "r2", *REFIT, *no_test)
    assert "next: seqtrain predict FILE r2\n" in refitted.err  # no rows that weren't learned
    too = "trained on these rows too (training.refit)"
    assert too in " ".join(cli("eval", "r", "--split", "validation").err.split())
    assert "trained on these rows" in cli("eval", "r", "--split", "train").err
    asked = {"--split": ("train", "validation", "test"), "--data": ("test.tsv",)}
    said = [
        json.loads(cli("eval", "r", option, value, "--json").out)["trained_on_rows"]
        for option, values in asked.items()
        for value in values
    ]
    assert said == [True, True, False, None]
    assert cli("report", "r", "--split", "validation", "--output", "r.html").code == 0
    page = Path("r.html").read_text()
    assert f"validation, {too}" in page
    assert "then anew on train and validation (training.refit)" in page
