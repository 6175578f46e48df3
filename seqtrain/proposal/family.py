"""Families of texts: words, characters, an alphabet such as DNA's, or symbols."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqtrain.sequences.tokenizers import make_tokenizer

UNSPACED = (
    "CJK",
    "HIRAGANA",
    "HENTAIGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "BOPOMOFO",
    "YI",
    "NUSHU",
    "TANGUT",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TAI",
    "NEW TAI",
    "AHOM",
    "TIBETAN",
    "JAVANESE",
    "BALINESE",
    "CHAM",
    "BATAK",
    "MAKASAR",
    "KAWI",
    "BRAHMI",
    "GRANTHA",
    "DIVES AKURU",
    "GURUNG KHEMA",
    "TULU-TIGALARI",
    "HANGUL",
)
"""First words of the Unicode names of letters of scripts that are read by characters.

These are the scripts whose letters have the line-breaking classes ID, SA, AK, AP and AS in Unicode
16 (UAX #14); Tibetan, which has a mark between syllables; and Hangul, whose words are compounds.
"""
MANY_UNSPACED = 0.3
"""Share of letters of these scripts from which on texts are read by characters."""
SMALL_ALPHABET, SHORTEST_OF_ALPHABET = 30, 25
"""Most characters of an alphabet, without case, and the smallest median length of its texts."""
PROBED_CHARACTERS = 200_000
"""Number of characters in which words are counted."""
PROBED_EVERY = 4
"""The words of every fourth text are looked up in the others."""
HTML = re.compile(r"</?[a-zA-Z][^<>]*>|&#?\w+;")
"""A tag or a character of HTML."""
MARKS_AROUND = '.,"()?!-<>:;'

split_words = make_tokenizer("word", lowercase=True)


class Family(NamedTuple):
    """Family of a data set.

    Attributes:
        name: words, characters, alphabet, symbols, series, channels, or steps.
        reason: Reason for characters or an alphabet, for a comment in the config, or "".
        keeps_case: True if upper and lower case may differ in meaning.
    """

    name: str
    reason: str = ""
    keeps_case: bool = False


def family_of(texts: Sequence[str]) -> Family:
    """Return the family of texts: by their script, blanks, marks, and the words that recur."""
    letters = Counter("".join(texts[:2000]))
    for blank in [character for character in letters if character.isspace()]:
        del letters[blank]
    share = share_of_scripts(letters, UNSPACED)
    if share > MANY_UNSPACED:
        reason = f"{share:.0%} of the letters belong to scripts without spaces between words"
        return Family("characters", reason)
    words = float(np.median([len(text.split()) for text in texts]))
    if words <= 1.5:
        alphabet = {letter.lower() for letter in letters}
        length = np.median([len(text) for text in texts])
        if len(alphabet) <= SMALL_ALPHABET and length >= SHORTEST_OF_ALPHABET:
            return Family("alphabet", f"an alphabet of {len(alphabet)} characters")
        reason = f"median number of words per row: {words:g}"
        return Family("characters", reason, keeps_case=True)
    if are_symbols(texts):
        return Family("symbols", keeps_case=True)
    new, usual = share_of_new_words(texts)
    if new > usual:
        return Family("characters", f"{new:.0%} of the words of a text don't occur in others")
    return Family("words")


def share_of_new_words(texts: Sequence[str]) -> tuple[float, float]:
    """Return the share of words that don't occur in other texts, and the most that is usual.

    Words tell nothing if they don't come again, as in texts of many languages. In one language, the
    share falls with the number of words: of Finnish it is 73 % of 1,200, 55 % of 9,200 and 47 % of
    23,000 words; of 21 languages together 76 % of 1,500, 58 % of 13,000 and 53 % of 26,000.
    """
    sizes = np.cumsum([len(text) for text in texts])
    few = max(8, int(np.count_nonzero(sizes <= PROBED_CHARACTERS)))
    words = [split_words(text) for text in texts[:few]]
    known = {word for at, own in enumerate(words) if at % PROBED_EVERY for word in own}
    looked_up = [word for own in words[::PROBED_EVERY] for word in own]
    new = sum(word not in known for word in looked_up) / max(1, len(looked_up))
    total = sum(map(len, words))
    return new, 1.37 - 0.2 * math.log10(max(1, total))


def share_of_scripts(letters: Counter[str], scripts: tuple[str, ...]) -> float:
    """Return the share of letters of some scripts, given by the first words of Unicode names."""
    found = sum(n for c, n in letters.items() if unicodedata.name(c, "").startswith(scripts))
    return found / max(1, letters.total())


def mixes_digits(word: str) -> bool:
    """Return True if a word has letters and digits."""
    return not word.isalpha() and not word.isdigit()


def are_symbols(texts: Sequence[str]) -> bool:
    """Return True if texts are symbols of a small set: each recurs, and many are no plain words.

    A symbol isn't a plain word if it has marks inside or both letters and digits, as Nf3 has, or if
    its letters mostly occur in another case. The first word of a sentence has a capital, so it
    tells nothing.
    """
    tokens = Counter(" ".join(HTML.sub(" ", text) for text in texts).split())
    if 10 * len(tokens) >= tokens.total():
        return False
    first = Counter(word for text in texts for word in text.split(maxsplit=1)[:1])
    lowered: Counter[str] = Counter()
    for token, count in tokens.items():
        lowered[token.lower()] += count
    broken = mixed = 0
    for token, count in tokens.items():
        plain = token.strip(MARKS_AROUND)
        if len(split_words(plain)) > 1 or (plain.isalnum() and mixes_digits(plain)):
            broken += count
        if count < 0.8 * lowered[token.lower()]:
            mixed += count - first[token]
    return max(broken, mixed) > 0.2 * tokens.total()
