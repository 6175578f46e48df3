"""Forms in which people keep tables, and what `init` proposes for them."""

import gzip
import itertools
import json
import os
import random
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import Config, parse_config
from seqtrain.errors import DataError
from seqtrain.proposal import InitOptions, Proposal, propose
from seqtrain.sequences.dataset import prepare
from seqtrain.text import one_line
from tests.helpers.examples import some
from tests.helpers.printed import follow_printed, run_conversion, run_conversions

SYLLABLES = ["fen", "gor", "hal", "jin", "kep", "lur", "mos", "nid", "pra", "quo", "rix", "sul"]


def name(draw: random.Random) -> str:
    return "".join(draw.choices(SYLLABLES, k=3))


def follow(refused: str, cli: Any) -> None:
    """Run the conversions that are printed, and the command of init below them."""
    cli(*run_conversions(cli, refused), "-o", "c.yaml")


def sentence(draw: random.Random, *words: str) -> str:
    found = [*draw.choices(SYLLABLES, k=7), *words]
    draw.shuffle(found)
    return " ".join(found)


def write(path: Path, names: list[str], rows: list[list[Any]], mark: str = ",") -> str:
    def cell(value: Any) -> str:
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if {mark, '"', "\n"} & {*text} else text

    lines = [mark.join(map(cell, row)) for row in ([names, *rows] if names else rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def proposed(path: str, **options: Any) -> tuple[Config, Proposal]:
    """Return what `init` proposes. It counts classes and time steps as `fit` does."""
    proposal = propose([path], InitOptions(**options))
    config = parse_config(proposal.text)
    data = prepare(config)
    longest = max(int(store.lengths.max()) for store in data.splits.values())
    assert f"longest {longest:,}\n" in proposal.text
    assert f", {len(data.preprocessing.labels)} classes" in proposal.text
    batches = -(-len(data.splits["train"]) // config.batching.batch_size)
    (updates,) = re.findall("about ([0-9,]+) updates", proposal.text)
    assert abs(int(updates.replace(",", "")) / config.training.max_epochs - batches) <= 2
    return config, proposal


@pytest.fixture(params=some([1, 2, 3], 3))
def draw(request) -> random.Random:
    return random.Random(request.param)


# lists of labels

FORMS: dict[str, Callable[[list[str]], str]] = {
    "JSON": json.dumps,
    "Python": str,
    "a set": lambda names: "{" + ", ".join(map(repr, names)) + "}",
    "a tuple": lambda names: f"({', '.join(map(repr, names))},)",
    "a frozen set": lambda names: "frozenset({" + ", ".join(map(repr, names)) + "})",
    "numpy": lambda names: "[" + " ".join(map(repr, names)) + "]",
    "without quotes": lambda names: f"[{', '.join(names)}]",
    "commas": ", ".join,
    "bars": " | ".join,
    "tags": lambda names: "".join(f"<{each}>" for each in names),
    "Postgres": lambda names: "{" + ",".join(names) + "}",
    "lines": "\n".join,
    "Label Studio": lambda names: json.dumps({"choices": names}),
    "objects": lambda names: json.dumps([{"id": len(each), "name": each} for each in names]),
}


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_labels_are_several_labels(tmp_path, draw, form):
    labels, column = [name(draw) for _ in range(draw.randint(3, 5))], name(draw)
    rows = []
    for _ in range(120):
        own = draw.sample(labels, draw.choice([1, 2]))
        rows.append([sentence(draw, *own), FORMS[form](own)])
    path = write(tmp_path / "a.csv", ["text", column], rows)
    config, proposal = proposed(path, label=column)
    assert config.training.monitor == "micro_f1"
    assert f"several labels per row = {column} ({len(labels)} classes" in proposal.uses[0]


MARKS: dict[str, Callable[[list[int]], str]] = {
    "csv": str,
    "numpy": lambda marks: f"[{' '.join(map(str, marks))}]",
    "numpy floats": lambda marks: f"[{'. '.join(map(str, marks))}.]",
    "a tuple": lambda marks: str(tuple(marks)),
    "true": lambda marks: str([*map(bool, marks)]),
    "texts": lambda marks: json.dumps([*map(str, marks)]),
    "torch": lambda marks: f"tensor({marks})",
    "commas": lambda marks: ",".join(map(str, marks)),
    "blanks": lambda marks: " ".join(map(str, marks)),
}


@pytest.mark.parametrize("ending", [*MARKS, "jsonl"])
@pytest.mark.parametrize("most", [6, 12])
def test_multi_hot_lists_are_as_many_classes_as_positions(tmp_path, draw, ending, most):
    classes = draw.randint(most // 2, most)
    rows = []
    for _ in range(200):
        marks = [int(draw.random() < 0.4) for _ in range(classes)]
        rows.append([sentence(draw, *(f"k{i}" for i, x in enumerate(marks) if x)), marks])
    draw.shuffle(rows)
    if ending in MARKS:
        rows = [[text, MARKS[ending](marks)] for text, marks in rows]
        path = write(tmp_path / "a.csv", ["text", "targets"], rows)
    else:
        path = tmp_path / "a.jsonl"
        path.write_text("".join(json.dumps({"text": a, "targets": b}) + "\n" for a, b in rows))
    config, proposal = proposed(str(path))
    assert config.training.monitor == "micro_f1"
    assert f"({classes} classes" in proposal.uses[0]


@pytest.mark.parametrize("mark", ["|", ";"])
def test_joined_labels_are_several_labels(tmp_path, draw, mark):
    labels = [name(draw) for _ in range(4)]
    rows = [
        [sentence(draw), mark.join(draw.sample(labels, draw.choice([1, 2])))] for _ in range(90)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert config.data.label_separator == mark


@pytest.mark.parametrize("mark", ["/", " ", "+", "&"])
def test_combinations_that_share_parts_are_doubted(tmp_path, draw, mark):
    labels = [name(draw) for _ in range(4)]
    rows = [
        [sentence(draw), mark.join(draw.sample(labels, draw.choice([1, 2])))] for _ in range(200)
    ]
    _, proposal = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert any(f"data.label_separator: {mark!r}" in line for line in proposal.warnings)


def test_spellings_of_one_value_are_one_class_and_said(tmp_path, draw):
    spellings = draw.choice([["0", "0.0"], ["1.0", "1"], ["True", "TRUE"]])
    rows = [[sentence(draw, "no"), "other"] for _ in range(40)]
    rows += [[sentence(draw, "yes"), spellings[i % 2]] for i in range(40)]
    _, proposal = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert "2 classes" in proposal.uses[0]
    assert any(all(each in line for each in spellings) for line in proposal.warnings)


def test_equal_ids_are_one_id_however_they_are_spelled(tmp_path, draw):
    """pandas writes whole numbers with decimals beside a missing one. 01 and 1 stay two."""
    columns, start = [name(draw) for _ in range(4)], draw.randint(1, 500)
    rows = []
    for i in range(80):
        own = f"0{start + i}" if i % 9 == 0 else str(start + i // 2)
        for t in range(5):
            spelled = f"{own}.0" if t == 2 and own[0] != "0" else own
            rows.append([spelled, t, draw.choice("pqr"), "uv"[int(own) % 2]])
    ids = {row[0].removesuffix(".0") for row in rows}
    rows = [row for x in sorted(ids) for row in rows if row[0].removesuffix(".0") == x]
    config, proposal = proposed(write(tmp_path / "a.csv", columns, rows))
    assert (config.data.id, config.data.label) == (columns[0], columns[3])
    assert f"{len(ids)} sequences" in proposal.text


def test_blanks_around_labels_make_no_classes(tmp_path, draw):
    rows = [[sentence(draw, "xy"[i % 2]), ["u", "v", "u ", " v\xa0"][i % 4]] for i in range(80)]
    config, _ = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert {*prepare(config).preprocessing.labels} == {"u", "v"}


def test_labels_that_are_objects_are_refused(tmp_path, draw):
    rows = [[sentence(draw), json.dumps({name(draw): 1, "b": i % 2})] for i in range(60)]
    with pytest.raises(DataError, match="object"):
        proposed(write(tmp_path / "a.csv", ["text", "label"], rows), label="label")


def test_fasttext_lines_with_several_labels(tmp_path, draw):
    labels = [name(draw) for _ in range(3)]
    lines = []
    for _ in range(80):
        own = draw.sample(labels, draw.choice([1, 2]))
        lines.append(" ".join([*(f"__label__{each}" for each in own), sentence(draw)]))
    path = tmp_path / "a.ft"
    path.write_text("\n".join(lines) + "\n")
    config, proposal = proposed(str(path))
    assert "several labels" in proposal.uses[0]
    assert config.training.monitor == "micro_f1"


# odd cells


@pytest.mark.parametrize("odd", ["ERR", "#REF!", "---", "\\N", "<0.5"])
def test_one_cell_that_is_no_number_leaves_the_column_one_of_numbers(tmp_path, draw, odd):
    steps, place = draw.randint(9, 14), draw.randrange(100)
    rows = [
        [round(draw.gauss(i % 2, 2), 2) for _ in range(steps)] + ["uv"[i % 2]] for i in range(150)
    ]
    rows[place][draw.randrange(steps)] = odd
    names = [f"t{k}" for k in range(steps)]
    config, proposal = proposed(write(tmp_path / "a.csv", [*names, "state"], rows))
    assert (config.data.kind, config.data.bad_rows) == ("features", "drop")
    assert any(f"line {place + 2})" in line and odd in line for line in proposal.warnings)
    assert "149 rows" in proposal.text


def log(draw: random.Random, ids: int, steps: int = 6) -> list[list[Any]]:
    return [
        [f"c{i}", 10 * k, round(draw.gauss(i % 2, 1), 2), round(draw.random(), 2), "ab"[i % 2]]
        for i in range(ids)
        for k in range(steps)
    ]


LOG = ["case_id", "t_ms", "temp", "vib", "state"]


def test_a_step_table_with_an_odd_cell_stays_one(tmp_path, draw):
    rows = log(draw, 80)
    place = draw.randrange(len(rows))
    rows[place][2] = "ERR"
    config, proposal = proposed(write(tmp_path / "a.csv", LOG, rows), label="state")
    assert config.data.steps == {"temp": "number", "vib": "number"}
    assert config.data.bad_rows == "drop"
    assert any(f"line {place + 2})" in line for line in proposal.warnings)
    assert "79 sequences" in proposal.text


def test_leaving_out_rows_is_not_advised_where_many_would_go(tmp_path, draw):
    rows = log(draw, 60, steps=20)
    for i in range(0, 60, 5):
        rows[20 * i + 3][2] = "ERR"
    with pytest.raises(DataError) as refused:
        proposed(write(tmp_path / "a.csv", LOG, rows), label="state")
    assert "bad_rows" not in str(refused.value)
    assert "12 of 60 sequences" in str(refused.value)


def test_leaving_out_rows_is_not_advised_where_a_class_would_go(tmp_path, draw):
    rows = [[round(draw.gauss(0, 1), 2) for _ in range(9)] + ["uv"[i % 2]] for i in range(300)]
    rows[7][3], rows[7][-1] = "ERR", "rare"
    names = [f"t{k}" for k in range(9)]
    with pytest.raises(DataError) as refused:
        proposed(write(tmp_path / "a.csv", [*names, "state"], rows))
    assert "bad_rows" not in str(refused.value)


def test_marks_among_numbers_are_named_with_a_command_that_reads_them_as_missing(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    rows, odd = log(draw, 60, steps=20), draw.choice(["ERR", "n.d.", "--", "<LOD", "#REF!"])
    for row in draw.sample(rows, draw.randint(30, 200)):
        row[2] = odd
    write(Path("a.csv"), LOG, rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert odd in refused
    (command,) = re.findall(r"seqtrain:   seqtrain (init .*)", refused)
    cli(*shlex.split(command), "--label", "state")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.steps == {"temp": "number", "vib": "number"}
    assert config.data.missing == "mask"
    assert sum(len(own) for own in prepare(config).splits.values()) == 60


def test_a_limit_of_measurement_can_be_read_as_its_number(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = log(draw, 60, steps=20)
    for row in draw.sample(rows, 200):
        row[2] = "<0.125"
    write(Path("a.csv"), LOG, rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert run_conversion(cli, refused, "cells") == ["a-cells.csv"]
    lines = Path("a-cells.csv").read_text().splitlines()
    assert sum(line.split(",")[2] == "0.125" for line in lines) == 200
    assert proposed("a-cells.csv", label="state")[0].data.steps == {
        "temp": "number",
        "vib": "number",
    }


def test_a_row_of_units_is_named_and_left_out(tmp_path, draw):
    units = draw.choice([["", "s", "°C", "g", ""], ["", "ms", "[K]", "mm/s²", ""]])
    path = write(tmp_path / "a.csv", LOG, [units, *log(draw, 60)])
    config, proposal = proposed(path, label="state")
    assert (config.data.bad_rows, config.data.order) == ("drop", "t_ms")
    (line,) = [line for line in proposal.warnings if "(line 2)" in line]
    assert all(each in line for each in filter(None, units))


@pytest.mark.parametrize(("bad", "is_advised"), [(1, True), (20, False)])
def test_rows_of_another_length_are_only_advised_to_go_if_they_are_few(
    tmp_path, draw, bad, is_advised
):
    rows: list[list[Any]] = [["uv"[i % 2], sentence(draw)] for i in range(100)]
    rows[10 : 10 + bad] = [["u", "one", "too many"]] * bad
    with pytest.raises(DataError) as refused:
        proposed(write(tmp_path / "a.csv", ["label", "text"], rows))
    assert ("data.bad_rows=drop" in str(refused.value)) == is_advised


def test_rows_of_another_length_are_not_advised_to_go_if_a_class_would(tmp_path, draw):
    rows: list[list[Any]] = [["uv"[i % 2], sentence(draw)] for i in range(200)]
    rows[10:12] = [["rare", "one", "too many"]] * 2
    with pytest.raises(DataError, match="all rows of the class 'rare'") as refused:
        proposed(write(tmp_path / "a.csv", ["label", "text"], rows))
    assert "bad_rows" not in str(refused.value)


def test_no_command_advises_to_leave_many_rows_out(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows: list[list[Any]] = [["uv"[i % 2], sentence(draw, "xy"[i % 2])] for i in range(60)]
    write(Path("a.csv"), ["label", "text"], rows)
    cli("init", "a.csv", "-o", "c.yaml")
    fast = ["--set", "training.max_epochs=1", "--run-dir", "run"]
    cli("fit", "c.yaml", *fast)
    for row in rows[::7]:
        row.append("more")
    write(Path("b.csv"), ["label", "text"], rows)
    shown = [cli("init", "b.csv", code=2), cli("data", "c.yaml", "--set", "data.train=b.csv")]
    shown.append(cli("fit", "c.yaml", "--set", "data.train=b.csv", *fast, "--force", code=2))
    shown.append(cli("eval", "run", "--data", "b.csv", code=2))
    shown.append(cli("predict", "b.csv", "--run", "run", code=2))
    for each in shown:
        assert "found 3" in each.out + each.err
        assert "bad_rows" not in each.out + each.err


@pytest.mark.parametrize("cells", [0, 1, 3])
@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_name_at_the_end_of_a_header(tmp_path, draw, blank, cells):
    columns = [name(draw), name(draw), *[blank] * draw.randint(cells or 1, 3)]
    rows = [["uv"[i % 2], sentence(draw), *[""] * min(cells, len(columns) - 2)] for i in range(60)]
    if cells:
        rows[draw.randrange(60)][2] = "a text ran over"
    config, proposal = proposed(write(tmp_path / "a.csv", columns, rows))
    assert (config.data.label, config.data.sequence) == tuple(columns[:2])
    assert "60 rows, 2 classes" in proposal.text
    assert bool(cells) == any("1 row " in line for line in proposal.warnings)


# times

STAMPS: dict[str, Callable[[int], str]] = {
    "compact": lambda n: f"2015101{n // 900 % 9}T18{n // 30 % 30 + 10}{n % 30 + 10}",
    "of loghub": lambda n: f"1510{n // 900 % 20 + 10} 18{n // 30 % 30 + 10}{n % 30 + 10}",
    "of syslog": lambda n: f"Oct {n // 900 % 20 + 10} 18:{n // 30 % 30 + 10}:{n % 30 + 10}",
    "of Apache": lambda n: f"[Sun Oct 18 18:{n // 30 % 30 + 10}:{n % 30 + 10} 2015]",
    "of a phone": lambda n: f"10-{n // 900 % 9 + 13} 18:{n // 30 % 30 + 10}:{n % 30 + 10}.250",
    "of a watch": lambda n: f"20151018-18:{n // 30 % 30 + 10}:{n % 30 + 10}:125",
    "of Oracle": lambda n: f"18-OCT-15 06.{n // 30 % 30 + 10}.{n % 30 + 10}.000000 PM",
    "of SAS": lambda n: f"18OCT2015:18:{n // 30 % 30 + 10}:{n % 30 + 10}",
    "with points": lambda n: f"2015.10.18 18:{n // 30 % 30 + 10}:{n % 30 + 10}",
    "with a short year": lambda n: f"18.10.15 18:{n // 30 % 30 + 10}:{n % 30 + 10}",
    "of twelve hours": lambda n: f"10/18/2015 {n // 1800 + 3}:{n // 30 % 60:02d}:{n % 30:02d} PM",
    "of a day": lambda n: f"{n // 1800 + 3}:{n // 30 % 60:02d}:{n % 30:02d} pm",
    "of a web server": lambda n: f"[18/Oct/2015:18:{n // 30 % 30 + 10}:{n % 30 + 10} +0000]",
    "names of files": lambda n: f"2024_05_{n // 24 % 28 + 1:02d}_{n % 24:02d}_00_00",
    "photographs": lambda n: f"2024:05:{n // 24 % 28 + 1:02d} {n % 24:02d}:00:00",
}


@pytest.mark.parametrize("stamp", STAMPS)
def test_times_of_logs_sort_rows(tmp_path, draw, stamp):
    rows = [
        [
            f"b{b}",
            STAMPS[stamp](10 * b + k),
            draw.choice(["E1", "E2", *["E9"] * (b % 2)]),
            "xy"[b % 2],
        ]
        for b in range(60)
        for k in range(6)
    ]
    column = draw.choice(["time", "when"])
    config, _ = proposed(write(tmp_path / "a.csv", ["block", column, "event", "label"], rows))
    assert config.data.order == column
    assert config.data.steps == {"event": "token"} | (
        {"elapsed": "order"} if "elapsed" in (config.data.steps or {}) else {}
    )


@pytest.mark.parametrize("form", ["T+{0}:{1:02d}:{0}5", "2023-03-{1:02d}_10-{0:02d}-{2}"])
def test_a_time_that_cannot_be_read_is_never_a_token_in_silence(tmp_path, draw, form):
    rows = [
        [f"b{b}", form.format(k, b % 7, b), draw.choice(["E1", "E2"]), "xy"[b % 2]]
        for b in range(60)
        for k in range(6)
    ]
    draw.shuffle(rows)
    config, proposal = proposed(
        write(tmp_path / "a.csv", ["block", "when", "event", "label"], rows)
    )
    assert config.data.steps == {"event": "token"}
    assert any("'when' looks like a time" in line for line in proposal.warnings)


# symbols and codes


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        *((mark, 1) for mark in [">", "|", "→", ", ", " - ", "/", "-", "_", ".", "+"]),
        *((mark, 2) for mark in ["->", " > ", ";", " >> ", " / ", " » "]),
    ],
)
def test_symbols_joined_in_a_cell(tmp_path, draw, mark, words):
    pages = [" ".join(name(draw) for _ in range(words)) for _ in range(6)]
    rows = [[mark.join(draw.choices(pages, k=draw.randint(1, 9))), i % 2] for i in range(200)]
    config, proposal = proposed(write(tmp_path / "a.csv", ["path", "converted"], rows))
    assert (config.data.kind, config.data.sequence) == ("tokens", "path")
    assert (config.data.symbol_separator or "").strip() == mark.strip()
    assert "symbols = path" in proposal.uses[0]


def test_codes_with_marks_are_no_symbols(tmp_path, draw):
    """Their parts come again, but all have equally many."""
    rows = [
        [f"u{draw.randrange(9)}-{name(draw)}-{'xyz'[i % 3]}", sentence(draw, "vw"[i % 2]), i % 2]
        for i in range(200)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["device", "note", "label"], rows))
    assert config.data.sequence == "note"


@pytest.mark.parametrize("form", [list, ";".join, ", ".join, str])
def test_a_text_is_the_sequence_beside_lists_of_few_symbols(tmp_path, draw, form):
    tags, path, rows = [name(draw) for _ in range(8)], tmp_path / "a.jsonl", []
    for i in range(120):
        own = draw.sample(tags, draw.randint(1, 4))
        rows.append({"body": sentence(draw), "tags": form(own), "label": "uv"[i % 2]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config, _ = proposed(str(path))
    assert (config.data.sequence, config.data.label) == ("body", "label")


@pytest.mark.parametrize("is_padded", [False, True])
def test_words_in_numbered_columns_are_symbols(tmp_path, draw, is_padded):
    acts, longest = [name(draw) for _ in range(7)], draw.randint(8, 12)
    rows = []
    for i in range(150):
        own = draw.choices(acts, k=draw.randint(3, longest) if is_padded else longest)
        rows.append([f"c{i}", *own, *[""] * (longest - len(own)), "uv"[i % 2]])
    names = [f"act_{k}" for k in range(1, longest + 1)]
    config, _ = proposed(write(tmp_path / "a.csv", ["case", *names, "outcome"], rows))
    assert (config.data.kind, config.data.sequence) == ("tokens", names)


@pytest.mark.parametrize("sum", ["R$ {0}.250,50", "{0} 250,00 €", "US${0}", "{0},5 Kč"])
def test_sums_of_money_are_no_tokens(tmp_path, draw, sum):
    rows = log(draw, 60)
    for row in rows:
        row[2], row[3] = sum.format(draw.randint(1, 900)), f"{row[3]}".replace(".", ",")
    config, _ = proposed(write(tmp_path / "a.csv", LOG, rows, ";"), label="state")
    assert config.data.steps == {"temp": "number", "vib": "number"}
    assert next(iter((config.data.units or {}).values())) in sum


def test_thousands_beside_plain_numbers_are_refused_with_units(tmp_path, draw):
    rows = log(draw, 60)
    for row in rows:
        row[2] = draw.choice(["{}k", "{}"]).format(draw.randint(1, 900))
    with pytest.raises(DataError, match="units"):
        proposed(write(tmp_path / "a.csv", LOG, rows), label="state")


@pytest.mark.parametrize(("mark", "delimiter"), [(",", ","), (",", ";"), (";", ",")])
@pytest.mark.parametrize("are_codes", [True, False])
def test_whole_numbers_joined_in_a_cell(tmp_path, draw, mark, delimiter, are_codes):
    """Some look like a number with thousands, 12,305,305, or with a decimal comma, 7,9."""
    column, codes, rows = name(draw), draw.sample(range(1, 400), 8), []
    for i in range(160):
        numbers, level = draw.choices(codes, k=draw.randint(2, 12)), draw.randint(100, 300)
        if not are_codes:
            numbers = [level + draw.randint(2, 4) * t for t in range(draw.randint(6, 12))]
        rows.append([numbers, "uv"[i % 2]])
    if are_codes:
        rows[draw.randrange(160)][0] = [max(1, codes[0] % 100), codes[1] % 900 + 100, 305]
    path = tmp_path / "a.csv"
    write(path, [column, "way"], [[mark.join(map(str, x)), y] for x, y in rows], delimiter)
    steps = sum(len(numbers) for numbers, _ in rows)
    kind = "tokens" if are_codes else "features"
    for given in ({}, {"sequence": column, "settings": ["data.kind=tokens"]}):
        config, proposal = proposed(str(path), **given)
        assert config.data.kind == ("tokens" if given else kind)
        assert config.data.symbol_separator == (mark if config.data.kind == "tokens" else None)
        stores = prepare(config).splits.values()
        assert (sum(map(len, stores)), sum(store.lengths.sum() for store in stores)) == (160, steps)
        assert not any("left out" in line for line in proposal.warnings)


def test_bare_lists_of_symbols(tmp_path, draw):
    rows = [
        [f"blk_{i}", "uv"[i % 2], f"[{','.join(f'E{draw.randint(1, 29)}' for _ in range(7))}]"]
        for i in range(200)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["BlockId", "Label", "Features"], rows))
    assert (config.data.kind, config.data.sequence) == ("tokens", "Features")


def test_whole_numbers_in_columns_are_codes_or_measurements(tmp_path, draw):
    steps, top = draw.randint(20, 40), draw.randint(150, 400)
    names = [f"t_{k}" for k in range(steps)]
    codes = [[draw.randrange(top) for _ in names] + [i % 2] for i in range(200)]
    config, _ = proposed(write(tmp_path / "codes.csv", [*names, "malware"], codes))
    assert config.data.kind == "tokens"
    pulses = []
    for i in range(200):
        pulse = draw.randint(50, 90)
        pulses.append([*(pulse := pulse + draw.choice([-2, -1, 0, 1, 2]) for _ in names), i % 2])
    config, _ = proposed(write(tmp_path / "pulses.csv", [*names, "ill"], pulses))
    assert config.data.kind == "features"


def test_rows_of_different_lengths_are_a_label_and_a_list(tmp_path, draw):
    rows = [[i % 2, *(draw.randint(1, 9) for _ in range(draw.randint(2, 9)))] for i in range(200)]
    config, _ = proposed(write(tmp_path / "a.csv", [], rows))
    assert (config.data.label, config.data.kind) == (0, "tokens")


def ragged(draw: random.Random, count: int = 160) -> tuple[list[list[str]], list[str]]:
    """Return lists of symbols of different lengths, and their labels, which no list has."""
    symbols, labels = (draw.sample(SYLLABLES[at : at + 6], 4) for at in (0, 6))
    lists = [draw.choices(symbols, k=draw.randint(2, 9)) for _ in range(count)]
    return lists, [labels[i % 2] for i in range(count)]


@pytest.mark.parametrize("mark", [",", ";", "|"])
@pytest.mark.parametrize("before", ["l", "il", "li", "gil"])
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_columns_before_a_list_of_any_length(tmp_path, draw, mark, before, is_named, given):
    """They are a label (l), an id of the row (i) and a constant group (g)."""
    lists, labels = ragged(draw)
    columns, at = [name(draw) + each for each in before], before.index("l")
    rows = []
    for number, (items, label) in enumerate(zip(lists, labels, strict=True)):
        values = {"l": label, "i": f"R{number}", "g": f"site{number % 3}"}
        rows.append(mark.join([*(values[each] for each in before), *items]))
    head = [mark.join([*columns, name(draw) + "s"])] if is_named else []
    path, test = tmp_path / "train.csv", tmp_path / "test.csv"
    path.write_text("\n".join([*head, *rows, ""]))
    test.write_text("\n".join([*head, *rows[:9], ""]))
    label: Any = columns[at] if is_named else at
    options = {"label": label} if before == "gil" else {}
    options |= {"sequence": "rest"} if given else {}
    config, _ = proposed(str(path), **options)
    assert (config.data.label, config.data.sequence, config.data.kind) == (label, "rest", "tokens")
    splits = prepare(config).splits.values()
    assert sum(int(store.lengths.sum()) for store in splits) == sum(map(len, lists))
    both = parse_config(propose([str(path), str(test)], InitOptions(**options)).text)
    assert prepare(both).splits["test"].lengths.tolist() == [len(items) for items in lists[:9]]


def test_files_of_uneven_rows_in_folders_of_classes_are_refused_by_line(
    tmp_path, monkeypatch, draw, cli
):
    """No option that the user didn't give is named."""
    monkeypatch.chdir(tmp_path)
    for label in ("u", "v"):
        for at in range(12):
            notes = [f"1,{30 * t},on,0,{draw.randint(40, 80)},81" for t in range(20)]
            rows = ["0,0,head,1,2,480", "1,0,start", "1,0,tempo,500000", *notes, "1,600,end"]
            file = Path(f"d/{label}/{at:02}.csv")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join([*rows, ""]))
    refused = cli("init", "d", code=2).err
    assert "d/u/00.csv:2: " in refused
    assert re.findall("--(?:label|id|header)", refused) == []


@pytest.mark.parametrize("mark", [",", ";", "|", "\t"])
@pytest.mark.parametrize("is_named", [False, True])
def test_a_label_after_a_list_is_moved_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, mark, is_named
):
    monkeypatch.chdir(tmp_path)
    lists, labels = ragged(draw)
    file = "a b.tsv" if mark == "\t" else "a b.csv"
    quoted = {lists[0][0]: f'"{lists[0][0]}{mark.strip()}x"'}
    rows = []
    for items, label in zip(lists, labels, strict=True):
        rows.append(mark.join([*(quoted.get(item, item) for item in items), label]))
    Path(file).write_text("\r\n".join([*([f"ops{mark}way"] if is_named else []), *rows, ""]))
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    config, _ = proposed(run_conversions(cli, refused)[1])
    assert config.data.label == ("way" if is_named else 0)
    prepared = prepare(config)
    assert {*prepared.preprocessing.labels} == {*labels}
    lengths = [int(store.lengths.sum()) for store in prepared.splits.values()]
    assert sum(lengths) == sum(map(len, lists))


@pytest.mark.parametrize("is_named", [False, True])
def test_texts_with_commas_are_no_lists(tmp_path, draw, is_named):
    rows = []
    for i in range(60):
        words = [*(name(draw) for _ in range(8)), *("," for _ in range(draw.randint(1, 4)))]
        draw.shuffle(words)
        rows.append(f"{'uv'[i % 2]},{' '.join(words)}")
    (tmp_path / "a.csv").write_text("\n".join([*(["way,words"] if is_named else []), *rows, ""]))
    with pytest.raises(DataError):
        propose([str(tmp_path / "a.csv")], InitOptions())


def write_lists(path: Path, column: str, label: str, rows: list[tuple[Any, str]]) -> str:
    """Write rows with a list in a column, and a label: as JSON lines, or as JSON in a csv cell."""
    if path.suffix == ".csv":
        return write(path, [column, label], [[json.dumps(items), y] for items, y in rows])
    path.write_text("".join(json.dumps({column: items, label: y}) + "\n" for items, y in rows))
    return str(path)


def test_a_list_that_all_rows_share_is_no_sequence(tmp_path, draw):
    """Prodigy writes the options of a question so."""
    options = [{"id": each, "text": each} for each in ("calm", "angry")]
    path, rows = tmp_path / "a.jsonl", []
    for i in range(60):
        own = options[i % 2]["id"]
        rows.append({"text": sentence(draw, own), "options": options, "accept": [own]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config, _ = proposed(str(path))
    assert (config.data.sequence, config.data.label) == ("text", "accept")


def test_an_object_with_several_lists_is_refused_with_commands(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    names = [name(draw) + x for x in "ab"]
    rows = [{"text": sentence(draw, "xy"[i % 2]), "label": "uv"[i % 2]} for i in range(60)]
    Path("all.json").write_text(json.dumps({names[0]: rows, names[1]: rows[:20]}))
    refused = cli("init", "all.json", "-o", "c.yaml", code=2).err
    (folder,) = run_conversion(cli, refused)
    cli("init", f"{folder}/{names[0]}.jsonl", "-o", "c.yaml")
    assert "60 rows" in Path("c.yaml").read_text()
    Path("train.json").write_text(json.dumps({"train": rows, "test": rows[:20]}))
    refused = cli("init", "train.json", "-o", "d.yaml", code=2).err
    before = Path("train.json").read_bytes()
    cli(*run_conversions(cli, refused), "-o", "d.yaml")
    assert Path("train.json").read_bytes() == before
    assert parse_config(Path("d.yaml").read_text()).data.test == "train-tables/test.jsonl"


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_lists_of_objects_are_time_steps(tmp_path, draw, ending):
    column, place, amount, stamp, label = (name(draw) + x for x in "abcde")
    pages, rows = [name(draw) for _ in range(6)], []
    for i in range(120):
        own, seconds = [], 0
        for _ in range(draw.randint(2, 6)):
            seconds += draw.randint(1, 300)
            event = {
                stamp: f"2024-05-07T10:{seconds // 60:02d}:{seconds % 60:02d}",
                place: draw.choice(pages[3 * (i % 2) :][:4]),
                amount: draw.randint(1, 400) / 8,
            }
            own.append(event)
        rows.append((own, ["no", "yes"][i % 2]))
    config, proposal = proposed(write_lists(tmp_path / f"a.{ending}", column, label, rows))
    assert config.data.sequence == column
    assert config.data.steps == {place: "token", amount: "number"}
    assert (config.data.label, config.data.id, config.data.order) == (label, None, None)
    assert "120 rows, 2 classes" in proposal.text
    assert any(stamp in line for line in proposal.uses)
    assert not proposal.warnings
    rows = [(items[::-1], y) for items, y in rows]
    _, proposal = proposed(write_lists(tmp_path / f"b.{ending}", column, label, rows))
    assert any("sorted" in line and stamp in line for line in proposal.warnings)


def test_one_odd_cell_of_an_object_is_named_and_its_row_is_left_out(tmp_path, draw):
    field, rows = name(draw), []
    for i in range(80):
        rows.append(([{field: draw.randint(0, 99) / 4} for _ in range(9)], "ab"[i % 2]))
    rows[53][0][4][field] = "ERR"
    config, proposal = proposed(write_lists(tmp_path / "a.jsonl", "log", "y", rows))
    assert (config.data.steps, config.data.bad_rows) == ({field: "number"}, "drop")
    assert any("'ERR' (line 54)" in line for line in proposal.warnings)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_turns_whose_text_has_an_unusual_name_are_refused_with_the_remedy(tmp_path, draw, ending):
    who, text = name(draw), name(draw)
    rows = []
    for i in range(80):
        own = [{who: draw.choice("ab"), text: sentence(draw)} for _ in range(draw.randint(1, 4))]
        rows.append((own, "uv"[i % 2]))
    path = tmp_path / f"a.{ending}"
    with pytest.raises(DataError, match=rf"'{text}'.*name this field .text.") as caught:
        proposed(write_lists(path, "talk", "y", rows))
    problem = caught.value.lines[0]
    assert one_line(problem) == problem
    path.write_text(path.read_text().replace(text, "text"))
    assert proposed(str(path))[0].data.sequence == "talk"


def test_objects_in_objects_are_said(tmp_path, draw):
    field, inner, pages = name(draw), name(draw), "abcd"
    rows = []
    for i in range(80):
        own = [{field: draw.choice(pages[i % 2 :]), inner: {"x": 1}} for _ in range(5)]
        rows.append((own, "uv"[i % 2]))
    config, proposal = proposed(write_lists(tmp_path / "a.jsonl", "acts", "y", rows))
    assert config.data.steps == {field: "token"}
    assert any(inner in line for line in proposal.warnings)


# names and values


def test_values_win_over_the_name_of_a_headline(tmp_path, draw):
    rows = [[f"s{i // 20}", sentence(draw), i % 2] for i in range(400)]
    config, proposal = proposed(write(tmp_path / "a.csv", ["subject", "text", "label"], rows))
    assert config.data.sequence == "text"
    assert any("data.group=subject" in line for line in proposal.warnings)


def test_what_determines_the_label_is_said_and_no_group(tmp_path, draw):
    rows = [
        [f"Fam{k}", f"PF{k}", sentence(draw)] for k in (draw.randint(0, 19) for _ in range(400))
    ]
    path = write(tmp_path / "a.csv", ["family", "accession", "text"], rows)
    _, proposal = proposed(path, label="family")
    assert any("'accession' gives the label away" in line for line in proposal.warnings)
    assert not any("data.group" in line for line in proposal.warnings)


# windows


def test_windows_of_activities(tmp_path, draw):
    run = draw.randint(140, 300)
    rows = [
        [
            s,
            round(t * 0.02, 2),
            *(round(draw.gauss(0, 1), 3) for _ in "xy"),
            ["walk", "sit"][t // run % 2],
        ]
        for s in range(5)
        for t in range(4 * run)
    ]
    path = write(tmp_path / "a.csv", ["subject", "time", "ax", "ay", "activity"], rows)
    config, proposal = proposed(path)
    data = config.data
    assert (data.id, data.order, data.label) == ("subject", "time", "activity")
    assert data.steps == {"ax": "number", "ay": "number"}
    assert '"label": "constant"' in json.dumps(parse_window(proposal))
    assert any("windows" in line and "'activity' changes" in line for line in proposal.warnings)


def test_windows_before_a_failure(tmp_path, draw):
    steps = draw.randint(20, 60)
    rows = [
        [m, t, round(50 + draw.random(), 2), int(m % 2 and t > 0.8 * steps)]
        for m in range(60)
        for t in range(steps)
    ]
    config, proposal = proposed(
        write(tmp_path / "a.csv", ["machine", "time", "temp", "failure"], rows)
    )
    assert (config.data.id, config.data.label) == ("machine", "failure")
    assert '"label": "last"' in json.dumps(parse_window(proposal))


def test_windows_end_at_single_failures(tmp_path, draw):
    rows, failures = [], 0
    for press in range(20):
        broken = draw.randrange(12, 150) if press % 2 else None
        failures += broken is not None
        for hour in range(150):
            force = draw.gauss(40 if broken is None or hour < broken - 5 else 55, 2)
            rows.append([f"press{press}", hour, round(force, 2), int(hour == broken)])
    config, proposal = proposed(
        write(tmp_path / "a.csv", ["press", "hour", "force", "broken"], rows)
    )
    splits = prepare(config).splits.values()
    assert sum(int((split.labels == 1).sum()) for split in splits) > 0.8 * failures
    assert not any("rows are '1'" in line for line in proposal.warnings)


@pytest.mark.parametrize("is_state", [True, False])
def test_windows_need_no_usual_names(tmp_path, draw, is_state):
    """A recording of someone, in time, and a label that changes: by what the columns hold."""
    who, when, one, other, state = (name(draw) + x for x in "abcde")
    steps, rows = draw.randint(40, 90), []
    for person in range(20):
        for step in range(steps):
            is_on = person % 2 and step > 0.8 * steps if is_state else step // 20 % 2
            numbers = [round(draw.gauss(int(is_on), 1), 3), round(draw.random(), 3)]
            rows.append([f"{who}{person}", step, *numbers, ["off", "on"][int(is_on)]])
    path = write(tmp_path / "a.csv", [who, when, one, other, state], rows)
    config, proposal = proposed(path)
    assert (config.data.id, config.data.order, config.data.label) == (who, when, state)
    assert config.data.steps == {one: "number", other: "number"}
    assert parse_window(proposal)["label"] == ("last" if is_state else "constant")
    assert any(f"'{state}' changes" in line and "windows" in line for line in proposal.warnings)


def headless(path: Path, draw: random.Random, end: str, run: int) -> str:
    """Write recordings without a header: person, activity, time, three numbers, and a mark."""
    lines, clock, moves = [], draw.randint(10**12, 10**13), [name(draw) for _ in range(3)]
    for person in draw.sample(range(60), 8):
        for move in moves * (20 if run == 1 else 2):
            for _ in range(run):
                clock += draw.randint(40_000, 60_000)
                numbers = (f"{draw.gauss(moves.index(move), 2):.3f}" for _ in range(3))
                lines.append(",".join([str(person), move, str(clock), *numbers]) + end)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("end", [";", ",", ""])
def test_recordings_without_names_are_told_by_their_values(tmp_path, draw, end):
    config, proposal = proposed(headless(tmp_path / "a.csv", draw, end, draw.randint(20, 50)))
    data = config.data
    assert (data.id, data.label, data.order) == (0, 1, 2)
    assert set(data.steps) == {"3", "4", "5", "elapsed"}
    assert data.window["label"] == "constant"
    assert any("no names" in line and "--id" in line for line in proposal.warnings)


def test_recordings_without_names_and_runs_are_commands_that_work(tmp_path, draw, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    headless(Path("a.csv"), draw, ";", 1)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    (command,) = [x for x in commands if "--id 0 --label 1 --order 2" in x]
    advice = cli(*shlex.split(command), code=2).err
    setting = re.findall(r"--set .*", advice)[0]
    cli(*shlex.split(f"{command} {setting}"))
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, data.window["label"]) == (0, 1, "last")


def test_the_person_comes_first_where_clocks_of_recordings_without_names_begin_again(
    tmp_path, draw, cli, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path, run = Path("a.csv"), 40
    headless(path, draw, ";", run)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    for index, cells in enumerate(lines):
        clock = int(cells[2]) + 4 * 10**13  # no Unix time
        cells[2] = str(clock - 10**9 * (index // run % 3))
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    refused = cli("init", "a.csv", code=2).err
    command = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)[0]
    cli(*shlex.split(command), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, data.window["label"]) == (0, 1, "constant")


@pytest.mark.parametrize("form", ["{:032x}", "{:08x}-0000-4abc-9000-{:012x}"])
def test_hashes_of_rows_are_no_sequences_beside_owners_and_times(tmp_path, draw, form):
    rows, shops = [], [f"{name(draw)} and {name(draw)}" for _ in range(4)]
    for minute in range(480):
        when = f"2024-01-01 {minute // 60:02d}:{minute % 60:02d}:00"
        key = form.format(draw.getrandbits(31), draw.getrandbits(47))
        amount = round(draw.gauss(50, 20), 2)
        rows.append(
            [
                when,
                f"{draw.randrange(40):09d}",
                draw.choice(shops),
                amount,
                key,
                int(minute % 17 == 0),
            ]
        )
    names = ["when", "card_number", "shop", "amt", "trans_num", "is_fraud"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.order) == ("card_number", "when")
    assert (config.data.label, config.data.window["label"]) == ("is_fraud", "last")


@pytest.mark.parametrize("rows_each", [3, 12])
def test_codes_of_a_property_are_no_ids_of_windows_beside_accounts(tmp_path, draw, rows_each):
    rows = list[list[Any]]()
    for minute in range(40 * rows_each):
        when = f"2024-01-{1 + minute // 1440:02d} {minute // 60 % 24:02d}:{minute % 60:02d}:00"
        account, amount = f"{draw.randrange(40):08d}", round(draw.gauss(50, 20), 2)
        rows.append([account, when, amount, draw.choice(["5411", "5812"]), int(minute % 17 == 0)])
    path = write(tmp_path / "a.csv", ["acct", "when", "amt", "shop_code", "is_fraud"], rows)
    config, proposal = proposed(path)
    told = any("--id acct" in line for line in proposal.warnings)
    assert config.data.id == "acct" or (rows_each == 3 and told)


def parse_window(proposal: Proposal) -> dict[str, Any]:
    """Return data.window of a proposal."""
    found = re.search(r"window: (\{.*?\})", proposal.text)
    assert found is not None
    parts = re.findall(r"(\w+): (\w+)", found[1])
    return dict(parts)


# layouts


def recording(draw: random.Random, shift: int, rows: int = 25) -> list[list[Any]]:
    return [[round(draw.gauss(shift, 1), 2), round(draw.random(), 2)] for _ in range(rows)]


@pytest.mark.parametrize("given", ["rec", "rec/*.csv"])
def test_recordings_with_the_label_in_their_names(tmp_path, monkeypatch, draw, given):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(30):
        write(Path(f"rec/{labels[i % 2]}_{i:03d}.csv"), ["ax", "ay"], recording(draw, i % 2))
    config, proposal = proposed(given)
    assert (config.data.id, config.data.steps) == ("file", {"ax": "number", "ay": "number"})
    assert "30 sequences, 2 classes" in proposal.text


def test_the_subject_in_the_names_of_recordings_is_the_group(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for i in range(40):
        path = Path(f"rec/s{i % 8:02d}_{['walk', 'rest'][i // 8 % 2]}_{i // 8}.csv")
        write(path, ["ax", "ay"], recording(draw, i // 8 % 2))
    config, _ = proposed("rec")
    assert config.data.group == "subject"
    assert config.data.static is None


def test_arrays_with_the_label_in_their_names(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    os.mkdir("rec")
    for i in range(30):
        values = np.random.default_rng(i).normal(size=(20 + i, 3))
        np.save(f"rec/{['walk', 'rest'][i % 2]}_{i:03d}.npy", values)
    config, proposal = proposed("rec")
    assert (config.data.id, [*config.data.steps]) == ("file", ["0", "1", "2"])
    assert "30 sequences, 2 classes" in proposal.text


@pytest.mark.parametrize("mark", ["_", ".", "-"])
def test_parts_of_names_are_divided_by_any_mark(tmp_path, monkeypatch, draw, mark):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    for i in range(24):
        write(Path(f"rec/{labels[i % 2]}{mark}{i:03d}.csv"), ["ax", "ay"], recording(draw, i % 2))
    assert "24 sequences, 2 classes" in proposed("rec")[1].text


def test_several_parts_of_a_name_that_may_be_the_label_are_commands(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    parts = itertools.cycle(itertools.product(["walk", "rest"], ["left", "right"]))
    for i in range(40):
        first, second = next(parts)
        write(Path(f"rec/{first}_{second}_{i}.csv"), ["ax", "ay"], recording(draw, i % 2))
    refused = cli("init", "rec", "-o", "c.yaml", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    assert len(commands) == 2
    for command in commands:
        cli(*shlex.split(command, comments=True), "--force")


def test_labels_in_another_file_by_a_key(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    key = draw.choice(["series_id", "recording"])
    rows = [[s, k, round(draw.gauss(s % 3, 1), 2)] for s in range(60) for k in range(12)]
    write(Path("X_train.csv"), [key, "measurement", "value"], rows)
    write(
        Path("y_train.csv"),
        [key, "surface"],
        [[s, ["tiles", "wood", "mud"][s % 3]] for s in range(60)],
    )
    config, _ = proposed("X_train.csv")
    assert (config.data.id, config.data.label) == (key, "surface")
    assert "60 sequences, 3 classes" in propose(["X_train.csv"], InitOptions()).text


def test_labels_in_another_file_row_by_row(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    target = draw.choice(["y_train.csv", "train_labels.csv", "train_target.csv"])
    inputs = "X_train.csv" if target == "y_train.csv" else "train.csv"
    rows = [[round(draw.gauss(r % 2, 1), 2) for _ in range(12)] for r in range(150)]
    write(Path(inputs), [f"f{k}" for k in range(12)], rows)
    write(Path(target), ["direction"], [[["up", "down"][r % 2]] for r in range(150)])
    config, _ = proposed(inputs)
    assert (config.data.kind, config.data.label) == ("features", "direction")


def test_inputs_without_labels_anywhere_get_no_invented_task(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    rows = [[draw.randint(0, 63) for _ in range(12)] for _ in range(300)]
    write(Path("X_train.csv"), [f"f{k}" for k in range(12)], rows)
    with pytest.raises(DataError, match="labels"):
        propose(["X_train.csv"], InitOptions())


@pytest.mark.parametrize("mark", [";", "|"])
def test_a_table_in_a_txt_file(tmp_path, draw, mark):
    rows = [[sentence(draw), "uv"[i % 2]] for i in range(60)]
    config, _ = proposed(write(tmp_path / "a.txt", [], rows, mark))
    assert (config.data.format, config.data.label) == ("csv", 1)


@pytest.mark.parametrize("fields", [["area", "ms"], ["q", "z", "page", "sku"]])
def test_a_message_about_objects_is_short_enough_for_its_remedy(tmp_path, draw, fields):
    rows = [{"things": [dict.fromkeys(fields, 1)] * 2, "y": "ab"[i % 2]} for i in range(60)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as caught:
        proposed(str(path))
    message = str(caught.value)
    assert one_line(message) == message
    assert message.endswith('text "text"')


def test_a_message_about_few_numbers_is_short_enough_for_its_remedy(tmp_path, draw):
    rows = [[draw.random(), draw.random(), draw.random(), "ab"[i % 2]] for i in range(60)]
    path = write(tmp_path / "a.csv", ["u", "v", "w", "y"], rows)
    with pytest.raises(DataError) as caught:
        proposed(path, label="y")
    message = caught.value.problems[0]
    assert one_line(message) == message
    assert "--id COLUMN" in message


def test_labels_of_a_text_file_are_joined_row_by_row(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        rows = [[f"{draw.gauss(r % 2, 1):.4e}" for _ in range(20)] for r in range(150)]
        write(Path(f"X_{split}.txt"), [], rows, " ")
        write(Path(f"y_{split}.txt"), [], [[r % 2 + 1] for r in range(150)])
    config, _ = proposed("X_train.txt")
    assert (config.data.kind, config.data.label) == ("features", "y")


@pytest.mark.parametrize("given", ["X_train.csv", "."])
def test_labels_of_a_column_of_texts_are_joined_row_by_row(tmp_path, monkeypatch, draw, given):
    monkeypatch.chdir(tmp_path)
    write(Path("X_train.csv"), ["words"], [[sentence(draw, "xy"[r % 2])] for r in range(80)])
    write(Path("y_train.csv"), ["way"], [["uv"[r % 2]] for r in range(80)])
    config, _ = proposed(given)
    assert (config.data.sequence, config.data.label) == ("words", "way")


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_a_mark_that_only_ends_lines_divides_no_fields(tmp_path, draw, mark):
    lines = [mark.join([sentence(draw), "uv"[i % 2]]) + "," for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join([f"words{mark}way,", *lines, ""]))
    config, _ = proposed(str(tmp_path / "a.csv"))
    assert (config.data.sequence, config.data.label) == ("words", "way")


def test_labels_of_fasttext_after_texts_are_moved_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    ends = [" __label__".join(["", *draw.sample("pqr", draw.randint(1, 2))]) for _ in range(60)]
    Path("a b.txt").write_text(" \r\n".join(f"{sentence(draw)}{end}" for end in ends))
    refused = cli("init", "a b.txt", code=2).err
    follow(refused, cli)
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sorted(data.preprocessing.labels) == ["p", "q", "r"]
    assert {*data.splits["train"].lengths.tolist()} == {7}


def test_labels_in_a_file_of_another_name_by_a_key(tmp_path, monkeypatch, draw):
    monkeypatch.chdir(tmp_path)
    key, rows = name(draw) + "Id", []
    for block in range(80):
        rows += [[f"b{block}", f"E{draw.choice([1, 2, 3]) + block % 2 * 2}"] for _ in range(7)]
    write(Path("logs.csv"), [key, "Event"], rows)
    labels = [[f"b{block}", ["Normal", "Anomaly"][block % 2]] for block in range(80)]
    write(Path("anomaly_label.csv"), [key, "Label"], labels)
    config, _ = proposed("logs.csv")
    assert (config.data.id, config.data.label) == (key, "Label")
    assert config.data.join == [{"file": "anomaly_label.csv", "on": key}]


@pytest.mark.parametrize("ending", ["txt", "tsv"])
def test_blocks_of_tokens_are_refused_with_commands_that_work(
    tmp_path, monkeypatch, draw, cli, ending
):
    monkeypatch.chdir(tmp_path)
    text = "# made by hand\n"
    for block in range(60):
        words = [name(draw) for _ in range(draw.randint(2, 7))]
        text += "".join(
            f"{word}{chr(9) if ending == 'tsv' else ' '}{block % 2}\n" for word in words
        )
        text += "\n"
    Path(f"a.{ending}").write_text(text)
    refused = cli("init", f"a.{ending}", "-o", "c.yaml", code=2).err
    follow(refused, cli)
    assert "60 sequences, 2 classes" in Path("c.yaml").read_text()


@pytest.mark.parametrize("words", [("sí", "no"), ("WAHR", "FALSCH"), ("да", "нет"), ("x", "-")])
def test_marks_of_labels_in_other_languages(tmp_path, draw, words):
    labels, rows = [name(draw) + x for x in "abc"], []
    for _ in range(90):
        own = {label for label in labels if draw.random() < 0.5}
        rows.append([sentence(draw, *own), *(words[label not in own] for label in labels)])
    config, proposal = proposed(write(tmp_path / "a.csv", ["text", *labels], rows), label=labels)
    assert config.data.label == labels
    assert "several labels" in proposal.uses[0]


def test_a_synonym_of_the_label_is_not_the_sequence(tmp_path, draw):
    kinds = [draw.randint(0, 9) for _ in range(400)]
    rows = [[f"F{k}", f"ZX{k:04d}", "".join(draw.choices("ACDEFGHIKL", k=30))] for k in kinds]
    path = write(tmp_path / "a.csv", ["fam_id", "fam_code", "residues"], rows)
    config, _ = proposed(path, label="fam_id")
    assert config.data.sequence == "residues"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_sheet_is_named_and_can_be_chosen(tmp_path, monkeypatch, draw, cli, is_first):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    title, notes, text, label = (name(draw) + x for x in ("a 1", "b 2", "c", "d"))
    book = openpyxl.Workbook()
    book.active.title = notes
    for row in (["about"], ["this book"], ["was made by hand"]):
        book.active.append(row)
    sheet = book.create_sheet(title, 0 if is_first else 1)
    for row in [[text, label], *([sentence(draw, "xy"[i % 2]), "xy"[i % 2]] for i in range(60))]:
        sheet.append(row)
    book.save("a.xlsx")
    other = notes if is_first else title
    shown = cli("init", "a.xlsx", "-o", "c.yaml", code=0 if is_first else 2).err
    assert title in shown
    assert notes in shown
    option = re.findall(r"--set .*", shown)[0]
    assert shlex.split(option) == ["--set", f'data.sheet="{other}"']
    if not is_first:
        cli("init", "a.xlsx", "-o", "c.yaml", *shlex.split(option))
        data = parse_config(Path("c.yaml").read_text()).data
        assert (data.sheet, data.sequence, data.label) == (title, text, label)


@pytest.mark.parametrize("setting", ["header=false", "delimiter=pipe", "format=csv"])
def test_settings_about_the_form_of_files_are_obeyed(tmp_path, draw, setting):
    """As the options of these names are."""
    rows = [[sentence(draw), "label" if i == 0 else "uv"[i % 2]] for i in range(60)]
    path = write(tmp_path / ("a.data" if "format" in setting else "a.csv"), [], rows, "|")
    options = [f"data.{setting}", *(["data.header=false"] if "header" not in setting else [])]
    config, proposal = proposed(path, settings=options)
    assert "60 rows" in proposal.text
    assert (config.data.label, config.data.sequence) == (1, 0)


def test_a_text_in_objects_of_objects_is_refused(tmp_path, draw):
    rows = []
    for i in range(60):
        parts = [{"type": "text", "text": sentence(draw, "xy"[i % 2])}]
        rows.append(([{"role": name(draw)[:3], "content": parts}] * 2, "uv"[i % 2]))
    with pytest.raises(DataError, match="'content' holds lists or objects"):
        proposed(write_lists(tmp_path / "a.jsonl", "messages", "y", rows))


@pytest.mark.parametrize("words", [["train", "test"], ["TRAIN", "dev", "test"]])
def test_a_column_of_splits_is_no_label_and_said(tmp_path, draw, words):
    column, text, label = name(draw), name(draw) + "a", name(draw) + "b"
    rows = [[draw.choice(words), sentence(draw, "xy"[i % 2]), "xy"[i % 2]] for i in range(120)]
    config, proposal = proposed(write(tmp_path / "a.csv", [column, text, label], rows))
    assert (config.data.sequence, config.data.label) == (text, label)
    assert any(column in line and "splits" in line for line in proposal.warnings)


def test_a_second_text_that_is_not_used_is_said_with_the_option(tmp_path, draw):
    first, second = name(draw) + "a", name(draw) + "b"
    rows = [[sentence(draw, "xy"[i % 2]), sentence(draw), "xy"[i % 2]] for i in range(200)]
    path = write(tmp_path / "a.csv", [first, second, "label"], rows)
    config, proposal = proposed(path)
    line = next(line for line in proposal.warnings if second in line)
    setting = shlex.split(line[line.index("--set") :])[1]
    config, proposal = proposed(path, settings=[setting])
    assert config.data.sequence == [first, second]
    assert not any(second in line for line in proposal.warnings)


@pytest.mark.parametrize("file", ["a.txt", "it's.dat", "a.csv", "a.tsv", "b"])
@pytest.mark.parametrize("head", ["none", "names", "# names", "# comment", "R"])
@pytest.mark.parametrize("is_step", [True, False])
def test_columns_between_blanks_are_divided_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, file, head, is_step
):
    monkeypatch.chdir(tmp_path)
    names, rows = ["visit_id", "step", "temp", "kind"], list[list[Any]]()
    if is_step:
        rows = [
            [f"v{i // 8}", i % 8, f"{draw.gauss(i // 8 % 2, 1):.4e}", "uv"[i // 8 % 2]]
            for i in range(320)
        ]
    else:
        names = ["kind", *(f"x{k}" for k in range(20))]
        rows = [[i % 2 + 1, *(draw.gauss(i % 2, 1) for _ in range(20))] for i in range(40)]
    lines = [draw.choice(["  ", " \t ", "   "]).join(["", *map(str, row)]) for row in rows]
    if head == "R":
        lines = [f'"{n}" {line}'.replace("v1", '"v1"') for n, line in enumerate(lines)]
        lines.insert(0, " ".join(f'"{each}"' for each in names))
    elif head == "names":
        lines.insert(0, " \t".join(names))
    elif head != "none":
        lines.insert(0, f"# {'  '.join(names)}" if head == "# names" else "# made in May")
    Path(file).write_text("\r\n".join(lines) + "\r\n")
    refused = cli("init", file, code=2).err
    follow(refused, cli)
    config = parse_config(Path("c.yaml").read_text())
    has_names = head not in ("none", "# comment")
    assert config.data.label == ("kind" if has_names else 3 if is_step else 0)
    assert (config.data.id is not None) == is_step
    data = prepare(config)
    assert sum(map(len, data.splits.values())) == 40
    assert {*data.splits["train"].lengths.tolist()} == {8 if is_step else 20}


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "fasttext", "fasta"])
def test_a_file_of_an_unknown_ending_is_read_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, format
):
    monkeypatch.chdir(tmp_path)
    lines = list[str]()
    for i in range(80):
        label, text = "uv"[i % 2], sentence(draw, "uv"[i % 2])
        forms = {
            "csv": f"{text},{label}",
            "tsv": f"{label}\t{text}",
            "jsonl": json.dumps({"text": text, "label": label}),
            "fasttext": f"__label__{label} {text}",
            "fasta": f">{i} {label}\n{text.replace(' ', '')}",
        }
        lines.append(forms[format])
    Path("my a.data").write_text("\n".join(lines))
    refused = cli("init", "my a.data", code=2).err
    (init,) = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    cli(*shlex.split(init), "-o", "c.yaml")
    assert "80 rows, 2 classes" in Path("c.yaml").read_text()


@pytest.mark.parametrize("form", ["{}.fastq", "{}.fq.gz", "{}/1.fastq", "{}/1.fq.gz"])
def test_reads_of_each_class_are_written_as_lines_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    for label in ("it's u", "v"):
        path = Path("my reads", form.format(label))
        path.parent.mkdir(parents=True, exist_ok=True)
        reads = ["".join(draw.choices("ACGT", k=30)) for _ in range(40)]
        content = "".join(f"@{i} x=1\n{read}\n+\n{'@' * 30}\n" for i, read in enumerate(reads))
        compress = gzip.compress if path.suffix == ".gz" else bytes
        path.write_bytes(compress(content.encode()))
    refused = cli("init", "my reads", code=2).err
    init = run_conversions(cli, refused)
    if not path.parent.match("v"):  # one of the files has the same message
        assert run_conversions(cli, cli("init", path, code=2).err) == init
    cli(*init, "-o", "c.yaml")
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sorted(data.preprocessing.labels) == ["it's u", "v"]
    assert sum(map(len, data.splits.values())) == 80


def test_a_label_in_the_first_field_of_a_txt_file_of_commas(tmp_path, draw):
    rows = [["EI site", f"id {i}", sentence(draw, "up")] for i in range(40)]
    rows += [["no site", f"id {i}", sentence(draw, "down")] for i in range(40, 80)]
    config, _ = proposed(write(tmp_path / "a.txt", [], rows))
    assert (config.data.format, config.data.label) == ("csv", 0)


def test_folders_of_folders_of_recordings_are_commands_that_work(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    moves = [name(draw), name(draw)]
    for i in range(24):
        path = Path(f"rec/{moves[i % 2]}/p{i % 6}/take{i}.csv")
        write(path, ["ax", "ay"], recording(draw, i % 2))
    refused = cli("init", "rec", "-o", "c.yaml", code=2).err
    commands = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    found = []
    for command in commands:
        cli(*shlex.split(command), "-o", "c.yaml", "--force")
        found.append({*prepare(parse_config(Path("c.yaml").read_text())).preprocessing.labels})
    assert found == [{*moves}, {f"p{k}" for k in range(6)}]


def test_a_folder_beside_the_file_holds_no_labels(tmp_path, draw):
    """A folder y or labels isn't a file of labels."""
    (tmp_path / "y").mkdir()
    rows = [[sentence(draw, "xy"[i % 2]), "xy"[i % 2]] for i in range(60)]
    config, _ = proposed(write(tmp_path / "train.csv", ["text", "label"], rows))
    assert (config.data.label, config.data.join) == ("label", None)


def test_a_label_in_only_one_row_of_each_id(tmp_path, draw):
    id, when, one, state = (name(draw) + x for x in "abcd")
    rows = []
    for unit in range(40):
        steps = draw.randint(10, 20)
        for k in range(steps):
            last = ["none", "worn"][unit % 2] if k == steps - 1 else ""
            rows.append([unit + 1, k + 1, round(draw.gauss(unit % 2 * 3, 1), 2), last])
    config, proposal = proposed(write(tmp_path / "a.csv", [id, when, one, state], rows))
    assert (config.data.id, config.data.order, config.data.label) == (id, when, state)
    assert "40 sequences, 2 classes" in proposal.text


def test_rows_without_any_cells_are_no_class(tmp_path, draw):
    """Blocks of lines that aren't labelled texts: the message names no class."""
    text = "".join(f"# {i}\n" + "".join(f"{k}\t{name(draw)}\n" for k in range(4)) for i in range(9))
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError) as caught:
        proposed(str(tmp_path / "a.txt"))
    assert "None" not in str(caught.value)


def test_of_very_many_files_only_some_are_read_and_all_names_are_counted(tmp_path):
    for label, count in (("u", 2700), ("v", 2000)):
        (tmp_path / label).mkdir()
        for i in range(count):
            (tmp_path / label / f"{i}.txt").write_text(f"{label} said {i}")
    proposal = propose([str(tmp_path)], InitOptions())
    assert "rows per class: 2,000 to 2,700" in proposal.text
    assert "4,700 rows, 2 classes" in proposal.text


@pytest.mark.parametrize("has_groups", [False, True])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_titles_and_names_of_groups_are_no_names_of_columns(
    tmp_path, monkeypatch, draw, cli, ending, has_groups
):
    monkeypatch.chdir(tmp_path)
    rows = [[i, sentence(draw, way), way] for i, way in enumerate(["up", "down"] * 30, 1)]
    top = [[name(draw), "", ""], ["", "", ""], *([[name(draw), "", "x"]] if has_groups else [])]
    head, path = ["no", "words", "way"], Path(f"a.{ending}")
    if ending == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [*top, head, *rows]:
            book.active.append([cell or None for cell in row])
        book.save(path)
    else:
        write(path, top[0], [*top[1:], head, *rows])
    if ending == "csv" and has_groups:
        refused = cli("init", path, "-o", "c.yaml", code=2).err
        path = Path(run_conversions(cli, refused)[1])
    config, _ = proposed(str(path))
    assert (config.data.sequence, config.data.label) == ("words", "way")


def test_names_of_files_beside_other_columns_are_no_texts_either(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[f"{i:02d}.csv", f"S{i % 5}", "uv"[i % 2]] for i in range(24)]
    for i, row in enumerate(rows):
        write(Path("takes", row[0]), ["ax", "ay"], recording(draw, i % 2))
    write(Path("list.csv"), ["file", "person", "class"], rows)
    refused = cli("init", "list.csv", "-o", "c.yaml", code=2).err
    (command,) = re.findall(r"seqtrain (init .*)", refused)
    cli(*shlex.split(command), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, len(data.steps)) == ("file", "class", 2)
    assert len(prepare(parse_config(Path("c.yaml").read_text())).preprocessing.labels) == 2


@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_names_of_files_are_no_texts_and_the_command_reads_the_files(
    tmp_path, monkeypatch, draw, cli, ending
):
    monkeypatch.chdir(tmp_path)
    column, label, rows = name(draw) + "a", name(draw) + "b", []
    for i in range(24):
        rows.append([f"take{i:02d}.{ending}", "uv"[i % 2]])
        values = recording(draw, i % 2)
        if ending == "csv":
            write(Path(rows[-1][0]), ["ax", "ay"], values)
        else:
            np.save(rows[-1][0], np.array(values))
    write(Path("list.csv"), [column, label], rows)
    refused = cli("init", "list.csv", "-o", "c.yaml", code=2).err
    (command,) = re.findall(r"seqtrain (init .*)", refused)
    cli(*shlex.split(command), "-o", "c.yaml")
    assert "24 sequences, 2 classes" in Path("c.yaml").read_text()
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, len(data.steps)) == ("file", label, 2)


@pytest.mark.parametrize("given", [[], ["--header"]])
def test_the_header_of_a_txt_file_of_tabs_is_no_class(tmp_path, monkeypatch, draw, cli, given):
    monkeypatch.chdir(tmp_path)
    text, label = name(draw) + "x", name(draw) + "y"
    rows = [["ab"[i % 2], sentence(draw, "ab"[i % 2])] for i in range(60)]
    write(tmp_path / "a.txt", [label, text], rows, "\t")
    cli("init", "a.txt", *given, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.label, config.data.sequence) == (label, text)
    assert sorted(prepare(config).preprocessing.labels) == ["a", "b"]
    shown = cli("init", "a.txt", "-o", "c.yaml", code=2).err
    assert "-o FILE" in shown


def test_the_first_class_of_a_txt_file_of_tabs_is_no_name(tmp_path, draw):
    rows = [["label" if i % 2 else "text", sentence(draw)] for i in range(60)]
    config, proposal = proposed(write(tmp_path / "a.txt", [], rows, "\t"))
    assert config.data.format == "auto"
    assert "60 rows, 2 classes" in proposal.text


@pytest.mark.parametrize("form", ["names", "codes first", "no names"])
def test_columns_between_tabs_of_a_txt_file(tmp_path, draw, form):
    """Columns are named, or the first one has codes, or numbers are beside texts."""
    rows = []
    for i in range(60):
        label, text = "ab"[i % 2], sentence(draw, "ab"[i % 2])
        rows.append([9000 + i, label, text] if form == "codes first" else [label, 7000 + i, text])
    names = ["Grade", "#1 Nr", "#1 Note"] if form == "names" else []
    config, proposal = proposed(write(tmp_path / "a.txt", names, rows, "\t"))
    assert config.data.format == "tsv"
    expected = {"names": ("Grade", "#1 Note"), "codes first": (1, 2), "no names": (0, 2)}[form]
    assert (config.data.label, config.data.sequence) == expected
    assert "60 rows, 2 classes" in proposal.text


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_classes_before_texts_in_files_of_another_ending(
    tmp_path, monkeypatch, draw, cli, encoding
):
    monkeypatch.chdir(tmp_path)
    files = {"asked_train.label": 60, "asked_test.label": 20}
    for file, size in files.items():
        lines = [f"{'XY'[i % 2]}:{'ab'[i % 2]} {sentence(draw, 'café')} ?\n" for i in range(size)]
        Path(file).write_bytes("".join(lines).encode(encoding))
    refused = cli("init", *files, code=2).err
    follow(refused, cli)
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sorted(data.preprocessing.labels) == ["X:a", "Y:b"]
    assert len(data.splits["test"]) == 20


def test_commas_between_thousands_in_few_cells_are_read(tmp_path, draw):
    id, when, one, state = (name(draw) + x for x in "abcd")
    rows = []
    for unit in range(60):
        for k in range(6):
            amount = f"{draw.random():.2f}"
            if k == 3 and unit % 12 == 0:
                amount = f"{draw.uniform(1000, 3000):,.2f}"
            rows.append([f"u{unit}", k, amount, "xy"[unit % 2]])
    config, _ = proposed(write(tmp_path / "a.csv", [id, when, one, state], rows), id=id)
    assert config.data.bad_rows == "error"
    assert prepare(config).splits["train"].lengths.min() == 6


def test_a_header_is_refused_where_a_format_has_none(tmp_path, draw):
    lines = [f"__label__{'ab'[i % 2]} {sentence(draw)}\n" for i in range(60)]
    (tmp_path / "a.txt").write_text("".join(lines))
    with pytest.raises(DataError, match="header"):
        proposed(str(tmp_path / "a.txt"), header=True)


@pytest.mark.parametrize("given", [["visits.csv", "people.csv"], ["."]])
def test_a_second_file_with_a_row_per_id_is_joined(tmp_path, monkeypatch, draw, cli, given):
    monkeypatch.chdir(tmp_path)
    own, when, what, state = (name(draw) + x for x in ("_id", "_date", "c", "d"))
    rows = [
        [f"K{unit:03}", f"2026-01-{day + 1:02}", "pqrs"[draw.randrange(4)]]
        for unit in range(60)
        for day in range(8)
    ]
    draw.shuffle(rows)
    write(tmp_path / "visits.csv", [own, when, what], rows)
    write(tmp_path / "people.csv", [own, state], [[f"K{i:03}", "xy"[i % 2]] for i in range(60)])
    cli("init", *given, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert os.path.normpath(config.data.train) == "visits.csv"
    assert (config.data.id, config.data.label) == (own, state)
    assert len(prepare(config).preprocessing.labels) == 2
    refused = cli("init", "visits.csv", "-o", "d.yaml", code=2).err
    assert "a row per time step" in refused


def test_a_label_after_a_blank_is_divided_by_the_printed_command(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    numbers = [[f"{draw.gauss(i % 2, 1):.3f}" for _ in range(8 + i % 5)] for i in range(60)]
    lines = [" ".join([*row, "uv"[i % 2]]) for i, row in enumerate(numbers)]
    Path("a b.txt").write_text(" \r\n".join(lines))
    refused = cli("init", "a b.txt", code=2).err
    follow(refused, cli)
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sorted(data.preprocessing.labels) == ["u", "v"]
    assert {*data.splits["train"].lengths.tolist()} == {8, 9, 10, 11, 12}


@pytest.mark.parametrize("format", ["txt", "csv", "fasttext"])
def test_a_label_before_a_blank_is_divided_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, format
):
    monkeypatch.chdir(tmp_path)
    labels = [draw.choice(["FINE", "ALARM"]) for _ in range(60)]
    lines = [
        f"{label} Oct 18 18:02:0{i % 10} pump{i % 7} {sentence(draw)}"
        for i, label in enumerate(labels)
    ]
    Path("pumps.log").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as caught:
        propose(["pumps.log"], InitOptions(format=format))
    _, divide, init = caught.value.problems
    cli(*shlex.split(divide)[1:])
    _, proposal = proposed(init.split()[-1])
    assert "60 rows, 2 classes" in proposal.text


# Channels and steps in names of columns

CHANNEL_NAMES: dict[str, Callable[[str, int], str]] = {
    "by step": lambda channel, step: f"{channel}_{step}",
    "by channel": lambda channel, step: f"{channel}_{step}",
    "by characters": lambda channel, step: f"{channel}{step}",
    "step first": lambda channel, step: f"t{step} {channel}",
    "pandas": lambda channel, step: f"{channel}.{step}" if step else channel,
}


@pytest.mark.parametrize("form", CHANNEL_NAMES)
def test_numbered_columns_of_several_channels_are_joined_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    channels, steps = [name(draw) for _ in range(draw.randint(2, 4))], draw.randint(11, 14)
    places = [(channel, step) for step in range(steps) for channel in channels]
    if form == "by channel":
        places.sort()
    if form == "by characters":
        places.sort(key=lambda place: CHANNEL_NAMES[form](*place))
    rows = [[f"p{i // 8}", *(step + i % 2 for _, step in places), "ab"[i % 2]] for i in range(40)]
    names = [CHANNEL_NAMES[form](*place) for place in places]
    write(Path("it's wide.csv"), ["subject", *names, "kind"], rows, draw.choice(",;"))
    follow_printed(cli, cli("init", "it's wide.csv", code=2).err)
    config = parse_config(Path("c.yaml").read_text())
    assert (len(config.data.sequence), config.data.label) == (len(channels), "kind")
    store = prepare(config).splits["train"]
    assert {*store.lengths.tolist()} == {steps}
    assert (np.diff(store.values[:steps], axis=0) > 0).all()


def test_steps_that_are_sorted_by_characters_are_read_by_their_numbers(tmp_path, draw):
    names = sorted(f"t{step}" for step in range(12))
    rows = [[*(int(each[1:]) + draw.random() for each in names), "ab"[i % 2]] for i in range(40)]
    config, _ = proposed(write(tmp_path / "a.csv", [*names, "kind"], rows))
    assert config.data.sequence == [f"t{step}" for step in range(12)]
    names = ["v", *(f"v.{step}" for step in range(1, 12))]
    config, proposal = proposed(write(tmp_path / "b.csv", [*names, "kind"], rows))
    assert "longest 12\n" in proposal.text


@pytest.mark.parametrize("shape", ["steps", "wide", "texts"])
def test_a_name_that_occurs_twice_is_numbered_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, shape
):
    monkeypatch.chdir(tmp_path)
    twice = name(draw)
    names, rows = [twice] * 9, [[draw.random() + i % 2 for _ in range(9)] for i in range(40)]
    for i, row in enumerate(rows):
        row.append("ab"[i % 2])
    if shape == "steps":
        names = ["trip", twice, twice, "v"]
        rows = [
            [f"g{i // 6}", *(draw.random() for _ in "123"), "ab"[i // 6 % 2]] for i in range(240)
        ]
    elif shape == "texts":
        names, marks = ["words", twice, twice], [*SYLLABLES[:3], ""]
        rows = [
            [sentence(draw), draw.choice(marks), draw.choice(marks), "ab"[i % 2]] for i in range(80)
        ]
    write(Path("a b.csv"), [*names, "kind"], rows)
    refused = cli("init", "a b.csv", code=2).err
    assert run_conversion(cli, refused) == ["a b-named.csv"]
    config, _ = proposed("a b-named.csv", label="kind")
    assert config.data.label == "kind"


def test_lines_of_a_log_are_texts(tmp_path, draw):
    rows = []
    for i in range(80):
        level = draw.choice(["INFO", "ERROR"])
        line = f"Oct {i % 28 + 1} 18:02:{i % 60:02} {name(draw)}[{i}]: {sentence(draw)}"
        rows.append([level, line])
    config, _ = proposed(write(tmp_path / "a.tsv", [], rows, "\t"))
    assert (config.data.label, config.data.sequence, config.data.kind) == (0, 1, "text")


@pytest.mark.parametrize("strokes", [1, 3])
def test_strokes_of_a_drawing_are_refused_with_a_command_that_works(
    tmp_path, monkeypatch, draw, cli, strokes
):
    """With one stroke each, all drawings could be read as blocks of numbers."""
    monkeypatch.chdir(tmp_path)
    field, points = name(draw), 4

    def part() -> list[list[int]]:
        return [[draw.randrange(256) for _ in range(points)] for _ in "xy"]

    with open("drawings.ndjson", "w") as file:
        for number in range(60):
            row = {"word": f"w{number % 2}", field: [part() for _ in range(strokes + number % 2)]}
            file.write(json.dumps(row) + "\n")
    with pytest.raises(DataError) as caught:
        propose(["drawings.ndjson"], InitOptions())
    (new,) = run_conversion(cli, "\n".join(caught.value.lines))
    config, _ = proposed(new)
    assert config.data.kind == "features"
    data = prepare(config)
    assert set(data.splits["train"].lengths.tolist()) == {points * strokes, points * (strokes + 1)}
    assert data.splits["train"].values.shape[1] == 3


def test_symbols_of_letters_and_digits_keep_their_case(tmp_path, draw):
    """Bxc4 is the move of a bishop, and bxc4 that of a pawn."""
    others = ["Nf3", "e4", "Qd2", "cxd5"]
    rows = []
    for number in range(120):
        own = ["Bxc4", "bxc4"][number % 2]
        rows.append([" ".join(draw.choices([*others, own], k=20)), f"c{number % 2}"])
    config, _ = proposed(write(tmp_path / "g.csv", ["moves", "won"], rows))
    vocabulary = prepare(config).preprocessing.vocabulary
    assert vocabulary is not None
    assert {"Bxc4", "bxc4"} <= set(vocabulary.tokens)


def test_wave_lengths_stay_in_their_order(tmp_path, draw):
    names = [f"nm_{400 + at / 4:g}" for at in range(12)]
    rows = [[*(f"{draw.random() + i % 2:.3f}" for _ in names), "uv"[i % 2]] for i in range(60)]
    config, _ = proposed(write(tmp_path / "a.csv", [*names, "label"], rows))
    assert config.data.sequence in (None, names)
    first = prepare(config).splits["train"]
    assert first.lengths[0] == 12
    loaded = [float(x) for x in rows[int(first.lines[0]) - 2][:12]]
    scaled = np.corrcoef(first.values[first.offsets[0] : first.offsets[1], 0], loaded)[0, 1]
    assert scaled == pytest.approx(1, abs=1e-5)


def test_the_encoding_is_that_of_the_file_that_is_not_utf_8(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    for part, words in (("1", "plain words"), ("2", "русские слова и ещё немного")):
        lines = "".join(f"{words} {i},{'uv'[i % 2]}\n" for i in range(60))
        Path(f"part-{part}.csv").write_bytes(("text,label\n" + lines).encode("cp1251"))
    said = cli("init", "part-1.csv", "part-2.csv", "-o", "c.yaml").err
    assert "part-2.csv isn't UTF-8" in said
    assert parse_config(Path("c.yaml").read_text()).data.encoding == "windows-1251"


@pytest.mark.parametrize("lost", ["at", "page"])
def test_a_test_file_without_a_column_is_refused(tmp_path, monkeypatch, draw, cli, lost):
    monkeypatch.chdir(tmp_path)
    names = ["visit_id", "at", "page", "label"]
    rows = [
        [f"v{i}", f"2024-01-01 10:{k:02d}:00", draw.choice("xyz"), "uv"[i % 2]]
        for i in range(1100)
        for k in range(2)
    ]
    write(Path("train.csv"), names, rows)
    kept = [at for at, column in enumerate(names) if column != lost]
    write(Path("test.csv"), [names[at] for at in kept], [[row[at] for at in kept] for row in rows])
    refused = cli("init", "train.csv", "--test", "test.csv", "-o", "c.yaml", code=2).err
    assert f"'{lost}'" in refused


def test_a_class_without_a_window_is_named_as_rare(tmp_path, draw):
    """The last row of each id has a label of its own, which no window gets by majority."""
    rows = [
        [f"m{i:03d}", at, draw.random(), "last" if at == 39 else "uv"[at // 20]]
        for i in range(20)
        for at in range(40)
    ]
    path = write(tmp_path / "a.csv", ["machine_id", "at", "heat", "label"], rows)
    window = "data.window={steps: 16, stride: 8, label: majority}"
    proposal = propose([path], InitOptions([window]))
    assert any("'last'" in line for line in proposal.warnings)


def test_wave_lengths_beside_a_usual_name_are_a_header(tmp_path, draw):
    names = ["label", *(str(400 + 2 * at) for at in range(12))]
    rows = [["fo"[i % 2], *(round(draw.random(), 3) for _ in names[1:])] for i in range(60)]
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.label == "label"
    assert "2 classes" in proposal.text


@pytest.mark.parametrize("is_graded", [False, True])
def test_few_columns_of_numbers_are_a_series_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, is_graded
):
    """Few letters that tell the label, such as grades, are no ids."""
    monkeypatch.chdir(tmp_path)
    names, rows = [f"{6 * at}h" for at in range(5)], []
    for i in range(80):
        grade = ["ABCD"[i % 4]] if is_graded else []
        marks = [round(draw.gauss(i % 2, 1), 2) for _ in names]
        rows.append([f"g{i}", *marks, *grade, "uv"[i % 2]])
    write(Path("a.csv"), ["gene", *names, *(["tier"] if is_graded else []), "label"], rows)
    refused = cli("init", "a.csv", "--label", "label", "-o", "a.yaml", code=2).err
    (command,) = re.findall(r"seqtrain:   seqtrain (init .*?)  #", refused)
    said = cli(*shlex.split(command)).err
    data = parse_config(Path("a.yaml").read_text()).data
    assert (data.kind, data.sequence) == ("features", names)
    assert ("'tier' gives the label away" in said) == is_graded


@pytest.mark.parametrize("ending", ["npz", "npy"])
@pytest.mark.parametrize("several", [True, False])
def test_marks_of_classes_beside_an_array(tmp_path, draw, ending, several):
    """Labels (B, C): one 1 in each row, or several."""
    classes = draw.randint(3, 5)
    labels = np.eye(classes)[[i % classes for i in range(120)]]
    if several:
        labels[::3, 0] = labels[1::7, 1] = 1
    rows = np.array([[draw.gauss(each.argmax(), 1) for _ in range(12)] for each in labels])
    if ending == "npz":
        np.savez(path := tmp_path / "a.npz", X_train=rows, y_train=labels)
    else:
        np.save(tmp_path / "y.npy", labels)
        np.save(path := tmp_path / "X.npy", rows)
    config, proposal = proposed(str(path))
    assert (config.training.monitor == "micro_f1") == several
    assert f"{classes} classes" in proposal.uses[0]


JSON_FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "by id": lambda rows: {f"u{i}": row for i, row in enumerate(rows)},
    "by number": lambda rows: {str(i): row for i, row in enumerate(rows)},
    "by column": lambda rows: {x: {str(i): y[x] for i, y in enumerate(rows)} for x in rows[0]},
    "by column and id": lambda rows: {
        x: {f"u{i}": row[x] for i, row in enumerate(rows)} for x in rows[0]
    },
    "split": lambda rows: {"columns": [*rows[0]], "data": [[*row.values()] for row in rows]},
    "lists": lambda rows: {x: [row[x] for row in rows] for x in rows[0]},
    "by label": lambda rows: {
        x: [row["words"] for row in rows if row["kind"] == x] for x in (rows[0]["kind"], "other")
    },
    "series by label": lambda rows: {
        x: [[*map(len, row["words"].split())] for row in rows if row["kind"] == x]
        for x in (rows[0]["kind"], "other")
    },
    "rows": lambda rows: [[*row.values()] for row in rows],
}


@pytest.mark.parametrize("form", JSON_FORMS)
@pytest.mark.parametrize("indent", [None, 1])
def test_tables_in_one_object_of_json(tmp_path, monkeypatch, draw, cli, form, indent):
    """They are read, or written as rows by the printed command."""
    monkeypatch.chdir(tmp_path)
    kinds = [name(draw), "other"]
    rows = [{"words": sentence(draw, kinds[i % 2]), "kind": kinds[i % 2]} for i in range(80)]
    Path("it's a.json").write_text(json.dumps(JSON_FORMS[form](rows), indent=indent))
    file = "it's a.json"
    if form in ("lists", "by label", "series by label", "rows"):
        refused = cli("init", file, code=2).err
        (file,) = run_conversion(cli, refused)
    cli("init", file, "-o", "c.yaml")
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sum(map(len, data.splits.values())) == 80
    assert sorted(data.preprocessing.labels) == sorted(kinds)
    if form in ("by column", "by id", "split"):
        cli("fit", "c.yaml", "--set", "training.max_epochs=1", "--run-dir", "run")
        assert len(cli("predict", file, "--run", "run").out.splitlines()) == 81


def test_lists_of_labels_without_names_and_in_parquet(tmp_path, draw):
    """The first row is data, for it holds a list as the others do."""
    rows = [
        [sentence(draw), str(tuple(draw.sample(["Film Noir", "Drama", "Kids"], 2)))]
        for _ in "ab" * 60
    ]
    rows[0][1] = "('Drama', 'Kids', 'Film Noir')"
    config, proposal = proposed(write(tmp_path / "a.tsv", [], rows, "\t"))
    assert config.data.label == 1
    assert "3 classes" in proposal.text
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    marks = [[int(draw.random() < 0.4) for _ in range(5)] for _ in rows]
    table = {"doc": [row[0] for row in rows], "flag": marks}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    config, proposal = proposed(str(tmp_path / "a.parquet"))
    assert config.data.label == "flag"
    assert "5 classes" in proposal.text
