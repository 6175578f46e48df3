"""What can't fit into memory is refused with its size, before anything is written."""

import re
from pathlib import Path

import pytest

import seqtrain
from seqtrain.errors import SeqtrainError
from seqtrain.runs import memory

SMALL = {"hidden_size": 4, "embedding_dim": 4}


@pytest.mark.parametrize(
    ("kind", "keys", "available", "problem"),
    [
        ("tokens", {}, 10_000, "model.hidden_size: [0-9,]+ parameters"),
        ("text", {"subwords": [2, 4]}, 40_000, "model.hidden_size: [0-9,]+ parameters"),
        ("tokens", {"ngrams": [1, 3]}, 1_000_000, "model.max_ngrams: [0-9,]+ parameters"),
        ("tokens", {"trees": True}, 1_000_000, "model.trees: 201 rows of 100 classes"),
        ("tokens", {"num_layers": 2}, 150_000, "a.csv:202: a sequence of 900 steps"),
    ],
)
def test_what_needs_too_much_memory_is_named(monkeypatch, tmp_path, kind, keys, available, problem):
    monkeypatch.chdir(tmp_path)
    lines = ["label,text", *(f"l{n},a b c{n}" for n in range(100) for _ in range(2))]
    Path("a.csv").write_text("\n".join([*lines, "l1," + "a " * 900]))
    data = {"train": "a.csv", "kind": kind, "sequence": "text", "label": "label"}
    config = {"data": data, "model": SMALL | keys, "training": {"max_epochs": 1}}
    monkeypatch.setattr(memory, "physical_memory", lambda: available)
    with pytest.raises(SeqtrainError, match=f"^{problem} needs? about [0-9,]+ bytes") as caught:
        seqtrain.fit(config, run_dir="run", progress=False)
    assert not Path("run").exists()
    needed = int(re.findall(r"about ([0-9,]+) bytes", str(caught.value))[0].replace(",", ""))
    assert available < needed < 3 * available
