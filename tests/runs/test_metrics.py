"""Reading metrics.jsonl, which a run may be writing, or anybody may have written."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqtrain.errors import CheckpointError
from seqtrain.files.strict_json import number_at
from seqtrain.runs.run_directory import RunDirectory

LINES = b'{"event": "step", "loss": 1}\n{"event": "epoch", "epoch": 1}\n'


def test_lines_are_chosen_by_their_event(tmp_path: Path) -> None:
    assert RunDirectory(tmp_path).metrics() == []
    (tmp_path / "metrics.jsonl").write_bytes(LINES + b'{"event": "epo')  # being written
    run = RunDirectory(tmp_path)
    assert run.metrics("epoch") == [{"event": "epoch", "epoch": 1}]
    assert [line["event"] for line in run.metrics()] == ["step", "epoch"]


@pytest.mark.parametrize("damage", [b"{\n", b"[]\n", b"\xff\n", b'{"event": NaN}\n', b"{}\n"])
def test_damage_is_told_with_its_line(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(LINES + damage)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl:3: damaged"):
        RunDirectory(tmp_path).metrics()


def test_numbers_under_keys() -> None:
    values = {"validation": {"loss": 0.5, "best": True}, "lr": "1"}
    assert number_at(values, "validation", "loss") == 0.5
    for path in (("lr",), ("validation",), ("validation", "best"), ("a", "b"), ("lr", "x")):
        assert number_at(values, *path) is None
