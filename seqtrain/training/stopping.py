"""The end of training: number of epochs, patience, and early stopping.

If the config leaves epochs and patience open, they follow from the number of updates, so that a
small data set gets enough updates, too. An epoch of 300 rows has five, one of 300,000 rows has five
thousand.
"""

import math
from dataclasses import dataclass

from seqtrain.config.schema import TrainingConfig
from seqtrain.data.splits import MANY_ROWS
from seqtrain.data.store import SequenceStore
from seqtrain.training.state import Progress

EPOCHS, MOST_EPOCHS = 10, 100
"""Least and largest number of epochs if max_epochs is auto."""
UPDATES = 2000
"""Updates of a run at least if max_epochs is auto, as far as MOST_EPOCHS allows."""
PATIENCE, PATIENCE_SHARE = 3, 0.2
"""Epochs without progress if patience is auto: the larger of PATIENCE and this share of all."""
CONFIDENT_LOSS = 0.1
"""Validation loss below which few rows that are all right aren't right by chance."""


@dataclass(frozen=True)
class StoppingRule:
    """Decide when training ends.

    Attributes:
        epochs: Largest number of epochs.
        patience: Epochs without progress that end training, or None if they never do.
        loss_is_progress: True if a lower validation loss is progress, too.
        perfect_patience: Epochs after the first one in which all of validation was right.
        hopeless_after: Epochs that end training if none beat the majority-class baseline, or None
            if they never do.
        min_delta: Smallest decrease of the validation loss that counts as an improvement.
        rows: Number of validation rows, or 0 without validation.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if accuracy isn't
            monitored.
    """

    epochs: int
    patience: int | None
    loss_is_progress: bool
    perfect_patience: int
    hopeless_after: int | None = None
    min_delta: float = 0.0
    rows: int = 0
    baseline: float = -1.0

    def is_over(self, progress: Progress) -> bool:
        """Return True if too many epochs passed without progress, or without beating chance."""
        is_late = self.hopeless_after is not None and progress.epoch >= self.hopeless_after
        if is_late and not self.beats_baseline(progress):
            return True
        patience = self.perfect_patience if self.is_perfect(progress) else self.patience
        return patience is not None and progress.epochs_without_better >= patience

    def is_perfect(self, progress: Progress) -> bool:
        """Return True if all of validation was right after an epoch, and chance is unlikely."""
        best = progress.best_value
        is_clear = self.rows >= MANY_ROWS or progress.lowest_loss < CONFIDENT_LOSS
        return self.rows > 0 and is_clear and best is not None and best >= 1

    def note_epoch(
        self,
        progress: Progress,
        value: float | None,
        loss: float,
        validation_loss: float | None = None,
        error: float = 0.0,
    ) -> bool:
        """Note the result of an epoch in the progress; return True if it is the best so far.

        Of epochs with equal values, the one with the lowest loss is the best. It is no progress for
        patience and plateaus. A refit has as many epochs as there are up to the last one within a
        standard error of the best, so that few validation rows don't make it too short. Of epochs
        in which all of validation was right, only those with a lower loss count.

        Args:
            progress: Progress before the next epoch begins. It is updated.
            value: Monitored value (greater is better), or None if nothing is monitored.
            loss: Training loss in nats.
            validation_loss: Validation loss in nats, or None without validation.
            error: Standard error of the value.

        Reference:
            Breiman et al. 1984, Classification and Regression Trees, section 3.4.3.
        """
        if value is None:
            return False
        loss = loss if validation_loss is None else validation_loss
        is_better = progress.best_value is None or value > progress.best_value
        is_lower = value == progress.best_value and loss < progress.best_loss - self.min_delta
        progress.epochs_without_better = 0 if is_better else progress.epochs_without_better + 1
        progress.plateaus += not is_better
        if is_better or is_lower:
            progress.best_value, progress.best_epoch = value, progress.epoch + 1
            progress.best_loss, progress.best_error = loss, error
        assert progress.best_value is not None
        is_near = value < 1 and value >= progress.best_value - progress.best_error
        if is_better or is_lower or is_near:
            progress.refit_epochs = progress.epoch + 1
        if validation_loss is not None and loss < progress.lowest_loss - self.min_delta:
            progress.lowest_loss = loss
            if self.loss_is_progress and not self.is_perfect(progress):
                progress.epochs_without_better = 0
        return is_better or is_lower

    def beats_baseline(self, progress: Progress, errors: float = 0.0) -> bool:
        """Return True if an epoch beat the majority-class baseline by so many standard errors."""
        variance = max(0.0, self.baseline * (1 - self.baseline))
        error = math.sqrt(variance / self.rows) if self.rows else 0.0
        best = progress.best_value
        return best is None or best > self.baseline + errors * error


def stopping_rule(
    settings: TrainingConfig,
    updates_per_epoch: int,
    validation: SequenceStore | None = None,
    baseline: float = -1.0,
) -> StoppingRule:
    """Return the stopping rule of a config for epochs of this many updates."""
    if settings.max_epochs == "auto":
        epochs = max(EPOCHS, min(MOST_EPOCHS, -(-UPDATES // updates_per_epoch)))
    else:
        epochs = settings.max_epochs
    patience = max(PATIENCE, round(PATIENCE_SHARE * epochs))
    is_auto = settings.patience == "auto"
    rows = 0 if validation is None else len(validation)
    noise = 1 / rows if rows else 0.0
    min_delta = noise if settings.min_delta == "auto" else settings.min_delta
    return StoppingRule(
        epochs=epochs,
        patience=patience if settings.patience == "auto" else settings.patience,
        loss_is_progress=is_auto,
        perfect_patience=patience,
        hopeless_after=max(EPOCHS, epochs // 2) if is_auto else None,
        min_delta=min_delta,
        rows=rows,
        baseline=baseline,
    )
