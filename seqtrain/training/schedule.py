"""When training ends, and the learning rate of each update: pure functions.

Where the config leaves epochs and patience open, they are counted such that a small data set has
its updates too: an epoch of 300 rows is five, one of 300,000 five thousand.
"""

import math
from dataclasses import dataclass
from typing import Literal

from seqtrain.config.schema import TrainingConfig

PLATEAU_FACTOR = 0.5
EPOCHS, MOST_EPOCHS = 10, 100
"""Epochs where max_epochs is auto: EPOCHS, or up to MOST_EPOCHS where these are few updates."""
UPDATES = 2000
"""Updates that a run has at least where max_epochs is auto, as far as MOST_EPOCHS allows."""
PATIENCE, PATIENCE_SHARE = 3, 0.2
"""Epochs without progress where patience is auto: the larger of PATIENCE and this share of all."""


@dataclass(frozen=True)
class Budget:
    """When training ends.

    Attributes:
        epochs: passes over train at most.
        patience: epochs without progress that end it earlier; None: they never do.
        progress: a better monitored value, or also a validation loss lower than ever.
        perfect: epochs that follow the first one of which all of validation is right.
        hopeless: epochs after which it ends if none beat always the largest class; None: never.
    """

    epochs: int
    patience: int | None
    progress: Literal["value", "value or loss"]
    perfect: int
    hopeless: int | None = None


def budget(settings: TrainingConfig, updates_per_epoch: int) -> Budget:
    """Return when training ends, where an epoch has so many updates."""
    if settings.max_epochs == "auto":
        epochs = max(EPOCHS, min(MOST_EPOCHS, -(-UPDATES // updates_per_epoch)))
    else:
        epochs = settings.max_epochs
    auto = max(PATIENCE, round(PATIENCE_SHARE * epochs))
    if settings.patience == "auto":
        hopeless = max(EPOCHS, epochs // 2)
        return Budget(epochs, auto, "value or loss", perfect=auto, hopeless=hopeless)
    return Budget(epochs, settings.patience, "value", perfect=auto)


def lr_at(update: int, total_updates: int, config: TrainingConfig, plateaus: int = 0) -> float:
    """Return the learning rate of one update, after so many made before it.

    Updates beyond the total have the last rate; `plateaus` are epochs without a better value.
    """
    warmup = round(config.warmup * total_updates)
    if update < warmup:
        return config.lr * (update + 1) / warmup
    progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    factor = {
        "constant": 1.0,
        "linear": 1.0 - progress,
        "cosine": 0.5 * (1.0 + math.cos(math.pi * progress)),
        "plateau": PLATEAU_FACTOR**plateaus,
    }[config.schedule]
    return config.lr * factor
