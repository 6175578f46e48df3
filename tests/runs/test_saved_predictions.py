"""Predictions that `fit` saves: errors and report show them as the model would predict them."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.runs.run_directory import RunDirectory
from seqtrain.runs.saved_predictions import saved_results
from tests.helpers.tiny import sets

SAVED = Path("r/predictions-test.json")


@pytest.mark.parametrize("split", ["test", "validation"])
def test_they_equal_those_of_the_model(project, cli, split):
    without_test = sets("data.test=null") if split == "validation" else []
    cli("fit", "c.yaml", "--run-dir", "r", *without_test)
    file = Path(f"r/predictions-{split}.json")
    assert saved_results(RunDirectory(Path("r")), split) is not None
    saved = cli("errors", "r", "--json").out, cli("errors", "r", "--top", "3").err
    cli("report", "r", "-o", "saved.html")
    file.unlink()
    assert saved == (cli("errors", "r", "--json").out, cli("errors", "r", "--top", "3").err)
    cli("report", "r", "-o", "new.html")
    pages = [Path(name).read_text() for name in ("saved.html", "new.html")]
    assert pages[0] == pages[1]
    assert not file.exists()  # to look at a run changes nothing in it


def change_data() -> None:
    """Append a row to the file of test."""
    with Path("test.tsv").open("a") as file:
        file.write("rise\tup\n")


def change_config() -> None:
    path = Path("r/config.yaml")
    path.write_text(re.sub("patience: .*", "patience: 7", path.read_text()))


def change_model() -> None:
    shutil.rmtree("r/best")
    shutil.copytree("other/best", "r/best")


def damage() -> None:
    values = json.loads(SAVED.read_text())
    values["results"]["errors"] = [{"line": "one"}]
    SAVED.write_text(json.dumps(values))


@pytest.mark.parametrize(
    "change",
    [
        change_data,
        change_config,
        change_model,
        damage,
        lambda: SAVED.write_bytes(b"\xff"),
        lambda: (SAVED.unlink(), SAVED.mkdir()),
    ],
)
def test_after_a_change_they_are_not_used(begun, cli, change: Callable[[], object]):
    cli("fit", "c.yaml", "--run-dir", "other", "--set", "seed=1")
    run = RunDirectory(Path("r"))
    assert saved_results(run, "test") is not None
    change()
    assert saved_results(run, "test") is None
    assert cli("errors", "r", "--json").json["num_examples"] > 0


def test_they_are_not_used_once_the_pattern_of_the_split_matches_another_file(project, cli):
    cli("fit", "c.yaml", "--run-dir", "r", *sets("data.test=tes*.tsv"))
    before = cli("errors", "r", "--json").json["num_examples"]
    shutil.copy("test.tsv", "test2.tsv")
    assert saved_results(RunDirectory(Path("r")), "test") is None
    assert cli("errors", "r", "--json").json["num_examples"] == 2 * before
