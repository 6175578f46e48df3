"""Equal values that are written in several ways: one class, from every form of a table."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import seqtrain
from seqtrain.config import parse_config
from seqtrain.sequences.dataset import prepare

WORDS = {0: ["red", "blue", "green"], 1: ["one", "two", "three"]}
SPELLINGS = {
    "number": (["0", "0.0", "-0"], ["1", "1.0", "+1"]),
    "truth": (["FALSE", "false", "False"], ["True", "TRUE"]),
    "date": (["2024-01-31"], ["2024-02-01"]),
}
FORMS = ["csv", "jsonl", "parquet", "xlsx", "frame", "objects"]


def rows(count: int, seed: int) -> list[tuple[str, int]]:
    draw = random.Random(seed)
    return [(" ".join([*draw.choices(WORDS[i % 2], k=4), f"w{i}"]), i % 2) for i in range(count)]


def python_value(kind: str, text: str) -> Any:
    """Return the value that a program has for a label."""
    pandas = pytest.importorskip("pandas")
    if kind == "date":
        return pandas.Timestamp(text)
    return float(text) if kind == "number" else text.lower() == "true"


def write(kind: str, form: str, folder: Path) -> Any:
    """Write 20 rows in a form, and return the path or the table."""
    pandas = pytest.importorskip("pandas")
    texts = [(text, SPELLINGS[kind][label][-1]) for text, label in rows(20, 1)]
    values = [python_value(kind, label) for _, label in texts]
    frame = pandas.DataFrame({"text": [text for text, _ in texts], "label": values})
    path = folder / f"a.{form}"
    if form == "csv":
        frame.assign(label=[label for _, label in texts]).to_csv(path, index=False)
    elif form == "jsonl":
        own = [label for _, label in texts] if kind == "date" else values
        lines = [json.dumps({"text": x, "label": y}) for (x, _), y in zip(texts, own, strict=True)]
        path.write_text("\n".join(lines))
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif form == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        return frame if form == "frame" else frame.astype({"label": object})
    return str(path)


@pytest.mark.parametrize("kind", list(SPELLINGS))
def test_a_model_of_one_form_scores_all_others(kind, tmp_path):
    draw = random.Random(0)
    lines = [f'"{text}",{draw.choice(SPELLINGS[kind][label])}' for text, label in rows(60, 0)]
    (tmp_path / "t.csv").write_text("\n".join(["text,label", *lines, ""]))
    data = {"train": str(tmp_path / "t.csv"), "sequence": "text", "label": "label"}
    config = {
        "data": data,
        "model": {"embedding_dim": 4, "hidden_size": 4, "ngrams": [1, 1]},
        "training": {"max_epochs": 3},
    }
    said = "no validation" if kind == "date" else "are equal values, so they are one class"
    with pytest.warns(seqtrain.SeqtrainWarning, match=said):
        run = seqtrain.fit(config, run_dir=tmp_path / "run", progress=False)
    found = {form: seqtrain.evaluate(run, data=write(kind, form, tmp_path)) for form in FORMS}
    for form, evaluation in found.items():
        assert evaluation.scores.num_examples == 20, form
        assert evaluation.scores.accuracy == 1, form
        assert not [line for line in evaluation.warnings if "doesn't occur" in line], form
    (first,) = {tuple(evaluation.scores.labels) for evaluation in found.values()}
    assert len(first) == 2
    predicted = seqtrain.load(run).predict([text for text, _ in rows(20, 1)]).labels
    names = [x for spelled in SPELLINGS[kind] for x in first if x in spelled]
    assert predicted == [names[label] for _, label in rows(20, 1)]


@pytest.mark.parametrize("kind", ["number", "truth"])
def test_spellings_that_differ_between_train_and_test_are_said(kind, tmp_path):
    first, last = ({each: SPELLINGS[kind][each][at] for each in (0, 1)} for at in (0, -1))
    for name, spelled in (("t.csv", first), ("u.csv", last)):
        lines = [f"{text},{spelled[label]}" for text, label in rows(40, 2)]
        (tmp_path / name).write_text("\n".join(["text,label", *lines, ""]))
    data = {"train": str(tmp_path / "t.csv"), "test": str(tmp_path / "u.csv"), "validation": 0.5}
    config = parse_config(json.dumps({"data": {**data, "sequence": "text", "label": "label"}}))
    notices = prepare(config).reports["test"].notices("test")
    for label in (0, 1):
        (said,) = [line for line in notices if repr(last[label]) in line]
        assert repr(first[label]) in said
