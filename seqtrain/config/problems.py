"""One line for each thing wrong with a configuration, and the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from seqtrain.errors import ConfigError
from seqtrain.text import PROBLEM_LENGTH, located, shorten

SHOWN_PROBLEMS = 50
"""Problems of a configuration that are told in full; the rest is counted."""

Keys: TypeAlias = tuple[str | int, ...]
"""Keys from the top of the configuration down, such as ("training", "lr")."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands.

    Attributes:
        where: `file:line:column`, an option as given, or nothing for a plain mapping.
        order: sorts places: the file from top to bottom, then the options from left to right.
    """

    where: str = ""
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong: where, at which key, and what.

    Attributes:
        place: where it stands.
        path: keys of the value complained about; empty for the text as a whole.
        text: what was found, what is allowed, what to do.
    """

    place: Place
    path: Keys
    text: str

    def line(self) -> str:
        """Return the problem as one line of at most `PROBLEM_LENGTH` characters."""
        where, key = self.place.where, dotted(self.path)
        if where.startswith(f"--set {key}="):
            key = ""
        return shorten(located(where, f"{key}: {self.text}" if key else self.text), PROBLEM_LENGTH)


def raise_if_any(problems: Iterable[Problem]) -> None:
    """Raise all problems together, in the order of their places, the first 50 in full.

    Args:
        problems: what was found, in any order.

    Raises:
        ConfigError: if there is a problem.
    """
    ordered = sorted(problems, key=lambda problem: problem.place.order)
    lines = [problem.line() for problem in ordered[:SHOWN_PROBLEMS]]
    if len(ordered) > SHOWN_PROBLEMS:
        lines.append(f"{len(ordered) - SHOWN_PROBLEMS} more problems not shown")
    if lines:
        raise ConfigError(*lines)


def dotted(path: Sequence[object]) -> str:
    """Write keys as messages show them: `training.lr`."""
    return ".".join(shorten(str(key), 40) for key in path)


def show(value: object) -> str:
    """Write a value for a message: text in quotes, containers by what they are.

    Args:
        value: anything found where a value of the configuration was expected.

    Returns:
        A few words on one line.
    """
    if isinstance(value, str):
        return f"'{shorten(value, 40)}'"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value) if abs(value) < 10**40 else "a number of more than 40 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return f"a value of type {shorten(type(value).__name__, 40)}"
