"""`seqtrain runs`: each run in a line, with what differs, without touching any."""

import json
import os
import re
from pathlib import Path

import pytest

from seqtrain.config import config_from_mapping, render_config
from tests.helpers.tiny import Cli, listing

ACCURACIES = {"a": 0.5, "b": 0.75, "c": 0.625}


def write_run(folder: Path, name: str, accuracy: float, age: int, **training: object) -> None:
    """Write the files of a finished run of three epochs, the second of which was the best."""
    run = folder / name
    run.mkdir(parents=True)
    data = {"train": "t.tsv", "sequence": "text", "label": "label"}
    config = config_from_mapping({"data": data, "training": training})
    lines: list[dict[str, object]] = []
    for epoch, best in ((1, True), (2, True), (3, False)):
        scores = {"accuracy": accuracy if epoch == 2 else 0.1, "loss": 1 - accuracy}
        scores["majority_baseline"] = 0.4
        line = {"event": "epoch", "epoch": epoch, "best": best, "seconds": 50.0}
        lines.append({**line, "validation": scores})
    lines.append({"event": "end", "test": {"accuracy": accuracy - 0.25, "loss": 2.0}})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run / "metrics.jsonl").write_text(text)
    (run / "config.yaml").write_text(render_config(config))
    os.utime(run / "config.yaml", (1_700_000_000 - age, 1_700_000_000 - age))


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A current directory with three runs, the newest named c."""
    for age, (name, lr) in enumerate([("c", 0.1), ("b", 0.01), ("a", 0.001)]):
        write_run(tmp_path / "runs", name, ACCURACIES[name], age, lr=lr, patience=None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(cli: Cli, *arguments: str) -> list[str]:
    found = cli("runs", "--json", *arguments).json
    return [Path(run["path"]).name for run in found["runs"]]


def test_json_holds_scores_settings_and_what_differs(place, cli):
    before = listing(place)
    found = cli("runs", "--json").json
    assert listing(place) == before
    assert found["differing"] == ["training.lr"]
    newest = found["runs"][0]
    assert newest["path"] == "runs/c"
    assert newest["config"]["training.lr"] == 0.1
    assert newest["config"]["training.patience"] is None
    assert newest["validation"] == {"accuracy": 0.625, "loss": 0.375, "majority_baseline": 0.4}
    assert newest["test"] == {"accuracy": 0.375, "loss": 2.0}
    assert (newest["best_epoch"], newest["epochs"], newest["seconds"]) == (2, 3, 150.0)
    assert newest["finished"] is True


def test_the_table(place, cli):
    ended = cli("runs")
    lines = [line.split() for line in ended.out.splitlines() if line.strip()]
    assert ended.out.lstrip().startswith("run ")
    assert [lines[0][0], lines[0][-1]] == ["run", "lr"]
    assert " ".join(lines[2]) == "c 62.50% 37.50% 2 min 30 s 40.00% 2 of 3 - 0.3750 0.1"
    assert [line[0] for line in lines[2:]] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("accuracy", "bca"),
        ("loss", "bca"),
        ("test.accuracy", "bca"),
        ("training.lr", "abc"),
        ("lr", "abc"),
        ("time", "cba"),
        ("started", "abc"),
        ("macro_f1", "cba"),  # unknown: as they were
    ],
)
def test_sorting(place, cli, key, order):
    assert "".join(names(cli, "--sort", key)) == order


@pytest.mark.parametrize(("key", "near"), [("trainin.lr", "training.lr"), ("acuracy", "accuracy")])
def test_refusals(place, cli, key, near):
    [problem] = cli("runs", "--sort", key, code=2).problems
    assert problem.endswith(f"did you mean {near}?")


def test_unfinished_damaged_and_other_folders(place, cli):
    runs = place / "runs"
    (runs / "c/metrics.jsonl").unlink()
    (runs / "b/config.yaml").write_text("model: {rnn: \x1b[31m}\n")
    (runs / "notes").mkdir()
    (runs / "file").write_text("")
    (runs / "a/metrics.jsonl").write_text("half\n")
    ended = cli("runs")
    assert "- of 0, unfinished" in ended.out
    warnings = [line.removeprefix("warning: ") for line in ended.problems[:2]]
    assert warnings[0].startswith("left out: runs/a/metrics.jsonl:1: ")
    assert warnings[1].startswith("listed without its config: runs/b/config.yaml")
    assert "b" in ended.out
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_names_are_whole_and_headings_are_words_that_sort_takes(place, cli, monkeypatch, width):
    name = "a-config-with-a-long-name-20260101-120000"
    write_run(place / "runs", f"{name}/seed-0", 0.5, 0, lr=0.2)
    monkeypatch.setenv("COLUMNS", width)
    lines = cli("runs").out.splitlines()
    assert any(f"{line} ".strip().startswith(f"{name}/seed-0") for line in lines)
    headings = next(line for line in lines if line.strip()).split()
    every = ["run", "accuracy", "test.accuracy", "time", "baseline", "best_epoch"]
    assert headings == every[: {"60": 1, "80": 3, "120": 6}[width]]
    for heading in headings[1:]:
        assert names(cli, "--sort", heading)


def test_a_beginning_of_a_name_is_suggested_in_whole(place, cli):
    write_run(place / "runs", "sms-20260101-120000", 0.5, 0)
    for name in ("runs/sm", "sm", "runs/sms-20260101-12000"):
        [problem] = cli("eval", name, code=2).problems
        assert problem.endswith("did you mean runs/sms-20260101-120000?")
    assert "did you mean" not in cli("eval", "runs/zebra", code=2).err


@pytest.mark.parametrize("swap", range(1, 9))
@pytest.mark.parametrize("folder", ["runs/", ""])
def test_a_misspelt_config_suggests_its_newest_run(place, cli, swap, folder):
    for time in ("20260101-120000", "20260102-120000"):
        write_run(place / "runs", f"telescope-{time}", 0.5, 0)
    letters = list("telescope")
    letters[swap - 1 : swap + 1] = letters[swap - 1 : swap + 1][::-1]
    [problem] = cli("eval", folder + "".join(letters), code=2).problems
    assert re.search(r"did you mean runs/telescope-2026010[12]-120000\?$", problem)


def test_a_long_setting_breaks_no_row_of_a_pipe(place, cli):
    for number in range(2):
        name = f"a long sentence about a setting {number}"
        write_run(Path("runs"), f"long-{number}", 0.5, number, optimizer="adamw", monitor="loss")
        path = Path("runs", f"long-{number}", "config.yaml")
        path.write_text(path.read_text().replace("sequence: text", f"sequence: {name}"))
    rows = cli("runs").out.strip().splitlines()[2:]
    assert len(rows) == len(cli("runs", "--json").json["runs"])
