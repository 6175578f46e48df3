"""Commands for a shell that `init` prints: they work with all names of files and all cells."""

import gzip
import random
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from tests.proposal.test_forms import sentence, write

FILES = ["my data.csv", "it's.csv", 'the "q".csv', "a=b.csv", "$HOME.csv", "p|.csv", "a\\b.csv"]
MARKS = [
    "n/v",
    "'x'",
    '5"',
    "$5",
    "a\\b",
    "n|v",
    "@who",
    "#REF!",
    "(-)",
    "ä/ö",
    "[x]*",
    "a{2}",
    "^~%&",
]


def measured(mark: str) -> list[list[Any]]:
    """Return rows of an id, a time, a number that is often a mark, and a label."""
    draw, rows = random.Random(mark), list[list[Any]]()
    for unit in range(40):
        for step in range(8):
            value = mark if draw.random() < 0.2 else f"{draw.gauss(unit % 2, 1):.4f}"
            rows.append([f"u{unit}", step, value, draw.random(), "xy"[unit % 2]])
    rows[-1][2] = mark
    return rows


def run_printed(refused: str, program: str, source: str) -> Path:
    """Run the first printed command of a program in a shell, and return the file it writes."""
    before = {path.name for path in Path().iterdir()}
    content = Path(source).read_bytes()
    command = re.findall(rf"seqtrain:   (.*\b{program}\b.*)", refused)[0]
    subprocess.run(command, shell=True, check=True)
    (written,) = {path.name for path in Path().iterdir()} - before
    assert Path(source).read_bytes() == content
    return Path(written)


@pytest.mark.parametrize(
    ("file", "mark"),
    [
        *((file, "ERR") for file in FILES),
        *(("a.csv", mark) for mark in MARKS),
        ("blank.csv", "x/y"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_marks_become_missing_numbers(tmp_path, monkeypatch, cli, file, mark, delimiter):
    monkeypatch.chdir(tmp_path)
    write(Path(file), ["unit_id", "step", "temp", "vib", "state"], measured(mark), delimiter)
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    (command,) = re.findall(r"missing numbers: seqtrain (init .*); or name", refused)
    cli(*shlex.split(command))
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.steps["temp"] == "number"
    assert config.data.bad_rows == "error"
    assert config.data.missing in ("mask", "last")
    assert prepare(config).splits["train"].lengths.min() == 8


@pytest.mark.parametrize("file", FILES)
def test_limits_become_numbers_and_a_compressed_file_is_unpacked_first(
    tmp_path, monkeypatch, cli, file
):
    monkeypatch.chdir(tmp_path)
    path = write(Path(file), ["unit_id", "step", "temp", "vib", "state"], measured("<0.5"))
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    assert b"<0.5" not in run_printed(refused, "perl", file).read_bytes()
    Path("a.csv.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    Path(path).unlink()
    refused = cli("init", "a.csv.gz", "-o", "c.yaml", code=2).err
    (Path(re.findall("> (.*limits.csv)", refused)[0]).unlink(missing_ok=True))
    assert b"<0.5" not in run_printed(refused, "perl", "a.csv.gz").read_bytes()


@pytest.mark.parametrize("file", FILES)
def test_commands_of_other_forms(tmp_path, monkeypatch, cli, file):
    """A title above the names, blocks of tokens, and labels before a blank."""
    monkeypatch.chdir(tmp_path)
    draw, given = random.Random(1), Path(file)
    rows = [[draw.choice("uv"), sentence(draw)] for _ in range(60)]
    table = [["way", "words", "n"], *([*row, 7] for row in rows)]
    write(given, ["A title", "", ""], table)
    cli("init", file, "-o", "c.yaml")
    write(given, ['"A title"', "", ""], table)
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    assert run_printed(refused, "tail", file).read_text().startswith("way,words,n\n")
    lines = [
        [f"{sentence(draw)[:3]}{draw.randrange(9)} {i % 2}\n" for k in range(5)] for i in range(60)
    ]
    blocks = ["".join(each) for each in lines]
    given.write_text("\n".join(blocks))
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    written = run_printed(refused, "awk", file)
    cli("init", written, "--id", 0, "--label", 2, "-o", "c.yaml", "--force")
    given.write_text("".join(f"{label} {words}\n" for label, words in rows))
    refused = cli("init", file, "--format", "txt", "-o", "d.yaml", code=2).err
    cli("init", run_printed(refused, "awk", file), "-o", "d.yaml")
