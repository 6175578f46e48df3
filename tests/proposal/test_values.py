"""Cells that are no plain numbers, ids that look like numbers, and labels with weak names."""

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.config.schema import DataConfig
from tests.helpers.printed import follow_printed
from tests.proposal.test_order import proposed


def written(path: Path, names: list[str], rows: list[list[Any]], mark: str = ",") -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=mark).writerows([names, *rows])
    return str(path)


def follow(said: str, cli: Any) -> DataConfig:
    """Run the first conversion of a message, and return the data of the config of its init."""
    follow_printed(cli, said, "-o", "followed.yaml", "--force")
    return parse_config(Path("followed.yaml").read_text()).data


def visits(cell: Callable[[random.Random], str], draw: random.Random) -> list[list[Any]]:
    """Return rows of an id, a date, a cell and a label."""
    rows = list[list[Any]]()
    for unit in range(40):
        for day in range(draw.randint(4, 9)):
            rows.append([f"K{unit:03}", f"2024-05-{1 + day:02}", cell(draw), "ab"[unit % 2]])
    return rows


def flagged(draw: random.Random, *flags: str) -> str:
    flag = draw.choice(flags) if draw.random() < 0.3 else ""
    return f"{draw.gauss(5, 1):.1f}{flag}"


MEASURED: dict[str, tuple[Callable[[random.Random], str], int]] = {
    "two": (lambda x: f"{x.randint(95, 150)}/{x.randint(55, 95)}", 2),
    "star": (lambda x: flagged(x, "*"), 1),
    "flags": (lambda x: flagged(x, " H", " L", "H"), 1),
    "units": (lambda x: x.choice([f"{x.randint(200, 999)} mV", f"{x.uniform(1, 9):.2f} V"]), 1),
    "uncertain": (lambda x: f"{x.gauss(5, 1):.1f}±0.{x.randint(1, 4)}", 2),
    "more or less": (lambda x: f"{x.gauss(5, 1):.2f} +/- 0.{x.randint(1, 4)}", 2),
    "range": (lambda x: f"{(low := x.randint(1, 40))}-{low + x.randint(1, 9)}", 2),
}


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("form", MEASURED)
def test_cells_that_are_no_plain_numbers_are_said_with_a_command(
    tmp_path, monkeypatch, cli, form, others
):
    """They hide neither the id nor the order, and the command makes numbers of them."""
    monkeypatch.chdir(tmp_path)
    cell, numbers = MEASURED[form]
    draw = random.Random(form)
    rows, names = visits(cell, draw), ["who", "day", "reading", "outcome"]
    if others:
        rows, names = [[*x, draw.gauss(2, 1)] for x in rows], [*names, "temp"]
    config, proposal = proposed(written(Path("a.csv"), names, rows))
    assert (config.data.id, config.data.order) == ("who", "day")
    assert len([line for line in proposal.warnings if line.startswith("'reading'")]) == 1
    data = follow("\n".join(proposal.warnings), cli)
    assert (data.id, data.order, data.label) == ("who", "day", "outcome")
    own = [name for name in data.steps or {} if name.startswith("reading")]
    assert len([name for name in own if not name.endswith("mark")]) == numbers


@pytest.mark.parametrize("form", ["two", "star", "unit"])
def test_measurements_in_wide_columns_are_refused_with_a_command(tmp_path, monkeypatch, cli, form):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(form)
    cell = {**MEASURED, "unit": (lambda x: f"{x.gauss(98, 1):.1f}°F", 1)}[form][0]
    rows = [[*(cell(draw) for _ in range(9)), draw.choice("ab")] for _ in range(60)]
    names = [*(f"v{step}" for step in range(9)), "outcome"]
    said = cli("init", written(Path("a.csv"), names, rows), code=2).err
    data = follow(said, cli)
    assert data.label == "outcome"
    assert data.kind == ("tokens" if form == "two" else "features")


def test_times_in_wide_columns_are_a_series(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    laps = [
        [f"1:{draw.randint(0, 59):02},{draw.randint(0, 99):02}" for _ in range(9)]
        for _ in "abcdefgh" * 8
    ]
    rows = [[f"D{row:02}", *own, draw.choice(["win", "lose"])] for row, own in enumerate(laps)]
    names = ["driver", *(f"lap{step}" for step in range(9)), "result"]
    config, _ = proposed(written(Path("a.csv"), names, rows))
    assert (config.data.kind, config.data.sequence) == ("features", names[1:-1])
    cli("init", "a.csv", "-o", "c.yaml")
    assert cli("data", "c.yaml", "--json").json["splits"]["train"]["lengths"]["1.0"] == 9


IDS: dict[str, Callable[[int, random.Random], str]] = {
    "mobile": lambda at, x: f"+49 151 {x.randint(1_000_000, 9_999_999)}",
    "paris": lambda at, x: (
        "0" + " ".join([str(x.randint(1, 9)), *(f"{x.randint(10, 99)}" for _ in "1234")])
    ),
    "town": lambda at, x: f"(0{x.randint(20, 99)}) {x.randint(100, 999)} {x.randint(1000, 9999)}",
    "file": lambda at, x: f"2023/24-{at:03}",
    "case": lambda at, x: f"20{at % 5 + 19}/{at:02}/{at:03}",
}


@pytest.mark.parametrize("with_times", [False, True])
@pytest.mark.parametrize("form", IDS)
def test_numbers_that_name_something_are_ids(tmp_path, form, with_times):
    draw, rows = random.Random(form), list[list[Any]]()
    for unit in range(50):
        own = IDS[form](unit, draw)
        for step in range(draw.randint(4, 8)):
            event = draw.choice(["call", "text", "data"])
            when = [f"2024-05-{1 + step:02} 10:00"] * with_times
            rows.append([own, *when, event, "ab"[unit % 2]])
    names = ["no", *["when"] * with_times, "event", "churn"]
    config, _ = proposed(written(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.label) == ("no", "churn")
    assert config.data.order == ("when" if with_times else None)


def test_a_date_that_names_sequences_is_said(tmp_path):
    rows = [
        [
            f"2024-{1 + day // 28:02}-{1 + day % 28:02}",
            random.Random(at).choice("xyz"),
            "ab"[day % 2],
        ]
        for day in range(60)
        for at in range(6)
    ]
    _, proposal = proposed(written(tmp_path / "a.csv", ["day", "event", "label"], rows))
    assert any("--id day" in line for line in proposal.warnings)


WORDS = ["the", "a", "good", "bad", "essay", "writes", "clear", "weak", "point", "theme"]


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=9))


@pytest.mark.parametrize(
    ("property", "label"),
    [
        *[("class", x) for x in ("mark", "grade", "result", "outcome")],
        *[("type", "severity"), ("ship_class", "outcome"), ("category", "rating")],
    ],
)
@pytest.mark.parametrize("has_id", [False, True])
def test_a_label_that_may_be_a_property_comes_after_others_and_is_said(
    tmp_path, property, label, has_id
):
    draw, rows, names = random.Random(label), list[list[Any]](), [property, label]
    for unit in range(60):
        own = [draw.choice(["7a", "8b", "8c"]), draw.choice(["low", "high"])]
        if has_id:
            rows += [[f"T{unit}", step, draw.random(), *own] for step in range(6)]
        else:
            rows += [[sentence(draw), *own]]
    names = ["track_id", "t", "speed", *names] if has_id else ["essay", *names]
    config, proposal = proposed(written(tmp_path / "a.csv", names, rows))
    assert config.data.label == label
    assert any(f"--label {property}" in line for line in proposal.warnings)
    unknown = [name if name != label else "moored" for name in names]
    config, proposal = proposed(written(tmp_path / "a.csv", unknown, rows))
    assert config.data.label == property
    assert any("--label moored" in line for line in proposal.warnings)


def test_a_property_is_the_label_without_a_doubt_where_it_is_the_only_one(tmp_path):
    draw = random.Random(1)
    rows = [[sentence(draw), draw.choice("abc")] for _ in range(60)]
    config, proposal = proposed(written(tmp_path / "a.csv", ["essay", "class"], rows))
    assert config.data.label == "class"
    assert not any("--label" in line for line in proposal.warnings)


@pytest.mark.parametrize("mark", [",", ";"])
@pytest.mark.parametrize("named", [False, True])
def test_marks_beside_blank_cells_are_two_classes_after_a_command(
    tmp_path, monkeypatch, cli, mark, named
):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(mark)
    rows = [[sentence(draw), draw.choice(["x", "", " "])] for _ in range(60)]
    path = written(Path("a.csv"), ["text", "is it spam"], rows, mark)
    options = ("--label", "is it spam") if named else ()
    said = cli("init", path, *options, code=2).err
    data = follow(said, cli)
    assert data.label == "is it spam"
    found = cli("data", "followed.yaml", "--json").json["splits"]["train"]["labels"]
    assert {*found} == {"x", "no"}


def test_marks_beside_another_label_are_said(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(2)
    rows = [[sentence(draw), draw.choice("abc"), draw.choice(["x", ""])] for _ in range(60)]
    path = written(Path("a.csv"), ["text", "source", "spam"], rows)
    _, proposal = proposed(path)
    assert any("--label spam" in line for line in proposal.warnings)
    assert follow(cli("init", path, "--label", "spam", code=2).err, cli).label == "spam"


@pytest.mark.parametrize("named", ["note", "remark", "description"])
def test_texts_that_repeat_beside_ids_of_rows_are_no_ids(tmp_path, named):
    draw = random.Random(named)
    texts = [sentence(draw) for _ in range(40)]
    labels = [draw.choice(["open", "closed"]) for _ in texts]
    rows = list[list[Any]]()
    for row in range(500):
        at = draw.randrange(len(texts))
        rows.append([f"A{row:04}", texts[at], draw.randint(1, 999), labels[at]])
    config, _ = proposed(written(tmp_path / "a.csv", ["ref", named, "amount", "status"], rows))
    assert (config.data.id, config.data.sequence) == (None, named)
    assert config.data.label == "status"


def test_the_states_of_one_recording_are_no_ids(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw, state, rows = random.Random(4), 0, list[dict[str, Any]]()
    for step in range(900):
        state = draw.randrange(4) if draw.random() < 0.03 else state
        own = {"ts": 1_700_000_000 + 30 * step, "temp": draw.gauss(20, 1), "occupancy": state}
        rows.append({**own, "hvac": "on" if state else "off"})
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "--label occupancy" in cli("init", "a.jsonl", code=2).err
    data = follow(cli("init", "a.jsonl", "--label", "occupancy", code=2).err, cli)
    assert (data.id, data.order, data.label) == ("part", "ts", "occupancy")


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("parts", [["act"], ["act", "scene"], ["chapter"]])
def test_a_count_within_parts_of_a_sequence_is_the_order(tmp_path, parts, shuffled):
    draw = random.Random(len(parts))
    rows = [
        [f"play{play}", act, *[scene] * (len(parts) > 1), line, draw.choice("ABC"), "xy"[play % 2]]
        for play in range(20)
        for act in range(1, 4)
        for scene in range(1, 2 + (len(parts) > 1))
        for line in range(1, 9)
    ]
    if shuffled:
        draw.shuffle(rows)
    names = ["play", *parts, "line", "speaker", "genre"]
    config, _ = proposed(written(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.order) == ("play", [*parts, "line"])


def test_an_amount_per_tonne_is_no_time(tmp_path):
    draw = random.Random(3)
    rows = [
        [f"H{hole}", draw.random(), draw.choice(["granite", "schist"]), ["ore", "waste"][hole % 2]]
        for hole in range(30)
        for _ in range(9)
    ]
    config, proposal = proposed(
        written(tmp_path / "a.csv", ["hole", "Au g/t", "rock", "class"], rows)
    )
    assert (config.data.id, config.data.order) == ("hole", None)
    assert not any("--order" in line for line in proposal.warnings)
