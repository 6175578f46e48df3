"""A run on several files; its rows are named by file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

import seqtrain
from seqtrain.api.diff import diff
from seqtrain.api.evaluate import evaluate, load_labelled
from seqtrain.api.fit import fit
from seqtrain.api.report import run_report
from seqtrain.api.split_results import predicted_rows
from seqtrain.errors import CheckpointError


def config(train: Any, **more: Any) -> dict[str, Any]:
    data = {"train": train, "validation": 0.25, "sequence": "text", "label": "label"}
    model = {"embedding_dim": 4, "hidden_size": 4}
    return {"data": data | more.pop("data", {}), "model": model, **more}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A current directory with 40 rows in one file, and in three."""
    rows = [
        json.dumps({"text": f"{'rise' if i % 2 else 'fall'} w{i}", "label": "ab"[i % 2]}) + "\n"
        for i in range(40)
    ]
    (tmp_path / "one.jsonl").write_text("".join(rows))
    for name, part in (("p1", rows[:7]), ("p2", rows[7:8]), ("p3", rows[8:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(part))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_answers_name_file_and_line(folder):
    fit(config("p*.jsonl", training={"max_epochs": 1}), run_dir="run")
    rows = [json.loads(line) for line in (folder / "one.jsonl").read_text().splitlines()]
    starts = {"p1.jsonl": 0, "p2.jsonl": 7, "p3.jsonl": 8}
    found = predicted_rows(load_labelled("run", split="train"))
    assert {row.file for row in found} == {*starts}
    for row in found:
        assert row.text == rows[starts[str(row.file)] + row.line - 1]["text"]
    assert diff("run", "run", split="validation").num_examples == 10
    recorded = json.loads((folder / "run" / "environment.json").read_text())["data"]
    assert list(recorded) == ["p1.jsonl", "p2.jsonl", "p3.jsonl"]
    of_files = evaluate("run", data="p?.jsonl")
    assert of_files.data == "p?.jsonl"
    assert of_files.scores == evaluate("run", data="one.jsonl").scores
    assert run_report("run").card["trained on"].startswith("p*.jsonl, ")
    wrong = seqtrain.split_results("run", split="train").errors
    seqtrain.report("run", "page.html", split="train")
    page = Path("page.html").read_text()
    assert all(f"<td>{row.file}:{row.line}</td>" in page for row in wrong[:50])
    assert wrong


def test_other_files_end_resuming_and_scoring(folder):
    given = config("p*.jsonl", training={"max_epochs": 1})
    fit(given, run_dir="run")
    more = given | {"training": {"max_epochs": 2}}
    (folder / "p4.jsonl").write_text('{"text": "rise", "label": "a"}\n')
    with pytest.raises(CheckpointError, match=r"p4\.jsonl: "):
        fit(more, run_dir="run", resume=True)
    with pytest.raises(CheckpointError, match=r"p4\.jsonl: "):
        evaluate("run", split="validation")
    (folder / "p4.jsonl").unlink()
    (folder / "p3.jsonl").rename(folder / "gone")
    with pytest.raises(CheckpointError, match=r"^\S*p3\.jsonl: "):
        fit(more, run_dir="run", resume=True)
    with pytest.raises(CheckpointError, match=r"^\S*p3\.jsonl: "):
        evaluate("run", split="validation")
    (folder / "gone").rename(folder / "p3.jsonl")
    fit(more, run_dir="run", resume=True)
