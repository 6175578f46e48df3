"""How many examples a test takes: all in the slow suite, some of them in the default one."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

ALL, SOME = 100, 10
"""Of the tests that name no number."""


def examples(number: int) -> settings:
    """Draw so many examples in the slow suite, and a tenth of them in the default one."""
    return settings(max_examples=number * settings.default.max_examples // ALL)


def some(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Leave one in so many cases, such as those of a product, to the default suite."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.slow] * (place % one_in > 0),
        )
        for place, case in enumerate(cases)
    ]
