"""`seqtrain convert`: each form, its options, and files that are never lost."""

import csv
import gzip
import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain.tables.conversions.forms import CONVERSIONS
from tests.tables.test_xlsx import write as write_workbook


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def options_of(words: str) -> list[str]:
    """Return the arguments of a conversion of the file a.txt."""
    return ["convert", "a.txt", *shlex.split(words)]


LINES = {
    "--to blocks": ("# x\na\tO\nb O\n\n\nc B\n", "0,a,O\n0,b,O\n2,c,B\n"),
    "--to columns": ('# made in May\n# n "k"\n1  a\n\n2 b\n', "n,k\n1,a\n2,b\n"),
    "--to columns --mark ::": ("a::b, c\nd :: e\n", 'a,"b, c"\nd,e\n'),
    "--to columns --mark pipe": ("|n|k|\n|---|---|\n| |b|\n2 rows\n", "n,k\n,b\n"),
    "--to labelled": ("it is x:\n\nno y\n", "x\tit is\ny\tno\n"),
    "--to labelled --at first --mark :": ("A:b it is\nC:d no\n", "A\tit is\nC\tno\n"),
    "--to labelled --at tree": ("(3 (2 so) (3 (2 very) (4 good)))\n", "3\tso very good\n"),
    "--to labelled ": ("it is __label__x __label__y\n", "__label__x __label__y it is\n"),
    "--to logs": (
        "#separator \\x09\n#fields\ta\tb   k\n#types\tx\ty   z\n1\t-   u\n#close\n",
        "a,b,k\n1,-,u\n",
    ),
    "--to marked": ("a\n \nb\n", "a\n-\nb\n"),
    "--to measured": (" 1,5;2\t3\n\n# end\n", "1.5,2,3\n"),
    "--to measured --points": ("1.5, 2 | 3\n", "1.5,2,3\n"),
    "--to messages": (
        "12/31/23, 9:15 PM - Ann: Hi: you,\nthere\n12/31/23, 9:15 PM - Bo left\n",
        'time,sender,text\n"12/31/23, 9:15 PM",Ann,"Hi: you,\nthere"\n',
    ),
    "--to moved": ('a,b,"x, y"\nc,z\n', '"x, y",a,b\nz,c\n'),
    "--to moved --mark tab": ('a\t"\tx\n', 'x\ta\t"\n'),
    "--to quoted --before 1 --after 1": ("1,a, b,x\n2,c,y\n", '1,"a, b",x\n2,c,y\n'),
    "--to quoted --mark ;": ("k;n\nit\nis;1\nno;2\n", "k,n\nit is,1\nno,2\n"),
    "--to records": (">a|b c\nAC\n GT\n>d\n;x\nA\n", "id,text\na|b,ACGT\nd,A\n"),
    "--to records --at 2": (">a|b c\nAC\n>d\nA\n", "id,text\nb,AC\nd,A\n"),
    "--to shortened --line 2": ("a\nb\nc\n", "a\nc\n"),
    "--to table --line 2": ("x\na,b\n1,2\n", "a,b\n1,2\n"),
    "--to table --header-line 'a b'": ("x\ny\na\tb\n1\t2\n", "a\tb\n1\t2\n"),
}


@pytest.mark.parametrize("words", LINES)
def test_lines_become_rows(cli, words):
    old, new = LINES[words]
    Path("a.txt").write_text(old)
    written = Path(cli(*options_of(words)).out.strip())
    assert written.stem == f"a-{words.split()[1]}"
    assert written.read_text() == new
    assert Path("a.txt").read_text() == old


TASK = {
    "data": {"text": "hi"},
    "annotations": [{"result": [{"from_name": "mood", "value": {"choices": ["a", "b"]}}]}],
}
CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": " yes "}]
PARTS = [{"data": [{"text": "a "}, {"text": "b"}]}]
OBJECTS: dict[str, tuple[list[Any], list[Any]]] = {
    "fields --column p": ([{"id": 1, "p": [5, 6]}], [{"id": 1, "p_0": 5, "p_1": 6}]),
    "fields --column e": ([{"e": [{"a": {"x": [1, 2]}}]}], [{"e": [{"a_x_0": 1, "a_x_1": 2}]}]),
    "label --column cats": (
        [{"t": "x", "cats": {"p": 0.9, "q": 0.5, "r": 0.1}}],
        [{"t": "x", "label": "p|q"}],
    ),
    "label --column c": ([{"c": CHAT}, {"c": []}], [{"c": CHAT[:1], "label": "yes"}]),
    "label --column annotations": ([TASK], [{"text": "hi", "mood": "a|b"}]),
    "objects --column l": ([{"l": ["a", "b"], "k": 1}], [{"l": x, "k": 1} for x in "ab"]),
    "objects": ([{"t": [*"abc"], "k": [*"uuu"]}], [{"t": x, "k": "u"} for x in "abc"]),
    "objects  ": (
        [{"u": ["a", "b"], "v": ["c", "d"]}],
        [{"label": "uv"[x > "b"], "sequence": x} for x in "abcd"],
    ),
    "objects   ": ([{"u": PARTS, "v": PARTS}], [{"label": x, "text": "a b"} for x in "uv"]),
    "objects    ": ([[["t", "k"], ["a", "u"], ["b", "u"]]], [{"t": x, "k": "u"} for x in "ab"]),
    "objects     ": ([[[1, "u"], [2, "u"]]], [{"column_0": n, "column_1": "u"} for n in (1, 2)]),
    "steps --column s": ([{"s": [[1, 2], [3, 4]]}], [{"s": [[1, 3], [2, 4]]}]),
    "steps --column d": ([{"d": [[[1, 2], [3, 4]]]}], [{"d": [[1, 3, 1], [2, 4, 0]]}]),
    "turns --column q --field A --field B": (
        [{"q": [{"A": "a", "B": ["b", "c"], "n": 1}, {"A": "d"}]}],
        [
            {
                "q": [
                    {**n, "role": role, "text": text}
                    for n, role, text in [
                        ({"n": 1}, "A", "a"),
                        ({"n": 1}, "B", "b c"),
                        ({}, "A", "d"),
                    ]
                ]
            }
        ],
    ),
    "turns --column q --field parts": (
        [{"q": [{"parts": ["a", "b"], "role": "x"}]}],
        [{"q": [{"role": "x", "text": "a b"}]}],
    ),
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("words", OBJECTS)
def test_objects_of_json_are_converted(cli, words, indent):
    """The old file has an object per line, or one value over several lines."""
    old, new = OBJECTS[words]
    value = old[0] if len(old) == 1 else old
    if indent is None and all(isinstance(each, dict) for each in old):
        Path("a.json").write_text("".join(f"{json.dumps(each)}\n" for each in old))
    else:
        Path("a.json").write_text(json.dumps(value, indent=indent))
    form = words.split()[0]
    assert cli("convert", "a.json", "--to", *words.split()).out == f"a-{form}.jsonl\n"
    lines = Path(f"a-{form}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == new


def test_arrays_get_their_channels_last(cli):
    x = np.arange(24).reshape(2, 3, 4)
    np.savez("a.npz", x_train=x, y_train=[1, 2])
    np.save("X.npy", x)
    np.save("y.npy", [1, 2])
    cli("convert", "a.npz", "--to", "steps")
    cli("convert", "X.npy", "--to", "steps", "-o", "both.npz")
    for file, names in (("a-steps.npz", ["x_train", "y_train"]), ("both.npz", ["X", "y"])):
        with np.load(file) as arrays:
            assert arrays.files == names
            assert arrays[names[0]].tolist() == x.swapaxes(1, 2).tolist()
            assert arrays[names[1]].tolist() == [1, 2]
    Path("d/u").mkdir(parents=True)
    np.save("d/u/a.npy", x[0])
    Path("d/labels.csv").write_text("a,b\n")
    cli("convert", "d", "--to", "steps")
    assert np.load("d-steps/u/a.npy").tolist() == x[0].T.tolist()
    assert Path("d-steps/labels.csv").read_text() == "a,b\n"


def test_files_of_a_folder_become_arrays(cli):
    Path("npz").mkdir()
    np.savez("npz/a.npz", signal=[1, 2], rate=5)
    cli("convert", "npz", "--to", "array", "--name", "signal")
    assert np.load("npz-array/a.npy").tolist() == [1, 2]
    assert "'signal'" in cli("convert", "npz", "--to", "array", "--name", "sign", code=2).err
    Path("text").mkdir()
    Path("text/x.txt").write_text("1 2 3\n4 5 6\n")
    Path("text/y.txt").write_text("1,0,0\n0,0,1\n")
    cli("convert", "text", "--to", "stacked")
    with np.load("text-stacked.npz") as arrays:
        assert arrays["X"].tolist() == [[[1, 1], [2, 0], [3, 0]], [[4, 0], [5, 0], [6, 1]]]


def test_each_table_inside_a_file_becomes_a_file(cli):
    rows = [{"t": "a"}, {"t": "b"}]
    Path("a.json").write_text(json.dumps({"train": rows, "x/y": [["u", 1]], "version": 2}))
    with closing(sqlite3.connect("a.db")) as database:
        database.execute('create table "x ""y" (t text, n int)')
        database.execute('insert into "x ""y" values (?, ?)', ("a, b", 1))
        database.commit()
    np.savez("a.npz", X=[[1, 2]], y=[1], X_test=[[3, 4]], y_test=[2])
    for file in ("a.json", "a.db", "a.npz"):
        cli("convert", file, "--to", "tables", "-o", f"new {file}")
    assert sorted(path.name for path in Path("new a.json").iterdir()) == [
        "train.jsonl",
        "x_y.jsonl",
    ]
    assert Path("new a.json/train.jsonl").read_text() == '{"t": "a"}\n{"t": "b"}\n'
    assert rows_of("new a.db/x _y.csv") == [["t", "n"], ["a, b", "1"]]
    with np.load("new a.npz/test.npz") as arrays:
        assert (arrays["X"].tolist(), arrays["labels"].tolist()) == ([[3, 4]], [2])


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("a.json", b'{"a": 1', "objects"),
        ("a.json", b'{"a": 1}', "tables --column a"),
        ("a.json", b'{"a": 1}', "fields --column b"),
        ("a.json", b'{"a": [5]}', "label --column a"),
        ("a.json", b"[1]", "fields --column b"),
        ("a.db", b"junk" * 99, "tables"),
        ("a.npz", b"junk", "tables"),
        ("a.npz", b"junk", "lists"),
        ("a.npy", b"junk", "steps"),
        ("a.npy", b"junk", "fields --column a"),
        ("a.mat", b"junk", "objects"),
        ("d/a.txt", b"1 2 x", "stacked"),
        ("d/a.wav", b"RIFFjunk", "bands"),
    ],
)
def test_what_cannot_be_converted_is_refused_and_nothing_is_written(cli, file, content, words):
    path = Path(file)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    given = path.parent if path.parent.name else path
    said = cli("convert", given, "--to", *words.split(), code=2).err
    assert path.name in said or "--" in said
    assert [each.name for each in Path().iterdir()] == [given.name]


@pytest.mark.parametrize("words", ["tables", "label --column a"])
def test_a_form_of_json_names_the_files_that_it_takes(cli, words):
    Path("a.csv").write_text("a,b\n1,2\n")
    said = cli("convert", "a.csv", "--to", *words.split(), code=2).err
    assert "a.csv:1" in said
    assert "JSON" in said
    assert "--input-format" not in said
    assert "data.format" not in said


def test_help_tells_what_each_form_writes(cli):
    said = cli("convert", "--help").out
    for form, target in CONVERSIONS.items():
        assert f"{form}: {target.help}" in said


def test_sheets_become_files(cli):
    write_workbook(Path("a.xlsx"), **{"Late & more": [["t", "n"], ["a, b", 1]], "Other": [["x"]]})
    cli("convert", "a.xlsx", "--to", "tables")
    assert rows_of("a-tables/Late & more.csv") == [["t", "n"], ["a, b", "1"]]
    assert rows_of("a-tables/Other.csv") == [["x"]]


def test_a_folder_is_copied_without_some_files(cli):
    for file in ("d/u/1.txt", "d/u/Sum*.txt", "d/u/Summary.txt"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(file)
    for _ in range(2):  # an equal one may exist
        cli("convert", "d", "--to", "copied", "--without", "Sum*.txt")
    assert {path.name for path in Path("d-copied/u").iterdir()} == {"1.txt", "Summary.txt"}
    Path("d-copied/mine").write_text("")
    cli("convert", "d", "--to", "copied", "--without", "Sum*.txt", code=2)
    assert Path("d-copied/mine").exists()
    cli("convert", "d/u/1.txt", "--to", "copied", "-o", "new/u.txt")
    assert Path("new/u.txt").read_text() == "d/u/1.txt"


@pytest.mark.parametrize("name", ["{}.fastq", "{}.fq.gz", "{}/1.fastq"])
def test_reads_of_each_class_become_lines(cli, name):
    for label in "uv":
        path = Path("d", name.format(label))
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"@r1\nACGT\n+\n@@@@\n" * 2
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    Path("d/notes.txt").write_text("no read")
    cli("convert", "d", "--to", "reads")
    assert {path.name for path in Path("d-reads").iterdir()} == {"u.txt", "v.txt"}
    assert Path("d-reads/u.txt").read_text() == "ACGT\nACGT\n"


def test_files_of_equal_names_are_named_by_their_folders(cli):
    for folder in ("train", "test"):
        Path(folder).mkdir()
        Path(folder, "a.txt").write_text(f"title\n{folder}\n")
    out = cli("convert", "train/a.txt", "test/a.txt", "--to", "table", "--line", "2").out
    assert out.split() == ["train-a-table.txt", "test-a-table.txt"]
    assert Path("test-a-table.txt").read_text() == "test\n"


def test_compressed_files_are_read_and_new_ones_are_plain(cli):
    for path in ("a.txt.gz", "d/b.txt.gz"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_bytes(gzip.compress(b"x y\n"))
    cli("convert", "a.txt.gz", "d", "--to", "columns")
    assert Path("a-columns.csv").read_text() == Path("d-columns/b.csv").read_text() == "x,y\n"


def test_blank_cells_get_the_cell_above(cli):
    Path("a.csv").write_text('id,v\n"b ""x""",1\n,2\nc;d,3\n')
    assert cli("convert", "a.csv", "--to", "filled", "--column", "id").out == "a-filled.csv\n"
    names = ["id", 'b "x"', 'b "x"', "c;d"]
    assert rows_of("a-filled.csv") == [[name, x] for name, x in zip(names, "v123", strict=True)]


def test_files_and_folders_are_converted_together(cli):
    for folder in ("d", "d/e"):
        Path(folder).mkdir()
        Path(folder, "a.tsv").write_text("id\tv\nb\t1\n\t2\n")
    text = "id;v\nGerät für Öl;1\n;2\n"
    Path("b.csv").write_bytes(text.encode("cp1252"))
    out = cli("convert", "d", "b.csv", "--to", "filled", "--column", "id").out
    assert out.split() == ["d-filled", "b-filled.csv"]
    for folder in ("d-filled", "d-filled/e"):
        assert Path(folder, "a.tsv").read_text() == "id\tv\nb\t1\nb\t2\n"
    filled = text.replace("\n;", "\nGerät für Öl;")
    assert Path("b-filled.csv").read_text(encoding="utf-8") == filled


def test_a_file_that_remains_as_it_is_may_be_converted_with_others_only(cli):
    Path("d").mkdir()
    Path("a.csv").write_bytes("id;v\r\nGerät;1\r\n".encode("cp1252"))
    Path("d/a.tsv").write_text("id\tv\nb\t1\n")
    options = ("--to", "filled", "--column", "id")
    for unchanged in (["a.csv"], ["d"], ["a.csv", "d"]):
        assert "'id'" in cli("convert", *unchanged, *options, code=2).err
    assert sorted(path.name for path in Path().iterdir()) == ["a.csv", "d"]
    Path("d/b.tsv").write_text("id\tv\nb\t1\n\t2\n")
    cli("convert", "a.csv", "d", *options)
    assert Path("d-filled/a.tsv").read_text() == "id\tv\nb\t1\n"
    Path("d/b.tsv").write_text("1::2\n")
    cli("convert", "d", "--to", "columns", "--mark", "::")
    assert Path("d-columns/b.csv").read_text() == "1,2\n"
    assert Path("a-filled.csv").read_text(encoding="utf-8") == "id;v\nGerät;1\n"


def test_another_file_is_replaced_only_if_it_is_asked_for(cli):
    Path("a.csv").write_text("title\nid,v\nb,1\n")
    for _ in range(2):
        cli("convert", "a.csv", "--to", "table", "--line", "2")
    Path("a-table.csv").write_text("mine")
    command = ("convert", "a.csv", "--to", "table", "--line", "2")
    assert "--force" in cli(*command, code=2).err
    assert Path("a-table.csv").read_text() == "mine"
    cli(*command, "--force")
    assert Path("a-table.csv").read_text() == "id,v\nb,1\n"
    cli(*command, "-o", "a.csv", "--force", code=2)
    assert Path("a.csv").read_text() == "title\nid,v\nb,1\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "fild"], "filled"),
        (["--to", "filled"], "--column"),
        (["--to", "filled", "--column", "idd"], "'id'"),
        (["--to", "filled", "--column", "id", "--line", "2"], "--line"),
        (["--to", "filled", "--column", "id", "--sheet"], "--sheet"),
        (["--to", "labelled", "--at", "end"], "last"),
        (["--to", "table"], "--line"),
        (["--to", "table", "--header-line", "not there"], "'not there'"),
        (["--to", "columns", "--mark", "::"], "'::'"),
        (["--to", "filled", "--column", "id"], "'id'"),
        (["--to", "moved", "--mark", ";"], "';'"),
        (["--to", "cells", "--rule", "point"], "points"),
        (["--to", "turned", "--pattern", "("], "--pattern"),
        (["--to", "dates", "--column", "id", "--pattern", "%Y"], "'b'"),
        (["--to", "rows", "--value", "b"], "--column"),
        (["--to", "parts", "--column", "id"], "'b'"),
        (["--to", "parts"], "--every"),
        (["--to", "contents", "--column", "id", "--folder", "no"], "no such"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(cli, options, said):
    Path("a.csv").write_text("id,v\nb,1\n")
    assert said in cli("convert", "a.csv", *options, code=2).err
    assert [path.name for path in Path().iterdir()] == ["a.csv"]


TABLE = 'id,x 1,x 2,label\n"a, ""b""","1,5",<2,up\n,3K,,Up\n,,"2.000,5 m",down\n'
"""Cells in quotes, and in several forms."""
FORMS = {
    "cells --rule points": [["x 1", "1.5", "3K", ""], ["x 2", "<2", "", "2000.5 m"]],
    "cells --rule limits --column 2": [["x 2", "2", "", "2.000,5 m"]],
    "cells --rule scales --column 'x 1'": [["x 1", "1,5", "3000", ""]],
    "cells --rule minus --column label": [["label", "-up", "-Up", "-down"]],
    "channels --pattern ' [0-9]+'": [
        ["id", 'a, "b"', "", ""],
        ["x", "1,5 <2", "3K nan", "nan 2.000,5 m"],
    ],
    "chosen --column label --column ''": [["up", "Up", "down"], ["", "", ""]],
    "filled --column id": [["id", 'a, "b"', 'a, "b"', 'a, "b"']],
    "filled --column id --column 'x 2' --text none": [
        ["id", 'a, "b"', "none", "none"],
        ["x 2", "<2", "none", "2.000,5 m"],
    ],
    "joined --column label --column 'x 1' --name key": [["key", "up/1,5", "Up/3K", "down/"]],
    "named --column label --name class": [["class", "up", "Up", "down"]],
    "numbers --column 'x 1' --flags": [["x 1", "1,5", "3", ""], ["x 1_mark", "", "K", ""]],
    "numbers --column 'x 1' --points": [["x 1_1", "1", "3", ""], ["x 1_2", "5", "", ""]],
    "parts --every 2": [["part", "0", "0", "1"]],
    "rows --column label --without Up": [["label", "up", "down"]],
    "rows --column label --value Up --value down": [["label", "Up", "down"]],
    "rows --skip 2": [["label", "down"]],
    "spelled --column label --value up": [["label", "up", "up", "down"]],
    "texts --column id --column label": [
        ["label", "id", *["label"] * 3],
        ["text", 'a, "b"', "up", "Up", "down"],
    ],
    "turned --name sensor --other id --other label": [
        ["sensor", "x 1", "x 2"],
        ["series", "1,5 3K nan", "<2 nan 2.000,5 m"],
    ],
    "turned --pattern ' 2$'": [["label", "x"], ["series", "<2 nan 2.000,5 m"]],
}
"""Columns of what is made of the table, by the form and its options."""


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("command", FORMS)
def test_forms_of_tables(cli, command, mark):
    rows = csv.reader(TABLE.splitlines())
    path = Path("it's.csv")
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    (new,) = cli("convert", path, "--to", *shlex.split(command)).out.splitlines()
    text = Path(new).read_text()
    with open(new, newline="") as file:
        delimiter = mark
        if command.startswith(("channels", "texts", "turned")):
            delimiter = ","
        columns = [
            list(column) for column in zip(*csv.reader(file, delimiter=delimiter), strict=True)
        ]
    for expected in FORMS[command]:
        assert expected in columns, text


def test_cells_of_single_forms(cli):
    cases = {
        "digits": ("٣٫٥", "3.5"),
        "lists": ("011", "[0, 1, 1]"),
        "stems": ("C:\\a b\\c.d.wav", "c.d"),
        "steps": ("LINESTRING (1 2.5, 3 4)", "[[1.0, 2.5], [3.0, 4.0]]"),
        "symbols": ("[C][=O]", "[C] [=O]"),
    }
    for rule, (cell, expected) in cases.items():
        Path("a.tsv").write_text(f"{cell}\t5\n")
        cli(
            "convert",
            "a.tsv",
            "--to",
            "cells",
            "--rule",
            rule,
            "--column",
            0,
            "--no-header",
            "--force",
        )
        assert Path("a-cells.tsv").read_text() == f"{expected}\t5\n"
    Path("a.csv").write_text("at\n24.12.99 5:00\n")
    cli("convert", "a.csv", "--to", "dates", "--column", "at", "--pattern", "%d.%m.%y %H:%M")
    assert Path("a-dates.csv").read_text() == "at\n1999-12-24T05:00:00\n"


def test_names_in_two_rows_and_names_that_come_twice(cli):
    Path("a.csv").write_text("id,Tools,,x,x\n,Fork,Spoon,,\n1,y,n,2,3\n")
    cli("convert", "a.csv", "--to", "named", "--rows", "2")
    assert rows_of("a-named.csv") == [["id", "Tools: Fork", "Tools: Spoon", "x", "x.1"], [*"1yn23"]]


def test_parts_begin_where_a_number_begins_again(cli):
    Path("a.csv").write_text("t,v\n1,a\n2,b\n1,c\n1,d\n0,e\n")
    cli("convert", "a.csv", "--to", "parts", "--column", "t", "--name", "trial")
    assert [row[2] for row in rows_of("a-parts.csv")] == ["trial", *"00112"]
    assert "--every" in cli("convert", "a.csv", "--to", "parts", code=2).err


def test_names_of_files_become_their_texts(cli):
    Path("t").mkdir()
    Path("t/one.txt").write_text('say "hi",\nyou\n')
    Path("a.csv").write_text("file,label\nx/one.txt,p\ntwo,q\n")
    cli("convert", "a.csv", "--to", "contents", "--column", "file", "--folder", "t")
    assert rows_of("a-contents.csv") == [["label", "text"], ["p", 'say "hi",\nyou\n']]


def test_fields_of_objects_are_columns_and_nothing_else_changes(cli):
    rows = [{"a": {"label": "Up", "n": [1, {"x": None}]}, "b": 2.0}, {"a": {"label": "up "}}]
    Path("a.json").write_text(json.dumps(rows))
    cli("convert", "a.json", "--to", "spelled", "--column", "a.label", "--value", "up")
    rows[0]["a"]["label"] = "up"
    assert [json.loads(line) for line in Path("a-spelled.jsonl").read_text().splitlines()] == rows
    cli("convert", "a-spelled.jsonl", "--to", "rows", "--column", "b", "--value", "2")
    assert json.loads(Path("a-spelled-rows.jsonl").read_text()) == rows[0]


def test_a_table_without_quotes_is_written_without_them(cli):
    Path("a.tsv").write_text('id\tsize\n1\t5" disk\n\t3"\n')
    cli("convert", "a.tsv", "--to", "filled", "--column", "id")
    assert Path("a-filled.tsv").read_text() == 'id\tsize\n1\t5" disk\n1\t3"\n'


def test_a_field_of_headers_of_fasta_becomes_the_label(cli):
    Path("a.fasta").write_text(">s1|Apis m.|x OS=Homo sapiens OX=9\nAC=\n>s2|Bombus OS=Mus\nGT\n")
    cli("convert", "a.fasta", "--to", "headers", "--name", "OS")
    headers = [">s1|Apis Homo_sapiens", ">s2|Bombus Mus"]
    assert Path("a-headers.fasta").read_text().splitlines() == [headers[0], "AC=", headers[1], "GT"]
    cli("convert", "a.fasta", "--to", "headers", "--name", "2", "--force")
    assert Path("a-headers.fasta").read_text().startswith(">s1|Apis m.\nAC=\n")
