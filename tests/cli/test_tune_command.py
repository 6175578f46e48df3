"""`seqtrain tune`: trials, what they leave, and that only the trial under way is ever lost."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import load_config
from tests.helpers.program import KILLED, started
from tests.helpers.tiny import assert_same_run, run_in, write_text_project

HUGE = 65536
"""A hidden size whose weights no machine holds."""
SPACE = f"""\
tune:
  space:
    model.hidden_size: [4, 8, {HUGE}]
    model.embedding_dim: [4]
    batching.batch_size: [8]
    model.ngrams: null
"""


def trials(run: str) -> list[dict[str, Any]]:
    """Return the lines of trials.jsonl without their times."""
    lines = [json.loads(line) for line in Path(run, "trials.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with a project, and `best`: what a search of six trials left there."""
    folder = tmp_path_factory.mktemp("tuned")
    write_text_project(folder)
    config = (folder / "c.yaml").read_text().replace(" test: test.tsv,", "")
    (folder / "c.yaml").write_text("seed: 2\n" + config + SPACE)
    ended = run_in(folder, "tune", "c.yaml", "--run-dir", "best", "--trials", "6")
    (folder / "screen").write_text(ended.err)
    return folder


def test_a_failed_trial_is_noted_and_no_more(beside):
    found = trials("best")
    assert [trial["number"] for trial in found] == list(range(6))
    huge = [trial for trial in found if trial["settings"]["model.hidden_size"] == HUGE]
    assert huge
    assert all("model.hidden_size" in trial["problem"] for trial in huge)
    assert {trial["state"] for trial in found if trial not in huge} <= {"complete", "pruned"}
    assert found[0]["state"] == "complete"


def test_the_best_trial_is_a_run_that_its_config_repeats(beside, cli):
    best = max(
        (trial for trial in trials("best") if trial["state"] == "complete"),
        key=lambda trial: (trial["value"], -trial["loss"], -trial["number"]),
    )
    config, base = load_config("best/best.yaml"), load_config("c.yaml")
    assert config.model.dropout == best["settings"]["model.dropout"]
    assert (config.data.test, base.data.test) == (0.1, None)
    cli("fit", "best/best.yaml", "--run-dir", "again")
    assert_same_run("best", "again")
    assert not Path("best/trials").exists()


def test_the_score_beside_the_one_that_chose_it_is_of_rows_that_chose_nothing(beside):
    test = json.loads(Path("best/test.json").read_text())
    screen = (beside / "screen").read_text()
    assert test["num_examples"] == 4
    assert f"accuracy {test['accuracy']:.2%}" in screen
    assert "on 4 test rows" in screen
    assert "on validation" in screen
    assert screen.startswith("at most ")
    assert "next: seqtrain predict FILE best" in screen


def test_a_search_that_was_killed_goes_on(beside, cli, tmp_path):
    killed = str(tmp_path / "killed")
    arguments = ("tune", "c.yaml", "--run-dir", killed, "-q", "--trials", "3")
    with started(beside, *arguments) as program:
        program.wait_for(tmp_path / "killed" / "best.yaml")
        program.send(signal.SIGKILL)
        assert program.end() == KILLED, program.err
    before = trials(killed)
    cli("tune", "c.yaml", "--run-dir", killed, "--trials", "3", "--resume")
    assert trials(killed)[: len(before)] == before
    assert len(trials(killed)) == 3
    assert trials(killed)[0]["settings"] == trials("best")[0]["settings"]
    assert not Path(killed, "trials").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--run-dir", "best"], "--run-dir: best isn't empty"),
        (
            ["--resume", "--run-dir", "best", "--set", "seed=3"],
            "another config",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_tried(beside, cli, arguments, said):
    before = trials("best")
    ended = cli("tune", "c.yaml", "--trials", "1", *arguments, code=2)
    assert said in ended.err
    assert trials("best") == before


def test_a_search_of_other_data_is_not_resumed(trained, cli, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    with Path("train.tsv").open("a") as file:
        file.write(Path("train.tsv").read_text().splitlines()[1] + "\n")
    ended = cli("tune", "c.yaml", "--run-dir", "best", "--resume", code=2)
    assert "best/base.yaml" in ended.err
    assert "other data" in ended.err
