"""Bad input by the hundred: the right exit code and one short line that says where. The lines are
kept in messages.txt; `SEQTRAIN_WRITE_MESSAGES=1 pytest tests/faults/test_bad_input.py` writes them.
What a line begins with, a command or an option of `fit`, is what is tried.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.helpers.program import write_project
from tests.helpers.tiny import Cli

MESSAGES = Path(__file__).with_name("messages.txt")
WRITTEN = [line.partition(" | ")[0] for line in MESSAGES.read_text().splitlines()]
LIMIT = 200

CONFIGS = {  # whole files
    "empty": b"",
    "list": b"- 1\n",
    "scalar": b"hello\n",
    "two documents": b"a: 1\n---\nb: 2\n",
    "tab": b"data:\n\ttrain: x\n",
    "unclosed": b"data: {train: x\n",
    "tag": b"data: !!python/object/apply:os.system [ls]\n",
    "duplicate": b"seed: 1\nseed: 2\n",
    "alias": b"data: &a [*a]\n",
    "merge": b"data: {<<: {train: x}}\n",
    "deep": b"[" * 9999,
    "utf-16": "seed: 1\n".encode("utf-16"),
    "nul": b"seed: 1\0\n",
    "latin-1": b"# \xe9\nseed: 1\n",
    "large": b"#" * (2**20 + 1),
    "no data": b"seed: 1\n",
}
ROWS = {  # training data: content after the header text<TAB>label
    "no rows": b"",
    "ragged": b"a b\tup\nc\nd\tdown\n",
    "three fields": b"a\tup\nb\tup\tx\n",
    "invalid utf-8": b"a\tup\n\xff\tdown\n",
    "nul": b"a\0b\tup\nc\tdown\n",
    "blank label": b"a\tup\nb\t\n",
    "empty sequence": b"\tup\nb\tdown\n",
    "blank sequence": b"  \tup\nb\tdown\n",
    "one class": b"a\tup\nb\tup\nc\tup\nd\tup\ne\tup\n",
    "one row": b"a\tup\n",
    "binary": bytes(range(256)),
    "gzip named tsv": b"\x1f\x8b\x08\0\0\0\0\0" * 9,
    "zip named tsv": b"PK\x03\x04" * 9,
}
JSON_ROWS = {
    "not json": b"{\n",
    "a list": b"[1]\n",
    "no sequence": b'{"label": "up"}\n',
    "number": b'{"text": 5, "label": "up"}\n',
    "null label": b'{"text": "a", "label": null}\n',
    "nan": b'{"text": NaN, "label": "up"}\n',
    "twice": b'{"text": "a", "text": "b", "label": "up"}\n',
    "surrogate": b'{"text": "\\ud800", "label": "up"}\n',
    "deep": b"[" * 9999 + b"\n",
    "digits": b'{"text": "a", "label": ' + b"9" * 9999 + b"}\n",
}
ODD_COMMANDS = {
    "a name of 4,000 letters": ["fit", "x" * 4000],
    "a path of 3,000 letters": ["fit", "/".join(["x" * 100] * 30)],
    "a name with escapes": ["fit", "\x1b[31mred\x07"],
}
SEEDS = ("0,00", "0,\u0663", "0," + "9" * 5000, f"0,{2**63}", ",".join(map(str, range(1001))))
ODD_COMMANDS |= {f"seeds: {seeds[:9]}": ["fit", "c.yaml", "--seeds", seeds] for seeds in SEEDS}
ODD_COMMANDS |= {f"folds: {n}": ["fit", "c.yaml", "--folds", str(n)] for n in (1, 1001, 10**9)}
TSV = b"text\tlabel\n"
JSONL = ["--set", "data.train=t.jsonl", "--set", "data.test=null"]
Case = tuple[str, str, bytes, list[str]]
CASES: list[Case] = [  # its name, a file, its content, and the command
    ("data.train: a loop of links", "x", b"", ["fit", "c.yaml", "--set", "data.train=.loop.tsv"]),
    *((x, "x", b"", ["fit", "c.yaml", *x.split(" ", 1)]) for x in WRITTEN if x.startswith("--set")),
    *((f"config: {name}", "bad.yaml", x, ["fit", "bad.yaml"]) for name, x in CONFIGS.items()),
    *((f"tsv: {name}", "train.tsv", TSV + x, ["fit", "c.yaml"]) for name, x in ROWS.items()),
    *((f"jsonl: {name}", "t.jsonl", x, ["fit", "c.yaml", *JSONL]) for name, x in JSON_ROWS.items()),
    *(
        (x, "full/notes.txt", b"mine", shlex.split(x))
        for x in WRITTEN
        if re.match("[a-z]+( |$)", x)
    ),
    *((f"command: {name}", "full/notes.txt", b"mine", x) for name, x in ODD_COMMANDS.items()),
]


def ending(folder: Path, case: Case, cli: Cli) -> str:
    """Return the exit code and the message of a case, checked for what holds for all."""
    name, path, content, arguments = case
    write_project(folder)
    (folder / path).write_bytes(content)
    before = set(folder.rglob("*"))
    ended = cli(*arguments)
    assert ended.out == "", name
    assert "Traceback" not in ended.err, name
    assert "bug:" not in ended.err, name
    assert all(len(line) < LIMIT and line.isprintable() for line in ended.problems), name
    assert set(folder.rglob("*")) == before, f"{name}: something was written"
    problem = next(line for line in ended.problems if line.startswith("seqtrain: "))
    message = re.sub(r"(\w*)(long){5,}", "LONG", problem.removeprefix("seqtrain: "))
    message = re.sub("this machine has .*", "this machine has …", message)
    return ascii(f"{name[:60]} | {ended.code} | {message}")[1:-1]


def test_each_bad_input_has_its_message(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 50)
    (folder / "full").mkdir(parents=True)
    (folder / ".loop.tsv").symlink_to(".loop.tsv")
    monkeypatch.chdir(folder)
    found = [ending(folder, case, cli) for case in CASES]
    if "SEQTRAIN_WRITE_MESSAGES" in os.environ:
        MESSAGES.write_text("".join(f"{line}\n" for line in found))
    assert found == MESSAGES.read_text().splitlines()
    assert all(" | 2 | " in line for line in found)
