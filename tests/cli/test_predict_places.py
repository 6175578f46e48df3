"""`seqtrain predict`: every row keeps its place, and each answer says whose it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers.tiny import CONFIG, Cli, fit, rows, write_jsonl, write_table


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose rows were files: a folder of folders of them."""
    folder = tmp_path_factory.mktemp("files")
    for number, (text, label) in enumerate(rows(40, seed=1)):
        (folder / "train" / label).mkdir(parents=True, exist_ok=True)
        (folder / "train" / label / f"{number:02}.txt").write_text(text.replace(" ", "\n"))
    fit(folder, "\n".join(["data: {train: train, validation: 0.2}", *CONFIG.splitlines()[1:]]))
    return folder / "run"


def write_documents(folder: Path) -> None:
    for name, text in {"b.txt": "rise\n\nclimb\n", "a/z.txt": "fall\nsink", "c.md": "grow"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".hidden").write_text("no\ntext")


def test_a_folder_of_files_has_an_answer_per_file(of_files: Path, tmp_path: Path, cli: Cli) -> None:
    write_documents(tmp_path / "new")
    ended = cli("predict", tmp_path / "new", of_files)
    assert ended.code == 0, ended.err
    lines = [line.split("\t") for line in ended.out.splitlines()]
    assert (ended.code, lines[0]) == (0, ["file", "label", "probability"])
    names = [str(tmp_path / "new" / name) for name in ("a/z.txt", "b.txt", "c.md")]
    assert [line[0] for line in lines[1:]] == names
    jsonl = cli("predict", tmp_path / "new", of_files, "--format", "jsonl").out.splitlines()
    assert [json.loads(row)["file"] for row in jsonl] == names
    alone = cli("predict", tmp_path / "new" / "b.txt", of_files)
    assert alone.out.splitlines()[1].split("\t") == lines[2]
    assert "one sequence" in alone.err


def test_lines_of_a_file_are_rows_where_asked(of_files: Path, tmp_path: Path, cli: Cli) -> None:
    write_documents(tmp_path / "new")
    path = tmp_path / "new" / "a" / "z.txt"
    ended = cli("predict", path, of_files, "--input-format", "lines")
    assert ended.out.count("\n") == 3
    piped = cli("predict", "-", of_files, stdin=path.read_text())
    assert piped.out == ended.out
    assert "each line of stdin is one sequence" in piped.err


def test_a_folder_is_refused_where_rows_were_lines(trained: Path, tmp_path: Path, cli: Cli) -> None:
    write_documents(tmp_path / "new")
    ended = cli("predict", tmp_path / "new", trained / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "is a folder; the model was trained on the rows of a file" in ended.err


def test_a_file_that_cannot_be_read_may_keep_its_place(
    of_files: Path, tmp_path: Path, cli: Cli
) -> None:
    write_documents(tmp_path / "new")
    (tmp_path / "new" / "b.txt").write_bytes(b"\xff\x00")
    assert cli("predict", tmp_path / "new", of_files).code == 2
    ended = cli("predict", tmp_path / "new", of_files, "--bad-rows", "blank")
    assert ended.code == 0
    assert ended.out.splitlines()[2] == f"{tmp_path / 'new' / 'b.txt'}\t\t"
    assert ended.out.count("\n") == 4
    assert "1 row has no answer" in ended.err


@pytest.mark.parametrize("name", ["in.txt", "-"])
def test_an_empty_row_keeps_its_place(trained: Path, tmp_path: Path, cli: Cli, name: str) -> None:
    text = "rise\n\nfall\n"
    (tmp_path / "in.txt").write_text(text)
    source = name if name == "-" else tmp_path / name
    ended = cli("predict", source, trained / "run", stdin=text)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert [line == "\t" for line in lines[1:]] == [False, True, False]
    assert ":2: the sequence is empty" in ended.err
    assert "1 row has no answer" in ended.err
    unk = cli("predict", source, trained / "run", "--empty", "unk", stdin=text).out.splitlines()
    assert [unk[1], unk[3]] == [lines[1], lines[3]]
    assert unk[2] != "\t"
    stopped = cli("predict", source, trained / "run", "--empty", "error", stdin=text)
    assert (stopped.code, stopped.out.count("\n")) == (2, 2)
    row = cli("predict", source, trained / "run", "--format", "jsonl", stdin=text).out.splitlines()[
        1
    ]
    assert json.loads(row) == {
        "index": 1,
        "label": None,
        "probability": None,
        "probabilities": {},
        "problem": "the sequence is empty",
    }


def test_bad_rows_keep_their_places_in_every_format(
    trained: Path, tmp_path: Path, cli: Cli
) -> None:
    good = ["rise the climb", "fall", "sink"]
    (tmp_path / "in.tsv").write_bytes(
        b"text\tlabel\nrise the climb\tup\na\tb\tc\nfall\tup\n\xff\tup\nsink\tup\n"
    )
    (tmp_path / "in.csv").write_bytes(
        b"text,label\nrise the climb,up\na,b,c\nfall,up\n\xff,up\nsink,up\n"
    )
    (tmp_path / "in.jsonl").write_bytes(
        b'{"text": "rise the climb"}\n{"text": 3}\n{"text": "fall"}\n\xff\n{"text": "sink"}\n'
    )
    (tmp_path / "in.txt").write_bytes(b"rise the climb\n\xff\nfall\n\0\nsink\n")
    expected = cli("predict", "-", trained / "run", stdin="\n".join(good)).out.splitlines()
    for ending in ("tsv", "csv", "jsonl", "txt"):
        path = tmp_path / f"in.{ending}"
        assert cli("predict", path, trained / "run").code == 2
        ended = cli("predict", path, trained / "run", "--bad-rows", "blank")
        assert ended.code == 0, ended.err
        head, first, second, third, fourth, fifth = ended.out.splitlines()
        assert [head, first, third, fifth] == expected
        assert [second, fourth] == ["\t", "\t"]
        assert "2 rows have no answer" in ended.err


def test_overlong_and_missing_values_keep_their_places(trained_features: Path, cli: Cli) -> None:
    lines = "[[1, 2]]\n[[1, 2, 3]]\n[[1, null]]\n[[3, 4]]\n"
    ended = cli("predict", "-", trained_features / "run", "--bad-rows", "blank", stdin=lines)
    answers = ended.out.splitlines()[1:]
    assert [line == "\t" for line in answers] == [False, True, True, False]


def test_columns_are_kept(trained: Path, tmp_path: Path, cli: Cli) -> None:
    values = [(f"row {i}", "=x" if i else "-5", "rise, fall", "up") for i in range(3)]
    write_table(tmp_path / "in.csv", [])
    (tmp_path / "in.csv").write_text(
        "id,mark,text,label\n" + "".join(f'{a},{b},"{c}",{d}\n' for a, b, c, d in values)
    )
    run = trained / "run"
    plain = [line.split("\t") for line in cli("predict", tmp_path / "in.csv", run).out.splitlines()]
    ended = cli("predict", tmp_path / "in.csv", run, "--keep", "id,text", "--keep", "label")
    lines = [line.split("\t") for line in ended.out.splitlines()]
    assert lines[0] == ["id", "text", "input_label", "label", "probability"]
    assert lines[1:] == [
        [a, c, d, *answer] for (a, _, c, d), answer in zip(values, plain[1:], strict=True)
    ]
    csv = cli("predict", tmp_path / "in.csv", run, "--keep", "mark,text", "--format", "csv").out
    assert csv.splitlines()[0] == "mark,text,label,probability"
    assert csv.splitlines()[2].startswith('=x,"rise, fall",')
    (tmp_path / "own.csv").write_text("label,input_label,text\nup,x,rise\n")
    both = cli("predict", tmp_path / "own.csv", run, "--keep", "label,input_label").out
    assert both.splitlines()[0].split("\t")[:3] == ["input_input_label", "input_label", "label"]
    twice = cli("predict", tmp_path / "in.csv", run, "--keep", "id,id")
    assert (twice.code, twice.out) == (2, "")
    assert "--keep: id is named twice" in twice.err
    write_jsonl(tmp_path / "in.jsonl", [{"text": "rise", "id": {"a": 1}}, {"text": "", "id": None}])
    out = cli("predict", tmp_path / "in.jsonl", run, "--keep", "id", "--format", "jsonl").out
    assert [json.loads(row)["id"] for row in out.splitlines()] == [{"a": 1}, None]
    table = cli("predict", tmp_path / "in.jsonl", run, "--keep", "id").out.splitlines()
    assert table[1].startswith('{"a": 1}\t')
    missing = cli("predict", tmp_path / "in.csv", run, "--keep", "ids")
    assert missing.code == 2
    assert "did you mean 'id'?" in missing.err
    none = cli("predict", "-", run, "--keep", "id", stdin="rise")
    assert none.code == 2
    assert "--keep: input of format lines has no columns" in none.err


def test_standard_input_in_any_format(trained: Path, tmp_path: Path, cli: Cli) -> None:
    run = trained / "run"
    expected = cli("predict", "-", run, stdin="rise\nfall\n").out
    for name, text in {
        "csv": "id;text\n1;rise\n2;fall\n",
        "tsv": "text\trest\nrise\t1\nfall\t2\n",
        "jsonl": '{"text": "rise"}\n{"text": "fall"}\n',
        "fasttext": "__label__up rise\nfall\n",
    }.items():
        assert cli("predict", "-", run, "--input-format", name, stdin=text).out == expected
    kept = cli(
        *("predict", "-", run, "--input-format", "csv", "--keep", "id"), stdin="id,text\n7,rise\n"
    )
    assert kept.out.splitlines()[1].startswith("7\t")


def test_every_class_has_its_column(trained: Path, cli: Cli) -> None:
    run = trained / "run"
    lines = cli("predict", "-", run, "--probabilities", stdin="rise\n\nfall\n").out.splitlines()
    head, *cells = (line.split("\t") for line in lines)
    assert head == ["label", "probability", "probability_down", "probability_up"]
    assert cells[1] == [""] * 4
    for label, probability, down, up in (cells[0], cells[2]):
        assert float(down) + float(up) == pytest.approx(1, abs=2e-6)
        assert probability == {"down": down, "up": up}[label]
    arguments = ("--probabilities", "--format", "jsonl")
    for row in cli("predict", "-", run, *arguments, stdin="rise\nfall\n").out.splitlines():
        assert list(json.loads(row)["probabilities"]) == ["down", "up"]
    both = cli("predict", "-", run, "--probabilities", "--top-k", 2, stdin="rise")
    assert (both.code, both.out) == (2, "")


def test_integers_in_a_list_are_tokens(tmp_path: Path, cli: Cli) -> None:
    values = [{"x": [7, -1, i % 5] if i % 2 else [2, 3], "label": i % 2} for i in range(40)]
    write_jsonl(tmp_path / "train.jsonl", values)
    data = "data: {train: train.jsonl, kind: tokens, sequence: x, label: label}"
    fit(tmp_path, "\n".join([data, *CONFIG.splitlines()[1:]]))
    vocabulary = json.loads((tmp_path / "run" / "best" / "vocabulary.json").read_text())
    assert {"7", "-1", "2", "3"} <= {*vocabulary["tokens"]}
    outs = {
        cli("predict", "-", tmp_path / "run", stdin=line).out
        for line in ("[7, -1, 3]\n", '["7", "-1", "3"]\n', "7 -1 3\n")
    }
    assert len(outs) == 1


def test_newest_run_that_has_a_model(project: Path, cli: Cli) -> None:
    cli("fit", "c.yaml", "--run-dir", "runs/old")
    cli("fit", "c.yaml", "--run-dir", "runs/begun")
    cli("fit", "c.yaml", "--run-dir", "runs/young")
    for at, name in enumerate(("old", "begun", "young")):
        os.utime(f"runs/{name}/config.yaml", (at, at))
    Path("runs/young/best").rename("young-best")
    Path("runs/begun/best").rename("begun-best")
    for arguments in (["predict", "-"], ["eval"], ["errors"], ["check"]):
        ended = cli(*arguments, stdin="rise")
        assert ended.code == 0
        assert "newer, but without a model yet: runs/young and 1 more" in ended.err
        assert "runs/old" in ended.err
    Path("runs/old/best").rename("old-best")
    ended = cli("predict", "-", stdin="rise")
    assert ended.code == 2
    assert "runs/young: no model in it yet" in ended.err


def test_a_run_is_named_alike_everywhere(
    trained: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    run = trained / "run"
    for verb in ("eval", "check"):
        outs = [cli(verb, run).out, cli(verb, "--run", run).out]
        assert outs[0] == outs[1] != ""
    assert (
        cli("predict", "-", run, stdin="x").out == cli("predict", "-", "--run", run, stdin="x").out
    )
    twice = cli("eval", run, "--run", run)
    assert twice.code == 2
    assert "give one of them" in twice.err
