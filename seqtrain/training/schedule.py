"""Learning-rate schedules: the learning rate of each update, as a pure function.

To add a schedule, add an entry to ``SCHEDULES``, and its name to ``TrainingConfig`` in
``config/schema.py``.
"""

import math
from collections.abc import Callable

from seqtrain.config.schema import TrainingConfig

PLATEAU_FACTOR = 0.5
"""Factor of the learning rate after each epoch without a better monitored value."""

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda progress, plateaus: 1.0,
    "linear": lambda progress, plateaus: 1.0 - progress,
    "cosine": lambda progress, plateaus: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "plateau": lambda progress, plateaus: PLATEAU_FACTOR**plateaus,
}
"""Factor of ``training.lr`` by the share of updates made since the warmup, in [0, 1], and the
number of epochs without a better value."""


def lr_at(update: int, total_updates: int, config: TrainingConfig, plateaus: int = 0) -> float:
    """Return the learning rate of an update.

    Args:
        update: Number of updates made before. After the last one, the rate stays.
        total_updates: Number of updates of the whole run.
        config: Learning rate, schedule and warmup.
        plateaus: Number of epochs without a better monitored value so far.
    """
    warmup = round(config.warmup * total_updates)
    if update < warmup:
        return config.lr * (update + 1) / warmup
    progress = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    return config.lr * SCHEDULES[config.schedule](progress, plateaus)
