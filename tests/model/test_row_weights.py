"""Weights of rows reach every solver: 2 is the row twice, and 0 is the row absent."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqtrain.config.schema import ModelConfig
from seqtrain.model.input_spec import InputSpec, KernelSizes
from seqtrain.model.network import ClassifierNetwork
from seqtrain.sequences.batch import collate
from seqtrain.sequences.ngram_vocabulary import ONLY, GramColumn, fit_ngrams
from seqtrain.sequences.store import SequenceStore
from tests.helpers.stores import store_of

KINDS = ["trees", "kernels", "ngrams"]


def pairs(kind: str, count: int = 60) -> SequenceStore:
    """Each sequence twice, once per class: only weights can tell the classes apart."""
    draws = np.random.default_rng(0)
    if kind == "ngrams":
        rows = [draws.integers(1, 9, 12) for _ in range(count)]
    else:
        rows = [draws.normal(size=(12, 1)) for _ in range(count)]
    return store_of([row for row in rows for _ in range(2)], [0, 1] * count)


def solved(
    kind: str, store: SequenceStore, weights: np.ndarray | None, rows: np.ndarray | None = None
) -> ClassifierNetwork:
    """A network with one solved branch, which learns from some rows; n-grams are those of all."""
    spec = InputSpec(9, 2)
    if kind == "ngrams":
        vocabulary = fit_ngrams(store.values, store.offsets, GramColumn(ONLY, 1, 2), most=50)
        spec = replace(spec, ngrams=vocabulary)
    else:
        spec = InputSpec(1, 2, features=True)
    if kind == "kernels":
        spec = replace(spec, kernels=KernelSizes(1, indicators=False, lengths=(12, 12, 12)))
    network = ClassifierNetwork(ModelConfig(trees=kind == "trees"), spec)
    network.initialize(seed=0)
    chosen = store if rows is None else store.__getitems__(rows)
    network.solve(chosen, weights, seed=0, num_train=len(store))
    return network.eval()


def probabilities(network: ClassifierNetwork, kind: str, store: SequenceStore) -> np.ndarray:
    (logits,) = network.branch_logits(collate(store), names=[kind])
    found: np.ndarray = logits.double().softmax(1).numpy()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_share_of_a_class_follows_the_weights(kind):
    store = pairs(kind)
    network = solved(kind, store, np.where(store.labels == 1, 20.0, 0.5))
    share = probabilities(network, kind, store)[:, 1]
    assert share.mean() == pytest.approx(20 / 20.5, abs=0.02)
    assert share.min() > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_weight_zero_is_absent(kind):
    """Also the other rows' own labels, which contradict them."""
    store = pairs(kind)
    rows = np.arange(len(store))
    kept = rows[store.labels == (rows // 2) % 2]
    weights = np.isin(rows, kept).astype(float)
    found = solved(kind, store, weights)
    expected = solved(kind, store, None, rows=kept)
    for name, tensor in found.state_dict().items():
        if name.startswith(f"{kind}."):
            assert torch.equal(tensor, expected.state_dict()[name])
