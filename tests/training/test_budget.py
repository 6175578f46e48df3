"""How long training goes on where the config leaves it to us, and what counts as progress."""

from __future__ import annotations

import pytest

from seqtrain.config.schema import TrainingConfig
from seqtrain.training.budget import budget
from seqtrain.training.state import Progress


@pytest.mark.parametrize(
    ("updates_per_epoch", "epochs", "patience"), [(5, 100, 20), (24, 84, 17), (391, 10, 3)]
)
def test_small_data_gets_its_updates(updates_per_epoch: int, epochs: int, patience: int) -> None:
    found = budget(TrainingConfig(), updates_per_epoch)
    assert (found.epochs, found.patience, found.progress) == (epochs, patience, "value or loss")


def test_numbers_that_are_set_hold() -> None:
    found = budget(TrainingConfig(max_epochs=4, patience=2), 5)
    assert (found.epochs, found.patience, found.progress) == (4, 2, "value")
    assert budget(TrainingConfig(patience=None), 5).patience is None


@pytest.mark.parametrize(("counts", "waited"), [(True, 1), (False, 3)])
def test_a_falling_loss_is_progress_where_it_counts(counts: bool, waited: int) -> None:
    progress = Progress()
    for value, loss in ((0.5, 2.0), (0.5, 1.5), (0.5, 1.0), (0.5, 1.25)):
        progress.note_value(value)
        progress.note_loss(loss, counts=counts)
    assert (progress.epochs_without_better, progress.plateaus) == (waited, 3)
    assert (progress.lowest_loss, progress.loss_fell) == (1.0, False)
    assert progress.best_epoch == 1


def test_of_equal_values_the_lower_loss_is_best() -> None:
    progress, best = Progress(), []
    for epoch, loss in enumerate((0.9, 0.5, 0.5, 0.6)):
        progress.epoch = epoch
        best.append(progress.note_value(1.0, loss))
    assert best == [True, True, False, False]
    assert (progress.best_epoch, progress.epochs_without_better) == (2, 3)


@pytest.mark.parametrize(
    ("values", "error", "best", "epochs"),
    [
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), 0.03, 2, 5),
        ((0.5, 0.9, 0.88, 0.7, 0.87, 0.86), 0.0, 2, 2),  # monitor: loss has no such error
        ((0.5, 0.9, 0.88, 0.95, 0.88), 0.03, 4, 4),  # near the best so far, not the best of all
    ],
)
def test_a_refit_repeats_the_epochs_up_to_the_last_within_a_standard_error_of_the_best(
    values: tuple[float, ...], error: float, best: int, epochs: int
) -> None:
    progress = Progress()
    for epoch, value in enumerate(values):
        progress.epoch = epoch
        progress.note_value(value, error=error)
    assert (progress.best_epoch, progress.refit_epochs) == (best, epochs)


def test_it_is_the_standard_error_of_the_best_that_counts() -> None:
    progress = Progress()
    for epoch, (value, error) in enumerate(((0.95, 0.007), (0.942, 0.02), (0.9, 0.5))):
        progress.epoch = epoch
        progress.note_value(value, error=error)
    assert progress.refit_epochs == 1
