"""Crafted files of a run, in the commands that show, score and resume it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import SHORT
from tests.helpers.tiny import sets

HUGE = "1" + "0" * 400
NUMBERS = ("1e999", "-1e999", HUGE, "1e300", "5e-324", '"x"', "[[1]]", "{}", "true", "null")
KEYS = ("epoch", "seconds", "tokens", "lr", "tokens_per_second", "best", "train", "validation")


@pytest.fixture
def run(begun, monkeypatch) -> Path:
    """A finished run, `r`, in a project that is the current directory."""
    monkeypatch.chdir(begun)
    return begun / "r"


def write_metrics(run: Path, key: str, value: str) -> None:
    """Put a value under a key of two epochs, and under the scores inside the last two keys."""
    inner = f'{{"loss": {value}, "accuracy": {value}, "macro_f1": {value}}}'
    values = {"event": '"epoch"', "epoch": "1", "best": "true", "seconds": "1", "tokens": "5"}
    values[key] = inner if key in ("train", "validation") else value
    line = "{" + ", ".join(f'"{name}": {text}' for name, text in values.items()) + "}\n"
    other = line.replace('"epoch": 1', '"epoch": 2').replace(value, "0")
    (run / "metrics.jsonl").write_text(line + other + '{"event": "end", "test": ' + inner + "}\n")


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", KEYS)
def test_odd_numbers_of_the_metrics_are_shown_or_left_out(run, cli, key, step):
    numbers = NUMBERS[::step]
    for index, value in enumerate(numbers):
        write_metrics(run, key, value)
        cli("report", "r", "-o", "r.html", "--force")
        shutil.copytree(run, run.parent / f"with-{index}")
    for command in (("runs", ".", "--sort", "seconds"), ("runs", ".", "--json")):
        ended = cli(*command)
        assert ended.out.count("with-") >= len(numbers)


@pytest.mark.parametrize(
    ("old", "new"),
    [("label: label", "label: text"), ("lowercase: true", "lowercase: false"), ("text", "label")],
)
@pytest.mark.parametrize("command", ["eval", "errors", "check"])
def test_a_config_that_the_model_was_not_trained_with(run, cli, command, old, new):
    """Rows that are held out again are encoded as it says: another one would score nonsense."""
    path = run / "config.yaml"
    path.write_text(path.read_text().replace(f"{old}\n", f"{new}\n"))
    if command == "check":
        path.write_text(path.read_text().replace("test: test.tsv", "test: null"))
    cli(command, "r", *(() if command == "check" else ("--split", "validation")), code=2)


@pytest.mark.parametrize(
    ("old", "new"), [("validation: 0.2", "validation: 0.4"), ("seed: 0", "seed: 1")]
)
def test_other_rows_are_not_held_out_in_silence(run, cli, old, new):
    """The model learned from some of them: their scores would promise too much."""
    lines = ["s\tlabel\n", *(f"{i:06b}\t{'xy'[i % 2]}\n" for i in range(40))]
    Path("s.tsv").write_text("".join(lines))  # whichever rows train has, both symbols are in them
    data = sets("data.train=s.tsv", "data.test=null", "data.sequence=s", "data.tokenizer=char")
    cli("fit", "c.yaml", "--run-dir", "c", "--quiet", *SHORT, *data)
    path = run.parent / "c" / "config.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    for command in (
        ("eval", "c", "--split", "validation"),
        ("errors", "c", "--split", "validation"),
        ("report", "c", "-o", "c.html"),
        ("fit", "c/config.yaml", "--run-dir", "c", "--resume", "--set", "training.max_epochs=9"),
    ):
        ended = cli(*command, code=2)
        assert "c/config.yaml: holds out other rows" in ended.err


@pytest.mark.parametrize(
    "names", [["seed-0", "seed-0"], [f"seed-{i}" for i in range(1001)], ["seed-0", "../r"], 5]
)
def test_a_crafted_list_of_runs_is_refused(run, cli, names):
    values = {"format_version": 1, "members": names}
    (run / "ensemble.json").write_text(json.dumps(values))
    for use in (("predict", "test.tsv", "--run", "r"), ("eval", "r")):
        cli(*use, code=2)


@pytest.mark.parametrize(
    ("config", "runs", "chosen"),
    [
        ("exp", ["exp-20260101-000000", "exp-2-20260102-000000"], "exp-20260101-000000"),
        ("exp", ["exp-20260101-000000-2", "exp-20260101-extra"], "exp-20260101-000000-2"),
        ("exp", ["exp-2-20260102-000000", "exp-x", "exp-1"], None),
        ("exp-2", ["exp-2-20260102-000000", "exp-20260103-000000"], "exp-2-20260102-000000"),
        ("e[x]p", ["e[x]p-20260102-000000", "exp-20260103-000000"], "e[x]p-20260102-000000"),
    ],
)
def test_resume_takes_a_run_of_this_config_alone(run, cli, config, runs, chosen):
    Path(f"{config}.yaml").write_bytes(Path("c.yaml").read_bytes())
    for name in runs:
        shutil.copytree(run, Path("runs") / name)
    ended = cli("fit", f"{config}.yaml", "--resume", *SHORT, code=0 if chosen else 2)
    assert f"runs/{chosen}" in ended.out if chosen else f"no run of {config}" in ended.err
