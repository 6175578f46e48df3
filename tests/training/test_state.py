"""What counts as progress."""

import pytest

from seqtrain.training.state import Progress


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
