"""Bad input by the hundred: the right exit code and one short line that says where. The lines are
kept in messages.txt; `SEQTRAIN_WRITE_MESSAGES=1 pytest tests/faults/test_bad_input.py` writes them.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seqtrain.cli.main import run as run_program
from tests.helpers.program import write_project

MESSAGES = Path(__file__).with_name("messages.txt")
LIMIT = 200

KEYS = {  # values that each key refuses
    "seed": ("-1", "1.5", "abc", "9223372036854775808", "true", "null", "[1]"),
    "data.train": (
        *("missing.tsv", "5", "null", "''", ".", "c.yaml", "/dev/zero", "[a]", "[]", "q*.tsv"),
        *("[train.tsv, train.tsv]", "[train.tsv, a.csv]", "[train.tsv, 5]"),
    ),
    "data.validation": ("2", "0", "-0.5", "missing.tsv", "true", ".nan", "1.0"),
    "data.test": ("missing.tsv", "5"),
    "data.format": ("xml", "orc", "null", "1"),
    "data.kind": ("features", "words", "null"),
    "data.header": ("maybe", "1"),
    "data.sequence": ("nosuch", "9", "-1", "label", "[]", "true", "[text, text2]"),
    "data.label": ("nosuch", "9", "text", "1.5", "[label]"),
    "data.tokenizer": ("words", "null", "3"),
    "data.lowercase": ("1", "maybe"),
    "data.min_count": ("0", "-3", "1.5", "99", "x"),
    "data.max_vocab_size": ("2", "0", "1e3", "-1"),
    "data.max_length": ("0", "-1", "2.5", "all"),
    "data.overlong": ("error2", "cut"),
    "data.empty": ("skip", "null"),
    "data.bad_rows": ("skip", "null"),
    "batching.batch_size": ("0", "-1", "1e9", "2.5", "null", "auto"),
    "batching.max_tokens": ("0", "-5", "x"),
    "batching.bucketing": ("2", "sometimes"),
    "model.embedding_dim": ("0", "1000000000", "-1", "x"),
    "model.vectors": ("missing.vec", "5", "true", "c.yaml", "train.tsv", "glove.zip"),
    "model.vectors_keep": ("-1", "1.5", "10"),
    "model.freeze": ("0", "-1", "1.5", "never"),
    "model.hidden_size": ("0", "1000000000", "1.5", "null", "[1]"),
    "model.rnn": ("transformer", "GRUU", "null", "7"),
    "model.num_layers": ("0", "-1", "1000"),
    "model.bidirectional": ("2", "both"),
    "model.pooling": ("first", "avg"),
    "model.dropout": ("1.0", "-0.1", "2", ".nan", "x"),
    "model.engine": ("cuda", "fast"),
    "training.max_epochs": ("0", "-1", "1.5", "10000000", "ten"),
    "training.optimizer": ("adamx", "rmsprop", "null"),
    "training.lr": ("0", "-1", ".inf", ".nan", "abc", "null", "1e9", "true"),
    "training.weight_decay": ("-1", ".inf", "x"),
    "training.schedule": ("step", "cosin"),
    "training.warmup": ("1.0", "-0.1", "x"),
    "training.max_grad_norm": ("0", "-1", ".inf"),
    "training.patience": ("0", "-1", "1.5"),
    "training.monitor": ("f1", "acc"),
    "training.class_weights": ("balance", "{up: 0}", "{up: 1}", "{up: 1, left: 1, down: 1}"),
    "training.label_smoothing": ("1", "-0.1"),
    "training.precision": ("float16", "double"),
    "training.device": ("gpu", "cuda:x", "cuda:99", "tpu"),
    "training.checkpoint_every": ("5", "{steps: 0}", "{steps: 1.5}", "{hours: 1}", "{}"),
    "training.learning_rate": ("0.1",),
    "training.gradient_clip_val": ("1",),
    "training.seed": ("1",),
    "model.cell": ("lstm",),
    "data.text_column": ("text",),
    "optimizer": ("adam",),
    "modle.rnn": ("gru",),
}
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
COMMANDS = {
    "no such verb": ["train", "c.yaml"],
    "no config": ["fit"],
    "config missing": ["fit", "missing.yaml"],
    "config a folder": ["fit", "."],
    "config a device": ["fit", "/dev/zero"],
    "unknown option": ["fit", "c.yaml", "--epochs", "3"],
    "option without a value": ["fit", "c.yaml", "--set"],
    "set without equals": ["fit", "c.yaml", "--set", "training.lr"],
    "set without key": ["fit", "c.yaml", "--set", "=3"],
    "device absent": ["fit", "c.yaml", "--device", "cuda:7"],
    "device unknown": ["fit", "c.yaml", "--device", "gpu"],
    "run directory in use": ["fit", "c.yaml", "--run-dir", "full"],
    "run directory a file": ["fit", "c.yaml", "--run-dir", "c.yaml"],
    "run directory holds data": ["fit", "c.yaml", "--run-dir", ".", "--force"],
    "force and resume": ["fit", "c.yaml", "--run-dir", "full", "--force", "--resume"],
    "resume of nothing": ["fit", "c.yaml", "--run-dir", "missing", "--resume"],
    "resume of no run": ["fit", "c.yaml", "--run-dir", "full", "--resume"],
    "resume without runs": ["fit", "c.yaml", "--resume"],
    "predict without runs": ["predict", "train.tsv"],
    "predict with no run": ["predict", "train.tsv", "--run", "missing"],
    "predict with an empty run": ["predict", "train.tsv", "--run", "full"],
    "eval without runs": ["eval"],
    "eval of no run": ["eval", "missing"],
    "foreign option": ["fit", "c.yaml", "--learning-rate", "0.1"],
    "option of the top": ["fit", "c.yaml", "--seed", "1"],
    "option like none": ["fit", "c.yaml", "--output-dir", "x"],
    "run directory without a name": ["fit", "c.yaml", "--run-dir", ""],
    "config without a name": ["fit", ""],
    "run without a name": ["predict", "train.tsv", "--run", ""],
    "output without a name": ["predict", "train.tsv", "--output", ""],
    "output that exists": ["predict", "train.tsv", "--output", "c.yaml"],
    "output is the input": ["predict", "train.tsv", "--output", "train.tsv", "--force"],
    "output in no folder": ["predict", "train.tsv", "--output", "none/out.tsv"],
    "a name of 4,000 letters": ["fit", "x" * 4000],
    "a path of 3,000 letters": ["fit", "/".join(["x" * 100] * 30)],
    "a name with escapes": ["fit", "\x1b[31mred\x07"],
}
CASES: dict[str, Callable[[Path], list[str]]] = {}


def _case(name: str, path: str, content: bytes, arguments: list[str]) -> None:
    def write(folder: Path) -> list[str]:
        (folder / path).write_bytes(content)
        return arguments

    CASES[name] = write


def _loop(folder: Path) -> list[str]:
    """Make a link that leads to itself."""
    (folder / ".loop.tsv").unlink(missing_ok=True)
    (folder / ".loop.tsv").symlink_to(".loop.tsv")
    return ["fit", "c.yaml", "--set", "data.train=.loop.tsv"]


CASES["data.train: a loop of links"] = _loop
for key, values in KEYS.items():
    for value in values:
        _case(f"--set {key}={value}", "x", b"", ["fit", "c.yaml", "--set", f"{key}={value}"])
for name, content in CONFIGS.items():
    _case(f"config: {name}", "bad.yaml", content, ["fit", "bad.yaml"])
for name, content in ROWS.items():
    _case(f"tsv: {name}", "train.tsv", b"text\tlabel\n" + content, ["fit", "c.yaml"])
for name, content in JSON_ROWS.items():
    option = ["--set", "data.train=t.jsonl", "--set", "data.test=null"]
    _case(f"jsonl: {name}", "t.jsonl", content, ["fit", "c.yaml", *option])
for name, arguments in COMMANDS.items():
    _case(f"command: {name}", "full/notes.txt", b"mine", arguments)


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose path is long, with a config, its data, and a folder that isn't empty."""
    folder = tmp_path / ("long" * 50)
    folder.mkdir()
    (folder / "full").mkdir()
    write_project(folder)
    monkeypatch.chdir(folder)
    return folder


def ending(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the exit code and the message of a case, checked for what holds for all."""
    arguments = CASES[name](folder)
    before = set(folder.rglob("*"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        run_program(arguments)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == "", name
    assert "Traceback" not in captured.err, name
    assert "bug:" not in captured.err, name
    for line in lines:
        assert len(line) < LIMIT, line
        assert line.isprintable(), line
    assert set(folder.rglob("*")) == before, f"{name}: something was written"
    problems = [line for line in lines if line.startswith("seqtrain: ")]
    message = re.sub(r"(\w*)(long){5,}", "LONG", problems[0])
    message = re.sub("this machine has .*", "this machine has …", message)
    return f"{name[:60]} | {ended.value.code} | {message.removeprefix('seqtrain: ')}"


def test_each_bad_input_has_its_message(
    bad: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    figure: Callable[[str], None],
) -> None:
    found = []
    for name in CASES:
        write_project(bad)
        found.append(ascii(ending(bad, name, capsys, monkeypatch))[1:-1])
    text = "".join(f"{line}\n" for line in found)
    if "SEQTRAIN_WRITE_MESSAGES" in os.environ:
        MESSAGES.write_text(text)
    expected = MESSAGES.read_text().splitlines()
    assert found == expected
    assert all(" | 2 | " in line for line in found)
    figure(f"bad inputs: {len(found)}, each exit code 2 and lines under {LIMIT} characters")
