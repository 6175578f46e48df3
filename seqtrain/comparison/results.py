"""What a comparison found, and what it recommends: the object that `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seqtrain.text import listed

FEW = 3
"""Turns that it takes to tell two speeds apart."""
SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of time steps."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""


@dataclass(frozen=True)
class Speed:
    """How fast a variant was in one mode.

    Attributes:
        tokens_per_second: real time steps, padding never counted.
        turns: measured in.
        slowest, fastest: of these turns, in tokens per second; they show the noise.
    """

    tokens_per_second: float
    turns: int
    slowest: float
    fastest: float

    @property
    def spread(self) -> str:
        """The slowest and the fastest turn, in thousands."""
        if self.turns == 1:
            return "1 turn"
        return f"turns {thousands(self.slowest)}-{thousands(self.fastest)}"

    def beyond_noise(self, other: Speed) -> bool:
        """Whether even its slowest turn was faster than the other's fastest, of enough turns."""
        return min(self.turns, other.turns) >= FEW and self.slowest > other.fastest


@dataclass(frozen=True)
class VariantResult:
    """What was found of one variant.

    Attributes:
        name: of the variant.
        kind: engine, option, recipe, wrong or pooling, as `Variant` says.
        setting: what to write into a config to have it; empty for a recipe.
        training, prediction: speeds; None where nothing could be measured.
        padding: share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: of logits, from the same sequences one by one (and the same pooling).
        accuracy: on held-out sequences after equal training, in [0, 1]; None where there was none.
        problem: why it was left out; empty where it wasn't.
    """

    name: str
    kind: str
    setting: str
    training: Speed | None
    prediction: Speed | None
    padding: float
    largest_difference: float | None
    accuracy: float | None
    problem: str

    @property
    def is_right(self) -> bool:
        """Whether it was measured in training, and its logits are right."""
        difference = self.largest_difference
        is_same = difference is not None and difference <= SAME
        return is_same and self.training is not None and self.kind not in ("wrong", "pooling")

    @property
    def rate(self) -> float:
        """Tokens per second in training; 0 where nothing was measured."""
        return self.training.tokens_per_second if self.training else 0.0

    def beats(self, other: VariantResult) -> bool:
        """Whether it is faster in training, beyond noise."""
        if self.training is None or other.training is None:
            return False
        return self.training.beyond_noise(other.training)


@dataclass(frozen=True)
class Comparison:
    """All variants on one config, data set and machine.

    Attributes:
        device, threads: what computed.
        rnn: cell of the model.
        rows, tokens: of the part of train that was measured on.
        warnings: what was done to rows as they were read, a line each.
        candidates: one per variant.
        passes: over these rows before accuracies were measured; 0: there was no time for it.
        held_out: sequences that accuracies are measured on.
        better_pooling: a pooling that was clearly more accurate; None if there is none.
        recommended: name of the variant to take; None if there is none.
        reason: for it, a sentence.
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
    better_pooling: str | None
    recommended: str | None
    reason: str
    seconds: float


def thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands, with as many digits as it is worth."""
    value = tokens_per_second / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def recommend(results: Sequence[VariantResult], auto: str) -> tuple[str | None, str]:
    """Return the name of the variant to take, and why, in a few sentences.

    That is the engine that `auto` takes, unless another variant with the right logits is faster in
    training beyond noise: another engine, or a setting or recipe that is also AS_FAST times as
    fast.

    Args:
        results: of all variants.
        auto: engine that model.engine: auto takes.
    """
    right = sorted((each for each in results if each.is_right), key=lambda each: -each.rate)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    engines = [one for one in right if one.kind == "engine"]
    usual = next((one for one in engines if one.name == auto), (engines or right)[0])
    engine = next((one for one in engines if one.beats(usual)), usual)
    others = (one for one in right if one.kind != "engine" and one.rate >= AS_FAST * engine.rate)
    best = next((one for one in others if one.beats(engine)), engine)
    beaten = [best.beats(one) for one in engines if one is not best]
    claim = "It is what model.engine: auto takes; no other engine is faster beyond noise."
    if best.kind != "engine":
        claim = "It is the fastest variant in training here, beyond noise."
    elif best is not usual or (beaten and all(beaten)):
        claim = "It is the fastest engine in training here, beyond noise."
    return best.name, " ".join([claim, _figures(best, right), *_doubts(best, right)])


def _figures(best: VariantResult, right: Sequence[VariantResult]) -> str:
    """Return the best one's speed, beside the fastest recipe's, or engine's where it is one."""
    kind, what = "recipe", "plain torch script"
    if best.kind == "recipe":
        kind, what = "engine", "engine of seqtrain"
    own = f"{thousands(best.rate)} thousand tokens/s ({_spread(best)})"
    other = next((one for one in right if one.kind == kind), None)
    if other is None:
        return f"{own}."
    return (
        f"{own}: {best.rate / other.rate:.1f} times as fast as {other.name}, the fastest {what} "
        f"({thousands(other.rate)}; {_spread(other)})."
    )


def _spread(one: VariantResult) -> str:
    return one.training.spread if one.training else ""


def _doubts(best: VariantResult, right: Sequence[VariantResult]) -> Iterator[str]:
    """Yield why a variant whose figure is larger isn't taken, a sentence each."""
    larger = right[: right.index(best)]
    noise = [one.name for one in larger if not one.beats(best)]
    small = [one.name for one in larger if one.beats(best)]
    if any(one.training and one.training.turns < FEW for one in [best, *larger]):
        yield "More seconds would show better which is faster."
    elif noise:
        yield f"Larger, but within noise: {listed(noise)}."
    if small:
        yield f"Faster, but by less than {AS_FAST - 1:.0%}: {listed(small)}."


def better_pooling(results: Sequence[VariantResult], held_out: int) -> str | None:
    """Return a pooling that was more accurate than the config's own by two standard errors.

    Args:
        results: of all variants.
        held_out: rows that accuracies are measured on.
    """
    scored = [(each.accuracy, each) for each in results if each.accuracy is not None]
    own = [accuracy for accuracy, each in scored if each.kind not in ("wrong", "pooling")]
    others = {accuracy: each.name for accuracy, each in scored if each.kind == "pooling"}
    if not own or not others:
        return None
    usual, best = max(own), max(others)
    # Of a share that was 0 or 1 the error is taken as if one row more had been otherwise.
    share = (usual * held_out + 1) / (held_out + 2)
    error = math.sqrt(share * (1 - share) / held_out)
    return others[best].removesuffix("-valid") if best - usual > 2 * error else None
