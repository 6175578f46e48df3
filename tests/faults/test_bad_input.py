"""Bad input by the hundred: the right exit code and one short line that says where. The lines are
kept in messages.txt; `SEQTRAIN_WRITE_MESSAGES=1 pytest tests/faults/test_bad_input.py` writes them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.helpers.program import write_project
from tests.helpers.tiny import Cli

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
SEEDS = ("0,00", "0,\u0663", "0," + "9" * 5000, f"0,{2**63}", ",".join(map(str, range(1001))))
COMMANDS |= {f"seeds: {seeds[:9]}": ["fit", "c.yaml", "--seeds", seeds] for seeds in SEEDS}
COMMANDS |= {f"folds: {n}": ["fit", "c.yaml", "--folds", str(n)] for n in (1, 1001, 10**9)}
TSV = b"text\tlabel\n"
JSONL = ["--set", "data.train=t.jsonl", "--set", "data.test=null"]
Case = tuple[str, str, bytes, list[str]]
CASES: list[Case] = [  # its name, a file, its content, and the command
    ("data.train: a loop of links", "x", b"", ["fit", "c.yaml", "--set", "data.train=.loop.tsv"]),
    *(
        (f"--set {key}={value}", "x", b"", ["fit", "c.yaml", "--set", f"{key}={value}"])
        for key, values in KEYS.items()
        for value in values
    ),
    *((f"config: {name}", "bad.yaml", x, ["fit", "bad.yaml"]) for name, x in CONFIGS.items()),
    *((f"tsv: {name}", "train.tsv", TSV + x, ["fit", "c.yaml"]) for name, x in ROWS.items()),
    *((f"jsonl: {name}", "t.jsonl", x, ["fit", "c.yaml", *JSONL]) for name, x in JSON_ROWS.items()),
    *((f"command: {name}", "full/notes.txt", b"mine", x) for name, x in COMMANDS.items()),
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
