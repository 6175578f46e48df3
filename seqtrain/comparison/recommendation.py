"""What `compare` makes of its figures: the variant to take, and whether another pooling helps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from seqtrain.comparison.results import Row, spread, thousands

SAME = 1e-3
"""Largest difference of logits that float32's rounding may make, over thousands of time steps."""
AS_FAST = 1.25
"""What takes another setting must be so much faster than an engine to be recommended."""
FEW = 3
"""Turns that it takes to tell two speeds apart."""


def recommend(rows: Sequence[Row], auto: str) -> tuple[str | None, str]:
    """Return the name of the variant to take, and why.

    That is the engine that `auto` takes, unless another variant with the right logits is faster in
    training beyond noise: another engine, or a setting or recipe that is also AS_FAST times as
    fast. Beyond noise: even its slowest turn was faster than the other's fastest.

    Args:
        rows: of all variants.
        auto: engine that model.engine: auto takes.
    """
    right = [row for row in rows if row.rate and _is_right(row)]
    right.sort(key=lambda row: row.rate, reverse=True)
    if not right:
        return None, "nothing could be measured in training; allow more seconds"
    engines = [row for row in right if row.kind == "engine"]
    usual = next((row for row in engines if row.name == auto), (engines or right)[0])
    engine = next((row for row in engines if _beyond_noise(row, usual)), usual)
    best = next(
        (
            row
            for row in right
            if row.kind != "engine"
            and row.rate >= AS_FAST * engine.rate
            and _beyond_noise(row, engine)
        ),
        engine,
    )
    claim = "what model.engine: auto takes; no other engine is faster beyond noise"
    if best.kind != "engine":
        claim = "the fastest variant in training here, beyond noise"
    elif best is not usual or all(_beyond_noise(best, row) for row in engines if row is not best):
        claim = "the fastest engine in training here, beyond noise"
    return best.name, f"{claim}: {_figures(best, right)}.{''.join(_doubts(best, right))}"


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


def _figures(best: Row, right: Sequence[Row]) -> str:
    """Return the best one's speed, beside the fastest recipe's, or engine's where it is one."""
    kind = "engine" if best.kind == "recipe" else "recipe"
    what = f"the fastest {'engine' if best.kind == 'recipe' else 'plain torch script'}"
    own = f"{thousands(best.rate)} thousand tokens/s ({_turns_of(best)})"
    other = next((row for row in right if row.kind == kind), None)
    if other is None:
        return own
    times, speed = best.rate / other.rate, thousands(other.rate)
    return f"{own}, {times:.1f} times the {speed} ({_turns_of(other)}) of {other.name}, {what}"


def _doubts(best: Row, right: Sequence[Row]) -> Iterator[str]:
    """Yield why a variant whose figure is larger isn't taken, a sentence each."""
    larger = [row for row in right if row.rate > best.rate]
    few = [row for row in [best, *larger] if _turns(row) < FEW]
    noise = [row.name for row in larger if row not in few and not _beyond_noise(row, best)]
    small = [row.name for row in larger if _beyond_noise(row, best)]
    if few:
        yield " More seconds would show better which is faster."
    elif noise:
        yield f" Larger, but within noise: {', '.join(noise)}."
    if small:
        yield f" Faster, but by less than {AS_FAST - 1:.0%}: {', '.join(small)}."


def _turns_of(row: Row) -> str:
    assert row.training is not None, "only measured rows are compared"
    turns = spread(row.training)
    return turns if _turns(row) == 1 else f"turns {turns}"


def _is_right(row: Row) -> bool:
    same = row.largest_difference is not None and row.largest_difference <= SAME
    return same and row.kind not in ("wrong", "pooling")


def _beyond_noise(row: Row, other: Row) -> bool:
    """Return whether even a row's slowest turn was faster than another's fastest, of enough."""
    if row.training is None or other.training is None or min(_turns(row), _turns(other)) < FEW:
        return False
    return row.training.slowest > other.training.fastest


def _turns(row: Row) -> int:
    return 0 if row.training is None else row.training.turns
