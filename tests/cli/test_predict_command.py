"""What `seqtrain predict` promises: a row for a row, in order, in every format, and refusals."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import resource
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.packing import needs_zstd, unpack
from tests.helpers.tiny import (
    Cli,
    listing,
    rows,
    series,
    write_jsonl,
    write_npz,
    write_table,
)

TEXTS = ["rise the climb", "fall", "the sink the drop slip the the fall", "never seen words", "up"]


def read(out: str, delimiter: str = "\t") -> list[list[str]]:
    return list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter))


def write_inputs(folder: Path, texts: list[str]) -> list[Path]:
    """Write the same texts in every format that predict reads, labels in some of them."""
    labelled = [(text, "up") for text in texts]
    write_table(folder / "in.tsv", labelled)
    write_table(folder / "in.csv", labelled, delimiter=",")
    write_jsonl(folder / "in.jsonl", [{"text": text} for text in texts])
    (folder / "in.txt").write_text("\n".join(texts))
    return [folder / name for name in ("in.tsv", "in.csv", "in.jsonl", "in.txt")]


def test_every_input_format_gives_the_same_rows(trained: Path, tmp_path: Path, cli: Cli) -> None:
    answers = [
        cli("predict", path, "--run", trained / "run") for path in write_inputs(tmp_path, TEXTS)
    ]
    answers.append(cli("predict", "-", "--run", trained / "run", stdin="\n".join(TEXTS)))
    assert {ended.code for ended in answers} == {0}
    assert len({ended.out for ended in answers}) == 1
    table = read(answers[0].out)
    assert table[0] == ["label", "probability"]
    assert len(table) == 1 + len(TEXTS)
    assert all(label in ("down", "up") and 0.5 <= float(p) <= 1 for label, p in table[1:])


def test_symbols_in_every_format(trained_tokens: Path, tmp_path: Path, cli: Cli) -> None:
    run = trained_tokens / "run"
    write_inputs(tmp_path, TEXTS)
    write_jsonl(tmp_path / "in.jsonl", [{"text": text.split()} for text in TEXTS])
    outs = {
        cli("predict", tmp_path / name, "--run", run).out
        for name in ("in.jsonl", "in.csv", "in.txt")
    }
    outs.add(cli("predict", "-", "--run", run, stdin="\n".join(TEXTS)).out)
    assert len(outs) == 1
    assert outs.pop().count("\n") == 1 + len(TEXTS)


def test_feature_vectors_in_every_format(trained_features: Path, tmp_path: Path, cli: Cli) -> None:
    run, sequences = trained_features / "run", series(6, seed=9)
    write_npz(tmp_path / "in.npz", sequences, ["?"] * 6)
    lines = [json.dumps(sequence.astype(float).tolist()) for sequence in sequences]
    head = "@problemName x\n@dimensions 2\n@equalLength false\n@classLabel true c0 c1\n@data\n"
    ts = [
        ":".join(",".join(map(repr, column)) for column in sequence.T.astype(float).tolist())
        for sequence in sequences
    ]
    (tmp_path / "in.ts").write_text(head + "".join(f"{line}:c0\n" for line in ts))
    outs = [cli("predict", tmp_path / name, "--run", run) for name in ("in.npz", "in.ts")]
    outs.append(cli("predict", "-", "--run", run, stdin="\n".join(lines)))
    assert {ended.code for ended in outs} == {0}
    assert len({ended.out for ended in outs}) == 1
    assert outs[0].out.count("\n") == 7


def test_order_is_kept_and_neighbours_change_nothing(
    trained: Path, tmp_path: Path, cli: Cli
) -> None:
    texts = [text for text, _ in rows(60, seed=5)]
    (tmp_path / "in.txt").write_text("\n".join(texts) + "\n")
    out = cli("predict", tmp_path / "in.txt", "--run", trained / "run", "--format", "jsonl").out
    together = [json.loads(line) for line in out.splitlines()]
    assert [row["index"] for row in together] == list(range(60))
    for i in range(0, 60, 7):
        out = cli("predict", "-", "--run", trained / "run", "--format", "jsonl", stdin=texts[i]).out
        alone = json.loads(out)
        assert alone["label"] == together[i]["label"]
        assert alone["probability"] == pytest.approx(together[i]["probability"], abs=2e-6)


def test_top_k_and_jsonl(trained: Path, cli: Cli) -> None:
    run = ("--run", trained / "run")
    table = read(cli("predict", "-", *run, "--top-k", 9, stdin="rise").out)
    assert table[0] == ["label_1", "probability_1", "label_2", "probability_2"]
    assert {table[1][0], table[1][2]} == {"down", "up"}
    assert float(table[1][1]) + float(table[1][3]) == pytest.approx(1, abs=2e-6)
    row = json.loads(cli("predict", "-", *run, "--format", "jsonl", stdin="rise").out)
    assert row["index"] == 0
    assert row["label"] == table[1][0]
    assert row["probability"] == row["probabilities"][row["label"]]
    assert row["probabilities"].keys() == {"down", "up"}
    one = cli("predict", "-", *run, "--top-k", 1, "--format", "jsonl", stdin="rise").out
    assert json.loads(one)["probabilities"].keys() == {row["label"]}


@pytest.mark.parametrize(
    ("format", "expected"),
    [("tsv", "label\tprobability\n"), ("csv", "label,probability\n"), ("jsonl", "")],
)
def test_empty_stdin_is_empty_output(trained: Path, cli: Cli, format: str, expected: str) -> None:
    ended = cli("predict", "-", "--run", trained / "run", "--format", format)
    assert ended.code == 0
    assert ended.out == expected


def test_bad_row_midstream_keeps_the_rows_before(trained: Path, tmp_path: Path, cli: Cli) -> None:
    run = ("--run", trained / "run")
    (tmp_path / "in.jsonl").write_text(
        '{"text": "rise"}\n{"text": "fall"}\n{"text": 3}\n{"text": "x"}\n'
    )
    cases = [
        (cli("predict", tmp_path / "in.jsonl", *run), "in.jsonl:3"),
        (cli("predict", "-", *run, "--empty", "error", stdin="rise\nfall\n\nx\n"), "stdin:3"),
        (cli("predict", "-", *run, stdin=b"rise\nfall\n\xff\nx\n"), "stdin:3"),
    ]
    for ended, where in cases:
        assert ended.code == 2
        assert len(ended.problems) == 1
        assert where in ended.err
        assert ended.out.count("\n") == 3


def test_bad_row_midstream_in_a_file_of_rows_written(
    trained: Path, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "in.txt").write_text("rise\n\nfall\n")
    out = tmp_path / "out.tsv"
    run = ("--run", trained / "run", "--empty", "error")
    assert cli("predict", tmp_path / "in.txt", *run, "--output", out).code == 2
    assert out.read_text().count("\n") == 2


def test_unreadable_input_leaves_no_output(trained: Path, tmp_path: Path, cli: Cli) -> None:
    old = tmp_path / "old.tsv"
    old.write_text("mine")
    for source in (tmp_path / "none.txt", tmp_path):
        for output in (tmp_path / "new.tsv", old):
            before = listing(tmp_path)
            ended = cli("predict", source, "--run", trained / "run", "--output", output, "--force")
            assert ended.code == 2
            assert len(ended.problems) == 1
            assert listing(tmp_path) == before


def test_existing_output_needs_force(trained: Path, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "in.txt").write_text("rise\n")
    out = tmp_path / "out.tsv"
    arguments = ("predict", tmp_path / "in.txt", "--run", trained / "run", "--output", out)
    assert cli(*arguments).code == 0
    first = out.read_bytes()
    refused = cli(*arguments)
    assert refused.code == 2
    assert "--force" in refused.err
    assert out.read_bytes() == first
    assert cli(*arguments, "--force").code == 0


def test_output_must_not_be_the_input(trained: Path, tmp_path: Path, cli: Cli) -> None:
    source = tmp_path / "in.txt"
    source.write_text("rise\n")
    (tmp_path / "link.txt").symlink_to(source)
    for output in (source, tmp_path / "link.txt"):
        ended = cli("predict", source, "--run", trained / "run", "--output", output, "--force")
        assert ended.code == 2
        assert "is the input" in ended.err
        assert source.read_text() == "rise\n"


@pytest.mark.parametrize("name", ["out.xlsx", "out.parquet", "out.json", "out.json.gz", "out.txt"])
def test_an_ending_that_cannot_be_written_is_refused(
    trained: Path, tmp_path: Path, cli: Cli, name: str
) -> None:
    arguments = ("predict", "-", "--run", trained / "run", "--output", tmp_path / name)
    ended = cli(*arguments, stdin="rise\n")
    assert ended.code == 2
    assert "expected an ending .tsv, .csv, .jsonl or .ndjson" in ended.err
    assert not (tmp_path / name).exists()
    assert cli(*arguments, "--format", "tsv", stdin="rise\n").code == 0


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("o.tsv.gz", "label\t"),
        ("o.csv.gz", "label,"),
        ("o.ndjson.gz", '{"index"'),
        pytest.param("o.csv.zst", "label,", marks=needs_zstd),
    ],
)
def test_output_is_compressed(
    trained: Path, tmp_path: Path, cli: Cli, name: str, start: str
) -> None:
    bare, ending = name.rsplit(".", 1)
    outputs = [tmp_path / name, tmp_path / bare]
    for output in outputs:
        ended = cli(
            *("predict", trained / "test.tsv", "--run", trained / "run", "--output", output)
        )
        assert ended.code == 0
    assert unpack(outputs[0].read_bytes(), ending) == outputs[1].read_bytes()
    assert outputs[1].read_text().startswith(start)


@pytest.mark.parametrize("output", ["folder", "none/out.tsv"])
def test_output_that_cannot_be(trained: Path, tmp_path: Path, cli: Cli, output: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "in.txt").write_text("rise\n")
    path = tmp_path / output
    ended = cli(
        "predict", tmp_path / "in.txt", "--run", trained / "run", "--output", path, "--force"
    )
    assert ended.code == 2
    assert len(ended.problems) == 1


LABELS = ["=cmd()", "-1", "-x", "@a", "+1.5", 'q"t', "a,b", "[/red]", "t\tb", "l\nf", "c\rr", "'s"]
LABELS += ["\x1b]0;t\x07", "u\u202ep", "c\x9bm"]


@pytest.fixture(scope="module")
def strange_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose labels are hard to write; from jsonl, which can hold them all."""
    import seqtrain

    folder = tmp_path_factory.mktemp("strange")
    write_jsonl(
        folder / "train.jsonl",
        [{"text": f"word{i}", "label": label} for i, label in enumerate(LABELS)] * 4,
    )
    seqtrain.fit(
        {
            "data": {"train": str(folder / "train.jsonl"), "sequence": "text", "label": "label"},
            "model": {"embedding_dim": 16, "hidden_size": 16},
            "training": {"max_epochs": 60, "lr": 0.03, "patience": None},
        },
        run_dir=folder / "run",
    )
    return folder / "run"


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_strange_labels_round_trip(strange_run: Path, cli: Cli, format: str) -> None:
    texts = "\n".join(f"word{i}" for i in range(len(LABELS)))
    out = cli("predict", "-", "--run", strange_run, "--format", format, stdin=texts).out
    if format == "jsonl":
        assert [json.loads(line)["label"] for line in out.split("\n")[:-1]] == LABELS
        return
    found = [row[0] for row in read(out, "," if format == "csv" else "\t")[1:]]
    assert found == LABELS
    if format == "csv":
        options = ("--format", "csv", "--spreadsheet-safe")
        out = cli("predict", "-", "--run", strange_run, *options, stdin=texts).out
        safe = [f"'{label}" if label in ("=cmd()", "-x", "@a") else label for label in LABELS]
        assert [row[0] for row in read(out, ",")[1:]] == safe


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_labels_cannot_steer_a_terminal(
    strange_run: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    controller, terminal = pty.openpty()
    texts = "\n".join(f"word{i}" for i in range(len(LABELS)))
    with open(terminal, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        options = ("--format", format, "--top-k", 1)
        assert cli("predict", "-", "--run", strange_run, *options, stdin=texts).code == 0
    shown = bytearray()
    with contextlib.suppress(OSError), open(controller, "rb", buffering=0) as terminal_shows:
        while block := terminal_shows.read(4096):
            shown.extend(block)
    lines = shown.decode().split("\r\n")[:-1]
    assert len(lines) == len(LABELS) + (format != "jsonl")
    assert all(line.replace("\t", " ").isprintable() for line in lines)
    if format == "jsonl":
        assert [json.loads(line)["label"] for line in lines] == LABELS


def test_thread_that_cannot_start_is_a_fault_of_the_machine(
    trained: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    ended = cli("predict", "-", "--run", trained / "run", stdin="rise")
    assert (ended.code, ended.out, len(ended.problems)) == (3, "", 1)
    assert "stdin: can't start new thread" in ended.err


def test_unknown_tokens_and_cuts_are_told(
    project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("fit", "c.yaml", "--run-dir", "r", "--set", "data.max_length=2", "--set", "data.empty=drop")
    ended = cli("predict", "-", "--run", "r", stdin="zzz yyy\nrise the fall\n\n")
    assert ended.code == 0
    assert ended.out.count("\n") == 4
    assert "input: cut 1 sequence at" in ended.err
    assert "2 of 3 sequences with no token" in ended.err
    assert "1 empty" in ended.err


def test_newest_run_is_the_default_and_is_named(project: Path, cli: Cli) -> None:
    assert cli("predict", "-", stdin="rise").code == 2
    cli("fit", "c.yaml", "--run-dir", "runs/b")
    cli("fit", "c.yaml", "--run-dir", "runs/a")
    os.utime("runs/b/config.yaml", (1, 1))
    ended = cli("predict", "-", stdin="rise")
    assert ended.code == 0
    assert "runs/a" in ended.err
    assert "runs/a" in cli("eval").err


@pytest.mark.parametrize("limit", [10, 9001, 20002])
def test_file_that_may_not_grow_ends_with_a_whole_row(
    trained: Path, tmp_path: Path, cli: Cli, limit: int
) -> None:
    """A limit of a file's size stands in for a full disk."""
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    source.write_text("rise\nfall the\n" * 1000)
    arguments = ("predict", source, "--run", trained / "run", "--output", output, "--force")
    assert cli(*arguments).code == 0
    whole = output.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        ended = cli(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert ended.code == 3
    assert f"{output}: File too large; it holds whole rows" in ended.err
    held = output.read_bytes()
    assert held == whole[: len(held)]
    assert len(held) > limit - 9000
    assert held[-1:] in (b"", b"\n")


def test_device_must_be_present(trained: Path, cli: Cli) -> None:
    for verb in (["predict", "-", "--run", trained / "run"], ["eval", trained / "run"]):
        ended = cli(*verb, "--device", "cuda:77", stdin="rise")
        assert ended.code == 2
        assert len(ended.problems) == 1
        assert "cuda:77" in ended.err
        assert "cpu" in ended.err


def test_wrong_width_of_vectors_names_the_row(trained_features: Path, cli: Cli) -> None:
    ended = cli("predict", "-", "--run", trained_features / "run", stdin="[[1, 2]]\n[[1, 2, 3]]\n")
    assert ended.code == 2
    assert "stdin:2" in ended.err
    assert ended.out.count("\n") == 2
    assert np.isfinite(float(read(ended.out)[1][1]))


@pytest.mark.parametrize("command", ["predict tset.tsv --run run", "eval run --data tset.tsv"])
def test_a_misspelled_file_is_hinted_at(
    trained: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, command: str
) -> None:
    monkeypatch.chdir(trained)
    ended = cli(*command.split())
    assert (ended.code, ended.out) == (2, "")
    (problem,) = ended.problems
    assert problem.endswith("did you mean test.tsv?")


def test_table_read_as_lines_is_asked_about(trained: Path, cli: Cli) -> None:
    run = ("--run", trained / "run")
    ended = cli("predict", "-", *run, stdin="zzz,y\n" * 2)
    assert ended.code == 0
    assert ended.problems[-1] == (
        "warning: 2 of 2 sequences with no token that the model knows; each line was read as one; "
        "if it is tsv: --input-format tsv"
    )
    assert "--input-format" not in cli("predict", "-", *run, stdin="zzz\nrise\n").err
    ended = cli("predict", "-", *run, stdin='label;"text"\nup;rise\n')
    assert (ended.code, ended.out.count("\n")) == (0, 3)
    assert ended.problems[0] == (
        "warning: stdin: each line is read as a sequence, but the first one names columns: "
        "'label;\"text\"'; to read tsv: --input-format tsv"
    )


def test_a_config_in_place_of_rows_is_told(trained: Path, cli: Cli) -> None:
    ended = cli("predict", trained / "c.yaml", "--run", trained / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "c.yaml: is a config by its name; expected sequences" in ended.err


def test_lines_of_jsonl_in_place_of_vectors_are_told(trained_features: Path, cli: Cli) -> None:
    ended = cli("predict", "-", "--run", trained_features / "run", stdin='{"values": [[1, 2]]}\n')
    assert (ended.code, ended.out) == (2, "")
    assert (
        "stdin:1: found an object, expected a list of vectors; --input-format jsonl?" in ended.err
    )
