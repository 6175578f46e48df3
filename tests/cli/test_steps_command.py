"""What `predict --steps` and `eval --steps` promise: a row a step, the last the plain answer."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import termios
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.program import connect, started
from tests.helpers.tiny import (
    CONFIG,
    Cli,
    fit,
    series,
    write_npz,
    write_text_project,
)

TEXTS = ["Rise the climb", "fall", "the sink, the drop", "never seen words"]


def steps_of(out: str, count: int) -> list[list[dict[str, Any]]]:
    """Return the rows of jsonl by the sequence that they are of."""
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["index"] for line in lines] == sorted(line["index"] for line in lines)
    return [[line for line in lines if line["index"] == index] for index in range(count)]


@pytest.fixture(scope="module")
def trained_both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a bidirectional model that reads the last three of more words."""
    folder = tmp_path_factory.mktemp("both")
    write_text_project(folder)
    config = CONFIG.replace("hidden_size", "bidirectional: true, hidden_size")
    fit(folder, config.replace("sequence:", "max_length: 3, overlong: tail, sequence:"))
    return folder


@pytest.mark.parametrize("model", ["trained", "trained_both"])
def test_a_row_a_step_and_the_last_is_the_plain_prediction(
    model: str, cli: Cli, request: pytest.FixtureRequest
) -> None:
    run = ("--run", request.getfixturevalue(model) / "run")
    ended = cli("predict", "-", *run, "--steps", stdin="\n".join(TEXTS))
    assert ended.code == 0
    sequences = steps_of(ended.out, len(TEXTS))
    last_words = slice(-3, None) if model == "trained_both" else slice(None)
    read = [["rise", "the", "climb"], ["fall"], ["the", "sink", ",", "the", "drop"]]
    assert [[row["token"] for row in steps] for steps in sequences[:3]] == [
        words[last_words] for words in read
    ]
    assert [[row["step"] for row in steps] for steps in sequences] == [
        list(range(1, len(steps) + 1)) for steps in sequences
    ]
    plain = cli("predict", "-", *run, "--format", "jsonl", stdin="\n".join(TEXTS))
    for line, steps in zip(plain.out.splitlines(), sequences, strict=True):
        expected, last = json.loads(line), steps[-1]
        assert last["label"] == expected["label"]
        assert last["probabilities"] == pytest.approx(expected["probabilities"], abs=3e-6)
    assert "1 of 4 sequences with no token" in ended.err


def test_a_step_answers_as_the_text_cut_there(trained: Path, cli: Cli) -> None:
    run = ("--run", trained / "run")
    out = cli("predict", "-", *run, "--steps", stdin="the sink the drop").out
    cut = "the\nthe sink\nthe sink the\nthe sink the drop"
    plain = cli("predict", "-", *run, "--format", "jsonl", stdin=cut).out.splitlines()
    for step, line in zip(steps_of(out, 1)[0], plain, strict=True):
        assert step["probabilities"] == pytest.approx(json.loads(line)["probabilities"], abs=3e-6)


def test_symbols_features_and_top_k(
    trained_tokens: Path, trained_features: Path, tmp_path: Path, cli: Cli
) -> None:
    out = cli("predict", "-", "--run", trained_tokens / "run", "--steps", "--top-k", 1, stdin="a b")
    (steps,) = steps_of(out.out, 1)
    assert [row["token"] for row in steps] == ["a", "b"]
    assert all(list(row["probabilities"]) == [row["label"]] for row in steps)
    write_npz(tmp_path / "in.npz", series(3, seed=9), ["?"] * 3)
    out = cli("predict", tmp_path / "in.npz", "--run", trained_features / "run", "--steps")
    sequences = steps_of(out.out, 3)
    assert [len(steps) for steps in sequences] == [len(vectors) for vectors in series(3, seed=9)]
    assert "token" not in sequences[0][0]


def test_written_to_a_file_and_as_a_table_refused(trained: Path, tmp_path: Path, cli: Cli) -> None:
    arguments = ("predict", "-", "--run", trained / "run", "--steps")
    assert cli(*arguments, "--output", tmp_path / "o.jsonl", stdin="rise fall").code == 0
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 2
    for option, value in (("--output", tmp_path / "o.tsv"), ("--format", "csv")):
        ended = cli(*arguments, option, value, stdin="rise")
        assert ended.code == 2
        assert ended.problems[0].startswith(f"seqtrain: {option}: found")
        assert "jsonl" in ended.err
    assert not (tmp_path / "o.tsv").exists()


def test_rows_before_a_bad_one_are_answered(trained: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "rise fall"}\n{"text": 3}\n')
    ended = cli("predict", tmp_path / "in.jsonl", "--run", trained / "run", "--steps")
    assert ended.code == 2
    assert len(ended.out.splitlines()) == 2
    assert "in.jsonl:2" in ended.err


def on_a_terminal(folder: Path, columns: int, *arguments: object, **environment: str) -> str:
    """Return what the program writes on a terminal of this width."""
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    variables = {"NO_COLOR": None, "COLUMNS": None, "TERM": "xterm-256color", **environment}
    prepare = partial(connect, {1: os.ttyname(its_end)}, variables)
    with (
        os.fdopen(terminal, "rb", buffering=0) as screen,
        started(folder, *map(str, arguments), prepare=prepare) as program,
    ):
        assert program.end() == 0
        os.close(its_end)
        written = b""
        with contextlib.suppress(OSError):  # what Linux says where the other end is closed
            while part := screen.read(4096):
                written += part
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_line_unless_a_format_is_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("rise the climb " * 8 + "\nfall\n")
    arguments = ("predict", tmp_path / "in.txt", "--run", trained / "run", "--steps")
    colored = on_a_terminal(tmp_path, 60, *arguments)
    plain = on_a_terminal(tmp_path, 60, *arguments, NO_COLOR="1")
    assert "\x1b[" in colored
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    lines = plain.splitlines()
    assert re.fullmatch(r"1: (up|down) \d+\.\d%, from step \d+ of 24", lines[0])
    assert lines[1].startswith("  [")
    assert " ".join(lines).count("climb") == 8
    assert max(map(len, lines)) <= 60
    rows = on_a_terminal(tmp_path, 60, *arguments, "--format", "jsonl")
    assert len(steps_of(rows, 2)[0]) == 24


def test_eval_scores_shares_of_each_sequence(
    trained: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    plain = json.loads(cli("eval", "run", "--json").out)
    scores = json.loads(cli("eval", "run", "--steps", "--json").out)
    by_share = scores.pop("by_share")
    assert scores == plain
    assert [row["share"] for row in by_share] == [n / 10 for n in range(1, 11)]
    assert by_share[-1]["accuracy"] == plain["accuracy"]
    table = cli("eval", "run", "--steps").out
    assert all(f" {n}0% " in table for n in range(1, 11))
    assert "same label as at the end" in table
