"""Parts of a model in its folder: saved and read to the bit; what can't be is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.data.batch import collate
from seqtrain.data.encoding import LengthPolicy
from seqtrain.data.examples import Example
from seqtrain.data.ngram_vocabulary import fit_ngrams
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.vocabulary import Vocabulary
from seqtrain.errors import CheckpointError
from seqtrain.files.folder import write_folder
from seqtrain.runs.model_folder import Model, load_model, model_files, new_network

PARTS = {"ngrams": [1, 2], "subwords": [3, 4], "convolutions": [[4, 3, 2]]}


def make_model(*, features: bool = False, standardize: str = "train", **keys: Any) -> Model:
    ids = np.array([2, 3, 2, 3, 2], dtype=np.int32)
    ngrams = fit_ngrams(ids, np.array([0, 3, 5]), shortest=1, longest=2, most=5)
    preprocessing = Preprocessing(
        reading=ReadOptions(
            format="jsonl", kind="features" if features else "text", sequence="s", label="l"
        ),
        tokenizer="word",
        lowercase=True,
        bpe_model=None,
        lengths=LengthPolicy(None, "head", "error"),
        missing="error",
        labels=("no", "yes"),
        vocabulary=None if features else Vocabulary(("<pad>", "<unk>", "care", "cares")),
        mean=(0.5, 1.0) if features else (),
        std=(1.0, 2.0) if features else (),
        standardize=standardize,
        subwords=(3, 4) if "subwords" in keys else None,
        ngrams=ngrams if "ngrams" in keys else None,
    )
    network = new_network(ModelConfig(embedding_dim=3, hidden_size=5, **keys), preprocessing)
    network.initialize(seed=0)
    for name, tensor in network.state_dict().items():
        if name.startswith("ngrams"):
            tensor.normal_()
    return Model(network, preprocessing)


def answers(model: Model, sequences: list[Any]) -> torch.Tensor:
    examples = [Example(sequence, None, i) for i, sequence in enumerate(sequences, start=1)]
    store, _ = model.preprocessing.encode(examples, "x")
    batch = collate(store)
    with torch.inference_mode():
        found: torch.Tensor = model.network.eval()(batch.packed, spellings=batch.spellings)
    return found


def save(folder: Path, model: Model, **files: bytes) -> Path:
    write_folder(folder, {**model_files(model), **files})
    return folder


def test_text_parts_are_read_to_the_bit(tmp_path: Path) -> None:
    model = make_model(**PARTS)
    loaded = load_model(save(tmp_path / "best", model))
    assert loaded.preprocessing == model.preprocessing
    texts = ["care cares care", "careless", "cares"]
    assert torch.equal(answers(loaded, texts), answers(model, texts))


@pytest.mark.parametrize("standardize", ["train", "series", "both"])
def test_series_parts_are_read_to_the_bit(tmp_path: Path, standardize: str) -> None:
    model = make_model(features=True, standardize=standardize, convolutions=[[4, 3, 2]])
    loaded = load_model(save(tmp_path / "best", model))
    series = [np.random.default_rng(i).normal(size=(9, 2)).astype(np.float32) for i in range(3)]
    assert torch.equal(answers(loaded, series), answers(model, series))


def test_a_folder_of_before_has_no_parts(tmp_path: Path) -> None:
    files = model_files(make_model())
    description = json.loads(files["model.json"])
    for name in ("ngrams", "subwords", "standardize"):
        del description["preprocessing"][name]
    for name in ("ngrams", "max_ngrams", "subwords", "convolutions"):
        del description["architecture"][name]
    files["model.json"] = json.dumps(description).encode()
    write_folder(tmp_path / "best", files)
    assert load_model(tmp_path / "best").network.ngrams is None


def edited(model: Model, section: str, key: str, value: Any) -> bytes:
    description = json.loads(model_files(model)["model.json"])
    description[section][key] = value
    return json.dumps(description).encode()


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("preprocessing", "ngrams", None),
        ("preprocessing", "ngrams", {"shortest": 1, "longest": 2, "number": 4}),
        ("preprocessing", "ngrams", {"shortest": 1, "longest": 2, "number": 2**62}),
        ("preprocessing", "ngrams", {"shortest": 1, "longest": 3, "number": 5}),
        ("preprocessing", "ngrams", {"shortest": "1", "longest": 2, "number": 5}),
        ("preprocessing", "ngrams", {"longest": 2, "number": 5}),
        ("preprocessing", "ngrams", [1, 2, 5]),
        ("preprocessing", "subwords", [4, 3]),
        ("preprocessing", "subwords", [3]),
        ("preprocessing", "subwords", "34"),
        ("preprocessing", "subwords", None),
        ("preprocessing", "subwords", [3, 10**9]),
        ("preprocessing", "standardize", "series"),
        ("architecture", "ngrams", None),
        ("architecture", "subwords", [1, 16]),
        ("architecture", "convolutions", [[4, 3]]),
        ("architecture", "convolutions", None),
        ("architecture", "pooling", ["max", "last"]),
        ("architecture", "pooling", ["max", 3]),
        ("architecture", "pooling", ["last", "last"]),
        ("architecture", "convolutions", [[4, 2, 2]]),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(
    tmp_path: Path, section: str, key: str, value: Any
) -> None:
    model = make_model(**PARTS)
    changed = {"model.json": edited(model, section, key, value)}
    with pytest.raises(CheckpointError):
        load_model(save(tmp_path / "best", model, **changed))


@pytest.mark.parametrize(
    "arrays",
    [
        {"keys": np.array([1, 2, 3, 4, 4]), "idf": np.ones(5, np.float32)},
        {"keys": np.arange(5), "idf": np.full(5, np.nan, np.float32)},
        {"keys": np.arange(5), "idf": np.ones(5)},
        {"keys": np.arange(5), "idf": np.ones(4, np.float32)},
        {"keys": np.arange(5)},
        {"keys": np.arange(5), "idf": np.ones(5, np.float32), "more": np.ones(1)},
    ],
)
def test_ngrams_that_cannot_be_are_refused(tmp_path: Path, arrays: dict[str, Any]) -> None:
    model = make_model(**PARTS)
    changed = {"ngrams.safetensors": safetensors.numpy.save(arrays)}
    with pytest.raises(CheckpointError):
        load_model(save(tmp_path / "best", model, **changed))
