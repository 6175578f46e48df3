"""The end of training: number of epochs, patience, and early stopping.

With ``max_epochs: auto``, the number of epochs depends on the number of updates in an epoch. With a
batch size of 64, an epoch of 300 rows has 5 updates, and one of 300,000 rows has about 5,000. So a
small data set needs more epochs.
"""

import math
from dataclasses import dataclass

from seqtrain.config.schema import TrainingConfig
from seqtrain.sequences.splits import MANY_ROWS
from seqtrain.sequences.store import SequenceStore
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
        patience: Number of epochs without progress after which training ends, or None for no limit.
            A greater monitored value is progress.
        loss_is_progress: True if a lower validation loss is also progress, as long as `is_perfect`
            is False.
        perfect_patience: Number of epochs that replaces `patience` once `is_perfect` is True.
        hopeless_after: Number of epochs after which training ends if no epoch beat the
            majority-class baseline, or None for no limit.
        min_delta: Smallest decrease of the validation loss that counts, in nats.
        rows: Number of validation rows, or 0 without a validation split.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if the baseline isn't
            considered.
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

        - There were too many epochs without progress, by patience.
        - No epoch beat the majority-class baseline, after `hopeless_after` epochs or more.

        The limit `epochs` isn't considered.
        """
        is_late = self.hopeless_after is not None and progress.epoch >= self.hopeless_after
        if is_late and not self.beats_baseline(progress):
            return True
        patience = self.perfect_patience if self.is_perfect(progress) else self.patience
        return patience is not None and progress.epochs_without_better >= patience

    def is_perfect(self, progress: Progress) -> bool:
        """Return True if the best epoch predicted all of validation correctly, and not by chance.

        All predictions were right if the monitored value is 1. Chance is excluded by at least
        MANY_ROWS validation rows, or by a validation loss below CONFIDENT_LOSS. Without a
        validation split, the result is False.
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
        it is the best if its loss is lower by more than `min_delta`.

        A greater value resets the numbers of epochs without progress. A lower validation loss
        resets only the number for patience, and only if `loss_is_progress`.

        `refit_epochs` becomes the number of the best epoch, or of a later epoch that is about as
        good. An epoch is about as good if all of this holds:

        - The value is below 1, and within one standard error of the best value.
        - The loss is within `loss_error` of the lowest validation loss.
        - Not all of train was right, or the epoch is at most twice the best one.

        The first rule keeps a small validation split from making a refit too short. The other two
        rules keep the refit of a model that overfits from repeating all epochs.

        Args:
            progress: Progress at the end of the epoch, before `begin_epoch`. It is changed.
            value: Monitored value, negated if smaller is better. With None, nothing is changed, and
                the result is False.
            loss: Training loss in nats.
            validation_loss: Validation loss in nats, which replaces the training loss, or None
                without a validation split.
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

        Before the first epoch, and with a baseline of -1, return True.

        Args:
            progress: Progress with the best value so far.
            errors: Number of standard errors of the baseline by which the value must exceed it.
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
    """Return the rule by which training ends: the largest number of epochs, and when to stop early.

    Args:
        settings: Section of the config with the number of epochs and the patience.
        updates_per_epoch: Number of updates in an epoch, on which ``max_epochs: auto`` depends.
        validation: Validation split, or None. Its number of rows decides which changes of the loss
            count.
        baseline: Accuracy of the majority-class baseline on validation. With `patience: auto`,
            training stops early if no epoch beats it. With -1, the baseline isn't considered.
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
