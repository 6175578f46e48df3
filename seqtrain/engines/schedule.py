"""The learning rate of an update.

To add a schedule, add an entry to ``SCHEDULES`` and its name to ``training.schedule`` in
``config/schema.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from seqtrain.config.schema import TrainingConfig

PLATEAU_FACTOR = 0.5
"""Factor of the learning rate for each epoch without a better monitored value, if it is plateau."""

SCHEDULES: dict[str, Callable[[float, int], float]] = {
    "constant": lambda done, plateaus: 1.0,
    "linear": lambda done, plateaus: 1.0 - done,
    "cosine": lambda done, plateaus: 0.5 * (1.0 + math.cos(math.pi * done)),
    "plateau": lambda done, plateaus: PLATEAU_FACTOR**plateaus,
}
"""Maps each schedule to a function that returns the factor of ``training.lr``.

The arguments of the function are the share of the updates after the warmup that were made, in
[0, 1], and the number of epochs without a better monitored value.
"""


def learning_rate(
    settings: TrainingConfig, update: int, total_updates: int, plateaus: int = 0
) -> float:
    """Return the learning rate of an update.

    Args:
        settings: Section of the config with the learning rate, the schedule and the warmup.
        update: Number of earlier updates in the phase. From `total_updates` on, the rate is the
            last one of the schedule.
        total_updates: Number of updates after which the schedule ends.
        plateaus: Number of epochs so far without a better monitored value.
    """
    warmup = round(settings.warmup * total_updates)
    if update < warmup:
        return settings.lr * (update + 1) / warmup
    done = min(1.0, (update - warmup) / max(1, total_updates - warmup))
    return settings.lr * SCHEDULES[settings.schedule](done, plateaus)
