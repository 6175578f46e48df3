"""Going on from an old model: equal logits before training, new tokens and labels, refusals."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqtrain import load, predict
from seqtrain.api.fit import fit
from seqtrain.api.run_events import Event, StartEvent
from seqtrain.runs.model_folder import load_model
from tests.helpers.tiny import (
    Killed,
    assert_same_run,
    metrics,
    rows,
    series,
    write_npz,
    write_table,
)

TEXT = "{train: train.tsv, validation: 0.2, sequence: text, label: label%s}"
MODELS = {
    "n-grams and subwords": (
        TEXT % "",
        "ngrams: [1, 2], subwords: [2, 3], pooling: [last, max], bidirectional: true",
    ),
    "rare words are unknown": (TEXT % ", min_count: 2", "ngrams: [1, 2], initial_state: learned"),
    "characters": (TEXT % ", tokenizer: char", "convolutions: [[5, 3, 1]], rnn: lstm"),
    "byte pairs": (TEXT % ", tokenizer: bpe, max_vocab_size: 300", "pooling: attention"),
    "series": ("{train: train.npz, validation: 0.2, kind: features}", "convolutions: [[5, 3, 1]]"),
}
CONFIG = """\
data: {data}
batching: {{batch_size: 8}}
model: {{embedding_dim: 4, hidden_size: 4, {model}}}
training: {{max_epochs: {epochs}, patience: null, lr: 0.05, schedule: constant,
  calibration: none}}
"""


def write(folder: Path, kind: str, *, new: bool = False, epochs: int = 1) -> None:
    """Write a config and its data; `new` adds rows of new words with a new label."""
    data, model = MODELS[kind]
    (folder / "c.yaml").write_text(CONFIG.format(data=data, model=model, epochs=epochs))
    if kind == "series":
        given = series(40, 1), [str(i % 2) for i in range(40)]
        more = (series(12, 2), ["new"] * 12) if new else ([], [])
        write_npz(folder / "train.npz", given[0] + more[0], given[1] + more[1])
    else:
        added = [(f"stays level today {i % 3}", "flat") for i in range(12)] if new else []
        write_table(folder / "train.tsv", rows(40, seed=1) + added)


@pytest.fixture
def old(project, cli, request) -> str:
    """The kind of a model that was trained in the current directory, as `old`."""
    kind: str = getattr(request, "param", "n-grams and subwords")
    write(project, kind)
    cli("fit", "c.yaml", "--run-dir", "old", "--quiet")
    return kind


def odds(run: str, sequences: list[Any], labels: tuple[str, ...]) -> np.ndarray:
    """Return the probabilities of some labels among each other."""
    found = [prediction.probabilities for prediction in load(run).predict(sequences)]
    shares = np.array([[each[label] for label in labels] for each in found])
    return shares / shares.sum(1, keepdims=True)


@pytest.mark.parametrize("old", MODELS, indirect=True)
@pytest.mark.parametrize("new", [False, True], ids=["same rows", "new words and a new label"])
def test_before_the_first_update_old_labels_have_the_odds_that_they_had(old, new, project, cli):
    """Words that were unknown and become known among them.

    N-grams are solved again, on the new train.
    """
    if new and "ngrams" in MODELS[old][1]:
        pytest.skip("n-grams learn the new rows before the first update")

    def stop(event: Event) -> None:
        if isinstance(event, StartEvent):
            raise Killed

    write(project, old, new=new)
    with pytest.raises(Killed):
        fit("c.yaml", run_dir="begun", init_from="old", listener=stop)
    before, after = (load(run) for run in ("old", "begun/last"))
    assert after.labels[:2] == before.labels
    assert len(after.labels) == 2 + new
    sequences = series(20, 1) if old == "series" else [text for text, _ in rows(20, seed=1)]
    if old != "series":
        sequences += ["stays level today 1", "rise today", "today fall 2 level"]
    found, expected = (odds(run, sequences, before.labels) for run in ("begun/last", "old"))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def write_steps(path: Path, events: str, places: str) -> None:
    """Write a step table; with more tokens, the vectors of their columns are wider."""
    lines = ["id,event,value,place,floor,label"]
    for number in range(40):
        place, label = places[number % len(places)], "up" if number % 3 else "down"
        for step in range(3):
            event = events[(number + step) % len(events)]
            lines.append(f"{number},{event},{step},{place},{number % 7},{label}")
    path.write_text("\n".join(lines) + "\n")


def test_a_new_token_of_a_column_counts_as_the_unknown_one_did(project, monkeypatch):
    """Of a step, and of a row feature."""

    def stop(event: Event) -> None:
        if isinstance(event, StartEvent):
            raise Killed

    columns = {
        "steps": {"event": "token", "value": "number"},
        "static": {"place": "token", "floor": "number"},
    }
    data = {"train": "train.csv", "id": "id", "label": "label", **columns}
    config = {
        "data": data,
        "model": {"embedding_dim": 4, "hidden_size": 4},
        "training": {"max_epochs": 3, "lr": 0.05, "calibration": "none"},
    }
    write_steps(Path("train.csv"), "abc", "xy")
    fit(config, run_dir="old", progress=False)
    write_steps(Path("train.csv"), "abcdefgh", "xyzuvw")
    with pytest.raises(Killed):
        fit(config, run_dir="begun", init_from="old", listener=stop, progress=False)
    tables = load_model(Path("begun/last")).preprocessing
    assert len(tables.steps.vocabularies[0]) == 2 + len("abcdefgh")
    assert len(tables.row_features.vocabularies[0]) == 2 + len("xyzuvw")
    found, expected = (
        [row.shares for row in predict("train.csv", run)] for run in ("begun/last", "old")
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_was_kept_is_said_and_remembered(old, project, cli):
    write(project, old, new=True)
    ended = cli("fit", "c.yaml", "--run-dir", "new", "--init-from", "old")
    tokens = len(load_model(Path("old/best")).preprocessing.vocabulary or ())
    assert f"kept 2 labels, {tokens:,} tokens" in ended.err
    assert re.search("added 1 label, [0-9]+ tokens", ended.err)
    cli("fit", "c.yaml", "--run-dir", "newer", "--init-from", "new", "-q")
    lineage = environment("newer")["lineage"]
    assert [entry["run"] for entry in lineage] == ["new"]
    weights = json.loads(Path("new/best/manifest.json").read_text())["sha256"]
    assert lineage[0]["weights_sha256"] == weights["model.safetensors"]
    assert "lineage" not in environment("old")
    # Held-out rows are encoded as the run did, not with another vocabulary.
    scores = cli("eval", "newer", "--split", "validation", "--json").json
    best: Any = [line for line in metrics("newer") if line.get("best")][-1]["validation"]
    assert scores["accuracy"] == best["accuracy"]


def environment(run: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(Path(run, "environment.json").read_text())
    return values


def test_going_on_needs_the_old_model_no_more(old, project, cli):
    write(project, old, new=True)
    begin = ("fit", "c.yaml", "--quiet", "--init-from", "old", "--run-dir")
    cli(*begin, "whole", "--set", "training.max_epochs=2")
    cli(*begin, "parts")
    shutil.rmtree("old")
    more = ("--resume", "--set", "training.max_epochs=2")
    cli("fit", "c.yaml", "--quiet", "--run-dir", "parts", *more)
    shutil.copy("parts/config.yaml", "whole/config.yaml")
    for run in ("whole", "parts"):
        Path(run, "test.json").write_text("")
    assert_same_run("whole", "parts")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--set", "model.hidden_size=5"), "model.hidden_size: found 5, but old has 4"),
        (("--set", "data.lowercase=false"), "data.lowercase: found false, but old has true"),
        (("--set", "training.refit=true"), "training.refit: found true, which starts with new"),
        (("--resume",), "--init-from and --resume exclude each other"),
    ],
)
def test_refusals(old, cli, given, said):
    ended = cli("fit", "c.yaml", "--run-dir", "new", "--init-from", "old", *given, code=2)
    assert said in ended.err
    assert not Path("new").exists()
