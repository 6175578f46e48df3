"""Number of examples of a test: all in the slow suite, some in the default suite."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

ALL, SOME = 100, 10
"""Of the tests that name no number."""


def examples(number: int) -> settings:
    """Draw so many examples in the slow suite, and a tenth of them in the default one."""
    return settings(max_examples=number * settings.default.max_examples // ALL)


def seeds(number: int) -> range:
    """Return the seeds of a test's random cases.

    SEQTRAIN_CASES sets how many cases there are, and SEQTRAIN_FIRST the first seed. By default
    there are `number` cases from seed 0.
    """
    first = int(os.environ.get("SEQTRAIN_FIRST", 0))
    return range(first, first + int(os.environ.get("SEQTRAIN_CASES", number)))


def some(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Mark cases so that the default suite takes only one of several."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.slow] * (place % one_in > 0),
        )
        for place, case in enumerate(cases)
    ]
