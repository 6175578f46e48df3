"""Files as other programs write them: the printed commands make files that are read."""

import json
import pickle
import random
import re
import shlex
import sqlite3
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from seqtrain.tables.other_programs import KNOWN_PROGRAMS
from tests.helpers.printed import commands_in, printed_lines, run_conversions
from tests.proposal.test_forms import draw, name, recording, sentence, write
from tests.proposal.test_layouts import class_counts

__all__ = ["draw"]


def converted(cli: Any, path: str, *options: str) -> dict[str, int]:
    """Run the commands that `init` prints about a file, and return the rows of each class."""
    refused = cli("init", path, "-o", "c.yaml", code=2).err
    cli(*run_conversions(cli, refused), *options, "-o", "c.yaml")
    return class_counts("c.yaml")


@pytest.mark.parametrize("ending", KNOWN_PROGRAMS)
def test_files_that_a_package_reads_are_refused_by_name_if_it_cannot(
    tmp_path, monkeypatch, cli, ending
):
    """A package that isn't installed is named. A file that isn't sound is refused."""
    monkeypatch.chdir(tmp_path)
    path = Path("in", f"it's a{ending}")
    path.parent.mkdir()
    path.write_bytes(b"\0 none of these")
    refused = cli("init", path, code=2).err
    convert, init = [shlex.split(line) for line in printed_lines(refused)]
    assert init[:2] == ["seqtrain", "init"]
    said = cli(*convert[1:], code=2).err
    assert "pip install" in said or f"it's a{ending}" in said
    assert [each.name for each in Path().iterdir()] == ["in"]


def write_sound(path: Path, draw: random.Random, pitch: float, seconds: float = 0.5) -> None:
    time = np.arange(0, seconds, 1 / 16000)
    loud = np.sin(2 * np.pi * pitch * time) * 8000 + np.array([draw.gauss(0, 99) for _ in time])
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(loud.astype("<i2").tobytes())


def test_sound_in_folders_becomes_bands_of_frequency(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    labels = [name(draw), name(draw)]
    for i in range(12):
        write_sound(Path(f"my words/{labels[i % 2]}/{i}.wav"), draw, [300, 2000][i % 2])
    assert converted(cli, "my words") == dict.fromkeys(labels, 6)
    first, second = (np.load(f"my words-bands/{labels[i]}/{i}.npy") for i in (0, 1))
    assert first.shape == (25, 20)
    assert {*first.argmax(1)} == {1}  # 200 Hz each: 300 Hz
    assert {*second.argmax(1)} <= {9, 10}


def test_sound_with_codes_in_names_leads_on_to_a_command_for_each_part(tmp_path, monkeypatch, cli):
    """Short sounds of unequal lengths have fewer steps than bands, which come last."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    for i in range(16):
        path = Path(f"my words/02-{i % 2 + 4:02d}-{i // 2:02d}.wav")
        write_sound(path, draw, 300, 0.3 if i > 3 else 0.2)
    new = cli(*run_conversions(cli, cli("init", "my words", code=2).err), code=2).err
    kind, take = commands_in(new)
    assert "channels come first" not in cli(*kind, "-o", "kind.yaml").err
    assert class_counts("kind.yaml") == {"04": 8, "05": 8}
    cli(*take, "-o", "take.yaml")
    assert len(class_counts("take.yaml")) == 8


@pytest.mark.parametrize("lengths", ["equal", "different"])
def test_arrays_of_matlab_become_rows(tmp_path, monkeypatch, draw, cli, lengths):
    matlab = pytest.importorskip("scipy.io")
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    rows: Any = np.array([[draw.gauss(i % 2, 1) for _ in range(30)] for i in range(60)])
    if lengths == "different":
        rows = np.empty(60, object)
        for i in range(60):
            rows[i] = np.array(recording(draw, i % 2, draw.randint(8, 30)))
    known = np.array([labels[i % 2] for i in range(60)], dtype=object)
    matlab.savemat("a.mat", {"signals": rows, "kind": known, "rate": 100})
    assert converted(cli, "a.mat") == dict.fromkeys(labels, 30)


def test_tables_of_a_database_become_csv(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    with sqlite3.connect("a.db") as database:
        database.execute("create table reviews (words text, kind text)")
        for i in range(60):
            row = (sentence(draw, labels[i % 2]), labels[i % 2])
            database.execute("insert into reviews values (?, ?)", row)
    database.close()
    assert converted(cli, "a.db") == dict.fromkeys(labels, 30)
    cli("fit", "c.yaml", "--set", "training.max_epochs=1", "--run-dir", "my run", "--quiet")
    Path("a.db").rename("b.db")
    refused = cli("predict", "b.db", "my run", code=2).err
    assert len(cli(*run_conversions(cli, refused)).out.splitlines()) == 61


@pytest.mark.parametrize("ending", ["xml", "pkl", "dta"])
def test_tables_that_pandas_reads_become_text(tmp_path, monkeypatch, draw, cli, ending):
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), name(draw)]
    rows = [[sentence(draw, labels[i % 2]), labels[i % 2]] for i in range(60)]
    table = pandas.DataFrame(rows, columns=["words", "kind"])
    if ending == "pkl":
        Path("a.pkl").write_bytes(pickle.dumps(table))
    elif ending == "dta":
        table.to_stata("a.dta", write_index=False)
    else:
        table.to_xml("a.xml", index=False, parser="etree")
    assert converted(cli, f"a.{ending}") == dict.fromkeys(labels, 30)


def test_feather_is_arrow(tmp_path, monkeypatch, draw, cli):
    feather = pytest.importorskip("pyarrow.feather")
    arrow = pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    words = [sentence(draw) for _ in range(60)]
    feather.write_feather(arrow.table({"words": words, "kind": ["u", "v"] * 30}), "a.feather")
    cli("init", "a.feather", "-o", "c.yaml")
    assert parse_config(Path("c.yaml").read_text()).data.sequence == "words"


CHATS = {
    "Android": "12/{day}/23, 9:{minute:02d} PM - {sender}: {text}",
    "an iPhone": "[{day}.12.23, 21:{minute:02d}:03] {sender}: {text}",
}


@pytest.mark.parametrize("form", CHATS)
def test_messages_of_a_chat_become_rows(tmp_path, monkeypatch, draw, cli, form):
    monkeypatch.chdir(tmp_path)
    senders, lines = [name(draw), f"{name(draw)} {name(draw)}"], list[str]()
    for i in range(60):
        text = sentence(draw) + ": a colon\nand a second line" * (i % 5 == 0)
        fields = {"day": 1 + i // 10, "minute": i, "sender": senders[i % 2], "text": text}
        lines.append(CHATS[form].format(**fields))
    Path("a chat.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert converted(cli, "a chat.txt") == dict.fromkeys(senders, 30)
    assert "and a second line" in Path("a chat-messages.csv").read_text()


ABOVE = {
    "pairs and a blank line": ["Device: {0}", "Serial: 12", ""],
    "pairs": ["Device: {0}", "Serial: 12", "Place: {0}"],
    "cells": ["Device{mark}{0}", "Serial{mark}12", ""],
    "one sentence": ["Export of {0} of today", "", ""],
}


@pytest.mark.parametrize(
    ("ending", "mark"), [("csv", ","), ("csv", ";"), ("txt", "\t"), ("txt", ";"), ("tsv", "\t")]
)
@pytest.mark.parametrize("above", ABOVE)
def test_lines_above_a_table_are_removed(tmp_path, monkeypatch, draw, cli, ending, mark, above):
    monkeypatch.chdir(tmp_path)
    rows = [[f"u{u}", t, draw.gauss(u % 2, 1), "xy"[u % 2]] for u in range(40) for t in range(6)]
    path = Path(write(tmp_path / f"a.{ending}", ["unit_id", "time", "temp", "state"], rows, mark))
    lines = "\n".join(ABOVE[above]).format(name(draw), mark=mark)
    path.write_text(f"{lines}\n{path.read_text()}")
    if above == "cells":
        assert converted(cli, path.name) == {"x": 20, "y": 20}
        return
    cli("init", path.name, "-o", "c.yaml")  # a title, and keys with values, are read as such
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.id == "unit_id"
    assert len(prepare(config).splits["train"]) == 40


@pytest.mark.parametrize("place", ["folders", "names", "a table"])
@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("csv", ";"), ("txt", "\t")])
def test_recordings_are_read_below_keys_with_values(
    tmp_path, monkeypatch, draw, cli, ending, mark, place
):
    monkeypatch.chdir(tmp_path)
    classes = [f"{name(draw)}{end}" for end in "ab"]
    for i in range(20):
        own = classes[i % 2]
        path = {"folders": f"r/{own}/{i}", "names": f"r/{own}_{i}", "a table": f"r/{i}"}[place]
        path = Path(f"{path}.{ending}")
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [[t / 50, round(draw.gauss(i % 2, 1), 3)] for t in range(12)]
        write(path, ["time", "force"], rows, mark)
        path.write_text(f"Device: {name(draw)}\nSubject: {i % 5}\n\n{path.read_text()}")
    given = ["r"]
    if place == "a table":
        labels = [[i, classes[i % 2]] for i in range(20)]
        given.append(write(Path("a.csv"), ["name", "kind"], labels))
    cli("init", *given, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    data = prepare(config)
    assert (dict(config.data.steps), config.data.order) == ({"force": "number"}, "time")
    assert sorted(data.preprocessing.labels) == sorted(classes)
    assert len(data.splits["train"]) == 20


def test_of_two_columns_a_blank_line_divides_what_is_above(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [[sentence(draw, "uv"[i % 2]), 1 + i % 2] for i in range(40)]
    path = Path(write(tmp_path / "a.csv", ["words", "stars"], rows))
    path.write_text(f"Model,{name(draw)}\nSerial,A7\n\n{path.read_text()}")
    assert converted(cli, "a.csv") == {"1": 20, "2": 20}


@pytest.mark.parametrize("form", ["tabs", "tabs, with texts", "blanks, with names in the last"])
def test_comments_above_a_table_in_a_txt_file(tmp_path, monkeypatch, draw, cli, form):
    monkeypatch.chdir(tmp_path)
    mark = " " if form.startswith("blanks") else "\t"
    names = ["unit_id", "time", "temp", "state"]
    rows = [[f"u{u}", t, draw.gauss(u % 2, 1), "xy"[u % 2]] for u in range(40) for t in range(6)]
    if form == "tabs, with texts":
        names, rows = (
            ["state", "n", "words"],
            [
                ["xy"[i % 2], draw.random(), sentence(draw)[: draw.randint(9, 20)]]
                for i in range(40)
            ],
        )
    path = Path(write(tmp_path / "a.txt", names, rows, mark))
    head = "# " if form.startswith("blanks") else ""
    path.write_text(f"# {name(draw)}: {name(draw)}\n# more\n{head}{path.read_text()}")
    if head:
        assert converted(cli, "a.txt") == {"x": 20, "y": 20}
    else:
        cli("init", "a.txt", "-o", "c.yaml")
        assert parse_config(Path("c.yaml").read_text()).data.label == "state"


@pytest.mark.parametrize("fields", [("role", "content", "assistant"), ("from", "value", "gpt")])
@pytest.mark.parametrize("turns", [1, 3])
def test_the_last_answers_of_chats_become_labels(tmp_path, monkeypatch, draw, cli, fields, turns):
    monkeypatch.chdir(tmp_path)
    labels, (role, text, answer) = [name(draw), name(draw)], fields
    rows = []
    for i in range(60):
        chat = [{role: "system", text: "Tell the kind."}]
        for _ in range(turns):
            chat += [{role: "user", text: sentence(draw)}, {role: answer, text: sentence(draw)}]
        chat[-1][text] = labels[i % 2]
        rows.append(json.dumps({"messages": chat}))
    Path("a.jsonl").write_text("\n".join(rows))
    assert converted(cli, "a.jsonl") == dict.fromkeys(labels, 30)
    assert '"messages"' in Path("a-label.jsonl").read_text().splitlines()[0]


def marked(form: str, labels: list[str], row: int) -> dict[str, float]:
    """Return an object with a number for each class of which this row's is the largest."""
    own = labels[row % len(labels)]
    if form == "only the marks of a row":
        return {own: 1}
    if form == "shares":
        return {each: 0.9 if each == own else 0.05 for each in labels}
    return {each: int(each == own) for each in labels}


@pytest.mark.parametrize("form", ["marks", "shares", "only the marks of a row"])
def test_all_classes_of_spacy_are_read_by_the_printed_command(
    tmp_path, monkeypatch, draw, cli, form
):
    monkeypatch.chdir(tmp_path)
    labels = [f"{name(draw)}_{k}" for k in range(9)]  # numbered as the steps of a series are
    rows = [{"text": sentence(draw), "cats": marked(form, labels, i)} for i in range(180)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    if form == "marks":
        refused = cli("init", "a.jsonl", "-o", "c.yaml", code=2).err
        (command,) = re.findall("^seqtrain:   seqtrain (init .*)$", refused, re.MULTILINE)
        cli(*shlex.split(command))
        found = prepare(parse_config(Path("c.yaml").read_text())).preprocessing.labels
        assert {each.removeprefix("cats.") for each in found} == {*labels}
    else:
        assert converted(cli, "a.jsonl") == dict.fromkeys(labels, 20)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("lengths", [(40, 40, 40), (40, 30, 12)])
def test_a_column_for_each_class_becomes_rows(tmp_path, monkeypatch, draw, cli, mark, lengths):
    monkeypatch.chdir(tmp_path)
    labels = [name(draw), f"{name(draw)} {name(draw)}", name(draw)]
    rows = [
        [r, *(f"{sentence(draw)}, {r}" if r < size else "" for size in lengths)] for r in range(40)
    ]
    ending = "tsv" if mark == "\t" else "csv"
    write(Path(f"a.{ending}"), ["nr", *labels], rows, mark)
    assert converted(cli, f"a.{ending}") == dict(zip(labels, lengths, strict=True))


def test_texts_without_labels_are_no_classes(tmp_path, draw, cli):
    rows = [[sentence(draw), sentence(draw)] for _ in range(40)]
    path = write(tmp_path / "a.csv", ["question", "answer"], rows)
    assert "csv.writer" not in cli("init", path, code=2).err
