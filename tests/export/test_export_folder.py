"""The exported folder: whole or not at all, checked against the run, golden rows for ports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from seqtrain.cli.main import run as run_program
from seqtrain.data.encoding import LengthPolicy
from seqtrain.errors import ConfigError, RunError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.export import script
from seqtrain.export.export_folder import export_model
from seqtrain.files.folder import write_folder
from seqtrain.runs.model_folder import Model, model_files
from tests.helpers.small_models import LABELS, WORDS, make_model

FILES = {
    *("model.onnx", "preprocessing.json", "vocabulary.json", "predict.py", "golden.jsonl"),
    *("manifest.json", "reading.zip"),
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def golden(port: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (port / "golden.jsonl").read_text("utf-8").split("\n")[:-1]
    ]


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the program beside a saved model in `run`; return its exit code, stdout and stderr."""
    write_folder(tmp_path / "run", model_files(make_model()))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            run_program(list(arguments))
        return int(str(ended.value.code)), *capsys.readouterr()

    return run


def test_command_writes_a_new_folder(cli: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = cli("export", "run", "new/port")
    assert (code, out) == (0, "")
    assert names(Path("new/port")) == FILES
    assert names(Path("new")) == {"port"}
    assert "golden rows: probabilities differ by" in err


def test_probabilities_are_calibrated(exported: Callable[[Model], Path]) -> None:
    """The export compares itself with the run; here the run's own answers have changed too."""
    plain = golden(exported(make_model()))
    folder = exported(make_model().calibrated(Calibration(temperature=3.0)))
    for row, before in zip(golden(folder), plain, strict=True):
        cooler = np.array(before["probabilities"]) ** (1 / 3)
        np.testing.assert_allclose(row["probabilities"], cooler / cooler.sum(), atol=1e-6)


def test_only_an_earlier_export_is_replaced(cli: Callable[..., tuple[int, str, str]]) -> None:
    Path("port").mkdir()
    assert cli("export", "run", "port")[0] == 0
    (Path("port") / "golden.jsonl").write_text("")
    code, _, err = cli("export", "run", "port")
    assert (code, err) == (
        2,
        "seqtrain: port: holds an export; replace it with --force, or choose another\n",
    )
    assert golden(Path("port")) == []
    assert cli("export", "run", "port", "--force")[0] == 0
    assert golden(Path("port"))
    (Path("port") / "thesis.tex").write_text("mine")
    code, _, err = cli("export", "run", "port", "--force")
    assert (code, err) == (
        2,
        "seqtrain: port: holds 'thesis.tex', which no export wrote; choose another\n",
    )
    assert names(Path("port")) == {*FILES, "thesis.tex"}
    (Path("file")).write_text("")
    assert "expected a folder" in cli("export", "run", "file", "--force")[2]


def test_a_missing_package_is_named(
    cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, _, err = cli("export", "run", "port")
    assert code == 2
    assert "needs the package onnxruntime; install it with: pip install 'seqtrain[export]'" in err
    assert not Path("port").exists()


def test_an_export_that_answers_differently_is_not_written(tmp_path: Path) -> None:
    model = make_model()
    model.network.head.register_forward_hook(lambda *given: given[2] * 1.001)
    with pytest.raises(RunError, match=r"probabilities differ by .* nothing was written"):
        export_model(model, tmp_path / "port")
    assert not names(tmp_path)


def test_a_carried_state_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="carried can't be exported"):
        export_model(make_model(initial_state="carried"), tmp_path / "port")
    assert not names(tmp_path)


def test_nothing_of_a_model_is_written_into_the_script(
    exported: Callable[[Model], Path], tmp_path: Path
) -> None:
    tokens = (*WORDS[:2], '"""', "\\", "'\n", "import os", "{0}", "\u2028")
    vocabulary = make_model().preprocessing.vocabulary
    assert vocabulary is not None
    odd = make_model("tokens", rules={"vocabulary": type(vocabulary)(tokens)})
    port = exported(odd)
    assert (port / "predict.py").read_bytes() == Path(script.__file__).read_bytes()
    assert json.loads((port / "vocabulary.json").read_text("utf-8")) == {"tokens": list(tokens)}
    rules = json.loads((port / "preprocessing.json").read_text("utf-8"))
    assert rules["labels"] == list(LABELS)


@pytest.mark.parametrize("kind", ["text", "tokens", "features"])
def test_golden_rows_test_a_port(kind: str, exported: Callable[[Model], Path]) -> None:
    rules = {"lengths": LengthPolicy(50, "middle", "unk"), "missing": "mask"}
    model = make_model(kind, rules=rules, rnn="lstm", bidirectional=True, pooling="mean")
    port = exported(model)
    rows = golden(port)
    name = "features" if kind == "features" else "input_ids"
    lengths = [len(row[name]) for row in rows]
    assert {1, 50} <= set(lengths)
    assert any(len(row["sequence"]) == 0 for row in rows)
    session = onnxruntime.InferenceSession(str(port / "model.onnx"))
    for row in rows:
        steps = np.array([row[name]], dtype=np.float32 if kind == "features" else np.int64)
        given = {name: steps, "lengths": np.array([steps.shape[1]])}
        (answers,) = session.run(None, given)[0]
        assert np.abs(answers - row["probabilities"]).max() < 1e-5
        assert row["label"] == LABELS[int(np.argmax(row["probabilities"]))]
    if kind != "features":
        assert any(1 in row["input_ids"] for row in rows)  # an unknown token
    with torch.inference_mode():
        inputs = torch.tensor([rows[3][name]])
        logits = model.network(inputs, torch.tensor([inputs.shape[1]])).double()
    assert np.abs(logits.softmax(1).numpy() - rows[3]["probabilities"]).max() < 1e-6


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (export_model(make_model(), tmp_path / name).folder for name in ("a", "b"))
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in FILES)
