"""Files other than the training file are read as the config and their names say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqtrain.cli.output.prediction_columns import csv_cell, tsv_cell
from tests.helpers.packing import ENDINGS, pack
from tests.helpers.tiny import CONFIG, Cli, rows, write_table


@pytest.mark.parametrize(("format", "name"), [("fasttext", "txt"), ("tsv", "csv")])
def test_a_format_that_was_set_holds_for_every_file(
    project: Path, cli: Cli, format: str, name: str
) -> None:
    for split, count in (("train", 40), ("test", 20)):
        path = project / f"{split}.{name}"
        if format == "tsv":
            write_table(path, rows(count, seed=count))
        else:
            path.write_text("".join(f"__label__{y} {x}\n" for x, y in rows(count, seed=count)))
    columns = "sequence: text, label: label, " if format == "tsv" else ""
    data = f"{{train: train.{name}, test: test.{name}, {columns}format: {format}}}"
    (project / "c.yaml").write_text("\n".join([f"data: {data}", *CONFIG.splitlines()[1:]]))
    assert cli("fit", "c.yaml", "--run-dir", "r").code == 0
    expected = json.loads((project / "r" / "test.json").read_text())["accuracy"]
    for options in ([], ["--data", f"test.{name}"]):
        ended = cli("eval", "r", "--json", *options)
        assert json.loads(ended.out)["accuracy"] == expected
    predicted = cli("predict", f"test.{name}", "--run", "r")
    labels = [line.split("\t")[0] for line in predicted.out.splitlines()[1:]]
    truth = [label for _, label in rows(20, seed=20)]
    right = sum(a == b for a, b in zip(labels, truth, strict=True))
    assert right / 20 == pytest.approx(expected)


def test_split_and_data_exclude_each_other(trained: Path, cli: Cli) -> None:
    ended = cli("eval", trained / "run", "--split", "test", "--data", trained / "test.tsv")
    assert (ended.code, ended.out) == (2, "")
    assert "give one of them" in ended.err


def test_a_file_of_another_kind_is_named_with_what_the_model_reads(
    trained: Path, trained_features: Path, cli: Cli
) -> None:
    """At predict and eval there is no config to change, so no key of it is named."""
    text, features = trained / "run", trained_features / "run"
    series, table = trained_features / "train.npz", trained / "test.tsv"
    cases = [
        (text, series, "found format npz; the model reads text; expected csv, tsv, jsonl"),
        (features, table, "found format tsv; the model reads features without named columns; "),
    ]
    for run, other, said in cases:
        for command in (("predict", other, run), ("eval", run, "--data", other)):
            ended = cli(*command)
            assert (ended.code, ended.out) == (2, "")
            assert said in ended.err
            assert "data." not in ended.err
    ended = cli("predict", "-", features, stdin="hello\n")
    assert "stdin:1: expected a JSON list of vectors or numbers, found 'hello'" in ended.err


def test_symbols_on_standard_input_may_be_json(trained_tokens: Path, cli: Cli) -> None:
    split, listed = (
        cli("predict", "-", "--run", trained_tokens / "run", stdin=line)
        for line in ("rise climb the\n", '["rise", "climb", "the"]\n')
    )
    assert listed.code == 0
    assert listed.out == split.out
    broken = cli("predict", "-", "--run", trained_tokens / "run", stdin='["rise"\n')
    assert broken.code == 2
    assert "stdin:1" in broken.err


def test_the_output_files_ending_chooses_the_format(
    trained: Path, tmp_path: Path, cli: Cli
) -> None:
    for name, beginning in (("a.csv", "label,"), ("a.jsonl", "{"), ("a.tsv", "label\t")):
        cli("predict", trained / "test.tsv", "--run", trained / "run", "--output", tmp_path / name)
        assert (tmp_path / name).read_text().startswith(beginning)


def test_tables_quote_only_what_their_format_quotes() -> None:
    assert [tsv_cell(label) for label in ('say "x"', "a,b", "a\tb")] == [
        'say "x"',
        "a,b",
        '"a\tb"',
    ]
    labels = ('say "x"', "a,b", "=1+1", "-1e3", "-1")
    quoted = ['"say ""x"""', '"a,b"']
    assert [csv_cell(label) for label in labels] == [*quoted, "=1+1", "-1e3", "-1"]
    safe = [csv_cell(label, spreadsheet_safe=True) for label in labels]
    assert safe == [*quoted, "'=1+1", "'-1e3", "-1"]


def test_closed_standard_output_is_one_line() -> None:
    script = "from seqtrain.cli.main import run; run(['config', '--schema'])"
    command = f'"{sys.executable}" -c "{script}" >&-'
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ended.returncode == 3
    assert ended.stderr == "seqtrain: standard output is closed; nothing can be written\n"


def test_a_file_of_other_labels_is_not_scored(trained: Path, tmp_path: Path, cli: Cli) -> None:
    write_table(tmp_path / "other.tsv", [("rise", "north"), ("fall", "south")])
    ended = cli("eval", trained / "run", "--data", tmp_path / "other.tsv")
    assert (ended.code, ended.out) == (2, "")
    assert "the model knows none of its labels" in ended.err


def test_a_run_on_parquet(project: Path, cli: Cli) -> None:
    texts, labels = zip(*rows(40, seed=1), strict=True)
    numbers = [int(label == "up") for label in labels]
    names = {"info": {"features": {"label": {"names": ["down", "up"], "_type": "ClassLabel"}}}}
    table = pa.table({"text": texts, "label": numbers})
    pq.write_table(
        table.replace_schema_metadata({"huggingface": json.dumps(names)}), project / "train.parquet"
    )
    data = "data: {train: train.parquet, sequence: text, label: label, validation: 0.2}"
    (project / "c.yaml").write_text("\n".join([data, *CONFIG.splitlines()[1:]]))
    assert cli("fit", "c.yaml", "-q").code == 0
    predicted = cli("predict", "train.parquet")
    assert predicted.code == 0
    answers = [line.split("\t")[0] for line in predicted.out.splitlines()[1:]]
    assert len(answers) == 40
    assert set(answers) <= {"down", "up"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_on_compressed_pieces(project: Path, cli: Cli, ending: str) -> None:
    for number in range(3):
        write_table(project / f"part-{number}.tsv", rows(30, seed=number))
        packed = pack((project / f"part-{number}.tsv").read_bytes(), ending)
        (project / f"part-{number}.tsv.{ending}").write_bytes(packed)
    data = "data: {train: part-*.tsv, validation: 0.2, sequence: text, label: label}"
    (project / "c.yaml").write_text("\n".join([data, *CONFIG.splitlines()[1:]]))
    assert cli("fit", "c.yaml", "-q", "--run-dir", "plain").code == 0
    named = ("--set", f"data.train=part-*.tsv.{ending}")
    assert cli("fit", "c.yaml", "-q", "--run-dir", "packed", *named).code == 0
    weights = "best/model.safetensors"
    assert (project / "plain" / weights).read_bytes() == (project / "packed" / weights).read_bytes()
    assert json.loads(cli("data", "c.yaml", "--json", *named).out)["splits"]["train"]["rows"] == 72
    pattern = f"part-*.tsv.{ending}"
    assert cli("predict", pattern, "--run", "packed", "--output-dir", "out").code == 0
    answers = (project / "out" / f"part-1.tsv.{ending}.tsv").read_text()
    assert answers == cli("predict", "part-1.tsv", "--run", "plain").out
    assert cli("init", pattern).out == "part.yaml\n"
    assert pattern in (project / "part.yaml").read_text().split("data:")[1]
