"""What counts as progress."""

import pytest

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.state import Progress
from seqtrain.training.stopping import StoppingRule, stopping_rule


@pytest.mark.parametrize(("counts", "waited"), [(True, 1), (False, 3)])
def test_a_falling_loss_is_progress_where_it_counts(counts, waited):
    progress = Progress()
    for value, loss in ((0.5, 2.0), (0.5, 1.5), (0.5, 1.0), (0.5, 1.25)):
        progress.note_value(value)
        progress.note_loss(loss, counts=counts)
    assert (progress.epochs_without_better, progress.plateaus) == (waited, 3)
    assert (progress.lowest_loss, progress.loss_fell) == (1.0, False)
    assert progress.best_epoch == 1


def test_of_equal_values_the_lower_loss_is_best():
    progress, best = Progress(), []
    for epoch, loss in enumerate((0.9, 0.5, 0.5, 0.6)):
        progress.epoch = epoch
        best.append(progress.note_value(1.0, loss))
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
    progress = Progress()
    for epoch, (value, error) in enumerate(zip(values, errors, strict=True)):
        progress.epoch = epoch
        progress.note_value(value, error=error)
    assert (progress.best_epoch, progress.refit_epochs) == (best, epochs)


def test_a_decrease_of_the_loss_needs_a_size_to_be_an_improvement():
    progress = Progress()
    for epoch, loss in enumerate((0.5, 0.47, 0.44, 0.43)):
        progress.epoch = epoch
        progress.note_value(1.0, loss, min_delta=0.05)
        progress.note_loss(loss, counts=True, min_delta=0.05)
    # 0.44 is the first loss that is lower than 0.5 by 0.05.
    assert (progress.best_epoch, progress.refit_epochs) == (3, 3)
    assert (progress.epochs_without_better, progress.loss_fell) == (1, False)


@pytest.mark.parametrize(
    ("rows", "loss", "is_perfect"), [(100, 0.5, True), (40, 0.5, False), (40, 0.05, True)]
)
def test_few_rows_are_perfect_only_with_a_low_loss(rows, loss, is_perfect):
    rule = StoppingRule(epochs=9, patience=3, loss_is_progress=True, perfect_patience=3, rows=rows)
    progress = Progress()
    progress.note_value(1.0, loss)
    progress.note_loss(loss, counts=True)
    assert rule.is_perfect(progress) == is_perfect


def test_min_delta_follows_from_the_number_of_validation_rows():
    settings = TrainingConfig()
    assert stopping_rule(settings, 5).min_delta == 0
    assert stopping_rule(TrainingConfig(min_delta=0.25), 5).min_delta == 0.25
