"""The model folder: torch's names, exact round trip, and refusal of what no run wrote."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from seqtrain.errors import CheckpointError
from seqtrain.files.writing import blocks_of, write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files
from seqtrain.sequences.vocabulary import Vocabulary
from tests.helpers.small_models import NGRAMS, PARTS, make_model

WEIGHTS = "model.safetensors"
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "text": ("text", {"vocabulary": Vocabulary(("<pad>", "<unk>", "a", "é\u2028"))}, {}),
    "lstm": ("tokens", {}, {"rnn": "lstm", "bidirectional": True, "num_layers": 2}),
    "features": ("features", {}, {"rnn": "rnn", "pooling": "attention"}),
    **PARTS,
}
BRANCHES = make_model("text", {"subwords": (2, 4), "ngrams": NGRAMS}, subwords=[2, 4],
                      ngrams=[1, 3], convolutions=[[4, 3, 2]])  # fmt: skip


def files_of(model: Model) -> dict[str, bytes]:
    return {name: b"".join(blocks_of(content)) for name, content in model_files(model).items()}


@pytest.fixture
def files() -> dict[str, bytes]:
    """The files of a small model of text."""
    return files_of(make_model())


@pytest.fixture
def refused(tmp_path) -> Callable[[dict[str, bytes]], str]:
    """Write a folder, digests and all, as a forger would; return the one line that refuses it."""

    def load(files: dict[str, bytes]) -> str:
        write_folder(tmp_path / "best", files)
        with pytest.raises(CheckpointError) as error:
            load_model(tmp_path / "best")
        (line,) = str(error.value).splitlines()
        assert str(tmp_path / "best") in line
        return line

    return load


@pytest.mark.parametrize("case", KINDS)
def test_round_trip_is_exact(tmp_path, case):
    kind, rules, settings = KINDS[case]
    model = make_model(kind, rules, **settings)
    write_folder(tmp_path / "best", model_files(model))
    loaded = load_model(tmp_path / "best")
    assert loaded.preprocessing == model.preprocessing
    assert loaded.network.config == model.network.config
    before, after = model.network.state_dict(), loaded.network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not loaded.network.training


FORGED: dict[str, list[Any]] = {
    "format_version": [1, 99, True],
    "architecture": [None, 3, [], {}],
    "architecture/rnn": ["os.system"],
    "architecture/_target_": ["os.system"],
    "architecture/hidden_size": [10**9, 6],
    "architecture/pooling": [["max", 3], ["last", "last"]],
    "architecture/ngrams": [[1, 2]],
    "architecture/subwords": [[1, 16]],
    "architecture/convolutions": [[[4, 3]]],
    "preprocessing": [None, 3, [], {}],
    "preprocessing/label_set/classes": [
        *([], ["yes"], ["a", "b"], ["yes", "yes", "no"], [1, 2, 3], [[1], [2], [3]]),
        *("yn?", {"a": 0, "b": 1, "c": 2}, ["\ud800", "yes", "no"]),
    ],
    "preprocessing/label_set": [None, [], {}, ["no", "yes", "or"]],
    "preprocessing/label_set/multi_label": [None, 1, True],
    "preprocessing/label_set/separator": ["|", 1],
    "preprocessing/sequence": [None, [], {}],
    "preprocessing/sequence/kind": ["audio", "features", "steps", "tokens", None],
    "preprocessing/sequence/tokenizer_name": ["regex", "bpe", None, ["word"]],
    "preprocessing/sequence/bpe_model": ["{}", 1],
    "preprocessing/row_features": [{}, [], 3],
    "kernels": [[3, 20, 40], "3"],
    "preprocessing/schema/format": ["pickle", "auto", "table"],
    "preprocessing/schema/by_name": ["no"],
    "preprocessing/schema/decimal": [";"],
    "preprocessing/schema": [None],
    "preprocessing/schema/kind": ["audio", "auto", "features"],
    "preprocessing/schema/sequence": [[[1]]],
    "preprocessing/schema/label": [["a", "b"], []],
    "preprocessing/schema/one_hot": [5, "x", [], [1.5], ["a", "b"]],
    "preprocessing/schema/order_type": ["size"],
    "preprocessing/schema/bad_rows": ["blank"],
    "preprocessing/lengths/overlong": ["all"],
    "preprocessing/lengths/max_length": ["5", 0],
    "preprocessing/sequence/lowercase": ["yes", 1],
    "calibration/temperature": [0.0, "1", float("nan")],
    "calibration/shift": [[0.0], ["0", "0"], [float("inf")] * 2],
    "calibration/coverage": [[{"coverage": 2.0, "min_probability": 0.5, "accuracy": 0.5}]],
    "calibration/function": ["os.system"],
}
OF_BRANCHES: dict[str, list[Any]] = {
    "preprocessing/sequence/subwords": [[4, 2], [3], "24", None, [2, 10**9], [2, 4.0]],
    "preprocessing/sequence/subword_rows": [0, 64, 2**16, "64", None],
    "architecture/ngrams": [None, [4, 3], ["1", 3], {"text": [1, 2]}],
    "architecture/max_ngrams": [2**62, "12"],
    "architecture/subwords": [None],
    "architecture/convolutions": [None, [[4, 2, 2]]],
}
OF_FEATURES: dict[str, list[Any]] = {
    "preprocessing/sequence/numbers/0/scale/std": [[0.0], [1.0, 1.0], None, ["os.system"]],
    "preprocessing/sequence/numbers/0/scale/mean": [["a"], [float("nan")], [[1.0]], []],
    "preprocessing/sequence/numbers": [[], None, ["channel 1"]],
    "preprocessing/sequence/missing": ["drop", True, None],
    "preprocessing/sequence/standardize": ["none", None],
    "architecture/ngrams": [[1, 3]],
}


def changed(content: bytes, path: str, value: Any) -> bytes:
    values = json.loads(content)
    *keys, last = path.split("/")
    inner = values
    for key in keys:
        inner = inner[int(key) if isinstance(inner, list) else key]
    inner[last] = value
    return json.dumps(values).encode()


@pytest.mark.parametrize(
    ("model", "forged"),
    [(make_model(), FORGED), (BRANCHES, OF_BRANCHES), (make_model("features"), OF_FEATURES)],
    ids=["text", "branches", "features"],
)
def test_forged_description_is_refused(refused, model, forged):
    files = files_of(model)
    for path, values in forged.items():
        for value in values:
            refused(files | {"model.json": changed(files["model.json"], path, value)})


@pytest.mark.parametrize(
    "tokens",
    [[], ["a", "b", "c", "d"], ["<pad>", "<unk>", "a", "a"], ["<pad>", "<unk>", 1, 2], {"a": 2}, 3],
)
def test_forged_vocabulary_is_refused(files, refused, tokens):
    refused(files | {"vocabulary.json": json.dumps({"tokens": tokens}).encode()})


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": np.r_[0, np.arange(11)]},
        {"idf": np.full(12, np.nan, np.float32)},
        {"idf": np.ones(12)},
        {"idf": np.ones(11, np.float32)},
        {"more": np.ones(1)},
    ],
)
def test_forged_ngrams_are_refused(refused, wrong):
    files = files_of(BRANCHES)
    arrays = safetensors.numpy.load(files["ngrams.safetensors"])
    refused(files | {"ngrams.safetensors": safetensors.numpy.save(arrays | wrong)})


def test_a_long_name_in_a_header_is_cut(files, refused):
    header = json.dumps({"x" * 10_000: {"dtype": "F9", "shape": [], "data_offsets": [0, 0]}})
    content = len(header).to_bytes(8, "little") + header.encode()
    assert len(refused(files | {WEIGHTS: content})) < 300


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("head.bias", torch.zeros(1)),
        ("head.bias", torch.full((3,), torch.nan)),
        ("head.bias", torch.zeros(3).half()),
        ("head.bias", None),
        ("head.extra", torch.zeros(1)),
    ],
)
def test_wrong_tensor_is_named(files, refused, name, tensor):
    weights = safetensors.torch.load(files[WEIGHTS])
    weights.pop(name, None)
    weights |= {} if tensor is None else {name: tensor}
    assert f"tensor {name}: " in refused(files | {WEIGHTS: safetensors.torch.save(weights)})
