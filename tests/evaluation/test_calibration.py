"""The temperature is the optimum that another program finds; scores of probabilities, by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn import metrics
from torch.nn.functional import cross_entropy

from seqtrain.evaluation.calibration import (
    COOLEST,
    DISTANCE_COST,
    HOTTEST,
    Calibration,
    fit_branch_weights,
    fit_calibration,
    fit_temperature,
)
from seqtrain.evaluation.scoring import CONFIDENCE_BINS, score
from seqtrain.evaluation.thresholds import (
    CoveragePoint,
    best_threshold,
    coverage_points,
    most_covered,
    threshold_reached_by,
)
from seqtrain.model.network import combined


def drawn(seed: int, rows: int, classes: int, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits that are `factor` times what would be right, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return factor * logits, labels


@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.05, 20))
def test_no_other_temperature_has_less_loss(seed, classes, factor):
    logits, labels = drawn(seed, 200, classes, factor)

    target = np.full((200, classes), 1 / 202 / (classes - 1))
    target[np.arange(200), labels] = 201 / 202

    def loss(factor: float) -> float:
        return float(
            -(target * log_softmax(factor * logits.double().numpy(), axis=1)).sum(1).mean()
        )

    found = 1 / fit_temperature(logits, labels)
    bounds = (1 / HOTTEST, 1 / COOLEST)
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    assert loss(found) <= best.fun + 1e-12
    if 2 / HOTTEST < best.x < 0.5 / COOLEST:
        assert found == pytest.approx(best.x, rel=1e-5)


def test_where_every_prediction_is_right_or_none_means_anything():
    logits, labels = drawn(3, 50, 4, 1.0)
    target = torch.full((50, 4), 1 / 52 / 3).scatter(1, logits.argmax(1, keepdim=True), 51 / 52)
    found = fit_temperature(logits, logits.argmax(1))
    losses = [cross_entropy(logits / (found * factor), target) for factor in (0.99, 1, 1.01)]
    assert losses[1] < min(losses[0], losses[2])
    assert fit_temperature(logits, logits.argmin(1)) == pytest.approx(HOTTEST)
    assert fit_temperature(logits[:0], labels[:0]) == 1.0


def test_labels_that_train_lacks_play_no_part():
    logits, labels = drawn(4, 400, 4, 3.0)
    beside = torch.cat((labels, torch.full((50,), -1)))
    found = fit_calibration([torch.cat((logits, logits[:50].flip(1)))], beside)
    assert found.temperature == fit_temperature(logits, labels)


def test_shares_leave_their_default_the_more_the_more_rows_say_so():
    right, labels = drawn(6, 300, 4, 1.0)
    wrong, before = drawn(7, 300, 4, 1.0)[0], Calibration(branch_weights=[0.2, 0.8])
    found = [
        fit_calibration(each, labels, before).branch_weights
        for each in ([right, wrong], [wrong, right])
    ]
    assert found[0][0] > 0.8
    assert found[1][0] <= 0.2
    hardly = right + 0.1 * wrong
    for each in ([right, hardly], [hardly, right]):
        found = fit_calibration(each, labels).branch_weights or [0.5, 0.5]
        assert abs(found[0] - 0.5) <= 0.2
    few = fit_calibration([right[:12], wrong[:12]], labels[:12]).branch_weights or [0.5, 0.5]
    many = fit_calibration([right, wrong], labels).branch_weights
    assert many is not None
    assert few[0] >= 0.5
    assert many[0] > 0.8


@pytest.mark.parametrize("scales", [(1.0, 1.0), (20.0, 20.0), (0.1, 3.0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_shares_are_those_of_the_formula(seed, scales):
    """All shares are compared at the temperature of those that are preferred."""
    first, labels = drawn(seed, 400, 4, 1.0)
    branches = [first * scales[0], (first + 2 * drawn(seed + 9, 400, 4, 1.0)[0]) * scales[1]]

    def losses(shares: list[float], temperature: float) -> torch.Tensor:
        logits = combined(branches, shares).double() / temperature
        return cross_entropy(logits, labels, reduction="none")

    def fitted(shares: list[float]) -> float:
        return fit_temperature(combined(branches, shares), labels)

    sure = [0.5 / fit_temperature(logits, labels) for logits in branches]
    center = [share / sum(sure) for share in sure]
    tried = [center, *([1 - tenths / 10, tenths / 10] for tenths in range(11))]
    common = fitted(center)
    costs = [
        float(losses(shares, common).sum()) + DISTANCE_COST * math.dist(shares, center) ** 2
        for shares in tried
    ]
    best = tried[int(np.argmin(costs))]
    gain = losses([0.5, 0.5], fitted([0.5, 0.5])) - losses(best, fitted(best))
    expected = best if gain.sum() > gain.square().sum().sqrt() else None
    assert fit_branch_weights(branches, labels) == (expected and pytest.approx(expected))


def test_scores_of_probabilities_are_what_they_are_called():
    logits, labels = drawn(5, 500, 6, 2.0)
    scores = score(logits, labels, torch.ones_like(labels), list("abcdef"))
    probabilities = logits.double().softmax(1).numpy()
    assert scores.loss == pytest.approx(metrics.log_loss(labels, probabilities))
    squares = (probabilities - np.eye(6)[labels]) ** 2
    assert scores.brier == pytest.approx(squares.sum(1).mean())
    confidence = probabilities.max(1)
    right = probabilities.argmax(1) == labels.numpy()
    interval = np.ceil(confidence * CONFIDENCE_BINS)
    error = sum(
        (interval == i).mean() * abs(right[interval == i].mean() - confidence[interval == i].mean())
        for i in np.unique(interval)
    )
    assert scores.ece == pytest.approx(error)


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.7, 0.9]), st.booleans()), min_size=1))
def test_each_point_counts_all_predictions_that_reach_its_threshold(rows):
    confidence, correct = (np.array(column) for column in zip(*rows, strict=True))
    points = coverage_points(torch.from_numpy(confidence), torch.from_numpy(correct), 10)
    assert [p.coverage for p in points] == sorted({p.coverage for p in points})
    assert points[-1].coverage == 1
    for point in points:
        above = confidence >= point.min_probability
        assert point.coverage == pytest.approx(above.mean())
        assert point.accuracy == pytest.approx(correct[above].mean())


def test_a_precision_takes_the_most_that_has_it():
    points = [
        CoveragePoint(coverage=share, min_probability=1 - share, accuracy=accuracy)
        for share, accuracy in ((0.1, 0.9), (0.3, 0.96), (0.5, 0.95), (1.0, 0.8))
    ]
    found = [most_covered(points, precision) for precision in (0.95, 0.97, 0.0)]
    assert found == [points[2], None, points[3]]


@given(st.integers(0, 10**6), st.booleans())
def test_a_threshold_lies_between_probabilities_that_rounding_keeps_apart(seed, everywhere):
    draw = torch.Generator().manual_seed(seed)
    probabilities = torch.rand(30, dtype=torch.float64, generator=draw)
    probabilities[20:] = probabilities[:10] * (1 + 1e-9)  # as another program rounds them
    correct = torch.rand(30, generator=draw) < probabilities
    if everywhere:
        correct[:] = True
    threshold = best_threshold(probabilities, correct)
    nearest = (probabilities / threshold - 1).abs().min()
    assert nearest > 1e-6
    if everywhere:
        assert 0 < threshold < probabilities.min()


@given(st.sets(st.integers(1, 99), min_size=1), st.integers(0, 99))
def test_a_threshold_is_reached_by_a_number_of_examples(hundredths, number):
    probabilities = torch.tensor([*hundredths], dtype=torch.float64) / 100
    number = min(number, len(hundredths))
    assert (probabilities >= threshold_reached_by(number, probabilities)).sum() == number
    # Equal probabilities stay together.
    twice = threshold_reached_by(2 * number - 1, probabilities.repeat(2)) if number else 1.0
    assert (probabilities >= twice).sum() in (number - 1, number)


def test_a_class_of_every_validation_row_is_decided_alike_everywhere():
    """Its threshold is below the lowest probability, however that is rounded."""
    logits = torch.randn(50, 2, generator=torch.Generator().manual_seed(1))
    labels = torch.stack((torch.ones(50), (logits[:, 1] > 0).float()), dim=1).to(torch.int8)
    found = fit_calibration([logits], labels)
    assert isinstance(found.temperature, list)
    lowest = (logits[:, 0] / found.temperature[0]).sigmoid().min()
    assert found.thresholds[0] < float(lowest) * (1 - 1e-3)


@pytest.mark.parametrize("key", ["temperature", "shift"])
def test_an_empty_list_is_no_number_of_each_class(key):
    with pytest.raises(ValidationError, match=key):
        Calibration.model_validate({key: []})
