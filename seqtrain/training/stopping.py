"""The end of training: number of epochs, patience, and early stopping.

With ``max_epochs: auto``, the number of epochs depends on the number of updates in an epoch. With a
batch size of 64, an epoch of 300 rows has 5 updates, and one of 300,000 rows has about 5,000. So a
small data set needs more epochs.
"""

import math
from dataclasses import dataclass

from seqtrain.config.schema import TrainingConfig
from seqtrain.data.splits import MANY_ROWS
from seqtrain.data.store import SequenceStore
from seqtrain.training.state import Progress

EPOCHS, MOST_EPOCHS = 10, 100
"""Smallest and largest number of epochs if max_epochs is auto."""
UPDATES = 2000
"""Smallest number of updates if max_epochs is auto, unless MOST_EPOCHS epochs have fewer."""
PATIENCE, PATIENCE_SHARE = 3, 0.2
"""Patience in epochs if it is auto: the larger of PATIENCE and this share of all epochs."""
CONFIDENT_LOSS = 0.1
"""Validation loss below which correct predictions of all rows aren't chance, even of few rows."""


@dataclass(frozen=True)
class StoppingRule:
    """Rule that decides when training ends, from the `Progress` after each epoch.

    Attributes:
        epochs: Largest number of epochs.
        patience: Number of epochs without progress after which training ends, or None if they don't
            end it. A greater monitored value is progress.
        loss_is_progress: True if a decrease of the validation loss is progress, too, until
            `is_perfect` is true.
        perfect_patience: Patience in place of `patience` once `is_perfect` is true, even if
            `patience` is None.
        hopeless_after: Number of epochs after which training ends if none of them beat the
            majority-class baseline, or None if this doesn't end it.
        min_delta: Smallest decrease of the validation loss that counts, in nats.
        rows: Number of validation rows, or 0 without a validation split.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if the monitored
            values aren't compared with it.
    """

    epochs: int
    patience: int | None
    loss_is_progress: bool
    perfect_patience: int
    hopeless_after: int | None = None
    min_delta: float = 0.0
    rows: int = 0
    baseline: float = -1.0

    @property
    def loss_error(self) -> float:
        """Approximate standard error of the validation loss in nats; infinity without validation.

        It is exact if the losses of the rows have a standard deviation of 1 nat.
        """
        return 1 / math.sqrt(self.rows) if self.rows else math.inf

    def is_over(self, progress: Progress) -> bool:
        """Return True if training ends early after the epochs in `progress`.

        The reason is too many epochs without progress, or too many epochs of which none beat the
        majority-class baseline. The number `epochs` isn't considered.
        """
        is_late = self.hopeless_after is not None and progress.epoch >= self.hopeless_after
        if is_late and not self.beats_baseline(progress):
            return True
        patience = self.perfect_patience if self.is_perfect(progress) else self.patience
        return patience is not None and progress.epochs_without_better >= patience

    def is_perfect(self, progress: Progress) -> bool:
        """Return True if the best epoch predicted all of validation correctly, and not by chance.

        A monitored value of 1 means that all predictions were right. Chance is ruled out by at
        least MANY_ROWS validation rows, or by a lowest validation loss below CONFIDENT_LOSS.
        Without a validation split, the result is False.
        """
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
        """Update the progress by the result of an epoch; return True if the epoch is the best yet.

        An epoch is the best if its value is greater than all earlier values. With an equal value,
        it is the best if its loss is lower by more than `min_delta`. The plateaus of the learning
        rate count such an epoch as one without progress nevertheless. Patience does so, too, unless
        the lower loss is progress by `loss_is_progress`.

        `refit_epochs` becomes the number of this epoch if it is the best. It also does if the value
        is below 1 and within one standard error of the best value, and the loss is within
        `loss_error` of the lowest validation loss. Without the first margin, a small validation
        split could make a refit too short. Without the second one, the refit of a model that
        overfits would repeat all epochs, because the standard error of few rows is large. For the
        same reason, an epoch in which all of train was right counts only up to twice the best one.

        Args:
            progress: Progress at the end of the epoch, before `begin_epoch`. It is changed.
            value: Monitored value, negated if smaller is better. None if nothing is monitored; then
                nothing is changed, and the result is False.
            loss: Training loss in nats.
            validation_loss: Validation loss in nats, or None without a validation split. It decides
                in place of the training loss.
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
        is_near = is_near and loss <= progress.lowest_loss + self.loss_error
        is_learned = 0 < progress.examples == progress.correct
        is_late = is_learned and progress.epoch + 1 > 2 * progress.best_epoch
        if is_better or is_lower or (is_near and not is_late):
            progress.refit_epochs = progress.epoch + 1
        if validation_loss is not None and loss < progress.lowest_loss - self.min_delta:
            progress.lowest_loss = loss
            if self.loss_is_progress and not self.is_perfect(progress):
                progress.epochs_without_better = 0
        return is_better or is_lower

    def beats_baseline(self, progress: Progress, errors: float = 0.0) -> bool:
        """Return True if the best value exceeds the majority-class baseline.

        The result is True before the first epoch, and if the baseline is -1.

        Args:
            progress: Progress with the best value so far.
            errors: Number of standard errors of the baseline by which it must be exceeded.
        """
        variance = max(0.0, self.baseline * (1 - self.baseline))
        error = math.sqrt(variance / self.rows) if self.rows else 0.0
        best = progress.best_value
        if best is None or self.baseline < 0:
            return True
        return best > self.baseline + errors * error


def stopping_rule(
    settings: TrainingConfig,
    updates_per_epoch: int,
    validation: SequenceStore | None = None,
    baseline: float = -1.0,
) -> StoppingRule:
    """Return the stopping rule of a config.

    Args:
        settings: Section of the config with the number of epochs and the patience.
        updates_per_epoch: Number of updates in an epoch, on which ``max_epochs: auto`` depends.
        validation: Validation split, or None.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if the monitored
            values can't be compared with it.
    """
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
