"""Columns that `init` takes as label and id, and doubts about what a class or a column holds."""

import itertools
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.config.schema import DataConfig
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import follow_printed, run_conversions
from tests.proposal.test_forms import draw, sentence, write

__all__ = ["draw"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def data_of(path: str = "c.yaml") -> DataConfig:
    config = parse_config(Path(path).read_text())
    assert prepare(config).splits["train"]
    return config.data


def printed(said: str) -> list[list[str]]:
    """Return the printed commands of init, as a shell reads them."""
    return [
        shlex.split(line, comments=True)
        for line in re.findall(r"^seqtrain:   seqtrain (init .*)$", said, re.M)
    ]


JOBS, DAYS = ["Koch", "Fahrer", "Pfleger"], ["Montag", "Dienstag", "Freitag"]
NAMES = {
    "Tag": [DAYS, [1, 2, 3, 4, 5], ["Tag 1", "Tag 2", "Tag 3"], ["Mo", "Di", "Sa"]],
    "Stelle": [JOBS],
}


@pytest.mark.parametrize(
    ("name", "values"), [(name, values) for name, own in NAMES.items() for values in own]
)
@pytest.mark.parametrize("outcome", ["Entscheidung", "Kategorie", "Ergebnis"])
def test_words_of_another_language_are_no_labels(draw, cli, name, values, outcome):
    rows = [
        [r % 997, values[r % len(values)], sentence(draw), draw.choice("jn")] for r in range(80)
    ]
    write(Path("a.csv"), ["Nr", name, "Brief", outcome], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    assert data_of().label == outcome


@pytest.mark.parametrize(
    ("name", "values"), [("stelle", "12345"), ("tag", ["spam", "ham"]), ("note", "1234")]
)
def test_the_same_words_are_labels_where_their_cells_say_so(draw, cli, name, values):
    rows = [[values[r % len(values)], sentence(draw), draw.choice("xy")] for r in range(80)]
    write(Path("a.csv"), [name, "testo", "reparto"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    assert data_of().label == name


@pytest.mark.parametrize(
    ("outcome", "trait"),
    [("fraud", "type"), ("in-hospital_death", "class"), ("esito", "classe"), ("Ausfall", "Typ")],
)
def test_an_outcome_comes_before_a_property_of_an_id(draw, cli, outcome, trait):
    traits = [[draw.choice("xyz"), draw.randrange(2)] for _ in range(60)]
    rows = [
        [f"k{at}", step, draw.gauss(0, 1), *own]
        for at, own in enumerate(traits)
        for step in range(5)
    ]
    write(Path("a.csv"), ["id", "t", "wert", trait, outcome], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    assert data_of().label == outcome


@pytest.mark.parametrize("names", [("100", "010", "001"), ("11", "10", "01")])
def test_columns_with_names_of_bits_are_labels(draw, cli, names):
    marks = [[int(at % 3 == place) for place in range(3)] for at in range(60)]
    write(Path("a.csv"), ["text", *names], [[sentence(draw), *own] for own in marks])
    labels = [word for name in names for word in ("--label", name)]
    cli("init", "a.csv", "--header", *labels, "-o", "c.yaml", "--force")
    assert data_of().label == [*names]


def answers(draw: random.Random, *traits: str) -> list[list[Any]]:
    """Return rows of a user, a time, a word, an answer, and traits of the user."""
    rows = []
    for user in range(40):
        own = [draw.choice(trait.split()) for trait in traits]
        for step in range(draw.randrange(6, 12)):
            known = [f"w{draw.randrange(40)}", draw.randrange(2)]
            rows.append([f"u{user}", 1500000000 + 60 * step, *known, *own])
    return rows


@pytest.mark.parametrize("id", ["user_id", "learner_student", "player"])
@pytest.mark.parametrize("trait", ["learning_language", "ui_language", "language", "Sprache"])
def test_a_language_of_a_person_is_asked_about(draw, cli, id, trait):
    write(Path("a.csv"), [id, "time", "word", "correct", trait], answers(draw, "de es fr"))
    asked = cli("init", "a.csv", code=2).err
    assert {command[-1] for command in printed(asked) if "--label" in command} >= {trait, "correct"}
    cli("init", "a.csv", "-o", "c.yaml", "--label", trait)
    assert data_of().label == trait


def test_a_language_of_speakers_is_the_label_of_their_recordings(draw, cli):
    rows = [[f"s{n // 9}", n % 9, draw.gauss(0, 1), ["de", "fr"][n // 9 % 2]] for n in range(360)]
    write(Path("a.csv"), ["speaker", "t", "f1", "language"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    assert (data_of().label, data_of().id) == ("language", "speaker")


def test_a_language_is_a_row_feature_beside_another_label(draw, cli):
    names = ["user_id", "time", "word", "correct", "learning_language", "completed"]
    write(Path("a.csv"), names, answers(draw, "de es fr", "yes no"))
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    data = data_of()
    assert (data.label, data.id, [*data.static]) == ("completed", "user_id", ["learning_language"])


def recordings(folder: str, names: list[str], columns: str = "t,x") -> None:
    for name in names:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        more = ",".join("ab"[int(Path(name).stem[-1]) % 2] for _ in columns.split(",")[2:])
        lines = [f"{step},{step / 7 + len(name)}{',' * bool(more)}{more}" for step in range(12)]
        path.write_text("\n".join([columns, *lines]) + "\n")


@pytest.mark.parametrize("person", ["Actor_", "S", "user", "subject-", "P0", "Session "])
def test_folders_of_persons_are_groups_and_words_in_names_are_labels(cli, person):
    names = [
        f"{person}{p}/{mood}_{n}.csv" for p in range(1, 7) for mood in ("sad", "glad") for n in "12"
    ]
    recordings("d", names)
    cli("init", "d", "-o", "c.yaml", "--force")
    data = data_of()
    assert (data.label, data.group) == ("label", "subject")
    prepared = prepare(parse_config(Path("c.yaml").read_text()))
    assert {*prepared.preprocessing.labels} == {"sad", "glad"}


@pytest.mark.parametrize("person", ["Actor_", "S", "speaker"])
def test_numbers_in_names_below_persons_are_asked_about(cli, person):
    """As in RAVDESS: the last number is that of the person, and no label."""
    names = [
        f"{person}{p:02}/03-{m:02}-0{n}-{p:02}.csv"
        for p in range(1, 7)
        for m in (1, 2, 3)
        for n in (1, 2)
    ]
    recordings("d", names)
    asked = printed(cli("init", "d", code=2).err)
    patterns = [command[-1] for command in asked if "--set" in command]
    assert [pattern.count("(?P<subject>") for pattern in patterns] == [1, 1, 0]
    for number, classes in ((0, {"01", "02", "03"}), (1, {"01", "02"}), (2, set())):
        cli(*asked[number], "-o", "c.yaml", "--force")
        prepared = prepare(parse_config(Path("c.yaml").read_text()))
        labels = prepared.preprocessing.labels
        assert len(labels) == (len(classes) or 6)
        assert data_of().group == ("subject" if classes else None)


def test_files_of_a_pattern_below_persons_have_short_commands(cli):
    names = [f"S{p}/{m}_{n}.csv" for p in range(1, 7) for m in (1, 2, 3) for n in (1, 2)]
    recordings("d", names)
    files = [f"d/{name}" for name in names]
    first, *_ = printed(cli("init", *files, code=2).err)
    assert len(first) == 4
    cli(*first, "-o", "c.yaml", "--force")
    assert (data_of().label, data_of().group) == ("label", "subject")


def test_a_column_of_recordings_below_persons_is_the_label_with_the_printed_command(cli):
    recordings("d", [f"user{p}/rec{n}.csv" for p in range(6) for n in range(4)], "t,x,state")
    (*_, command) = printed(cli("init", "d", code=2).err)
    cli(*["state" if word == "COLUMN" else word for word in command], "-o", "c.yaml", "--force")
    assert (data_of().label, data_of().id) == ("state", "file")
    (*_, line) = printed(cli("init", "d", "--format", "csv", "--label", "state", code=2).err)
    cli(*line, "-o", "c.yaml", "--force")
    assert (data_of().label, data_of().id) == ("state", "file")


@pytest.mark.parametrize("kind", ["gesture_", "class", "", "digit-"])
def test_other_folders_with_numbers_stay_labels(cli, kind):
    recordings("d", [f"{kind}{c}/rec{n}.csv" for c in range(1, 5) for n in range(6)])
    cli("init", "d", "-o", "c.yaml", "--force")
    assert (data_of().label, data_of().group) == ("label", None)


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("txt", "\t"), ("txt", ";")])
@pytest.mark.parametrize("given", [[], ["--label", "gesture_class"]])
def test_a_label_in_recordings_comes_before_numbered_folders(draw, cli, ending, mark, given):
    """The folders are those of persons, and the label changes in each recording."""
    for person, take in itertools.product(range(1, 7), (1, 2)):
        steps = [[t, draw.gauss(t // 30 % 3, 1), draw.random(), t // 30 % 3] for t in range(120)]
        path = Path(f"d/{person:02}/{take}_raw_{draw.randrange(90)}.{ending}")
        write(path, ["time", "ch1", "ch2", "gesture_class"], steps, mark)
    refused = cli("init", "d", *given, code=2).err
    assert "convert" not in refused
    command = next(own for own in printed(refused) if "file" in own)
    cli(*command, "-o", "c.yaml", "--force")
    data = data_of()
    assert (data.id, data.label, bool(data.window)) == ("file", "gesture_class", True)
    assert "gesture_class" not in data.steps


@pytest.mark.parametrize("fold", ["strat_fold", "fold", "kfold", "Fold_ID"])
@pytest.mark.parametrize("form", ["{}", "fold{}"])
def test_a_fold_is_no_id_no_label_and_no_feature(draw, cli, fold, form):
    rows = []
    for person in range(60):
        own = [form.format(person % 5), "np"[draw.randrange(2)]]
        rows += [[f"p{person}", step, draw.gauss(0, 1), *own] for step in range(6)]
    write(Path("a.csv"), ["patient", "t", "value", fold, "diag"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    data = data_of()
    assert (data.id, data.label, data.static or {}, [*data.steps]) == (
        "patient",
        "diag",
        {},
        ["value"],
    )
    rows = [
        [draw.randrange(20, 90), draw.gauss(60, 9), form.format(f), "np"[f % 2]]
        for f in range(6)
        for _ in range(20)
    ]
    write(Path("b.csv"), ["age", "weight", fold, "diag"], rows)
    assert fold not in " ".join(map(shlex.join, printed(cli("init", "b.csv", code=2).err)))


@pytest.mark.parametrize("machine", ["machineID", "machine", "unit_id", "Maschine"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_machines_that_fail_at_one_hour_are_the_ids(draw, cli, machine, is_sorted):
    rows = [
        [
            f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00:00",
            own,
            draw.gauss(170, 9),
            int(44 <= hour < 48),
        ]
        for hour in range(72)
        for own in range(1, 13)
    ]
    if is_sorted:
        rows.sort(key=lambda row: row[1])
    write(Path("a.csv"), ["datetime", machine, "volt", "failure"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    data = data_of()
    assert (data.id, data.order, data.label) == (machine, "datetime", "failure")
    assert data.window is not None


@pytest.mark.parametrize("machine", ["turbine", "station", "asset"])
def test_numbers_with_a_row_at_each_time_are_offered_as_ids(draw, cli, machine):
    rows = [
        [f"2024-01-{1 + hour // 24:02} {hour % 24:02}:00:00", own, draw.gauss(9, 1), int(hour > 60)]
        for hour in range(72)
        for own in range(1, 13)
    ]
    write(Path("a.csv"), ["datetime", machine, "volt", "failure"], rows)
    asked = printed(cli("init", "a.csv", code=2).err)
    (command,) = [command for command in asked if command[-2:] == ["--id", machine]]
    cli(*command, "-o", "c.yaml", "--force")
    assert (data_of().id, data_of().order) == (machine, "datetime")


MISSING = ["n/a", "NA", "-", "null"]


def valued(draw: random.Random, form: str) -> list[Any]:
    """Return the cells of a row that isn't missing."""
    if form == "series":
        return [draw.gauss(0, 1) for _ in range(10)]
    found = {"text": sentence(draw), "tokens": draw.choice(["up", "down"])}
    return [found.get(form, draw.gauss(0, 1))]


@pytest.mark.parametrize("cell", MISSING)
@pytest.mark.parametrize("form", ["text", "steps", "tokens", "series"])
def test_a_class_without_values_is_doubted(draw, cli, cell, form):
    are_steps, rows = form in ("steps", "tokens"), list[list[Any]]()
    for at in range(60):
        label = "abc"[at % 3]
        for step in range(6 if are_steps else 1):
            values = valued(draw, form)
            own = [cell] * len(values) if label == "c" else values
            rows.append([*([f"k{at}", step] if are_steps else []), *own, label])
    names = [*(["id", "t"] if are_steps else []), *(f"t{n}" for n in range(len(values))), "label"]
    write(Path("a.csv"), names, rows)
    said = cli("init", "a.csv", "-o", "c.yaml", "--force").err
    (line,) = [line for line in said.splitlines() if "the label 'c'" in line]
    assert cell in line or form == "series"
    again = cli("data", "c.yaml")
    assert "'c'" in again.out + again.err


def test_numbers_without_relation_to_the_label_are_no_tokens(cli):
    """Chance seems to tell a label by many different numbers, in some draws."""
    for seed, ids, steps, classes in ((144, 10, 60, 2), (225, 10, 60, 2), (188, 100, 10, 4)):
        draws, rows = np.random.default_rng(seed), list[list[Any]]()
        for own in range(ids):
            for step in range(steps):
                value = int(300 + 60 * draws.normal(0, 1))
                rows.append([f"k{own}", step, value, "abcde"[own % classes]])
        write(Path("a.csv"), ["id", "t", "value", "kind"], rows)
        cli("init", "a.csv", "-o", "c.yaml", "--force")
        assert data_of().steps["value"] == "number"


def test_few_numbers_with_gaps_between_them_may_be_codes(draw, cli):
    """Not counts, of which the rare ones leave gaps, and no prices."""
    shops = [1, 2, 3, 5, 9, 17, 33, 61, 72, 85]
    for name, values, is_doubtful in (
        ("shop", shops, True),
        ("price", shops, False),
        ("visits", [*range(10)] * 30 + [40, 71], False),
    ):
        rows = []
        for owner in range(60):
            for day in range(1, 21):
                paid = f"{draw.uniform(1, 90):.2f}"
                rows.append([f"k{owner}", day, draw.choice(values), paid, "uv"[owner % 2]])
        write(Path("a.csv"), ["client_id", "day", name, "paid", "left"], rows)
        said = cli("init", "a.csv", "--label", "left", "-o", "c.yaml", "--force").err
        assert data_of().steps[name] == "number"
        options = re.findall(r"if they are codes: (.*)", said)
        assert bool(options) == is_doubtful
        if is_doubtful:
            command = ["init", "a.csv", "--label", "left", "-o", "c.yaml", "--force"]
            cli(*command, *shlex.split(options[0]))
            assert data_of().steps[name] == "token"


def indian(number: int) -> str:
    text = str(number)
    head, tail = text[:-3], text[-3:]
    parts = []
    while head:
        head, part = head[:-2], head[-2:]
        parts.insert(0, part)
    return ",".join([*parts, tail])


@pytest.mark.parametrize("sign", ["", "₹"])
def test_amounts_with_marks_of_india_are_numbers(draw, cli, sign):
    amounts = [[int(10 ** draw.uniform(2, 7.5)) for _ in range(6)] for _ in range(60)]
    rows = [
        [f"A{at}", f"2024-0{step + 1}-01", f"{sign}{indian(amount)}", "pd"[at % 2]]
        for at, own in enumerate(amounts)
        for step, amount in enumerate(own)
    ]
    write(Path("a.csv"), ["account", "date", "amount", "status"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--set", "data.validation=null")
    data = data_of()
    assert (data.id, data.steps["amount"]) == ("account", "number")
    marked = prepare(parse_config(Path("c.yaml").read_text())).splits["train"]
    plain = [[*row[:2], str(row[2]).replace(",", ""), row[3]] for row in rows]
    write(Path("a.csv"), ["account", "date", "amount", "status"], plain)
    expected = prepare(parse_config(Path("c.yaml").read_text())).splits["train"]
    np.testing.assert_array_equal(marked.values, expected.values)


@pytest.mark.parametrize("units", [("K",), ("K", "M"), ("k", "M", "B"), ("Mio",), ("Tsd", "Mio")])
@pytest.mark.parametrize("mark", [",", ";"])
def test_numbers_with_k_beside_plain_ones_are_written_plain(draw, cli, units, mark):
    factors = {"K": 1e3, "k": 1e3, "Tsd": 1e3, "M": 1e6, "Mio": 1e6, "B": 1e9}
    rows, expected = [], []
    for at in range(40):
        for step in range(6):
            unit = ["", *units][step % (len(units) + 1)]
            number = draw.randrange(10, 999) / (10 if unit else 1)
            expected.append(number * factors.get(unit, 1))
            rows.append([f"v{at}", step, f"{number:g}{unit}", "vf"[at % 2]])
    write(Path("a.csv"), ["video", "day", "views", "status"], rows, mark)
    said = cli("init", "a.csv", "-o", "c.yaml", code=2 if len(units) == 1 else 0).err
    (new,) = follow_printed(cli, said)
    assert data_of().steps["views"] == "number"
    lines = Path(new).read_text().splitlines()[1:]
    assert [float(x.split(mark)[2]) for x in lines] == pytest.approx(expected)


@pytest.mark.parametrize("has_numbers", [True, False])
def test_sentences_as_tokens_are_doubted(draw, cli, has_numbers):
    reports = [sentence(draw)[:70] for _ in range(90)]
    rows = [
        [f"m{at}", step, *([draw.gauss(0, 1)] * has_numbers), draw.choice(reports), "od"[at % 2]]
        for at in range(60)
        for step in range(8)
    ]
    names = ["machine", "t", *(["temp"] * has_numbers), "bericht", "state"]
    write(Path("a.csv"), names, rows)
    said = cli("init", "a.csv", "-o", "c.yaml", "--force").err
    assert data_of().steps["bericht"] == "token"
    (line,) = [line for line in said.splitlines() if "bericht" in line and "--sequence" in line]
    options = shlex.split(line.rpartition(": ")[2])
    cli("init", "a.csv", *options, "-o", "c.yaml", "--force")
    assert (data_of().sequence, data_of().id, data_of().steps) == ("bericht", "machine", None)


def test_words_that_occur_once_tell_no_label(draw, cli):
    rows = [[" ".join(f"w{at}{n}" for n in range(4)), "ab"[at % 2]] for at in range(40)]
    Path("a.txt").write_text("".join(f"__label__{label} {text}\n" for text, label in rows))
    write(
        Path("a.csv"),
        ["text", "label"],
        [[f"x{at % 9} {text}", label] for at, (text, label) in enumerate(rows)],
    )
    for file in ("a.txt", "a.csv"):
        assert "tells the label" not in cli("init", file, "-o", "c.yaml", "--force").err


def test_lists_of_issue_labels_come_before_their_state(draw, cli):
    rows = [
        [sentence(draw), f"['{draw.choice(['bug', 'wish'])}']", draw.choice(["open", "closed"])]
        for _ in range(80)
    ]
    write(Path("a.csv"), ["body", "labels", "state"], rows)
    cli("init", "a.csv", "-o", "c.yaml", "--force")
    assert data_of().label == "labels"


@pytest.mark.parametrize("name", ["topics", "tags", "Emotions"])
def test_lists_of_labels_beside_another_label_are_said(draw, cli, name):
    rows = [[sentence(draw), json.dumps(draw.sample("abc", k=2)), "xy"[r % 2]] for r in range(80)]
    write(Path("a.csv"), ["body", name, "source"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml", "--force").err
    (line,) = [line for line in said.splitlines() if "if it is another one" in line]
    cli("init", "a.csv", *shlex.split(line.rpartition(": ")[2]), "-o", "c.yaml", "--force")
    assert data_of().label == name


@pytest.mark.parametrize("are_alone", [True, False])
def test_two_flags_are_offered_as_labels_after_other_columns(draw, cli, are_alone):
    names = ["body", "is_pull", "locked", *(["place"] * (not are_alone))]
    flags = [[draw.randrange(2), draw.randrange(2)] for _ in range(80)]
    rows = [[sentence(draw), *own, *(["ab"[own[0]]] * (not are_alone))] for own in flags]
    write(Path("a.csv"), names, rows)
    options = [command[-2] for command in printed(cli("init", "a.csv", code=2).err)]
    place = 0 if are_alone else len(options) - 1
    assert options.index("--set") == place


@pytest.mark.parametrize("text", ["body", "molecule"])
@pytest.mark.parametrize("has_blanks", [True, False])
def test_marks_beside_a_text_are_offered_as_labels_in_one_command(draw, cli, text, has_blanks):
    """Also beside a flag of another form, and a property."""
    names = ["calm", "proud", "angry", "sad", "amused", "bored", "afraid"]
    marks = [0, 0, 0, 1, ""] if has_blanks else [0, 0, 0, 1]
    rows = []
    for i in range(120):
        letters = "".join(draw.choices("CNOcn()=1", k=draw.randint(20, 40)))
        own = sentence(draw) if text == "body" else letters
        flags = [draw.choice(["True", "False"]), draw.choice("klm")]
        rows.append([own, f"r{i}", *flags, *draw.choices(marks, k=len(names))])
    write(Path("a.csv"), [text, "nr", "unclear", "board", *names], rows)
    command = printed(cli("init", "a.csv", code=2).err)[0]
    cli(*command, "-o", "c.yaml")
    assert (data_of().sequence, data_of().label) == (text, names)


def test_labels_of_0s_and_1s_are_doubted_with_the_command_that_writes_lists(draw, cli):
    rows = [[sentence(draw), "".join(draw.choices("01", k=4))] for _ in range(120)]
    write(Path("a.csv"), ["text", "bits"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml", "--force").err
    follow_printed(cli, said, "-o", "d.yaml", "--force")
    prepared = prepare(parse_config(Path("d.yaml").read_text()))
    assert len(prepared.preprocessing.labels) == 4


def chain(draw: random.Random, length: int) -> str:
    return "".join(draw.choices("ACDEFGHIKLMNPQRSTVWY", k=length))


@pytest.mark.parametrize("names", [("heavy", "light"), ("smiles", "protein"), ("sequence", "mhc")])
def test_a_second_sequence_of_letters_is_said_or_asked_about(draw, cli, names):
    rows = [[chain(draw, 120), chain(draw, 100), draw.randrange(2)] for _ in range(80)]
    write(Path("a.csv"), [*names, "binds"], rows)
    try:  # by chance, one of two texts may tell the label better, and is taken with a doubt
        said = cli("init", "a.csv", "-o", "c.yaml", "--force").err
        lines = [line for line in said.splitlines() if "--set 'data.sequence=" in line]
        command = ["init", "a.csv", *shlex.split(lines[0].rpartition(": ")[2])]
    except AssertionError:
        command = printed(cli("init", "a.csv", code=2).err)[-1]
    cli(*command, "-o", "c.yaml", "--force")
    assert data_of().sequence == [*names]


@pytest.mark.parametrize("mark", ["1", "x", "yes"])
def test_columns_of_marks_and_blanks_are_offered_as_labels(draw, cli, mark):
    rows = [[sentence(draw), *(draw.choice([mark, ""]) for _ in range(3))] for _ in range(80)]
    write(Path("a.csv"), ["text", "toxic", "insult", "threat"], rows)
    first, *_ = printed(cli("init", "a.csv", code=2).err)
    cli(*first, "-o", "c.yaml", "--force")
    assert data_of().label == ["toxic", "insult", "threat"]


def steps_of_things(draw, things: list[Any], clock: list[Any]) -> list[list[Any]]:
    """Return a row per thing and time: the thing, the time, eleven numbers."""
    rows = list[list[Any]]()
    for thing in things:
        for when in clock[: draw.randint(len(clock) // 2 + 8, len(clock))]:
            rows.append([thing, when, *(round(draw.gauss(9, 1), 3) for _ in range(11))])
    return rows


COUNT = list(range(1, 60))
DATES = [f"2024-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(60)]
CLOCKS: dict[str, tuple[str, list[Any], str, list[Any]]] = {
    "engines": ("unit", list(range(1, 31)), "cycle", COUNT),
    "few pumps": ("Pumpe", [3, 5, 8, 9], "Zyklus", COUNT),
    "unusual names": ("qua", list(range(70, 90)), "blo", COUNT),
    "shares": ("Name", ["AAPL", "MSFT", "KO", "XOM", "PG"], "date", DATES),
    "towns": ("ville", ["Lyon", "Nice", "Brest"], "jour", DATES),
}


@pytest.mark.parametrize("case", CLOCKS)
@pytest.mark.parametrize("numbers", [5, 11])
@pytest.mark.parametrize("by_time", [True, False])
def test_an_id_of_time_steps_is_no_label(draw, cli, case, numbers, by_time):
    thing, things, clock, times = CLOCKS[case]
    rows = [row[: 2 + numbers] for row in steps_of_things(draw, things, times)]
    if by_time:
        rows.sort(key=lambda row: row[1])
    names = [thing, clock, *"abcdefghijk"[:numbers]]
    write(Path("a.csv"), names, rows)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert f"--id {thing} --order {clock} --label" in refused
    assert "data.sequence" not in refused
    # With a label, the options work.
    kinds = {each: "uv"[place % 2] for place, each in enumerate(things)}
    write(Path("b.csv"), [*names, "kind"], [[*row, kinds[row[0]]] for row in rows])
    cli("init", "b.csv", "--id", thing, "--order", clock, "--label", "kind", "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.order, data.label) == (thing, clock, "kind")


def test_an_id_of_time_steps_without_names_is_no_label(draw, cli):
    rows = steps_of_things(draw, list(range(1, 31)), COUNT)
    Path("a.txt").write_text("".join(" ".join(map(str, row)) + "  \n" for row in rows))
    init = run_conversions(cli, cli("init", "a.txt", code=2).err)
    refused = cli(*init, code=2).err
    assert "--id 0 --order 1 --label" in refused
    asked = cli(*init, "--id", "0", "--order", "1", code=2).err
    assert "data.window" not in asked


def test_a_given_label_of_steps_without_names_leads_to_the_id(draw, cli):
    rows = []
    for person in range(8):
        for start, activity in [(900_000, "walk"), (500_000, "sit"), (700_000, "jog")]:
            for at in range(30):
                forces = [f"{draw.gauss(0, 1):.4f}" for _ in range(3)]
                rows.append([person, activity, 1000 * person + start + 7 * at, *forces])
    write(Path("a.txt"), [], rows)
    refused = cli("init", "a.txt", "--label", "1", code=2).err
    cli(*printed(refused)[0], "-o", "c.yaml")
    assert (data_of().id, data_of().label) == (0, 1)


@pytest.mark.parametrize("missing", ["NaN", "nan"])
def test_a_slow_sensor_is_no_label(draw, cli, missing):
    for person in range(4):
        steps = []
        for at in range(400):
            pulse = missing if at % 8 else 96
            moves = [f"{draw.gauss(at // 100, 1):.3f}" for _ in range(9)]
            steps.append([f"{5 + at / 50:.2f}", at // 100, pulse, *moves])
        write(Path(f"d/p{person}.csv"), [], steps)
    cli("init", "d", "-o", "c.yaml")
    assert data_of().label == 1
    cli("init", "d", "--id", "file", "-o", "c.yaml", "--force")
    assert data_of().label == 1


@pytest.mark.parametrize("has_names", [True, False])
def test_steps_of_words_with_a_label_each_lead_to_windows(draw, cli, has_names):
    rows = []
    for piece in range(20):
        for bar in range(1, draw.randint(12, 30)):
            tones = draw.choices(["yes", "no"], k=10)
            rows.append([f"{piece:03}b", bar, *tones, draw.choice("EFGA")])
    names = ["piece_id", "bar", *"abcdefghij", "chord"]
    write(Path("a.csv"), names if has_names else [], rows)
    label = "chord" if has_names else "12"
    refused = cli("init", "a.csv", "--label", label, "-o", "c.yaml", code=2).err
    asked = next(command for command in printed(refused) if "--id" in command)
    refused = cli(*asked, code=2).err
    cli(*printed(refused)[0], "--force")
    data = data_of()
    assert (data.id, data.order) == (("piece_id", "bar") if has_names else (0, 1))
    assert data.window
    assert str(data.label) == label


def test_numbered_trials_of_a_class_are_examples(draw, cli):
    rows = steps_of_things(draw, ["swipe", "tap", "pinch"], COUNT)
    names = ["gesture", "trial", *(f"t{step}" for step in range(11))]
    write(Path("a.csv"), names, rows)
    cli("init", "a.csv", "-o", "c.yaml")
    assert data_of().label == "gesture"


@pytest.mark.parametrize("owner", ["user", "subject", "Person"])
@pytest.mark.parametrize("has_short_runs", [True, False])
def test_clocks_that_begin_again_in_each_activity_leave_the_owner_as_the_id(
    draw, cli, owner, has_short_runs
):
    """Short runs of rows are no reason for short windows."""
    rows = list[list[Any]]()
    for person in range(1, 13):
        start = draw.randint(10**9, 2 * 10**9)
        for act in ("walk", "jog", "sit"):
            start -= 10**6
            for step in range(90):
                numbers = [round(draw.gauss(len(act), 1), 3) for _ in range(3)]
                is_short = has_short_runs and act == "sit" and step % 30 == 0
                label = "jog" if is_short else act
                rows.append([person, label, 1000 * (start + step), *numbers])
    write(Path("a.csv"), [owner, "activity", "timestamp", "x", "y", "z"], rows)
    cli("init", "a.csv", "-o", "c.yaml")
    data = data_of()
    assert (data.id, data.order, data.label) == (owner, "timestamp", "activity")
    assert data.window == {"steps": 32, "stride": 16, "label": "constant"}


@pytest.mark.parametrize("form", ["#{}", "№{}", "INV-2024-{:05}", "{:06}/B"])
@pytest.mark.parametrize("has_amounts", [True, False])
def test_numbers_of_orders_are_no_text_beside_their_customers(draw, cli, form, has_amounts):
    rows = []
    for i in range(240):
        buyer = draw.randrange(40)
        amount = f"{draw.uniform(3, 90):.2f}" if has_amounts else "EUR"
        day = f"2023-{1 + i // 20:02}-{1 + i % 20:02}"
        person = f"p{buyer}@post.example"
        rows.append([form.format(1000 + i), person, day, amount, draw.choice("klm"), buyer % 2])
    write(Path("a.csv"), ["Name", "Email", "Created at", "Total", "Item", "returned"], rows)
    cli("init", "a.csv", "--label", "returned", "-o", "c.yaml")
    data = data_of()
    assert (data.id, data.order) == ("Email", "Created at")
    assert "Name" not in data.steps


@pytest.mark.parametrize("name", ["uid", "transaction_id", "Vorgang"])
def test_random_ids_beside_numbers_are_no_texts(draw, cli, name):
    rows = []
    for i in range(120):
        code = "".join(draw.choices("abcdefghXYZ0123456789", k=12))
        rows.append([f"C{code}", round(draw.gauss(i % 2, 2), 2), draw.randint(1, 9), "uv"[i % 2]])
    write(Path("a.csv"), [name, "amount", "pieces", "label"], rows)
    (advised,) = re.findall(r"(--sequence \S+)$", cli("init", "a.csv", code=2).err, re.M)
    cli("init", "a.csv", *shlex.split(advised), "-o", "c.yaml")
    assert data_of().sequence == name


def test_a_list_that_is_equal_in_all_rows_is_no_label(draw, cli):
    """Each row has a name, which no other row has, and texts of this name."""
    kinds = ["hello", "prices", "refund", "hours", "staff", "thanks"]
    rows = [
        {
            "topic": kind,
            "asked": [sentence(draw) for _ in range(12)],
            "said": [sentence(draw) for _ in range(3)],
            "context": [""],
        }
        for kind in kinds
    ]
    Path("a.json").write_text(json.dumps({"topics": rows}))
    asked = cli("init", "a.json", code=2).err
    assert "'context' is" not in asked
    follow_printed(cli, asked, "-o", "c.yaml")
    assert (data_of().label, data_of().sequence) == ("topic", "asked")


@pytest.mark.parametrize(
    ("name", "other"), [("o.k.", "ok"), ("In Spec", "in  spec"), ("IO", "i.O.")]
)
def test_a_few_ids_with_two_spellings_of_a_label_stay_sequences(draw, cli, name, other):
    """Also where many rows of the id have the other spelling."""
    rows = []
    for batch in range(50):
        label = name if batch % 2 else "faulty"
        steps = draw.randint(14, 20)
        for at in range(steps):
            own = other if batch == 7 and at >= 5 else label
            rows.append([f"b{batch}", at, f"{draw.gauss(batch % 2, 1):.3f}", own])
    write(Path("a.csv"), ["batch", "second", "heat", "verdict"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    assert (data_of().id, data_of().window) == ("batch", None)
    assert "'b7'" in said
    follow_printed(cli, said, "--force")
    prepared = prepare(parse_config(Path("c.yaml").read_text()))
    assert len(prepared.preprocessing.labels) == 2
    assert sum(map(len, prepared.splits.values())) == 50
