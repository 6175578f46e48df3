"""The exported folder: whole or not at all, checked against the run, golden rows for ports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from seqtrain.errors import ConfigError, RunError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.exports import script
from seqtrain.exports.export_folder import export_model
from seqtrain.sequences.lengths import LengthPolicy
from seqtrain.sequences.vocabulary import Vocabulary
from tests.helpers.small_models import LABELS, WORDS, make_model


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def golden(port: Path) -> list[dict[str, Any]]:
    lines = (port / "golden.jsonl").read_text("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines]


def test_what_predicts_otherwise_is_not_written(tmp_path):
    model = make_model()
    model.network.recurrent.head.register_forward_hook(
        lambda *given: None if torch.onnx.is_in_onnx_export() else given[2] * 1.001
    )
    with pytest.raises(RunError, match=r"probabilities differ"):
        export_model(model, tmp_path / "port")
    with pytest.raises(ConfigError, match="carried"):
        export_model(make_model(initial_state="carried"), tmp_path / "port")
    assert not names(tmp_path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mean", [(3e38, -3e38), (3.4e38, 0.0)])
def test_golden_rows_stay_within_the_range_of_float32(tmp_path, mean):
    model = make_model("features", rules={"mean": mean, "std": (3e38, 1e38)})
    steps = [step for row in golden(export_model(model, tmp_path / "port").folder)
             for step in row["sequence"]]  # fmt: skip
    assert np.abs(np.array(steps)).max() == pytest.approx(np.finfo(np.float32).max)


def test_probabilities_are_calibrated(tmp_path):
    """The export compares itself with the run; here the run's own predictions have changed too."""
    shift = [0.1, -2.0, 0.3][: len(LABELS)]
    cooler = make_model().calibrated(Calibration(temperature=3.0, shift=shift))
    plain = golden(export_model(make_model(), tmp_path / "plain").folder)
    for row, before in zip(
        golden(export_model(cooler, tmp_path / "cooler").folder), plain, strict=True
    ):
        expected = np.array(before["probabilities"]) ** (1 / 3) * np.exp(shift)
        np.testing.assert_allclose(row["probabilities"], expected / expected.sum(), atol=1e-6)


def test_nothing_of_a_model_is_written_into_the_script(tmp_path):
    tokens = (*WORDS[:2], '"""', "\\", "'\n", "import os", "{0}", "\u2028")
    odd = make_model("tokens", rules={"vocabulary": Vocabulary(tokens)})
    port, again = (export_model(odd, tmp_path / name).folder for name in ("port", "again"))
    assert (port / "predict.py").read_bytes() == Path(script.__file__).read_bytes()
    assert json.loads((port / "vocabulary.json").read_text("utf-8")) == {"tokens": list(tokens)}
    rules = json.loads((port / "preprocessing.json").read_text("utf-8"))["preprocessing"]
    assert rules["label_set"]["classes"] == [*LABELS]
    assert all((port / name).read_bytes() == (again / name).read_bytes() for name in names(port))


@pytest.mark.parametrize("kind", ["text", "tokens", "features"])
def test_golden_rows_test_a_port(kind, tmp_path):
    rules = {"lengths": LengthPolicy(50, "middle", "unk"), "missing": "mask"}
    model = make_model(kind, rules=rules, rnn="lstm", bidirectional=True, pooling="mean")
    port = export_model(model, tmp_path / "port").folder
    rows, name = golden(port), "features" if kind == "features" else "input_ids"
    assert {1, 50} <= {len(row[name]) for row in rows}
    assert any(len(row["sequence"]) == 0 for row in rows)
    assert kind == "features" or any(1 in row["input_ids"] for row in rows)  # an unknown token
    session = onnxruntime.InferenceSession(str(port / "model.onnx"))
    for row in rows:
        steps = np.array([row[name]], dtype=np.float32 if kind == "features" else np.int64)
        given = {name: steps, "lengths": np.array([steps.shape[1]])}
        (found,) = session.run(None, given)[0]
        assert np.abs(found - row["probabilities"]).max() < 1e-5
        assert row["label"] == LABELS[int(np.argmax(row["probabilities"]))]
