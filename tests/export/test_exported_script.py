"""predict.py writes what `seqtrain predict` writes, with numpy and onnxruntime alone."""

from __future__ import annotations

import gzip
import io
import json
import os
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seqtrain.cli.main import run as run_program
from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.readers import ReadOptions
from seqtrain.data.tokenizers import train_bpe
from seqtrain.data.vocabulary import Vocabulary
from tests.helpers.small_models import PARTS, WORDS, make_model

Export = Callable[..., Path]
TEXTS = ["Move money", "DON'T", "éa? 20 20 nobody knows", "20", 'a "quoted" one, yes', "x\u2028y ?"]
SERIES = [[[0.5, 1.0]], [[1, 2], [3, 4], [-1e3, 0.25]], [[0, 0]] * 9]
ROWS: dict[str, list[Any]] = {
    "text": [*TEXTS],
    "tokens": [text.split() for text in TEXTS],
    "features": [*SERIES],
}
LONG = "n-grams and long subwords"
ALONE = """\
import runpy, sys
for name in ("torch", "pydantic", "yaml", "tokenizers", "rich", "safetensors"):
    sys.modules[name] = None
script, *sys.argv[1:] = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""


def by_seqtrain(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run_program(["predict", str(file), "--run", str(file.parent / "run")])
    return int(str(ended.value.code)), *capsys.readouterr()


def by_script(
    port: Path, file: Path, capsys: pytest.CaptureFixture[str] | None = None
) -> tuple[int, str, str]:
    """Run the exported script in this process."""
    written, code = io.BytesIO(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["predict.py", str(file)])
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(sys, "stdout", io.TextIOWrapper(written))
        try:
            runpy.run_path(str(port / "predict.py"), run_name="__main__")
        except SystemExit as ended:
            code = int(str(ended.code))
        sys.stdout.flush()
        found = written.getvalue().decode()
    return code, found, capsys.readouterr().err if capsys else ""


def by_script_alone(port: Path, argument: str, given: bytes = b"") -> tuple[int, str, str]:
    """Run the exported script in a process that has none of our modules, nor what they import."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(port / "predict.py"), argument],
        input=given,
        capture_output=True,
        cwd=port,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def assert_alike(found: str, wanted: str) -> None:
    """Equal byte for byte, where no probability stands between two of six digits."""
    found_lines, wanted_lines = found.split("\n"), wanted.split("\n")
    assert len(found_lines) == len(wanted_lines)
    for one, other in zip(found_lines, wanted_lines, strict=True):
        if one != other:
            (label, probability), (known, expected) = (
                line.rsplit("\t", 1) for line in (one, other)
            )
            assert label == known
            assert abs(float(probability) - float(expected)) < 1.5e-6
            assert len(probability) == len(expected) == 8


def write_rows(file: Path, kind: str, values: list[Any]) -> None:
    """Write sequences as a file of this ending has them."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if kind == "tokens":
        texts = [" ".join(value) for value in values]
    if file.suffix == ".jsonl":
        lines = [json.dumps({"s": value}) for value in values]
    elif file.suffix == ".csv":
        lines = ["s,l", *(f'"{text.replace(chr(34), chr(34) * 2)}",' for text in texts)]
    else:
        lines = ["s\tl", *(f"{text}\t" for text in texts)] if file.suffix == ".tsv" else texts
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize("ending", ["txt", "csv", "tsv", "jsonl"])
@pytest.mark.parametrize("kind", ROWS)
def test_rows_are_those_of_predict(
    kind: str,
    ending: str,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = exported(make_model(kind, bidirectional=True, pooling="max"))
    file = tmp_path / f"new.{ending}"
    write_rows(file, kind, ROWS[kind])
    code, wanted, _ = by_seqtrain(file, capsys)
    assert (code, wanted.count("\n")) == (0, len(ROWS[kind]) + 1)
    code, found, _ = by_script(port, file)
    assert code == 0
    assert_alike(found, wanted)


@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("part", PARTS)
def test_every_branch_predicts_as_predict_does(
    part: str,
    limit: int | None,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where sequences are cut, with unknown words behind the cut."""
    kind, rules, settings = PARTS[part]
    rules = rules | {"lengths": LengthPolicy(limit, "middle", "drop")}
    port = exported(make_model(kind, rules, **settings))
    file = tmp_path / "new.jsonl"
    write_rows(file, kind, ROWS[kind] * 3)
    code, wanted, _ = by_seqtrain(file, capsys)
    assert code == 0
    assert_alike(by_script(port, file)[1], wanted)


def bpe_model() -> Any:
    bpe = train_bpe(TEXTS * 3, vocab_size=280, lowercase=True)
    vocabulary = Vocabulary((*WORDS[:2], *sorted(json.loads(bpe)["model"]["vocab"])))
    return make_model(rules={"tokenizer": "bpe", "bpe_model": bpe, "vocabulary": vocabulary})


@pytest.mark.parametrize(
    "model",
    [
        make_model("features", {"standardize": "both", "missing": "mask"}),
        make_model("text", PARTS[LONG][1], **PARTS[LONG][2]),
        bpe_model(),
    ],
    ids=["features", "n-grams and subwords", "bpe"],
)
def test_the_script_needs_numpy_and_onnxruntime_alone(
    model: Any, tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, file = model.preprocessing.kind, tmp_path / "new.txt"
    port = exported(model)
    write_rows(file, kind, ROWS[kind])
    code, wanted, _ = by_seqtrain(file, capsys)
    assert code == 0
    port = port.rename(tmp_path / "elsewhere")
    for argument, given in ((str(file), b""), ("-", file.read_bytes())):
        code, found, problems = by_script_alone(port, argument, given)
        assert (code, problems) == (0, "")
        assert_alike(found, wanted)


@pytest.mark.parametrize(
    ("name", "options", "content"),
    [
        ("new.txt", {"format": "txt"}, "no\tmove 20\nmove 20\n\tmoney"),
        ("new.ft", {"format": "fasttext"}, "__label__no move 20\nmove 20\n"),
        ("new.csv", {"sequence": ["a", "b"]}, 'b,a\r\nmove,"20\r\n""?"""\r\nmoney,\r\n\r\n'),
        ("new.tsv", {"sequence": 1, "label": 0}, "no\tmove\nyes\tmoney ?\n"),
        ("new.csv", {"sequence": 1, "label": 0, "quoting": "none"}, 'no,"move\nyes,money ?"\n'),
        ("new.data", {"format": "csv", "by_name": False}, "s,l\n\ufeffmove,no\n"),
        ("new.csv", {}, "sep=|\r\ns|l\r\nmove, 20;|no\r\n"),
        ("new.csv.gz", {}, 's\tl\n"move\t20"\tno\n'),
        ("new.csv", {}, "s,l\r\nmove,no\r\r\nmoney,no\r\n"),
        ("new.jsonl", {"sequence": "a.b"}, '{"a": {"b": "move"}}\n{"a.b": "20"}\n'),
        ("new.jsonl", {"sequence": ["a", "b"]}, '{"a": "move", "b": "20"}\n\n'),
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
    code, wanted, _ = by_seqtrain(file, capsys)
    found = by_script(port, file)
    assert found[0] == code
    assert_alike(found[1], wanted)


REFUSED = [
    ("text", "new.csv", "s,s\nmove,no\n"),
    ("text", "new.csv", 's,l\nmove,no\n"money,no\n'),
    ("text", "new.jsonl", '{"s": "move"}\n{"s": 5}\n{"s": "move"}\n'),
    ("text", "new.jsonl", '{"s": "move"}\n{"s": "20", "s": "?"}\n'),
    ("text", "new.jsonl", '{"s": "move"}\n{"s": "mo\0ve"}\n'),
    ("text", "new.ft", "__label__no move\n__label__no __label__yes money\n"),
    ("text", "none.csv", None),
    ("tokens", "new.jsonl", '{"s": ["move"]}\n{"s": ["1", true]}\n'),
    ("tokens", "new.jsonl", '{"s": ["move"]}\n{"s": ["1", null]}\n'),
    ("features", "new.jsonl", '{"s": [[1, 2]]}\n{"s": [[1, true]]}\n'),
    ("features", "new.jsonl", '{"s": [[1, 2]]}\n{"s": [[1, NaN]]}\n'),
    ("features", "new.txt", "[[1, 2]]\n[[1, 2], [3, null]]\n"),
    ("features", "new.txt", f"[[1{'0' * 400}, 2]]\n"),
    ("features", "new.txt", "[[1, 2]]\n" + "[" * 100_000 + "\n"),
]
"""Kind of a model, name and content of a file whose first row at most can be used."""


@pytest.mark.parametrize(("kind", "name", "content"), REFUSED)
def test_what_predict_refuses_the_script_refuses_in_the_same_words(
    kind: str,
    name: str,
    content: str | None,
    tmp_path: Path,
    exported: Export,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port, file = exported(make_model(kind)), tmp_path / name
    if content is not None:
        file.write_text(content)
    code, wanted, problems = by_seqtrain(file, capsys)
    assert code == 2
    found = by_script(port, file, capsys)
    assert found[0] == 2
    assert found[2] == problems.replace("seqtrain: ", "")
    if wanted:
        assert_alike(found[1], wanted)


def test_a_refusal_needs_no_more_than_the_folder(tmp_path: Path, exported: Export) -> None:
    port, file = exported(make_model("tokens")), tmp_path / "new.jsonl"
    file.write_text('{"s": ["move"]}\n{"s": ["1", true]}\n')
    code, out, problems = by_script_alone(port, str(file))
    assert (code, out.count("\n")) == (2, 2)
    assert problems.startswith(f"{file}:2: s: expected strings or integers in the list")


def test_the_reading_modules_are_the_programs_own(exported: Export) -> None:
    package = Path(sys.modules["seqtrain"].__path__[0]).parent
    with zipfile.ZipFile(exported(make_model()) / "reading.zip") as archive:
        names = archive.namelist()
        for name in names:
            content = archive.read(name)
            assert content in (b"", (package / name).read_bytes())
    assert "seqtrain/data/readers/jsonl.py" in names
    assert not [name for name in names if "/model/" in name or "/cli/" in name]


def test_whole_files_and_empty_ones(
    tmp_path: Path, exported: Export, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model("text")
    reading = replace(model.preprocessing.reading, format="txt", whole_files=True)
    port = exported(replace(model, preprocessing=replace(model.preprocessing, reading=reading)))
    for name, text in {"a/2.txt": "20\nMove money\n", "b.txt": "", "c.txt": "20"}.items():
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "new" / name).write_text(text)
    (tmp_path / "new" / "run").symlink_to(tmp_path / "run")
    for source in ("new/a", "new/c.txt", "new/b.txt"):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            run_program(["predict", str(tmp_path / source), "--run", str(tmp_path / "run")])
        wanted = capsys.readouterr().out
        code, found, _ = by_script(port, tmp_path / source)
        assert code == 0
        assert wanted.startswith("file\tlabel\tprobability\n")
        assert_alike(found, wanted)


def test_help_and_a_closed_pipe(tmp_path: Path, exported: Export) -> None:
    command = [sys.executable, str(exported(make_model("text")) / "predict.py")]
    ended = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Classify the rows of a file")
    assert subprocess.run(command, capture_output=True).returncode == 2
    (tmp_path / "in.txt").write_text("20\n" * 50_000)
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*command, str(tmp_path / "in.txt")], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")
