"""Small files of word vectors."""

import random
from pathlib import Path

WORDS = ("the", "fall", "sink", "rise", "climb", "grow", "Paris", "ocean", "river", "fish")
"""Some are words of the small data sets, others aren't."""


def vector(word: str, size: int) -> list[float]:
    """Return the numbers of a word that float32 and text represent equally."""
    draw = random.Random(word)
    return [round(draw.uniform(-1, 1), 3) for _ in range(size)]


def write_vectors(path: Path) -> None:
    """Write a .vec file of four numbers a word."""
    lines = [" ".join([word, *map(str, vector(word, 4))]) for word in WORDS]
    path.write_text("\n".join([f"{len(lines)} 4", *lines, ""]))
