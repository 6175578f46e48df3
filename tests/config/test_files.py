"""Config files that are missing, strange, too large or wrongly encoded."""

import os
import re
from pathlib import Path

import pytest

from seqtrain.config import load_config
from seqtrain.errors import ConfigError

GOOD = b"data: {train: a.csv, sequence: s, label: l}\n"


def only_problem(path: str | Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    (problem,) = caught.value.problems
    return problem


def test_file_is_read_and_named_as_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cfg.yaml").write_bytes(GOOD)
    assert load_config("cfg.yaml", ["seed=3"]).seed == 3
    assert load_config(tmp_path / "cfg.yaml").data.label == "l"
    Path("cfg.yaml").write_bytes(b"sed: 1\n" + GOOD)
    assert re.match(r"cfg\.yaml:1:1: sed: .*\bseed\b", only_problem("cfg.yaml"))


def test_paths_that_are_no_readable_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = f"cfg.yaml: no such file (looked for {tmp_path}/cfg.yaml)"
    assert only_problem("cfg.yaml") == missing
    Path("cfg.yml").touch()
    problem = only_problem("cfg.yaml")
    assert problem.startswith(missing)
    assert "cfg.yml" in problem
    Path("rows.csv").touch()
    assert "a data file" in only_problem("rows.csv")
    assert f"{tmp_path}: is a folder" in only_problem(tmp_path)
    (tmp_path / "a run").mkdir()
    (tmp_path / "a run" / "config.yaml").touch()
    problem = only_problem("a run")
    assert problem.startswith("a run: is a folder")
    assert problem.endswith("seqtrain fit 'a run/config.yaml' --resume --run-dir 'a run'")
    os.mkfifo("pipe")  # nobody writes into it: it is refused without waiting
    assert "pipe: is a pipe" in only_problem("pipe")
    assert only_problem("/dev/zero").startswith("/dev/zero: is a device")
    Path("loop").symlink_to("loop")
    assert "symbolic links" in only_problem("loop")
    assert "File name too long" in only_problem("x" * 300)
    assert "embedded null byte" in only_problem("x\0y")
