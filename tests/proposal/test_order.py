"""The columns by which `init` sorts the rows of an id, where the file has them in another order."""

import random
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import Config, parse_config
from seqtrain.proposal import InitOptions, Proposal, propose
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.inputs import Input
from seqtrain.sequences.schema import Schema
from tests.helpers.printed import follow_printed, run_conversion
from tests.helpers.reading import completed, read_rows
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
    config, proposal = proposed(write(tmp_path / "a.csv", *log("u", "count", "newest")))
    assert (config.data.order, config.data.steps["u"]) == (None, "number")
    assert any("--order u" in line for line in proposal.warnings)


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


MONTH_NAMES = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "es": "ene feb mar abr may jun jul ago sep oct nov dic",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
    "nl": "jan. feb. mrt. apr. mei juni juli aug. sept. okt. nov. dec.",
}


def in_words(language: str, form: str) -> Callable[[datetime], list[Any]]:
    names = MONTH_NAMES[language].split()
    return lambda at: [form.format(at.day, names[at.month - 1], at.year), f"{at:%H:%M}"]


MOMENTS: dict[str, tuple[list[str], int, Callable[[datetime], list[Any]]]] = {
    "iso": (["date", "time"], 60, lambda at: [f"{at:%Y-%m-%d}", f"{at:%H:%M:%S}"]),
    "points": (["Datum", "Uhrzeit"], 60, lambda at: [f"{at:%d.%m.%Y}", f"{at:%H:%M}"]),
    "us": (["when", "hour:minute"], 60, lambda at: [f"{at:%m/%d/%Y}", f"{at:%I:%M %p}"]),
    "whole": (["date", "start_time"], 60, lambda at: [f"{at:%Y%m%d}", f"{at.hour}:{at:%M}"]),
    "day": (["day", "time"], 60, lambda at: [(at - DAY_ONE).days, f"{at:%H:%M}"]),
    "step": (["session", "turn"], 60, lambda at: [(at - DAY_ONE).days, at.hour * 60 + at.minute]),
    "hours": (["day", "hour"], 7200, lambda at: [(at - DAY_ONE).days, at.hour]),
    "months": (["year", "month"], 86400 * 31, lambda at: [at.year, at.month]),
    "days": (["year", "month", "day"], 86400, lambda at: [at.year, at.month, at.day]),
    "quarters": (["quarter"], 86400 * 95, lambda at: [f"{at.year}-Q{(at.month + 2) // 3}"]),
    "Q": (["period"], 86400 * 95, lambda at: [f"Q{(at.month + 2) // 3} {at.year}"]),
    "weeks": (["week"], 86400 * 7, lambda at: ["{}-W{:02}".format(*at.isocalendar())]),
    "KW": (["woche"], 86400 * 7, lambda at: ["KW {1}/{0}".format(*at.isocalendar())]),
    "Uhr": (["am", "Uhrzeit"], 60, lambda at: [f"{at:%d.%m.%Y}", f"{at:%H:%M} Uhr"]),
    "um": (["am"], 60, lambda at: [f"{at:%d.%m.%Y} um {at:%H:%M} Uhr"]),
    "dash": (["when"], 60, lambda at: [f"{at:%Y-%m-%d} – {at:%H:%M}"]),
    "kanji": (["日付"], 86400, lambda at: [f"{at.year}年{at.month}月{at.day}日"]),
    "Quartal": (["q"], 86400 * 95, lambda at: [f"{(at.month + 2) // 3}. Quartal {at.year}"]),
    "Korean": (["시각"], 60, lambda at: [f"{at:%Y-%m-%d} {HALVES[at.hour > 11]} {at:%I:%M:%S}"]),
    "Korean dates": (["날짜"], 86400, lambda at: [f"{at.year}년 {at.month}월 {at.day}일"]),
    "Sheets": (["when"], 86400, lambda at: [f"{at.year}. {at.month}. {at.day} 오후 3:15:07"]),
    "Spanish half": (["hora"], 60, lambda at: [f"{at:%d/%m/%Y %I:%M} {'ap'[at.hour > 11]}. m."]),
    "units": (["time"], 60, lambda at: [in_units(at - DAY_ONE)]),
    "day unit": (["time"], 86400, lambda at: [f"{(at - DAY_ONE).days}d"]),
    "T-": (["t"], 86400, lambda at: [f"T{(at - DAY_ONE).days - 600:+}"]),
    "halves": (["when"], 86400 * 185, lambda at: [f"{at.year}-H{1 + at.month // 7}"]),
    "Halbjahr": (["am"], 86400 * 185, lambda at: [f"{1 + at.month // 7}. Halbjahr {at.year}"]),
    "Q/YY": (["q"], 86400 * 95, lambda at: [f"Q{(at.month + 2) // 3}/{at:%y}"]),
    "YYYY-Mon": (["when"], 86400 * 31, lambda at: [f"{at:%Y-%b}"]),
    "month": (["month"], 86400 * 31, lambda at: [f"{at:%Y-%m}"]),
    "MM/YYYY": (["period"], 86400 * 31, lambda at: [f"{at:%m/%Y}"]),
    **{
        language: (["d", "time"], 60, in_words(language, form))
        for language, form in [
            ("de", "{}. {} {}"), ("fr", "{} {} {}"), ("es", "{} de {} de {}"), ("it", "{} {} {}"),
            ("pt", "{}-{}-{}"), ("nl", "{} {} {}"),
        ]
    },
}  # fmt: skip
DAY_ONE, HALVES = datetime(2023, 1, 1), ("오전", "오후")


def in_units(time: timedelta) -> str:
    """Return a time in hours and minutes, or in days if it is long."""
    minutes = time // timedelta(minutes=1)
    if minutes % 3 == 0:
        return f"{minutes} min"
    return f"{minutes // 60}h {minutes % 60}m"


def moments(form: str, shape: str) -> tuple[list[str], list[list[Any]]]:
    """Return the names and rows of a table whose events count the steps of each id."""
    names, seconds, cells_of = MOMENTS[form]
    draw, rows = random.Random(form + shape), list[list[Any]]()
    for unit in range(40):
        at = DAY_ONE + timedelta(hours=draw.randrange(24 * 600))
        for step in range(draw.randint(5, 9)):
            value = draw.gauss(unit % 2, 1)
            rows.append([f"u{unit}", *cells_of(at), f"e{step}", f"{value:.3f}", "xy"[unit % 2]])
            at += timedelta(seconds=seconds * draw.randint(1, 4 if seconds > 60 else 400))
    if shape == "shuffled":
        draw.shuffle(rows)
    elif shape == "newest":
        rows.reverse()
    return ["unit_id", *names, "event", "value", "label"], rows


def are_sorted(path: str, config: Config) -> bool:
    """Return True if the events of each id that `fit` reads count its steps."""
    source = Input(path, Schema.from_config(config.data, path))
    place = [name for name, kind in (config.data.steps or {}).items() if "token" in kind]
    for example in read_rows(replace(source, schema=completed(source))):
        assert example.problem is None, example.problem
        events = example.sequence.token_texts()[place.index("event")]
        if events != [f"e{step}" for step in range(len(events))]:
            return False
    return True


SHAPES = [(form, "shuffled") for form in MOMENTS]
SHAPES += [(form, shape) for form in ("iso", "step", "months") for shape in ("in order", "newest")]


@pytest.mark.parametrize(("form", "shape"), SHAPES)
def test_rows_are_sorted_by_all_columns_that_tell_when(tmp_path, form, shape):
    """A date and a time of day, a day and a step, a year and a month, quarters, weeks, months."""
    path = write(tmp_path / "a.csv", *moments(form, shape))
    config, _ = proposed(path, label="label")
    assert are_sorted(path, config)
    assert config.data.order is not None


def test_dates_as_numbers_with_the_year_last_are_said(tmp_path):
    names, rows = moments("whole", "shuffled")
    rows = [
        [row[0], f"{row[1][6:]}{row[1][4:6]}{row[1][:4]}".lstrip("0"), *row[3:]] for row in rows
    ]
    config, proposal = proposed(write(tmp_path / "a.csv", names[:2] + names[3:], rows))
    assert config.data.order is None
    assert "date" not in config.data.steps
    assert any("'date'" in line and "file" in line for line in proposal.warnings)


def test_a_time_of_day_that_may_sort_rows_of_a_day_is_an_option(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    names, rows = moments("iso", "shuffled")
    path = write(Path("a.csv"), [names[0], "date", "x7", *names[3:]], rows)
    said = cli("init", path, "--label", "label", "-o", "c.yaml").err
    (options,) = re.findall(r"(--order .*)", said)
    cli("init", path, "--label", "label", *shlex.split(options), "-o", "d.yaml")
    assert are_sorted(path, parse_config(Path("d.yaml").read_text()))


@pytest.mark.parametrize("cell", ["{} days ago", "2023.{}.x"])
def test_tokens_named_like_times_are_said(tmp_path, cell):
    names, rows = moments("YYYY-Mon", "shuffled")
    rows = [[row[0], cell.format(index % 5), *row[2:]] for index, row in enumerate(rows)]
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows), label="label")
    assert config.data.steps["when"] == "token"
    assert any("'when'" in line and "order of the file" in line for line in proposal.warnings)


@pytest.mark.parametrize("is_mixed", [False, True])
def test_times_of_day_across_midnight_keep_the_order_of_the_file(tmp_path, is_mixed):
    draw, rows = random.Random(2), list[list[Any]]()
    for unit in range(40):
        at = DAY_ONE + timedelta(hours=23, minutes=draw.randint(40, 59))
        for step in range(8):
            value = draw.gauss(unit % 2, 1)
            rows.append([f"u{unit}", f"{at:%H:%M:%S}", f"e{step}", value, "xy"[unit % 2]])
            at += timedelta(seconds=draw.randint(60, 900))
    if is_mixed:
        rows.sort(key=lambda row: row[2])
    path = write(tmp_path / "a.csv", ["unit_id", "time", "event", "value", "label"], rows)
    config, proposal = proposed(path, label="label")
    assert are_sorted(path, config)
    assert any("midnight" in line and "'time'" in line for line in proposal.warnings)


def test_an_order_with_a_unit_sorts_rows(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(4)
    lines = []
    for number in range(40):
        times = [f"{100 + 17 * step}ms" for step in range(6)]
        draw.shuffle(times)
        lines += [f"k{number},{at},{draw.choice('xyz')},{'uv'[number % 2]}" for at in times]
    Path("a.csv").write_text("visit_id,time,page,label\n" + "\n".join(lines) + "\n")
    cli("init", "a.csv", "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.order, data.units) == ("time", {"time": "ms"})


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize(
    ("times", "crosses"),
    [
        ([f"Nov 29 10:{k:02}:00" for k in range(4)], False),
        ([*(f"Dec 29 10:{k:02}:00" for k in range(3)), "Jan  2 09:00:00"], True),
        (["Tue", "Wed", "Fri", "Sat"], False),
        (["Sat 14:05", "Sun 09:15", "Mon 10:00", "Mon 11:30"], True),
        (["lundi", "mardi", "mercredi", "vendredi"], False),
        (["Sonnabend", "Sonntag", "Montag", "Dienstag"], True),
        (["jan", "mar", "out", "dez"], False),
    ],
)
def test_times_without_a_week_or_a_year(tmp_path, monkeypatch, cli, times, crosses, is_mixed):
    """Where they begin again, rows stay in the order of the file, or the doubt has an option."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(str(times))
    rows = [[f"k{n}", at, f"e{k}", "uv"[n % 2]] for n in range(40) for k, at in enumerate(times)]
    if is_mixed:
        draw.shuffle(rows)
    write(Path("a.csv"), ["host_id", "when", "event", "label"], rows)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    config = parse_config(Path("c.yaml").read_text())
    if not crosses:
        assert config.data.order == "when"
        assert are_sorted("a.csv", config)
    elif is_mixed:
        (option,) = re.findall(r"(--set data.order=\S+)", said)
        cli("init", "a.csv", "--label", "label", *option.split(), "-o", "d.yaml")
        assert parse_config(Path("d.yaml").read_text()).data.order is None
    else:
        assert config.data.order is None
        assert are_sorted("a.csv", config)
        assert "begin again" in said


PARTS: dict[str, tuple[list[Any], int]] = {
    "half minute": ([1, 2], 0),
    "Half Time Minute": (["1H", "2H"], 12),
    "half slot": (["1st", "2nd", "3rd"], 0),
    "quarter second": (["Q1", "Q2", "Q3", "Q4"], 0),
    "period time": ([1, 2, 3], 0),
    "Set Punkt": (["Set 1", "Set 2"], 0),
    "chapter verse": ([3, 4, 9], 1),
    "Monat Tag": (["Januar", "März", "Mai", "Dezember"], 0),
    "weekday slot": (["Monday", "Tuesday", "Thursday"], 0),
    "Wochentag Uhrzeit": (["Mo", "Di", "Do", "So"], 0),
    "jour heure": (["lun.", "mar.", "mer.", "jeu."], 0),
}


@pytest.mark.parametrize("shape", ["shuffled", "in order"])
@pytest.mark.parametrize("names", PARTS)
def test_rows_of_a_part_that_counts_again(tmp_path, names, shape):
    """Halves and minutes, quarters and seconds, months and days: both columns sort the rows."""
    parts, restart = PARTS[names]
    coarse, fine = names.rsplit(maxsplit=1)
    draw, rows = random.Random(names + shape), list[list[Any]]()
    for unit in range(40):
        count = 0
        for place, part in enumerate(parts):
            for at in sorted(draw.sample(range(1, 24), draw.randint(3, 6))):
                at += restart * place
                cell = f"{at}:30" if fine in ("Uhrzeit", "heure") else at
                value = draw.gauss(unit % 2, 1)
                rows.append([f"u{unit}", part, cell, f"e{count}", value, "xy"[unit % 2]])
                count += 1
    if shape == "shuffled":
        draw.shuffle(rows)
    path = write(tmp_path / "a.csv", ["unit_id", coarse, fine, "event", "value", "label"], rows)
    config, _ = proposed(path, label="label")
    assert (config.data.id, config.data.order) == ("unit_id", [coarse, fine])
    assert are_sorted(path, config)


TWO_YEARS = [(year, month) for year in (2019, 2020) for month in range(1, 13)]
STEP_NAMES: dict[str, list[str]] = {
    "dashes": [f"q-{k}" for k in range(9, 0, -1)] + ["q0"] + [f"q+{k}" for k in range(1, 12)],
    "signs": [f"v{k:+}" for k in range(-6, 7)],
    "words": [f"t_minus_{k}" for k in (5, 4, 3, 2, 1)] + ["t_0", "t_plus_1", "t_plus_2"],
    "frames": [f"u(t-{k})" for k in range(12, 0, -1)] + ["u(t)"],
    "lags": [f"Lag {k}" for k in range(14, 0, -1)],
    "brackets": [f"z[{k}]" for k in range(13)],
    "years and months": [f"EVI_{year}_{month:02}" for year, month in TWO_YEARS],
    "months": [f"{year}-{month:02}" for year, month in TWO_YEARS],
    "short years": [f"{DAY_ONE.replace(month=month):%b}_{year % 100}" for year, month in TWO_YEARS],
    "names": [f"gasto {name.strip('.')}" for name in MONTH_NAMES["es"].split()],
    "days": [f"May {day}" for day in range(20, 32)] + [f"Jun {day}" for day in range(1, 5)],
    "quarters": [f"Q{quarter} {year}" for year in (2019, 2020, 2021) for quarter in (1, 2, 3, 4)],
    "US dates": [
        f"{at.month}/{at.day}/{at:%y}" for at in (DAY_ONE + timedelta(day) for day in range(-9, 25))
    ],
}


@pytest.mark.parametrize("shape", ["in order", "shuffled", "newest"])
@pytest.mark.parametrize("form", STEP_NAMES)
def test_columns_of_one_channel_are_in_the_order_of_their_names(tmp_path, form, shape):
    draw, steps = random.Random(form + shape), STEP_NAMES[form]
    names = {"in order": steps, "newest": steps[::-1], "shuffled": draw.sample(steps, len(steps))}
    rows = [[*(round(draw.gauss(n % 2, 1), 3) for _ in steps), "xy"[n % 2]] for n in range(60)]
    rows = [[f"site {n}", *row] for n, row in enumerate(rows)]
    path = write(tmp_path / "a.csv", ["site", *names[shape], "label"], rows)
    config, proposal = proposed(path, label="label")
    if form == "brackets" and shape == "newest":  # plain numbers may be written as they are meant
        steps = steps[::-1]
    assert config.data.sequence == steps
    is_said = any("--set" in line and "data.sequence" in line for line in proposal.warnings)
    assert is_said == (shape == "newest" and form in ("lags", "frames"))


FILE_ORDERS: dict[str, list[str]] = {
    "quarter first": [f"{quarter}Q{year}" for year in (22, 23, 24) for quarter in (1, 2, 3, 4)],
    "half years": [f"{half}. HJ {year}" for year in range(2015, 2020) for half in (1, 2)],
    "terms": [f"Term{term}_{year}" for year in (2019, 2020, 2021) for term in (1, 2, 3)],
    "weeks": [f"CW{week}_{year}" for year in (22, 23, 24) for week in (50, 51, 52)],
    "days and months": [f"{day}.01." for day in range(25, 32)] + [f"0{k}.02." for k in range(1, 6)],
    "hours of days": [f"h{hour}_d{day}" for day in (1, 2) for hour in range(0, 24, 3)],
    "signed": [str(ms) for ms in range(-200, 300, 50)],
    "signs and units": [f"{ms} ms" for ms in range(-200, 300, 50)],
    "signs after a letter": [f"t{ms}" for ms in range(-200, 300, 50)],
    "night": [f"{hour % 24:02}:00" for hour in range(18, 31)],
    "night hours": [f"{hour % 24}h" for hour in range(18, 31)],
    "half days": [f"{(hour - 1) % 12 + 1}{'ap'[hour // 12]}m" for hour in range(6, 20)],
    "hours with decimals": ["C0h", "C0.5h", *(f"C{hour}h" for hour in (1, 2, 4, 8, 12, 24))],
}
WORDS = {
    "short months": "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "dots": "Jan. Feb. March April May June July Aug. Sept. Oct. Nov. Dec.",
    "other words": "oct nov dec jan feb march april krok june july aug sept",
    "accents": "Jan_22 Feb_22 Mär_22 Apr_22 Mai_22 Jun_22 Jul_22 Aug_22 Sep_22 Okt_22",
}
FILE_ORDERS |= {form: words.split() for form, words in WORDS.items()}


@pytest.mark.parametrize("form", FILE_ORDERS)
def test_columns_of_one_channel_stay_in_the_order_of_a_file_that_makes_sense(tmp_path, form):
    draw, names = random.Random(form), FILE_ORDERS[form]
    rows = [[*(round(draw.gauss(n % 2, 1), 3) for _ in names), "xy"[n % 2]] for n in range(60)]
    rows = [[f"site {n}", 1950 + n, *row] for n, row in enumerate(rows)]
    path = write(tmp_path / "a.csv", ["site", "built", *names, "label"], rows)
    config, proposal = proposed(path, label="label")
    assert config.data.sequence == names
    assert not any("data.sequence" in line for line in proposal.warnings)


@pytest.mark.parametrize("form", ["beside", "years down", "sorted by letters"])
def test_doubtful_columns_of_steps_are_said_with_a_command(tmp_path, monkeypatch, cli, form):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(form)
    names = {
        "beside": ["baseline", *(f"week {week}" for week in range(2, 20, 2))],
        "years down": [str(year) for year in range(2020, 2008, -1)],
        "sorted by letters": [f"Term{k}_{year}" for k in (1, 2, 3) for year in (2019, 2020, 2021)],
    }[form]
    expected = {
        "beside": names,
        "years down": names[::-1],
        "sorted by letters": [f"Term{k}_{year}" for year in (2019, 2020, 2021) for k in (1, 2, 3)],
    }[form]
    rows = [[*(round(draw.gauss(n % 2, 1), 3) for _ in names), "xy"[n % 2]] for n in range(60)]
    write(Path("a b.csv"), [*names, "label"], rows)
    said = cli("init", "a b.csv").err
    (option,) = re.findall(r"--set 'data.sequence=.*'", said)
    cli("init", "a b.csv", *shlex.split(option), "-o", "b.yaml")
    assert parse_config(Path("b.yaml").read_text()).data.sequence == expected


@pytest.mark.parametrize("shape", ["in order", "shuffled", "newest"])
@pytest.mark.parametrize(
    ("names", "form"),
    [
        (["quarter", "clock"], "clock"),
        (["period", "game_clock"], "clock"),
        (["set", "time_left"], "number"),
        (["timer"], "clock"),
        (["seconds_remaining"], "number"),
    ],
)
def test_what_counts_down_keeps_the_order_or_is_a_command(
    tmp_path, monkeypatch, cli, names, form, shape
):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(str(names) + shape), list[list[Any]]()
    for unit in range(40):
        own = list[list[Any]]()
        for part in range(1, 1 + len(names)):
            for left in sorted(draw.sample(range(600), 5), reverse=True):
                cell = f"{left // 60}:{left % 60:02}" if form == "clock" else left
                value = draw.gauss(unit % 2, 1)
                own.append(
                    [
                        f"u{unit}",
                        *[part][: len(names) - 1],
                        cell,
                        f"e{len(own)}",
                        value,
                        "xy"[unit % 2],
                    ]
                )
        rows += own[::-1] if shape == "newest" else own
    if shape == "shuffled":
        draw.shuffle(rows)
    path = write(Path("a b.csv"), ["unit_id", *names, "event", "value", "label"], rows)
    said = cli("init", path, "--label", "label", "-o", "c.yaml").err
    if shape == "in order":
        assert are_sorted(path, parse_config(Path("c.yaml").read_text()))
        return
    (turned,) = follow_printed(cli, said, "-o", "d.yaml")
    assert are_sorted(turned, parse_config(Path("d.yaml").read_text()))


@pytest.mark.parametrize("first", ["received_at", "timestamp"])
def test_a_second_column_of_times_is_an_option(tmp_path, monkeypatch, cli, first):
    monkeypatch.chdir(tmp_path)
    names, rows = moments("iso", "shuffled")
    draw, table = random.Random(first), list[list[Any]]()
    for unit, day, time, *rest in rows:
        at = datetime.fromisoformat(f"{day} {time}")
        later = at + timedelta(seconds=draw.randrange(10**6))
        times = [at, later] if first == "timestamp" else [later, at]
        table.append([unit, *(f"{x:%Y-%m-%d %H:%M:%S}" for x in times), *rest])
    other = {"received_at": "timestamp", "timestamp": "received_at"}[first]
    write(Path("a.csv"), ["unit_id", first, other, *names[3:]], table)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.order == "timestamp"
    assert are_sorted("a.csv", config)
    (option,) = re.findall(r"(--order \S+)", said)
    cli("init", "a.csv", "--label", "label", *option.split(), "-o", "d.yaml")
    assert parse_config(Path("d.yaml").read_text()).data.order == "received_at"


@pytest.mark.parametrize("names", [("block", "shot"), ("day", "page"), ("section", "page_nr")])
def test_counted_columns_that_contradict_the_file_are_doubted_with_an_option(
    tmp_path, monkeypatch, cli, names
):
    """The rows of each id stand together in their true order, and the columns say nothing."""
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(str(names)), list[list[Any]]()
    for unit in range(40):
        for step in range(draw.randint(5, 9)):
            own = [draw.randint(1, 24), draw.randint(1, 400), f"e{step}", draw.random()]
            rows.append([f"u{unit}", *own, "xy"[unit % 2]])
    write(Path("a.csv"), ["unit_id", *names, "event", "value", "label"], rows)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    options = re.findall(r"(--set data.order=\S+)", said)
    if not are_sorted("a.csv", parse_config(Path("c.yaml").read_text())):
        cli("init", "a.csv", "--label", "label", *options[0].split(), "-o", "d.yaml")
        assert are_sorted("a.csv", parse_config(Path("d.yaml").read_text()))


def test_parts_that_may_be_one_sequence_are_an_option(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(6)
    rows = list[list[Any]]()
    for unit in range(40):
        places = [(part, step) for part in range(2) for step in range(draw.randint(3, 6))]
        own = [[f"u{unit}", *place, f"e{count}"] for count, place in enumerate(places)]
        rows += [[*row, draw.random(), "xy"[unit % 2]] for row in own]
    draw.shuffle(rows)
    write(Path("a.csv"), ["unit_id", "bar", "baz", "event", "value", "label"], rows)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    (options,) = re.findall(r"(--id unit_id --order .*)", said)
    cli("init", "a.csv", "--label", "label", *shlex.split(options), "-o", "d.yaml")
    assert are_sorted("a.csv", parse_config(Path("d.yaml").read_text()))


@pytest.mark.parametrize("name", ["frame", "block_nr", "x7"])
@pytest.mark.parametrize("shape", ["begins again", "comes back", "is new"])
def test_an_order_that_repeats_and_falls_is_doubted(tmp_path, monkeypatch, cli, name, shape):
    """The user names it. The printed option keeps the file's order, although it's named."""
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(name + shape), list[list[Any]]()
    for unit in range(30):
        for step in range(45):
            at = {"begins again": step % 15, "comes back": draw.randrange(6), "is new": step}[shape]
            rows.append([f"u{unit}", at, draw.random(), f"e{step % 4}", "xy"[unit % 2]])
    write(Path("a.csv"), ["unit_id", name, "value", "event", "label"], rows)
    command = ["init", "a.csv", "--label", "label", "--order", name, "--force", "-o", "c.yaml"]
    options = re.findall("(--set data.order=null)", cli(*command).err)
    assert (not options) == (shape == "is new")
    if options:
        cli(*command, *options[0].split())
        assert parse_config(Path("c.yaml").read_text()).data.order is None


@pytest.mark.parametrize("form", ["%a %Y-%m-%d", "%A, %d %B %Y", "%a, %d %b %Y 09:30:00 GMT"])
@pytest.mark.parametrize("wrong", [0, 1, 30 * 9])
def test_a_weekday_of_another_date_is_said(tmp_path, monkeypatch, cli, form, wrong):
    monkeypatch.chdir(tmp_path)
    rows, left = list[list[Any]](), wrong
    for unit in range(30):
        for step in range(9):
            day = datetime(2024, 1, 1) + timedelta(days=unit + step)
            told = day + timedelta(days=3) if left > 0 else day
            first, rest = form.split(" ", 1)
            cell = f'"{told:{first}} {day:{rest}}"'
            rows.append([f"u{unit}", cell, unit * step % 7, "xy"[unit % 2]])
            left -= 1
    write(Path("a.csv"), ["unit_id", "day", "value", "label"], rows)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    order = parse_config(Path("c.yaml").read_text()).data.order
    assert order == (None if wrong > 1 else "day")
    assert ("2024-01-01 is a Monday" in said) == (wrong > 1)
    assert ("(line 2)" in said) == (wrong == 1)
    if wrong > 1:
        refused = cli("fit", "c.yaml", "--set", "data.order=day", code=2).err
        assert "a.csv:2: " in refused


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%d/%m/%Y %H:%M", "%Y-%m-%d"])
@pytest.mark.parametrize("wrong", ["2024-02-30", "30/02/2024 10:00", "0000-00-00 00:00:00", ""])
@pytest.mark.parametrize("row", [0, 77])
def test_few_unreadable_dates_leave_the_order(tmp_path, monkeypatch, cli, form, wrong, row):
    monkeypatch.chdir(tmp_path)
    draw, begin = random.Random(8), datetime(2024, 1, 1)
    rows = [
        [f"u{n // 9}", f"{begin + timedelta(hours=5 * n):{form}}", draw.random(), "xy"[n // 9 % 2]]
        for n in range(360)
    ]
    draw.shuffle(rows)
    rows[row][1] = wrong
    write(Path("a.csv"), ["unit_id", "when", "value", "label"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.order, config.data.bad_rows) == ("when", "drop")
    assert f"(line {row + 2})" in said
    assert sum(map(len, prepare(config).splits.values())) == 39


def test_dates_that_are_all_equal_are_no_doubt(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[f"u{n // 9}", "01/02/2024", n * n % 7, "xy"[n // 9 % 2]] for n in range(270)]
    write(Path("a.csv"), ["unit_id", "day", "value", "label"], rows)
    assert "comes first" not in cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err


@pytest.mark.parametrize("form", ["frame_{}.png", "({})", '"{},000"', "page-{} of the log"])
def test_the_only_number_in_a_text_sorts_rows_if_the_user_names_the_column(
    tmp_path, monkeypatch, cli, form
):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(form), list[list[Any]]()
    for unit in range(40):
        steps = enumerate(range(7, 7 + draw.randint(5, 9)))
        rows += [
            [f"u{unit}", form.format(n), f"e{k}", draw.random(), "xy"[unit % 2]] for k, n in steps
        ]
    draw.shuffle(rows)
    write(Path("a.csv"), ["unit_id", "bar", "event", "value", "label"], rows)
    cli("init", "a.csv", "--label", "label", "--order", "bar", "-o", "c.yaml")
    assert are_sorted("a.csv", parse_config(Path("c.yaml").read_text()))


@pytest.mark.parametrize("form", ["%d/%m/%y", "%m-%d-%y", "%d.%m.%y %H:%M", "%m/%d/%y %I:%M %p"])
def test_dates_with_two_digits_of_the_year_are_written_by_the_printed_command(
    tmp_path, monkeypatch, cli, form
):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(form), list[list[Any]]()
    for unit in range(40):
        at = [datetime(2024, 1, 20 + unit % 4, 8) + timedelta(days=k) for k in range(12)]
        rows += [
            [f"u{unit}", f"{x:{form}}", f"e{k}", draw.random(), "xy"[unit % 2]]
            for k, x in enumerate(at)
        ]
    draw.shuffle(rows)
    write(Path("it's.csv"), ["unit_id", "bar", "event", "value", "label"], rows)
    said = cli("init", "it's.csv", "--label", "label", "-o", "c.yaml").err
    config, path = parse_config(Path("c.yaml").read_text()), "it's.csv"
    if config.data.order is None:
        (path,) = run_conversion(cli, said)
        cli("init", path, "--label", "label", "-o", "d.yaml")
        config = parse_config(Path("d.yaml").read_text())
    assert are_sorted(path, config)


@pytest.mark.parametrize("days", [1, 30], ids=["one date", "a date for each id"])
def test_a_date_comes_before_its_time_of_day_though_it_is_one_per_id(tmp_path, days):
    """Rows of new ids may cross midnight, though no id of train does."""
    draw, rows = random.Random(3), list[list[Any]]()
    for case in range(60):
        at = datetime(2024, 1, 1 + case % days, 6)
        quality = ["gut", "schlecht"][case % 2]
        for _ in range(draw.randint(4, 8)):
            at += timedelta(minutes=draw.randint(1, 20))
            number = draw.gauss(180 + 5 * (case % 2), 2)
            rows.append(
                [4700 + case, f"{at:%d.%m.%Y}", f"{at:%H:%M:%S}", round(number, 1), quality]
            )
    names = ["Charge", "Datum", "Uhrzeit", "Temperatur", "Qualität"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.order == ["Datum", "Uhrzeit"]
    assert config.data.steps == {"Temperatur": "number", "elapsed": "order"}


def test_dates_come_before_the_codes_of_a_part_in_an_offered_order(tmp_path):
    draw, rows = random.Random(3), list[list[Any]]()
    for case in range(60):
        for hour in range(0, 48, 6):
            at = datetime(2150, 1, 1) + timedelta(hours=hour)
            for item in (50983, 50971, 50912):
                rows.append([20000 + case, item, at, round(draw.gauss(9, 2), 1), case % 2])
    draw.shuffle(rows)
    names = ["hadm_id", "itemid", "charttime", "valuenum", "died"]
    _, proposal = proposed(write(tmp_path / "a.csv", names, rows), label="died")
    assert any("--id hadm_id --order charttime --order itemid" in x for x in proposal.warnings)


@pytest.mark.parametrize(
    ("form", "order", "types"),
    [
        ("%H.%M.%S", ["Data", "Ora"], ("day_first", "duration")),
        ("%d.%m.%y", "Ora", "day_first"),
    ],
)
def test_cells_with_two_points_are_dates_if_all_can_be(tmp_path, form, order, types):
    """Such as 12.05.24, which may be a time of day. 00.31.00 can't be a date."""
    draw, rows = random.Random(3), list[list[Any]]()
    for case in range(60):
        at = datetime(2024, 2, 1, 1, 5)
        for _ in range(draw.randint(4, 8)):
            cells = [f"{at:%d.%m.%Y}", f"{at:{form}}", draw.choice("abc")]
            rows.append([f"M{case}", *cells, case % 2])
            at += timedelta(hours=2, minutes=draw.randint(20, 300), days=form.startswith("%d"))
    names = ["macchina", "Data", "Ora", "codice", "Esito"]
    if order == "Ora":
        names.remove("Data")
        rows = [[case, *others] for case, _, *others in rows]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.order == order
    assert prepare(config).preprocessing.schema.order_type == types
