"""Lines that a run says about what was chosen: missing classes, no refit."""

from pathlib import Path

import numpy as np
import pytest

import seqtrain
from seqtrain.sklearn import SequenceClassifier
from tests.helpers.tiny import rows, write_table

KEYS = {
    "batching": {"batch_size": 16},
    "model": {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0},
}


def config(training: dict[str, object], validation: object = 0.3) -> dict[str, object]:
    data = {"train": "train.tsv", "validation": validation, "sequence": "text", "label": "label"}
    return {**KEYS, "data": data, "training": {"max_epochs": 2, "lr": 0.03, **training}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_class_without_held_out_rows_is_said() -> None:
    examples = rows(60, seed=1)
    write_table(Path("train.tsv"), [*examples, ("very odd", "odd")])
    write_table(Path("held.tsv"), examples[:20])
    run = seqtrain.fit(config({}, "held.tsv"), run_dir="r", progress=False)
    assert any("odd" in line and "macro F1" in line for line in run.warnings)


def test_class_weights_name_labels_by_value_and_the_history_is_of_training() -> None:
    texts = ["up up", "down down"] * 20
    keys = {"embedding_dim": 4, "hidden_size": 4, "max_epochs": 2}
    settings = {"pretraining.objective": "language_model", "pretraining.max_epochs": 3}
    fitted = SequenceClassifier(class_weight={0: 1, 1: 3}, settings=settings, **keys)
    fitted.fit(texts, np.array([0.0, 1.0] * 20))
    assert [row["epoch"] for row in fitted.history_] == [1, 2]
