"""How far to trust a probability: shares of branches, temperature, what a threshold brings.

B examples, C classes. Of several labels per example each class is a yes or no of its own.
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
CLASS_LEVELS, MOST_CLASSES = 20, 200
"""Shares of a class's rows of validation that are kept with a model; not of more classes."""
FEWEST_OF_A_CLASS = 10
"""Rows of a class from which its own threshold is chosen."""
STEPS = 200
"""Steps of the search at most; Newton's take about ten."""
Z = 1.96
"""Standard deviations of a normal distribution that 95 % lie within."""
MOST_ROWS = 10_000
"""Rows of validation that the branches' shares are chosen on, at most."""
WITH_KERNELS = [0.2, 0.8]
"""Shares of the network and of kernels unless validation clearly says otherwise: the network may be
too sure of itself; the kernels are calibrated by leave-one-out."""
TENTHS = 10
"""Shares of two branches that are tried: 0, 1, … of so many."""
CELLS = 2**22
"""Logits that are looked at at once, in double precision: memory stays flat."""

_Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
_Temperature = Annotated[float, Field(ge=COOLEST, le=HOTTEST, allow_inf_nan=False)]


class CoveragePoint(Section):
    """The predictions whose probability reaches a threshold; or those of one class."""

    coverage: _Share
    """Share of all examples that they are; of one class, share of its examples that they find."""
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

    temperature: _Temperature | list[_Temperature] = 1.0
    """Divides the logits; of several labels per example each class's."""
    shares: Annotated[list[_Share], Field(max_length=2)] | None = None
    """Of the branches' logits in a prediction; None: equal ones."""
    shift: list[Annotated[float, Field(allow_inf_nan=False)]] | None = None
    """What training.logit_adjustment adds to the calibrated logit of each class."""
    coverage: Annotated[list[CoveragePoint], Field(max_length=LEVELS)] = Field(default=[])
    """From the most confident predictions to all."""
    rows: Annotated[int, Field(ge=0)] = 0
    """Of validation; 0 where they weren't counted."""
    thresholds: list[_Share] = Field(default=[])
    """Least probability of each class that is predicted, where an example may have several."""
    classes: list[Annotated[list[CoveragePoint], Field(max_length=LEVELS)]] = Field(default=[])
    """Of each class: what thresholds on its probability bring, from few of its examples to all."""

    def fits(self, classes: int, *, multi_label: bool) -> bool:
        """Whether a model of so many classes can have it."""
        temperatures = self.temperature if isinstance(self.temperature, list) else []
        of_any = {len(self.shift or []), len(self.classes)}
        per_class = {len(temperatures), len(self.thresholds)}
        return of_any <= {0, classes} and per_class <= {0, classes if multi_label else 0}


def most_covered(points: Sequence[CoveragePoint], precision: float) -> CoveragePoint | None:
    """Return the most of validation that is right with this share; None: no such part."""
    good = [point for point in points if point.accuracy >= precision]
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
    if not share or labels.ndim == 2:  # several labels have thresholds of their own
        return None
    counts = torch.bincount(labels, minlength=classes).clamp(min=1)
    found: list[float] = (share * (counts.max() / counts).log()).tolist()
    return found


def calibrate(
    branches: Sequence[Tensor],
    labels: Tensor,
    before: Calibration | None = None,
    *,
    one_threshold: bool = False,
) -> Calibration:
    """Fit shares and temperature to held-out logits, and find how good confident predictions are.

    The shift of `before` stays; so do its shares where others are hardly better. Of several labels
    per example each class has a temperature of its own, and a threshold of greatest F1, or with
    `one_threshold` the same one.

    Shape:
        branches: (B, C) each. labels: (B,); -1 where train lacks the label; or (B, C), which of the
        classes an example has.
    """
    before = before or Calibration()
    if labels.ndim == 2:
        return _calibrate_multi_label(
            branches, labels > 0, before.shares, one_threshold=one_threshold
        )
    shares = fit_shares(branches, labels, before.shares)
    logits = combined(branches, shares)
    temperature = fit_temperature(logits, labels)
    logits = logits / temperature + logits.new_tensor(before.shift or 0)
    confidence = [some.softmax(dim=1).amax(dim=1) for some, _ in double_blocks(logits, labels)]
    points = coverage_points(torch.cat(confidence), logits.argmax(dim=1) == labels, LEVELS)
    classes = list[list[CoveragePoint]]()
    if logits.shape[1] <= MOST_CLASSES:
        has_class = labels.unsqueeze(1) == torch.arange(logits.shape[1], device="cpu")
        classes = class_points(logits.double().softmax(dim=1), has_class)
    found = {"temperature": temperature, "shares": shares, "coverage": points, "rows": len(labels)}
    return before.model_copy(update={**found, "classes": classes})


def _calibrate_multi_label(
    branches: Sequence[Tensor],
    has_class: Tensor,
    shares: list[float] | None,
    *,
    one_threshold: bool,
) -> Calibration:
    flat = [_yes_or_no(logits) for logits in branches]
    shares = fit_shares(flat, has_class.flatten().long(), shares)
    logits = combined(branches, shares)
    columns = zip(logits.T, has_class.T, strict=True)
    temperature = [fit_temperature(_yes_or_no(own), has.long()) for own, has in columns]
    divisors = torch.tensor(temperature, dtype=torch.float64, device="cpu")
    probabilities = (logits.double() / divisors).sigmoid()
    thresholds = [best_threshold(probabilities.flatten(), has_class.flatten())] * len(temperature)
    if not one_threshold:
        for index in (has_class.sum(0) >= FEWEST_OF_A_CLASS).nonzero().flatten().tolist():
            thresholds[index] = best_threshold(probabilities[:, index], has_class[:, index])
    return Calibration(
        temperature=temperature,
        shares=shares,
        rows=len(logits),
        thresholds=thresholds,
        classes=class_points(probabilities, has_class) if len(thresholds) <= MOST_CLASSES else [],
    )


def _yes_or_no(logits: Tensor) -> Tensor:
    """Return the logits of two classes, no and yes, of each number, (N, 2)."""
    flat = logits.flatten()
    return torch.stack((torch.zeros_like(flat), flat), dim=1)


def threshold_curve(scores: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return thresholds, falling, how many scores (B,) reach each, and how many of them are right.

    Equal scores stay together.
    """
    ordered, order = scores.double().sort(descending=True, stable=True)
    ends = torch.cat((ordered.diff() != 0, right.new_ones(1))).nonzero().flatten()
    hits = right[order].double().cumsum(0)
    return ordered[ends], (ends + 1).double(), hits[ends]


def best_threshold(probabilities: Tensor, right: Tensor) -> float:
    """Return the threshold of greatest F1, half-way to the next lower probability; (B,), (B,)."""
    thresholds, counts, hits = threshold_curve(probabilities, right)
    best = int((2 * hits / (counts + hits[-1])).argmax())
    return float(thresholds[best : best + 2].mean())


def class_points(probabilities: Tensor, has_class: Tensor) -> list[list[CoveragePoint]]:
    """Return what thresholds bring for each class; of those that no example has nothing."""
    columns = zip(probabilities.T, has_class.T, strict=True)
    return [coverage_points(own, has, CLASS_LEVELS, of_class=True) for own, has in columns]


def fit_shares(
    branches: Sequence[Tensor], labels: Tensor, default: list[float] | None = None
) -> list[float] | None:
    """Return the shares of two branches with the least cross-entropy, as in stacking.

    They are the default ones (None: equal), where the gain is less than its standard error; equal
    ones, where there is one branch, or these make no mistake. The temperature is that of the
    default ones.

    Reference:
        Wolpert 1992, "Stacked generalization".
    """
    right = combined(branches).argmax(1) == labels
    if len(branches) == 1 or bool(right[labels >= 0].all()):
        return None
    some = slice(None, None, -(-len(labels) // MOST_ROWS))
    branches, labels = [logits[some] for logits in branches], labels[some]

    temperature = fit_temperature(combined(branches, default), labels)

    def losses(shares: list[float] | None) -> Tensor:
        logits = combined(branches, shares).double() / temperature
        return functional.cross_entropy(logits, labels, ignore_index=-1, reduction="none")

    tried = ([1 - n / TENTHS, n / TENTHS] for n in range(TENTHS + 1))
    best = min(tried, key=lambda shares: float(losses(shares).sum()))
    gains = losses(default) - losses(best)
    return best if gains.sum() > gains.norm() else default


def coverage_points(
    confidence: Tensor, correct: Tensor, levels: int, *, of_class: bool = False
) -> list[CoveragePoint]:
    """Return how good the most confident predictions are, for equal shares of all: (B,), (B,).

    With `of_class` shares are of those that are correct, which a threshold is to find. Predictions
    of equal probability stay together; no points where a probability isn't a number.
    """
    if bool(confidence.isnan().any()) or (of_class and not bool(correct.any())):
        return []
    thresholds, counts, hits = threshold_curve(confidence, correct)
    reached = hits if of_class else counts
    shares = torch.arange(1, levels + 1, dtype=torch.float64, device="cpu")
    at = torch.unique(torch.searchsorted(reached, (shares * reached[-1] / levels).ceil()))
    coverage, accuracy = reached[at] / reached[-1], hits[at] / counts[at]
    return [
        CoveragePoint(coverage=share, min_probability=threshold, accuracy=right)
        for share, threshold, right in zip(
            coverage.tolist(), thresholds[at].tolist(), accuracy.tolist(), strict=True
        )
    ]
