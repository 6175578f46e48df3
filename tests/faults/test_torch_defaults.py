"""A program that changed torch's default type or device: native code reads and writes its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import seqtrain

PROGRAM = """
import sys
import torch
import seqtrain

{before}
classifier = seqtrain.load(sys.argv[1])
{after}
texts = ["a good film", "a bad film", "good"] * 30
predictions = classifier.predict(texts)
print([(one.label, round(one.probability, 5)) for one in predictions])
"""

CHANGES = {
    "float16": "torch.set_default_dtype(torch.float16)",
    "bfloat16": "torch.set_default_dtype(torch.bfloat16)",
    "float64": "torch.set_default_dtype(torch.float64)",
    "meta": "torch.set_default_device('meta')",
    "nothing": "",
}


@pytest.fixture(scope="module", params=["gru", "lstm", "rnn"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small model of each cell."""
    folder = tmp_path_factory.mktemp("defaults")
    rows = ["text,label", *["a good film,pos", "a bad film,neg"] * 20]
    (folder / "train.csv").write_text("\n".join(rows) + "\n")
    seqtrain.fit(
        {
            "data": {"train": str(folder / "train.csv"), "sequence": "text", "label": "label"},
            "model": {
                "rnn": request.param,
                "embedding_dim": 24,
                "hidden_size": 24,
                "bidirectional": True,
            },
            "batching": {"batch_size": 8},
            "training": {"max_epochs": 1},
        },
        run_dir=folder / "run",
    )
    return folder / "run"


def predicted(model: Path, before: str, after: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, after=after), str(model)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-1000:] + run.stderr[-2000:]
    return run.stdout


@pytest.mark.parametrize("change", CHANGES)
def test_predicts_the_same_after_load(model: Path, change: str) -> None:
    assert predicted(model, "", CHANGES[change]) == predicted(model, "", "")
