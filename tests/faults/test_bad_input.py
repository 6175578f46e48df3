r"""Bad input by the hundred: exit code 2, nothing written, and short lines that say where and what.

Each line of messages.txt is what is tried, and, after a bar, how the printed problem begins: with
the line of a file, or, for thirty of them, the whole message. What is tried is an option of `fit`
or several (`--set KEY=VALUE`), a config (`yaml: TEXT`), a file of data that `fit` reads
(`csv: TEXT`, or another ending; options may follow), a command, or one of `ODD`. Texts are written
as Python writes bytes.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.helpers.program import write_project
from tests.helpers.tiny import Cli, sets

MESSAGES = Path(__file__).with_name("messages.txt")
LIMIT = 200
FIT, NEW = ["fit", "c.yaml"], ["fit", "new.yaml"]
JSONL = [*FIT, *sets("data.train=new.jsonl", "data.test=null")]
ODD: dict[str, tuple[str, bytes, list[str]]] = {
    "deep config": ("new.yaml", b"[" * 99_999, NEW),
    "deep list": ("new.yaml", b"- " * 50_000, NEW),
    "config of UTF-16": ("new.yaml", "seed: 1\n".encode("utf-16"), NEW),
    "large config": ("new.yaml", b"#" * (2**20 + 1), NEW),
    "many digits": ("new.yaml", b"seed: " + b"1" * 5000, NEW),
    "version of many digits": ("new.yaml", b"%YAML " + b"1" * 5000 + b".1\n---\n", NEW),
    "deep row": ("new.jsonl", b"[" * 9999 + b"\n", JSONL),
    "label of many digits": ("new.jsonl", b'{"text": "a", "label": ' + b"9" * 9999 + b"}\n", JSONL),
    "loop of links": ("x", b"", [*FIT, "--set", "data.train=.loop.tsv"]),
    "name of 4,000 letters": ("x", b"", ["fit", "x" * 4000]),
    "directory of 300 letters": ("x", b"", [*FIT, "--run-dir", "x" * 300]),
    "path of 3,000 letters": ("x", b"", ["fit", "/".join(["x" * 100] * 30)]),
    "name with escapes": ("x", b"", ["fit", "\x1b[31mred\x07"]),
    "seeds of other digits": ("x", b"", [*FIT, "--seeds", "0,\u0663"]),
    "seeds of many digits": ("x", b"", [*FIT, "--seeds", "0," + "9" * 5000]),
    "1,001 seeds": ("x", b"", [*FIT, "--seeds", ",".join(map(str, range(1001)))]),
}
WITHOUT_COLUMNS = ("ts", "ft", "txt", "npz", "fasta")
KINDS = {
    "options": "--set ",
    "configs": "yaml: ",
    "odd": "odd: ",
    "data": "[a-z]+: ",
    "commands": "",
}


def kind_of(tried: str) -> str:
    return next(kind for kind, start in KINDS.items() if re.match(start, tried))


def case_of(tried: str) -> tuple[str, bytes, list[str]]:
    """Return a file, its content, and the command."""
    kind, (head, *settings) = kind_of(tried), re.split("(?: |^)--set ", tried)
    if kind == "commands":
        return "full/notes.txt", b"mine", shlex.split(tried)
    if kind == "odd":
        return ODD[tried.removeprefix("odd: ")]
    ending, _, text = head.partition(": ")
    content = text.encode().decode("unicode_escape").encode("latin-1")
    if kind == "configs":
        return "new.yaml", content, ["fit", "new.yaml"]
    if ending == "vec":
        settings += ["model.vectors=new.vec", "model.embedding_dim=null"]
    elif kind == "data":
        settings += [f"data.train=new.{ending}", "data.test=null"]
        columns = ("data.sequence=null", "data.label=null")
        settings += columns if ending in WITHOUT_COLUMNS else ()
    return f"new.{ending}" if ending else "x", content, ["fit", "c.yaml", *sets(*settings)]


def problems_of(tried: str, folder: Path, cli: Cli) -> str:
    """Return the problems that are printed for a case, checked for what holds for all."""
    path, content, arguments = case_of(tried)
    write_project(folder)
    (folder / path).write_bytes(content)
    before = set(folder.rglob("*"))
    ended = cli(*arguments, code=2)
    problems = [line for line in ended.problems if line.startswith("seqtrain: ")]
    assert problems, tried
    assert "Traceback" not in ended.err, tried
    for line in ended.problems:  # a command, after two blanks, isn't cut
        is_command = line.startswith("seqtrain:   ")
        assert line.isprintable(), tried
        assert is_command or len(line) < LIMIT, tried
    assert set(folder.rglob("*")) == before, f"{tried}: something was written"
    (folder / path).unlink()
    said = " / ".join(line.removeprefix("seqtrain: ") for line in problems)
    said = re.sub(
        "this machine has .*", "this machine has …", re.sub(r"(\w*)(long){5,}", "LONG", said)
    )
    return ascii(said)[1:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_each_bad_input_has_its_message(kind, tmp_path, cli, monkeypatch):
    folder = tmp_path / ("long" * 50)
    (folder / "full").mkdir(parents=True)
    (folder / ".loop.tsv").symlink_to(".loop.tsv")
    monkeypatch.chdir(folder)
    cases = [line.partition(" | ") for line in MESSAGES.read_text().splitlines()]
    own = [(tried, begin) for tried, _, begin in cases if kind_of(tried) == kind]
    found = {tried: problems_of(tried, folder, cli) for tried, _ in own}
    other = {tried: found[tried] for tried, begin in own if not found[tried].startswith(begin)}
    assert own
    assert other == {}
