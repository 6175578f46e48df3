"""Numbers and durations as tables in many countries have them: read right, or doubted."""

import csv
import random
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.errors import DataError
from seqtrain.sequences.inputs import Input
from seqtrain.sequences.schema import Schema
from tests.helpers.printed import commands_in, follow_printed, run_conversion
from tests.helpers.reading import completed, read_rows
from tests.proposal.test_order import proposed
from tests.proposal.test_roles import write


def german(number: float, decimals: int = 2) -> str:
    return f"{number:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


def clock(number: float) -> str:
    whole, thousandths = divmod(round(1000 * number), 1000)
    return f"{whole // 60}:{whole % 60:02}.{thousandths:03}"


FORMS: dict[str, Callable[[float], str]] = {
    "German": german,
    "German, whole": lambda x: german(x, 0),
    "millions": lambda x: german(1000 * round(x), 0),
    "English": lambda x: f"{x:,.2f}",
    "English, whole": lambda x: f"{x:,.0f}",
    "French": lambda x: f"{x:,.2f}".replace(",", " ").replace(".", ","),
    "French, whole": lambda x: f"{x:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
    "Swiss": lambda x: f"{x:,.2f}".replace(",", "'"),
    "Swiss, whole": lambda x: f"{x:,.0f}".replace(",", "\N{RIGHT SINGLE QUOTATION MARK}"),
    "minus": lambda x: f"{x - 900:.1f}".replace("-", "\N{MINUS SIGN}"),
    "percent": lambda x: f"{x:.1f} %",
    "Spanish percent": lambda x: f"{x:.1f}%".replace(".", ","),
    "km": lambda x: f"{x:.0f} km",
    "euros": lambda x: german(x) + " €",
    "dollars": lambda x: f"${x:,.2f}",
    "reais": lambda x: f"R$ {german(x)}",
    "stopwatch": clock,
    "minus of accountants": lambda x: f"({900 - x:,.2f})" if x < 900 else f"{x - 900:,.2f}",
    "minus behind": lambda x: f"{900 - x:.2f}-" if x < 900 else f"{x - 900:.2f}",
    "exponents": lambda x: f"{x:.3e}".replace(".", ","),
}
SCALES = {"millions": 1000.0}
POINTED = ("English", "Swiss", "minus", "percent", "dollars", "stopwatch")


def table(form: str, draw: random.Random) -> tuple[list[list[Any]], list[float]]:
    """Return rows of an id, a step, a number in a form, a number and a label; and the numbers."""
    rows, numbers = list[list[Any]](), list[float]()
    for unit in range(30):
        for step in range(6):
            number = draw.lognormvariate(6.5 + unit % 2, 0.8)
            other = f"{draw.random():.2f}"
            if not form.startswith(POINTED):
                other = other.replace(".", ",")
            rows.append([f"u{unit}", step, FORMS[form](number), other, "xy"[unit % 2]])
            numbers.append(number)
    return rows, numbers


def read(path: str, text: str) -> list[float]:
    """Return the numbers of the column `amount` that `fit` reads by a config."""
    config = parse_config(text)
    names = [name for name, kind in (config.data.steps or {}).items() if "number" in kind]
    source, found = Input(path, Schema.from_config(config.data, path)), list[float]()
    for example in read_rows(replace(source, schema=completed(source))):
        assert example.problem is None, example.problem
        found += example.sequence.numbers[:, names.index("amount")].tolist()
    return found


NAMES = ["unit_id", "step", "amount", "other", "label"]


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_many_forms_are_read_right(tmp_path, form):
    rows, numbers = table(form, random.Random(form))
    path = write(tmp_path / "a.csv", NAMES, rows, ";")
    found = read(path, proposed(path, label="label")[1].text)
    truth = np.array(numbers) * SCALES.get(form, 1) - (900 if form.startswith("minus") else 0)
    np.testing.assert_allclose(found, truth, atol=0.51 * SCALES.get(form, 1), rtol=1e-3)


def test_points_that_may_separate_thousands_are_doubted_with_a_command(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows, numbers = table("German, whole", random.Random(4))
    for row in rows:
        row[3] = row[3][-1]
    path = write(Path("a.csv"), NAMES, rows, ";")
    said = cli("init", path, "--label", "label", "-o", "c.yaml").err
    (command,) = re.findall(r"'amount': .*(--set .*)", said)
    cli("init", path, "--label", "label", *shlex.split(command), "-o", "d.yaml")
    np.testing.assert_allclose(read(path, Path("d.yaml").read_text()), numbers, atol=0.51)


@pytest.mark.parametrize("mark", [",", "."])
def test_what_may_be_thousands_or_decimals_is_said(tmp_path, mark):
    """A column contradicts the others: 1,097 beside 0,25 elsewhere, or 1.097 beside 0.25."""
    rows, _ = table("English, whole", random.Random(mark))
    for row in rows:
        row[2], row[3] = row[2].replace(",", mark), row[3].replace(",", ".").replace(".", mark)
    path = write(tmp_path / "a.csv", NAMES, rows, ";")
    _, proposal = proposed(path, label="label")
    assert any("'amount'" in line and "thousands" in line for line in proposal.warnings)


@pytest.mark.parametrize("with_hours", [False, True])
def test_times_that_may_be_minutes_and_seconds_are_said(tmp_path, with_hours):
    rows, numbers = table("stopwatch", random.Random(with_hours))
    for row, number in zip(rows, numbers, strict=True):
        whole = f"{int(number) // 60}:{int(number) % 60:02}"
        if with_hours:
            row[2] = f"1:{int(number) % 3600 // 60:02}:07" if number > 900 else whole
        elif number > 900:
            row[2] = whole
    _, proposal = proposed(write(tmp_path / "a.csv", NAMES, rows, ";"), label="label")
    assert any("'amount'" in line and "minutes" in line for line in proposal.warnings)


@pytest.mark.parametrize("unit", ["ms", "kg"])
def test_numbers_without_the_unit_of_others_are_said(tmp_path, unit):
    rows, numbers = table("stopwatch", random.Random(unit))
    for row, number in zip(rows, numbers, strict=True):
        row[2] = f"{number:.0f}{unit}" if number < 900 else f"{number / 1000:.2f}"
    _, proposal = proposed(write(tmp_path / "a.csv", NAMES, rows, ";"), label="label")
    assert any("'amount'" in line and f"unit {unit}" in line for line in proposal.warnings)


@pytest.mark.parametrize("missing", [-1, 9999999999, 999999.9999])
def test_numbers_for_missing_ones_are_said_of_their_columns(tmp_path, monkeypatch, cli, missing):
    """A column in which they are numbers as others keeps them."""
    monkeypatch.chdir(tmp_path)
    draw, names = random.Random(int(missing)), ["hr", "bp", "sp", "rr"]
    rows = [
        [f"u{i // 6}", i % 6, draw.choice([-2, missing, 3]), *(
            missing if draw.random() < 0.05 else round(draw.uniform(50, 90), 1) for _ in names
        ), "xy"[i // 6 % 2]]
        for i in range(600)
    ]  # fmt: skip
    write(Path("a.csv"), ["unit_id", "step", "delta", *names, "label"], rows)
    said = cli("init", "a.csv", "--label", "label", "-o", "c.yaml").err
    (advised,) = re.findall(r"--set .*na_values.* data\.missing=mask", said)
    keys = shlex.split(advised)
    cli("init", "a.csv", "--label", "label", *keys, "-o", "d.yaml")
    data = parse_config(Path("d.yaml").read_text()).data
    assert data.na_values == {name: [missing] for name in names}


def test_numbers_that_all_differ_are_durations(tmp_path):
    """A column of unique times is no column of ids."""
    rows, _ = table("stopwatch", random.Random(7))
    assert len({row[2] for row in rows}) == len(rows)
    config, _ = proposed(write(tmp_path / "a.csv", NAMES, rows, ";"), label="label")
    assert (config.data.steps or {})["amount"] == "number"


@pytest.mark.parametrize("names", ["HW{}", "Quiz {} (10{})", "aufgabe_{}"])
def test_marks_of_students_are_measurements(tmp_path, names):
    """Each student's marks are similar, but not more so to those before and after."""
    draw, rows = random.Random(names), list[list[Any]]()
    for student in range(150):
        usual = draw.gauss(75, 12)
        own = [min(100, max(0, round(draw.gauss(usual, 8)))) for _ in range(10)]
        rows.append([f"S{student}", *own, "ABC"[sum(sum(own) > x for x in (700, 800))]])
    header = ["student", *(names.replace("{}", str(k)) for k in range(1, 11)), "grade"]
    config, _ = proposed(write(tmp_path / "a.csv", header, rows))
    assert config.data.kind == "features"
    assert config.data.sequence == header[1:-1] or config.data.sequence is None
    numbers = [[*row[:-1], sum(row[1:-1]) + 0.5] for row in rows]
    path = write(tmp_path / "b.csv", [*header[:-1], "Final grade"], numbers)
    with pytest.raises(DataError, match="'Final grade', write classes"):
        proposed(path)


def test_lists_of_codes_with_three_digits_are_no_thousands(tmp_path):
    draw = random.Random(3)
    rows = [
        [" ".join(str(draw.randint(100, 160)) for _ in range(draw.randint(2, 5))), "xy"[i % 2]]
        for i in range(200)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["events", "label"], rows), label="label")
    assert (config.data.sequence, config.data.kind) == ("events", "tokens")


@pytest.mark.parametrize("decimals", [0, 1])
def test_series_with_points_between_thousands(tmp_path, decimals):
    """They are read with decimal commas, or doubted if there are none."""
    draw, rows, numbers = random.Random(decimals), list[list[str]](), list[float]()
    for row in range(120):
        own = [round(draw.lognormvariate(6.3 + row % 2, 0.8), decimals) for _ in range(6)]
        rows.append([";".join(german(x, decimals) for x in own), "xy"[row % 2]])
        numbers += own
    path = write(tmp_path / "a.csv", ["curve", "label"], rows, "|")
    config, proposal = proposed(path, label="label")
    if not decimals:
        assert any("'curve'" in line and "thousands" in line for line in proposal.warnings)
        config, proposal = proposed(path, label="label", settings=['data.decimal=","'])
    assert config.data.decimal == ","
    series = [
        each.sequence.ravel()
        for each in read_rows(Input(path, Schema.from_config(config.data, path)))
    ]
    np.testing.assert_allclose(np.concatenate(series), numbers, rtol=1e-6)


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
@pytest.mark.parametrize("forms", [("German", "English"), ("Spanish percent", "minus")])
def test_two_decimal_marks_in_a_file_are_refused_with_a_command(
    tmp_path, monkeypatch, cli, forms, delimiter
):
    monkeypatch.chdir(tmp_path)
    rows, numbers = table(forms[0], random.Random(str(forms)))
    for row in rows:
        row[3] = FORMS[forms[1]](random.Random(str(row)).uniform(-9, 99)).replace(",", "")
    ending = ".tsv" if delimiter == "\t" else ".csv"
    path = f"a b{ending}"
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([NAMES, *rows])
    refused = cli("init", path, "--label", "label", "-o", "c.yaml", code=2).err
    assert "'amount'" in refused
    assert "'other'" in refused
    (plain,) = run_conversion(cli, refused)
    cli("init", plain, "--label", "label", "-o", "d.yaml")
    np.testing.assert_allclose(read(plain, Path("d.yaml").read_text()), numbers, atol=0.06)


def test_points_beside_decimal_commas_that_may_be_decimals_are_said(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows, numbers = table("German", random.Random(5))
    for row, number in zip(rows, numbers, strict=True):
        row[2], row[3] = f"{1 + number / 100:.3f}", row[2]
    path = write(Path("a.csv"), NAMES, rows, ";")
    said = cli("init", path, "--label", "label", "-o", "c.yaml").err
    assert "'amount' holds" in said
    run_conversion(cli, said)
    cli("init", "a-cells.csv", "--label", "label", "-o", "d.yaml")
    truth = 1 + np.array(numbers) / 100
    np.testing.assert_allclose(read("a-cells.csv", Path("d.yaml").read_text()), truth, atol=0.001)


ARABIC = str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩٫")
DOUBTFUL: dict[str, Callable[[random.Random], str]] = {
    "v": lambda draw: f"{draw.choice([16684, 8555, 12403, 17965, 16705, 19457])}",
    "dashes": lambda draw: draw.choice(["--"] * 4 + [f"{draw.uniform(5, 90):.1f}"]),
    "points": lambda draw: f'"{draw.uniform(40, 42):.5f}, {draw.uniform(-9, -7):.5f}"',
    "degrees": lambda draw: f"{draw.randint(1, 9)}°{draw.uniform(0, 60):.1f}'N",
    "digits": lambda draw: f"{draw.randint(1, 60) / 2}".translate(ARABIC),
    "scale": lambda draw: draw.choice(["1", "2", "3", "4", "5", "99"]),
}
FOUND = {
    "v": {"v": "token"},
    "dashes": {"v": "number"},
    "points": {"v_1": "number", "v_2": "number"},
    "degrees": {"v_1": "number", "v_2": "number"},
    "digits": {"v": "number"},
    "scale": {"v": "number"},
}


@pytest.mark.parametrize("form", DOUBTFUL)
def test_numbers_in_doubt_have_a_command_that_reads_them(tmp_path, monkeypatch, cli, form):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(form), list[list[Any]]()
    for unit in range(40):
        rows += [[f"u{unit}", t, DOUBTFUL[form](draw), 0.1 * t, "xy"[unit % 2]] for t in range(9)]
    write(Path("a b.csv"), ["unit", "t", "v", "w", "label"], rows)
    found = cli("init", "a b.csv").err
    (said,) = (x for x in found.splitlines() if re.search("'v'.*[;:] if ", x))
    if commands_in(found):
        follow_printed(cli, found, "-o", "b.yaml")
    else:
        options = said[said.index("--set") :]
        cli("init", "a b.csv", *shlex.split(options), "-o", "b.yaml")
    data = parse_config(Path("b.yaml").read_text()).data
    steps = dict(data.steps)
    assert steps.pop("w", "number") == "number"
    assert steps == FOUND[form]
    assert bool(data.na_values) == (form == "scale")


def test_unique_numbers_of_equal_length_beside_an_id_are_measurements(tmp_path):
    draw, rows = random.Random("unique"), list[list[Any]]()
    numbers = draw.sample(range(1_000_000, 9_999_999), 360)
    for unit in range(40):
        own = numbers[9 * unit : 9 * unit + 9]
        rows += [[f"u{unit}", t, 5000 + len(rows), n, "xy"[unit % 2]] for t, n in enumerate(own)]
    path = write(tmp_path / "a.csv", ["unit", "t", "entry", "volume", "label"], rows)
    steps = proposed(path)[0].data.steps
    assert steps["volume"] == "number"


def test_blank_cells_of_label_columns_are_said(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random("blank")
    rows = [[f"text number {n}", *draw.choices(["0", "1", ""], k=3)] for n in range(90)]
    blank = sum(cell == "" for row in rows for cell in row)
    write(Path("a.csv"), ["text", "p", "q", "r"], rows)
    said = cli("init", "a.csv", "--set", "data.label=[p, q, r]", "-o", "a.yaml").err
    assert f"{blank} blank" in said
    assert f"{blank} blank" in cli("data", "a.yaml").out
