"""`seqtrain predict`: a row for a row, in order, in every format; and refusals."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqtrain.cli.main import run as run_program
from tests.helpers.packing import needs_zstd, unpack
from tests.helpers.tiny import (
    CONFIG,
    file_size_limit,
    fit,
    rows,
    series,
    trained_folder,
    write_jsonl,
    write_npz,
    write_table,
)

TEXTS = ["rise the climb", "fall", "the sink the drop slip the the fall", "never seen words", "up"]


def read(out: str, delimiter: str = "\t") -> list[list[str]]:
    return list(csv.reader(io.StringIO(out, newline=""), delimiter=delimiter))


def test_every_input_format_gives_the_same_rows(trained, tmp_path, cli):
    labelled = [(text, "up") for text in TEXTS]
    write_table(tmp_path / "in.tsv", labelled)
    write_table(tmp_path / "in.csv", labelled, delimiter=",")
    write_jsonl(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS])
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    run, fields = trained / "run", "".join(f"{n};{text}\n" for n, text in enumerate(TEXTS))
    ended = [cli("predict", tmp_path / f"in.{x}", run) for x in ("tsv", "csv", "jsonl", "txt")]
    ended.append(cli("predict", "-", run, stdin="\n".join(TEXTS)))
    ended.append(cli("predict", "-", run, "--input-format", "csv", stdin="id;text\n" + fields))
    fasttext = "".join(f"__label__up {text}\n" for text in TEXTS)
    ended.append(cli("predict", "-", run, "--input-format", "fasttext", stdin=fasttext))
    assert {each.code for each in ended} == {0}
    (out,) = {each.out for each in ended}
    head, *table = read(out)
    assert head == ["label", "probability"]
    assert len(table) == len(TEXTS)
    assert all(label in ("down", "up") and 0.5 <= float(p) <= 1 for label, p in table)


def test_top_k_every_class_and_jsonl(trained, cli):
    run = trained / "run"
    table = read(cli("predict", "-", run, "--top-k", 9, stdin="rise").out)
    assert table[0] == ["label_1", "probability_1", "label_2", "probability_2"]
    assert float(table[1][1]) + float(table[1][3]) == pytest.approx(1, abs=2e-6)
    row = cli("predict", "-", run, "--format", "jsonl", stdin="rise").json
    assert (row["index"], row["label"]) == (0, table[1][0])
    assert row["probability"] == row["probabilities"][row["label"]]
    one = cli("predict", "-", run, "--top-k", 1, "--format", "jsonl", stdin="rise").out
    assert json.loads(one)["probabilities"].keys() == {row["label"]}
    head, first, blank = read(cli("predict", "-", run, "--probabilities", stdin="rise\n\n").out)
    assert head == ["label", "probability", "probability_down", "probability_up"]
    assert blank == [""] * 4
    assert first[1] == dict(zip(("down", "up"), first[2:], strict=True))[first[0]]
    options = ("--probabilities", "--format", "jsonl")
    row = cli("predict", "-", run, *options, stdin="rise").json
    assert list(row["probabilities"]) == ["down", "up"]


def test_the_names_of_a_piped_table_are_no_sequence(trained, cli):
    run, table = trained / "run", "number,text\n7,rise\n8,fall\n"
    for header in (table, "text\nrise\n", "7\trise\n8\tfall\n"):
        ended = cli("predict", "-", run, stdin=header, code=2)
        assert "stdin:1: " in ended.err
        assert not ended.out
    as_table = read(cli("predict", "-", run, "--input-format", "csv", stdin=table).out)
    assert as_table == read(cli("predict", "-", run, stdin="rise\nfall\n").out)
    cli("predict", "-", run, "--input-format", "lines", stdin="text\n")
    cli("predict", "-", run, stdin="rise\ntext\n")


def lines_of_json(*values: object) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


TURNS = [{"role": "guest", "content": "rise"}, {"role": "host", "content": "fall"}]


@pytest.mark.parametrize("content", ["", "text\n"])
def test_an_input_without_rows_is_said(trained, tmp_path, cli, content):
    path = tmp_path / "new.csv"
    path.write_text(content)
    done = cli("predict", path, trained / "run")
    assert "warning: " in done.err
    assert len(done.out.splitlines()) <= 1


def test_a_column_in_other_letters_is_named(trained, tmp_path, cli):
    path = tmp_path / "new.csv"
    path.write_text("TEXT\nmove 20 to savings\n")
    assert "did you mean 'TEXT'" in cli("predict", path, trained / "run", code=2).err


@pytest.mark.parametrize(
    ("kind", "memo", "given", "option"),
    [
        ("text", "rise", lines_of_json({"memo": "rise"}, {"memo": "fall"}), "jsonl"),
        ("text", "rise", lines_of_json([{"memo": "rise"}, {"memo": "fall"}]), "jsonl"),
        ("text", "rise", "memo\tnumber\nrise\t1\nfall\t2\n", "tsv"),
        ("text", "rise", lines_of_json(TURNS, TURNS), "lines"),
        ("text", TURNS, lines_of_json({"memo": TURNS}, {"memo": TURNS}), "jsonl"),
        ("text", TURNS, lines_of_json(TURNS, TURNS), None),
        ("tokens", ["a", "b"], lines_of_json({"memo": ["a"]}, {"memo": ["c"]}), "jsonl"),
        ("features", [0.5, 1], lines_of_json({"memo": [1]}, {"memo": [3]}), "jsonl"),
        ("text", None, lines_of_json({"memo": "rise"}, {"memo": "fall"}), "lines"),
    ],
)
def test_what_is_advised_about_standard_input_works(tmp_path, cli, kind, memo, given, option):
    """The model was trained on fields with names, or on lines if `memo` is None."""
    if memo is None:
        write_table(tmp_path / "t.txt", [("xy"[n % 2], "rise") for n in range(20)])
        data = "train: t.txt"
    else:
        write_jsonl(tmp_path / "t.jsonl", [{"memo": memo, "label": "xy"[n % 2]} for n in range(20)])
        data = f"train: t.jsonl, sequence: memo, kind: {kind}, label: label"
    fit(tmp_path, "\n".join([f"data: {{{data}}}", *CONFIG.splitlines()[1:]]))
    command = ["predict", "-", tmp_path / "run"]
    if option is not None:
        assert f"--input-format {option}" in cli(*command, stdin=given, code=2).err
        command += ["--input-format", option]
    assert cli(*command, stdin=given).out.count("\n") == 3


@pytest.mark.parametrize("ending", ["parquet", "xlsx", "npz"])
def test_binary_files_of_standard_input_are_read_as_the_message_says(
    trained, trained_features, tmp_path, cli, ending
):
    path = tmp_path / f"in.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"text": TEXTS}), path)
    elif ending == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for text in ("text", *TEXTS):
            book.active.append([text])
        book.save(path)
    else:
        write_npz(path, series(5, seed=9), ["c0"] * 5)
    run = (trained_features if ending == "npz" else trained) / "run"
    said = cli("predict", "-", run, stdin=path.read_bytes(), code=2).err
    (option,) = re.findall(r"--input-format \w+", said)
    piped = cli("predict", "-", run, *option.split(), stdin=path.read_bytes())
    assert piped.out == cli("predict", path, run).out
    assert len(read(piped.out)) == 6


def sentence(row: int) -> str:
    return " ".join(["rise", "climb", "fall", "sink"][row % 2 :: 2] * (1 + row % 3))


STEPS = [[f"s{n}", k, sentence(n).split()[0], n % 2 + k / 9] for n in range(24) for k in range(4)]
PIPED: dict[str, tuple[list[str], list[list[Any]], list[str]]] = {
    "text": (["memo"], [[sentence(n)] for n in range(24)], []),
    "symbols": (["memo"], [[sentence(n).split()] for n in range(24)], ["data.kind=tokens"]),
    "series": (["memo"], [[[n % 2 + k / 7 for k in range(3 + n % 4)]] for n in range(24)], []),
    "wide series": ([f"t{k}" for k in range(9)], [[n % 2 + k / 7 for k in range(9)]
                    for n in range(24)], []),
    "steps": (["who", "at", "page", "heat"], STEPS, []),
    "messages": (["conversation_id", "turn", "text"], [[*row[:2], f"{row[2]} so n{i} {row[3]}"]
                 for i, row in enumerate(STEPS)], []),
    "chats": (["memo"], [[[{"role": "user", "content": sentence(n)}] * 2] for n in range(24)], []),
    "events": (["memo"], [[[{"page": sentence(n).split()[0], "heat": n % 2 + k / 9}
               for k in range(2 + n % 3)]] for n in range(24)], []),
    "windows": (["who", "at", "heat", "force"], [[f"m{n // 80}", n % 80, n // 20 % 2 + n % 7 / 9,
                n % 5 / 3] for n in range(640)], []),
    "several labels": (["memo"], [[sentence(n)] for n in range(24)], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", PIPED)
def test_standard_input_gives_the_rows_of_the_file(tmp_path, monkeypatch, cli, kind):
    monkeypatch.chdir(tmp_path)
    names, rows, sets = PIPED[kind]
    labels = ["hot", "new"] if kind == "several labels" else ["label"]
    repeats = len(rows) // 24 if kind in ("steps", "messages") else 1

    def marks(row: int) -> list[Any]:
        of = row // repeats if kind != "windows" else row // 20
        return [of % 2, (of // 2) % 2] if len(labels) > 1 else ["xy"[of % 2]]

    def shown(cell: Any) -> Any:
        return json.dumps(cell) if isinstance(cell, list) else cell

    for name, number in (("train", len(names) + len(labels)), ("new", len(names))):
        table = [[*row, *marks(n)][:number] for n, row in enumerate(rows)]
        header = [*names, *labels][:number]
        write_jsonl(Path(f"{name}.jsonl"), [dict(zip(header, x, strict=True)) for x in table])
        with Path(f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *(map(shown, x) for x in table)])
    options = [word for name in labels for word in ("--label", name)]
    options += [word for setting in sets for word in ("--set", setting)]
    if kind == "messages":
        options += ["--id", "conversation_id", "--sequence", "text"]
    cli("init", "train.csv", "-o", "c.yaml", "--set", "training.max_epochs=1", *options)
    cli("fit", "c.yaml", "--quiet", "--run-dir", "run")
    expected = read(cli("predict", "train.csv", "run").out)
    lines = [x for x in expected[0] if x in ("first_line", "last_line")]
    assert bool(lines) == (kind == "windows")
    for format in ("csv", "jsonl"):
        given = Path(f"new.{format}").read_bytes()
        piped = read(cli("predict", "-", "run", "--input-format", format, stdin=given).out)
        assert piped == read(cli("predict", f"new.{format}", "run").out)
        assert [row[len(lines) :] for row in piped] == [row[len(lines) :] for row in expected]
        if lines:  # only csv has a line of names
            first = [int(row[0]) for row in piped[1:]]
            assert first == [int(row[0]) - (format == "jsonl") for row in expected[1:]]
        if format == "csv" and kind in ("steps", "messages", "events", "windows"):
            assert read(cli("predict", "-", "run", stdin=given).out) == piped
        else:
            refused = cli("predict", "-", "run", stdin=given, code=2).err
            assert re.findall(r"--input-format (\w+)", refused)[0] == format


def test_a_terminal_is_told_that_lines_are_read(trained, capsys, monkeypatch):
    controller, device = pty.openpty()
    os.write(controller, b"rise the climb\nfall\n\x04")
    with open(device, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(SystemExit) as ended:
            run_program(["predict", "-", str(trained / "run")])
    os.close(controller)
    out, err = capsys.readouterr()
    assert ended.value.code == 0
    assert len(read(out)) == 3
    assert "Ctrl-D" in err


def test_standard_input_in_utf_16(trained, cli):
    run, lines = trained / "run", "rise\nfall é\n"
    found = cli("predict", "-", run, "--encoding", "utf-16", stdin=lines.encode("utf-16"))
    assert found.out == cli("predict", "-", run, stdin=lines).out


def test_bad_row_midstream_keeps_the_rows_before(trained, tmp_path, cli):
    write_jsonl(tmp_path / "in.jsonl", [{"text": x} for x in ("rise", "fall", {}, "x")])
    for source, more, stdin in (
        (tmp_path / "in.jsonl", (), ""),
        ("-", ("--empty", "error"), "rise\nfall\n\nx\n"),
        ("-", (), b"rise\nfall\n\xff\nx\n"),
    ):
        ended = cli("predict", source, trained / "run", *more, stdin=stdin, code=2)
        assert (len(ended.problems) <= 2, ended.out.count("\n")) == (True, 3)
        assert ("stdin:3" if source == "-" else "in.jsonl:3") in ended.err


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("tsv", b"text\tlabel\nrise\tup\na\tb\tc\nfall\tup\n\xff\tup\nsink\tup\n"),
        ("csv", b"text,label\nrise,up\na,b,c\nfall,up\n\xff,up\nsink,up\n"),
        ("jsonl", b'{"text": "rise"}\n{"text": {}}\n{"text": "fall"}\n\xff\n{"text": "sink"}\n'),
        ("txt", b"rise\n\xff\nfall\n\0\nsink\n"),
    ],
)
def test_bad_rows_may_be_left_blank(trained, tmp_path, cli, ending, content):
    path, run = tmp_path / f"in.{ending}", trained / "run"
    path.write_bytes(content)
    advised = re.search("--bad-rows .*", cli("predict", path, run, code=2).err)
    ended = cli("predict", path, run, *advised[0].split())
    head, first, second, third, fourth, fifth = ended.out.splitlines()
    good = cli("predict", "-", run, stdin="rise\nfall\nsink\n").out.splitlines()
    assert [head, first, third, fifth] == good
    assert [second, fourth] == ["\t", "\t"]
    assert "for 2 " in ended.err


def test_a_model_whose_training_left_bad_rows_out_leaves_them_blank(tmp_path_factory, cli):
    run = trained_folder(tmp_path_factory, CONFIG, "data.bad_rows=drop") / "run"
    path = tmp_path_factory.mktemp("odd") / "in.tsv"
    path.write_text("text\tlabel\nrise\tup\na\tb\tc\nfall\tup\n")
    ended = cli("predict", path, run)
    assert [line == "\t" for line in ended.out.splitlines()] == [False, False, True, False]
    assert "3 fields" in ended.err or "found 3" in ended.err
    cli("predict", path, run, "--bad-rows", "error", code=2)


def test_what_is_too_long_for_the_model_is_refused_or_left_blank(tmp_path_factory, cli):
    limit = ("data.max_length=8", "data.overlong=error")
    run = trained_folder(tmp_path_factory, CONFIG, *limit) / "run"
    given = f"fall\n{'rise ' * 9}\nrise\n"
    assert "stdin:2: 9 steps" in cli("predict", "-", run, stdin=given, code=2).err
    ended = cli("predict", "-", run, "--bad-rows", "blank", stdin=given)
    assert [line == "\t" for line in ended.out.splitlines()] == [False, False, True, False]


@pytest.mark.parametrize("name", ["in.txt", "-"])
def test_an_empty_row_keeps_its_place(trained, tmp_path, cli, name):
    text, run = "rise\n\nfall\n", trained / "run"
    (tmp_path / "in.txt").write_text(text)
    source = name if name == "-" else tmp_path / name
    ended = cli("predict", source, run, stdin=text)
    lines = ended.out.splitlines()
    assert [line == "\t" for line in lines[1:]] == [False, True, False]
    assert ":2: " in ended.err
    unk = cli("predict", source, run, "--empty", "unk", stdin=text).out.splitlines()
    assert [unk[1], unk[3]] == [lines[1], lines[3]]
    assert unk[2] != "\t"
    row = cli("predict", source, run, "--format", "jsonl", stdin=text).out.splitlines()[1]
    nothing = {"label": None, "probability": None, "probabilities": {}}
    assert json.loads(row) == {"index": 1, **nothing, "problem": "the sequence is empty"}


def test_columns_are_kept(trained, tmp_path, cli):
    run, path = trained / "run", tmp_path / "in.csv"
    path.write_text('id,mark,text,label\n7,-5,"rise, fall",up\n8,=x,"rise, fall",up\n')
    plain = read(cli("predict", path, run).out)[1:]
    lines = read(cli("predict", path, run, "--keep", "id,text", "--keep", "label").out)
    assert lines[0] == ["id", "text", "input_label", "label", "probability"]
    assert lines[1:] == [[x, "rise, fall", "up", *y] for x, y in zip("78", plain, strict=True)]
    ended = cli("predict", path, run, "--keep", "mark,text", "--format", "csv")
    assert ended.out.splitlines()[2].startswith('=x,"rise, fall",')
    write_jsonl(tmp_path / "in.jsonl", [{"text": "rise", "id": {"a": 1}}, {"text": "", "id": None}])
    out = cli("predict", tmp_path / "in.jsonl", run, "--keep", "id", "--format", "jsonl").out
    assert [json.loads(row)["id"] for row in out.splitlines()] == [{"a": 1}, None]
    table = read(cli("predict", tmp_path / "in.jsonl", run, "--keep", "id").out)
    assert table[1][0] == '{"a": 1}'


def test_a_column_may_have_a_comma_or_be_called_all(trained, tmp_path, cli):
    (tmp_path / "in.csv").write_text('all,"a, b","c ""d""",text\n1,2,3,rise\n')
    source = (tmp_path / "in.csv", trained / "run", "--keep")
    for keep, columns, cells in (
        ('"all"', ["all"], ["1"]),
        ('"a, b"', ["a, b"], ["2"]),
        ('text,"a, b","c ""d""",all', ["text", "a, b", 'c "d"', "all"], ["rise", "2", "3", "1"]),
        ("all", ["all", "a, b", 'c "d"', "text"], ["1", "2", "3", "rise"]),
    ):
        head, row = read(cli("predict", *source, keep).out)
        assert (head[:-2], row[:-2]) == (columns, cells)


def test_no_two_columns_have_one_name(trained, tmp_path, cli):
    (tmp_path / "in.csv").write_text("id,label,input_label,labels,text\n1,up,x,y,rise\n")
    source = (tmp_path / "in.csv", trained / "run", "--keep")
    names = read(cli("predict", *source, "label,input_label").out)[0]
    assert names == ["input_input_label", "input_label", "label", "probability"]
    row = cli("predict", *source, "label,input_label,labels", "--format", "jsonl").json
    assert [row[f"input_{name}"] for name in ("input_label", "label", "labels")] == ["up", "x", "y"]


LABELS = ["=cmd()", "-1e3", "-x", "@a", "+1.5", 'q"t', "a,b", "[/red]", "t\tb", "l\nf", "c\rr"]
LABELS += ["'s", "\x1b]0;t\x07", "u\u202ep", "c\x9bm"]
WORDS = "\n".join(f"word{i}" for i in range(len(LABELS)))


@pytest.fixture(scope="module")
def strange_run(tmp_path_factory) -> Path:
    """A run whose labels are hard to write; from jsonl, which can hold them all."""
    folder = tmp_path_factory.mktemp("strange")
    values = [{"text": f"word{i}", "label": label} for i, label in enumerate(LABELS)]
    write_jsonl(folder / "train.jsonl", values * 4)
    fit(
        folder,
        "data: {train: train.jsonl, sequence: text, label: label}\n"
        "model: {embedding_dim: 16, hidden_size: 16}\n"
        "training: {max_epochs: 60, lr: 0.03, patience: null}\n",
    )
    return folder / "run"


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_strange_labels_round_trip_and_cannot_steer_a_terminal(
    strange_run, cli, monkeypatch, format
):
    options = ("predict", "-", strange_run, "--format", format, "--top-k", 1)
    out = cli(*options, stdin=WORDS).out
    if format == "jsonl":
        assert [json.loads(line)["label"] for line in out.split("\n")[:-1]] == LABELS
    else:
        found = read(out, "," if format == "csv" else "\t")[1:]
        assert [row[0] for row in found] == LABELS
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = cli(*options, stdin=WORDS).out.split("\n")[:-1]
    assert len(lines) == len(LABELS) + (format != "jsonl")
    assert all(line.replace("\t", " ").isprintable() for line in lines)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("o.jsonl", '{"index"'),
        ("o.tsv.gz", "label\t"),
        ("o.csv.gz", "label,"),
        pytest.param("o.csv.zst", "label,", marks=needs_zstd),
    ],
)
def test_the_outputs_ending_says_how_it_is_written(trained, tmp_path, cli, name, start):
    bare, _, ending = name.removeprefix("o.").partition(".")
    outputs = [tmp_path / name, tmp_path / f"plain.{bare}"]
    for path in outputs:
        cli("predict", trained / "test.tsv", trained / "run", "--output", path)
    content = outputs[0].read_bytes()
    assert (unpack(content, ending) if ending else content) == outputs[1].read_bytes()
    assert outputs[1].read_text().startswith(start)


@pytest.mark.parametrize("limit", [10, 20002])
def test_file_that_may_not_grow_ends_with_a_whole_row(trained, tmp_path, cli, limit):
    """A limit of a file's size simulates a full disk."""
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    source.write_text("rise\nfall the\n" * 1000)
    arguments = ("predict", source, trained / "run", "--output", output, "--force")
    cli(*arguments)
    whole = output.read_bytes()
    with file_size_limit(limit):
        ended = cli(*arguments, code=3)
    assert f"{output}: File too large;" in ended.err
    held = output.read_bytes()
    assert held == whole[: len(held)]
    assert len(held) > limit - 9000
    assert held[-1:] in (b"", b"\n")


def test_unknown_tokens_are_warned_of(trained, cli):
    run = trained / "run"
    assert (
        cli("predict", "-", run, stdin="zzz,y\n" * 2)
        .problems[-1]
        .startswith("warning: 2 of 2 sequences")
    )
    assert "--input-format" not in cli("predict", "-", run, stdin="zzz\nrise\n").err
    labelled = cli("predict", "-", run, "--input-format", "tsv", stdin="label\ttext\nnew\trise\n")
    assert labelled.problems == []  # a label that train lacks says nothing of a prediction


@pytest.fixture(scope="module")
def of_files(tmp_path_factory) -> Path:
    """A run whose rows were files: a folder of folders of them."""
    folder = tmp_path_factory.mktemp("files")
    for number, (text, label) in enumerate(rows(40, seed=1)):
        (folder / "train" / label).mkdir(parents=True, exist_ok=True)
        (folder / "train" / label / f"{number:02}.txt").write_text(text.replace(" ", "\n"))
    fit(folder, "\n".join(["data: {train: train, validation: 0.2}", *CONFIG.splitlines()[1:]]))
    return folder / "run"


def test_a_folder_of_files_has_a_row_per_file(of_files, tmp_path, cli):
    (tmp_path / "new" / "a").mkdir(parents=True)
    for name, text in {"b.txt": "rise\n\nclimb\n", "a/z.txt": "fall\nsink", "c.md": "x"}.items():
        (tmp_path / "new" / name).write_text(text)
    head, *lines = read(cli("predict", tmp_path / "new", of_files).out)
    assert head == ["file", "label", "probability"]
    names = [str(tmp_path / "new" / name) for name in ("a/z.txt", "b.txt", "c.md")]
    assert [line[0] for line in lines] == names
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "1.fa").write_text(">x\nrise\n>y\nfall\n")
    head, *records = read(cli("predict", tmp_path / "records", of_files).out)
    assert [head[:2], *(line[1] for line in records)] == [["file", "line"], "1", "3"]
    assert read(cli("predict", names[1], of_files).out)[1] == lines[1]
    by_line = cli("predict", names[0], of_files, "--input-format", "lines")
    piped = cli("predict", "-", of_files, stdin="fall\nsink")
    assert by_line.out == piped.out
    Path(names[1]).write_bytes(b"\xff\xfe")
    cli("predict", tmp_path / "new", of_files, code=2)
    ended = cli("predict", tmp_path / "new", of_files, "--bad-rows", "blank")
    assert ended.out.splitlines()[2] == f"{names[1]}\t\t"
    assert f"{names[1]}:1: expected UTF-8 text" in ended.err


def test_a_folder_of_classes_is_read_as_by_fit(of_files, tmp_path, cli):
    files = [f"new/{label}/{i}.txt" for label in ("down", "up") for i in range(3)]
    others = ["new/urls_down.txt", "new/urls_up.txt", "new/unsup/7.txt"]
    for file in (*files, *others):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("rise")
    _, *lines = read(cli("predict", tmp_path / "new", of_files).out)
    assert [line[0] for line in lines] == [str(tmp_path / file) for file in files]
    _, *lines = read(cli("predict", tmp_path / "new/unsup", of_files).out)
    assert [line[0] for line in lines] == [str(tmp_path / others[-1])]


def test_new_recordings_of_numbers_are_read_as_files_of_training_were(tmp_path, cli):
    for number in range(12):
        (tmp_path / "train" / "xy"[number % 2]).mkdir(parents=True, exist_ok=True)
        lines = ["a,b", *(f"{number % 2},{step}" for step in range(3 + number % 4))]
        (tmp_path / "train" / "xy"[number % 2] / f"{number}.csv").write_text("\n".join(lines))
    fit(tmp_path, f"data: {{train: train, kind: features}}\n{CONFIG[CONFIG.index('model:') :]}")
    folder = tmp_path / "train" / "x"
    expected = read(cli("predict", tmp_path / "train", tmp_path / "run").out)[1:7]
    assert read(cli("predict", folder, tmp_path / "run").out)[1:] == expected
    assert read(cli("predict", f"{folder}/*.csv", tmp_path / "run").out)[1:] == expected
    one = cli("predict", expected[2][0], tmp_path / "run").out
    assert read(one)[1] == expected[2][1:]


def test_input_of_another_encoding_is_read_as_named(trained, tmp_path, cli):
    latin, utf_8 = tmp_path / "latin.tsv", tmp_path / "utf-8.tsv"
    latin.write_bytes("text\nrise très\n".encode("cp1252"))
    utf_8.write_text("text\nrise très\n", encoding="utf-8")
    problems = cli("predict", latin, trained / "run", code=2).problems
    assert problems[0].endswith("(--encoding), such as cp1252")
    for more in ((), ("--steps",)):
        as_named = cli("predict", latin, trained / "run", "--encoding", "cp1252", *more)
        assert as_named.out == cli("predict", utf_8, trained / "run", *more).out
    latin.write_bytes("text\nrise très\n".encode("utf-16"))
    (problem,) = cli("predict", latin, trained / "run", code=2).problems
    assert problem.endswith("found UTF-16 text; set data.encoding (--encoding): utf-16")
    cli("predict", latin, trained / "run", "--encoding", "utf-16")
    (problem,) = cli("predict", latin, trained / "run", "--encoding", "latin9x", code=2).problems
    assert problem.startswith("seqtrain: --encoding: found 'latin9x'")


def test_newest_run_that_has_a_model(begun, cli):
    Path("runs").mkdir()
    for at, name in enumerate(("old", "begun", "young")):
        shutil.copytree("r", f"runs/{name}")
        os.utime(f"runs/{name}/config.yaml", (at, at))
        if name != "old":
            shutil.rmtree(f"runs/{name}/best")
    for arguments in (["predict", "-"], ["eval"], ["errors"], ["check"]):
        ended = cli(*arguments, stdin="rise")
        assert ": runs/young and 1 more" in ended.err
        assert "runs/old" in ended.err
    shutil.rmtree("runs/old/best")
    ended = cli("predict", "-", stdin="rise", code=2)
    assert "runs/young: " in ended.err


def test_a_text_that_names_no_file_is_classified(trained, cli):
    for text in ("rise the climb", "rise", "what?", "up and/or down"):
        ended = cli("predict", text, trained / "run")
        assert ended.out == cli("predict", "-", trained / "run", stdin=text).out
        assert "INPUT is" in ended.err
    for name in ("rise.txt", "rise the climb.csv", "in/rise", "in/*"):
        assert "no such file" in cli("predict", name, trained / "run", code=2).err


def test_a_misspelt_name_of_a_file_is_no_text(trained, beside, cli):
    for name in ("test.tsvs", "tst.tsv", "test-tsv"):
        assert "did you mean test.tsv?" in cli("predict", name, "run", code=2).err


@pytest.mark.skipif(shutil.which("xargs") is None, reason="needs xargs")
def test_many_files_are_shared_by_processes_as_the_front_page_shows(
    trained, tmp_path, monkeypatch, cli
):
    """Each file is predicted once, whatever the number of processes."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number in range(2):
        Path(f"in/part {number}.jsonl").write_text('{"text": "rise"}\n' * (number + 1))
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (line,) = (line for line in text.splitlines() if "xargs -0 -P 2" in line)
    command = line.replace("RUN", str(trained / "run"))
    log = 'words=$(printf "%s\\t" "$@")\necho "$words" >> log\n'
    Path("seqtrain").write_text(f"#!/bin/sh\n{log}")
    Path("seqtrain").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    subprocess.run(["bash", "-c", command], check=True)
    calls = [line.split("\t")[:-1] for line in Path("log").read_text().splitlines()]
    names = [f"in/part {number}.jsonl" for number in range(2)]
    assert sorted(words[1] for words in calls) == names
    for words in calls:
        cli(*words)
    for number, name in enumerate(names):
        assert len(Path(f"{name}.tsv").read_text().splitlines()) == number + 2


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_all_columns_may_be_kept(trained, tmp_path, cli, ending):
    values = [{"id": f"{n}", "text": text, "label": "up"} for n, text in enumerate(("rise", "x y"))]
    path = tmp_path / f"in.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(values), path)
    elif ending == "jsonl":
        write_jsonl(path, values)
    else:
        path.write_text("id,text,label\n0,rise,up\n1,x y,up\n")
    head, *table = read(cli("predict", path, trained / "run", "--keep", "all").out)
    assert head == ["id", "text", "input_label", "label", "probability"]
    assert [row[:3] for row in table] == [list(value.values()) for value in values]
    kept = read(cli("predict", path, trained / "run", "--keep", "id").out)
    assert [row[0] for row in kept] == ["id", "0", "1"]


def test_runs_are_found_by_name_and_outputs_have_a_short_option(begun, cli):
    shutil.copytree("r", "runs/mine")
    shutil.rmtree("r")
    cli("predict", "test.tsv", "mine", "-o", "o.csv")
    assert cli("predict", "test.tsv", "mine", "-o", "-").out.startswith("label\t")
    assert not Path("-").exists()
    assert Path("o.csv").read_text().startswith("label,probability\n")
    cli("export", "mine", "exported")
    assert Path("exported/predict.py").exists()
    assert cli("diff", "mine", "runs/mine").code == cli("report", "mine").code == 0


@pytest.mark.parametrize(
    ("given", "meant"),
    [("json", "jsonl"), ("NDJSON", "jsonl"), ("npy", "npz")],
)
def test_a_format_may_be_meant_by_its_ending(cli, given, meant):
    for command in (["predict", "a.csv", "--input-format"], ["init", "a.csv", "--format"]):
        assert f"did you mean {meant}?" in cli(*command, given, code=2).err
