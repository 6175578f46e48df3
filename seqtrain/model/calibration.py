"""The calibration that a network applies to the logits of its branches."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from seqtrain.config.value_types import Section
from seqtrain.model.branches import BRANCHES

COOLEST, HOTTEST = 0.01, 100.0
"""Lowest and highest temperature that a model may have."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number in [0, 1], as a model file holds it."""
Temperature = Annotated[float, Field(ge=COOLEST, le=HOTTEST)]


class LogitCalibration(Section):
    """Calibration that turns the logits of the branches into the logits of a prediction."""

    temperature: Temperature | Annotated[list[Temperature], Field(min_length=1)] = 1.0
    """Divisor of the mean logits. If multi-label, one for each class, or one for all."""
    branch_weights: Annotated[list[Share], Field(max_length=len(BRANCHES))] | None = None
    """Weight of each branch in the mean of the logits, with a sum of 1, or None for equal ones."""
    shift: Annotated[list[float], Field(min_length=1)] | None = None
    """Addition to each class's logit after division (training.logit_adjustment), or None."""
