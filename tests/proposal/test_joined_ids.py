"""Ids of sequences in several columns: a subject and the number of a trial, machines and runs."""

import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import printed_lines, run_conversions
from tests.proposal.test_forms import draw, name, write
from tests.proposal.test_roles import proposed

__all__ = ["draw"]

PARTS = {
    "trials": (["participant", "trial"], "p{:02}"),
    "machines": (["machine_nr", "run"], "{}"),
    "eyes": (["RECORDING_SESSION_LABEL", "TRIAL_INDEX"], "s{}"),
    "codes": (["driver", "trip_id"], "D{:03}"),
    "unknown": (["probe", "take"], "x{:02}"),
    "days": (["patient", "date"], "P{}"),
    "blocks": (["user", "block", "trial"], "u{}"),
}
LABELS = ["of each", "of owners", "of trials"]


def recordings(
    draw: random.Random, form: str, labels: str, shape: str
) -> tuple[list[str], list[list[Any]]]:
    """Return a table with a row per time step, whose id is in several columns.

    The label depends on the owner, on the number of the trial, or on both.
    """
    parts, owner = PARTS[form]
    start, counter = draw.choice([0, 1]), draw.choice(["frame", "sample", "step", "timestamp"])
    places, rows = [(k,) for k in range(start, start + 6)], []
    if len(parts) == 3:
        places = [(block, k) for block in range(start, start + 3) for k in range(start, start + 2)]
    own = {(who, at): draw.choice("uvw") for who in range(9) for at in range(6)}
    for who in range(9):
        for at, place in enumerate(places):
            label = {"of owners": "uvw"[who % 3], "of trials": "uvw"[at % 3]}.get(labels)
            cells = [f"2024-03-{k + 1:02}" if parts[-1] == "date" else k for k in place]
            for step in range(draw.randint(4, 7)):
                heat = [round(draw.gauss(0, 1), 2) for _ in range(2)]
                rows.append([owner.format(who + start), *cells, step, *heat, label or own[who, at]])
    if shape == "shuffled":
        draw.shuffle(rows)
    elif shape == "by trial":
        rows.sort(key=lambda row: [str(cell) for cell in row[1 : len(parts)]])
    return [*parts, counter, "heat", "force", f"{name(draw)}_class"], rows


@pytest.mark.parametrize("shape", ["in order", "shuffled", "by trial"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("form", PARTS)
def test_columns_that_are_an_id_together_are_found(tmp_path, draw, form, labels, shape):
    """Also where the label depends on one of them: but a sequence may be longer than a day."""
    names, rows = recordings(draw, form, labels, shape)
    config, proposal = proposed(write(tmp_path / "a.csv", names, rows))
    parts = PARTS[form][0]
    if form == "days" and labels == "of owners":
        assert config.data.id == parts[0]
        return
    assert (config.data.id, config.data.order) == (parts, names[len(parts)])
    assert config.data.label == names[-1]
    assert set(config.data.steps) == {"heat", "force"}
    has_group = form != "unknown" or labels == "of owners"
    assert config.data.group == (parts[0] if has_group else None)
    commands = [line.rpartition(": ")[2] for line in proposal.warnings if "--id" in line]
    assert len(commands) == (labels == "of owners")
    for command in commands:
        words = shlex.split(command)
        config, _ = proposed(str(tmp_path / "a.csv"), id=words[1], order=words[3::2])
        assert (config.data.id, config.data.order) == (parts[0], [*parts[1:], names[len(parts)]])


@pytest.mark.parametrize("names", [["leg", "voyage_nr"], ["ensayo", "probando"], ["game", "match"]])
def test_columns_of_an_id_may_stand_in_any_order(tmp_path, draw, names):
    """The one that determines the label stands last."""
    rows = []
    for whole in range(20):
        for part in range(draw.randint(2, 5)):
            for beat in range(draw.randint(3, 7)):
                rows.append([part, whole, beat, round(draw.gauss(0, 1), 2), "uv"[whole % 2]])
    path = write(tmp_path / "a.csv", [*names, "frame", "heat", "state"], rows)
    config, proposal = proposed(path)
    assert (config.data.id, config.data.group) == (names, names[1])
    assert any(f"--id {names[1]}" in line for line in proposal.warnings)


def test_an_id_in_one_column_beside_its_owner_is_one_column(tmp_path, draw):
    rows = []
    for trial in range(60):
        label = draw.choice("uv")
        for step in range(5):
            rows.append([trial // 10, trial, step, round(draw.gauss(0, 1), 2), label])
    names = ["subject", "trial", "sample", "heat", "state"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert config.data.id == "trial"


def test_windows_lie_within_an_id_of_several_columns(tmp_path, draw):
    rows = []
    for machine in range(6):
        for run in range(4):
            for step in range(40):
                if step % 20 == 0:
                    label = draw.choice(["idle", "busy"])
                rows.append([f"M{machine}", run, step, round(draw.gauss(0, 1), 2), label])
    names = ["machine", "run", "cycle", "heat", "state"]
    config, _ = proposed(write(tmp_path / "a.csv", names, rows))
    assert (config.data.id, config.data.order) == (["machine", "run"], "cycle")
    assert config.data.window is not None


def test_where_nothing_counts_the_rows_of_trials_a_command_reads_them(
    tmp_path, monkeypatch, draw, cli
):
    monkeypatch.chdir(tmp_path)
    names, rows = recordings(draw, "trials", "of owners", "in order")
    rows = [[*row[:2], *row[3:]] for row in rows]
    write(Path("a.csv"), [*names[:2], *names[3:]], rows)
    said = cli("init", "a.csv", "-o", "a.yaml").err
    assert parse_config(Path("a.yaml").read_text()).data.id == "participant"
    (options,) = re.findall(r"a sequence: (--id .*)", said)
    cli("init", "a.csv", "-o", "b.yaml", *shlex.split(options))
    data = parse_config(Path("b.yaml").read_text()).data
    assert (data.id, data.group) == (["participant", "trial"], "participant")
    assert "data.group" not in cli("data", "b.yaml").out


@pytest.mark.parametrize("names", [("who", "attempt"), ("probe", "trial"), ("hand_of", "take")])
def test_columns_that_divide_scattered_rows_of_an_id_are_options(tmp_path, monkeypatch, cli, names):
    """The rows of each pair stand together, those of either column don't."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(str(names))
    rows = [
        [f"P{who}", attempt, draw.random(), draw.random(), "uv"[attempt % 2]]
        for who in range(9)
        for attempt in range(6)
        for _ in range(30)
    ]
    write(Path("a.csv"), [*names, "ax", "ay", "hand"], rows)
    said = cli("init", "a.csv", "--label", "hand", "-o", "a.yaml").err
    if parse_config(Path("a.yaml").read_text()).data.id != [*names]:
        (options,) = re.findall(r"a sequence: (--id .*)", said)
        cli("init", "a.csv", "--label", "hand", "-o", "b.yaml", *shlex.split(options))
        assert sorted(parse_config(Path("b.yaml").read_text()).data.id) == sorted(names)


def test_several_possible_ids_are_commands(tmp_path, monkeypatch, draw, cli):
    """The name of neither the owner nor the counter tells which one is a part of the id."""
    monkeypatch.chdir(tmp_path)
    rows = [
        [who, session, trial, step, round(draw.gauss(0, 1), 2), "uv"[trial % 2]]
        for who in range(8)
        for session in range(3)
        for trial in range(4)
        for step in range(12)
    ]
    draw.shuffle(rows)
    write(Path("a.csv"), ["probe", "session", "trial", "seconds", "heat", "cond"], rows)
    commands = re.findall(r"seqtrain (init .*)", cli("init", "a.csv", code=2).err)
    ids = []
    for command in commands:
        cli(*shlex.split(command), "-o", "a.yaml", "--force")
        ids.append(parse_config(Path("a.yaml").read_text()).data.id)
    assert ["probe", "session", "trial"] in ids
    assert len(ids) > 1


@pytest.mark.parametrize("form", ["{a}-{k}", "{a} {k}", "{a} 2 {b} {k}"])
def test_an_id_may_have_blanks_where_its_rows_do_not_stand_together(tmp_path, draw, form):
    a, b = name(draw).title(), name(draw)
    rows = [
        [form.format(a=a, b=b, k=k), step, round(draw.gauss(0, 1), 2), ["bad", "ok"][k % 2]]
        for step in range(10)
        for k in range(40)
    ]
    config, _ = proposed(write(tmp_path / "a.csv", ["plant", "cycle", "torque", "class"], rows))
    assert (config.data.id, config.data.order, config.data.window) == ("plant", "cycle", None)


@pytest.mark.parametrize("given", [[], ["--id", "writer", "--id", "char", "--id", "rep"]])
@pytest.mark.parametrize("counter", [["t"], []])
def test_a_label_that_is_a_part_of_the_id_needs_a_column_of_ids(
    tmp_path, monkeypatch, draw, cli, given, counter
):
    """The rows of one writer, letter and repetition are a sequence."""
    monkeypatch.chdir(tmp_path)
    rows = [
        [writer, char, rep, *[step] * len(counter), draw.gauss("uvw".index(char), 1)]
        for writer in ("anna", "ben, jr", "cleo", "dan")
        for char in "uvw"
        for rep in range(4)
        for step in range(draw.randint(12, 20))
    ]
    write(Path("a.csv"), ["writer", "char", "rep", *counter, "x"], rows)
    refused = cli("init", "a.csv", "--label", "char", *given, "-o", "c.yaml", code=2).err
    _, _, *windows = printed_lines(refused)
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.label, config.data.id) == ("char", "sequence_id")
    assert sum(map(len, prepare(config).splits.values())) == 48
    for command in windows:
        cli(*shlex.split(command)[1:], "--force")
        assert parse_config(Path("c.yaml").read_text()).data.window is not None


def test_the_key_of_joined_labels_is_the_id(tmp_path, monkeypatch, draw, cli):
    """The label changes from one course of a student to the next."""
    monkeypatch.chdir(tmp_path)
    clicks, results = list[list[Any]](), list[list[Any]]()
    for student in range(11391, 11431):
        for place, course in enumerate(["2013J", "2014J"]):
            results.append([course, student, ["Pass", "Fail", "Withdrawn"][(student + place) % 3]])
            days = sorted(draw.choices(range(-10, 200), k=draw.randint(8, 30)))
            for day in days:
                site, count = 546600 + draw.randint(0, 6), draw.randint(1, 9)
                clicks.append([course, student, site, day, count])
    own = ["code_presentation", "id_student"]
    write(tmp_path / "clicks.csv", [*own, "id_site", "date", "sum_click"], clicks)
    write(tmp_path / "info.csv", [*own, "final_result"], results)
    cli("init", "clicks.csv", "info.csv", "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.id, config.data.label, config.data.window) == (own, "final_result", None)
    assert sum(map(len, prepare(config).splits.values())) == 80
