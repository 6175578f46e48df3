"""`data.bad_rows: drop`: fit and eval leave out what can't be read, and say so; predict stops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers.tiny import CONFIG, Cli

BAD = ["no label", "three\tfields\tup", "blank label\t "]
DROP = ("--set", "data.bad_rows=drop")


@pytest.fixture
def with_bad_rows(project: Path) -> Path:
    """The project beside `spoilt`, where rows that can't be read stand between the others."""
    for name in ("train.tsv", "test.tsv"):
        lines = Path(name).read_text().splitlines()
        Path(f"spoilt-{name}").write_text("\n".join([*lines[:3], *BAD, *lines[3:], "bad"]))
    Path("spoilt.yaml").write_text(CONFIG.replace("train.tsv", "spoilt-train.tsv"))
    return project


def test_rest_is_trained_on_as_if_they_were_not_there(with_bad_rows: Path, cli: Cli) -> None:
    assert cli("fit", "spoilt.yaml", "--quiet", "--run-dir", "refused").code == 2
    for attempt in ("read", "cached"):
        ended = cli("fit", "spoilt.yaml", "--quiet", "--run-dir", attempt, *DROP)
        assert ended.code == 0
        assert [line for line in ended.problems if "spoilt-train.tsv:" in line] == [
            "warning: spoilt-train.tsv:4: expected 2 fields as in the first row, found 1",
            "warning: spoilt-train.tsv:5: expected 2 fields as in the first row, found 3",
            "warning: spoilt-train.tsv:6: the label is blank",
            "warning: spoilt-train.tsv:45: expected 2 fields as in the first row, found 1",
        ]
        assert "train with its held-out rows: left out 4 rows that can't be read" in ended.err
    cli("fit", "c.yaml", "--quiet", "--run-dir", "clean")
    weights = [Path(run, "best/model.safetensors").read_bytes() for run in ("clean", "read")]
    assert weights[0] == weights[1]


def test_eval_leaves_them_out_and_predict_answers_every_row(with_bad_rows: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--quiet", "--run-dir", "r", *DROP)
    clean = cli("eval", "r", "--json")
    ended = cli("eval", "r", "--json", "--data", "spoilt-test.tsv")
    found, wanted = (json.loads(out) for out in (ended.out, clean.out))
    assert (ended.code, found) == (0, wanted | {"trained_on_rows": None})  # unknown of a file
    assert "spoilt-test.tsv: left out 4 rows that can't be read" in ended.err
    assert cli("check", "r", "--data", "spoilt-test.tsv").code == 2
    stopped = cli("predict", "spoilt-test.tsv", "--run", "r")
    assert stopped.code == 2
    assert stopped.out.count("\n") == 3
    assert stopped.problems == [
        "seqtrain: spoilt-test.tsv:4: expected 2 fields as in the first row, found 1"
    ]


def test_a_file_of_bad_rows_alone_is_an_error(with_bad_rows: Path, cli: Cli) -> None:
    Path("none.tsv").write_text("text\tlabel\n" + "bad\n" * 7)
    ended = cli("fit", "c.yaml", "--run-dir", "r", *DROP, "--set", "data.test=none.tsv")
    assert ended.code == 2
    assert ended.problems[0].startswith("seqtrain: none.tsv:2: expected 2 fields")
    assert ended.problems[-1].endswith("7 rows can't be used (2 not shown)")
    assert not Path("r").exists()


def test_damage_stays_an_error(with_bad_rows: Path, cli: Cli) -> None:
    path = Path("spoilt-train.tsv")
    path.write_bytes(path.read_bytes() + b"\n\xff\tup\n")
    ended = cli("fit", "spoilt.yaml", "--run-dir", "r", *DROP)
    assert ended.code == 2
    assert ended.problems[0].startswith("seqtrain: spoilt-train.tsv:46: byte 1 is not UTF-8")
