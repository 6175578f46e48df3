"""What `compare` makes of its figures: the way to take, and whether another pooling would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of steps."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""
FEW = 3
"""Turns that it takes to tell two speeds apart."""


@dataclass(frozen=True)
class Speed:
    """How fast a way was in one mode.

    Attributes:
        tokens_per_second: real steps, padding never counted.
        batches: measured; the first turn is left out, as it warms up, unless it is all there is.
        turns: these were measured in.
        slowest, fastest: of these turns, in tokens a second; they show the noise.
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


@dataclass(frozen=True)
class Row:
    """What was found of one way.

    Attributes:
        name: of the way.
        kind: engine, option, recipe, wrong or pooling, as Way says.
        setting: what to write into a config to have it; empty for a recipe.
        training, prediction: speeds; None where nothing could be measured.
        padding: share of the steps computed in training that are padding, in [0, 1).
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


def recommend(rows: Sequence[Row], auto: str) -> tuple[str | None, str]:
    """Return the name of the way to take, and why.

    That is the engine that `auto` takes, unless another with the right logits is clearly faster in
    training: another engine, or a setting or recipe that is also AS_FAST times as fast.

    Args:
        rows: of all ways.
        auto: engine that model.engine: auto takes.
    """
    right = [row for row in rows if _rate(row) and _is_right(row)]
    right.sort(key=_rate, reverse=True)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    engines = [row for row in right if row.kind == "engine"]
    others = [row for row in right if row.kind != "engine"]
    usual = next((row for row in engines if row.name == auto), (engines or right)[0])
    faster = [row for row in engines if _rate(row) > _rate(usual)]
    engine = next((row for row in faster if _clearly_faster(row, usual)), usual)
    faster += [row for row in others if _rate(row) >= AS_FAST * _rate(engine)]
    best = next((row for row in faster if row in others and _clearly_faster(row, engine)), engine)
    claim, doubt = _reason(best, auto, faster, engines)
    return best.name, claim + _ratio(best, right) + doubt


def better_pooling(rows: Sequence[Row], held_out: int) -> str | None:
    """Return a value of model.pooling that was clearly more accurate than the config's own.

    Clearly: by more than two standard errors of a share of the rows held out.

    Args:
        rows: of all ways.
        held_out: number of these rows.
    """
    scored = [row for row in rows if row.accuracy is not None]
    own = [row.accuracy or 0.0 for row in scored if row.kind not in ("wrong", "pooling")]
    others = {row.accuracy or 0.0: row.name for row in scored if row.kind == "pooling"}
    if not own or not others:
        return None
    usual, best = max(own), max(others)
    # Of a share that was 0 or 1 the error is taken as if one row more had been otherwise.
    share = (usual * held_out + 1) / (held_out + 2)
    error = math.sqrt(share * (1 - share) / held_out)
    return others[best].removesuffix("-valid") if best - usual > 2 * error else None


def _reason(best: Row, auto: str, faster: Sequence[Row], engines: Sequence[Row]) -> tuple[str, str]:
    """Return why the best is taken, where some seemed faster than the usual engine, and a doubt."""
    if best.kind != "engine":
        return "the fastest way to train here with the same logits", ""
    if best.name == auto:
        if any(_turns(row) < FEW for row in [best, *faster]):
            return "what auto takes", "; more seconds would tell if another way is faster"
        if not all(_clearly_faster(best, row) for row in engines if row is not best):
            return "what auto takes", "; no other engine is clearly faster"
    return "the fastest engine to train here with the same logits", ""


def _ratio(best: Row, right: Sequence[Row]) -> str:
    """Return how the best of seqtrain compares with the best recipe, or the other way round."""
    kind, what = "recipe", "today's best recipe"
    if best.kind == "recipe":
        kind, what = "engine", "seqtrain's best engine"
    other = next((row for row in right if row.kind == kind), None)
    return (
        "" if other is None else f", {_rate(best) / _rate(other):.1f} times {what} ({other.name})"
    )


def _is_right(row: Row) -> bool:
    same = row.largest_difference is not None and row.largest_difference <= SAME
    return same and row.kind not in ("wrong", "pooling")


def _clearly_faster(row: Row, other: Row) -> bool:
    """Return whether even a row's slowest turn was faster than another's fastest, of enough."""
    if row.training is None or other.training is None or min(_turns(row), _turns(other)) < FEW:
        return False
    return row.training.slowest > other.training.fastest


def _turns(row: Row) -> int:
    return 0 if row.training is None else row.training.turns


def _rate(row: Row) -> float:
    return 0.0 if row.training is None else row.training.tokens_per_second
