"""The column by which `init` sorts the rows of an id, where the file has them in another order."""

import random
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, parse_config
from seqtrain.proposal import InitOptions, Proposal, propose
from tests.proposal.test_roles import write

STARTS = 1_700_000_000


def log(when: str, kind: str, shape: str, **names: str) -> tuple[list[str], list[list[Any]]]:
    """Return the names and the rows of an event log: shuffled, newest first, or in blocks of ids.

    The column `when` holds seconds, milliseconds or a count. Labels have different places.
    """
    draw, blocks = random.Random(repr((when, kind, shape))), []
    for case in range(50):
        label, at, rows = draw.choice(["no", "yes"]), STARTS + draw.randrange(10**6), []
        for step in range(draw.randint(4, 9)):
            at += draw.randint(1, 5000)
            time = {"seconds": at, "ms": 1000 * at + draw.randrange(1000), "count": step + 1}[kind]
            place = draw.choice("abcd" if label == "no" else "cdef")
            rows.append([f"C{case}", time, place, round(draw.gauss(9, 2), 2), label])
        blocks.append(rows[::-1] if shape == "newest" else rows)
    rows = [row for block in blocks for row in block]
    if shape == "shuffled":
        draw.shuffle(rows)
    header = {"id": "case_id", "place": "place", "amount": "amount", "label": "outcome"} | names
    return [header["id"], when, header["place"], header["amount"], header["label"]], rows


def proposed(path: str, **options: Any) -> tuple[Config, Proposal]:
    proposal = propose([path], InitOptions(**options))
    return parse_config(proposal.text), proposal


NAMES = ["ts_ms", "time_ms", "timecreated", "epoch_ms", "Created At", "EventTime", "zeitstempel"]
COUNTERS = ["week", "seq", "frame", "event_nr", "visit_month", "Position"]


@pytest.mark.parametrize("shape", ["shuffled", "newest"])
@pytest.mark.parametrize(
    ("when", "kind"),
    [*((name, "ms") for name in NAMES), *((name, "count") for name in COUNTERS), ("x7", "seconds")],
)
def test_rows_in_another_order_are_sorted(tmp_path, when, kind, shape):
    """A column is the order by its name, or as it holds the times of a log without such a name."""
    config, proposal = proposed(write(tmp_path / "a.csv", *log(when, kind, shape)))
    assert (config.data.id, config.data.order) == ("case_id", when)
    assert config.data.steps["place"] == "token"
    assert when not in config.data.steps
    is_said = any("newest first" in line for line in proposal.warnings)
    assert is_said == (shape == "newest")


def test_a_count_without_a_name_is_the_order_unless_it_counts_down(tmp_path):
    config, _ = proposed(write(tmp_path / "a.csv", *log("u", "count", "shuffled")))
    assert config.data.order == "u"
    config, _ = proposed(write(tmp_path / "a.csv", *log("u", "count", "newest")))
    assert (config.data.order, config.data.steps["u"]) == (None, "number")


@pytest.mark.parametrize("step", [0.1, 0.02, 1 / 3])
def test_a_count_by_a_fraction_is_the_order(tmp_path, step):
    names, rows = log("u", "count", "blocks")
    for row in rows:
        row[1] = step * row[1]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.order == "u"


def test_spans_of_time_are_numbers(tmp_path):
    names, rows = log("reaction_time_ms", "count", "shuffled")
    draw = random.Random(3)
    for row in rows:
        row[1] = 10 * draw.randrange(20, 300)
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.order, config.data.steps["reaction_time_ms"]) == (None, "number")


def test_where_no_column_is_the_order_possible_ones_are_commands(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, rows = log("event_id", "count", "shuffled")
    draw = random.Random(3)
    for row, number in zip(rows, draw.sample(range(10**6), len(rows)), strict=True):
        row[1] = number
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.order is None
    assert any(line.startswith("order: ") for line in proposal.uses)
    assert any("--order event_id" in line for line in proposal.warnings)
    cli("init", "a.csv", "--order", "event_id", "-o", "b.yaml")
    assert parse_config(Path("b.yaml").read_text()).data.order == "event_id"


def test_a_count_of_rows_sorts_those_of_one_day(tmp_path):
    names, rows = log("count", "count", "shuffled")
    rows = [[f"2024-03-{1 + row[1] // 3:02}", *row] for row in rows]
    config, _ = proposed(write(tmp_path / "a.csv", ["day", *names], rows))
    assert config.data.order == "count"


EVENT_LOGS = {
    "pm4py": {
        "id": "case:concept:name",
        "place": "concept:name",
        "amount": "case:amount",
        "label": "case:outcome",
    },
    "Disco": {
        "id": "Case ID",
        "place": "Activity",
        "amount": "case: sum",
        "label": "(case) Outcome",
    },
    "dots": {"id": "log.case.id", "place": "log.what", "amount": "case.cost", "label": "log.label"},
}


@pytest.mark.parametrize("form", EVENT_LOGS)
@pytest.mark.parametrize("when", ["time:timestamp", "Complete Timestamp"])
def test_prefixes_of_event_logs(tmp_path, form, when):
    """The part of a name after its prefix counts. Amounts of a case are numbers, not codes."""
    own = EVENT_LOGS[form]
    names, rows = log(when, "ms", "shuffled", **own)
    kinds = {case: ["A", "B", "C"][int(case[1:]) % 3] for case, *_ in rows}
    rows = [[*row, kinds[row[0]], "xyz"[index % 3]] for index, row in enumerate(rows)]
    names = [*names, "case:kind", "org:resource"]
    data = proposed(write(tmp_path / "a.csv", names, rows))[0].data
    assert (data.id, data.order, data.label) == (own["id"], when, own["label"])
    assert (data.steps[own["place"]], data.steps[own["amount"]]) == ("token", "number")
    assert (data.static, data.steps["org:resource"]) == ({"case:kind": "token"}, "token")
