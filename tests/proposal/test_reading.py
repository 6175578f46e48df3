"""Reading of tables as programs and people write them: quotes, headers, and lists in cells."""

import csv
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from tests.proposal.test_forms import LOG, log, name, proposed, sentence

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def write_quoted(path: Path, rows: list[list[Any]]) -> str:
    """Write rows as pandas does: cells are in quotes if they must be."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=SEPARATORS[path.suffix], lineterminator="\n").writerows(rows)
    return str(path)


def content(path: str) -> tuple[list[str], list[int], list[int]]:
    """Return the classes, lengths, and labels of what `init` proposes for a file."""
    data = prepare(proposed(path)[0])
    train = data.splits["train"]
    return list(data.preprocessing.labels), train.lengths.tolist(), train.labels.tolist()


CELLS = {
    "labels": lambda text, names: [text, json.dumps(names[:2])],
    "Python's labels": lambda text, names: [text, str([f"{x}'s" for x in names[:2]])],
    "symbols": lambda text, names: [json.dumps(names), names[0] < names[1]],
    "events": lambda text, names: [json.dumps([{"p": x, "n": len(text)} for x in names]), text[0]],
    "lines": lambda text, names: [text.replace(" ", "\n", 1), names[0]],
    "tabs": lambda text, names: [text.replace(" ", "\t", 1), names[0]],
}


@pytest.mark.parametrize(("kind", "plain"), [*((x, 0) for x in CELLS), ("labels", 4500)])
def test_cells_of_tsv_in_quotes_are_those_of_csv(tmp_path, kind, plain):
    draw = random.Random(kind)
    names, rows = [name(draw) for _ in range(3)], list[list[Any]]()
    for at in range(plain + 160):
        if at < plain:  # no quotes in the first lines
            rows.append([sentence(draw), draw.choice(names)])
        else:
            rows.append(CELLS[kind](sentence(draw), draw.sample(names, 3)))
    found = [content(write_quoted(tmp_path / f"a{x}", [["a", "b"], *rows])) for x in SEPARATORS]
    assert found[0] == found[1]


@pytest.mark.parametrize("ending", SEPARATORS)
@pytest.mark.parametrize("kind", ["texts", "short files", "steps"])
def test_headers_of_joined_files_are_named_and_left_out(tmp_path, monkeypatch, cli, ending, kind):
    monkeypatch.chdir(tmp_path)
    draw, length = random.Random(kind), 7 if kind == "short files" else 60
    if kind == "steps":
        names, rows = LOG, log(draw, 40)
    else:
        names = ["text", "label"]
        rows = [[sentence(draw, x), x] for x in draw.choices(["kup", "wem"], k=120)]
    parts = [rows[at : at + length] for at in range(0, len(rows), length)]
    lines, end = [], 0
    for part in parts[:-1]:
        end += 1 + len(part)
        lines.append(end + 1)
    path = write_quoted(Path(f"a{ending}"), [row for part in parts for row in (names, *part)])
    refused = cli("init", path, "-o", "c.yaml", code=2).err
    assert [int(x) for x in re.findall(rf"a\{ending}:(\d+): ", refused)] == lines[:10]
    (command,) = re.findall("seqtrain (init .*)", refused)
    cli(*shlex.split(command))
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.bad_rows == "drop"
    data = prepare(config)
    assert sum(map(len, data.splits.values())) == len({row[0] for row in rows})
    assert len(data.preprocessing.labels) == 2
