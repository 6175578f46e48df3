"""README's commands: the first one trains, and all of them parse."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from seqtrain.cli.main import app, run
from seqtrain.config import config_from_mapping, render_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|bash)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SMALLEST = {"data": {"train": "a.tsv", "sequence": "text", "label": "label"}}
SET_UP = [block for language, block in BLOCKS if language == "sh"]


def commands(block: str) -> list[list[str]]:
    """Return the words of every `seqtrain …` command of a block, pipes and $(…) taken apart."""
    joined = block.replace("\\\n", " ")
    found = re.findall(r"(?:^|[|;(&]|\$ )\s*seqtrain\s+([^|;&)\n>]*)", joined, re.MULTILINE)
    return [shlex.split(words.split(" < ")[0], comments=True) for words in found]


COMMANDS = [words for _, block in BLOCKS for words in commands(block)]


def test_first_block_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = commands(SET_UP[0])[-1]
    assert fit == ["fit", "configs/quickstart.yaml"]
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run([*fit, "--set", "training.max_epochs=1"])
    assert ended.value.code == 0
    assert (tmp_path / capsys.readouterr().out.strip() / "best" / "model.safetensors").is_file()


def test_second_block_runs_the_tests() -> None:
    assert "pytest" in SET_UP[1]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_command_parses(words: list[str]) -> None:
    verbs = {verb.name: verb for verb in app.registered_commands}
    name, *rest = [word for word in words if word not in ("--debug", "--version", "--help")]
    assert name in verbs
    typer.main.get_command(app).commands[name].make_context(name, rest).close()


def test_the_config_table_holds_every_key_with_its_default() -> None:
    section = ""
    for line in render_config(config_from_mapping(SMALLEST)).splitlines():
        key, value = line.strip().split(": ", 1) if ": " in line else (line.strip(":"), "")
        if not value:
            section = key
            continue
        name = f"{section}.{key}" if line.startswith(" ") else key
        (row,) = (row for row in README.splitlines() if row.startswith(f"| `{name}` |"))
        assert row.split(" | ")[1] in ("required", "required*", value)
