"""The estimator inside scikit-learn's tools that train, copy and combine estimators."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from seqtrain.sklearn import SequenceClassifier
from tests.helpers.tiny import rows

TEXTS, LABELS = zip(*rows(60, seed=1), strict=True)
DRAWN = np.random.default_rng(0)
STEEP = np.array([1.0 if label == "up" else -1.0 for label in LABELS])
GIVEN: dict[str, Any] = {
    "texts": np.array(TEXTS, dtype=object),
    "series": np.arange(5) * STEEP[:, None] + DRAWN.normal(size=(60, 5)) / 3,
}
TOOLS: dict[str, Any] = {
    "calibrated": lambda own: CalibratedClassifierCV(own, cv=2),
    "voting": lambda own: VotingClassifier([("a", own), ("b", clone(own))], voting="soft"),
    "bagging": lambda own: BaggingClassifier(own, n_estimators=2, random_state=0),
    "one against the rest": OneVsRestClassifier,
}


def small() -> SequenceClassifier:
    return SequenceClassifier(
        embedding_dim=8,
        hidden_size=8,
        dropout=0.0,
        lr=0.03,
        max_epochs=6,
        settings={"batching.batch_size": 8},
    )


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", ["texts", "series"])
def test_tools_train_it_on_sequences(kind, tool):
    if (kind, tool) == ("texts", "bagging"):
        pytest.skip("scikit-learn's bagging takes arrays of numbers only")
    found = TOOLS[tool](small()).fit(GIVEN[kind], LABELS)
    shares = found.predict_proba(GIVEN[kind])
    assert shares.shape == (60, 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert np.mean(found.predict(GIVEN[kind]) == np.array(LABELS)) > 0.8
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict_proba(GIVEN[kind]), shares)


def test_predictions_of_folds_are_those_of_their_own_models():
    texts, labels = GIVEN["texts"], np.array(LABELS)
    halves = [(np.arange(30, 60), np.arange(30)), (np.arange(30), np.arange(30, 60))]
    found = cross_val_predict(small(), texts, labels, cv=halves, method="predict_proba")
    for train, test in halves:
        own = clone(small()).fit(texts[train], labels[train]).predict_proba(texts[test])
        np.testing.assert_allclose(found[test], own, atol=1e-6)
