"""Commands for a shell that `init` prints: they work with all names of files and all cells."""

import csv
import gzip
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare
from seqtrain.tables.delimited import DELIMITERS
from tests.helpers.printed import commands_in, follow_printed, run_conversion, run_conversions
from tests.proposal.test_forms import sentence, write
from tests.tables.test_xlsx import write as write_workbook

FILES = ["my data.csv", "it's.csv", 'the "q".csv', "a=b.csv", "$HOME.csv", "p|.csv", "a\\b.csv"]
MARKS = [
    "n/v",
    "'x'",
    '5"',
    "$5",
    "a\\b",
    "n|v",
    "@who",
    "#REF!",
    "(-)",
    "ä/ö",
    "[x]*",
    "a{2}",
    "^~%&",
]


def measured(mark: str) -> list[list[Any]]:
    """Return rows of an id, a time, a number that is often a mark, and a label."""
    draw, rows = random.Random(mark), list[list[Any]]()
    for unit in range(40):
        for step in range(8):
            value = mark if draw.random() < 0.2 else f"{draw.gauss(unit % 2, 1):.4f}"
            rows.append([f"u{unit}", step, value, draw.random(), "xy"[unit % 2]])
    rows[-1][2] = mark
    return rows


def convert_printed(refused: str, cli: Any, source: str) -> Path:
    """Run the first printed conversion, and return the file it writes. The source stays."""
    content = Path(source).read_bytes()
    (written,) = run_conversion(cli, refused)
    assert Path(source).read_bytes() == content
    return Path(written)


@pytest.mark.parametrize(
    ("file", "mark"),
    [
        *((file, "ERR") for file in FILES),
        *(("a.csv", mark) for mark in MARKS),
        ("blank.csv", "x/y"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_marks_become_missing_numbers(tmp_path, monkeypatch, cli, file, mark, delimiter):
    monkeypatch.chdir(tmp_path)
    write(Path(file), ["unit_id", "step", "temp", "vib", "state"], measured(mark), delimiter)
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    (command,) = re.findall("seqtrain:   seqtrain (init .*na_values.*)", refused)
    cli(*shlex.split(command))
    config = parse_config(Path("c.yaml").read_text())
    assert config.data.steps["temp"] == "number"
    assert config.data.bad_rows == "error"
    assert config.data.missing in ("mask", "last")
    assert prepare(config).splits["train"].lengths.min() == 8


@pytest.mark.parametrize("file", FILES)
def test_limits_become_numbers_and_a_compressed_file_is_unpacked_first(
    tmp_path, monkeypatch, cli, file
):
    monkeypatch.chdir(tmp_path)
    rows = measured("<0.5")
    path = write(Path(file), ["unit_id", "step", "temp", "vib", "state"], rows)
    Path("z.csv.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    for source in (file, "z.csv.gz"):
        refused = cli("init", source, "-o", "c.yaml", code=2).err
        with open(convert_printed(refused, cli, source), newline="") as written:
            cells = [row[2] for row in csv.reader(written)][1:]
        assert cells == [str(row[2]).removeprefix("<") for row in rows]


@pytest.mark.parametrize("file", FILES)
def test_commands_of_other_forms(tmp_path, monkeypatch, cli, file):
    """A title above the names, blocks of tokens, and labels before a blank."""
    monkeypatch.chdir(tmp_path)
    draw, given = random.Random(1), Path(file)
    rows = [[draw.choice("uv"), sentence(draw)] for _ in range(60)]
    table = [["way", "words", "n"], *([*row, 7] for row in rows)]
    write(given, ["A title", "", ""], table)
    cli("init", file, "-o", "c.yaml")
    write(given, ['"A title"', "", ""], table)
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    assert convert_printed(refused, cli, file).read_text().startswith("way,words,n\n")
    lines = [
        [f"{sentence(draw)[:3]}{draw.randrange(9)} {i % 2}\n" for k in range(5)] for i in range(60)
    ]
    blocks = ["".join(each) for each in lines]
    given.write_text("\n".join(blocks))
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    written = convert_printed(refused, cli, file)
    cli("init", written, "--id", 0, "--label", 2, "-o", "c.yaml", "--force")
    given.write_text("".join(f"{label} {words}\n" for label, words in rows))
    refused = cli("init", file, "--format", "txt", "-o", "d.yaml", code=2).err
    cli("init", convert_printed(refused, cli, file), "-o", "d.yaml")


@pytest.mark.parametrize("file", ["a.csv", "it's \\n.tsv", "a;b.csv", "sheet.xlsx"])
def test_ids_of_merged_cells_are_written_in_all_rows(tmp_path, monkeypatch, cli, file):
    """Only the first row of a sequence has its id, and its label."""
    monkeypatch.chdir(tmp_path)
    names = ["pump", "step", "bar", "state"]
    rows = [row[:4] for row in measured("0")]
    rows = [[f"p {row[0]}", row[1], row[3], "xy"[int(row[0][1:]) % 2]] for row in rows]
    merged = [[row[0], *row[1:3], row[3]] if row[1] == 0 else ["", *row[1:3], ""] for row in rows]
    if file.endswith(".xlsx"):
        cells = [[None if x == "" else x for x in row] for row in (names, *merged)]
        write_workbook(Path(file), Data=cells)
    else:
        write(Path(file), names, merged, ";" if ";" in file else ("\t" if "tsv" in file else ","))
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    filled = convert_printed(refused, cli, file)
    cli("init", filled, "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.id, config.data.order, config.data.label) == ("pump", "step", "state")
    assert {*prepare(config).splits["train"].lengths.tolist()} == {8}


@pytest.mark.parametrize("given", [["in/train.csv", "in/test.csv"], ["in"]])
def test_files_of_all_splits_are_converted(tmp_path, monkeypatch, cli, given):
    """Their ids are only in the first rows."""
    monkeypatch.chdir(tmp_path)
    names = ["unit_id", "step", "temp", "vib", "state"]
    for split, ids in (("train", 40), ("test", 10)):
        rows = [[*row] for row in measured("0")[: 8 * ids]]
        for row in rows:
            row[0] *= row[1] == 0
        write(Path(f"in/{split}.csv"), names, rows)
    follow_printed(cli, cli("init", *given, code=2).err)
    data = prepare(parse_config(Path("c.yaml").read_text())).splits
    assert len(data["test"]) == 10
    assert {*data["train"].lengths.tolist(), *data["test"].lengths.tolist()} == {8}


def test_times_that_mark_sequences_and_columns_named_otherwise_are_commands(
    tmp_path, monkeypatch, cli
):
    """A slot of time is a sequence of its rows; stages are the time steps of a row."""
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(3), list[list[Any]]()
    for slot in range(60):
        start = f"2023-05-{slot % 28 + 1:02d} {slot // 28:02d}:00"
        label = draw.choice(["on", "off"])
        rows += [[start, *(round(draw.random(), 3) for _ in "abc"), label] for _ in range(9)]
    write(Path("slots.csv"), ["slot_begin", "volt", "amp", "flow", "mode"], rows)
    refused = cli("init", "slots.csv", "-o", "a.yaml", code=2).err
    (command,) = re.findall("seqtrain init (.*--id slot_begin)", refused)
    cli(*shlex.split(f"init {command}"))
    config = parse_config(Path("a.yaml").read_text())
    assert {*prepare(config).splits["train"].lengths.tolist()} == {9}
    stages = ["mash", "boil", "cool", "pitch", "rack", "age", "fine", "keg", "serve"]
    rows = [[draw.choice("uv"), *(round(draw.random(), 2) for _ in stages)] for _ in range(60)]
    write(Path("beer.csv"), ["brewery", *stages], rows)
    refused = cli("init", "beer.csv", "-o", "b.yaml", code=2).err
    (command,) = re.findall("seqtrain (init .*?)  #", refused)
    cli(*shlex.split(command))
    config = parse_config(Path("b.yaml").read_text())
    assert {*prepare(config).splits["train"].lengths.tolist()} == {9}


def test_several_columns_of_marks_are_the_first_command(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw, names = random.Random(4), ["rude", "angry", "threat", "loud"]
    rows = [[sentence(draw), *(int(draw.random() < 0.3) for _ in names)] for _ in range(80)]
    write(Path("posts.csv"), ["words", *names], rows)
    refused = cli("init", "posts.csv", "-o", "c.yaml", code=2).err
    cli(*shlex.split(re.findall("seqtrain (init .*?)  #", refused)[0]))
    assert parse_config(Path("c.yaml").read_text()).data.label == names


@pytest.mark.parametrize("form", ["classes", "a table of labels", "notes"])
def test_sheets_are_read_by_a_command(tmp_path, monkeypatch, cli, form):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(form)
    sheets: dict[str, list[list[Any]]] = {}
    if form == "classes":
        for label in ("Thanks & more", "Broken", "Late"):
            texts = [[f"K{draw.randrange(40)}", sentence(draw)] for _ in range(50)]
            sheets[label] = [["owner", "remark"], *texts]
    elif form == "notes":
        sheets["Notes"] = [["What this is"], [sentence(draw)], [sentence(draw)]]
        rows = [[sentence(draw), draw.choice("pq")] for _ in range(60)]
        sheets["Coded"] = [["said", "class"], *rows]
    else:
        sheets["Subjects"] = [["subject_id", "arm"], *([f"S{i}", "xy"[i % 2]] for i in range(50))]
        rows = [[f"S{i}", day, draw.random()] for i in range(50) for day in range(4)]
        sheets["Visits"] = [["subject_id", "day", "weight"], *rows]
    write_workbook(Path("it's.xlsx"), **sheets)
    refused = cli("init", "it's.xlsx", "-o", "c.yaml", code=2).err
    if form == "notes":
        (command,) = re.findall("seqtrain (init .*data.sheet=Coded.*)", refused)
    else:
        run_conversion(cli, refused, "tables")
        command = re.findall("seqtrain (init .*)", refused)[-1] + " -o c.yaml"
    cli(*shlex.split(command))
    config = parse_config(Path("c.yaml").read_text())
    classes = {*sheets} if form == "classes" else {*("xy" if "arm" in str(sheets) else "pq")}
    assert {*prepare(config).preprocessing.labels} == classes


def test_the_rows_below_the_names_of_a_survey_are_removed(tmp_path, monkeypatch, cli):
    """As Qualtrics writes them: questions, perhaps with line breaks, and ids of columns."""
    monkeypatch.chdir(tmp_path)
    draw, names = random.Random(5), ["StartDate", "Q1", "Q2"]
    rows = [[f"2024-05-{i % 28 + 1:02d} 10:00:00", sentence(draw), "yn"[i % 2]] for i in range(60)]
    ids = [f'{{"ImportId":"{each}"}}' for each in names]
    write(Path("it's.csv"), names, [["Start", "How was\nit?", "Again?"], ids, *rows])
    refused = cli("init", "it's.csv", code=2).err
    cli("init", convert_printed(refused, cli, "it's.csv"), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.sequence, config.data.label) == ("Q1", "Q2")
    assert {*prepare(config).preprocessing.labels} == {"y", "n"}


def test_ragged_fields_between_tabs_with_the_label_last(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(6)
    rows = [[*draw.choices("abcd", k=draw.randint(3, 9)), "vw"[i % 2]] for i in range(80)]
    write(Path("a.txt"), [], rows, "\t")
    refused = cli("init", "a.txt", code=2).err
    cli("init", convert_printed(refused, cli, "a.txt"), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert {*prepare(config).preprocessing.labels} == {"v", "w"}


def test_labels_of_another_number_of_rows_are_named(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(8)
    rows = [[round(draw.random(), 2) for _ in range(12)] for _ in range(100)]
    write(Path("X_train.csv"), [f"t{i}" for i in range(12)], rows)
    write(Path("y_train.csv"), ["kind"], [["pq"[i % 2]] for i in range(97)])
    refused = cli("init", "X_train.csv", code=2).err
    assert "y_train.csv" in refused
    assert "97" in refused


@pytest.mark.parametrize("share", [0.3, 1])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("names", [["way", "words"], ["words", "way"], ["nr", "words", "way"], []])
def test_texts_with_delimiters_are_written_in_quotes(
    tmp_path, monkeypatch, cli, names, mark, share
):
    monkeypatch.chdir(tmp_path)
    draw, rows = random.Random(9), list[dict[str, str]]()
    for i in range(80):
        more = draw.randint(1, 3) * (draw.random() < share)
        words = f"{mark} ".join(sentence(draw) for _ in range(1 + more))
        rows.append({"nr": str(1000 + i), "words": words, "way": draw.choice(["up", "down"])})
    order = names or ["words", "way"]
    lines = [mark.join(names), *(mark.join(row[name] for name in order) for row in rows)]
    file = "a.tsv" if mark == "\t" else "a.csv"
    Path(file).write_text("\n".join(lines).lstrip("\n") + "\n")
    refused = cli("init", file, "-o", "c.yaml", code=2).err
    cli("init", convert_printed(refused, cli, file), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    expected = (order.index("words"), order.index("way"))
    assert (config.data.sequence, config.data.label) == (("words", "way") if names else expected)
    written = list(csv.reader(Path("a-quoted.csv").read_text().splitlines()))
    place = order.index("words")
    assert [row[place] for row in written[bool(names) :]] == [row["words"] for row in rows]


def test_another_field_of_fasta_becomes_the_label(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw, names = random.Random(9), ["Apis", "Bombus"]
    lines = [
        f">s{i}|{names[i % 2]}|COI|DQ{i:05d}\n{''.join(draw.choices('ACGT', k=40))}\n"
        for i in range(60)
    ]
    Path("a.fasta").write_text("".join(lines))
    refused = cli("init", "a.fasta", code=2).err
    follow_printed(cli, refused)
    config = parse_config(Path("c.yaml").read_text())
    assert {*prepare(config).preprocessing.labels} == {*names}


def test_objects_of_json_in_folders_of_classes_are_no_texts(tmp_path, monkeypatch, cli):
    """As Slack writes the messages of a day in the folder of a channel."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(10)
    for channel in ("dev", "sales"):
        for day in range(6):
            kind = {"type": "message"}
            said = [kind | {"user": draw.choice("uv"), "text": sentence(draw)} for _ in range(5)]
            file = Path("chat", channel, f"2023-03-0{day + 1}.json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(said))
    shown = cli("init", "chat", "-o", "c.yaml", code=2).err
    cli(*shlex.split(re.findall("seqtrain (init .*jsonl.*)", shown)[0]), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert {*prepare(config).preprocessing.labels} == {"dev", "sales"}


def test_decimal_commas_between_tabs_in_texts_are_numbers(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(11)
    Path("cnc").mkdir()
    for number in range(24):
        lines = ["\t".join(f"{draw.gauss(0, 1):.4f}" for _ in "xyz") for _ in range(9)]
        path = Path(f"cnc/T{number:02d}_{['ok', 'worn'][number % 2]}.txt")
        path.write_text("\n".join(lines).replace(".", ",") + "\n")
    cli("init", "cnc", "-o", "c.yaml")
    data = parse_config(Path("c.yaml").read_text()).data
    assert (data.decimal, len(data.steps)) == (",", 3)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "form", [list, lambda pair: dict(zip(["words", "way"], pair, strict=True))]
)
@pytest.mark.parametrize("names", [("train", "val", "test"), ("Training", "dev", "oos_train")])
def test_splits_in_one_object_are_written_to_files(tmp_path, monkeypatch, cli, names, form, indent):
    monkeypatch.chdir(tmp_path)
    draw = random.Random(12)
    splits = dict.fromkeys(names, 60) | {"more": 3}
    rows = {
        name: [form([sentence(draw), draw.choice("pq")]) for _ in range(size)]
        for name, size in splits.items()
    }
    Path("my data.json").write_text(json.dumps(rows, indent=indent))
    refused = cli("init", "my data.json", code=2).err
    assert "'more'" in refused.splitlines()[0]
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    data = prepare(parse_config(Path("c.yaml").read_text()))
    assert {*data.preprocessing.labels} == {"p", "q"}
    assert len(data.splits["train"]) == len(data.splits["validation"]) == 60
    assert ("test" in data.splits) == ("test" in names)


ORGANISMS = ["Homo sapiens", "Mus musculus"]


def fasta(header: str) -> str:
    """Return records whose headers hold the organism {0}, the number of the row {1}, and PE {2}."""
    draw = random.Random(13)
    return "".join(
        f">{header.format(ORGANISMS[i % 2], i, i % 3)}\n{''.join(draw.choices('ACDEFG', k=40))}\n"
        for i in range(60)
    )


@pytest.mark.parametrize("header", ["sp|P{1}|N{1} Enzyme OS={0} OX=9{1} PE={2} SV=1"])
def test_named_fields_of_fasta_are_listed_and_one_becomes_the_label(
    tmp_path, monkeypatch, cli, header
):
    monkeypatch.chdir(tmp_path)
    Path("a.fasta").write_text(fasta(header))
    refused = cli("init", "a.fasta", code=2).err
    assert [words[0] for words in commands_in(refused)] == ["convert", "convert", "init"]
    follow_printed(cli, refused)
    labels = prepare(parse_config(Path("c.yaml").read_text())).preprocessing.labels
    assert {label.replace("_", " ") for label in labels} == {*ORGANISMS}


@pytest.mark.parametrize("header", ["tr|K{1}|N{1}_X a OS={0} PE=1", "K{1} len=40", "K{1}|a b|{2}"])
def test_labels_of_records_of_fasta_in_a_table_are_joined_by_the_printed_commands(
    tmp_path, monkeypatch, cli, header
):
    """The run then predicts records of FASTA."""
    monkeypatch.chdir(tmp_path)
    Path("my a.fasta").write_text("; by hand\n" + fasta(header))
    rows = [[f"K{i}", ["wall", "core"][i % 2]] for i in range(60)]
    random.Random(3).shuffle(rows)
    text = "".join(f"{key}\t{label}\n" for key, label in [["Key", "Place"], *rows])
    Path("labels.tsv").write_text(text)
    refused = cli("init", "labels.tsv", "my a.fasta", code=2).err
    cli(*run_conversions(cli, refused), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    labels = {*prepare(config).preprocessing.labels}
    assert (labels, config.data.tokenizer) == ({"wall", "core"}, "char")
    fast = ["--set", "training.max_epochs=1", "--set", "model.hidden_size=4"]
    cli("fit", "c.yaml", *fast, "--run-dir", "run")
    assert len(cli("predict", "my a.fasta", "--run", "run").out.splitlines()) == 61


@pytest.mark.parametrize("header", ["NP_{1}.1 enzyme [{0}]", "x{1} PE={2} len={1} class={0}"])
def test_the_organism_of_a_record_of_fasta_is_its_label(tmp_path, cli, header):
    path = tmp_path / "a.fasta"
    path.write_text(fasta(header))
    cli("init", str(path), "-o", str(tmp_path / "c.yaml"))
    labels = {*prepare(parse_config((tmp_path / "c.yaml").read_text())).preprocessing.labels}
    assert labels == ({*ORGANISMS} if "[" in header else {"Homo", "Mus"})


VECTORS = {
    "blanks": (" ".join, 3, 2),
    "semicolons": (";".join, 2, 1),
    "a tuple": (lambda cells: f"({', '.join(cells)})", 4, 1),
    "a list": (lambda cells: f"[{','.join(cells)}]", 3, 1),
    "numpy": (lambda cells: f"[{' '.join(cells)}]", 3, 1),
}
"""Forms of vectors, their sizes, and numbers of columns of them."""


@pytest.mark.parametrize("form", VECTORS)
@pytest.mark.parametrize("digits", ["{:.0f}", "{:.2e}"])
def test_the_numbers_of_vectors_of_time_steps_become_columns(
    tmp_path, monkeypatch, cli, form, digits
):
    monkeypatch.chdir(tmp_path)
    draw, rows, numbers = random.Random(14), list[list[Any]](), list[list[float]]()
    joined, size, columns = VECTORS[form]
    names = ["acc", "gyro"][:columns]
    for take in range(30):
        for step in range(10):
            cells = [digits.format(draw.gauss(0, 30)) for _ in range(size * columns)]
            numbers.append([float(cell) for cell in cells])
            parts = [cells[at : at + size] for at in range(0, len(cells), size)]
            rows.append([take, step, *map(joined, parts), "pq"[take % 2]])
    write(Path("a.csv"), ["take", "step", *names, "label"], rows)
    said = cli("init", "a.csv", "-o", "c.yaml").err
    follow_printed(cli, said, "-o", "d.yaml")
    with open("a-numbers.csv") as file:
        written = [[*map(float, row[2 : 2 + size * columns])] for row in [*csv.reader(file)][1:]]
    assert written == numbers
    data = parse_config(Path("d.yaml").read_text()).data
    assert (data.id, data.order, data.label) == ("take", "step", "label")
    assert [*data.steps] == [f"{name}_{at}" for name in names for at in range(1, size + 1)]


def test_vectors_in_numbered_columns_are_doubted(tmp_path, cli):
    draw = random.Random(15)
    rows = [
        [*(f"({draw.random():.2f}, {draw.random():.2f})" for _ in range(12)), "pq"[i % 2]]
        for i in range(60)
    ]
    path = write(tmp_path / "a.csv", [*(f"t{i}" for i in range(12)), "label"], rows)
    said = cli("init", path, "-o", str(tmp_path / "c.yaml")).err
    assert "2 time steps of 12 channels" in said


def several_labels(draw: random.Random) -> tuple[list[str], list[list[Any]]]:
    """Return tickets of which two columns may be the label."""
    rows = [[i // 4, sentence(draw), "cs"[i % 2], "yn"[i // 4 % 2]] for i in range(160)]
    return ["ticket_id", "message", "sender", "solved"], rows


def ambiguous_dates(draw: random.Random) -> tuple[list[str], list[list[Any]]]:
    """Return steps with days that may be months."""
    days = [f"0{1 + i % 9}/0{1 + i // 9 % 9}/2022" for i in range(300)]
    rows = [
        [i // 6, day, draw.random(), draw.choice("uvw"), "kl"[i // 6 % 2]]
        for i, day in enumerate(days)
    ]
    return ["pump", "at", "bar", "mode", "state"], rows


def some_marks(draw: random.Random) -> tuple[list[str], list[list[Any]]]:
    """Return steps with a word instead of some numbers."""
    return ["unit_id", "step", "temp", "vib", "state"], measured("off")


def one_recording(draw: random.Random) -> tuple[list[str], list[list[Any]]]:
    """Return steps without an id."""
    rows = [[i, draw.random(), draw.random(), "mn"[i // 40 % 2]] for i in range(600)]
    return ["second", "volt", "amp", "state"], rows


@pytest.mark.parametrize("form", [several_labels, ambiguous_dates, some_marks, one_recording])
@pytest.mark.parametrize(
    ("file", "mark"), [("a.csv", "semicolon"), ("a.log", "comma"), ("a b.txt", "pipe")]
)
def test_printed_commands_keep_what_the_user_gave(tmp_path, monkeypatch, cli, form, file, mark):
    """Each has the user's options, and the first ones can be run one after the other."""
    monkeypatch.chdir(tmp_path)
    names, rows = form(random.Random(form.__name__))
    write(Path(file), names, rows, DELIMITERS[mark])
    given = ["--set", "training.lr=0.05", "-o", "it's.yaml", "--delimiter", mark]
    if not file.endswith(".csv"):
        given += ["--format", "csv"]
    if form is ambiguous_dates:
        given += ["--label", "state"]
    said = cli("init", file, *given, code=0 if form is ambiguous_dates else 2).err
    printed = [words for words in commands_in(said) if words[0] == "init"]
    assert printed
    for words in printed:
        assert {"training.lr=0.05", "it's.yaml", mark, *given[6:]} <= {*words}
    first = commands_in(said)[: 1 + commands_in(said).index(printed[0])]
    for words in first:
        cli(*words)
    config = parse_config(Path("it's.yaml").read_text())
    assert config.training.lr == 0.05
    assert prepare(config).splits["train"]
    if "--label" in given:
        assert (config.data.label, config.data.order) == ("state", "at")


def test_options_of_the_old_file_are_left_out_for_a_converted_one(tmp_path, monkeypatch, cli):
    """It is UTF-8, and the test file is converted, too."""
    monkeypatch.chdir(tmp_path)
    for file, first in (("a.csv", 0), ("held.csv", 8)):
        rows = [[*row[:4], {"x": "trüb", "y": "klar"}[row[4]]] for row in measured("<0.5")]
        names = ["unit_id", "step", "temp", "vib", "state"]
        write(Path(file), names, rows[first:])
        Path(file).write_bytes(Path(file).read_text().encode("latin-1"))
    given = ["--label", "state", "--test", "held.csv", "--encoding", "latin-1"]
    said = cli("init", "a.csv", *given, "-o", "c.yaml", code=2).err
    follow_printed(cli, said, "--force")
    config = parse_config(Path("c.yaml").read_text())
    assert (config.data.test, config.data.label) == ("held-cells.csv", "state")
    assert {*prepare(config).preprocessing.labels} == {"trüb", "klar"}


def test_a_pattern_of_names_is_not_given_for_files_of_another_ending(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    for word in ("boat", "sun"):
        drawings = [{"strokes": [[[1, 2, k], [3, 4, 5]], [[6], [7]]]} for k in range(20)]
        Path(f"{word}.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in drawings))
    pattern = r"data.path=(?P<label>[a-z]+)\.ndjson$"
    said = cli("init", "boat.ndjson", "sun.ndjson", "--set", pattern, code=2).err
    cli(*run_conversions(cli, said), "-o", "c.yaml")
    config = parse_config(Path("c.yaml").read_text())
    assert len(prepare(config).preprocessing.labels) == 2
