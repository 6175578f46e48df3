"""Small files of word vectors."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

WORDS = ("the", "fall", "sink", "rise", "climb", "grow", "Paris", "ocean", "river", "fish")
"""Some are words of the small data sets, others aren't."""


def vector(word: str, size: int) -> list[float]:
    """Return a word's numbers, each as float32 and its text have it."""
    draw = random.Random(word)
    return [round(draw.uniform(-1, 1), 3) for _ in range(size)]


def write_vectors(
    path: Path, words: Iterable[str] = WORDS, *, size: int = 4, head: bool = True
) -> None:
    """Write a .vec file, or without its head one as GloVe's."""
    lines = [" ".join([word, *map(str, vector(word, size))]) for word in words]
    first = [f"{len(lines)} {size}"] if head else []
    path.write_text("\n".join([*first, *lines, ""]))
