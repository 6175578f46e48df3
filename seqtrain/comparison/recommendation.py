"""What `compare` makes of its figures: the variant to take, and whether another pooling helps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seqtrain.comparison.results import FEW, Row, Speed, thousands
from seqtrain.text import listed

SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of time steps."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""


class _Right(NamedTuple):
    """A variant with the right logits that was measured in training."""

    name: str
    kind: str
    speed: Speed


def recommend(rows: Sequence[Row], auto: str) -> tuple[str | None, str]:
    """Return the name of the variant to take, and why, in a few sentences.

    That is the engine that `auto` takes, unless another variant with the right logits is faster in
    training beyond noise: another engine, or a setting or recipe that is also AS_FAST times as
    fast.

    Args:
        rows: of all variants.
        auto: engine that model.engine: auto takes.
    """
    right = [
        _Right(row.name, row.kind, row.training)
        for row in rows
        if row.training
        and row.kind not in ("wrong", "pooling")
        and row.largest_difference is not None
        and row.largest_difference <= SAME
    ]
    right.sort(key=_rate, reverse=True)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    engines = [one for one in right if one.kind == "engine"]
    others = [one for one in right if one.kind != "engine"]
    usual = next((one for one in engines if one.name == auto), (engines or right)[0])
    engine = next((one for one in engines if one.speed.beyond_noise(usual.speed)), usual)
    faster = (one for one in others if _rate(one) >= AS_FAST * _rate(engine))
    best = next((one for one in faster if one.speed.beyond_noise(engine.speed)), engine)
    beaten = [best.speed.beyond_noise(one.speed) for one in engines if one is not best]
    claim = "It is what model.engine: auto takes; no other engine is faster beyond noise."
    if best.kind != "engine":
        claim = "It is the fastest variant in training here, beyond noise."
    elif best is not usual or (beaten and all(beaten)):
        claim = "It is the fastest engine in training here, beyond noise."
    return best.name, " ".join([claim, _figures(best, right), *_doubts(best, right)])


def better_pooling(rows: Sequence[Row], held_out: int) -> str | None:
    """Return a value of model.pooling that was clearly more accurate than the config's own.

    Clearly: by more than two standard errors of a share of the rows held out.

    Args:
        rows: of all variants.
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


def _figures(best: _Right, right: Sequence[_Right]) -> str:
    """Return the best one's speed, beside the fastest recipe's, or engine's where it is one."""
    kind, what = "recipe", "plain torch script"
    if best.kind == "recipe":
        kind, what = "engine", "engine of seqtrain"
    own = f"{thousands(_rate(best))} thousand tokens/s ({best.speed.spread})"
    other = next((one for one in right if one.kind == kind), None)
    if other is None:
        return f"{own}."
    return (
        f"{own}: {_rate(best) / _rate(other):.1f} times as fast as {other.name}, the fastest "
        f"{what} ({thousands(_rate(other))}; {other.speed.spread})."
    )


def _doubts(best: _Right, right: Sequence[_Right]) -> Iterator[str]:
    """Yield why a variant whose figure is larger isn't taken, a sentence each."""
    larger = right[: right.index(best)]
    noise = [one.name for one in larger if not one.speed.beyond_noise(best.speed)]
    small = [one.name for one in larger if one.speed.beyond_noise(best.speed)]
    if any(one.speed.turns < FEW for one in [best, *larger]):
        yield "More seconds would show better which is faster."
    elif noise:
        yield f"Larger, but within noise: {listed(noise)}."
    if small:
        yield f"Faster, but by less than {AS_FAST - 1:.0%}: {listed(small)}."


def _rate(one: _Right) -> float:
    return one.speed.tokens_per_second
