"""The end of training: the best epoch, early stopping, and the epochs of a refit.

All of it follows from the list of epoch results. Nothing is counted along the way, so a resumed run
can't count differently.

With ``max_epochs: auto``, the number of epochs depends on the number of updates in an epoch. With a
batch size of 64, an epoch of 300 rows has 5 updates, and one of 300,000 rows has about 5,000. So a
small data set needs more epochs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from seqtrain.config.schema import TrainingConfig
from seqtrain.sequences.splits import MANY_ROWS

AUTO_EPOCHS, AUTO_MOST_EPOCHS = 10, 100
"""Smallest and largest number of epochs if max_epochs is auto."""
AUTO_UPDATES = 2000
"""Smallest number of updates if max_epochs is auto, unless AUTO_MOST_EPOCHS epochs have fewer."""
AUTO_PATIENCE, PATIENCE_SHARE = 3, 0.2
"""Patience in epochs if it is auto: the larger of AUTO_PATIENCE and this share of all epochs."""
CONFIDENT_LOSS = 0.1
"""Validation loss below which correct predictions of all rows aren't chance, even of few rows."""
MOST_SUMMED = 1e300
"""Largest sum or loss that is accepted from a file."""

Sum = Annotated[float, Field(ge=0, le=MOST_SUMMED)]
Signed = Annotated[float, Field(ge=-MOST_SUMMED, le=MOST_SUMMED)]
"""Number of any sign, such as a monitored value."""


class EpochResult(BaseModel):
    """Result of an epoch of training, by which epochs are compared.

    Attributes:
        value: Monitored value of the branch that is trained, negated if smaller is better.
        error: Standard error of the value, or 0 if it is unknown.
        loss: Validation loss of this branch in nats, or without validation the training loss.
        train_loss: Training loss in nats.
        train_accuracy: Training accuracy, in [0, 1].
        model_value: Monitored value of the whole model, with the branches that were solved.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    value: Signed
    error: Sum
    loss: Signed
    train_loss: Signed
    train_accuracy: Annotated[float, Field(ge=0, le=1)]
    model_value: Signed


History: TypeAlias = Sequence[EpochResult]
"""Results of all epochs of training so far."""


@dataclass(frozen=True)
class StoppingRule:
    """Limits of training.

    Attributes:
        epochs: Largest number of epochs.
        patience: Number of epochs without progress after which training ends, or None for no limit.
            A greater value is progress.
        loss_is_progress: True if a lower validation loss is also progress, as long as not all of
            validation is predicted correctly.
        perfect_patience: Number of epochs that replaces `patience` once all of validation is
            predicted correctly, and not by chance.
        hopeless_after: Number of epochs after which training ends if no epoch beat the
            majority-class baseline, or None for no limit.
        min_delta: Smallest decrease of the loss that is progress, in nats.
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
    def noise(self) -> float:
        """Decrease of the loss in nats by which one of two equal values is better.

        It is as if the log-likelihood of one validation row changed by 1. It doesn't depend on
        `min_delta`, so that a resumed run with another `min_delta` has the same best epoch.
        """
        if self.rows:
            return 1 / self.rows
        return 0.0

    @property
    def loss_error(self) -> float:
        """Approximate standard error of the validation loss in nats; infinity without validation.

        It is exact if the losses of the rows have a standard deviation of 1 nat.
        """
        if self.rows:
            return 1 / math.sqrt(self.rows)
        return math.inf


def best_epoch(history: History, rule: StoppingRule) -> int:
    """Return the number of the best epoch, from 1, or 0 without epochs.

    A greater value is better. Of equal values, a loss that is lower by `noise` is better.
    """
    best = 0
    for number, result in enumerate(history, start=1):
        if best == 0 or _is_better(result, history[best - 1], rule):
            best = number
    return best


def epochs_for_refit(history: History, rule: StoppingRule) -> int:
    """Return the number of epochs of a refit: the last epoch that is about as good as the best.

    An epoch after the best one is about as good if all of this holds:

    - The value is below 1, and within one standard error of the best value.
    - The loss is within `loss_error` of the lowest loss before.
    - Not all of train was right, or the epoch is at most twice the best one.

    The first rule keeps a small validation split from making a refit too short. The other two
    rules keep the refit of a model that overfits from repeating all epochs.

    Reference:
        Breiman et al. 1984, Classification and Regression Trees, section 3.4.3.
    """
    best = chosen = best_epoch(history, rule)
    lowest = math.inf
    for number, result in enumerate(history, start=1):
        if number > best:
            least = history[best - 1].value - history[best - 1].error
            is_near = least <= result.value < 1 and result.loss <= lowest + rule.loss_error
            is_late = result.train_accuracy == 1 and number > 2 * best
            if is_near and not is_late:
                chosen = number
        if result.loss < lowest - rule.noise:
            lowest = result.loss
    return chosen


def stops_early(history: History, rule: StoppingRule) -> bool:
    """Return True if training ends before its last epoch.

    - There were too many epochs without progress, by patience.
    - No epoch beat the majority-class baseline, after `hopeless_after` epochs or more.
    """
    if not history:
        return False
    is_late = rule.hopeless_after is not None and len(history) >= rule.hopeless_after
    if is_late and not beats_baseline(max(result.value for result in history), rule):
        return True
    last_progress, is_perfect = _last_progress(history, rule)
    patience = rule.patience
    if is_perfect:
        patience = min(rule.perfect_patience, patience or rule.perfect_patience)
    return patience is not None and len(history) - last_progress >= patience


def plateaus(history: History) -> int:
    """Return the number of epochs whose value wasn't greater than all values before."""
    count = 0
    greatest = -math.inf
    for result in history:
        if result.value > greatest:
            greatest = result.value
        else:
            count += 1
    return count


def beats_baseline(value: float, rule: StoppingRule, errors: float = 0.0) -> bool:
    """Return True if a value exceeds the majority-class baseline, or the baseline is unknown.

    Args:
        value: The monitored value.
        rule: Rule with the baseline.
        errors: Number of standard errors of the baseline by which the value must exceed it.
    """
    if rule.baseline < 0:
        return True
    variance = rule.baseline * (1 - rule.baseline)
    error = math.sqrt(variance / rule.rows) if rule.rows else 0.0
    return value > rule.baseline + errors * error


def stopping_rule(
    settings: TrainingConfig, updates_per_epoch: int, rows: int = 0, baseline: float = -1.0
) -> StoppingRule:
    """Return the rule by which training ends.

    Args:
        settings: Section of the config with the number of epochs and the patience.
        updates_per_epoch: Number of updates in an epoch, on which ``max_epochs: auto`` depends.
        rows: Number of validation rows, or 0 without validation. It decides which changes of the
            loss count.
        baseline: Accuracy of the majority-class baseline on validation, or -1 if it isn't
            considered. With ``patience: auto``, training ends early if no epoch beats it.
    """
    if settings.max_epochs == "auto":
        epochs = max(
            AUTO_EPOCHS, min(AUTO_MOST_EPOCHS, math.ceil(AUTO_UPDATES / updates_per_epoch))
        )
    else:
        epochs = settings.max_epochs
    patience = max(AUTO_PATIENCE, round(PATIENCE_SHARE * epochs))
    min_delta = settings.min_delta
    if min_delta == "auto":
        min_delta = 1 / rows if rows else 0.0
    is_auto = settings.patience == "auto"
    return StoppingRule(
        epochs=epochs,
        patience=patience if settings.patience == "auto" else settings.patience,
        loss_is_progress=is_auto,
        perfect_patience=patience,
        hopeless_after=max(AUTO_EPOCHS, epochs // 2) if is_auto else None,
        min_delta=min_delta,
        rows=rows,
        baseline=baseline,
    )


def _is_better(result: EpochResult, best: EpochResult, rule: StoppingRule) -> bool:
    if result.value != best.value:
        return result.value > best.value
    return result.loss < best.loss - rule.noise


def _last_progress(history: History, rule: StoppingRule) -> tuple[int, bool]:
    """Return the number of the last epoch with progress, and whether validation is perfect.

    Progress is a greater value, or a lower loss if the rule says so. The loss counts with a
    validation split only.
    """
    last, greatest, lowest = 0, -math.inf, math.inf
    is_perfect = False
    for number, result in enumerate(history, start=1):
        if result.value > greatest:
            last = number
            greatest = result.value
        is_lower = rule.rows > 0 and result.loss < lowest - rule.min_delta
        if is_lower:
            lowest = result.loss
        is_clear = rule.rows >= MANY_ROWS or lowest < CONFIDENT_LOSS
        is_perfect = rule.rows > 0 and is_clear and greatest >= 1
        # A perfect score can't grow, so a lower loss would only prolong training.
        if is_lower and rule.loss_is_progress and not is_perfect:
            last = number
    return last, is_perfect
