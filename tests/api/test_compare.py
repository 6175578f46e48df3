"""Recommendations of compare: nothing by chance, and nothing wrong."""

import pytest

from seqtrain.api.compare import Speed, VariantResult, recommend


def row(
    name: str, speed: float, *, difference: float = 0.0, noise: float = 0.05, turns: int = 5
) -> VariantResult:
    training = Speed(speed, turns, speed * (1 - noise), speed * (1 + noise))
    return VariantResult(name, "", training, None, 0.0, difference)


NATIVE, NOISY = row("native", 1e6), row("native", 1e6, noise=0.2)
PADDED = row("unroll-padded", 1e5)


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        ([], None),
        ([NATIVE, row("torch", 1e4)], "native"),
        ([row("wrong", 2e6, difference=0.3), NATIVE, PADDED], "native"),
        ([row("wrong", 2e6, difference=0.3), PADDED], "unroll-padded"),
        ([NATIVE, row("sort-in-module", 1.2e6)], "native"),  # by less than 25 %
        ([NATIVE, row("random-batches", 1.3e6)], "random-batches"),
        ([NOISY, row("other", 1.45e6, noise=0.2)], "native"),
        ([NOISY, row("other", 1.55e6, noise=0.2)], "other"),
        ([NATIVE, row("other", 5e6, turns=2), PADDED], "native"),
        ([row("native", 1e6, turns=1), row("other", 5e6)], "native"),
    ],
)
def test_the_fastest_with_the_right_logits_is_recommended_where_it_is_beyond_noise(rows, chosen):
    name, reason = recommend(rows, "native")
    assert name == chosen
    assert ("auto" in reason) == (chosen == "native")
