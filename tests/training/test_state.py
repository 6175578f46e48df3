"""What counts as progress."""

from dataclasses import replace

import pytest

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.state import Progress
from seqtrain.training.stopping import StoppingRule, stopping_rule

RULE = StoppingRule(epochs=9, patience=3, loss_is_progress=True, perfect_patience=3)


def note(rule: StoppingRule, *epochs: tuple[float, float, float]) -> tuple[Progress, list[bool]]:
    """Note the value, the validation loss and the standard error of each epoch."""
    progress, best = Progress(), []
    for epoch, (value, loss, error) in enumerate(epochs):
        progress.epoch = epoch
        best.append(rule.note_epoch(progress, value, 0.0, loss, error))
    return progress, best


@pytest.mark.parametrize(("counts", "waited"), [(True, 1), (False, 3)])
def test_a_falling_loss_is_progress_where_it_counts(counts, waited):
    rule = replace(RULE, loss_is_progress=counts, min_delta=0.1)
    progress, _ = note(rule, (0.5, 2.0, 0.0), (0.5, 1.5, 0.0), (0.5, 1.0, 0.0), (0.5, 1.25, 0.0))
    assert (progress.epochs_without_better, progress.plateaus) == (waited, 3)
    assert progress.lowest_loss == 1.0


def test_of_equal_values_the_lower_loss_is_best():
    rule = replace(RULE, loss_is_progress=False)
    progress, best = note(rule, *((1.0, loss, 0.0) for loss in (0.9, 0.5, 0.5, 0.6)))
    assert best == [True, True, False, False]
    assert (progress.best_epoch, progress.epochs_without_better) == (2, 3)


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
    each = ((value, 1.0, error) for value, error in zip(values, errors, strict=True))
    progress, _ = note(RULE, *each)
    assert (progress.best_epoch, progress.refit_epochs) == (best, epochs)


@pytest.mark.parametrize(
    ("rows", "epochs"),
    [(36, 2), (4, 3), (0, 4)],  # errors of 1/6 and 1/2 nats; rows: 0 knows none
)
def test_a_refit_repeats_no_epoch_whose_loss_is_clearly_higher(rows, epochs):
    rule = replace(RULE, rows=rows)
    each = ((0.7, 0.6, 0.08), (0.7, 0.5, 0.08), (0.68, 0.9, 0.08), (0.69, 1.5, 0.08))
    progress, _ = note(rule, *each)
    assert (progress.best_epoch, progress.refit_epochs) == (2, epochs)


@pytest.mark.parametrize(("correct", "epochs"), [(9, 7), (10, 4)])
def test_where_all_of_train_is_right_a_refit_has_at_most_twice_the_best_epoch(correct, epochs):
    progress = Progress()
    progress.correct, progress.examples = correct, 10
    for epoch, value in enumerate((0.5, 0.7, 0.69, 0.69, 0.69, 0.69, 0.69)):
        progress.epoch = epoch
        RULE.note_epoch(progress, value, 0.0, 1.0, 0.05)
    assert (progress.best_epoch, progress.refit_epochs) == (2, epochs)


def test_a_decrease_of_the_loss_needs_a_size_to_be_an_improvement():
    rule = replace(RULE, min_delta=0.05)
    progress, _ = note(rule, *((1.0, loss, 0.0) for loss in (0.5, 0.47, 0.44, 0.43)))
    # 0.44 is the first loss that is lower than 0.5 by 0.05.
    assert (progress.best_epoch, progress.refit_epochs) == (3, 3)
    assert progress.epochs_without_better == 1


@pytest.mark.parametrize(("baseline", "is_over"), [(0.5, True), (-1.0, False)])
def test_a_baseline_ends_only_what_can_be_compared_with_it(baseline, is_over):
    """A monitored loss is negated: -2 nats aren't below the accuracy -1 of no baseline."""
    rule = replace(RULE, patience=None, hopeless_after=3, baseline=baseline)
    progress, _ = note(rule, *((value, 1.0, 0.0) for value in (-3.0, -2.5, -2.0)))
    progress.epoch = 3
    assert rule.is_over(progress) == is_over


@pytest.mark.parametrize(
    ("rows", "loss", "is_perfect"), [(100, 0.5, True), (40, 0.5, False), (40, 0.05, True)]
)
def test_few_rows_are_perfect_only_with_a_low_loss(rows, loss, is_perfect):
    rule = replace(RULE, rows=rows)
    progress, _ = note(rule, (1.0, loss, 0.0))
    assert rule.is_perfect(progress) == is_perfect


def test_min_delta_follows_from_the_number_of_validation_rows():
    settings = TrainingConfig()
    assert stopping_rule(settings, 5).min_delta == 0
    assert stopping_rule(TrainingConfig(min_delta=0.25), 5).min_delta == 0.25
