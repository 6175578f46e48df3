"""Reading of tables as programs and people write them: quotes, headers, and lists in cells."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from seqtrain.sequences.dataset import prepare
from tests.proposal.test_forms import name, proposed, sentence

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
