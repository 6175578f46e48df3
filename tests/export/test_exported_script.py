"""predict.py answers what `seqtrain predict` answers, with numpy and onnxruntime alone."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import random
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seqtrain.cli.main import run as run_program
from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.readers import ReadOptions
from seqtrain.data.tokenizers import make_tokenizer, read_merges, train_bpe
from seqtrain.data.vocabulary import Vocabulary
from seqtrain.export import predict
from tests.helpers.small_models import PARTS, WORDS, make_model

Export = Callable[..., Path]
TEXTS = ["Move money", "DON'T", "éa? 20 20 nobody knows", "20", 'a "quoted" one, yes', "x\u2028y ?"]
SERIES = [[[0.5, 1.0]], [[1, 2], [3, 4], [-1e3, 0.25]], [[0, 0]] * 9]


def rows_of(kind: str) -> list[Any]:
    """Return sequences of a kind."""
    if kind == "features":
        return list(SERIES)
    return list(TEXTS) if kind == "text" else [text.split() for text in TEXTS]


def by_seqtrain(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run_program(["predict", str(file), "--run", str(file.parent / "run")])
    return int(str(ended.value.code)), capsys.readouterr().out


def by_script(port: Path, file: Path) -> tuple[int, str]:
    """Run the exported script in this process."""
    written = io.BytesIO()
    code = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["predict.py", str(file)])
        patch.setattr(sys, "stdout", io.TextIOWrapper(written))
        try:
            runpy.run_path(str(port / "predict.py"), run_name="__main__")
        except SystemExit as ended:
            code = int(str(ended.code))
        sys.stdout.flush()
        return code, written.getvalue().decode()


def assert_alike(found: str, wanted: str) -> None:
    """Equal byte for byte, where no probability stands between two of six digits."""
    found_lines, wanted_lines = found.split("\n"), wanted.split("\n")
    assert len(found_lines) == len(wanted_lines)
    for one, other in zip(found_lines, wanted_lines, strict=True):
        if one != other:
            (label, probability), (known, wanted_probability) = (
                line.rsplit("\t", 1) for line in (one, other)
            )
            assert label == known
            assert abs(float(probability) - float(wanted_probability)) < 1.5e-6
            assert len(probability) == len(wanted_probability) == 8


def write_rows(file: Path, kind: str, values: list[Any]) -> None:
    """Write sequences as a file of this ending has them."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if kind == "tokens":
        texts = [value if isinstance(value, str) else " ".join(value) for value in values]
    if file.suffix == ".jsonl":
        lines = [json.dumps({"s": value}) for value in values]
    elif file.suffix == ".csv":
        lines = ["s,l", *(f'"{text.replace(chr(34), chr(34) * 2)}",' for text in texts)]
    else:
        lines = ["s\tl", *(f"{text}\t" for text in texts)] if file.suffix == ".tsv" else texts
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", ["text", "tokens", "features"])
def test_rows_are_those_of_predict(
    kind: str,
    ending: str,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = rows_of(kind)
    port = exported(make_model(kind, bidirectional=True, pooling="max"))
    file = tmp_path / f"new.{ending}"
    write_rows(file, kind, values)
    code, wanted = by_seqtrain(file, capsys)
    assert code == 0
    assert wanted.count("\n") == len(values) + 1
    assert by_script(port, file)[0] == 0
    assert_alike(by_script(port, file)[1], wanted)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_answers_as_predict_does(
    part: str, tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, rules, settings = PARTS[part]
    port = exported(make_model(kind, rules, **settings))
    file = tmp_path / "new.jsonl"
    write_rows(file, kind, rows_of(kind) * 3)
    code, wanted = by_seqtrain(file, capsys)
    assert code == 0
    assert_alike(by_script(port, file)[1], wanted)


@pytest.mark.parametrize("kind", ["text", "tokens", "features"])
def test_script_runs_on_its_own(
    kind: str, tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    port = exported(make_model(kind))
    file = tmp_path / "new.txt"
    write_rows(file, kind, rows_of(kind))
    (tmp_path / "elsewhere").mkdir()
    port = port.rename(tmp_path / "elsewhere" / "port")
    wanted = by_seqtrain(file, capsys)[1]
    for argument, given in ((str(file), b""), ("-", file.read_bytes())):
        done = subprocess.run(
            [sys.executable, "-I", str(port / "predict.py"), argument],
            input=given,
            capture_output=True,
            cwd=tmp_path / "elsewhere",
        )
        assert done.returncode == 0, done.stderr
        assert_alike(done.stdout.decode(), wanted)


def test_script_imports_numpy_and_onnxruntime_alone(exported: Export) -> None:
    tree = ast.parse((exported(make_model()) / "predict.py").read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module).split(".")[0])
    assert names - set(sys.stdlib_module_names) == {"numpy", "onnxruntime"}


@pytest.mark.parametrize(
    ("name", "options", "content"),
    [
        ("new.txt", {"format": "txt"}, "no\tmove 20\nmove 20\n\tmoney"),
        ("new.ft", {"format": "fasttext"}, "__label__no move 20\nmove 20\n"),
        ("new.csv", {"sequence": ["a", "b"]}, 'b,a\r\nmove,"20\r\n""?"""\r\nmoney,\r\n\r\n'),
        ("new.tsv", {"sequence": 1, "label": 0}, "no\tmove\nyes\tmoney ?\n"),
        ("new.tsv", {"sequence": 0, "label": None, "header": True}, "s\nmove\n?\n"),
        ("new.csv", {"sequence": 1, "label": 0, "quoting": "none"}, 'no,"move\nyes,money ?"\n'),
        ("new.data", {"format": "csv", "by_name": False}, "s,l\n\ufeffmove,no\n"),
        ("new.csv", {}, "s;l\nmove, 20;no\n"),
        ("new.csv", {}, 's;l\n"move' + ";\n" * 30 + '";no\n'),
        ("new.csv", {}, "sep=|\r\ns|l\r\nmove, 20;|no\r\n"),
        ("new.csv", {"delimiter": "pipe", "sequence": 0}, "move,20|no\n"),
        ("new.tsv", {"delimiter": "semicolon"}, "s;l\nmove\t20;no\n"),
        ("new.csv.gz", {}, 's\tl\n"move\t20"\tno\n'),
        ("new.jsonl", {"sequence": "a.b"}, '{"a": {"b": "move"}}\n{"a.b": "20"}\n'),
        ("new.jsonl", {"sequence": ["a", "b"]}, '{"a": "move", "b": "20"}\n\n'),
        ("new.jsonl.gz", {}, '{"s": "move 20"}\n'),
    ],
)
def test_files_are_read_as_in_training(
    name: str,
    options: dict[str, Any],
    content: str,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reading = replace(ReadOptions(format="jsonl", sequence="s", label="l"), **options)
    port = exported(make_model(rules={"reading": reading}))
    file = tmp_path / name
    data = content.encode()
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else b"\xef\xbb\xbf" + data)
    code, wanted = by_seqtrain(file, capsys)
    assert code == 0
    assert_alike(by_script(port, file)[1], wanted)


@pytest.mark.parametrize("overlong", ["head", "tail", "middle"])
@pytest.mark.parametrize("kind", ["tokens", "features"])
def test_overlong_and_empty_sequences(
    kind: str,
    overlong: str,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = {"lengths": LengthPolicy(3, overlong, "drop"), "missing": "mask"}
    port = exported(make_model(kind, rules=rules))
    file = tmp_path / "new.jsonl"
    vectors = [[[1, 2], [None, 3], [0, 1], [2, None], [5, 1], [0, 0]], []]
    write_rows(
        file, kind, [["move", "20", "?", "money", "éa"], []] if kind == "tokens" else vectors
    )
    assert_alike(by_script(port, file)[1], by_seqtrain(file, capsys)[1])


def test_a_bad_row_comes_after_the_rows_before_it(
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = exported(make_model())
    file = tmp_path / "new.jsonl"
    file.write_text('{"s": "move"}\n{"s": 5}\n{"s": "move"}\n')
    code, written = by_script(port, file)
    wanted_code, wanted = by_seqtrain(file, capsys)
    assert code == wanted_code == 2
    assert_alike(written, wanted)


def test_a_bad_row_is_named(
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = exported(make_model("features"))
    for content, problem in (
        ("[[1, 2]]\n[[1, 2], [3, null]]\n", "2: a value is missing"),
        ("[[1, 2, 3]]\n", "1: vectors of shape (3,); expected 2 channels"),
        ("[[1e39, 2]]\n", "1: a value is infinite or too large"),
        (f"[[1{'0' * 400}, 2]]\n", "1: "),
        ("[[1, 2]]\n" + "[" * 100_000 + "\n", "2: "),
    ):
        file = tmp_path / "new.txt"
        file.write_text(content)
        assert by_script(port, file)[0] == 2
        assert f"{file}:{problem}" in capsys.readouterr().err


def test_whole_files_and_empty_ones(
    tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model("text")
    reading = replace(model.preprocessing.reading, format="txt", whole_files=True)
    port = exported(replace(model, preprocessing=replace(model.preprocessing, reading=reading)))
    for name, text in {"a/2.txt": "20\nMove money\n", "b.txt": "", "c.txt": "20"}.items():
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "new" / name).write_text(text)
    for source in ("new", "new/c.txt"):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            run_program(["predict", str(tmp_path / source), "--run", str(tmp_path / "run")])
        wanted = capsys.readouterr().out
        code, written = by_script(port, tmp_path / source)
        assert code == 0
        assert [line.split("\t")[:2] for line in written.splitlines()] == [
            line.split("\t")[:2] for line in wanted.splitlines()
        ]
    assert wanted.startswith("file\tlabel\tprobability\n")


def test_help_a_missing_file_and_a_closed_pipe(tmp_path: Path, exported: Export) -> None:
    port = exported(make_model("text"))

    def run(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(port / "predict.py"), *arguments]
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)

    ended = run("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Classify the rows of a file")
    assert run().returncode == 2
    ended = run(str(tmp_path / "none.txt"))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"{tmp_path / 'none.txt'}: No such file or directory\n"
    (tmp_path / "in.txt").write_text("20\n" * 50_000)
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(str(tmp_path / "in.txt"), stdout=writer)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_zstd_is_refused_with_the_line_that_unpacks_it(
    tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new.csv.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd")
    assert by_script(exported(make_model()), file)[0] == 2
    assert f"zstd -d '{file}'" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [8, 40, -6])
def test_damaged_gzip_is_refused(
    cut: int, tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = bytearray(gzip.compress(b"move 20\n" * 999, mtime=0))
    packed[cut:] = bytes(len(packed[cut:]))
    file = tmp_path / "new.txt.gz"
    file.write_bytes(packed)
    assert by_script(exported(make_model()), file)[0] == 2
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("name", ["word", "whitespace", "char", "byte", "bpe"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_are_those_of_the_model(name: str, lowercase: bool) -> None:
    draw = random.Random(5)
    alphabet = (
        "aabbcde EST'  '''ll've \t\n\r\x0b\x1c\x85\xa0\u2003\u200b\u3000_0129½Ⅻ²-.,!?’"
        "éßİΣςñ東京ا\u0301\u0e33\U0001f600"
    )
    texts = ["".join(draw.choices(alphabet, k=draw.randrange(40))) for _ in range(300)]
    texts += ["it's I've we'll", "  two  blanks ", "", "ΟΔΥΣΣΕΥΣ"]
    bpe = train_bpe(texts, vocab_size=400, lowercase=lowercase) if name == "bpe" else None
    tokenizer = make_tokenizer(name, lowercase=lowercase, bpe_model=bpe)
    merges = read_merges(bpe) if bpe else None
    rules = {"kind": "text", "tokenizer": name, "lowercase": lowercase, "merges": merges}
    split = predict.Splitter(rules)
    for text in texts:
        assert list(split(text)) == tokenizer(text), ascii(text)


def test_a_bpe_model_is_exported(
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bpe = train_bpe(TEXTS * 3, vocab_size=280, lowercase=True)
    tokens = json.loads(bpe)["model"]["vocab"]
    vocabulary = Vocabulary((*WORDS[:2], *sorted(tokens)))
    rules = {"tokenizer": "bpe", "bpe_model": bpe, "vocabulary": vocabulary}
    port = exported(make_model(rules=rules))
    file = tmp_path / "new.txt"
    write_rows(file, "text", TEXTS)
    assert_alike(by_script(port, file)[1], by_seqtrain(file, capsys)[1])
