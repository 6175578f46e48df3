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

    def loss_counts(self, progress: Progress) -> bool:
        """Return True if a lower validation loss restarts patience."""
        return self.loss_is_progress and not self.is_perfect(progress)

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
