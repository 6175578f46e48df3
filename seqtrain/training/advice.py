"""Lines for the user about a run: accuracy that calibration traded, its end, and advice."""

from __future__ import annotations

from seqtrain.evaluation.scores import Scores
from seqtrain.text import counted
from seqtrain.training.stopping import beats_baseline
from seqtrain.training.trainer import Trainer

CLEAR_MARGIN = 2.0
"""Number of standard errors by which a model should beat the majority-class baseline."""


def traded_accuracy(before: Scores, after: Scores) -> list[str]:
    """Return a line if the calibration lowers the accuracy on validation, or [].

    The logit adjustment and the threshold of a rare class favour rare classes. If macro F1 isn't
    higher either, nothing was gained on these rows.

    Args:
        before: Scores of the most probable class, without adjustment and thresholds.
        after: Scores of the calibrated model.
    """
    baseline = after.majority_baseline or 0.0
    if after.accuracy >= before.accuracy:
        return []
    if after.accuracy < baseline:
        is_below = f", below the majority class ({baseline:.1%})"
    else:
        is_below = ""
    changes = (
        f"accuracy {before.accuracy:.1%} → {after.accuracy:.1%}{is_below}, macro F1 "
        f"{before.macro_f1:.1%} → {after.macro_f1:.1%}"
    )
    if after.macro_f1 > before.macro_f1:
        line = f"calibration traded accuracy for rare classes on validation: {changes}"
    else:
        line = f"calibration gained nothing on validation: {changes}"
    return [f"{line} (training.logit_adjustment, training.thresholds)"]


def nothing_left(trainer: Trainer) -> str | None:
    """Return the reason why no epoch is left to train, or None if an epoch is left.

    Epochs of pretraining, training and a refit are considered.
    """
    progress = trainer.progress
    if not trainer.setup.is_last or not trainer.is_over:
        return None
    if trainer.setup.selects_epoch:
        return (
            f"training ended after epoch {progress.epoch}, the best is {trainer.best_epoch}; to "
            "continue, raise training.max_epochs or training.patience"
        )
    return (
        f"training.refit ended after {counted(progress.epoch, 'epoch')}, and none can follow; for "
        "another model start a new run"
    )


def training_advice(trainer: Trainer) -> str | None:
    """Return advice to the user on how to get a better model, or None if there is none.

    There is advice in two cases:

    - The best epoch isn't clearly better than the majority-class baseline.
    - Training ran all of its epochs, and the last one was the best.

    Without validation, or with a perfect score, return None.
    """
    progress, rule, monitor = trainer.progress, trainer.rule, trainer.config.training.monitor
    if "validation" not in trainer.data.splits or not progress.history:
        return None
    value = progress.history[trainer.best_epoch - 1].model_value
    if value >= 1:
        return None
    # The baseline is known for accuracy only, but no metric of 0 beats it.
    if value == 0.0 or not beats_baseline(value, rule, CLEAR_MARGIN):
        return (
            f"validation {monitor} {value:.1%} is not clearly better than the "
            f"majority-class baseline ({max(0.0, rule.baseline):.1%}). Check data.sequence and "
            "data.label (seqtrain data), or try another training.lr or more rows."
        )
    if 1 < progress.epoch == trainer.best_epoch == rule.epochs:
        return f"the last epoch was the best; more than {rule.epochs} may help: training.max_epochs"
    return None
