"""Choices of columns that tell what is lost, and commands that read the rest."""

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
from tests.helpers.printed import follow_printed, run_conversion
from tests.proposal.test_forms import draw, name, sentence, write

__all__ = ["draw"]


def texts(draw: random.Random, rows: int = 80) -> list[list[Any]]:
    """Return rows of a text and its label, of two classes."""
    return [[sentence(draw, f"w{r % 2}"), "np"[r % 2]] for r in range(rows)]


def test_columns_that_may_be_the_sequence_are_commands(tmp_path, monkeypatch, draw, cli):
    """Of texts that say nothing about the label, each is a command, and two are joined."""
    monkeypatch.chdir(tmp_path)
    rows = [
        [name(draw)[:5] + str(n), sentence(draw), draw.random(), sentence(draw), "xy"[n % 2]]
        for n in range(120)
    ]
    write(Path("a.csv"), ["PuzzleId", "board", "rating", "moves", "theme"], rows)
    said = cli("init", "a.csv", "--force", code=2).err
    assert "'theme'" in said.partition("\n")[0]
    commands = re.findall("^seqtrain:   seqtrain (init .*)  # ", said, re.M)
    sequences = list[Any]()
    for command in commands:
        cli(*shlex.split(command))
        sequences.append(parse_config(Path("a.yaml").read_text()).data.sequence)
    assert sequences[-1] == ["board", "moves"]
    assert {"board", "moves"} <= {x for x in sequences if isinstance(x, str)}


def test_a_file_of_no_known_format_is_not_called_csv_for_marks_in_quotes(
    tmp_path, monkeypatch, cli
):
    monkeypatch.chdir(tmp_path)
    line = '10.0.0.{} - - [10/Oct/2000:13:55:36 -0700] "GET /a,b HTTP/1.0" 200 "X11; Linux"\n'
    Path("access.log").write_text("".join(map(line.format, range(50))))
    assert "--format csv" not in cli("init", "access.log", code=2).err
    Path("a.log").write_text("text,label\n" + "so it is,x\nnot so,y\n" * 50)
    assert "--format csv" in cli("init", "a.log", code=2).err


@pytest.mark.parametrize("file", ["x.csv", "X_all.csv", "X_train.csv", "x_data.tsv"])
@pytest.mark.parametrize("folder", [False, True])
def test_a_column_named_label_counts_more_than_the_name_of_a_file(
    tmp_path, monkeypatch, draw, cli, file, folder
):
    monkeypatch.chdir(tmp_path)
    path = Path("own") / file
    write(path, ["text", "label"], texts(draw), "\t" if file.endswith("tsv") else ",")
    cli("init", "own" if folder else path, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.sequence, data.label) == ("text", "label")


@pytest.mark.parametrize("file", ["dev.csv", "test.csv", "valid.csv", "test_data.csv"])
def test_a_file_named_like_a_split_is_train_where_it_is_alone(
    tmp_path, monkeypatch, draw, cli, file
):
    monkeypatch.chdir(tmp_path)
    write(Path(file), ["text", "label"], texts(draw))
    said = cli("init", file, "-o", "c.yaml").err
    assert f"init {file}" not in said
    assert parse_config(Path("c.yaml").read_text()).data.train == file


DAYS = ["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"]
MOMENTS = {
    "seconds": lambda at: f"2024-04-{1 + at // 6:02d} {(4 * at) % 24:02d}:{at:02d}:00",
    "am and pm": lambda at: f"04/{13 + at // 6:02d}/2024 {1 + 2 * (at % 6):02d}:{at:02d}:33 AM",
    "weeks": lambda at: f"Week {at + 1}",
    "weekdays": lambda at: f"{DAYS[at // 6]} {1 + at // 6:02d}.04.2024 {at % 6}:02",
    "quarters": lambda at: f"{2000 + at // 4}Q{1 + at % 4}",
    "Unix times": lambda at: str(1716069168000 + 7919000 * at**2),
}


@pytest.mark.parametrize("form", MOMENTS)
@pytest.mark.parametrize("has_names", [True, False])
def test_shuffled_rows_of_things_with_any_name_are_steps_in_time(tmp_path, draw, form, has_names):
    rows = []
    for thing in range(50):
        for at in draw.sample(range(40), 7):
            rows.append([f"S{thing}", MOMENTS[form](at), draw.choice("abc"), "uv"[thing % 2]])
    draw.shuffle(rows)
    names = [name(draw), {"weeks": "week"}.get(form, "charttime"), "event", "label"]
    path = write(tmp_path / "log.csv", names if has_names else [], rows)
    if form == "weeks" and not has_names:  # numbers after a word are no times without a name
        return
    data = parse_config(propose([path], InitOptions()).text).data
    places = names if has_names else [0, 1, 2, 3]
    assert (data.id, data.order, data.label) == (places[0], places[1], places[3])


def test_rows_of_frames_have_a_command_for_their_id(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"S{thing}", f"frame_{at}.jpg", draw.choice("abc"), "uv"[thing % 2]]
        for thing in range(40)
        for at in draw.sample(range(30), 7)
    ]
    draw.shuffle(rows)
    write(Path("log.csv"), ["clip_of", "frame", "event", "label"], rows)
    refused = cli("init", "log.csv", "-o", "c.yaml", code=2).err
    (option,) = re.findall(r"seqtrain init .* (--id \w+)", refused)
    said = cli("init", "log.csv", "-o", "c.yaml", *option.split()).err
    assert "scattered" in said
    assert parse_config(Path("c.yaml").read_text()).data.id == "clip_of"


@pytest.mark.parametrize(("share", "ending"), [(0.05, "csv"), (0.4, "jsonl")])
def test_a_class_of_empty_texts_is_named_with_a_remedy(
    tmp_path, monkeypatch, draw, cli, share, ending
):
    monkeypatch.chdir(tmp_path)
    lost, rows = name(draw), texts(draw, 120)
    rows += [["", lost]] * int(120 * share)
    draw.shuffle(rows)
    if ending == "csv":
        write(Path("a.csv"), ["text", "label"], rows)
    else:
        lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
        Path("a.jsonl").write_text("\n".join(lines))
    said = cli("init", f"a.{ending}", "-o", "c.yaml").err
    found = [line for line in said.splitlines() if lost in line]
    assert f"({int(120 * share)})" in found[0]
    assert ("--sequence" in said) == (share > 0.1)
    short = ["--set", "training.max_epochs=1", "--set", "training.refit=false"]
    for command in (["data", "c.yaml"], ["fit", "c.yaml", *short]):
        ended = cli(*command)
        assert f"'{lost}' ({int(120 * share)})" in ended.out + ended.err
    (option,) = re.findall("(--set data.empty=unk)", found[0])
    cli("init", f"a.{ending}", "-o", "c.yaml", "--force", *option.split())
    assert "3 classes" in Path("c.yaml").read_text()
    assert f"\n {lost}" in cli("data", "c.yaml").out


@pytest.mark.parametrize("mark", ["|", ">", ":"])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_symbols_are_read_by_their_mark_however_many_stand_alone(tmp_path, draw, mark, share):
    moves = [name(draw) for _ in range(4)]
    rows = []
    for row in range(200):
        size = 1 if draw.random() < share else draw.randint(2, 12)
        rows.append([f"u{row}", mark.join(draw.choices(moves, k=size)), "ab"[row % 2]])
    path = write(tmp_path / "a.csv", ["user", "path", "churn"], rows)
    data = parse_config(propose([path], InitOptions()).text).data
    assert (data.sequence, data.kind, data.symbol_separator) == ("path", "tokens", mark)


def test_symbols_in_brackets_have_a_command(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    atoms = ["[C]", "[=C]", "[O]", "[Branch1]"]
    rows = [["".join(draw.choices(atoms, k=9)), "uv"[r % 2]] for r in range(120)]
    write(Path("a.csv"), ["selfies", "toxic"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    follow_printed(cli, said, "-o", "d.yaml")
    assert parse_config(Path("d.yaml").read_text()).data.kind == "tokens"


@pytest.mark.parametrize("fold", ["fold", "cv_fold", "kfold_nr"])
@pytest.mark.parametrize("label", ["classID", "label_id"])
def test_folds_are_no_labels(tmp_path, draw, fold, label):
    rows = []
    for row in range(120):
        series = " ".join(f"{draw.gauss(row % 3, 1):.2f}" for _ in range(20))
        rows.append([series, 1 + draw.randrange(10), row % 3])
    path = write(tmp_path / "a.csv", ["mfcc", fold, label], rows)
    proposal = propose([path], InitOptions())
    assert parse_config(proposal.text).data.label == label
    assert not any("data.group" in line for line in proposal.warnings)
    rows = [[*row, ["dog", "cat", "car"][row[2]]] for row in rows]
    path = write(tmp_path / "b.csv", ["mfcc", fold, "classID", "class"], rows)
    assert parse_config(propose([path], InitOptions()).text).data.label == "class"


@pytest.mark.parametrize("inner", ["properties", "pos"])
def test_objects_inside_events_have_a_command_that_data_repeats(
    tmp_path, monkeypatch, draw, cli, inner
):
    monkeypatch.chdir(tmp_path)
    rows = []
    for row in range(90):
        own = [
            {"event": draw.choice("pqr"), inner: {"os": draw.choice("ab"), "x": draw.random()}}
            for _ in range(draw.randint(3, 8))
        ]
        rows.append(json.dumps({"events": own, "label": "uv"[row % 2]}))
    Path("a.jsonl").write_text("\n".join(rows))
    said = cli("init", "a.jsonl", "-o", "c.yaml").err
    assert run_conversion(cli, cli("data", "c.yaml").out) == run_conversion(cli, said)
    cli("init", "a-fields.jsonl", "-o", "d.yaml")
    steps = parse_config(Path("d.yaml").read_text()).data.steps
    assert steps == {"event": "token", f"{inner}_os": "token", f"{inner}_x": "number"}


@pytest.mark.parametrize("form", ["parts", "questions"])
def test_turns_with_other_names_have_a_command(tmp_path, monkeypatch, draw, cli, form):
    monkeypatch.chdir(tmp_path)
    rows = []
    for row in range(90):
        own = [{"role": "ab"[i % 2], "parts": [sentence(draw)]} for i in range(4)]
        if form == "questions":
            own = [{"Q": sentence(draw), "A": sentence(draw)} for _ in range(2)]
        rows.append(json.dumps({"talk": own, "label": "uv"[row % 2]}))
    Path("a.jsonl").write_text("\n".join(rows))
    (written,) = run_conversion(cli, cli("init", "a.jsonl", "-o", "c.yaml", code=2).err)
    turns = [len(json.loads(line)["talk"]) for line in Path(written).read_text().splitlines()]
    assert turns == [4] * 90
    cli("init", written, "-o", "d.yaml")
    assert parse_config(Path("d.yaml").read_text()).data.sequence == "talk"


def test_data_says_that_objects_are_not_sorted_by_their_times(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    rows = []
    for row in range(90):
        times = draw.sample(range(10, 60), 5)
        own = [{"ts": f"2024-03-04 08:{at}:00", "name": draw.choice("pqr")} for at in times]
        rows.append(json.dumps({"events": own, "label": "uv"[row % 2]}))
    Path("a.jsonl").write_text("\n".join(rows))
    cli("init", "a.jsonl", "-o", "c.yaml")
    assert "sorted by 'ts'" in cli("data", "c.yaml").out


def test_the_only_label_of_a_column_is_said(tmp_path, monkeypatch, draw, cli):
    monkeypatch.chdir(tmp_path)
    write(Path("a.csv"), ["text", "label"], [[sentence(draw), "ok"] for _ in range(60)])
    refused = cli("init", "a.csv", code=2).err
    assert "'ok'" in refused
    assert "'label'" in refused


def test_cells_of_spreadsheets_for_missing_numbers_are_missing(tmp_path, draw):
    rows = []
    for row in range(90):
        series = [f"{draw.gauss(row % 2, 1):.3f}" for _ in range(12)]
        series[row % 12] = "#N/A"
        rows.append([*series, "uv"[row % 2]])
    path = write(tmp_path / "a.csv", [*(f"t{at}" for at in range(12)), "label"], rows)
    config = parse_config(propose([path], InitOptions()).text)
    assert (config.data.missing, config.data.bad_rows) == ("mask", "error")
    assert sum(map(len, prepare(config).splits.values())) == 90


def test_lists_of_marks_are_said_to_be_classes_by_position(tmp_path, draw):
    rows = []
    for _ in range(120):
        marks = [0] * 28
        for at in draw.sample(range(28), 3):
            marks[at] = 1
        rows.append([sentence(draw), str(marks)])
    rows += [[sentence(draw), row[1]] for row in rows]
    proposal = propose([write(tmp_path / "a.csv", ["text", "label"], rows)], InitOptions())
    said = "\n".join(proposal.uses)
    assert "multi-hot" in said
    assert "0, 1, 2, 3" in said
    assert "quantity" not in "\n".join(proposal.warnings)


def test_a_row_below_the_table_is_no_missing_number(tmp_path, draw):
    rows = []
    for thing in range(60):
        for at in range(6):
            rows.append([f"s{thing}", at, f"{draw.gauss(thing % 2, 1):.3f}", "uv"[thing % 2]])
    rows.append(["Total: 360 rows", "", "", ""])
    path = write(tmp_path / "a.csv", ["id", "time", "v", "label"], rows)
    config = parse_config(propose([path], InitOptions()).text)
    assert (config.data.missing, config.data.bad_rows) == ("error", "drop")


def test_an_id_that_is_blank_for_some_sequences_is_no_row_feature(tmp_path, draw):
    rows = []
    for thing in range(60):
        own = f"s{thing}" if thing % 5 else ""
        for at in range(6):
            rows.append([thing, own, at, f"{draw.gauss(thing % 2, 1):.3f}", "uv"[thing % 2]])
    path = write(tmp_path / "a.csv", ["part", "id", "t", "v", "label"], rows)
    config = parse_config(propose([path], InitOptions(id="part", label="label")).text)
    assert not config.data.static


@pytest.mark.parametrize(
    ("title", "spelled", "is_taken"),
    [("Name", "Sequence", True), ("name", "smiles", True), ("title", "melody", False)],
)
def test_long_words_beside_names_of_several_words_are_taken_or_said(
    tmp_path, monkeypatch, draw, cli, title, spelled, is_taken
):
    monkeypatch.chdir(tmp_path)
    rows = [
        [f"{name(draw)} {name(draw)} {r}", "".join(draw.choices("abcdegh-", k=24)), "np"[r % 2]]
        for r in range(60)
    ]
    write(Path("a.csv"), [title, spelled, "mode"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    if not is_taken:
        (option,) = re.findall(r"if they are the sequence: (.*)", said)
        cli("init", "a.csv", *shlex.split(option), "-o", "c.yaml", "--force")
    assert parse_config(Path("c.yaml").read_text()).data.sequence == spelled


@pytest.mark.parametrize("are_words", [True, False])
def test_two_groups_of_columns_are_one_sequence_by_a_printed_command(
    tmp_path, monkeypatch, draw, cli, are_words
):
    """The ids of the rows are no step. One group alone is a command, too."""
    monkeypatch.chdir(tmp_path)
    names = [f"{side}_{i}" for side in (name(draw), name(draw)) for i in range(1, 6)]
    codes = [name(draw) if are_words else 3 * i + 5 for i in range(12)]
    rows = [[1000 + r, *draw.choices(codes, k=10), "uv"[r % 2]] for r in range(80)]
    write(Path("a.csv"), ["match", *names, "winner"], rows)
    refused = cli("init", "a.csv", "--label", "winner", "-o", "c.yaml", code=2).err
    found = re.findall(r"^seqtrain:   seqtrain (init .*)", refused, re.M)
    cli(*shlex.split(found[-1], comments=True))
    assert parse_config(Path("c.yaml").read_text()).data.sequence == names
    cli(*shlex.split(found[-2], comments=True), "--force")
    assert parse_config(Path("c.yaml").read_text()).data.sequence == names[:5]
