"""How far to trust a probability: shares of branches, temperature, what a threshold brings.

B examples, C classes.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from seqtrain.config.schema import Section
from seqtrain.model.classifier import combined

COOLEST, HOTTEST = 0.01, 100.0
"""Temperatures that a model may have."""
LEVELS = 100
"""Shares of validation, the most confident first, whose accuracy is kept with a model."""
STEPS = 200
"""Steps of the search at most; Newton's take about ten."""
Z = 1.96
"""Standard deviations of a normal distribution that 95 % lie within."""
FEWEST_ROWS, MOST_ROWS = 100, 10_000
"""Rows of validation from which the branches' shares are chosen, and on how many of them."""
UNCALIBRATED = [0.2, 0.8]
"""Shares of a network that is too sure of itself, and of kernels, which rows left out calibrate:
where too few rows of validation, or none, would choose them."""
TENTHS = 10
"""Shares of two branches that are tried: 0, 1, … of so many."""
CELLS = 2**22
"""Logits that are looked at at once, in double precision: memory stays flat."""

_Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class CoveragePoint(Section):
    """The predictions whose probability reaches a threshold."""

    coverage: _Share
    """Share of all examples that they are."""
    min_probability: _Share
    """The threshold."""
    accuracy: _Share
    """Share of them that are right."""

    def least(self, rows: int) -> float:
        """Return the lower end of the accuracy's 95 % interval for so many rows (Wilson 1927)."""
        square = Z * Z / rows
        spread = math.sqrt(square * self.accuracy * (1 - self.accuracy) + square * square / 4)
        return (self.accuracy + square / 2 - spread) / (1 + square)


class Calibration(Section):
    """What validation shows about a model's probabilities; kept in model.json."""

    temperature: Annotated[float, Field(ge=COOLEST, le=HOTTEST, allow_inf_nan=False)] = 1.0
    """Divides the logits."""
    shares: Annotated[list[_Share], Field(max_length=2)] | None = None
    """Of the branches' log-probabilities in a prediction; None: equal ones."""
    shift: list[Annotated[float, Field(allow_inf_nan=False)]] | None = None
    """What training.logit_adjustment adds to the calibrated logit of each class."""
    coverage: Annotated[list[CoveragePoint], Field(max_length=LEVELS)] = Field(default=[])
    """From the most confident predictions to all."""
    rows: Annotated[int, Field(ge=0)] = 0
    """Of validation; 0 where they weren't counted."""

    def threshold(self, precision: float) -> CoveragePoint | None:
        """Return the most of validation that is right with this share; None: no such part."""
        good = [point for point in self.coverage if point.accuracy >= precision]
        return max(good, key=lambda point: point.coverage, default=None)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """Return the temperature with which probabilities have the least mean cross-entropy.

    It is from COOLEST to HOTTEST; 1 where no label is known. Where all of N predictions are right,
    labels count as right with a probability of (N + 1) / (N + 2): else the least cross-entropy
    would be that of a model which is always sure.

    Shape:
        logits: (B, C). labels: (B,); -1, a label that train lacks, is left out.

    Reference:
        Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2; by Newton's steps,
        convex in 1 / temperature. Platt 1999, "Probabilistic Outputs for Support Vector Machines".
    """
    right = (logits.argmax(dim=1) == labels)[labels >= 0]
    if not len(right):
        return 1.0
    sure = (len(right) + 1) / (len(right) + 2) if bool(right.all()) else 1.0
    low, high, factor = 1 / HOTTEST, 1 / COOLEST, 1.0
    for _ in range(STEPS):
        slope, bend = _derivatives(logits, labels, factor, sure)
        low, high = (factor, high) if slope < 0 else (low, factor)
        step = factor - slope / bend if bend > 0 else low
        step = step if low < step < high else (low * high) ** 0.5
        if abs(step - factor) <= 1e-12 * factor:
            break
        factor = step
    return min(max(1 / factor, COOLEST), HOTTEST)


def _derivatives(logits: Tensor, labels: Tensor, factor: float, sure: float) -> tuple[float, float]:
    """Return two derivatives of the summed cross-entropies by the factor, 1 / temperature."""
    slope = bend = 0.0
    for block, true in double_blocks(logits, labels):
        known = true >= 0
        some = block[known] - block[known].amax(dim=1, keepdim=True)
        probabilities = (factor * some).softmax(dim=1)
        mean = (probabilities * some).sum(dim=1)
        of_label = some.gather(1, true[known].unsqueeze(1)).squeeze(1)
        of_others = (some.sum(dim=1) - of_label) / (some.shape[1] - 1)
        slope += float((mean - sure * of_label - (1 - sure) * of_others).sum())
        bend += float(((probabilities * some.square()).sum(dim=1) - mean.square()).sum())
    return slope, bend


def double_blocks(logits: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rows of logits (B, C), in double precision, and their labels, about CELLS at once."""
    size = max(1, CELLS // logits.shape[1])
    for some, true in zip(torch.split(logits, size), torch.split(labels, size), strict=True):
        yield some.double(), true


def adjustment(share: float, labels: Tensor, classes: int) -> list[float] | None:
    """Return what to add to the logit of each class: to that of rare ones in train the most.

    Reference:
        Menon et al. 2021, "Long-tail learning via logit adjustment", arXiv 2007.07314, section 4.1.
    """
    if not share:
        return None
    counts = torch.bincount(labels, minlength=classes).clamp(min=1)
    found: list[float] = (share * (counts.max() / counts).log()).tolist()
    return found


def calibrate(
    branches: Sequence[Tensor], labels: Tensor, before: Calibration | None = None
) -> Calibration:
    """Fit shares and temperature to held-out logits, and find how good confident predictions are.

    Shape:
        branches: (B, C) each. labels: (B,); -1 where train lacks the label. `before` has the shift,
        and the shares where too few rows would choose them.
    """
    before = before or Calibration()
    shares = fit_shares(branches, labels) or before.shares
    logits = combined(branches, shares)
    temperature = fit_temperature(logits, labels)
    logits = logits / temperature + logits.new_tensor(before.shift or 0)
    confidence = [some.softmax(dim=1).amax(dim=1) for some, _ in double_blocks(logits, labels)]
    points = coverage_points(torch.cat(confidence), logits.argmax(dim=1) == labels, LEVELS)
    found = {"temperature": temperature, "shares": shares, "coverage": points, "rows": len(labels)}
    return before.model_copy(update=found)


def fit_shares(branches: Sequence[Tensor], labels: Tensor) -> list[float] | None:
    """Return the shares of two branches with the least mean cross-entropy, as in stacking.

    None where there is one branch, too few rows to choose by, or all are right.

    Reference:
        Wolpert 1992, "Stacked generalization".
    """
    right = (combined(branches).argmax(1) == labels)[labels >= 0]
    if len(branches) == 1 or len(right) < FEWEST_ROWS or bool(right.all()):
        return None
    some = slice(None, None, -(-len(labels) // MOST_ROWS))
    branches, labels = [logits[some] for logits in branches], labels[some]

    def loss(shares: list[float]) -> float:
        logits = combined(branches, shares)
        scaled = logits / fit_temperature(logits, labels)
        return float(functional.cross_entropy(scaled, labels, ignore_index=-1))

    return min(([1 - n / TENTHS, n / TENTHS] for n in range(TENTHS + 1)), key=loss)


def coverage_points(confidence: Tensor, correct: Tensor, levels: int) -> list[CoveragePoint]:
    """Return how good the most confident predictions are, for equal shares of all: (B,), (B,).

    Predictions of equal probability stay together; no points where a probability isn't a number.
    """
    if bool(confidence.isnan().any()):
        return []
    ordered, order = confidence.double().sort(descending=True, stable=True)
    hits = correct[order].double().cumsum(0)
    shares = torch.arange(1, levels + 1, dtype=torch.int64, device="cpu")
    thresholds = torch.unique(ordered[-(-shares * len(ordered) // levels) - 1])
    counts = torch.searchsorted(-ordered, -thresholds, right=True)
    return [
        CoveragePoint(
            coverage=count / len(ordered),
            min_probability=threshold,
            accuracy=float(hits[count - 1]) / count,
        )
        for count, threshold in zip(
            counts.flip(0).tolist(), thresholds.flip(0).tolist(), strict=True
        )
    ]
