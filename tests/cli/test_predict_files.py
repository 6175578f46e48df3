"""`predict 'in/*' --output-dir out`: shards together write what one process writes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.helpers.tiny import Cli, listing, rows


@pytest.fixture
def many(tmp_path: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with files of a sequence per line."""
    (tmp_path / "in").mkdir()
    for number in range(7):
        text = "".join(f"{text}\n" for text, _ in rows(5 + number, seed=number))
        (tmp_path / "in" / f"part-{number}.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "run").symlink_to(trained / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(cli: Cli, folder: str, *options: str) -> str:
    ended = cli("predict", "in/*.txt.gz", "--run", "run", "--output-dir", folder, *options)
    assert ended.code == 0, ended.err
    assert ended.out == ""
    return ended.err


def test_three_shards_write_what_one_process_writes(
    many: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "7 files predicted, 0 predicted before" in answered(cli, "whole")
    answered(cli, "parts", "--shard", "1/3")
    assert len(listing(many / "parts")) == 2
    for rank in "02":
        with monkeypatch.context() as patch:
            patch.setenv("RANK", rank)
            patch.setenv("WORLD_SIZE", "3")
            answered(cli, "parts")
    assert listing(many / "parts") == listing(many / "whole")
    one = cli("predict", "in/part-3.txt.gz", "--run", "run")
    assert (many / "whole" / "part-3.txt.gz.tsv").read_text() == one.out


def test_what_is_done_is_not_done_again(many: Path, cli: Cli) -> None:
    options = ("--format", "jsonl", "--top-k", "2")
    answered(cli, "out", *options)
    before = listing(many / "out")
    (many / "out" / "part-2.txt.gz.jsonl").unlink()
    (many / "out" / "part-4.txt.gz.jsonl").write_text("answered by hand")
    assert "1 file predicted, 6 predicted before" in answered(cli, "out", *options)
    assert (many / "out" / "part-4.txt.gz.jsonl").read_text() == "answered by hand"
    answered(cli, "out", *options, "--force")
    assert listing(many / "out") == before


def test_a_link_under_the_name_of_an_unfinished_answer_is_not_followed(
    many: Path, cli: Cli
) -> None:
    (many / "out").mkdir()
    (many / "mine").write_text("mine")
    (many / "out" / f".part-0.txt.gz.tsv.{os.getpid()}.unfinished").symlink_to("../mine")
    answered(cli, "out")
    assert (many / "mine").read_text() == "mine"


def test_a_file_that_fails_leaves_nothing_behind(many: Path, cli: Cli) -> None:
    (many / "in" / "part-3.txt.gz").write_bytes(gzip.compress(b"rise\n\xff\n"))
    ended = cli("predict", "in/*.txt.gz", "--run", "run", "--output-dir", "out")
    assert ended.code == 2
    assert "part-3.txt.gz:2: " in ended.err
    assert sorted(listing(many / "out")) == [f"part-{i}.txt.gz.tsv" for i in range(3)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["in/*.csv", "--output-dir", "out"], "in/*.csv: no such file"),
        (["in/*", "--output-dir", "in"], "--output-dir: in holds in/part-0.txt.gz"),
        (["*/part-0*", "--output-dir", "out"], "would both be written to out/part-0.txt.gz.tsv"),
        (["in/*", "--output-dir", "run/config.yaml"], "--output-dir: run/config.yaml: "),
        (["in/*", "--shard", "0/2"], "--shard: it chooses among the files of --output-dir"),
        (["in/*", "--output-dir", "out", "--shard", "3/3"], "expected K/N, with K from 0 to N - 1"),
        (
            ["in/*", "--output-dir", "out", "--steps"],
            "--output-dir: --steps writes rows",
        ),
        (["in/*", "--output-dir", "out", "--output", "x.tsv"], "--output: --output-dir says where"),
    ],
)
def test_what_does_not_go_together_is_refused(
    many: Path, cli: Cli, options: list[str], words: str
) -> None:
    (many / "other").mkdir()
    (many / "other" / "part-0.txt.gz").write_bytes(b"")
    ended = cli("predict", *options, "--run", "run")
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert not (many / "out").exists()
