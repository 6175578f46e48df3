"""What `compare` recommends: nothing by chance, and nothing wrong."""

import pytest

from seqtrain.comparison.results import (
    Speed,
    VariantResult,
    recommend,
    thousands,
)


def row(
    name: str,
    kind: str,
    speed: float,
    *,
    difference: float = 0.0,
    noise: float = 0.05,
    turns: int = 5,
) -> VariantResult:
    training = Speed(speed, turns, speed * (1 - noise), speed * (1 + noise))
    return VariantResult(name, kind, "", training, None, 0.0, difference, None, "")


def test_recommended_is_the_fastest_with_the_right_logits() -> None:
    rows = [row("native", "engine", 9e5), row("other", "engine", 2e6, difference=0.3)]
    rows += [row("torch", "engine", 1e4), row("padded", "recipe", 1e5)]
    name, reason = recommend(rows, "native")
    assert name == "native"
    assert reason == (
        "It is the fastest engine in training here, beyond noise. 900 thousand tokens/s (turns "
        "855-945): 9.0 times as fast as padded, the fastest plain torch script (100; turns "
        "95.0-105)."
    )
    assert recommend(rows[1:], "native")[0] == "padded"
    assert recommend(rows[:1], "native")[1].startswith("It is what model.engine: auto takes")
    assert recommend([], "native")[0] is None


def test_another_setting_must_be_clearly_faster_and_wrong_ones_never_win() -> None:
    rows = [row("native", "engine", 1e6), row("sort-in-module", "option", 1.2e6)]
    rows += [row("last-of-padding", "wrong", 9e6), row("mean-valid", "pooling", 9e6)]
    name, reason = recommend(rows, "native")
    assert name == "native"
    name, reason = recommend([*rows, row("random-batches", "option", 1.3e6)], "native")
    assert name == "random-batches"
    assert reason.startswith("It is the fastest variant in training here, beyond noise. 1,300 th")


@pytest.mark.parametrize("kind", ["option", "recipe"])
def test_another_variant_within_noise_is_not_recommended(kind: str) -> None:
    engine = row("native", "engine", 1e6, noise=0.2)
    assert recommend([engine, row("other", kind, 1.45e6, noise=0.2)], "native")[0] == "native"
    assert recommend([engine, row("other", kind, 1.55e6, noise=0.2)], "native")[0] == "other"


@pytest.mark.parametrize(("usual", "other"), [(1, 5), (5, 2)])
def test_few_turns_decide_nothing(usual: int, other: int) -> None:
    rows = [row("native", "engine", 1e6, turns=usual), row("other", "engine", 5e6, turns=other)]
    name, reason = recommend([*rows, row("padded", "recipe", 5e5)], "native")
    assert name == "native"
    assert reason.startswith("It is what model.engine: auto takes; no other engine is faster beyo")


def test_among_engines_a_difference_within_noise_goes_to_what_auto_takes() -> None:
    rows = [row("torch", "engine", 1.08e6), row("native", "engine", 1e6)]
    name, reason = recommend(rows, "native")
    assert name == "native"
    assert reason.startswith("It is what model.engine: auto takes; no other engine is faster beyo")
    name, reason = recommend([row("other", "engine", 1.2e6), *rows], "native")
    assert name == "other"
    assert reason.startswith("It is the fastest engine in training here, beyond noise.")


def test_speeds_have_the_digits_that_they_are_worth() -> None:
    speeds = [1_234_567.0, 261_400.0, 39_160.0, 8_800.0, 450.0]
    assert [thousands(speed) for speed in speeds] == ["1,235", "261", "39.2", "8.8", "0.45"]
    assert Speed(1.0, 2, 9_000.0, 120_000.0).spread == "turns 9.0-120"
    assert Speed(1.0, 1, 9_000.0, 9_000.0).spread == "1 turn"
