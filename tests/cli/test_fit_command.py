"""What `seqtrain fit` promises: the run directory, its files, and refusals that write nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from seqtrain.config import load_config
from tests.helpers.tiny import CONFIG, Cli, listing, rows, write_table


def test_stdout_is_exactly_the_run_directory(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml")
    assert ended.code == 0
    assert ended.out.endswith("\n")
    assert len(ended.out.splitlines()) == 1
    run = Path(ended.out.rstrip("\n"))
    assert run.parent == Path("runs")
    assert run.name.startswith("c-")
    assert (run / "best" / "model.safetensors").is_file()


def test_run_directory_holds_what_the_contract_lists(trained: Path) -> None:
    run = trained / "run"
    folder_files = {"model.safetensors", "model.json", "vocabulary.json", "manifest.json"}
    assert {p.name for p in run.iterdir()} == {
        *("config.yaml", "environment.json", "metrics.jsonl", "test.json", "best", "last"),
    }
    assert {p.name for p in (run / "best").iterdir()} == folder_files
    state = {p.name for p in (run / "last").iterdir()} - folder_files
    assert state
    assert all(name.startswith("training_state.") for name in state)
    tokens = json.loads((run / "best" / "vocabulary.json").read_text())["tokens"]
    assert tokens[:2] == ["<pad>", "<unk>"]


def test_metrics_lines_hold_the_contracts_keys(trained: Path) -> None:
    events = [json.loads(line) for line in (trained / "run/metrics.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert [event["epoch"] for event in epochs] == [1, 2]
    assert events[-1]["event"] == "end"
    for event in epochs:
        assert event.keys() >= {
            *("epoch", "step", "train", "validation", "lr", "seconds"),
            *("tokens", "tokens_per_second", "padding_fraction"),
        }
        assert event["train"].keys() >= {"loss", "accuracy"}
        assert event["validation"].keys() >= {"loss", "accuracy", "macro_f1"}
        assert 0 <= event["padding_fraction"] < 1
    words = [len(text.split()) for text, _ in rows(40, seed=1)]
    assert sum(words) * 0.5 < epochs[0]["tokens"] < sum(words)


def test_resolved_config_repeats_the_run(
    trained: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    assert cli("fit", "run/config.yaml", "--run-dir", tmp_path / "again").code == 0
    for name in ("best/model.safetensors", "last/model.safetensors", "config.yaml"):
        assert (tmp_path / "again" / name).read_bytes() == (trained / "run" / name).read_bytes()


def test_set_and_device_reach_the_resolved_config(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml", "--set", "training.lr=3e-4", "--device", "cpu", "--run-dir", "r")
    assert ended.code == 0
    config = load_config("r/config.yaml")
    assert config.training.lr == 3e-4
    assert config.training.device == "cpu"


def test_quiet_prints_warnings_alone(project: Path, cli: Cli) -> None:
    write_table(project / "test.tsv", [*rows(20, seed=2), ("rise", "sideways")])
    ended = cli("fit", "c.yaml", "--quiet")
    assert ended.code == 0
    assert ended.problems
    assert all(line.startswith("warning: ") for line in ended.problems)
    assert "test.tsv:22" in ended.err
    assert "sideways" in ended.err


def test_no_bars_or_colours_where_stderr_is_no_terminal(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml")
    assert "\x1b" not in ended.err
    assert "\r" not in ended.err
    assert "majority" in ended.err or "largest class" in ended.err
    assert "of 2" in ended.err


BAD = {
    "unknown key": (["--set", "training.lrr=1"], ["training.lrr", "training.lr"]),
    "bad value": (["--set", "training.lr=abc"], ["--set training.lr", "abc"]),
    "no such device": (["--device", "cuda:99"], ["cuda:99", "cpu"]),
    "no such kind of device": (["--device", "tpu"], ["tpu", "cpu"]),
    "not enough memory": (["--set", "model.hidden_size=65536"], ["hidden_size", "bytes"]),
    "missing data": (["--set", "data.train=none.tsv"], ["data.train", "none.tsv"]),
    "missing column": (["--set", "data.label=lable"], ["lable", "label"]),
    "full directory": (["--run-dir", "full"], ["full", "holds no run", "--force"]),
    "run directory is a file": (["--run-dir", "train.tsv"], ["train.tsv", "is a file"]),
    "nothing to resume": (["--resume", "--run-dir", "none"], ["none", "no such run"]),
    "no run to resume": (["--resume"], ["no run of c under"]),
    "not a run": (["--resume", "--run-dir", "full"], ["full", "config.yaml"]),
    "data in the run directory": (["--run-dir", ".", "--force"], ["--run-dir", "data.train"]),
    "resume and force": (["--resume", "--force"], ["--resume", "--force"]),
    "class weight of no label": (
        ["--set", "training.class_weights={up: 1, dwn: 2}"],
        ["class_weights", "dwn"],
    ),
    "validation is train": (["--set", "data.validation=train.tsv"], ["data.validation"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_exit_2_and_writes_nothing(project: Path, cli: Cli, case: str) -> None:
    (project / "full").mkdir()
    (project / "full" / "notes.txt").write_text("mine")
    before = listing(project)
    options, expected = BAD[case]
    ended = cli("fit", "c.yaml", "--quiet", *options)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert all(line.startswith("seqtrain: ") for line in ended.problems)
    for words in expected:
        assert words in ended.err
    assert listing(project) == before


def test_estimate_of_a_huge_model_names_bytes(project: Path, cli: Cli) -> None:
    ended = cli("fit", "c.yaml", "--set", "model.hidden_size=65536", "--set", "model.num_layers=8")
    parameters = 3 * 65536 * (65536 * 15 + 4)
    assert ended.code == 2
    assert len(ended.problems) == 1
    assert f"{parameters // 10**9:,}," in ended.err
    assert "GiB" in ended.err


def test_missing_data_names_absolute_path_and_the_file_beside_the_yaml(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    ended = cli("fit", "../c.yaml")
    assert ended.code == 2
    assert len(ended.problems) == 2
    tried = str(project / "elsewhere" / "train.tsv")
    assert tried[-40:] in ended.problems[0]  # a long path keeps its end
    assert "../train.tsv" in ended.problems[0]


def test_config_problems_carry_file_line_and_column(project: Path, cli: Cli) -> None:
    (project / "c.yaml").write_text("data:\n  train: a.tsv\n  trian: b\nmodel:\n  rnn: gruu\n")
    ended = cli("fit", "c.yaml")
    assert ended.code == 2
    assert any(p.startswith("seqtrain: c.yaml:3:3: data.trian") for p in ended.problems)
    assert any(p.startswith("seqtrain: c.yaml:5:8: model.rnn") for p in ended.problems)


def test_force_replaces_the_run_and_keeps_other_files(begun: Path, cli: Cli) -> None:
    (begun / "r" / "notes.txt").write_text("mine")
    (begun / "r" / ".best-12345").mkdir()
    assert cli("fit", "c.yaml", "--run-dir", "r").code == 2
    short = ("--set", "training.max_epochs=1")
    assert cli("fit", "c.yaml", "--run-dir", "r", "--force", *short).code == 0
    assert (begun / "r" / "notes.txt").read_text() == "mine"
    assert not (begun / "r" / ".best-12345").exists()
    events = [json.loads(line) for line in (begun / "r/metrics.jsonl").read_text().splitlines()]
    assert sum(event["event"] == "epoch" for event in events) == 1


def test_force_leaves_the_old_run_where_the_new_one_is_refused(begun: Path, cli: Cli) -> None:
    before = listing(begun)
    (begun / "train.tsv").write_text("text\tlabel\n")
    assert cli("fit", "c.yaml", "--run-dir", "r", "--force").code == 2
    after = listing(begun)
    assert {**after, "train.tsv": before["train.tsv"]} == before


@pytest.mark.parametrize("place", ["c.yaml/r", "c.yaml/deeper/r", "/dev/full/r", "x" * 300])
def test_run_directory_that_cannot_be_is_refused_before_data_are_read(
    project: Path, cli: Cli, place: str
) -> None:
    (project / "train.tsv").write_text("")
    ended = cli("fit", "c.yaml", "--run-dir", place)
    assert ended.code == 2
    assert len(ended.problems) == 1
    assert ended.err.startswith("seqtrain: --run-dir: ")


def test_non_finite_loss_is_exit_3_and_names_rows(project: Path, cli: Cli) -> None:
    """Decay of a thousand times the weights overshoots until numbers overflow."""
    diverging = ("optimizer=sgd", "lr=1000", "weight_decay=1000", "max_epochs=9")
    options = [word for key in diverging for word in ("--set", f"training.{key}")]
    ended = cli("fit", "c.yaml", "--quiet", "--run-dir", "r", *options)
    assert ended.code == 3
    assert ended.out == ""
    assert len(ended.problems) == 1
    assert "training.lr" in ended.err
    if Path("r/last").exists():
        answered = cli("predict", "-", "--run", "r/last", stdin="rise")
        assert answered.code == 0 or "its weights are too large" in answered.err


def test_strange_labels_print_safely(project: Path, cli: Cli) -> None:
    strange = ["[/red]", "[bold]b", "\x1b[31mred", "=1+2"]
    examples = [(text, strange[i % 4]) for i, (text, _) in enumerate(rows(40, seed=1))]
    write_table(project / "train.tsv", examples)
    write_table(project / "test.tsv", [*examples[:3], ("new", "[/x]\x07")])
    ended = cli("fit", "c.yaml", "--run-dir", "r")
    assert ended.code == 0
    assert "[/red]" in ended.err
    assert "[bold]b" in ended.err
    assert "\\x1b[31mred" in ended.err
    assert "\x1b" not in ended.err
    assert "\x07" not in ended.err
    scored = cli("eval", "r")
    assert scored.code == 0
    assert "[/red]" in scored.out
    assert "\x1b" not in scored.out
    assert json.loads(cli("eval", "r", "--json").out)["labels"] == sorted(strange)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_strange_run_directory_is_printed_safely_on_a_terminal_alone(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    name = "r\x1b[31m\x9b\u202eé"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    ended = cli("fit", "c.yaml", "--run-dir", name, "--quiet", "--set", "training.max_epochs=1")
    assert ended.code == 0
    assert ended.out == ("r\\x1b[31m\\x9b\\u202eé\n" if terminal else f"{name}\n")


def test_data_file_names_may_be_strange(project: Path, cli: Cli) -> None:
    (project / "train.tsv").rename(project / "-new\nline.tsv")
    config = yaml.safe_load(CONFIG)
    config["data"]["train"] = "-new\nline.tsv"
    (project / "c.yaml").write_text(json.dumps(config))
    assert cli("fit", "c.yaml", "--run-dir=-r\n1").out == "-r\n1\n"
    assert cli("predict", "--run=-r\n1", "--", "-new\nline.tsv").out.count("\n") == 41


def test_entry_point_is_the_program() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.scripts]\nseqtrain = "seqtrain.cli.main:run"\n' in project
