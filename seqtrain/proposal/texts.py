"""What texts are made of: words, characters or symbols, judged from a sample."""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from seqtrain.data.tokenizers import make_tokenizer

SMALL_ALPHABET = 30
"""Characters of an alphabet such as DNA's or a protein's, letters of one case."""
PROBED_CHARACTERS = 200_000
"""Characters of the sample that the two guesses of a class are compared on, at most."""
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""First words of the Unicode names of letters that are written without blanks between words."""
CHARACTERS_BETTER = 0.6
"""Characters are taken where their error is below this share of the words' error."""


@dataclass(frozen=True)
class TextFacts:
    """What a sample of texts shows.

    Attributes:
        split: words, characters, alphabet (few characters, long) or symbols (separated by blanks).
        why: the reason, for the config.
        lowercase: whether upper and lower case mean the same.
    """

    split: str
    why: str
    lowercase: bool

    @property
    def tokenizer(self) -> str:
        """The value of data.tokenizer that splits such texts."""
        return {"words": "word", "symbols": "whitespace"}.get(self.split, "char")


def inspect_texts(texts: Sequence[str], labels: Sequence[str]) -> TextFacts:
    """Judge what the texts of a sample, at least one, are made of."""
    characters = Counter("".join(texts[:2000]))
    letters = sum(count for c, count in characters.items() if not c.isspace())
    median = sorted(len(text) for text in texts)[len(texts) // 2]
    words = float(np.median([len(text.split()) for text in texts]))
    unspaced = sum(n for c, n in characters.items() if _is_unspaced(c)) / max(1, letters)
    if unspaced > 0.3:
        return TextFacts("characters", f"{unspaced:.0%} of the letters need no blanks", True)
    if words <= 1.5:
        alphabet = {c.lower() for c in characters if not c.isspace()}
        if len(alphabet) <= SMALL_ALPHABET and median >= 25:
            return TextFacts("alphabet", f"an alphabet of {len(alphabet)} characters", True)
        return TextFacts("characters", f"words per row, median: {words:g}", lowercase=False)
    if _are_symbols(texts):
        return TextFacts("symbols", "symbols separated by blanks, with marks inside", False)
    by_words, by_characters = _errors(texts, labels)
    if by_characters < CHARACTERS_BETTER * by_words:
        why = (
            f"on a sample, a guess by characters has {by_characters:.0%} errors, a guess by words "
            f"{by_words:.0%}"
        )
        return TextFacts("characters", why, lowercase=True)
    return TextFacts("words", f"words per row, median: {words:g}", lowercase=True)


def _is_unspaced(character: str) -> bool:
    return character > "\u0dff" and unicodedata.name(character, "").startswith(UNSPACED)


def _are_symbols(texts: Sequence[str]) -> bool:
    """Whether blanks separate symbols of a small set that the word tokenizer would break up."""
    tokens = Counter(token for text in texts for token in text.split())
    total = sum(tokens.values())
    split = make_tokenizer("word", lowercase=False)
    broken = sum(n for token, n in tokens.items() if len(split(token.strip('.,"()?!-<>:;'))) > 1)
    return broken > 0.2 * total and len(tokens) < total / 10


def _errors(texts: Sequence[str], labels: Sequence[str]) -> tuple[float, float]:
    """Return the errors of naive Bayes on words and their pairs, and on up to three characters."""
    fitting = np.cumsum([len(text) for text in texts]) <= PROBED_CHARACTERS
    count = max(8, int(fitting.sum()))
    rows = [(text.lower(), label) for text, label in zip(texts[:count], labels, strict=False)]
    split = make_tokenizer("word", lowercase=False)

    def word_features(text: str) -> list[str]:
        words = split(text)
        return words + [f"{a} {b}" for a, b in pairwise(words)]

    def character_features(text: str) -> list[str]:
        return [text[i : i + n] for n in (1, 2, 3) for i in range(len(text) - n + 1)]

    return bayes_error(rows, word_features), bayes_error(rows, character_features)


def bayes_error(rows: Sequence[tuple[str, str]], features: Callable[[str], list[str]]) -> float:
    """Return the error of multinomial naive Bayes, learned from three of four rows."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for number, (text, label) in enumerate(rows):
        if number % 4:
            counts[label].update(features(text))
            sizes[label] += 1
    held_out = [row for row in rows[::4] if row[1] in counts]
    if not held_out:
        return 0.0
    known = set().union(*counts.values())
    totals = {label: math.log(seen.total() + 0.1 * len(known)) for label, seen in counts.items()}
    wrong = 0
    for text, label in held_out:
        found = Counter(f for f in features(text) if f in known)

        def score(name: str, found: Counter[str] = found) -> float:
            seen, total = counts[name], totals[name]
            evidence = sum(n * (math.log(seen[f] + 0.1) - total) for f, n in found.items())
            return math.log(sizes[name]) + evidence

        wrong += max(counts, key=score) != label
    return wrong / len(held_out)
