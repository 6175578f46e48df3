"""The model folder: torch's names, exact round trip, and refusal of what nobody's fit wrote."""

from __future__ import annotations

import gzip
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.vocabulary import Vocabulary
from seqtrain.errors import CheckpointError
from seqtrain.files.folder import write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files, new_network

FILES = ["model.safetensors", "model.json", "vocabulary.json"]


def read_files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def make_model(kind: str = "text", **settings: Any) -> Model:
    """Return an untrained model of two labels."""
    features = kind == "features"
    preprocessing = Preprocessing(
        reading=ReadOptions(format="jsonl", kind=kind, sequence="s", label="l"),
        tokenizer="word",
        lowercase=True,
        bpe_model=None,
        lengths=LengthPolicy(None, "head", "error"),
        missing="error",
        labels=("no", "yes"),
        vocabulary=None if features else Vocabulary(("<pad>", "<unk>", "a", "é\u2028")),
        mean=(0.5, 1.0) if features else (),
        std=(1.0, 2.0) if features else (),
    )
    config = ModelConfig(embedding_dim=3, hidden_size=5, **settings)
    network = new_network(config, preprocessing)
    network.initialize(seed=0)
    return Model(network, preprocessing)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "best", model_files(make_model()))
    return tmp_path / "best"


@pytest.mark.parametrize("kind", ["text", "tokens", "features"])
@pytest.mark.parametrize("rnn", ["gru", "lstm", "rnn"])
@pytest.mark.parametrize("pooling", ["last", "attention"])
def test_round_trip_is_exact(tmp_path: Path, kind: str, rnn: str, pooling: str) -> None:
    model = make_model(kind, rnn=rnn, pooling=pooling, bidirectional=True, num_layers=2)
    write_folder(tmp_path / "best", model_files(model))
    loaded = load_model(tmp_path / "best")
    assert loaded.preprocessing == model.preprocessing
    assert loaded.network.config == model.network.config
    before, after = model.network.state_dict(), loaded.network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not loaded.network.training


def test_weights_have_torchs_names(folder: Path) -> None:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    names = {f"encoder.{kind}_{part}_l0" for kind in ("weight", "bias") for part in ("ih", "hh")}
    assert weights.keys() == {"embedding.weight", "head.weight", "head.bias", *names}


def rewrite(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change the JSON of a file, digest and all, as a forger would."""
    files = read_files(folder)
    values = json.loads(files[name])
    files[name] = json.dumps(change(values) or values).encode()
    write_folder(folder, files)


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        *keys, last = path.split("/")
        for key in keys:
            values = values[key]
        values[last] = value

    return change


FORGED: dict[str, Callable[[Any], Any]] = {
    "another version": _set("format_version", 99),
    "no object": lambda values: [1],
    "no architecture": lambda values: {"format_version": 1},
    "unknown cell": _set("architecture/rnn", "os.system"),
    "unknown key": _set("architecture/_target_", "os.system"),
    "huge": _set("architecture/hidden_size", 10**9),
    "another size": _set("architecture/hidden_size", 6),
    "no labels": _set("preprocessing/labels", []),
    "one label": _set("preprocessing/labels", ["yes"]),
    "more labels": _set("preprocessing/labels", ["a", "b", "c"]),
    "equal labels": _set("preprocessing/labels", ["yes", "yes"]),
    "labels are numbers": _set("preprocessing/labels", [1, 2]),
    "labels are lists": _set("preprocessing/labels", [[1], [2]]),
    "labels are a text": _set("preprocessing/labels", "yn"),
    "labels are an object": _set("preprocessing/labels", {"yes": 0, "no": 1}),
    "lone surrogate": _set("preprocessing/labels", ["\ud800", "yes"]),
    "unknown tokenizer": _set("preprocessing/tokenizer", "regex"),
    "merges missing": _set("preprocessing/tokenizer", "bpe"),
    "merges broken": _set("preprocessing/bpe_model", "{}"),
    "unknown kind": _set("preprocessing/reading/kind", "audio"),
    "kind left open": _set("preprocessing/reading/kind", "auto"),
    "unknown format": _set("preprocessing/reading/format", "pickle"),
    "column is a list": _set("preprocessing/reading/sequence", [[1]]),
    "unknown part kept": _set("preprocessing/lengths/overlong", "all"),
    "length is text": _set("preprocessing/lengths/max_length", "5"),
    "length is below 1": _set("preprocessing/lengths/max_length", 0),
    "lower case is text": _set("preprocessing/lowercase", "yes"),
    "scales of text": _set("preprocessing/mean", [0.0, 1.0]),
    "scales are a word": _set("preprocessing/std", "os.system"),
    "unknown entry": _set("preprocessing/module", "os"),
    "no temperature": _set("calibration/temperature", 0.0),
    "temperature of text": _set("calibration/temperature", "1"),
    "temperature isn't a number": _set("calibration/temperature", float("nan")),
    "coverage above 1": _set(
        "calibration/coverage", [{"coverage": 2.0, "min_probability": 0.5, "accuracy": 0.5}]
    ),
    "calibration by code": _set("calibration/function", "os.system"),
    "no reading": _set("preprocessing/reading", None),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_description_is_refused(folder: Path, case: str) -> None:
    rewrite(folder, "model.json", FORGED[case])
    with pytest.raises(CheckpointError) as error:
        load_model(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        ["a", "b", "c", "d"],
        ["<pad>", "<unk>", "a", "a"],
        ["<pad>", "<unk>", 1, 2],
        {"<pad>": 0, "<unk>": 1, "a": 2, "b": 3},
        3,
    ],
)
def test_forged_vocabulary_is_refused(folder: Path, tokens: object) -> None:
    rewrite(folder, "vocabulary.json", lambda values: {"tokens": tokens})
    with pytest.raises(CheckpointError):
        load_model(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("std", [0.0, 1.0]), ("std", [1.0]), ("mean", ["a", "b"]), ("mean", [float("nan"), 1.0])],
)
def test_forged_scales_are_refused(tmp_path: Path, name: str, value: list[Any]) -> None:
    files = model_files(make_model("features"))
    values = json.loads(files["model.json"])
    values["preprocessing"][name] = value
    write_folder(tmp_path / "best", {**files, "model.json": json.dumps(values).encode()})
    with pytest.raises(CheckpointError):
        load_model(tmp_path / "best")


def _shorter(weights: dict[str, torch.Tensor]) -> None:
    weights["head.bias"] = weights["head.bias"][:1].clone()


def _not_finite(weights: dict[str, torch.Tensor]) -> None:
    weights["head.bias"][0] = float("nan")


def _half(weights: dict[str, torch.Tensor]) -> None:
    weights["head.bias"] = weights["head.bias"].half()


def _missing(weights: dict[str, torch.Tensor]) -> None:
    del weights["head.bias"]


def _extra(weights: dict[str, torch.Tensor]) -> None:
    weights["head.extra"] = torch.zeros(1)


@pytest.mark.parametrize("change", [_shorter, _not_finite, _half, _missing, _extra])
def test_wrong_tensor_is_named(
    folder: Path, change: Callable[[dict[str, torch.Tensor]], None]
) -> None:
    files = read_files(folder)
    weights = safetensors.torch.load(files["model.safetensors"])
    change(weights)
    write_folder(folder, {**files, "model.safetensors": safetensors.torch.save(weights)})
    with pytest.raises(CheckpointError, match=r"tensor head\.(bias|extra)"):
        load_model(folder)


def test_tensor_that_stands_twice_is_refused(folder: Path) -> None:
    files = read_files(folder)
    content = files["model.safetensors"]
    length = int.from_bytes(content[:8], "little")
    header, tensors = content[8 : 8 + length].rstrip(), content[8 + length :]
    entry = json.dumps({"head.bias": json.loads(header)["head.bias"]}).encode()[1:]
    header = header[:-1] + b", " + entry
    forged = len(header).to_bytes(8, "little") + header + tensors
    write_folder(folder, {**files, "model.safetensors": forged})
    assert safetensors.torch.load(forged).keys() == safetensors.torch.load(content).keys()
    with pytest.raises(CheckpointError, match=r"'head\.bias' twice"):
        load_model(folder)


def saved_by_torch(path: Path) -> bytes:
    torch.save({"head.bias": torch.zeros(3)}, path)
    return path.read_bytes()


def saved_by_tar(path: Path) -> bytes:
    with tarfile.open(path, "w") as archive:
        archive.add(__file__, "model.bin")
    return path.read_bytes()


FOREIGN: dict[str, Callable[[Path], bytes]] = {
    "a zip archive, as torch.save writes it": saved_by_torch,
    "a tar archive": saved_by_tar,
    "a gzip archive": lambda path: gzip.compress(b"weights"),
    "a pickle": lambda path: pickle.dumps({"head.bias": [0.0] * 300}),
}


@pytest.mark.parametrize("content", [b"", b"PK", b"\xff" * 64])
def test_what_is_no_safetensors_is_refused(folder: Path, content: bytes) -> None:
    write_folder(folder, {**read_files(folder), "model.safetensors": content})
    with pytest.raises(CheckpointError, match="safetensors"):
        load_model(folder)
