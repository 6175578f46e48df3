"""The learning rate as a pure function of the update."""

from __future__ import annotations

import math

from seqtrain.config.schema import TrainingConfig

PLATEAU_FACTOR = 0.5


def lr_at(update: int, total_updates: int, config: TrainingConfig, plateaus: int = 0) -> float:
    """Return the learning rate of one update.

    Args:
        update: updates made before this one.
        total_updates: of all epochs; later ones (batches by tokens may be more in a later epoch)
            have the last rate.
        config: lr, schedule and warmup.
        plateaus: epochs so far that brought no better monitored value (schedule plateau).
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
