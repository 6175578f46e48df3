"""Tables with rows of totals, rare classes, dates in other languages, and nearly unique symbols."""

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.proposal import InitOptions, propose
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import commands_in, run_conversion
from tests.proposal.test_forms import draw, name, sentence, write
from tests.proposal.test_roles import proposed

__all__ = ["draw"]


def baskets(draw: random.Random, symbols: list[str]) -> list[list[str]]:
    """Return rows of an order with several articles each, and its label."""
    rows = []
    for order in range(120):
        for _ in range(draw.randint(2, 6)):
            rows.append([f"O{order:04d}", draw.choice(symbols), "xyz"[order % 3]])
    return rows


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "json"])
@pytest.mark.parametrize("is_step", [False, True])
@pytest.mark.parametrize(
    "names",
    [{"Train": 60, "valid": 20, "TEST": 20}, {"train": 60, "dev": 20, "test": 20, "val": 10}],
)
def test_names_of_splits_in_a_column_are_written_as_files_by_the_printed_commands(
    tmp_path, monkeypatch, draw, cli, form, is_step, names
):
    monkeypatch.chdir(tmp_path)
    rows = []
    for split, count in names.items():
        for i in range(count):
            label = "uv"[i % 2]
            own = {"part": split, "verdict": label, "note": f'a "{label}", {sentence(draw)}'}
            if is_step:
                own = {"part": split, "verdict": label, "case": f"{split}{i}"}
            for t in range(5 if is_step else 1):
                rows.append({**own, "t": t, "ax": draw.random()} if is_step else own)
    path = Path(f"my {form}.{form}")
    if form.startswith("json"):
        lines = [json.dumps(row) for row in rows]
        path.write_text(f"[{','.join(lines)}]" if form == "json" else "\n".join(lines) + "\n")
    else:
        mark = {"csv": ",", "tsv": "\t"}[form]
        write(path, [*rows[0]], [[*row.values()] for row in rows], mark)
    said = cli("init", path, "-o", "a.yaml").err
    *conversions, init = commands_in(said)
    for words in conversions:
        cli(*words)
    cli(*init, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.label == "verdict"
    found = {split: len(store) for split, store in prepare(config).splits.items()}
    assert found == {"train": 60, "validation": 20, "test": 20}


def test_nearly_unique_symbols_are_steps_beside_an_id(tmp_path, draw):
    symbols = [f"{draw.choice('ABC')}-{draw.randrange(10**6)}" for _ in range(700)]
    rows = baskets(draw, symbols)
    config, _ = proposed(write(tmp_path / "a.csv", ["order_id", "article", "segment"], rows))
    assert (config.data.id, config.data.label) == ("order_id", "segment")
    assert config.data.steps == {"article": "token"}
    sequences = [[row[0], "".join(draw.choices("ACGT", k=60)), row[2]] for row in rows]
    config, _ = proposed(write(tmp_path / "b.csv", ["family_id", "dna", "segment"], sequences))
    assert (config.data.id, config.data.sequence) == (None, "dna")


def test_names_of_products_beside_an_id_are_a_command(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    symbols = [f"{name(draw)} {name(draw)} {draw.randrange(99)}" for _ in range(700)]
    write(Path("a.csv"), ["order_id", "product", "segment"], baskets(draw, symbols))
    said = cli("init", "a.csv", "-o", "c.yaml").err
    (option,) = re.findall(r"if they are one sequence: (--id \w+)", said)
    cli("init", "a.csv", "-o", "c.yaml", "--force", *option.split())
    assert parse_config(Path("c.yaml").read_text()).data.steps == {"product": "token"}


@pytest.mark.parametrize(
    "field", ["class={}", "label={} length=60", "|Class={}|x", "category: {};"]
)
def test_a_field_of_a_fasta_record_names_its_label(tmp_path, draw, field):
    path = tmp_path / "a.fasta"
    names = [name(draw) + "a", name(draw) + "b"]
    lines = [
        f">s{i} {field.format(names[i % 2])}\n{''.join(draw.choices('ACGT', k=50))}\n"
        for i in range(60)
    ]
    path.write_text("".join(lines))
    assert all(each in proposed(str(path))[1].uses[0] for each in (*names, "2 classes"))


@pytest.mark.parametrize("word", ["Total", "Summe", "Grand Total:", "Gesamtsumme"])
def test_a_row_of_totals_is_said_with_a_command(tmp_path, monkeypatch, draw, cli, word):
    monkeypatch.chdir(tmp_path)
    rows = [[f"u{i // 6}", i % 6, draw.random(), "xy"[i // 6 % 2]] for i in range(300)]
    draw.shuffle(rows)
    names = ["unit_id", "visit", "temp", "state"]
    config, proposal = proposed(write(Path("a.csv"), names, [*rows, [word, "", 12.5, ""]]))
    assert config.data.order == "visit"
    (line,) = [line for line in proposal.warnings if "totals" in line]
    assert "line 302" in line
    run_conversion(cli, "\n".join(proposal.warnings), "rows")
    assert (
        Path("a-rows.csv").read_text().splitlines() == Path("a.csv").read_text().splitlines()[:-1]
    )
    _, proposal = proposed("a-rows.csv")
    assert not any("totals" in line for line in proposal.warnings)


MONTHS = {
    "German": ("{}. {} 2024", "Januar Februar März April Mai Juni Juli August September"),
    "French": ("{} {} 2024", "janv. févr. mars avr. mai juin juil. août sept."),
    "Spanish": ("{} de {} de 2024", "enero febrero marzo abril mayo junio julio agosto septiembre"),
}


@pytest.mark.parametrize("language", MONTHS)
def test_dates_with_months_of_other_languages_are_no_texts(tmp_path, draw, language):
    """They are the order, or a line says that they aren't."""
    form, months = MONTHS[language]
    rows = []
    for case in range(50):
        for _ in range(5):
            day = form.format(draw.randint(1, 28), draw.choice(months.split()))
            rows.append([f"C{case}", day, draw.choice("abcd"), "xy"[case % 2]])
    names = ["case_id", "am", "what", "outcome"]
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.sequence) == ("case_id", None)
    assert config.data.steps["what"] == "token"
    assert "am" not in config.data.steps
    assert config.data.order == "am" or any("'am'" in line for line in proposal.warnings)


def test_classes_of_one_or_two_rows_are_said(tmp_path, draw):
    rows = [["uv"[i % 2], sentence(draw)] for i in range(80)]
    rows += [["odd", sentence(draw)], ["rare", sentence(draw)], ["rare", sentence(draw)]]
    path = write(tmp_path / "a.csv", ["label", "text"], rows)
    warnings = propose([path], InitOptions()).warnings
    assert any("'odd' (1)" in line and "'rare' (2)" in line for line in warnings)


OWNERS = {
    "patient": "P{:03}",
    "machine_nr": "{}",
    "driver": "d{}",
    "user_id": "{:05}",
    "device": "dev-{}",
}


@pytest.mark.parametrize("owner", OWNERS)
def test_the_owner_of_several_ids_is_a_group_and_no_input(tmp_path, monkeypatch, draw, cli, owner):
    """Names of owners with few values that aren't numbered, and codes of a place, are inputs."""
    monkeypatch.chdir(tmp_path)
    rows, id = [], draw.choice(["visit", "cycle_id", "tour_id"])
    for number in range(120):
        own = [OWNERS[owner].format(number // 8), f"v{number}"]
        own += [draw.choice(["north", "south"]), draw.randrange(10000, 10030)]
        state = draw.choice(["good", "bad"])
        rows += [[*own, k, round(draw.gauss(state == "bad", 1), 2), state] for k in range(5)]
    write(Path("a.csv"), [owner, id, "client", "zip", "step", "heat", "state"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.id, config.data.group) == (id, None)
    assert set(config.data.static) == {"client", "zip"}
    (option,) = set(re.findall(r"--set data\.group=\S+", said))
    assert owner in option
    assert option in cli("data", "c.yaml").out
    assert option in cli("data", "c.yaml", "--set", f"data.static={{{owner}: token}}").out
    cli("init", "a.csv", "-o", "c.yaml", "--force", *option.split())
    assert parse_config(Path("c.yaml").read_text()).data.group == owner
    assert "data.group" not in cli("data", "c.yaml").out


def spelled(draw: random.Random, label: str) -> str:
    return draw.choice([label, label, label.upper(), label.title(), f" {label}", f"{label}\xa0"])


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "jsonl"])
def test_labels_that_differ_in_case_are_said_with_a_command(
    tmp_path, monkeypatch, draw, cli, ending
):
    """By init and data; the command spells them alike, and nothing else in the file changes."""
    monkeypatch.chdir(tmp_path)
    labels, mark = [f"{name(draw)} x", "a.b-c", "o'k"], "," if ending == "csv" else "\t"
    rows = [[spelled(draw, labels[i % 3]), sentence(draw, "A.B-C")] for i in range(150)]
    write(Path(f"a.{ending}"), [] if ending == "txt" else ["tag", "text"], rows, mark)
    if ending == "jsonl":
        objects = [{"text": text, "tag": tag.replace("\xa0", " ")} for tag, text in rows]
        Path("a.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    said = cli("init", f"a.{ending}", "-o", "c.yaml").err
    (command,) = re.findall(r"seqtrain convert .* --to spelled .*", said)
    assert command in cli("data", "c.yaml").out
    assert "alike" not in cli("data", "c.yaml", "--json").err
    written = Path(*run_conversion(cli, said, "spelled"))
    old, new = Path(f"a.{ending}").read_text().lower(), written.read_text()
    assert new.lower() == old
    said = cli("init", str(written), "-o", "d.yaml").err
    assert "3 classes" in said
    assert "alike" not in said


@pytest.mark.parametrize(
    ("form", "sentinel"),
    [
        ("steps", -999),
        ("steps", -1),
        ("static", 9999),
        ("wide", -1),
        ("wide", -99.9),
        ("lists", 99),
    ],
)
def test_numbers_for_missing_ones_are_said_by_init_fit_and_data(
    tmp_path, monkeypatch, cli, form, sentinel
):
    """With keys that take the doubt away: the numbers are missing then."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(form)
    numbers = [[round(draw.uniform(0.5, 9.5), 1) for _ in range(9)] for _ in range(60)]
    for row in range(0, 60, 7):
        numbers[row][3 if form == "wide" else 0] = sentinel
    if form == "wide":
        rows = [[*own, "ab"[i % 2]] for i, own in enumerate(numbers)]
        write(Path("a.csv"), [*(f"t{k}" for k in range(9)), "label"], rows)
    elif form == "lists":
        rows = [[str(own), "ab"[i % 2]] for i, own in enumerate(numbers)]
        write(Path("a.csv"), ["pulse", "label"], rows)
    else:
        rows = [
            [f"u{i}", k, own[k] if form == "steps" else own[0], draw.choice("xyz"), "ab"[i % 2]]
            for i, own in enumerate(numbers)
            for k in range(4)
        ]
        write(Path("a.csv"), ["unit_id", "step", "heat", "kind", "label"], rows)
    options = ["--set", "data.validation=0.2", "--set", "training.max_epochs=1"]
    options += ["--set", "training.refit=false"]
    said = cli("init", "a.csv", "-o", "c.yaml", *options)
    others = cli("fit", "c.yaml", "--run-dir", "r").err, cli("data", "c.yaml").out
    for text in (said.err, *others):
        assert f"{sentinel} in " in text
        assert "data.missing=mask" in text
    if form == "lists":
        return
    (advised,) = set(re.findall(r"--set .*na_values.* data\.missing=mask", said.err))
    keys = shlex.split(advised)
    assert "data.na_values" not in cli("data", "c.yaml", *keys).out
    assert "for a missing" not in cli("init", "a.csv", "-o", "-", *options, *keys[:2]).err


@pytest.mark.parametrize("mark", [" > ", "->", " → ", " » "])
def test_paths_beside_a_text_are_said_with_the_option_that_reads_them(
    tmp_path, monkeypatch, draw, cli, mark
):
    """A column called name isn't the text if another one holds sentences."""
    monkeypatch.chdir(tmp_path)
    pages = [name(draw) for _ in range(6)]
    rows = [
        [mark.join(draw.choices(pages, k=draw.randint(3, 9))), name(draw), sentence(draw, x * 3), x]
        for x in "uv" * 60
    ]
    write(Path("a.csv"), ["journey", "name", "remark", "state"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    assert parse_config(Path("c.yaml").read_text()).data.sequence == "remark"
    (option,) = re.findall(r"--sequence \w+", said)
    cli("init", "a.csv", "-o", "c.yaml", "--force", *option.split())
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.kind, data.sequence, data.symbol_separator) == ("tokens", "journey", mark.strip())


def test_a_question_about_the_sequence_has_a_command_for_each_column(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    names = ["remark", "answer_text", "path", "state"]
    rows = [
        [sentence(draw), sentence(draw), "|".join(draw.choices("abcdef", k=5)), draw.choice("uv")]
        for _ in range(120)
    ]
    write(Path("a.csv"), names, rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    commands = re.findall(r"seqtrain:   seqtrain (init .*?)  #", refused)
    assert [c for c in names[:3] if any(f"--sequence {c}" in each for each in commands)] == names[
        :3
    ]
    for command in commands:
        cli(*command.split(), "--force")
    rows = [[*row, "mn"[at % 2]] for at, row in enumerate(rows)]
    write(Path("a.csv"), [*names[:3], "name", "zone"], rows)
    assert "--label name" in cli("init", "a.csv", "-o", "d.yaml", code=2).err


def test_columns_that_mark_no_row_and_rows_without_a_mark_are_said(
    tmp_path, monkeypatch, draw, cli
):
    """A single column with marks is refused, with the option that reads its 1 and 0 as classes."""
    monkeypatch.chdir(tmp_path)
    columns = [f"is_{name(draw)}{k}" for k in range(4)]
    labels = [option for column in columns for option in ("--label", column)]

    def table(marked: list[int | None]) -> None:
        rows = [
            [sentence(draw), *(int(k == at) for k in range(4)), "ns"[k % 2]]
            for k, at in enumerate(marked * 30)
        ]
        write(Path("a.csv"), ["text", *columns, "zone"], rows)

    table([0, 1, 2, 3])
    assert "# each row has one of them" in cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert "label columns" not in cli("init", "a.csv", "-o", "c.yaml", *labels).err
    assert "label columns" not in cli("data", "c.yaml").out
    table([0, 1, 2, None])
    said = cli("init", "a.csv", "-o", "c.yaml", "--force", *labels).err
    for text in (said, cli("data", "c.yaml").out):
        assert f"label columns: '{columns[3]}' marks no row" in text
        assert "30 rows of 120 have no label" in text
    table([1, None])
    refused = cli("init", "a.csv", "-o", "c.yaml", "--force", *labels, code=2).err
    cli("init", "a.csv", "-o", "d.yaml", *refused.split(": ")[-1].split())
    assert columns[1] in cli("fit", "c.yaml", "--run-dir", "r", code=2).err


@pytest.mark.parametrize("given", [["--label", "target"], []])
def test_windows_are_advised_only_where_the_label_stays(tmp_path, monkeypatch, draw, cli, given):
    """Where ids simply repeat, a row with a text is a sequence, and other rows need an order."""
    monkeypatch.chdir(tmp_path)
    owners = [f"u{draw.randrange(20)}" for _ in range(400)]
    texts = [[x, sentence(draw), draw.choice("ab")] for x in owners]
    write(Path("a.csv"), ["unit_id", "note", "target"], texts)
    refused = cli("init", "a.csv", "--id", "unit_id", "-o", "c.yaml", *given, code=2).err
    (option,) = re.findall(r"--set \S+", refused)
    cli("init", "a.csv", "-o", "c.yaml", *option.split())
    assert parse_config(Path("c.yaml").read_text()).data.group == "unit_id"
    numbers = [[x, f"{draw.random():.3f}", draw.choice("ab")] for x in owners]
    write(Path("a.csv"), ["unit_id", "heat", "target"], numbers)
    refused = cli("init", "a.csv", "--id", "unit_id", "-o", "d.yaml", *given, code=2).err
    assert "--order" in refused
    assert "data.window" not in refused
    stays = [[f"u{k // 40}", draw.choice("wxyz"), "ab"[k % 40 > 19]] for k in range(400)]
    write(Path("a.csv"), ["unit_id", "dose", "target"], stays)
    refused = cli("init", "a.csv", "--id", "unit_id", "-o", "d.yaml", *given, code=2).err
    (option,) = re.findall(r"--set 'data\.window=.*'", refused)
    cli("init", "a.csv", "--id", "unit_id", "-o", "d.yaml", *given, *shlex.split(option))


GIVEN = ["--label", "solved"], ["--id", "pupil_id"]


@pytest.mark.parametrize(("given", "chosen"), [GIVEN, GIVEN[::-1]])
def test_answers_of_a_pupil_lead_to_windows(tmp_path, monkeypatch, draw, cli, given, chosen):
    """A label of each row changes at nearly each of them, and a constant is no id."""
    monkeypatch.chdir(tmp_path)
    topics = ["Area of a Circle", "Mean", "Two Steps"]
    rows, answers = [], 0
    for pupil in range(30):
        for _ in range(draw.randint(9, 24)):
            answers += draw.randint(1, 9)
            own = [300 + draw.randrange(50), draw.randrange(2), draw.randint(1, 4)]
            waited, topic = draw.randint(900, 90_000), draw.choice(topics)
            rows.append([answers, 700 + pupil, *own, waited, "linear", topic])
    names = ["entry_id", "pupil_id", "task_id", "solved", "tries", "waited_ms", "mode", "skill"]
    write(Path("a.csv"), names, rows)
    refused = cli("init", "a.csv", *given, "-o", "c.yaml", code=2).err
    assert "--id mode" not in refused
    pattern = f"seqtrain:   seqtrain (init .*{shlex.join(chosen)})"
    (command,) = re.findall(pattern, refused)
    refused = cli(*shlex.split(command), code=2).err
    cli(*shlex.split(re.findall("seqtrain (init .*data.window.*)", refused)[0]))
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.label, bool(data.window)) == ("pupil_id", "solved", True)


def test_scattered_rows_without_an_order_are_said(tmp_path, monkeypatch, draw, cli):
    """Not where a column sorts them, or the rows of an id follow each other."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for case in range(60):
        drift = draw.choice([-0.3, 0.3])
        for k in range(8):
            rows.append([f"c{case}", round(drift * k + draw.random(), 3), k, "ud"[drift > 0]])
    mixed, names = draw.sample(rows, len(rows)), ["case_id", "level", "k_1", "trend"]
    write(Path("a.csv"), names, mixed)
    said = cli("init", "a.csv", "-o", "a.yaml", "--steps", "level", "--label", "trend").err
    is_sorted = parse_config(Path("a.yaml").read_text()).data.order is not None
    assert ("scattered" in said) != is_sorted
    write(Path("b.csv"), names[:2] + names[3:], [[*row[:2], row[3]] for row in mixed])
    said = cli("init", "b.csv", "-o", "b.yaml").err
    assert "scattered" in said
    assert "data.order" in said
    assert "scattered" in cli("data", "b.yaml").out
    write(Path("b.csv"), names[:2] + names[3:], [[*row[:2], row[3]] for row in rows])
    assert "scattered" not in cli("data", "b.yaml").out
    assert "scattered" not in cli("data", "a.yaml", "--set", "data.order=k_1").out


@pytest.mark.parametrize(("odd", "is_said"), [(-1, True), (99, True), (0, False), (5, False)])
def test_a_number_that_may_stand_for_a_missing_label_is_said(
    tmp_path, monkeypatch, cli, odd, is_said
):
    """Beside classes from 1 to 4: 0 and 5 go on counting."""
    monkeypatch.chdir(tmp_path)
    labels = [odd if number % 3 else number // 3 % 4 + 1 for number in range(240)]
    lines = [f"some words about {number} things,{label}" for number, label in enumerate(labels)]
    Path("t.csv").write_text("text,grade\n" + "\n".join(lines) + "\n")
    said = cli("init", "t.csv", "-o", "c.yaml").err
    assert ("data.na_values" in said) == is_said
    if is_said:
        (advised,) = re.findall(r"--set .*na_values.* data\.bad_rows=drop", said)
        keys = shlex.split(advised)
        assert f"'{odd}'" not in cli("data", "c.yaml", *keys).out
        assert re.search(r"\b4 classes|classes +4", cli("data", "c.yaml", *keys).out)


def sequences_of(draw: random.Random, form: str) -> tuple[list[str], list[list[list[Any]]]]:
    """Return the names of a table without doubts, and its rows, sequence by sequence."""
    if form == "texts":
        found = [[sentence(draw, *("xyz"[i % 3],) * 3), "xyz"[i % 3]] for i in range(150)]
        return ["text", "label"], [[row] for row in found]
    if form == "wide":
        found = [
            [*(round(draw.gauss(i % 2, 1), 3) for _ in range(9)), "ab"[i % 2]] for i in range(99)
        ]
        return [*(f"t{k}" for k in range(9)), "label"], [[row] for row in found]
    return ["case_id", "step", "event", "level", "label"], [
        [
            [f"c{case}", k, draw.choice("mnop"), round(draw.gauss(case % 2, 1), 3), "ab"[case % 2]]
            for k in range(draw.randint(3, 8))
        ]
        for case in range(60)
    ]


@pytest.mark.parametrize("form", ["texts", "wide", "steps"])
def test_data_finds_what_was_planted_and_nothing_in_clean_tables(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    names, found = sequences_of(draw, form)
    write(Path("a.csv"), names, [row for own in found for row in own])
    options = ["--set", "data.validation=0.2"]
    said = cli("init", "a.csv", "-o", "a.yaml", *options).err
    assert "warning" not in said.replace("rows per class are few", "")
    assert cli("data", "a.yaml", "--json").json["doubts"] == []

    def copied(number: int, label: str, shift: float) -> list[list[Any]]:
        """Return a sequence again, under another id, with other numbers and another label."""
        own = [[*row[:-1], label] for row in found[number]]
        for row in own:
            row[0] = f"{row[0]} {name(draw) if shift else ''}" if form == "texts" else row[0]
            row[0] = f"{row[0]}x{len(found)}" if form == "steps" else row[0]
            row[-2] = row[-2] if form == "texts" else row[-2] + shift
        return own

    labels = sorted({own[0][-1] for own in found})
    found.append(copied(0, found[0][0][-1], 0))
    found.append(copied(1, next(x for x in labels if x != found[1][0][-1]), 0))
    found.append(copied(2, "rare", 0.5))
    for number in (20, 30, 40, 50):
        found[number] = [[*row[:-1], row[-1].upper()] for row in found[number]]
    planted = [
        "are equal",
        "several different labels",
        "no row of the class",
        "may be spellings of one",
    ]
    if form != "texts":
        for number, cell in ((5, -999), (6, -999), (7, "ERR")):
            found[number][0][-2] = cell
        line = 2 + sum(map(len, found[:7]))
        planted += ["-999", f"'ERR' (line {line})"]
    rows = [[*row, f"K{at // 5}", row[-1] * 2] for at, own in enumerate(found) for row in own]
    planted += ["data.group=owner_nr", "'stage' gives the label away"]
    write(Path("b.csv"), [*names, "owner_nr", "stage"], rows)
    cli("init", "b.csv", "-o", "b.yaml", "--label", "label", *options)
    doubts = " ".join(cli("data", "b.yaml", "--json").json["doubts"])
    assert [text for text in planted if text not in doubts] == []


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ("title", "dossier/{}"),
        ("body", "{}"),
        ("name", "{word}"),
        ("sender", "{word}@post.org"),
        ("main_driver", "few {word}"),
        ("élève", "few {word}"),
    ],
)
def test_few_values_under_the_name_of_a_text_or_a_person_are_owners_of_rows(
    tmp_path, monkeypatch, draw, cli, column, form
):
    """Of persons, four are enough."""
    monkeypatch.chdir(tmp_path)
    few = 4 if form.startswith("few") else 16
    owners = [form.format(700 + k, word=name(draw) + "abcdefghijklmnop"[k]) for k in range(few)]
    rows = [[owners[i % few], sentence(draw), draw.choice("uv")] for i in range(320)]
    write(Path("a.csv"), [column, "report", "label"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    assert parse_config(Path("c.yaml").read_text()).data.sequence == "report"
    (setting,) = re.findall(r"--set '?(data\.group=\w+)", said)
    cli("init", "a.csv", "-o", "c.yaml", "--force", "--set", setting)
    assert parse_config(Path("c.yaml").read_text()).data.group == column


@pytest.mark.parametrize("values", [["1.0", "1.5", "2.0"], ["2024-01-05", "2024-02-05"]])
def test_numbers_or_dates_that_repeat_are_offered_as_the_label(
    tmp_path, monkeypatch, draw, cli, values
):
    monkeypatch.chdir(tmp_path)
    rows = [[sentence(draw), draw.choice(values)] for _ in range(120)]
    write(Path("a.csv"), ["remark", "stars"], rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    (command,) = re.findall(r"seqtrain:   seqtrain (init .*?)  #", refused)
    cli(*command.split())
    assert f"{len(values)} classes" in Path("c.yaml").read_text()


@pytest.mark.parametrize(
    ("form", "label", "refused"),
    [
        ("choice", "accept", ["reject", "ignore"]),
        ("labels", "label", ["reject", "ignore"]),
        ("one label", "answer", ["ignore"]),
    ],
)
def test_tasks_that_annotators_refused_are_said_with_a_command(
    tmp_path, monkeypatch, draw, cli, form, label, refused
):
    monkeypatch.chdir(tmp_path)
    classes = ["PARTIAL", "PROTEST"]
    rows = []
    for _ in range(120):
        row = {"text": sentence(draw), "_task_hash": draw.randrange(10**9)}
        if form == "choice":
            row |= {"options": [{"id": x} for x in classes], "accept": [draw.choice(classes)]}
        else:
            row["label"] = "PARTIAL" if form == "one label" else draw.choice(classes)
        rows.append({**row, "answer": draw.choices(["accept", "reject", "ignore"], [6, 3, 1])[0]})
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = cli("init", "a.jsonl", "-o", "a.yaml").err
    assert parse_config(Path("a.yaml").read_text()).data.label == label
    assert "--label" not in said
    (new,) = run_conversion(cli, said, "rows")
    assert "leave them out" not in cli("init", new, "-o", "b.yaml").err
    assert parse_config(Path("b.yaml").read_text()).data.label == label
    kept = [row for row in rows if row["answer"] not in refused]
    assert list(map(json.loads, Path(new).read_text().splitlines())) == kept


@pytest.mark.parametrize("blank", ["", "-"])
@pytest.mark.parametrize("units", [("[s]", "m/s2", "°C"), ("ms", "g", "degC")])
def test_a_row_of_units_is_removed_by_a_command(tmp_path, monkeypatch, draw, cli, blank, units):
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"u{i // 6}", i % 6, draw.random(), 20.5 + i % 7, "xy"[i // 6 % 2]] for i in range(600)
    ]
    names = ["unit_id", "since", "force", "heat", "state"]
    write(Path("a b.csv"), names, [[blank, *units, blank], *rows])
    if blank:
        said = cli("init", "a b.csv", "--label", "state", "-o", "c.yaml", code=2).err
    else:
        said = cli("init", "a b.csv", "--label", "state", "-o", "c.yaml").err
    run_conversion(cli, said, "rows")
    lines = Path("a b.csv").read_text().splitlines()
    assert Path("a b-rows.csv").read_text().splitlines() == [lines[0], *lines[2:]]


@pytest.mark.parametrize("place", ["begin", "end", None])
def test_a_word_at_an_end_that_tells_the_label_is_said(tmp_path, monkeypatch, cli, draw, place):
    """In `init` and in `data`; words that stand anywhere tell nothing by their place."""
    monkeypatch.chdir(tmp_path)
    marks, rows = {"won": "1-0", "lost": "0-1"}, list[list[str]]()
    for _ in range(90):
        label = draw.choice([*marks])
        words = [sentence(draw)]
        words.insert({"begin": 0, "end": 1}.get(place, 0), marks[label] if place else "ab")
        rows.append([label, " ".join(words)])
    write(Path("a.csv"), ["result", "moves"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    listed = cli("data", "c.yaml").out
    for shown in (said, listed):
        told = [line for line in shown.splitlines() if "tells the label" in " ".join(line.split())]
        assert len(told) == (place is not None)


def test_an_official_split_is_no_sequence(tmp_path, draw):
    """Unique words beside it are, such as molecules."""
    rows = [
        ["".join(draw.choices("CNOc1()=", k=20)), draw.choice(["Train", "Test"]), i % 2]
        for i in range(90)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["mol", "Model", "active"], rows))
    assert (config.data.sequence, config.data.label) == ("mol", "active")


def test_a_word_per_row_is_said(tmp_path, monkeypatch, cli, draw):
    monkeypatch.chdir(tmp_path)
    words = [name(draw) for _ in range(8)]
    rows = [[f"s{i // 6}", draw.choice(words), draw.choice("ONP")] for i in range(240)]
    write(Path("a.csv"), ["sent", "word", "tag"], rows)
    assert "other words" in cli("init", "a.csv", "-o", "c.yaml").err


def test_rows_of_channels_are_one_sequence_in_the_order_of_their_readings(tmp_path, draw):
    """The long form of sktime and aeon: case, dimension, reading, value."""
    rows = []
    for case in range(40):
        size = draw.randint(5, 9)
        for channel in range(3):
            for reading in range(size):
                value = round(draw.gauss(case % 2, 1), 3)
                rows.append([case, channel, reading, value, "pq"[case % 2]])
    names = ["case_id", "dim_id", "reading_id", "value", "class_val"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.order) == ("case_id", "reading_id")
    assert config.data.steps["dim_id"] == "token"


def test_numbered_messages_of_a_conversation_are_turns(tmp_path, draw):
    rows = []
    for talk in range(60):
        for turn in range(draw.randint(3, 6)):
            said = [draw.choice(["agent", "caller"]), sentence(draw), f"08:{turn:02d}:00"]
            rows.append([f"t{talk}", turn + 1, *said, "ab"[talk % 2]])
    names = ["conversation_id", "turn", "speaker", "utterance", "time", "outcome"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows), id="conversation_id")
    assert config.data.sequence == ["speaker", "utterance"]


def test_counts_of_a_sensor_that_all_differ_are_measured(tmp_path, draw):
    counts = draw.sample(range(10_000, 9_000_000), 400)
    rows = [[i // 10, i % 10, count, i // 10 % 2] for i, count in enumerate(counts)]
    config, _ = proposed(write(tmp_path / "a.csv", ["take", "t", "red", "worn"], rows))
    assert (config.data.id, config.data.order) == ("take", "t")
    assert config.data.steps == {"red": "number"}


def test_numbers_joined_by_commas_are_lists_of_labels(tmp_path, draw):
    """Each part is a label, too: "1,4" isn't 1.4; but the marks 1,3 and 1,7 are."""
    rows = [
        [sentence(draw), ",".join(draw.sample("01234", draw.choice([1, 1, 2])))] for _ in "ab" * 99
    ]
    config, proposal = proposed(
        write(tmp_path / "a.tsv", ["said", "topic"], rows, "\t"), label="topic"
    )
    assert config.data.label_separator == ","
    assert "5 classes" in proposal.text
    rows = [[sentence(draw), draw.choice(["1,0", "1,3", "1,7", "2,0"])] for _ in "ab" * 99]
    config, _ = proposed(write(tmp_path / "b.tsv", ["said", "mark"], rows, "\t"), label="mark")
    assert config.data.label_separator is None


def test_a_first_row_whose_label_comes_again_is_data(tmp_path, draw):
    """Also if the label is a usual name of a column."""
    rows = [[f"{sentence(draw)}!", draw.choice(["question", "praise"])] for _ in range(90)]
    rows[0][1] = "question"
    config, _ = proposed(write(tmp_path / "a.txt", [], rows, ";"))
    assert (config.data.sequence, config.data.label) == (0, 1)


def test_a_clock_that_counts_down_can_keep_the_order_of_the_file(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = []
    for game in range(60):
        for left in sorted(draw.sample(range(700), 8), reverse=True):
            rows.append(
                [f"g{game}", f"{left // 60:02d}:{left % 60:02d}", draw.choice("abc"), game % 2]
            )
    write(Path("a.csv"), ["game_id", "clock", "play", "won"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    (option,) = re.findall("counts down.*?(--set [^ \n]*)", said)
    said = cli("init", "a.csv", "-o", "c.yaml", "--force", *shlex.split(option)).err
    assert parse_config(Path("c.yaml").read_text()).data.order is None
    assert "newest" not in said


@pytest.mark.parametrize("kind", ["address", "molecule", "gene"])
def test_words_that_differ_are_the_sequence_beside_words_that_repeat(tmp_path, draw, kind):
    """No word is a sequence that stands in many rows, such as a country."""
    letters = {"address": "abcdxyz.-/", "molecule": "CNOc1()=", "gene": "ACGT"}[kind]
    places = [name(draw) for _ in range(3)]
    rows = [
        ["".join(draw.choices(letters, k=draw.randint(15, 30))), draw.choice(places), "pq"[i % 2]]
        for i in range(90)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", [kind, "region", "verdict"], rows))
    assert (config.data.sequence, config.data.label) == (kind, "verdict")


def test_lists_of_whole_numbers_beside_decimals_are_channels(tmp_path, draw):
    rows = []
    for i in range(60):
        size, level = draw.randint(6, 12), 60 + 30 * (i % 2)
        pulse = [round(draw.gauss(level, 5)) for _ in range(size)]
        warmth = [round(draw.gauss(37, 0.3), 1) for _ in range(size)]
        rows.append([i, json.dumps(pulse), json.dumps(warmth), ["ok", "fever"][i % 2]])
    config, _ = proposed(write(tmp_path / "a.csv", ["nr", "pulse", "warmth", "state"], rows))
    assert (config.data.sequence, config.data.kind) == (["pulse", "warmth"], "features")


def test_capitals_at_the_begin_of_sentences_are_no_symbols(tmp_path, draw):
    rows = [[sentence(draw).capitalize() + draw.choice(".!?"), "ab"[i % 2]] for i in range(120)]
    config, _ = proposed(write(tmp_path / "a.csv", ["text", "label"], rows))
    assert config.data.kind == "text"


def test_an_emotion_is_the_label_rather_than_a_language(tmp_path, draw):
    rows = [
        [draw.choice(["en", "es"]), sentence(draw), draw.choice(["joy", "fear"])] for _ in "ab" * 50
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["lang", "said", "emotion"], rows))
    assert config.data.label == "emotion"


def test_marks_of_several_columns_are_missing_by_one_command(tmp_path, monkeypatch, draw, cli):
    """A mark in the column that sorts the rows is to be corrected, and no missing number."""
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"v{i // 8}", i % 8, draw.random(), draw.random(), "ab"[i // 8 % 2]] for i in range(480)
    ]
    rows[3][2], rows[200][3], rows[300][1] = "ERR", "n/v", "k.A."
    write(Path("a.csv"), ["valve", "step", "flow", "temp", "state"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    (option,) = {*re.findall("--set 'data.na_values=.*'", said)}
    cli("init", "a.csv", "-o", "c.yaml", "--force", *shlex.split(option))
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.na_values, data.order) == ({"flow": ["ERR"], "temp": ["n/v"]}, "step")


def test_numbers_of_ships_are_ids_beside_times(tmp_path, draw):
    """Whatever their name says, if their rows all have another time."""
    ships = draw.sample(range(200_000_000, 300_000_000), 60)
    rows = []
    for minute in range(8):
        for place, ship in enumerate(ships):
            position = [round(draw.gauss(place % 3, 1), 3), round(draw.random(), 3)]
            rows.append([f"2023-03-16 08:{minute:02d}:00", ship, *position, "xyz"[place % 3]])
    names = ["stamp", "hull", "lat", "speed", "ship type"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows), label="ship type")
    assert (config.data.id, config.data.order) == ("hull", "stamp")


@pytest.mark.parametrize(("number", "id"), [("MMSI", "MMSI"), ("ID", "ID"), ("hull", "call")])
def test_a_second_name_of_an_id_is_no_feature(tmp_path, draw, number, id):
    """The column that is named like codes is the id, and the number of a thing is no number."""
    cars = draw.sample(range(300_000, 900_000), 40)
    rows = []
    for place, car in enumerate(cars):
        weight = draw.randrange(700, 3000)
        for minute in range(9):
            speed = round(draw.gauss(place % 2, 1), 3)
            called = f"{name(draw)} {place}" if minute == 0 else rows[-1][0]
            stamp = f"2023-05-02 07:{minute:02d}:00"
            rows.append([called, car, stamp, speed, weight, "mn"[place % 2]])
    names = ["call", number, "stamp", "speed", "mass", "kind"]
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows), label="kind")
    assert config.data.id == id
    assert config.data.static == {"mass": "number"}
    assert any("(the id again)" in line for line in proposal.uses)


def test_a_training_set_and_its_metadata_are_joined(tmp_path, draw):
    """Both names say that they are for training."""
    rows = [
        [star, 59_000 + night, round(draw.gauss(star % 3, 1), 3)]
        for star in range(60)
        for night in sorted(draw.sample(range(900), 7))
    ]
    write(tmp_path / "training_set.csv", ["object_id", "mjd", "flux"], rows)
    facts = [[star, round(draw.random(), 2), "xyz"[star % 3]] for star in range(60)]
    write(tmp_path / "training_set_metadata.csv", ["object_id", "dec", "target"], facts)
    config, _ = proposed(str(tmp_path))
    data = config.data
    assert (data.id, data.order, data.label) == ("object_id", "mjd", "target")


def test_values_at_times_of_day_are_one_channel(tmp_path, draw):
    hours = [f"{place // 2:02d}:{place % 2 * 30:02d}" for place in range(48)]
    rows = [[*(round(draw.gauss(i % 2, 1), 2) for _ in hours), "ab"[i % 2]] for i in range(60)]
    config, proposal = proposed(write(tmp_path / "a.csv", [*hours, "kind of day"], rows))
    assert config.data.kind == "features"
    assert not [line for line in proposal.warnings if "channel" in line]


def test_a_label_named_for_fasta_is_refused(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    lines = [f">s{i}|{'pq'[i % 2]}\n{''.join(draw.choices('ACGT', k=40))}\n" for i in range(60)]
    Path("a.fasta").write_text("".join(lines))
    assert "--label" in cli("init", "a.fasta", "--label", "species", code=2).err


def test_times_of_day_do_not_sort_dates_that_cannot_be_read(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = []
    for pump in range(60):
        for day in (6, 7):
            for hour in draw.sample(range(1, 12), 4):
                rows.append([f"3/{day}/2023", f"{hour}:00 PM", f"P{pump}", draw.random(), pump % 2])
    draw.shuffle(rows)
    write(Path("a.csv"), ["Date", "Time", "pump", "flow", "state"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml", "--label", "state").err
    assert parse_config(Path("c.yaml").read_text()).data.order is None
    assert "'Date': " in said
    run_conversion(cli, said.partition("month comes first:")[2], "dates")
    cli("init", "a-dates.csv", "-o", "c.yaml", "--force", "--label", "state")
    assert parse_config(Path("c.yaml").read_text()).data.order == ["Date", "Time"]


def test_a_code_of_the_label_is_no_group(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[i % 3 + 1, sentence(draw), "xyz"[i % 3]] for i in range(90)]
    write(Path("a.csv"), ["grade_id", "said", "grade"], rows)
    cli("init", "a.csv", "-o", "c.yaml")
    shown = cli("data", "c.yaml").out
    assert "grade_id" in shown
    assert "data.group" not in shown


def test_symbols_in_parentheses(tmp_path, draw):
    moves = ["up", "down", "left"]
    rows = [[f"({','.join(draw.choices(moves, k=6))})", "ab"[i % 2]] for i in range(80)]
    config, _ = proposed(write(tmp_path / "a.csv", ["moves", "class"], rows))
    vocabulary = prepare(config).preprocessing.vocabulary
    assert vocabulary is not None
    assert {*moves} == {x for x in vocabulary.tokens if "<" not in x}


def test_a_blank_name_in_the_middle_of_a_header(tmp_path, draw):
    rows = [[sentence(draw), "", draw.choice("pqr")] for _ in range(90)]
    rows[3][1] = rows[70][1] = "x"
    for row in rows[10:60]:
        row[1] = "x"
    config, _ = proposed(write(tmp_path / "a.csv", ["said", "", "level"], rows))
    assert (config.data.sequence, config.data.label) == ("said", "level")


def test_numbered_attributes_of_words_stand_beside_a_text(tmp_path, draw):
    names = [f"attribute {i}" for i in range(12)]
    rows = [[*(draw.choice("abc") for _ in names), sentence(draw)] for _ in range(90)]
    path = write(tmp_path / "a.csv", [*names, "description"], rows)
    config, _ = proposed(path, label="attribute 3")
    assert config.data.sequence == "description"


def test_rows_of_machines_without_a_time_are_windows_by_a_command(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"bus{i // 90}", draw.gauss(i // 30 % 2, 1), draw.random(), ["off", "on"][i // 30 % 2]]
        for i in range(720)
    ]
    write(Path("a.csv"), ["bus", "shake", "noise", "status"], rows)
    refused = cli("init", "a.csv", "--label", "status", "-o", "c.yaml", code=2).err
    cli(*shlex.split(re.findall("seqtrain (init .*?)  # its rows", refused)[0]))
    data = parse_config(Path("c.yaml").read_text()).data
    assert data.id == "bus"
    assert data.window


def test_notes_joined_by_hyphens_are_no_dates(tmp_path, draw):
    rows = [
        [f"op{i}", "-".join(str(draw.randint(60, 72)) for _ in range(12)), "ab"[i % 2]]
        for i in range(80)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["opus", "notes", "composer"], rows))
    assert config.data.sequence == "notes"


def test_falling_wave_lengths_are_names(tmp_path, draw):
    waves = [str(4000 - 50 * place) for place in range(30)]
    rows = [[draw.choice("pq"), *(f"{draw.random():.4f}" for _ in waves)] for _ in range(60)]
    config, _ = proposed(write(tmp_path / "a.csv", ["substance", *waves], rows, ";"))
    assert config.data.label == "substance"


def test_a_first_row_whose_label_is_alone_may_be_a_header(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[sentence(draw), draw.choice("pq"), draw.random()] for _ in range(60)]
    write(Path("a.csv"), ["a b c d", "grade", "0.5"], rows)
    assert "--header" in cli("init", "a.csv", "-o", "c.yaml", "--label", 1).err


@pytest.mark.parametrize(
    ("names", "last_only", "order"),
    [
        (["conversation_id", "turn", "speaker", "text", "label"], False, "turn"),
        (["dialog_id", "time", "words", "outcome"], False, "time"),
        (["call_id", "time", "role", "words", "outcome"], True, "time"),
        (["Chat", "words", "outcome"], False, None),
    ],
)
def test_rows_of_conversations_with_one_label_are_turns(tmp_path, draw, names, last_only, order):
    rows = []
    for i in range(60):
        size = draw.randint(3, 6)
        for turn in range(size):
            row = {
                "turn": turn + 1,
                "time": f"2024-01-02 {8 + turn:02d}:{draw.randrange(60):02d}:00",
            }
            row |= dict.fromkeys(["speaker", "role"], ["agent", "customer"][turn % 2])
            row |= dict.fromkeys(["text", "words"], sentence(draw))
            own = "" if last_only and turn < size - 1 else "yn"[i % 2]
            row |= dict.fromkeys(["label", "outcome"], own)
            rows.append([row.get(each, f"c{i}") for each in names])
    path = write(tmp_path / "a.csv", names, rows)
    config, proposal = proposed(path)
    text = next(each for each in names if each in ("text", "words"))
    assert (config.data.id, config.data.order) == (names[0], order)
    assert text in str(config.data.sequence)
    assert any(f"--sequence {text}" in line for line in proposal.warnings)
    assert proposed(path, sequence=text)[0].data.id is None


@pytest.mark.parametrize("mark", ["# ", "%", "// "])
def test_comments_before_a_header(tmp_path, draw, mark):
    rows = [[f"r{i // 6}", i % 6, round(draw.random(), 3), "ab"[i // 6 % 2]] for i in range(360)]
    path = write(tmp_path / "a.csv", ["run", "t", "temp", "phase"], rows)
    text = Path(path).read_text()
    Path(path).write_text(f"{mark}Logger v2\n{mark}serial 8812\n{text}")
    config, _ = proposed(path)
    assert (config.data.id, config.data.order, config.data.label) == ("run", "t", "phase")


def test_measured_columns_are_no_choices_beside_likelier_labels(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    names = [f"{kind}_v{visit}" for visit in range(4) for kind in ("sys", "dia")]
    rows = [
        [i, draw.choice("AB"), *(draw.randint(70, 140) for _ in names), draw.choice(["yes", "no"])]
        for i in range(160)
    ]
    write(Path("a.csv"), ["pid", "arm", *names, "better"], rows)
    refused = cli("init", "a.csv", code=2).err
    assert "--label better" in refused
    assert "--label sys_v0" not in refused


def test_blocks_of_rows_with_one_label_are_kept_together(tmp_path, monkeypatch, draw, cli):
    """Whatever their name says, before owners that several of them share."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for play in range(30):
        for line in range(6):
            who = draw.choice(["First", "Second", "Chorus"])
            rows.append([f"{name(draw)}{play}", line, who, sentence(draw), "tc"[play % 2]])
        rows[-6:] = [[rows[-6][0], *row[1:]] for row in rows[-6:]]
    write(Path("a.csv"), ["play", "line", "speaker", "text", "genre"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    assert "--id play" in said
    assert "data.group=play" in said


def test_weeks_are_no_labels_beside_others(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    weeks = [f"wk{i}" for i in range(1, 9)]
    rows = [[draw.choice("xyz"), *draw.choices("PAL", k=8), draw.choice("mn")] for _ in range(90)]
    write(Path("a.csv"), ["course", *weeks, "enrolled"], rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert "--label enrolled" in refused
    assert "wk1" not in refused


def test_a_tune_is_the_sequence_beside_its_name(tmp_path, draw):
    rows = []
    for number in range(90):
        tune = "|".join("".join(draw.choices("abcdefgA", k=8)) for _ in range(8))
        rows.append([f"{name(draw)} {number}", tune, draw.choice("xy")])
    config, _ = proposed(write(tmp_path / "a.csv", ["name", "abc", "dance"], rows))
    assert config.data.sequence == "abc"


def test_html_is_text(tmp_path, draw):
    rows = [[f"<p>{sentence(draw)}&nbsp;again</p>", "xy"[i % 2]] for i in range(120)]
    config, _ = proposed(write(tmp_path / "a.csv", ["body", "tag"], rows))
    assert config.data.kind == "text"


@pytest.mark.parametrize("form", ["2024-{0:02d}-{1:02d}", "KW {2}/2023", "{0:02d}:{1:02d}"])
def test_a_time_whose_rows_have_one_label_is_the_id(tmp_path, draw, form):
    """A day, a week or a start, and not the kind of an event, whose labels change."""
    rows = []
    for unit in range(45):
        day = form.format(unit // 23 + 1, unit % 23 + 1, unit + 1)
        for step in range(8):
            event = [draw.choice(["load", "run", "stop"]), round(draw.random(), 2)]
            rows.append([day, step, *event, ["good", "bad"][unit % 2]])
    names = ["unit", "step", "event", "amps", "verdict"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.order) == ("unit", "step")
    assert config.data.window is None
