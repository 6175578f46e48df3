"""Recommendations of compare: nothing by chance, and nothing wrong."""

from functools import partial

import pytest

from seqtrain.errors import RunError
from seqtrain.evaluation.comparison import Speed, VariantResult, recommend, take_turns


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


AUTO, FASTEST = (
    "It is what model.engine: auto takes",
    "It is the fastest in training here, beyond noise",
)
NATIVE, NOISY = row("native", "engine", 1e6), row("native", "engine", 1e6, noise=0.2)
PADDED = row("unroll-padded", "option", 1e5)
LARGER = row("random-batches", "option", 1.3e6)


@pytest.mark.parametrize(
    ("rows", "chosen", "reason"),
    [
        ([], None, ""),
        ([NATIVE], "native", AUTO),
        ([NATIVE, row("torch", "engine", 1e4)], "native", AUTO),
        ([row("wrong", "engine", 2e6, difference=0.3), NATIVE, PADDED], "native", AUTO),
        ([row("wrong", "engine", 2e6, difference=0.3), PADDED], "unroll-padded", ""),
        ([NATIVE, row("sort-in-module", "option", 1.2e6)], "native", AUTO),  # by less than 25 %
        ([NATIVE, LARGER], "random-batches", FASTEST),
        ([NOISY, row("other", "option", 1.45e6, noise=0.2)], "native", AUTO),
        ([NOISY, row("other", "option", 1.55e6, noise=0.2)], "other", ""),
        ([NATIVE, row("other", "engine", 5e6, turns=2), PADDED], "native", AUTO),
        ([row("native", "engine", 1e6, turns=1), row("other", "engine", 5e6)], "native", AUTO),
        ([row("torch", "engine", 1.08e6), NATIVE], "native", AUTO),
        ([row("other", "engine", 1.2e6), row("torch", "engine", 1.08e6), NATIVE], "other", FASTEST),
    ],
)
def test_the_fastest_with_the_right_logits_is_recommended_where_it_is_beyond_noise(
    rows, chosen, reason
):
    name, why = recommend(rows, "native")
    assert name == chosen
    assert why.startswith(reason)


def test_each_variant_has_a_turn_and_one_that_fails_says_why():
    calls: list[str] = []

    def turn(name: str, seconds: float) -> tuple[int, float]:
        calls.append(name)
        if name == "broken":
            raise RunError("memory ran out")
        return 100, seconds

    measures = {name: partial(turn, name, time) for name, time in (("a", 1.0), ("b", 0.5))}
    speeds, problems = take_turns({**measures, "broken": partial(turn, "broken", 1.0)}, 0.0)
    assert {name: speed.tokens_per_second for name, speed in speeds.items()} == {"a": 100, "b": 200}
    assert problems == {"broken": "memory ran out"}
    assert sorted(calls) == ["a", "a", "b", "b", "broken"]  # the first warms up
