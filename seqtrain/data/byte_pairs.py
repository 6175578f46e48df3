"""Byte-pair merges applied in Python alone, for machines without the package tokenizers.

The same tokens as that package's, byte-level without a blank in front (Radford et al. 2019,
"Language Models are Unsupervised Multitask Learners").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise

_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
"""Bytes that are shown as themselves."""
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]
ALPHABET = {b: chr(b) for b in _SHOWN} | {b: chr(256 + i) for i, b in enumerate(_HIDDEN)}
"""The character that stands for each byte."""
PIECE = re.compile(
    r"'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII
)
"""What merges don't cross; letters, digits and blanks beyond ASCII are replaced before."""
BLANKS = "\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


class BytePairs:
    """Splits texts into tokens.

    Args:
        merges: pairs of tokens that are joined, in the order in which they were learned.
    """

    def __init__(self, merges: Sequence[tuple[str, str]]) -> None:
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        found = PIECE.finditer("".join(map(_as_ascii, text)))
        return list(chain.from_iterable(self._merged(text[m.start() : m.end()]) for m in found))

    def _merged(self, piece: str) -> list[str]:
        """Join the bytes of a piece, pair by pair."""
        parts, worst = [ALPHABET[byte] for byte in piece.encode()], len(self.ranks)
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self.ranks.get(pair, worst))
            if best not in self.ranks:
                break
            joined: list[str] = []
            for part in parts:
                if joined and (joined[-1], part) == best:
                    joined[-1] += part
                else:
                    joined.append(part)
            parts = joined
        return parts


def _as_ascii(character: str) -> str:
    """Return a character of the same class for the regular expression PIECE."""
    if character.isascii():
        return character
    kind = unicodedata.category(character)[0]
    return "\t" if character in BLANKS else {"L": "a", "N": "0"}.get(kind, ".")
