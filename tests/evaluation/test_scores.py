"""Every metric against scikit-learn, also with unknown labels and classes that don't occur."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from seqtrain.evaluation.scores import Scores, single_class_warnings
from seqtrain.evaluation.scoring import KEPT_CONFUSIONS, MATRIX_CLASSES, score
from seqtrain.text import json_line

NAMES = ["a", "b", "c", "d"]
ROWS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(0, 3), st.integers(1, 30)), min_size=1, max_size=80
)


def scores_of(rows: list[tuple[int, int, int]]) -> tuple[Scores, np.ndarray, np.ndarray]:
    true, predicted, lengths = np.array(rows).T
    logits = torch.randn(len(rows), 4, generator=torch.Generator().manual_seed(0))
    logits[torch.arange(len(rows)), torch.from_numpy(predicted)] += 10
    return (
        score(logits, torch.from_numpy(true), torch.from_numpy(lengths), NAMES),
        true,
        predicted,
    )


@given(ROWS)
def test_metrics_are_those_of_scikit_learn(rows):
    scores, true, predicted = scores_of(rows)
    known = true >= 0
    f1 = {
        average: metrics.f1_score(true, predicted, average=average, zero_division=0)
        for average in ("macro", "weighted")
    }
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(true, predicted))
    assert scores.macro_f1 == pytest.approx(f1["macro"])
    macro = (scores.macro_precision, scores.macro_recall, scores.macro_f1, None)
    assert macro == pytest.approx(
        metrics.precision_recall_fscore_support(true, predicted, average="macro", zero_division=0)
    )
    assert scores.weighted_f1 == pytest.approx(f1["weighted"])
    assert (scores.num_examples, scores.num_unknown_labels) == (len(rows), int((~known).sum()))
    per_class = metrics.precision_recall_fscore_support(
        true, predicted, labels=range(4), zero_division=0
    )
    for i, name in enumerate(NAMES):
        row = scores.per_class[name]
        found = [row[key] for key in ("precision", "recall", "f1", "support")]
        assert found == pytest.approx([column[i] for column in per_class])
        assert row["num_predicted"] == (predicted == i).sum()
    one_class = len({*true, *predicted}) == 1
    kappa = 0.0 if one_class else metrics.cohen_kappa_score(true, predicted)
    assert scores.cohen_kappa == pytest.approx(kappa)
    expected = np.zeros((4, 4), dtype=int)
    np.add.at(expected, (true[known], predicted[known]), 1)
    assert scores.confusion_matrix == expected.tolist()
    assert expected.sum() + sum(scores.unknown_predicted) == len(rows)
    if known.any():
        assert scores.confusion_matrix == (
            metrics.confusion_matrix(true[known], predicted[known], labels=range(4)).tolist()
        )


@given(ROWS)
def test_confusions_are_the_mistakes_of_the_matrix(rows):
    scores = scores_of(rows)[0]
    mistakes = [
        {"true": NAMES[i], "predicted": NAMES[j], "count": count}
        for i, row in enumerate(scores.confusion_matrix)
        for j, count in enumerate(row)
        if i != j and count
    ]
    assert scores.confusions == sorted(mistakes, key=lambda mistake: -int(mistake["count"]))


def test_a_class_that_is_always_predicted_and_never_right_is_doubted():
    rows = [(n % 2, 2, 5) for n in range(20)]
    assert single_class_warnings(scores_of(rows)[0], "test")


def test_rows_that_differ_by_a_constant_tie_in_rank():
    draw = torch.Generator().manual_seed(4)
    logits = torch.randint(0, 3, (200, 4), generator=draw).float()
    labels = torch.randint(0, 4, (200,), generator=draw)
    shifted = logits + torch.randint(-7, 8, (200, 1), generator=draw)
    lengths = torch.ones(200, dtype=torch.int64)
    plain = score(logits, labels, lengths, NAMES, ranked=True)
    moved = score(shifted, labels, lengths, NAMES, ranked=True)
    assert moved.per_class == plain.per_class
    probabilities = logits.double().softmax(1).numpy().round(9)
    for index, name in enumerate(NAMES):
        own, row = labels.numpy() == index, plain.per_class[name]
        expected = metrics.roc_auc_score(own, probabilities[:, index])
        assert row["auc"] == pytest.approx(expected)
        expected = metrics.average_precision_score(own, probabilities[:, index])
        assert row["average_precision"] == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(5, 60))
def test_multi_label_metrics_are_those_of_scikit_learn(seed, classes, rows):
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=draw)
    labels = (torch.rand(rows, classes, generator=draw) < 0.4).to(torch.int8)
    thresholds = torch.rand(classes, generator=draw).tolist()
    lengths = torch.ones(rows, dtype=torch.int64)
    scores = score(logits, labels, lengths, NAMES[:classes], thresholds)
    has, decided = labels.numpy(), (logits.double().sigmoid() >= torch.tensor(thresholds)).numpy()
    assert scores.accuracy == pytest.approx((has == decided).all(1).mean())
    for name, average in (("macro_f1", "macro"), ("micro_f1", "micro")):
        seen = np.flatnonzero(has.any(0) | decided.any(0))
        if len(seen) > 1:  # of one column scikit-learn makes two classes
            expected = metrics.f1_score(
                has[:, seen], decided[:, seen], average=average, zero_division=0
            )
            assert getattr(scores, name) == pytest.approx(expected)
    flat = has.ravel(), decided.ravel().astype(int)
    kappa = 0.0 if len({*flat[0], *flat[1]}) == 1 else metrics.cohen_kappa_score(*flat)
    assert scores.cohen_kappa == pytest.approx(kappa)


def test_one_class_for_all_of_several_is_doubted():
    same = [(n % 2, 1, 5) for n in range(20)]
    (line,) = single_class_warnings(scores_of(same)[0], "test")
    assert line.startswith("test: every prediction is 'b'")
    assert all(key in line for key in ("training.lr", "max_epochs", "class_weights"))
    few, one_class, mixed = same[:19], [(1, 1, 5)] * 20, [*same[1:], (0, 0, 5)]
    for rows in (few, one_class, mixed):
        assert single_class_warnings(scores_of(rows)[0], "test") == []


@pytest.mark.parametrize("classes", [MATRIX_CLASSES, MATRIX_CLASSES + 1, 20_000])
def test_scores_of_many_classes_stay_small(classes):
    """The matrix of 20,000 classes would take 3 GB, and as JSON 800 MB."""
    names = [f"c{i}" for i in range(classes)]
    true = torch.arange(300) % classes
    predicted = torch.where(torch.arange(300) % 3 == 0, true, (true + 1) % classes)
    logits = torch.zeros(300, classes)
    logits[torch.arange(300), predicted] = 5.0
    true[0] = -1
    scores = score(logits, true, torch.ones(300, dtype=torch.int64), names)
    assert (scores.confusion_matrix is None) == (classes > MATRIX_CLASSES)
    assert len(scores.confusions) == KEPT_CONFUSIONS
    assert scores.accuracy == pytest.approx(99 / 300)
    known = true >= 0
    assert scores.loss == pytest.approx(
        torch.nn.functional.cross_entropy(logits[known].double(), true[known]).item()
    )
    assert len(json_line(asdict(scores))) < 200 * classes + 200_000


@given(ROWS)
def test_groups_of_length_cover_every_example_once(rows):
    scores, true, predicted = scores_of(rows)
    lengths = np.array(rows)[:, 2]
    groups = scores.by_length
    assert 1 <= len(groups) <= 5
    assert sum(group["num_examples"] for group in groups) == len(rows)
    assert all(one["max"] < other["min"] for one, other in pairwise(groups))
    for group in groups:
        inside = (lengths >= group["min"]) & (lengths <= group["max"])
        assert group["num_examples"] == inside.sum()
        assert {group["min"], group["max"]} <= set(lengths)
        assert group["accuracy"] == pytest.approx((true == predicted)[inside].mean())
    alike, _, _ = scores_of([(0, 0, length) for length in range(1, 101)])
    assert [group["num_examples"] for group in alike.by_length] == [20] * 5
    assert alike.standard_error("accuracy") == alike.standard_error("loss") == 0


@pytest.mark.parametrize("several", [False, True])
def test_ranks_of_classes_are_those_of_scikit_learn(several):
    draw = torch.Generator().manual_seed(1)
    logits = torch.randn(60, 4, generator=draw)
    labels = torch.randint(0, 3, (60,), generator=draw)  # class 3 never occurs
    has = labels.unsqueeze(1) == torch.arange(4)
    probabilities = logits.double().softmax(1)
    if several:
        logits = logits.mul(2).round()  # with ties
        has = has | (torch.rand(60, 4, generator=draw) < 0.3) & (torch.arange(4) < 3)
        labels, probabilities = has.to(torch.int8), logits.double().sigmoid()
    scores = score(logits, labels, torch.full((60,), 3), NAMES, ranked=True)
    found = [scores.per_class[name] for name in NAMES]
    for row, true, probability in zip(found[:3], has.T.numpy(), probabilities.T, strict=False):
        expected = metrics.roc_auc_score(true, probability)
        assert row["auc"] == pytest.approx(expected)
        expected = metrics.average_precision_score(true, probability)
        assert row["average_precision"] == pytest.approx(expected)
    assert "auc" not in found[3]
    assert scores.auc == pytest.approx(np.mean([row["auc"] for row in found[:3]]))
    assert score(logits, labels, torch.full((60,), 3), NAMES).auc is None  # not asked for


def test_without_thresholds_several_labels_have_the_best_common_one():
    draw = torch.Generator().manual_seed(2)
    logits = torch.randn(20, 4, generator=draw)
    labels = (logits + torch.randn(20, 4, generator=draw) > 1).to(torch.int8)
    found = score(logits, labels, torch.full((20,), 3), NAMES)
    probabilities = logits.double().sigmoid()
    of_each = [
        metrics.f1_score(labels, probabilities >= least, average="micro", zero_division=0)
        for least in probabilities.flatten().tolist()
    ]
    assert found.micro_f1 == pytest.approx(max(of_each))
    assert len({row["threshold"] for row in found.per_class.values()}) == 1
