"""The contract of a branch, for every entry of BRANCHES: it learns, by weights, row by row.

A new branch needs an entry in TASKS and, unless it is refused there, is exported.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.sparse import issparse
from torch import Tensor

from seqtrain.config import resolved_config
from seqtrain.errors import ConfigError
from seqtrain.evaluation.calibration import Calibration
from seqtrain.exports.export_folder import export_model
from seqtrain.model.branches import BRANCHES
from seqtrain.model.branches.solved import SolvedBranch
from seqtrain.model.network import ClassifierNetwork
from seqtrain.runs.model_folder import Model, pack_model, unpack_model
from seqtrain.sequences.batch import Batch, collate
from seqtrain.sequences.dataset import PreparedData, prepare
from seqtrain.tables.blocks import Array
from seqtrain.training.phases import run_phases
from seqtrain.training.trainer import Trainer
from tests.helpers.encoder_folders import write_encoder
from tests.helpers.tiny import WORDS, rows, series, write_npz, write_table

CPU = torch.device("cpu")


def write_texts() -> None:
    for name, count in (("train", 120), ("test", 60)):
        write_table(Path(f"{name}.tsv"), rows(count, seed=count))


def write_texts_and_encoder() -> None:
    pytest.importorskip("transformers")
    write_texts()
    write_encoder(Path("encoder"), [*WORDS["down"], *WORDS["up"], "the"])


def write_series() -> None:
    """Write series of two channels whose level tells the class."""
    for name, count in (("train", 120), ("test", 60)):
        labels = np.arange(count) % 2
        given = [row + label for row, label in zip(series(count, count), labels, strict=True)]
        write_npz(Path(f"{name}.npz"), given, [f"level {label}" for label in labels])


TEXTS = {"train": "train.tsv", "test": "test.tsv", "sequence": "text", "label": "label"}
SERIES = {"train": "train.npz", "test": "test.npz", "kind": "features"}


@dataclass(frozen=True)
class Task:
    """Data and settings of a branch.

    Attributes:
        write: Function that writes the data.
        data: Section data.
        model: Section model.
        tolerance: Largest difference of a logit between a weight of 2 and the row twice.
        is_exported: False if the branch can't be exported.
    """

    write: Callable[[], None]
    data: dict[str, Any]
    model: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-6
    is_exported: bool = True


TASKS = {
    "recurrent": Task(write_texts, TEXTS),
    "ngrams": Task(write_texts, TEXTS, {"ngrams": [1, 2]}, tolerance=1e-4),
    "kernels": Task(write_series, SERIES, {"kernels": True}),
    "trees": Task(write_series, SERIES, {"trees": True}),
    "pretrained": Task(
        write_texts_and_encoder,
        TEXTS,
        {"pretrained": "encoder"},
        tolerance=1e-4,
        is_exported=False,
    ),
}
every_branch = pytest.mark.parametrize("name", [branch.name for branch in BRANCHES])


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Trainer]]:
    return {}


@pytest.fixture
def trained(
    request: pytest.FixtureRequest,
    folders: dict[str, tuple[Path, Trainer]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Trainer:
    """Return a run with a branch to its end, trained once. Its data are in the current folder."""
    name: str = request.getfixturevalue("name")
    folder, trainer = folders.get(name, (tmp_path_factory.mktemp(name), None))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SEQTRAIN_CACHE", str(folder))
    if trainer is None:
        TASKS[name].write()
        trainer = begun(name, prepare(resolved_config(config_of(name))))
        for _ in run_phases(trainer):
            pass
        folders[name] = folder, trainer
    return trainer


def config_of(name: str, batch_size: int = 8, **training: Any) -> dict[str, Any]:
    small = {"embedding_dim": 8, "hidden_size": 8, "dropout": 0.0, "embedding_dropout": 0.0}
    settings = {"max_epochs": 12, "lr": 0.02, "device": "cpu", **training}
    task = TASKS[name]
    return {
        "data": task.data,
        "batching": {"batch_size": batch_size},
        "model": {**small, **task.model},
        "training": settings,
    }


def begun(name: str, data: PreparedData, **settings: Any) -> Trainer:
    return Trainer(resolved_config(config_of(name, **settings)), data, CPU)


def logits(network: ClassifierNetwork, name: str, batch: Batch) -> Tensor:
    """Return the logits of one branch in the order of the batch's examples, (B, C) float64."""
    with torch.inference_mode():
        (found,) = network.eval().branch_logits(batch, names=[name])
    return batch.restore(found).double()


@every_branch
def test_a_branch_learns_what_the_prior_does_not_know(name, trained):
    trainer = trained
    scores = trained.result.branches.get(name, trained.result.test)
    assert scores.accuracy >= 0.8
    assert scores.loss < np.log(2) / 2
    test = collate(trainer.data.splits["test"])
    before = new_network(trainer)
    assert not torch.allclose(logits(trainer.network, name, test), logits(before, name, test))


def new_network(trainer: Trainer) -> ClassifierNetwork:
    """Return a network of the same shapes that learned nothing."""
    network = unpack_model(pack_model(model_of(trainer))).network
    network.initialize(seed=0)
    return network


def model_of(trainer: Trainer) -> Model:
    return Model(trainer.network, trainer.data.preprocessing, trainer.calibration)


@every_branch
def test_logits_are_those_of_single_rows_whatever_stands_in_the_padding(name, trained):
    network, store = trained.network, trained.data.splits["test"]
    single = [collate(store.selection(np.array([row]))) for row in range(len(store))]
    expected = torch.cat([logits(network, name, batch) for batch in single])
    assert expected.std(0).max() > 0.01, "the rows must be told apart"
    padded = collate(store, "module")
    beyond = torch.arange(padded.inputs.shape[1]) >= padded.lengths.unsqueeze(1)
    inputs = padded.inputs.clone()
    inputs[beyond] = 3
    for batch in (collate(store), padded, replace(padded, inputs=inputs)):
        torch.testing.assert_close(logits(network, name, batch), expected, rtol=0, atol=1e-5)


@every_branch
def test_a_weight_of_2_is_the_row_twice_and_0_no_row(name, trained):
    """Each row is there with both labels, so that only the weights tell the classes apart."""
    data = trained.data
    once = data.splits["train"].selection(np.arange(40))
    both = once.selection(np.arange(len(once)).repeat(2))
    labels = np.arange(len(both)) % 2
    both = replace(both, labels=labels, groups=None)

    def learned(rows: Array, weights: Array | None = None) -> Trainer:
        store = replace(both.selection(rows), weights=weights)
        # All rows are one batch, and steps of SGD are as long as the gradient.
        settings = {"batch_size": 1000, "optimizer": "sgd", "max_grad_norm": None}
        settings |= {"max_epochs": 20, "lr": 0.5, "patience": None}
        own = begun(name, replace(data, splits={"train": store}), **settings)
        for _ in run_phases(own, finish=False):
            pass
        return own

    every, batch = np.arange(len(both)), collate(once)
    plain, heavy, twice = (
        logits(learned(*given).network, name, batch)
        for given in (
            (every,),
            (every, (labels + 1).astype(np.float32)),
            (every.repeat(labels + 1),),
        )
    )
    gained = (heavy - plain) @ torch.tensor([-1.0, 1.0], dtype=torch.float64)
    assert gained.mean() > 0.5
    torch.testing.assert_close(heavy, twice, rtol=0, atol=TASKS[name].tolerance)

    kept = every[labels == (every // 2) % 3 // 2]
    absent = learned(every, np.isin(every, kept).astype(np.float32)).network.state_dict()
    for key, tensor in learned(kept).network.state_dict().items():
        assert torch.equal(tensor, absent[key]), key


@every_branch
def test_a_saved_model_has_the_same_bits(name, trained):
    found = unpack_model(pack_model(model_of(trained)))
    assert found.calibration == trained.calibration
    expected = trained.network.state_dict()
    assert found.network.state_dict().keys() == expected.keys()
    for key, tensor in found.network.state_dict().items():
        assert torch.equal(tensor, expected[key]), key


@every_branch
def test_an_exported_model_predicts_the_same(name, trained, tmp_path):
    """By this branch alone."""
    model = unpack_model(pack_model(model_of(trained)))
    shares = [float(each == name) for each in model.network.branch_names]
    model = model.calibrated(Calibration(branch_weights=shares))
    if not TASKS[name].is_exported:
        with pytest.raises(ConfigError):
            export_model(model, tmp_path / "exported")
        return
    assert export_model(model, tmp_path / "exported").difference < 1e-5


Arrays = dict[str, npt.NDArray[np.float64]]


def by_gru(arrays: Arrays, steps: Array) -> Array:
    """Return the logits of one sequence of ids by the formulas of a GRU."""
    width = arrays["encoder.weight_hh_l0"].shape[1]
    state = np.zeros(width)
    for vector in arrays["embedding.weight"][steps]:
        given = arrays["encoder.weight_ih_l0"] @ vector + arrays["encoder.bias_ih_l0"]
        before = arrays["encoder.weight_hh_l0"] @ state + arrays["encoder.bias_hh_l0"]
        reset, update = 1 / (1 + np.exp(-(given + before)[: 2 * width].reshape(2, width)))
        new = np.tanh(given[2 * width :] + reset * before[2 * width :])
        state = (1 - update) * new + update * state
    return arrays["head.weight"] @ state + arrays["head.bias"]


def by_trees(arrays: Arrays, features: Array) -> Array:
    """Return the logits of one row by walking down each tree."""
    found = arrays["start"].copy()
    for number, label in np.ndindex(int(arrays["rounds"][0]), len(found)):
        node, splits = 0, arrays["cut"].shape[2]
        while node < splits:
            value = features[int(arrays["column"][number, label, node])]
            node = 2 * node + 1 + int(value > arrays["cut"][number, label, node])
        found[label] += arrays["leaf"][number, label, node - splits]
    return found


def by_product(arrays: Arrays, features: Array) -> Array:
    return features @ arrays["weight"] + arrays["intercept"]


@every_branch
def test_logits_are_those_of_the_saved_arrays_in_numpy(name, trained):
    """In double precision, from the features of a solved branch."""
    store = trained.data.splits["test"]
    branch = trained.network.get_submodule(name)
    arrays = {key: np.float64(tensor.numpy()) for key, tensor in branch.state_dict().items()}
    if isinstance(branch, SolvedBranch):
        features = branch.features(store)
        inputs = np.float64(features.toarray() if issparse(features) else features)
    else:
        inputs = [store[row][0] for row in range(len(store))]
    forward = {"recurrent": by_gru, "trees": by_trees}.get(name, by_product)
    expected = np.stack([forward(arrays, given) for given in inputs])
    found = logits(trained.network, name, collate(store)).numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
