"""What a comparison found: the object that `--json` prints."""

from __future__ import annotations

from dataclasses import dataclass

FEW = 3
"""Turns that it takes to tell two speeds apart."""


@dataclass(frozen=True)
class Speed:
    """How fast a variant was in one mode.

    Attributes:
        tokens_per_second: real time steps, padding never counted.
        batches: measured; the first turn is left out, as it warms up, unless it is all there is.
        turns: these were measured in.
        slowest, fastest: of these turns, in tokens per second; they show the noise.
        share_of_peak: of the machine's float32 matrix products, in [0, 1], as flops_a_token counts.
        peak_memory_bytes: the most that its process held up to then, Python and the data left out.
    """

    tokens_per_second: float
    batches: int
    turns: int
    slowest: float
    fastest: float
    share_of_peak: float
    peak_memory_bytes: int | None

    @property
    def spread(self) -> str:
        """The slowest and the fastest turn, in thousands."""
        if self.turns == 1:
            return "1 turn"
        return f"turns {thousands(self.slowest)}-{thousands(self.fastest)}"

    def beyond_noise(self, other: Speed) -> bool:
        """Return whether even its slowest turn was faster than the other's fastest, of enough."""
        return min(self.turns, other.turns) >= FEW and self.slowest > other.fastest


@dataclass(frozen=True)
class Row:
    """What was found of one variant.

    Attributes:
        name: of the variant.
        kind: engine, option, recipe, wrong or pooling, as Variant says.
        setting: what to write into a config to have it; empty for a recipe.
        training, prediction: speeds; None where nothing could be measured.
        padding: share of the time steps computed in training that are padding, in [0, 1).
        largest_difference: of logits, from the same sequences one by one (and the same pooling).
        accuracy: on held-out sequences after equal training, in [0, 1]; None where there was none.
        problem: why it was left out or cut; empty where nothing was.
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


@dataclass(frozen=True)
class Comparison:
    """All variants on one config, data set and machine.

    Attributes:
        device, threads: what computed.
        rnn: cell of the model.
        rows, tokens: of the part of train that was measured on.
        warnings: what was done to rows as they were read, a line each.
        peak_flops: the machine's fastest float32 matrix product, operations per second.
        flops_a_token: of training and of prediction.
        candidates: a row per variant.
        passes: over these rows that accuracies were learned in; 0: there was no time for it.
        seeds: over which accuracies are means.
        held_out: sequences that accuracies are measured on.
        better_pooling: a pooling that was clearly more accurate; None if there is none.
        recommended: name of the variant to take; None if there is none.
        reason: for it, a sentence.
        seconds: the comparison took, with all that comes on top.
    """

    device: str
    threads: int
    rnn: str
    rows: int
    tokens: int
    warnings: list[str]
    peak_flops: float
    flops_a_token: dict[str, int]
    candidates: list[Row]
    passes: float
    seeds: int
    held_out: int
    better_pooling: str | None
    recommended: str | None
    reason: str
    seconds: float


def thousands(tokens_per_second: float) -> str:
    """Return a speed in thousands, with as many digits as it is worth."""
    value = tokens_per_second / 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"
