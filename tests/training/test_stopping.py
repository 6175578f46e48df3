"""What counts as progress: all of it follows from the results of the epochs."""

from dataclasses import replace

import pytest

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.stopping import (
    EpochResult,
    StoppingRule,
    best_epoch,
    epochs_for_refit,
    plateaus,
    stopping_rule,
    stops_early,
)

RULE = StoppingRule(epochs=9, patience=3, loss_is_progress=True, perfect_patience=3, rows=100)


def epoch(value: float, loss: float = 1.0, error: float = 0.0, train: float = 0.9) -> EpochResult:
    return EpochResult(
        value=value,
        error=error,
        loss=loss,
        train_loss=1.0,
        train_accuracy=train,
        model_value=value,
    )


@pytest.mark.parametrize(("counts", "ends"), [(True, False), (False, True)])
def test_a_falling_loss_is_progress_where_it_counts(counts, ends):
    rule = replace(RULE, loss_is_progress=counts, min_delta=0.1)
    history = [epoch(0.5, loss) for loss in (2.0, 1.5, 1.0, 1.25)]
    assert stops_early(history, rule) == ends
    assert plateaus(history) == 3
    assert not stops_early(history[:3], rule)
    assert stops_early([*history, epoch(0.5, 1.25), epoch(0.5, 0.95)], rule)


def test_of_equal_values_the_lower_loss_is_best():
    history = [epoch(1.0, loss) for loss in (0.9, 0.5, 0.495, 0.6)]
    assert [best_epoch(history[:n], RULE) for n in range(5)] == [0, 1, 2, 2, 2]
    assert stops_early(history, RULE)


@pytest.mark.parametrize(
    ("values", "errors", "best", "epochs"),
    [
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), (0.03,) * 6, 2, 5),
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), (0.0,) * 6, 2, 2),  # monitor: loss has no such error
        ((0.5, 0.9, 0.88, 0.95, 0.88), (0.03,) * 5, 4, 4),  # near the best so far, not of all
        ((0.95, 0.942, 0.9), (0.007, 0.02, 0.5), 1, 1),  # the error of the best counts
    ],
)
def test_a_refit_repeats_the_epochs_up_to_the_last_within_a_standard_error_of_the_best(
    values, errors, best, epochs
):
    history = [epoch(value, 1.0, error) for value, error in zip(values, errors, strict=True)]
    assert (best_epoch(history, RULE), epochs_for_refit(history, RULE)) == (best, epochs)


@pytest.mark.parametrize(
    ("rows", "epochs"),
    [(36, 2), (4, 3), (0, 4)],  # errors of 1/6 and 1/2 nats; rows: 0 knows none
)
def test_a_refit_repeats_no_epoch_whose_loss_is_clearly_higher(rows, epochs):
    history = [epoch(0.69, 0.6, 0.08), epoch(0.7, 0.5, 0.08), epoch(0.68, 0.9), epoch(0.69, 1.5)]
    rule = replace(RULE, rows=rows)
    assert (best_epoch(history, rule), epochs_for_refit(history, rule)) == (2, epochs)


@pytest.mark.parametrize(("train", "epochs"), [(0.9, 7), (1.0, 4)])
def test_where_all_of_train_is_right_a_refit_has_at_most_twice_the_best_epoch(train, epochs):
    values = (0.5, 0.7, 0.69, 0.69, 0.69, 0.69, 0.69)
    history = [epoch(value, 1.0, 0.05, train) for value in values]
    assert (best_epoch(history, RULE), epochs_for_refit(history, RULE)) == (2, epochs)


def test_a_decrease_of_the_loss_needs_a_size_to_be_an_improvement():
    rule = replace(RULE, rows=20)
    history = [epoch(1.0, loss) for loss in (0.5, 0.47, 0.44, 0.43)]
    # 0.44 is the first loss that is lower than 0.5 by 0.05.
    assert (best_epoch(history, rule), epochs_for_refit(history, rule)) == (3, 3)


@pytest.mark.parametrize(("baseline", "is_over"), [(0.5, True), (-1.0, False)])
def test_a_baseline_ends_only_what_can_be_compared_with_it(baseline, is_over):
    """A monitored loss is negated: -2 nats aren't below the accuracy -1 of no baseline."""
    rule = replace(RULE, patience=None, hopeless_after=3, baseline=baseline)
    assert stops_early([epoch(value) for value in (-3.0, -2.5, -2.0)], rule) == is_over


@pytest.mark.parametrize(
    ("rows", "loss", "ends"), [(100, 0.5, True), (40, 0.5, False), (40, 0.05, True)]
)
def test_few_rows_are_perfect_only_with_a_low_loss(rows, loss, ends):
    rule = replace(RULE, rows=rows, patience=None)
    assert stops_early([epoch(1.0, loss)] * 4, rule) == ends


@pytest.mark.parametrize(("patience", "epochs"), [(2, 3), (30, 21), (None, 21)])
def test_after_a_perfect_epoch_the_smaller_patience_counts(patience, epochs):
    rule = replace(RULE, patience=patience, perfect_patience=20)
    ends = [stops_early([epoch(1.0, 0.01)] * n, rule) for n in (epochs - 1, epochs)]
    assert ends == [False, True]


def test_min_delta_follows_from_the_number_of_validation_rows():
    assert stopping_rule(TrainingConfig(), 5).min_delta == 0
    assert stopping_rule(TrainingConfig(), 5, rows=50).min_delta == 0.02
    assert stopping_rule(TrainingConfig(min_delta=0.25), 5).min_delta == 0.25
