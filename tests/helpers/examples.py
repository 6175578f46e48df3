"""How many examples a generated test draws: all in the slow suite, a tenth in the default one."""

from __future__ import annotations

from hypothesis import settings

ALL, SOME = 100, 10
"""Of the tests that name no number."""


def examples(number: int) -> settings:
    """Draw so many examples in the slow suite, and a tenth of them in the default one."""
    return settings(max_examples=number * settings.default.max_examples // ALL)
