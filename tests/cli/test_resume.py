"""`fit --resume`: goes on to the bit, and refuses what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import Cli, listing, rows, write_table

TIMES = ("seconds", "tokens_per_second", "peak_memory_bytes")


def metrics(run: str) -> list[dict[str, object]]:
    """Return the lines of a run's metrics without its times."""
    lines = Path(run, "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


@pytest.mark.parametrize("epochs", [1, 3])
def test_longer_run_equals_an_uninterrupted_one(project: Path, cli: Cli, epochs: int) -> None:
    whole = ("--set", "training.max_epochs=3")
    cli("fit", "c.yaml", "--run-dir", "whole", *whole)
    cli("fit", "c.yaml", "--run-dir", "parts", "--set", f"training.max_epochs={epochs}")
    ended = cli("fit", "c.yaml", "--run-dir", "parts", "--resume", *whole)
    assert ended.code == 0
    assert ended.out == "parts\n"
    for name in ("best/model.safetensors", "last/model.safetensors", "config.yaml", "test.json"):
        assert Path("whole", name).read_bytes() == Path("parts", name).read_bytes()
    assert metrics("whole") == metrics("parts")


def test_changed_keys_are_named(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    before = listing(project)
    changed = ("--set", "model.hidden_size=5", "--set", "seed=1")
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", *changed)
    assert ended.code == 2
    assert any("model.hidden_size" in p and "5" in p and "4" in p for p in ended.problems)
    assert any("seed" in p for p in ended.problems)
    assert listing(project) == before


def test_changed_data_is_named_with_both_digests(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    recorded = json.loads(Path("r/environment.json").read_text())["data"]["test.tsv"]
    write_table(project / "test.tsv", rows(19, seed=2))
    before = listing(project)
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    assert ended.code == 2
    assert len(ended.problems) == 1
    assert "test.tsv" in ended.err
    assert recorded in ended.err
    assert listing(project) == before


@pytest.mark.parametrize("name", ["training_state.json", "training_state.safetensors"])
def test_damaged_state_is_refused(project: Path, cli: Cli, name: str) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    path = Path("r/last", name)
    path.write_bytes(path.read_bytes()[:-9])
    before = listing(project)
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    assert ended.code == 2
    assert len(ended.problems) == 1
    assert name in ended.err
    assert listing(project) == before


def test_shortened_metrics_are_refused(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    Path("r/metrics.jsonl").write_text("")
    assert cli("fit", "c.yaml", "--run-dir", "r", "--resume").code == 2


def test_strays_of_a_killed_process_are_removed(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    Path("r/.metrics.jsonl-99").write_text("half")
    Path("r/.last-99").mkdir()
    Path("r/last").rename("r/.last-old")
    assert cli("predict", "-", "--run", "r", stdin="rise").code == 0
    assert cli("fit", "c.yaml", "--run-dir", "r", "--resume").code == 0
    assert not [path.name for path in Path("r").iterdir() if path.name.startswith(".")]


def test_another_machine_is_told(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "r")
    path = Path("r/environment.json")
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "threads": 99}))
    ended = cli("fit", "c.yaml", "--run-dir", "r", "--resume", "--quiet")
    assert ended.code == 0
    assert "threads was 99" in ended.err
