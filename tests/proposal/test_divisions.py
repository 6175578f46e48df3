"""Text files whose columns no delimiter of csv divides, or with lines that aren't rows."""

import csv
import itertools
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.config.schema import DataConfig
from seqtrain.sequences.dataset import prepare
from tests.helpers.printed import follow_printed, run_conversions
from tests.proposal.test_forms import sentence, write


def converted(cli: Any, path: str, *options: str) -> DataConfig:
    """Run the commands that `init` prints about a file, and return the config's data."""
    refused = cli("init", path, "-o", "c.yaml", code=2).err
    cli(*run_conversions(cli, refused), *options, "-o", "c.yaml")
    return parse_config(Path("c.yaml").read_text()).data


def rows_of(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def texts(seed: int) -> list[list[str]]:
    """Return rows of a label, a number and a text with marks of csv."""
    draw = random.Random(seed)
    return [
        ["pq"[i % 2], str(1000 + i), f'{sentence(draw)}, "{sentence(draw, "eé"[i % 3 == 0])}"']
        for i in range(40)
    ]


@pytest.mark.parametrize("mark", ["::", "_!_", " +++$+++ ", " ==> ", "~", "######"])
@pytest.mark.parametrize(("ending", "encoding"), [("txt", "utf-8"), ("dat", "latin-1")])
def test_several_marks_between_columns(tmp_path, monkeypatch, cli, mark, ending, encoding):
    monkeypatch.chdir(tmp_path)
    rows = texts(1)
    text = "".join(f"{mark.join(row)}\n" for row in rows)
    Path(f"a.{ending}").write_bytes(text.encode(encoding))
    data = converted(cli, f"a.{ending}")
    assert (data.label, data.sequence) == (0, 2)
    assert rows_of("a-columns.csv") == rows


def test_a_conversion_reads_the_encoding_that_the_user_names(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    rows = [["好坏"[i % 2], str(i), f"很 {i}"] for i in range(40)]
    Path("a.txt").write_text("".join(f"{'::'.join(row)}\n" for row in rows), encoding="gbk")
    refused = cli("init", "a.txt", "--encoding", "gbk", code=2).err
    run_conversions(cli, refused)
    assert rows_of("a-columns.csv") == rows


FRAMES = {
    "Markdown": ("| {} |", ["| {} |", "|---|:--|"], []),
    "SAP": ("|{}|", ["Table: X", "-------", "|{}|", "-------"], ["-------"]),
    "MySQL": ("| {} |", ["+---+--+", "| {} |", "+---+--+"], ["+---+--+", "40 rows in set"]),
    "Postgres": (" {}", [" {}", "---+----"], ["(40 rows)"]),
}


@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("ending", ["txt", "md", "csv"])
def test_frames_of_bars_and_dashes(tmp_path, monkeypatch, cli, form, ending):
    monkeypatch.chdir(tmp_path)
    rows = texts(2)
    rows[3][1] = ""
    row, above, below = FRAMES[form]
    lines = [line.format(" | ".join(["way", "nr", "words"])) for line in above]
    lines += [row.format(" | ".join(cells)) for cells in rows]
    Path(f"a.{ending}").write_text("\r\n".join([*lines, *below]), encoding="utf-8", newline="")
    data = converted(cli, f"a.{ending}")
    assert (data.label, data.sequence) == ("way", "words")
    assert rows_of("a-columns.csv")[1:] == rows


def test_trees_with_a_label_at_each_branch(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    for seed, split in enumerate(("train", "dev")):
        lines = []
        for i, (_, _, text) in enumerate(texts(seed)):
            tree = "(2 .)"
            for word in reversed(text.split()):
                tree = f"({i % 3} (2 {word}) {tree})"
            lines.append(f"{tree}\n")
        Path(f"{split}.txt").write_text("".join(lines))
    refused = cli("init", "train.txt", "dev.txt", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    data = prepare(config)
    assert {*data.preprocessing.labels} == {"0", "1", "2"}
    assert {*map(len, data.splits.values())} == {40}
    assert Path(config.data.train).read_text().splitlines()[1] == f"1\t{texts(0)[1][2]} ."


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_lines_of_a_mark_alone_are_no_rows(tmp_path, monkeypatch, cli, ending):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    lines = [f"u{i // 9},{'pq'[i // 9 % 2]},{i % 9},{draw.gauss(0, 1):.4f};" for i in range(360)]
    for at in range(5, 300, 41):
        lines.insert(at, ";")
    Path(f"a.{ending}").write_text("\n".join(lines))
    cli("init", f"a.{ending}", "--id", "0", "--label", "1", "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.order, dict(config.data.steps)) == (2, {"3": "number"})
    data = prepare(config)
    assert {*data.preprocessing.labels} == {"p", "q"}
    assert sum(len(store) for store in data.splits.values()) == 40


@pytest.mark.parametrize("blank", ["", "\t\t"])
def test_commas_in_a_file_of_an_unknown_ending(tmp_path, monkeypatch, cli, blank):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(4)
    lines = [f"{'+-'[i % 2]},S{i},{blank}{''.join(draw.choices('acgt', k=50))}" for i in range(60)]
    Path("a.data").write_text("\n".join(lines))
    refused = cli("init", "a.data", code=2).err
    (init,) = re.findall("^seqtrain:   seqtrain (.*)$", refused, re.MULTILINE)
    cli(*shlex.split(init), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.label, data.sequence) == (0, 2)


def test_names_of_questions_and_of_answers_in_two_rows(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(5)
    names = ["Respondent", "How happy are you?", "What is missing?", "Which tools?", "", ""]
    answers = ["", "Response", "Open-Ended Response", "Fork", "Spoon", "Other"]
    rows = [
        [1000 + i, draw.choice("pq"), sentence(draw), draw.choice(["Fork", ""]), "Spoon", ""]
        for i in range(60)
    ]
    write(Path("a.csv"), names, [answers, *rows])
    data = converted(cli, "a.csv")
    assert (data.label, data.sequence) == (names[1], names[2])
    (first, *written) = csv.reader(Path("a-named.csv").read_text().splitlines())
    assert first == [*names[:3], "Which tools?: Fork", "Which tools?: Spoon", "Which tools?: Other"]
    assert len(written) == len(rows)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_first_column_named_by_a_mark_of_comments(tmp_path, cli, quote):
    draw = random.Random(7)
    names = ["#", "mood", "words", "date"]
    rows = [[f"{draw.getrandbits(60):x}", x, sentence(draw, 2 * x)] for x in "pq" * 30]
    lines = [names, *([*row, f"2024-01-{i % 28 + 1:02} 10:00"] for i, row in enumerate(rows))]
    text = "\n".join(",".join(f"{quote}{cell}{quote}" for cell in line) for line in lines)
    (tmp_path / "a.csv").write_text(text)
    cli("init", str(tmp_path / "a.csv"), "-o", str(tmp_path / "c.yaml"))
    data = parse_config((tmp_path / "c.yaml").read_text()).data
    assert (data.label, data.sequence) == ("mood", "words")


def test_a_table_below_a_table_of_one_row(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    above = "Name,Sport,Date,Start,Length,Mean\nA,RUN,01-02-2024,10:00,00:10,140\n"
    for i in range(8):
        draw = random.Random(i)
        rows = [[f"00:{t // 60:02}:{t % 60:02}", draw.gauss(i % 2, 1), 7 + t] for t in range(80)]
        path = Path(
            write(Path(f"takes/{['run', 'walk'][i % 2]}_{i}.csv"), ["Time", "HR", "x"], rows)
        )
        path.write_text(above + path.read_text())
    Path("takes/notes.md").write_text("one\ntwo\nthree\n")
    data = converted(cli, "takes")
    assert (data.id, data.order) == ("file", "Time")
    assert dict(data.steps) == {"HR": "number", "x": "number"}
    assert Path("takes-table/notes.md").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("channels", [1, 3])
def test_a_start_and_a_rate_above_the_numbers_of_recordings(tmp_path, monkeypatch, cli, channels):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    for i in range(12):
        rows = [[f"{1478021544 + i}.00"] * channels, ["32.000000"] * channels]
        rows += [[str(draw.randint(-60, 60)) for _ in range(channels)] for _ in range(40)]
        write(Path(f"my takes/{['calm', 'loud'][i % 2]}/{i}.csv"), [], rows, ", ")
    data = converted(cli, "my takes")
    assert len(data.steps) == channels
    prepared = prepare(parse_config(Path("c.yaml").read_text()))
    assert {*prepared.splits["train"].lengths.tolist()} == {40}


@pytest.mark.parametrize("given", [["a/train.csv", "a/test.csv"], ["a"]])
def test_a_column_for_each_class_in_several_files(tmp_path, monkeypatch, cli, given):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(9)
    for file in ("train", "test"):
        rows = [[sentence(draw), sentence(draw)] for _ in range(40)]
        write(Path(f"a/{file}.csv"), ["glad", "sad"], rows)
    refused = cli("init", *given, code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.train, data.test) == ("train-texts.csv", "test-texts.csv")


@pytest.mark.parametrize("options", [[], ["--format", "csv"]])
def test_a_pipe_is_refused(cli, options):
    (problem, command) = cli("init", "-", *options, code=2, stdin="label,text\na,b\n").problems
    assert "file" in problem
    assert "seqtrain init" in command


@pytest.mark.parametrize(
    "form", ["LINESTRING ({})", "SRID=4326;LINESTRING Z({})", "POLYGON (({}))"]
)
def test_lines_of_points_become_channels(tmp_path, monkeypatch, cli, form):
    monkeypatch.chdir(tmp_path)
    draw, size, rows = random.Random(10), 2 + ("Z" in form), list[list[str]]()
    for i in range(60):
        points = [
            " ".join(f"{draw.gauss(i % 2, 9):.4f}" for _ in range(size)) for _ in range(i % 5 + 6)
        ]
        rows.append([form.format(", ".join(points)), "pq"[i % 2]])
    write(Path("a.csv"), ["geom", "label"], rows, ";")
    data = converted(cli, "a.csv")
    assert (data.kind, data.sequence) == ("features", "geom")
    prepared = prepare(parse_config(Path("c.yaml").read_text()))
    assert prepared.splits["train"].values.shape[1] == size


def test_points_of_time_steps_become_columns(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(11)
    rows = [
        [i // 9, i % 9, f"POINT ({draw.gauss(0, 9):.4f} {draw.gauss(0, 9):.4f})", "pq"[i // 9 % 2]]
        for i in range(360)
    ]
    write(Path("a.csv"), ["ride", "t", "place", "label"], rows)
    follow_printed(cli, cli("init", "a.csv", code=2).err)
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.id, data.order) == ("ride", "t")
    assert dict(data.steps) == {"place_1": "number", "place_2": "number"}


@pytest.mark.parametrize("lines", [30, 29])
@pytest.mark.parametrize("place", ["a", "."])
def test_names_beside_numbers_are_doubted(tmp_path, monkeypatch, cli, lines, place):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(12)
    rows = [[f"{draw.gauss(0, 1): .6e}" for _ in range(30)] for _ in range(60)]
    Path("a").mkdir()
    Path("a/X_train.txt").write_text("".join(f" {' '.join(row)}\n" for row in rows))
    write(Path("a/y_train.txt"), [], [[1 + i % 3] for i in range(60)])
    Path(place, "features.txt").write_text("".join(f"{i} name\n" for i in range(lines)))
    said = cli("init", "a/X_train.txt", "-o", "c.yaml").err
    assert ("features.txt" in said) == (lines == 30)


@pytest.mark.parametrize("smooth", [False, True])
def test_numbers_without_names_whose_neighbours_differ_are_doubted(
    tmp_path, monkeypatch, cli, smooth
):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(12)
    rows = [[i % 3 + draw.gauss(0, 1) for _ in range(30)] for i in range(60)]
    if smooth:
        rows = [list(itertools.accumulate(row)) for row in rows]
    lines = (" ".join(f"{number:.6e}" for number in row) for row in rows)
    Path("X_train.txt").write_text("\n".join(lines) + "\n")
    write(Path("y_train.txt"), [], [[1 + i % 3] for i in range(60)])
    said = cli("init", "X_train.txt", "-o", "c.yaml").err
    assert "30 time steps" in said.splitlines()[0]
    assert ("no order" in said) == (not smooth)


@pytest.mark.parametrize("plain", [0, 1])
def test_lines_above_one_of_two_files(tmp_path, monkeypatch, cli, plain):
    monkeypatch.chdir(tmp_path)
    for at, file in enumerate(["train.csv", "test.csv"]):
        rows = [[f"u{i // 9}", i % 9, i / (7 + at), "pq"[i // 9 % 2]] for i in range(360)]
        path = Path(write(Path(file), ["unit_id", "t", "heat", "state"], rows))
        if at == 0 or not plain:
            path.write_text(f"Device,X1\nSerial,7\n{path.read_text()}")
    refused = cli("init", "train.csv", "test.csv", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert len(data.splits["test"]) == 40


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("place", [100, 360])
def test_blank_rows_of_step_tables_are_removed(tmp_path, monkeypatch, cli, mark, place):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(13)
    steps = [[f"u{i // 9}", i % 9, draw.gauss(0, 1), "pq"[i // 9 % 2]] for i in range(360)]
    steps[place:place] = [[""] * 4] * 50
    write(Path("a.csv"), ["unit_id", "t", "heat", "state"], steps, mark)
    data = converted(cli, "a.csv")
    assert (data.id, data.order, data.bad_rows) == ("unit_id", "t", "error")


@pytest.mark.parametrize("form", ["lines", "a list", "a list, indented"])
def test_json_without_its_end_is_named(tmp_path, cli, form):
    draw = random.Random(14)
    rows = [{"words": sentence(draw), "way": "pq"[i % 2]} for i in range(60)]
    if form == "lines":
        text = "\n".join(map(json.dumps, rows))
    else:
        text = json.dumps(rows, indent=2 if "indented" in form else None)
    file = tmp_path / "a.json"
    for lost, is_cut in ((8, True), (1, True), (0, False)):
        file.write_text(text[: len(text) - lost])
        code = 2 * is_cut
        said = cli("init", str(file), "-o", str(tmp_path / f"{lost}.yaml"), code=code).err
        assert ("end is missing" in said) == is_cut


@pytest.mark.parametrize("file", ["vowels.txt", "gait.one", "notes.csv"])
def test_blank_lines_between_lines_of_numbers_divide_sequences(tmp_path, monkeypatch, cli, file):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    sizes = [draw.randint(5, 9) for _ in range(24)]
    lines = []
    for at, size in enumerate(sizes):
        for _ in range(size):
            lines.append(" ".join(f"{draw.gauss(at % 2, 1):.4f}" for _ in range(3)))
        lines.append("")
    Path(file).write_text("\n".join(lines) + "\n")
    write(Path("labels.csv"), ["block", "label"], [[at, "uv"[at % 2]] for at in range(24)])
    refused = cli("init", file, code=2).err
    init, table, *options = run_conversions(cli, refused)
    cli(init, table, "labels.csv", *options, "-o", "c.yaml", "--force")
    config = parse_config(Path("c.yaml").read_text())
    stores = prepare(config).splits.values()
    found = sorted(length for store in stores for length in store.lengths.tolist())
    assert found == sorted(sizes)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("places", [(7, 8), (200, 201), (3, 359)])
@pytest.mark.parametrize("number", ["{:.2f}", "a decimal comma"])
def test_rows_with_a_separator_too_many_are_named(tmp_path, monkeypatch, cli, mark, places, number):
    """They show no lines above a table, and may be left out."""
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(15), list[list[str]]()
    for at in range(360):
        heat = f"{draw.gauss(0, 1):.2f}"
        if number != "{:.2f}" and mark != ",":
            heat = heat.replace(".", ",")
        rows.append([f"u{at // 9}", str(at % 9), heat, draw.choice("xy"), "pq"[at // 9 % 2]])
    for place in places:
        rows[place].insert(1, "")
    write(Path("a.csv"), ["unit_id", "t", "heat", "valve", "state"], rows, mark)
    refused = cli("init", "a.csv", "-o", "c.yaml", code=2).err
    assert re.findall(r"a\.csv:(\d+):", refused) == [str(place + 2) for place in places]
    (command,) = re.findall("seqtrain (init .*bad_rows.*)", refused)
    cli(*shlex.split(command))
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert sum(map(len, data.splits.values())) == 40 - len({place // 9 for place in places})


def test_a_log_of_zeek_becomes_a_table(tmp_path, monkeypatch, cli):
    """A comment names its columns, and another one their types."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(12)
    names = ["ts", "uid", "id.orig_h", "orig_bytes", "label"]
    rows = []
    for i in range(240):
        uid = "C" + "".join(draw.choices("abcdefghXYZ0123456789", k=12))
        rows.append([f"{1.5e9 + i:.3f}", uid, f"10.0.0.{i // 40}", f"{draw.gauss(50, 9):.1f}"])
        rows[-1].append(["good", "bad"][i // 20 % 2])
    lines = ["#separator \\x09", "#path\tconn", "#fields\t" + "\t".join(names)]
    lines += ["#types\ttime\tstring\taddr\tcount\tstring", *map("\t".join, rows), "#close\tnow"]
    Path("conn.log.labeled").write_text("\n".join(lines))
    refused = cli("init", "conn.log.labeled", code=2).err
    init = run_conversions(cli, refused)
    assert rows_of(init[1]) == [names, *rows]
    cli(*init, "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.order, data.label, list(data.steps)) == ("ts", "label", ["orig_bytes"])
