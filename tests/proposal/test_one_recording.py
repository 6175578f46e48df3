"""Tables of numbers without an id, and with a label that changes by mistake within one."""

import random
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import follow_printed
from tests.proposal.test_forms import draw, name, write
from tests.proposal.test_roles import proposed

__all__ = ["draw"]


def recording(draw: random.Random, form: str) -> tuple[list[str], list[list[Any]], int]:
    """Return the names and rows of a table, and the number of sequences that a command makes."""
    rows, stays, parts = [], draw.randint(40, 60), 20
    if form == "begins again":
        parts = draw.randint(12, 30)
        for _ in range(parts):
            label, start = draw.choice("uv"), draw.choice([0, 0])
            rows += [[start + k, draw.gauss(0, 1), label] for k in range(draw.randint(9, 20))]
    else:
        heat, state = 50, "low"
        for k in range(draw.randint(900, 1500)):
            if k % stays == 0:
                state = draw.choice([x for x in ("low", "mid", "high") if x != state])
            heat = min(100, max(0, heat + draw.randint(-4, 4)))
            measured = heat if form == "levels" else draw.gauss(0, 1)
            rows.append([f"{k // 60:02}:{k % 60:02}:00" if form == "time" else k, measured, state])
    names = ["t", "heat", f"{name(draw)}_class"]
    if form == "no time":
        rows, names = [row[1:] for row in rows], names[1:]
    return names, rows, parts


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("form", ["count", "levels", "no time", "time", "begins again"])
def test_commands_number_the_parts_of_a_recording(tmp_path, monkeypatch, draw, cli, form, ending):
    """The numbers of a measured level are no ids. The commands work, and some rows are held out."""
    monkeypatch.chdir(tmp_path)
    names, rows, parts = recording(draw, form)
    write(Path(f"a.{ending}"), names, rows, "," if ending == "csv" else "\t")
    said = cli("init", f"a.{ending}", "-o", "a.yaml", code=2).err
    (new,) = follow_printed(cli, said, "-o", "b.yaml", "--set", "data.validation=0.2")
    assert Path(new).read_text().count("\n") == len(rows) + 1
    data = parse_config(Path("b.yaml").read_text()).data
    assert (data.id, data.label) == ("part", names[-1])
    assert (data.window is None) == (form == "begins again")
    lines = Path(new).read_text().splitlines()[1:]
    ids = [re.split("[,\t]", line)[-1] for line in lines]
    assert len(set(ids)) == parts
    cli("data", "b.yaml")


def test_rows_of_examples_are_no_recording(tmp_path, monkeypatch, draw, cli):
    """Neither sorted by class, nor in random order."""
    monkeypatch.chdir(tmp_path)
    rows = [[round(draw.gauss(0, 1), 2), draw.randint(0, 99), "uvw"[i // 50]] for i in range(150)]
    for order in (rows, draw.sample(rows, len(rows))):
        write(Path("a.csv"), ["width", "height", "kind"], order)
        assert "convert" not in cli("init", "a.csv", "-o", "-", code=2).err


@pytest.mark.parametrize("numbers", [4, 12])
def test_codes_of_rows_beside_numbers_are_no_text(tmp_path, monkeypatch, draw, cli, numbers):
    """But molecules, sequences of bases and names are."""
    monkeypatch.chdir(tmp_path)
    shape = draw.choice(["K{:04}", "c{}", "AB-{}-x", "user{}"])
    texts = {
        "client": [shape.format(number) for number in range(120)],
        "molecule": [
            "".join(draw.choices(["C", "N", "O", "C1CC1", "c1ccccc1", "(=O)"], k=9))
            for _ in range(120)
        ],
        "dna": ["".join(draw.choices("ACGT", k=30)) for _ in range(120)],
        "surname": [name(draw).title() + name(draw) for _ in range(120)],
    }
    for column, cells in texts.items():
        rows = [
            [x, *np.round([draw.gauss(0, 1) for _ in range(numbers)], 2), "ab"[i % 2]]
            for i, x in enumerate(cells)
        ]
        write(Path("a.csv"), [column, *(f"q{k}" for k in range(numbers)), "label"], rows)
        is_code = column == "client"
        if is_code and numbers < 8:
            assert f"{numbers} columns" in cli("init", "a.csv", "-o", "-", code=2).err
            continue
        config, _ = proposed("a.csv")
        wide = [f"q{k}" for k in range(numbers)]
        assert config.data.sequence == (wide if is_code or numbers > 8 else column)


@pytest.mark.parametrize("ids", [20, 60])
@pytest.mark.parametrize("is_named", [True, False])
def test_an_id_with_a_mistaken_label_is_left_out_and_said(
    tmp_path, monkeypatch, draw, cli, ids, is_named
):
    monkeypatch.chdir(tmp_path)
    names = ["series", "tick", "heat", "place", "verdict" if is_named else "form"]
    rows = []
    for id in range(ids):
        place = draw.choice("uvw") if is_named else draw.choice("0123456789abcdef")
        for tick in range(6):
            rows.append([f"s{id}", tick, round(draw.gauss(0, 1), 2), place, "mn"[id % 2]])
    at = draw.randrange(len(rows))
    rows[at][-1] = {"m": "n", "n": "m"}[rows[at][-1]]
    write(Path("a.csv"), names, rows)
    options = [] if is_named else ["--label", names[-1]]
    said = cli("init", "a.csv", "-o", "a.yaml", *options).err
    data = parse_config(Path("a.yaml").read_text()).data
    assert (data.id, data.order, data.label) == ("series", "tick", names[-1])
    assert (data.window, data.bad_rows) == (None, "drop")
    (line,) = [line for line in said.splitlines() if "several labels" in line]
    assert f"'{rows[at][0]}'" in line
    lines = [int(x) for x in re.findall(r"on line (\d+)", line)]
    assert lines == [at // 6 * 6 + 2, at + 2 + (at % 6 == 0)]
    assert f"'{rows[at][0]}'" in cli("data", "a.yaml").out
    (setting,) = re.findall(r"may change within 'series': (--set .*)", line)
    again = ["--id", "series", "--label", names[-1], *shlex.split(setting)]
    cli("init", "a.csv", "-o", "b.yaml", *again)
    assert parse_config(Path("b.yaml").read_text()).data.window is not None


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("blank", [1, 3])
@pytest.mark.parametrize("order", [True, False])
def test_few_blank_labels_of_time_steps_are_said_with_their_lines(
    tmp_path, monkeypatch, draw, cli, is_named, blank, order
):
    """A blank says nothing: the sequence has the label of its other rows."""
    monkeypatch.chdir(tmp_path)
    names = ["batch_id", "tick", "heat", "valve", "verdict"]
    rows = [
        [f"B{at // 6}", at % 6, round(draw.gauss(0, 1), 2), draw.choice("uvw"), "mn"[at // 6 % 2]]
        for at in range(240)
    ]
    if not order:
        draw.shuffle(rows)
    places = sorted(draw.sample(range(len(rows)), blank))
    for place in places:
        rows[place][-1] = ""
    write(Path("a.csv"), names, rows, draw.choice(",;\t"))
    said = cli("init", "a.csv", "-o", "c.yaml", *(["--label", "verdict"] * is_named)).err
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.id, config.data.label) == ("batch_id", "verdict")
    (line,) = [line for line in said.splitlines() if "blank" in line]
    assert [int(x) for x in re.findall(r"line (\d+)", line)] == [place + 2 for place in places]
    splits = prepare(config).splits
    assert sum(map(len, splits.values())) == 40
    assert {*splits["train"].lengths.tolist()} == {6}
