"""`seqtrain tune`: trials, what they leave, and that no finished trial is lost or repeated."""

import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import load_config
from tests.helpers.program import KILLED, Running, ended, started
from tests.helpers.tiny import assert_same_run, run_in, write_text_project

optuna = pytest.importorskip("optuna")
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
FINISHED = {int(state) for state in optuna.trial.TrialState if state.is_finished()}


def study(run: str | Path) -> Any:
    """Return Optuna's study of a search."""
    backend = optuna.storages.journal.JournalFileBackend(str(Path(run, "study.journal")))
    storage = optuna.storages.JournalStorage(backend)
    return optuna.load_study(study_name="tune", storage=storage)


def trials(run: str | Path) -> list[dict[str, Any]]:
    """Return the results of finished trials, without their times."""
    found = [trial.user_attrs["result"] for trial in study(run).trials if trial.state.is_finished()]
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in found]


def ends(run: str | Path) -> Counter[int]:
    """Return the number of times that each trial ended, as the journal has it."""
    lines = Path(run, "study.journal").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return Counter(event["trial_id"] for event in events if event.get("state") in FINISHED)


def write_small_project(folder: Path) -> None:
    write_text_project(folder)
    config = (folder / "c.yaml").read_text().replace(" test: test.tsv,", "")
    (folder / "c.yaml").write_text("seed: 4\n" + config + SPACE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with a project, and `best`: what a search of six trials left there."""
    folder = tmp_path_factory.mktemp("tuned")
    write_small_project(folder)
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


@pytest.mark.parametrize(("budget", "unit"), [("7", True), ("7s", False), ("1.5", True)])
def test_a_budget_without_a_unit_is_seconds_and_said(trained, cli, monkeypatch, budget, unit):
    """The search of `trained` has its trials, so that none begins."""
    monkeypatch.chdir(trained)
    command = ["tune", "c.yaml", "--run-dir", "best", "--trials", "6", "--budget", budget]
    assert (f"--budget {budget}m" in cli(*command).err) == unit


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
    assert "\n  0 * accuracy " in screen
    assert "\n      the config itself\n" in screen  # indented, so that wrapped parts can be too
    assert "next: seqtrain predict FILE best" in screen


def test_the_first_trial_is_the_config_and_later_ones_change_what_it_says(beside):
    first, *others = trials("best")
    own = {"model.hidden_size": 4, "model.dropout": 0.2, "training.lr": 0.02}
    assert {key: first["settings"][key] for key in own} == own
    kept = [trial["settings"][key] == value for trial in others for key, value in own.items()]
    assert 0 < sum(kept) < len(kept)
    rates = [trial["settings"]["training.lr"] for trial in others]
    assert rates == [float(f"{rate:.3g}") for rate in rates]


def test_a_search_that_ended_is_only_shown_again_and_goes_on_with_more_trials(
    trained, cli, tmp_path, monkeypatch
):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    before, journal = trials("best"), Path("best/study.journal").read_bytes()
    again = cli("tune", "c.yaml", "--run-dir", "best", "--trials", "6")
    assert again.out == "best\n"
    assert trials("best") == before
    assert Path("best/study.journal").read_bytes().startswith(journal)
    cli("tune", "c.yaml", "--run-dir", "best", "--trials", "8")
    assert trials("best")[:6] == before
    assert len(trials("best")) == 8


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_lost_first_trial_begins_again_when_the_search_is_started_again(number, tmp_path):
    write_small_project(tmp_path)
    config = (tmp_path / "c.yaml").read_text()
    (tmp_path / "c.yaml").write_text(config.replace("max_epochs: 2", "max_epochs: 80"))
    words = ["tune", "c.yaml", "-q", "--trials", "1"]
    run = tmp_path / "runs" / "c-tuned"
    with started(tmp_path, *words) as program:
        program.wait_for(run / "trials" / "0" / "metrics.jsonl")
        program.send(number)
        assert program.end() == (KILLED if number == signal.SIGKILL else 128 + number)
    assert trials(run) == []
    program = ended(tmp_path, *words)
    assert program.out == "runs/c-tuned\n"
    assert "Warning" not in program.err
    (trial,) = trials(run)
    assert (trial["number"], trial["state"]) == (0, "complete")
    assert ", was " not in (run / "best.yaml").read_text()  # the config itself


def test_two_processes_that_are_killed_at_random_finish_each_trial_once(tmp_path):
    write_small_project(tmp_path)
    draw, words = random.Random(0), ["tune", "c.yaml", "-q", "--trials", "3", "--run-dir", "r"]
    for _ in range(2):
        before = recorded(tmp_path / "r")
        with both(tmp_path, *words) as programs:
            time.sleep(draw.uniform(0.2, 1.5))
            draw.choice(programs).send(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            time.sleep(draw.uniform(0, 0.5))
        # A trial with a lower number may have ended meanwhile.
        after = {trial["number"]: trial for trial in recorded(tmp_path / "r")}
        assert [after.get(trial["number"]) for trial in before] == before
    with both(tmp_path, *words) as programs:
        codes = [program.end() for program in programs]
        assert codes == [0, 0], [program.err for program in programs]
        assert [program.out for program in programs] == ["r\n", "r\n"]
    found = trials(tmp_path / "r")
    assert [trial["number"] for trial in found] == [*range(3)]
    assert set(ends(tmp_path / "r").values()) == {1}
    assert found[0]["state"] == "complete"
    assert not (tmp_path / "r" / "trials").exists()
    run_in(tmp_path, "fit", "r/best.yaml", "--run-dir", "plain", "--quiet")
    assert_same_run(tmp_path / "r", tmp_path / "plain")


@pytest.mark.parametrize("damage", [b'{"op_code":', b"\0" * 9])
def test_the_beginning_of_a_line_that_a_full_disk_left_is_cut(
    trained, cli, tmp_path, monkeypatch, damage
):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    before = trials("best")
    with Path("best/study.journal").open("ab") as file:
        file.write(damage)
    cli("tune", "c.yaml", "--run-dir", "best", "--trials", "7")
    assert trials("best")[:6] == before


def test_a_damaged_journal_is_named(trained, cli, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    path = Path("best/study.journal")
    whole = path.read_bytes()
    for damage in (b"{\n{}\n", b"[]\n", b'{"op_code": 77}\n', b"\xff\n1\n"):
        path.write_bytes(whole + damage)
        ended = cli("tune", "c.yaml", "--run-dir", "best", "--trials", "7", code=2)
        assert "best/study.journal: damaged" in ended.err
    cli("tune", "c.yaml", "--run-dir", "best", "--trials", "1", "--force")
    assert len(trials("best")) == 1


@pytest.mark.parametrize("name", ["base.yaml", "study.journal"])
@pytest.mark.parametrize("kind", ["folder", "no text"])
def test_what_is_no_file_of_a_search_is_named(trained, cli, tmp_path, monkeypatch, name, kind):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    path = Path("best") / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\n")
    refused = cli("tune", "c.yaml", "--run-dir", "best", "--trials", "7", code=2)
    assert str(path) in refused.problems[-1]


@pytest.mark.parametrize("option", ["--set=seed=3", "--set=data.bad_rows=drop"])
def test_a_search_of_another_config_is_refused(beside, cli, option):
    before = trials("best")
    refused = cli("tune", "c.yaml", "--trials", "1", "--run-dir", "best", option, code=2)
    assert "best/base.yaml" in refused.err
    assert trials("best") == before


def test_resume_needs_a_search(beside, cli):
    refused = cli("tune", "c.yaml", "--trials", "1", "--run-dir", "none", "--resume", code=2)
    assert "no search in it" in refused.err
    assert not Path("none").exists()


def test_a_search_of_other_data_is_refused(trained, cli, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    with Path("train.tsv").open("a") as file:
        file.write(Path("train.tsv").read_text().splitlines()[1] + "\n")
    refused = cli("tune", "c.yaml", "--run-dir", "best", code=2)
    assert "best/base.yaml" in refused.err
    assert "other data" in refused.err


def recorded(run: Path) -> list[dict[str, Any]]:
    """Return the results so far, or none if the search wasn't begun."""
    has_study = (run / "study.journal").exists() and (run / "study.journal").stat().st_size
    return trials(run) if has_study else []


@contextmanager
def both(folder: Path, *words: str) -> Iterator[list[Running]]:
    """Start the program twice with equal arguments; both are gone when the block is left."""
    with started(folder, *words) as first, started(folder, *words) as second:
        yield [first, second]
