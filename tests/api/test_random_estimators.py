"""Random data and settings of the estimator in scikit-learn's tools: as composed by hand."""

import pickle
import random
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from seqtrain.sklearn import SequenceClassifier
from tests.helpers.examples import seeds

COUNT = 36
LABELS: dict[str, list[Any]] = {
    "text": ["no", "Café", "x,y"],
    "number": [3, -1, 10],
    "bool": [False, True],
    "many": [*range(11)],
}
TOLERANCE = 1e-6


def random_labels(draw: random.Random) -> tuple[Any, bool]:
    """Return the labels of all examples, and True if an example may have several."""
    kind = draw.choice([*LABELS, "multi-label", "multi-label"])
    if kind == "multi-label":
        width = draw.randint(2, 4)
        y = np.array([[draw.random() < 0.4 for _ in range(width)] for _ in range(COUNT)], int)
        y[0], y[1] = 0, 1
        return y, True
    labels = LABELS[kind]
    return np.array([labels[i % len(labels)] for i in draw.sample(range(COUNT), COUNT)]), False


def random_sequences(draw: random.Random, y: Any) -> tuple[Any, str]:
    """Return sequences that hint at the labels, in any type that the estimator takes."""
    kind = draw.choice(["texts", "symbols", "ids", "series", "rows", "array"])
    numbers = [int(np.sum(row)) if y.ndim == 2 else [*np.unique(y)].index(row) for row in y]
    lengths = [draw.randint(1, 5) for _ in y]
    generator = np.random.default_rng(draw.randrange(10**6))
    if kind in ("rows", "array"):
        shape = (COUNT, 5) if kind == "rows" else (COUNT, 5, 2)
        array = generator.normal(size=shape) + np.reshape(numbers, (-1, *[1] * (len(shape) - 1)))
        for row, length in enumerate(lengths):
            array[row, length:] = np.nan
        return array, kind
    if kind == "series":
        rows = [generator.normal(size=(n, 2)) + x for n, x in zip(lengths, numbers, strict=True)]
        return draw.choice([lambda: rows, lambda: objects(rows)])(), kind
    rows = [
        [f"w{x}", *draw.choices(["a", "b", "é"], k=n)]
        for n, x in zip(lengths, numbers, strict=True)
    ]
    if kind == "ids":
        rows = [
            [7 + x, *draw.choices([1, 2, 3], k=n)] for n, x in zip(lengths, numbers, strict=True)
        ]
    if kind == "texts":
        rows = [*map(" ".join, rows)]
    return draw.choice([lambda: rows, lambda: objects(rows)])(), kind


def objects(rows: list[Any]) -> np.ndarray:
    """Return rows as an array of objects, (B,)."""
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found


def random_estimator(draw: random.Random, kind: str) -> SequenceClassifier:
    keys = {"data__kind": "tokens"} if kind == "ids" else {}
    settings: dict[str, Any] = {"batching.batch_size": 16, "training.patience": None}
    if draw.random() < 0.15 and kind != "texts":
        settings["model.trees"] = True
    if draw.random() < 0.3 and kind in ("texts", "symbols", "ids"):
        settings["model.ngrams"] = [1, 2]
    return SequenceClassifier(
        embedding_dim=4,
        hidden_size=4,
        dropout=draw.choice([0.0, 0.3]),
        lr=0.05,
        max_epochs=2,
        class_weight=draw.choice([None, "balanced"]),
        validation_fraction=draw.choice([None, None, 0.3]),
        random_state=draw.choice([0, 5]),
        settings=settings,
        **keys,
    )


def parts(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else [X[i] for i in rows]


def is_multi(y: Any) -> bool:
    return bool(np.ndim(y) == 2)


def check_pipeline(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """A pipeline predicts as its last step."""
    pipe = make_pipeline(FunctionTransformer(lambda rows: rows), own).fit(X, y)
    alone = clone(own).fit(X, y)
    np.testing.assert_array_equal(pipe.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(X))
    assert pipe.score(X, y) == alone.score(X, y)


def check_grid(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """A search scores clones on folds, and trains the best one on everything."""
    folds = [*KFold(2, shuffle=True, random_state=0).split(np.arange(COUNT))]
    search = GridSearchCV(own, {"hidden_size": [3, 5], "training__patience": [None]}, cv=folds)
    search.fit(X, y)
    for size, found in zip([3, 5], search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for train, test in folds:
            each = clone(own).set_params(hidden_size=size, training__patience=None)
            each.fit(parts(X, train), y[train])
            scores.append(accuracy_score(y[test], each.predict(parts(X, test))))
        assert found == pytest.approx(np.mean(scores))
    again = clone(own).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), again.predict_proba(X))


def check_folds(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """Predictions of folds are those of the models that didn't learn their rows."""
    splitter = KFold(2) if is_multi(y) else StratifiedKFold(2)
    folds = [*splitter.split(np.arange(COUNT), y)]
    labels = cross_val_predict(own, X, y, cv=folds)
    shares = None if is_multi(y) else cross_val_predict(own, X, y, cv=folds, method="predict_proba")
    scores = cross_val_score(own, X, y, cv=folds)
    for (train, test), score in zip(folds, scores, strict=True):
        each = clone(own).fit(parts(X, train), y[train])
        np.testing.assert_array_equal(labels[test], each.predict(parts(X, test)))
        assert score == each.score(parts(X, test), y[test])
        if shares is not None:
            np.testing.assert_allclose(shares[test], each.predict_proba(parts(X, test)), atol=1e-12)


def check_one_against_the_rest(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """One model for each class, of which each decides for itself."""
    found = OneVsRestClassifier(own).fit(X, y)
    columns = y.T if is_multi(y) else [(y == label).astype(int) for label in np.unique(y)]
    if len(columns) == 2 and not is_multi(y):
        columns = columns[1:]
    each = [clone(own).fit(X, column).predict_proba(X)[:, 1] for column in columns]
    shares = np.array(each).T
    if not is_multi(y):
        shares = np.hstack([1 - shares, shares]) if len(columns) == 1 else shares
        shares /= shares.sum(1, keepdims=True)
    np.testing.assert_allclose(found.predict_proba(X), shares, atol=TOLERANCE)


def check_vote(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """A vote is the mean of its members."""
    other = clone(own).set_params(random_state=9, hidden_size=3)
    found = VotingClassifier([("a", own), ("b", other)], voting="soft").fit(X, y)
    codes = np.unique(y, return_inverse=True)[1]
    each = [clone(x).fit(X, codes).predict_proba(X) for x in (own, other)]
    np.testing.assert_allclose(found.predict_proba(X), np.mean(each, axis=0), atol=TOLERANCE)
    assert {*found.predict(X)} <= {*y}


def check_calibrated(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """Calibrated probabilities are those of the folds' models, pushed through one curve."""
    found = CalibratedClassifierCV(own, cv=2, ensemble=draw.random() < 0.5).fit(X, y)
    shares = found.predict_proba(X)
    np.testing.assert_allclose(shares.sum(1), 1, atol=TOLERANCE)
    assert [*found.classes_] == [*np.unique(y)]
    assert np.mean(found.predict(X) == found.classes_[shares.argmax(1)]) == 1


def check_stack(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """A stack learns from the probabilities that its members give."""
    found = StackingClassifier([("a", own)], LogisticRegression(), cv=2).fit(X, y)
    given = found.transform(X)
    codes = np.unique(y, return_inverse=True)[1]
    shares = clone(own).fit(X, codes).predict_proba(X)
    expected = shares[:, 1:] if shares.shape[1] == 2 else shares
    np.testing.assert_allclose(given, expected, atol=TOLERANCE)


def check_bag(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """The probabilities of a bag are the mean of its members'."""
    found = BaggingClassifier(own, n_estimators=2, random_state=0).fit(X, y)
    shares = np.zeros((COUNT, len(found.classes_)))
    for each in found.estimators_:
        shares[:, each.classes_.astype(int)] += each.predict_proba(X) / 2
    np.testing.assert_allclose(found.predict_proba(X), shares, atol=TOLERANCE)


def check_outputs(own: Any, X: Any, y: Any, draw: random.Random) -> None:
    """One model for each column of several labels."""
    found = MultiOutputClassifier(own).fit(X, y)
    each = [clone(own).fit(X, column).predict(X) for column in y.T]
    np.testing.assert_array_equal(found.predict(X), np.array(each).T)


ANY = (check_pipeline, check_grid, check_folds, check_one_against_the_rest)
SINGLE = (check_vote, check_calibrated, check_stack)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", seeds(3))
def test_tools_do_what_is_composed_by_hand(seed):
    draw = random.Random(seed)
    y, is_multi_label = random_labels(draw)
    X, kind = random_sequences(draw, y)
    own = random_estimator(draw, kind)
    tools: list[Any] = [*ANY, *((check_outputs,) if is_multi_label else SINGLE)]
    if kind == "rows" and not is_multi_label:
        tools.append(check_bag)
    tools[(seed + 1) % len(tools)](own, X, y, draw)
    fitted = clone(own).fit(X, y)
    shares = fitted.predict_proba(X)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), shares)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    order = np.array(draw.sample(range(COUNT), COUNT))
    mixed = fitted.predict_proba(parts(X, order))
    np.testing.assert_allclose(mixed, shares[order], atol=TOLERANCE)
    if is_multi_label:
        lists = [np.flatnonzero(row).tolist() for row in y]
        listed = clone(own).fit(X, [[f"c{i}" for i in row] for row in lists])
        np.testing.assert_allclose(listed.predict_proba(X), shares, atol=TOLERANCE)
        assert listed.predict(X) == [
            [f"c{i}" for i in np.flatnonzero(row)] for row in fitted.predict(X)
        ]
    else:
        assert [*fitted.classes_] == [*np.unique(y)]
        assert fitted.predict(X).dtype == fitted.classes_.dtype
