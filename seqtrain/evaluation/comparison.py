"""Comparison of variants of a classifier: speeds that are measured in turns, and a recommendation.

A variant is a way to handle sequences of unequal length. A turn is a short measurement of one
variant. The variants alternate, so that noise of the machine affects all of them equally.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqtrain.errors import SeqtrainError
from seqtrain.text import Summarized

MIN_TURNS = 3
"""Smallest number of turns of each variant with which two speeds are compared."""
TOLERANCE = 1e-3
"""Largest difference of logits that rounding explains, over thousands of time steps."""
MIN_SPEEDUP = 1.25
"""Factor by which a variant other than an engine must be faster to be recommended."""


@dataclass(frozen=True)
class Speed:
    """Speed of a variant in training or prediction, in tokens per second.

    A token is a time step without padding.

    Attributes:
        tokens_per_second: Speed over all turns together.
        turns: Number of turns.
        slowest: Speed of the slowest turn, in tokens per second.
        fastest: Speed of the fastest turn, in tokens per second.
    """

    tokens_per_second: float
    turns: int
    slowest: float
    fastest: float

    @classmethod
    def of(cls, turns: Sequence[tuple[int, float]]) -> Speed:
        """Return the speed of turns, given the tokens and the seconds of each."""
        rates = [tokens / seconds for tokens, seconds in turns]
        tokens = sum(tokens for tokens, _ in turns)
        seconds = sum(seconds for _, seconds in turns)
        return cls(tokens / seconds, len(turns), min(rates), max(rates))

    @property
    def spread(self) -> str:
        """Slowest and fastest speed, as text in thousands of tokens per second, like "5.1-6.2"."""
        return f"{thousands(self.slowest)}-{thousands(self.fastest)}"


@dataclass
class VariantResult:
    """Measurements of one variant.

    Attributes:
        name: Name of the variant.
        kind: "engine" for a value of model.engine, "option" for another option of seqtrain.
        setting: Keys and values that turn the config into the variant, such as
            "model.engine: torch".
        training: Speed in training, or None if not measured.
        prediction: Speed in prediction, or None if not measured.
        padding: Share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: Largest difference between the variant's logits and the logits of single
            sequences, or None if not measured.
        accuracy: Accuracy on held-out sequences after training, in [0, 1], or None if not measured.
            All variants are trained on equally many examples.
        problem: Reason why the variant wasn't measured, or why its measurement ended early, or "".
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
        """True if training was measured, and the logits are those of single sequences."""
        difference = self.largest_difference
        return self.training is not None and difference is not None and difference <= TOLERANCE


@dataclass(frozen=True, repr=False)
class Comparison(Summarized):
    """Results of all variants for one config, data set and machine.

    Attributes:
        device: Name of the device.
        threads: Number of threads.
        rnn: Recurrent cell, as in model.rnn.
        rows: Number of sequences of train.
        tokens: Number of time steps of train.
        warnings: Lines for the user about the data.
        candidates: Results of the variants.
        passes: Number of epochs of training before accuracies were measured, which may be a
            fraction; 0 if no accuracy was measured.
        held_out: Number of sequences that accuracies are measured on.
        recommended: Name of the recommended variant, or None if no variant with right logits was
            measured in training.
        reason: Reason for the recommendation, in sentences.
        seconds: Duration of the comparison, with the time for reading the data.
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

    def summary(self) -> dict[str, str]:
        """Return the recommendation with its reason, the speeds in training, and any warnings."""
        found = {"recommended": self.recommended or "none", "reason": self.reason}
        for each in self.candidates:
            if each.training is not None:
                found[f"{each.name}, tokens/s"] = f"{each.training.tokens_per_second:,.0f}"
        if self.warnings:
            found["warnings"] = "; ".join(self.warnings)
        return found


def take_turns(
    measures: dict[str, Callable[[], tuple[int, float]]],
    seconds: float,
    before: Callable[[str], None] = lambda name: None,
) -> tuple[dict[str, Speed], dict[str, str]]:
    """Measure variants in turns, until the time is over. Each variant has one turn at least.

    The variant that has used the least time is next. Its first turn warms up and isn't counted.

    Args:
        measures: Maps the name of each variant to a function that takes a turn. The function
            returns the number of tokens and the duration in seconds.
        seconds: Time for all turns together.
        before: Function that is called with the name of a variant before each turn.

    Returns:
        The speed of each variant by name, and the problem of each variant that failed.
    """
    turns: dict[str, list[tuple[int, float]]] = {name: [] for name in measures}
    problems: dict[str, str] = {}
    end = time.perf_counter() + seconds
    waiting = list(measures)
    while waiting:
        name = min(waiting, key=lambda name: sum(spent for _, spent in turns[name]))
        before(name)
        try:
            if not turns[name]:
                measures[name]()
            turns[name].append(measures[name]())
        except SeqtrainError as error:
            problems[name] = str(error)
            waiting.remove(name)
        if time.perf_counter() > end:
            waiting = [name for name in waiting if not turns[name]]
    return {name: Speed.of(own) for name, own in turns.items() if own}, problems


def recommend(results: Sequence[VariantResult], auto: str) -> tuple[str | None, str]:
    """Return the name of the recommended variant and the reason, in sentences.

    Normally, the recommendation is the engine that `auto` names. Another variant with right logits
    is recommended if all of this holds:

    - Its slowest turn is faster than the fastest turn of `auto`.
    - Both had at least MIN_TURNS turns.
    - It is an engine, or at least MIN_SPEEDUP times as fast as `auto`.

    Of two such variants, the faster one is recommended.

    If `auto` wasn't measured or has wrong logits, recommend the fastest variant with right logits.

    Args:
        results: Results of all variants.
        auto: Name of the engine that ``model.engine: auto`` chooses.

    Returns:
        The name, or None if no variant with right logits was measured in training; and the reason.
    """
    right = [(result, result.training) for result in results if result.is_right and result.training]
    right.sort(key=lambda pair: -pair[1].tokens_per_second)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    usual, usual_speed = next((pair for pair in right if pair[0].name == auto), right[0])
    best, best_speed = usual, usual_speed
    for result, speed in reversed(right):
        least = 1.0 if result.kind == "engine" else MIN_SPEEDUP
        beyond_noise = min(speed.turns, usual_speed.turns) >= MIN_TURNS
        beyond_noise &= speed.slowest > usual_speed.fastest
        if beyond_noise and speed.tokens_per_second >= least * usual_speed.tokens_per_second:
            best, best_speed = result, speed
    reason = "It is the fastest in training here, beyond noise."
    if best.name == auto:
        reason = "It is what model.engine: auto takes; no other variant is faster beyond noise."
    rate = thousands(best_speed.tokens_per_second)
    return best.name, f"{reason} {rate} thousand tokens/s (turns {best_speed.spread})."


def thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands of tokens per second as text, such as "0.51", "5.1" or "510".

    Args:
        tokens_per_second: The speed in tokens per second, not in thousands.
    """
    value = tokens_per_second / 1e3
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"
