"""Generated configs and rows: a run ends with 0, or with 2 and short lines, and nothing else."""

import contextlib
import io
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from seqtrain.cli.main import run as run_program
from seqtrain.config.value_types import PoolingName
from tests.helpers.tiny import CONFIG, WORDS

TEXT = st.text(st.sampled_from('ab \t\n\r"\\\x00\u2028\u202eé🙂\x1b[,;:0_-'), max_size=12)
WORD = st.sampled_from([word for words in WORDS.values() for word in words])
CELL = st.one_of(st.lists(WORD, min_size=1, max_size=4).map(" ".join), TEXT)
ROWS = st.lists(st.tuples(CELL, st.one_of(st.sampled_from(["up", "down"]), CELL)), max_size=12)
VALUE = st.one_of(
    st.integers(-2, 10).map(str),
    st.sampled_from(["null", "true", "no", "1e-3", ".nan", "-1", "[]", "{}", "auto", "x: y", "'"]),
    st.floats(-1, 2).map(repr),
    TEXT,
)
CHOICES = {
    "model.rnn": ("gru", "lstm", "rnn"),
    "model.pooling": get_args(PoolingName),
    "model.initial_state": ("learned", "random", "carried"),
    "model.ngrams": ("[1, 2]", "[2, 1]", "[16, 16]"),
    "model.subwords": ("[2, 3]", "[3, 2]"),
    "model.bidirectional": ("true", "false"),
    "data.tokenizer": ("word", "whitespace", "char", "byte", "bpe"),
    "data.kind": ("text", "tokens"),
    "data.empty": ("error", "drop", "unk"),
    "data.overlong": ("head", "tail", "middle", "error"),
    "data.max_length": ("1", "3", "null"),
    "data.min_count": ("1", "2", "9"),
    "data.validation": ("0.3", "null", "train.csv", "{fold: 1, of: 3}", "{fold: 3, of: 2}"),
    "data.header": ("auto", "true", "false"),
    "batching.max_tokens": ("null", "4", "99"),
    "training.optimizer": ("adamw", "adam", "sgd"),
    "training.schedule": ("constant", "linear", "cosine", "plateau"),
    "training.class_weights": ("null", "balanced", "{up: 2, down: 1}"),
    "training.checkpoint_every": ("null", "{steps: 1}", "{minutes: 1}", "{steps: 0.5}"),
    "training.weight_decay": ("100", "0.1"),
    "training.refit": ("true", "false"),
    "training.calibration": ("none", "temperature"),
    "pretraining.objective": ("language_model", "autoencoder"),
    "pretraining.max_epochs": ("1", "2"),
    "training.lr": ("0.01", "1e3", "0"),
}
OPTION = st.sampled_from(sorted(CHOICES)).flatmap(
    lambda key: st.tuples(st.just(key), st.one_of(st.sampled_from(CHOICES[key]), VALUE))
)
PIECES = [
    *"\n :-,[]{}#&*!|>'\"%@`?~\t\0\x85\u2028٣\r\ufeff",
    *("\n  ", ": ", "- ", "<<: ", "&a ", "*a", "!!str ", "!x ", "---\n", "...\n", "%YAML 1.1\n"),
    *("no", "012", "1e999", "9" * 20, "1:30", '"\\UFFFFFFFF"', '"\\0"', "[[[[", "{a: {b: ", "? "),
]
EDIT = st.tuples(st.integers(0, len(CONFIG)), st.integers(0, 12), st.sampled_from(PIECES) | TEXT)
EDITS = st.one_of(*[st.just([])] * 4, st.lists(EDIT, min_size=1, max_size=4))
BASE = {
    "data.train": "train.csv", "data.sequence": "text", "data.label": "label",
    "model.embedding_dim": "2", "model.hidden_size": "2", "training.max_epochs": "1",
    "batching.batch_size": "4",
}  # fmt: skip


def run_once(
    rows: list[tuple[str, str]], options: list[tuple[str, str]], edits: list[tuple[int, int, str]]
) -> tuple[int, str]:
    """Train on generated rows with generated options; return the exit code and stderr.

    A config that is edited names no file, so that nothing is read.
    """
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    content = "\n".join(["text,label", *quoted, ""])
    Path("train.csv").write_bytes(content.encode())
    chosen = {**BASE, **dict(options)}
    sets = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    text = CONFIG if edits else "seed: 0\n"
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    Path("c.yaml").write_text(text, newline="")
    sets = [] if edits else sets
    arguments = ["fit", "c.yaml", *sets, "--run-dir", "r", "--force", "--quiet"]
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            run_program(arguments)
        except SystemExit as ended:
            return int(ended.code or 0), err.getvalue()
    raise AssertionError("the program always exits")


@pytest.mark.parametrize("examples", [100, pytest.param(20_000, marks=pytest.mark.slow)])
def test_generated_configs_and_rows(disk, monkeypatch, examples):
    monkeypatch.chdir(disk)
    codes: Counter[int] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(ROWS, st.lists(OPTION, max_size=3), EDITS)
    @example([("rise", "up"), ("fall", "down"), ("climb", "up"), ("sink", "down")], [], [])
    @example([("rise", "up"), ("fall", "down")] * 2, [], [])
    def ends_with_0_or_2(
        rows: list[tuple[str, str]],
        options: list[tuple[str, str]],
        edits: list[tuple[int, int, str]],
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            code, err = run_once(rows, options, edits)
        codes[code] += 1
        assert code in (0, 2), err
        problems = [line for line in err.splitlines() if line.startswith("seqtrain: ")]
        assert bool(problems) == (code == 2)
        assert all(len(line) < 220 and line.isprintable() for line in err.splitlines()), err
        assert not re.search("Input should|constrained|pydantic|Traceback", err)

    ends_with_0_or_2()
    assert codes[0]
    assert codes[2]
