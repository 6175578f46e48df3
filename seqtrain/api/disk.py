"""Refusing to train where the disk can't hold what a run saves, before the first epoch."""

from __future__ import annotations

import shutil
from pathlib import Path

from torch import nn

from seqtrain.data.store import Ints
from seqtrain.errors import RunError
from seqtrain.runs.checkpoint import expected_size
from seqtrain.runs.destination import nearest_existing
from seqtrain.runs.model_folder import Model

CHECKPOINTS = 5
"""Folders that stand at most at one time: best, last, previous and two under way, or pretrained."""


def check_space(folder: Path, model: Model, learning: nn.Module, groups: Ints | None) -> None:
    """Compare the space that a run's folders need at most with what is free.

    Args:
        folder: the run directory, or one above it that may not exist yet.
        model: to be saved.
        learning: what is trained first: the model's network, or what pretrains it.
        groups: of train's rows, where states are carried between them.

    Raises:
        RunError: there is less; both are named in bytes.
    """
    needed = CHECKPOINTS * expected_size(model, learning, groups)
    free = shutil.disk_usage(nearest_existing(folder)).free
    if free < needed:
        raise RunError(
            f"{folder}: {free:,} bytes are free on its disk; expected {needed:,} for the run's "
            "checkpoints; make room, or choose another --run-dir"
        )
