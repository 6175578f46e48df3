"""predict.py writes what `seqtrain predict` writes, with numpy and onnxruntime alone."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from seqtrain.evaluation.calibration import Calibration
from seqtrain.exports import script
from seqtrain.exports.export_folder import export_model
from seqtrain.files.writing import write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.lengths import LengthPolicy
from seqtrain.sequences.schema import Schema
from seqtrain.sequences.tokenizers import train_bpe
from seqtrain.sequences.vocabulary import Vocabulary
from tests.helpers.examples import seeds
from tests.helpers.exported import by_script
from tests.helpers.small_models import PARTS, WORDS, make_model
from tests.helpers.tables import CONFIG, table, write_rows, write_table_project
from tests.helpers.tiny import Cli, Ended, fit
from tests.helpers.written_rows import by_csv, by_pandas, by_polars, random_cells

TEXTS = ["Move money", "DON'T", "éa? 20 20 nobody knows", "20", 'a "quoted" one, yes', "x\u2028y ?"]
ROWS: dict[str, list[Any]] = {
    "text": TEXTS,
    "tokens": [text.split() for text in TEXTS],
    "features": [[[0.5, 1.0]], [[1, 2], [3, 4], [-1e3, 0.25]], [[0, 0]] * 9],
}
LONG = "n-grams and long subwords"
ALONE = """\
import os, pathlib, runpy, sys
script, *sys.argv[1:] = sys.argv[1:]
hidden = ["torch", "pydantic", "yaml", "rich", "safetensors"]
rules = pathlib.Path(script).with_name("preprocessing.json")
if not rules.exists() or b'"bpe"' not in rules.read_bytes():
    hidden.append("tokenizers")
for name in hidden:
    sys.modules[name] = None
sys.path[:] = [path for path in sys.path if not os.path.isdir(os.path.join(path, "seqtrain"))]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
runpy.run_path(script, run_name="__main__")
"""
"""Program that runs a script where neither seqtrain is installed, nor packages that it needs."""


def rows_as(ending: str, kind: str, values: list[Any]) -> str:
    """Return the content of a file of this ending that holds sequences."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if kind == "tokens":
        texts = [" ".join(value) for value in values]
    lines = {
        "jsonl": [json.dumps({"s": value}) for value in values],
        "csv": ["s,l", *(f'"{text.replace(chr(34), chr(34) * 2)}",' for text in texts)],
        "tsv": ["s\tl", *(f"{text}\t" for text in texts)],
        "txt": texts,
    }
    return "".join(line + "\n" for line in lines[ending])


def assert_alike(found: str, wanted: str) -> None:
    """Equal byte for byte, where no probability stands between two of six digits."""
    found_lines, wanted_lines = found.split("\n"), wanted.split("\n")
    assert len(found_lines) == len(wanted_lines)
    for one, other in zip(found_lines, wanted_lines, strict=True):
        if one != other:
            (label, value), (known, expected) = (line.rsplit("\t", 1) for line in (one, other))
            assert label == known
            assert abs(float(value) - float(expected)) < 1.5e-6
            assert len(value) == len(expected) == 8


class Both:
    """A model's run and its export in a folder, and what both write about a file."""

    def __init__(self, folder: Path, model: Model, cli: Cli) -> None:
        write_folder(folder / "run", model_files(model))
        self.folder, self.cli = folder, cli
        self.port = export_model(model, folder / "port").folder

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def by_seqtrain(self, path: Path, code: int = 0) -> Ended:
        return self.cli("predict", path, "--run", self.folder / "run", code=code)

    def by_script(self, *words: object, stdin: str = "") -> Ended:
        return by_script(self.port, *words, stdin=stdin)

    def by_script_alone(self, argument: str, given: bytes = b"", code: int = 0) -> Ended:
        """Run it in a process that has none of our modules, nor what they import."""
        command = [sys.executable, "-I", "-c", ALONE, str(self.port / "predict.py"), argument]
        done = subprocess.run(command, input=given, capture_output=True, cwd=self.port)
        assert done.returncode == code
        return Ended(code, done.stdout.decode(), done.stderr.decode())

    def compare(self, name: str, content: str | bytes | None, code: int = 0) -> str:
        """Check that both write the same rows, and refuse in the same words; return the rows."""
        path = self.folder / name if content is None else self.write(name, content)
        wanted, found = self.by_seqtrain(path, code), self.by_script(path)
        assert found.code == code, found
        assert_alike(found.out, wanted.out or ("" if code else "label\tprobability\n"))
        refusals = [line.removeprefix("seqtrain: ") for line in wanted.problems]
        for_predict = ("--bad-rows", "  seqtrain predict")
        both = [line for line in refusals if not any(x in line for x in for_predict)]
        assert not code or found.problems == both
        return found.out


@pytest.fixture
def both(tmp_path, cli) -> Callable[[Model], Both]:
    return lambda model: Both(tmp_path, model, cli)


@pytest.mark.parametrize("kind", ROWS)
def test_rows_are_those_of_predict(kind, both):
    pair = both(make_model(kind, bidirectional=True, pooling="max"))
    for ending in ("txt", "csv", "tsv", "jsonl"):
        rows = pair.compare(f"new.{ending}", rows_as(ending, kind, ROWS[kind]))
        assert rows.count("\n") == len(ROWS[kind]) + 1


def test_labels_that_a_file_has_are_ignored(both):
    pair = both(make_model())
    path = pair.write("new.csv", rows_as("csv", "text", TEXTS).replace(",\n", ",unheard of\n"))
    assert pair.by_script(path).err == ""
    assert "unheard of" not in pair.by_seqtrain(path).err


@pytest.mark.parametrize("part", PARTS)
def test_every_branch_predicts_as_predict_does(part, both):
    """Also where sequences are cut, with unknown words behind the cut."""
    kind, rules, settings = PARTS[part]
    lengths = LengthPolicy(3 if part in ("subwords", "n-grams") else None, "middle", "drop")
    pair = both(make_model(kind, rules | {"lengths": lengths}, **settings))
    pair.compare("new.jsonl", rows_as("jsonl", kind, [*ROWS[kind] * 3, []][: -(kind == "text")]))


def bpe_model() -> Model:
    bpe = train_bpe(TEXTS * 3, vocab_size=280, lowercase=True)
    vocabulary = Vocabulary((*WORDS[:2], *sorted(json.loads(bpe)["model"]["vocab"])))
    return make_model(rules={"tokenizer_name": "bpe", "bpe_model": bpe, "vocabulary": vocabulary})


@pytest.mark.parametrize(
    "model",
    [
        make_model("features", {"standardize": "both", "missing": "mask"}),
        make_model("text", PARTS[LONG][1], **PARTS[LONG][2]),
        bpe_model(),
    ],
    ids=["features", "n-grams and subwords", "bpe"],
)
def test_the_script_needs_numpy_and_onnxruntime_alone(model, both, tmp_path):
    pair, kind = both(model), model.preprocessing.kind
    file = pair.write("new.txt", rows_as("txt", kind, ROWS[kind]))
    wanted = pair.by_seqtrain(file).out
    pair.port = pair.port.rename(tmp_path / "elsewhere")
    piped = kind == "features"
    found = pair.by_script_alone("-" if piped else str(file), file.read_bytes() if piped else b"")
    assert not found.err
    assert_alike(found.out, wanted)


TWO_TEXTS = Schema("csv", sequence=("title", "body"), label="l")
BY_INDEX = Schema("csv", sequence=1, label=0, header=False)


@pytest.mark.parametrize(
    ("schema", "format", "content"),
    [
        (TWO_TEXTS, "csv", "l;body;title\n;money;move\n"),
        (TWO_TEXTS, "tsv", "title\tbody\nmove\tmoney\n"),
        (TWO_TEXTS, "csv", '"title","body"\n"move","money"\n'),
        (TWO_TEXTS, "csv", "sep=;\ntitle;body\nmove;money\n"),
        (TWO_TEXTS, "jsonl", '{"title": "move", "body": "money"}\n'),
        (BY_INDEX, "csv", "no,move\nno,money\n"),
        (Schema("jsonl", sequence="s"), "jsonl", '{"s": "move"}\n{"s": "20"}\n'),
        (Schema("jsonl", sequence="s"), "jsonl", '[{"s": "move"}, {"s": "20"}]\n'),
        (Schema("jsonl", sequence="s"), "jsonl", '[\n{"s": "move"},\n{"s": "20"}\n]\n'),
        (Schema("jsonl", sequence="a.s"), "jsonl", '{"a": {"s": "move"}}\n'),
        (Schema("fasta"), "fasta", ">r1\nmove\n>r2\nmoney\n"),
        (Schema("fasttext"), "fasttext", "__label__no move\n"),
        (Schema("txt"), "txt", "no\tmove\n"),
    ],
)
def test_a_file_on_standard_input_is_read_by_its_format_or_refused(schema, format, content, both):
    pair = both(make_model(rules={"schema": schema}))
    by_name = pair.by_seqtrain(pair.write(f"new.{format}", content)).out
    refused = pair.cli("predict", "-", "--run", pair.folder / "run", stdin=content, code=2)
    assert not refused.out
    assert refused.err.startswith("seqtrain: stdin:1: ")
    (option,) = re.findall(rf"--input-format {format}\b", refused.err)
    words = ["predict", "-", "--run", pair.folder / "run", *option.split()]
    assert pair.cli(*words, stdin=content).out == by_name
    assert pair.by_script("-", stdin=content).err == refused.err.removeprefix("seqtrain: ")
    assert_alike(pair.by_script("-", *option.split(), stdin=content).out, by_name)


@pytest.mark.parametrize("schema", [BY_INDEX, TWO_TEXTS, Schema("txt")])
def test_an_object_of_json_with_other_fields_is_refused_on_standard_input(schema, both):
    pair = both(make_model(rules={"schema": schema}))
    given = '{"unknown": "move"}\n'
    refused = pair.cli("predict", "-", "--run", pair.folder / "run", stdin=given, code=2)
    assert "--input-format" in refused.err
    assert pair.by_script("-", stdin=given).err == refused.err.removeprefix("seqtrain: ")


def test_a_first_line_that_is_blank_is_a_sequence(both):
    pair = both(make_model(rules={"schema": Schema("txt")}))
    lines = "\nmoney\n"
    found = pair.cli("predict", "-", "--run", pair.folder / "run", stdin=lines)
    assert found.out.count("\n") == 3
    assert_alike(pair.by_script("-", stdin=lines).out, found.out)


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (TWO_TEXTS, "> no, move the title"),
        (TWO_TEXTS, '{"a": 1} and [more'),
        (Schema("jsonl", sequence="s"), '[move] the "money'),
        (BY_INDEX, "no move, money"),
        (Schema("txt"), "move\tno"),
    ],
)
def test_a_line_that_only_resembles_a_format_is_a_sequence(schema, line, both):
    pair = both(make_model(rules={"schema": schema}))
    as_lines = pair.cli("predict", "-", "--run", pair.folder / "run", stdin=line + "\n")
    assert_alike(pair.by_script("-", stdin=line).out, as_lines.out)
    assert as_lines.out.count("\n") == 2


@pytest.mark.parametrize(
    "content",
    [
        "move,no\n",  # the label last
        "text,label\nmove 20,no\nmoney ?,no\n",
        "label,text\nno,move 20\nno,money ?\n",
    ],
)
def test_columns_in_another_order_than_in_train_are_refused(content, both):
    pair = both(make_model(rules={"schema": BY_INDEX}))
    pair.compare("new.csv", content, code=2)


@pytest.mark.parametrize(
    "content",
    [",no\n,no\n", "x,move\nx,no\n", "x,move\nno,money\n", "no,move\nyes,no\n", "x,no way\n"],
)
def test_rows_without_a_known_label_are_predicted(content, both):
    pair = both(make_model(rules={"schema": BY_INDEX}))
    assert pair.compare("new.csv", content).count("\n") == content.count("\n") + 1


def test_other_arguments_show_the_help(both):
    pair = both(make_model())
    for words, code in ((["-h"], 0), ([], 2), (["x.csv", "--input-format", "xls"], 2)):
        found = pair.by_script(*words)
        assert found.code == code
        assert "--input-format" in (found.err if code else found.out)


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        ("text", "none.csv", None),
        ("text", "new.txt.gz", gzip.compress(b"move 20\n" * 999, mtime=0)[:-8]),
        ("tokens", "new.jsonl", '{"s": ["move"]}\n{"s": ["1", true]}\n'),
        ("features", "new.txt", "[[1, 2]]\n" + "[" * 100_000 + "\n"),
    ],
)
def test_what_predict_refuses_the_script_refuses_in_the_same_words(kind, name, content, both):
    both(make_model(kind)).compare(name, content, code=2)


def test_the_folder_carries_the_programs_own_modules(both):
    pair = both(make_model("tokens"))
    file = pair.write("new.jsonl", '{"s": ["move"]}\n{"s": ["1", true]}\n')
    ended = pair.by_script_alone(str(file), code=2)
    assert ended.out.count("\n") == 2
    assert ended.err.startswith(f"{file}:2: s: expected strings or integers in the list")
    package = Path(script.__file__).parents[2]
    with zipfile.ZipFile(pair.port / "reading.zip") as archive:
        for name in archive.namelist():
            assert archive.read(name) in (b"", (package / name).read_bytes())
            assert not name.startswith(("seqtrain/model/", "seqtrain/cli/", "seqtrain/runs/"))


def test_whole_files_and_empty_ones(both):
    schema = Schema("txt", "text", whole_files=True)
    pair = both(make_model("text", {"schema": schema}))
    for name, text in {"a/2.txt": "20\nMove money\n", "b.txt": "", "c.txt": "20"}.items():
        pair.write(f"new/{name}", text)
    for source in ("new", "new/c.txt"):
        assert pair.compare(source, None).startswith("file\tlabel\tprobability\n")


@pytest.mark.parametrize(
    ("id", "window", "places"),
    [
        ("visit", "null", "visit"),
        ("visit", "{steps: 2, stride: 1}", "first_line\tlast_line\tvisit"),
        ("[visit, country]", "null", "visit\tcountry"),
    ],
)
def test_a_row_says_which_file_id_and_window_it_is_of(tmp_path, both, id, window, places):
    write_table_project(tmp_path)
    keys = [f"data.id={id}", f"data.window={window}", "data.static={age: number}"]
    keys.append("training.max_epochs=1")
    fit(tmp_path, CONFIG, *keys, run="trained")
    pair = both(load_model(tmp_path / "trained/best"))
    assert pair.compare("test.csv", None).startswith(f"{places}\tlabel")
    (tmp_path / "new").mkdir()
    for number in range(2):
        rows = [{**row, "visit": f"{number}-{row['visit']}"} for row in table(9, seed=number)]
        write_rows(tmp_path / f"new/{number}.csv", rows)
    line = "" if "first_line" in places else "line\t"
    assert pair.compare("new", None).startswith(f"file\t{line}{places}\tlabel")


def test_a_folder_of_records_and_whole_files(both):
    pair = both(make_model("text", {"schema": Schema("txt", "text", whole_files=True)}))
    pair.write("new/a.fasta", ">a\nmove\n>b\nmoney\n")
    pair.write("new/b.txt", "move 20")
    assert pair.compare("new", None).startswith("file\tline\tlabel\tprobability\n")


def test_help_and_a_closed_pipe(both):
    pair = both(make_model())
    command = [sys.executable, str(pair.port / "predict.py")]
    ended = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Classify the rows of a file")
    assert subprocess.run(command, capture_output=True).returncode == 2
    path = pair.write("in.txt", "20\n" * 50_000)
    reader, writer = os.pipe()
    os.close(reader)
    closed = subprocess.run([*command, str(path)], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (closed.returncode, closed.stderr) == (141, b"")


def test_rows_of_the_script_are_read_back_equal(tmp_path, cli):
    for seed in seeds(3):
        cells = [cell for row in random_cells(seed, 20) for cell in row if cell.strip()]
        labels = sorted({*cells})[:3]
        model = make_model(rules={"label_set": LabelSet(tuple(labels))})
        folder = tmp_path / str(seed)
        folder.mkdir()
        pair = Both(folder, model, cli)
        path = pair.write("new.txt", rows_as("txt", "text", TEXTS))
        found = pair.by_script(path).out
        run = pair.folder / "run"
        written = cli("predict", path, "--run", run, "--format", "jsonl").out.splitlines()
        expected = [json.loads(line)["label"] for line in written]
        for reader in (by_csv, by_pandas, by_polars):
            assert [row[0] for row in reader(found, "\t")] == ["label", *expected], (seed, reader)


@pytest.mark.parametrize("multi_label", [False, True])
def test_probabilities_near_a_threshold_are_decided_as_predict_does(multi_label, both):
    """The logits are exactly the biases, and differ by less than float32 tells apart as shares."""
    if multi_label:
        label_set, biases = LabelSet(("a", "b", "c"), True, "|"), [-1.3, 0.2, 0.7]
    else:
        label_set, biases = LabelSet(("a", "b")), [0.0, 1e-8]
    schema = Schema("jsonl", "text", sequence="s", label="l", label_separator=label_set.separator)
    model = make_model(rules={"label_set": label_set, "schema": schema})
    head = model.network.recurrent.head
    with torch.no_grad():
        head.weight.zero_()
        head.bias.copy_(torch.tensor(biases))
    shares = torch.tensor(biases).double().sigmoid()
    for closeness in (1 - 1e-9, 1 + 1e-9):
        thresholds = (shares * closeness).tolist() if multi_label else []
        pair = both(model.calibrated(Calibration(thresholds=thresholds)))
        labels = [line.split("\t")[0] for line in pair.compare("new.txt", "20\n").splitlines()]
        below = "" if multi_label else "b"
        assert labels[1] == (below if closeness > 1 or not multi_label else "a|b|c")
        shutil.rmtree(pair.folder / "run")
        shutil.rmtree(pair.port)


def test_missing_and_damaged_files_are_named_in_a_line(both, tmp_path):
    pair = both(make_model("text", PARTS[LONG][1], **PARTS[LONG][2]))
    file = pair.write("new.txt", "20\n")
    names = "model.onnx", "preprocessing.json", "vocabulary.json", "ngrams.npz", "reading.zip"
    for name in names:
        path = pair.port / name
        content = path.read_bytes()
        for damaged in (None, content[: len(content) // 2], b"{}"):
            if damaged is None:
                path.unlink()
            else:
                path.write_bytes(damaged)
            ended = pair.by_script(file)
            assert (ended.code, ended.out) == (2, "")
            assert ended.err.count("\n") == 1
            assert name in ended.err, ended.err
        if name == names[-1]:
            assert pair.by_script_alone(str(file), code=2).err == ended.err
        path.write_bytes(content)
    assert pair.by_script_alone(str(file)).out.count("\n") == 2
