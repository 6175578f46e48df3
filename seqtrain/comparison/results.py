"""Results of `compare`, and the recommendation of a variant."""

from collections.abc import Sequence
from dataclasses import dataclass

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

    A token is a time step without padding. A turn is a short measurement of one variant.

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

    @property
    def spread(self) -> str:
        """Slowest and fastest speed, as text in thousands of tokens per second, like "5.1-6.2"."""
        return f"{thousands(self.slowest)}-{thousands(self.fastest)}"


@dataclass
class VariantResult:
    """Measurements of one variant.

    Attributes:
        name: Name of the variant.
        kind: Kind of the variant, as in `Variant`.
        setting: Keys and values that turn the config into the variant, such as
            "model.engine: torch", or "" for a plain torch script.
        training: Speed in training, or None if not measured.
        prediction: Speed in prediction, or None if not measured.
        padding: Share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: Largest difference between the variant's logits and the logits of single
            sequences with the same pooling, or None if not measured.
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
        """True if the variant may be recommended.

        - Its speed in training was measured.
        - Its logits differ from the reference by at most TOLERANCE.
        - Its kind isn't "wrong" or "pooling".
        """
        difference = self.largest_difference
        is_same = difference is not None and difference <= TOLERANCE
        return is_same and self.training is not None and self.kind not in ("wrong", "pooling")


@dataclass(frozen=True, repr=False)
class Comparison(Summarized):
    """Results of all variants for one config, data set and machine.

    Attributes:
        device: Name of the device.
        threads: Number of threads.
        rnn: Recurrent cell, as in model.rnn.
        rows: Number of sequences of train.
        tokens: Number of time steps of train.
        warnings: Lines for the user about data and config.
        candidates: Results of the variants that `variants_for` returns, in the order of VARIANTS.
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
        speeds = {
            f"{each.name}, tokens/s": f"{each.training.tokens_per_second:,.0f}"
            for each in self.candidates
            if each.training is not None
        }
        found = {"recommended": self.recommended or "none", "reason": self.reason, **speeds}
        return found | ({"warnings": "; ".join(self.warnings)} if self.warnings else {})


def thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands of tokens per second as text, such as "0.51", "5.1" or "510".

    Args:
        tokens_per_second: The speed in tokens per second, not in thousands.
    """
    value = tokens_per_second / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


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
    faster = (
        (result, speed)
        for result, speed in right
        if min(speed.turns, usual_speed.turns) >= MIN_TURNS
        and speed.slowest > usual_speed.fastest
        and (result.kind == "engine" or _ratio(speed, usual_speed) >= MIN_SPEEDUP)
    )
    best, speed = next(faster, (usual, usual_speed))
    reason = (
        "It is what model.engine: auto takes; no other engine is faster beyond noise."
        if best.name == auto
        else "It is the fastest in training here, beyond noise."
    )
    reason += f" {thousands(speed.tokens_per_second)} thousand tokens/s (turns {speed.spread})"
    kind, title = "recipe", "plain torch script"
    if best.kind == "recipe":
        kind, title = "engine", "engine of seqtrain"
    others = [pair for pair in right if pair[0].kind == kind]
    if others:
        other, other_speed = others[0]
        reason += (
            f": {_ratio(speed, other_speed):.1f} times as fast as {other.name}, the fastest "
            f"{title} ({thousands(other_speed.tokens_per_second)}; turns {other_speed.spread})"
        )
    return best.name, f"{reason}."


def _ratio(speed: Speed, other: Speed) -> float:
    """Return how many times as fast `speed` is as `other`, each over all of its turns."""
    return speed.tokens_per_second / other.tokens_per_second
