"""Families of texts: words, characters, an alphabet such as DNA's, or symbols."""

import math
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from seqtrain.proposal.naive_bayes import (
    HELD_OUT,
    character_ngrams,
    naive_bayes_error,
    telling,
    word_ngrams,
)
from seqtrain.sequences.tokenizers import make_tokenizer

SMALL_ALPHABET = 30
"""Largest number of characters, without case, of an alphabet such as DNA's or a protein's."""
SHORTEST_OF_ALPHABET = 25
"""Smallest median length of sequences over an alphabet. Shorter texts may be words."""
PROBED_CHARACTERS = 200_000
"""Largest number of characters on which words and characters are compared."""
UNSPACED = (
    *("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA", "BOPOMOFO", "YI"),
    *("NUSHU", "TANGUT", "THAI", "LAO", "KHMER", "MYANMAR", "TAI", "NEW TAI", "AHOM", "TIBETAN"),
    *("JAVANESE", "BALINESE", "CHAM", "BATAK", "MAKASAR", "KAWI", "BRAHMI", "GRANTHA"),
    *("DIVES AKURU", "GURUNG KHEMA", "TULU-TIGALARI"),
)
"""First words of the Unicode names of letters of scripts without spaces between words.

These are the scripts whose letters have the line-breaking classes ID, SA, AK, AP and AS in Unicode
16 (UAX #14), and Tibetan, which has a mark between syllables.
"""
AGGLUTINATED = ("HANGUL",)
"""First words of the Unicode names of letters of scripts whose words are long compounds.

Characters tell more than words there.
"""
MANY_UNSPACED = 0.3
"""Texts are read by characters if more than this share of them is of `UNSPACED` scripts.

The same holds for `AGGLUTINATED` scripts. Whitespace doesn't count.
"""
CHARACTERS_BETTER = 0.6
"""Characters are chosen if their error is below this share of the error of words.

It must also be lower by two standard errors.
"""
MANY_BROKEN = 0.2
"""Tokens can be symbols if more than this share has marks inside, or has no usual case."""


MOST_OF_ONE_CASE = 0.8
"""A spelling is the usual case of a token if it has at least this share of the occurrences."""


class Family(NamedTuple):
    """Family of texts, or of other sequences.

    Attributes:
        name: words, characters, alphabet or symbols; or series, channels or steps, as in
            `DataProfile.family`.
        reason: Reason for characters or an alphabet, for a comment in the config. It is empty for
            other families, or if the user chose the tokenizer.
        lowercase: True if texts are read in lower case.
    """

    name: str
    reason: str = ""
    lowercase: bool = True


def family_of(texts: Sequence[str], labels: Sequence[Hashable]) -> Family:
    """Return the family of texts: words, characters, alphabet or symbols.

    The script of the first 2,000 texts, the number of words per text, and marks in words decide
    first. If they leave a choice of words and characters, naive Bayes decides: see
    `CHARACTERS_BETTER`.

    Args:
        texts: A sample of the texts, at least one.
        labels: Label of each text.
    """
    characters = Counter("".join(texts[:2000]))
    letters = sum(count for c, count in characters.items() if not c.isspace())
    unspaced = _share(characters, UNSPACED, letters)
    if unspaced > MANY_UNSPACED:
        reason = f"{unspaced:.0%} of the letters belong to scripts without spaces between words"
        return Family("characters", reason)
    agglutinated = _share(characters, AGGLUTINATED, letters)
    if agglutinated > MANY_UNSPACED:
        return Family("characters", f"{agglutinated:.0%} of the letters are Hangul")
    words = float(np.median([len(text.split()) for text in texts]))
    if words <= 1.5:
        alphabet = {c.lower() for c in characters if not c.isspace()}
        median = sorted(len(text) for text in texts)[len(texts) // 2]
        if len(alphabet) <= SMALL_ALPHABET and median >= SHORTEST_OF_ALPHABET:
            return Family("alphabet", f"an alphabet of {len(alphabet)} characters")
        return Family("characters", f"median number of words per row: {words:g}", lowercase=False)
    if _are_symbols(texts):
        return Family("symbols", lowercase=False)
    few = max(8, int((np.cumsum([len(text) for text in texts]) <= PROBED_CHARACTERS).sum()))
    probed = [text.lower() for text in texts[:few]]
    words_found, labels = word_ngrams(probed), labels[:few]
    found = (words_found, telling(words_found, labels))
    by_words = min(naive_bayes_error(each, labels) for each in found)
    by_characters = naive_bayes_error(character_ngrams(probed, 3), labels)
    error = math.sqrt((by_words + by_characters) * HELD_OUT / few)
    if by_characters < min(CHARACTERS_BETTER * by_words, by_words - 2 * error):
        errors = f"{by_characters:.0%} errors, by words {by_words:.0%}"
        return Family("characters", f"on a sample, a simple classifier by characters has {errors}")
    return Family("words")


def _share(characters: Counter[str], scripts: tuple[str, ...], letters: int) -> float:
    """Return the share of the characters, in [0, 1], that belong to some scripts.

    Args:
        characters: Maps each character to its count.
        scripts: First words of the Unicode names of the characters, all beyond U+0DFF.
        letters: Number of all characters except whitespace.
    """
    beyond_ascii = {c: unicodedata.name(c, "") for c in characters if c > "\u0dff"}
    found = sum(characters[c] for c, name in beyond_ascii.items() if name.startswith(scripts))
    return found / max(1, letters)


def _are_symbols(texts: Sequence[str]) -> bool:
    """Return True if the texts are symbols of a small set, separated by blanks.

    Each symbol must occur more than ten times on average. A share of more than `MANY_BROKEN` of the
    symbols must have one of these properties:

    - They have marks inside, such as a dot or a hyphen.
    - Their letters usually occur in another case: see `MOST_OF_ONE_CASE`.
    """
    tokens = Counter(token for text in texts for token in text.split())
    total = sum(tokens.values())
    split = make_tokenizer("word", lowercase=False)
    broken = sum(n for token, n in tokens.items() if len(split(token.strip('.,"()?!-<>:;'))) > 1)
    in_one_case = Counter[str]()
    for token, n in tokens.items():
        in_one_case[token.lower()] += n
    mixed = sum(n for t, n in tokens.items() if n < MOST_OF_ONE_CASE * in_one_case[t.lower()])
    return max(broken, mixed) > MANY_BROKEN * total and len(tokens) < total / 10
