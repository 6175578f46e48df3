"""`seqtrain errors`: the wrong predictions that eval counts, with their lines."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import seqtrain
from seqtrain.cli.screens.console import stdout_console
from seqtrain.cli.screens.errors import show_errors
from seqtrain.evaluation.predicted_example import PredictedExample
from tests.helpers.tiny import write_jsonl


@pytest.mark.parametrize("split", ["test", "validation", "train"])
def test_mistakes_are_those_of_eval_and_of_predict(beside, tmp_path, cli, split):
    found = cli("errors", "run", "--split", split, "--json").json
    scores = cli("eval", "run", "--split", split, "--json").json
    assert scores["num_examples"] == {"train": 32, "validation": 8, "test": 20}[split]
    wrong = round((1 - scores["accuracy"]) * scores["num_examples"])
    assert found["num_examples"] == scores["num_examples"]
    assert found["num_errors"] == wrong == len(found["errors"]) > 0
    shares = [row["probability"] for row in found["errors"]]
    assert shares == sorted(shares, reverse=True)
    top = cli("errors", "run", "--split", split, "--json", "--top", "2").json["errors"]
    assert top == found["errors"][:2]
    file = Path("test.tsv" if split == "test" else "train.tsv").read_text().splitlines()
    (tmp_path / "texts.txt").write_text("".join(row["text"] + "\n" for row in found["errors"]))
    answers = cli("predict", tmp_path / "texts.txt", "--run", "run").out.splitlines()[1:]
    for row, answer in zip(found["errors"], answers, strict=True):
        assert file[row["line"] - 1] == f"{row['text']}\t{row['label']}"
        label, probability = answer.split("\t")
        assert label == row["predicted"]
        assert float(probability) == pytest.approx(row["probability"], abs=2e-6)  # six digits
        assert row["predicted"] != row["label"]
        assert row["length"] == len(row["text"].split())


def test_the_table_shows_line_label_answer_and_text(beside, cli):
    ended = cli("errors", "run", "--top", "1")
    first = cli("errors", "run", "--format", "jsonl", "--top", "1").json
    row = next(line for line in ended.out.splitlines() if line.split()[:1] == [str(first["line"])])
    assert row.split()[1:4] == [f"{first['probability']:.2%}", first["label"], first["predicted"]]
    assert first["text"] in row
    assert "predictions are wrong" in ended.err
    assert "run: run" in ended.err


def test_a_pipe_is_as_wide_as_columns_says(beside, cli, monkeypatch):
    for given, width in (("60", 60), ("0", 120), ("wide", 120), ("200", 200)):
        monkeypatch.setenv("COLUMNS", given)
        assert stdout_console().width == width
    monkeypatch.setenv("COLUMNS", "60")
    lines = cli("errors", "run", "--top", "3").out.splitlines()
    assert max(map(len, lines)) <= 60


def test_a_file_in_place_of_a_split(beside, tmp_path, cli):
    more = tmp_path / "more.jsonl"
    row = {"text": "rise \x1b[31m", "label": "sideways"}
    write_jsonl(more, [row, {"text": "rise", "label": "up"}])
    ended = cli("errors", "run", "--data", more)
    assert "sideways" in ended.out
    assert "\x1b" not in ended.out + ended.err
    assert "of 2 predictions" in ended.err
    cli("errors", "run", "--data", more, "--split", "test", code=2)


@pytest.mark.parametrize("fixture", ["trained", "trained_tokens"])
def test_weights_are_what_the_answer_loses_without_a_token(
    fixture, request, cli, monkeypatch
) -> None:
    folder = request.getfixturevalue(fixture)
    monkeypatch.chdir(folder)
    classifier = seqtrain.load("run")
    shown = cli("errors", "run", "--split", "train", "--format", "jsonl", "--explain", "--top", "3")
    for line in shown.out.splitlines():
        row = json.loads(line)
        tokens = [token for token, _ in row["weights"]]
        assert len(tokens) == row["length"]
        for place, (_, weight) in enumerate(row["weights"]):
            rest = tokens[:place] + tokens[place + 1 :]
            given = " ".join(rest) if classifier.preprocessing.kind == "text" else rest
            if rest:
                without = classifier.predict([given])[0].probabilities[row["predicted"]]
                assert weight == pytest.approx(np.log(row["probability"] / without), abs=1e-4)


def test_explained_mistakes_show_their_tokens(beside, cli):
    ended = cli("errors", "run", "--explain", "--top", "2")
    assert ended.out.count("strongest: ") == 2
    plain = cli("errors", "run", "--format", "jsonl", "--top", "1").json
    assert "weights" not in plain
    explained = cli("errors", "run", "--explain", "--json", "--top", "2").json["errors"]
    strongest = max(explained[0]["weights"], key=lambda pair: abs(pair[1]))
    told = (
        rf"strongest: {re.escape(strongest[0])}( \(step \d+\))? {re.escape(f'{strongest[1]:+.2f}')}"
    )
    assert re.search(told, ended.out)
    assert "+ (green)" in ended.err


@pytest.mark.parametrize(
    ("text", "tokens", "shown"),
    [
        ("A B A C", "ABC", "A B C"),  # symbols, of which one was cut
        ("A B A C", "A B", "A B"),  # characters, of which some were cut
        ("abba", "abba", "abba"),
    ],
)
def test_symbols_of_one_letter_are_shown_apart(text, tokens, shown, capsys):
    weights = [(token, 0.5) for token in tokens]
    row = PredictedExample(1, text, ("x",), ("y",), None, 0.9, len(tokens), weights=weights)
    show_errors([row])
    assert shown in [line.strip() for line in capsys.readouterr().out.splitlines()]
