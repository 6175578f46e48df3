"""Chats as tables with a row per message: the same sequences as lists of turns."""

import json
import random
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.errors import ConfigError
from seqtrain.sequences.dataset import prepare
from tests.proposal.test_forms import name, sentence, write

KEYS = ["--set", "data.validation=0.2", "--set", "training.max_epochs=2"]


def chats(draw: random.Random) -> tuple[list[list[str]], list[dict[str, object]]]:
    """Return shuffled rows of chats, and the same chats as lists of turns."""
    rows, lists = [], []
    for number in range(40):
        label, turns = draw.choice(["a", "b"]), list[dict[str, str]]()
        for at in range(draw.randint(1, 6)):
            who, text = ["bot", "guest"][at % 2], f"{sentence(draw)} {label if at % 2 else ''}."
            turns.append({"role": who, "content": text})
            rows.append([f"T{number}", f"2024-03-01T10:{at:02}:00", who, text, label])
        lists.append({"chat": turns, "label": label})
    return rows, lists


@pytest.mark.parametrize("seed", [1, 2])
def test_rows_of_an_id_are_the_turns_of_a_chat(tmp_path, monkeypatch, cli, seed):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(seed)
    rows, lists = chats(draw)
    columns = [
        draw.choice(["conversation", "thread_id", "Gespräch"]),
        "sent_at",
        name(draw),
        name(draw),
        "label",
    ]
    write(Path("sorted.csv"), columns, rows)
    mixed = draw.sample(rows, len(rows))
    write(Path("rows.csv"), columns, mixed)
    order = list(dict.fromkeys(row[0] for row in mixed))
    by_id = {f"T{number}": row for number, row in enumerate(lists)}
    Path("lists.jsonl").write_text("".join(json.dumps(by_id[id]) + "\n" for id in order))
    said = cli("init", "rows.csv", "-o", "rows.yaml").err
    options = re.findall(r"one sequence: (--id .*)", said)
    assert len(options) == (columns[0] == "thread_id")  # others are named like conversations
    cli("init", "rows.csv", *shlex.split(" ".join(options)), "-o", "rows.yaml", "--force", *KEYS)
    cli("init", "lists.jsonl", "-o", "lists.yaml", *KEYS)
    found, expected = (
        prepare(parse_config(Path(f"{x}.yaml").read_text())) for x in ("rows", "lists")
    )
    for split, store in expected.splits.items():
        np.testing.assert_array_equal(found.splits[split].values, store.values)
        np.testing.assert_array_equal(found.splits[split].offsets, store.offsets)
    cli("fit", "rows.yaml", "--run-dir", "r")
    whole = cli("predict", "rows.csv", "r").out.splitlines()
    assert len(whole) == 41
    table = Path("sorted.csv").read_text()
    piped = cli("predict", "-", "r", "--input-format", "csv", stdin=table).out.splitlines()
    assert sorted(piped) == sorted(whole)


def test_texts_beside_numbers_are_named_with_the_options_that_read_them(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    rows = [[*row, draw.randrange(99)] for row in chats(draw)[0]]
    write(Path("a.csv"), ["case_id", "at", "who", "note", "label", "size"], rows)
    said = cli("init", "a.csv", "--id", "case_id", "-o", "c.yaml", *KEYS).err
    (options,) = [line.split("chat: ")[1] for line in said.splitlines() if "chat: " in line]
    cli("init", "a.csv", *shlex.split(options), "-o", "c.yaml", "--force", *KEYS)
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.order, data.sequence) == ("case_id", "at", ["who", "note"])
    for column in ("size", "who"):  # no messages
        refused = cli("init", "a.csv", "--id", "case_id", "--sequence", column, code=2).err
        assert f"--steps {column}" in refused


def test_short_messages_are_texts_and_no_symbols(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(4)
    rows = [[*row[:3], f"{name(draw)} {row[4]}", row[4]] for row in chats(draw)[0]]
    names = ["case_id", "at", "sender", draw.choice(["message", "Nachricht", "mensaje"]), "label"]
    write(Path("a.csv"), names, rows)
    cli("init", "a.csv", "--id", "case_id", "-o", "c.yaml", *KEYS)
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.steps, data.sequence) == (None, names[2:4])


@pytest.mark.parametrize(
    "keys",
    ["id: a, sequence: b, steps: {c: token}", "order: a, sequence: b", "id: a, kind: tokens"],
)
def test_other_keys_that_an_id_doesnt_allow(keys):
    with pytest.raises(ConfigError):
        parse_config(f"data: {{train: a.csv, label: y, {keys}}}")
