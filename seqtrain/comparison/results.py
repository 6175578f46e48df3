"""What a comparison found, and what it recommends: the object that `--json` prints."""

from collections.abc import Sequence
from dataclasses import dataclass

FEW = 3
"""Least number of turns by which two speeds can be compared."""
SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of time steps."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""


@dataclass(frozen=True)
class Speed:
    """How fast a variant was in one mode: real time steps per second, padding never counted."""

    tokens_per_second: float
    turns: int
    slowest: float
    fastest: float

    @property
    def spread(self) -> str:
        """The slowest and the fastest turn, in thousands."""
        return f"{thousands(self.slowest)}-{thousands(self.fastest)}"


@dataclass
class VariantResult:
    """What was found of one variant.

    Attributes:
        kind: as `Variant` says.
        setting: what to write into a config to have it; empty for a recipe.
        padding: share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: of logits, from the same sequences one by one (and the same pooling).
        accuracy: on held-out sequences after equal training, in [0, 1].
        problem: why it was left out; empty where it wasn't.
    """

    name: str
    kind: str
    setting: str = ""
    training: Speed | None = None
    prediction: Speed | None = None
    padding: float = 0.0
    largest_difference: float | None = None
    accuracy: float | None = None
    problem: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it was measured in training, and its logits are right."""
        difference = self.largest_difference
        is_same = difference is not None and difference <= SAME
        return is_same and self.training is not None and self.kind not in ("wrong", "pooling")


@dataclass(frozen=True)
class Comparison:
    """All variants on one config, data set and machine.

    Attributes:
        rows, tokens: of train.
        passes: over these rows before accuracies were measured; 0: there was no time for it.
        held_out: sequences that accuracies are measured on.
        seconds: the comparison took, with reading and the first batches.
    """

    device: str
    threads: int
    rnn: str
    rows: int
    tokens: int
    warnings: list[str]
    candidates: list[VariantResult]
    passes: float
    held_out: int
    recommended: str | None
    reason: str
    seconds: float


def thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands, with as many digits as it is worth."""
    value = tokens_per_second / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def recommend(results: Sequence[VariantResult], auto: str) -> tuple[str | None, str]:
    """Return the name of the variant to take, and why, in a few sentences.

    That is the engine of model.engine: auto, unless another one with the right logits is faster in
    training beyond noise: another engine, or a setting or recipe also AS_FAST times as fast.
    """
    right = [(each, each.training) for each in results if each.is_right and each.training]
    right.sort(key=lambda one: -one[1].tokens_per_second)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    usual, own = next((one for one in right if one[0].name == auto), right[0])
    chosen = (
        (each, speed)
        for each, speed in right
        if min(speed.turns, own.turns) >= FEW
        and speed.slowest > own.fastest
        and (each.kind == "engine" or speed.tokens_per_second >= AS_FAST * own.tokens_per_second)
    )
    best, speed = next(chosen, (usual, own))
    why = "It is the fastest in training here, beyond noise."
    if best.name == auto:
        why = "It is what model.engine: auto takes; no other engine is faster beyond noise."
    why += f" {thousands(speed.tokens_per_second)} thousand tokens/s (turns {speed.spread})"
    kind = "engine" if best.kind == "recipe" else "recipe"
    what = "engine of seqtrain" if best.kind == "recipe" else "plain torch script"
    for each, other in [one for one in right if one[0].kind == kind][:1]:
        times = speed.tokens_per_second / other.tokens_per_second
        its_own = f"{thousands(other.tokens_per_second)}; turns {other.spread}"
        why += f": {times:.1f} times as fast as {each.name}, the fastest {what} ({its_own})"
    return best.name, f"{why}."
