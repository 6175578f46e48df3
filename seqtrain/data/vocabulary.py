"""Tokens and their ids: <pad> is 0, <unk> is 1, then the tokens of train, most frequent first."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.data.spelling import WordGrams, word_grams
from seqtrain.data.store import Ints
from seqtrain.data.tokenizers import Tokenizer

PAD, UNK = 0, 1
SPECIAL = ("<pad>", "<unk>")
REMEMBERED_PIECES, REMEMBERED_LENGTH = 1 << 17, 64
"""How many pieces' ids are kept, and of how many characters at most: about 30 MB together."""
MOST_SPELLINGS = 2**20
"""Distinct unknown words of a file, or of a chunk of it, that are told apart."""


class GrowingIndex(dict[str, int]):
    """Ids by first appearance; a new token gets the next id."""

    def __missing__(self, token: str) -> int:
        self[token] = new = len(self)
        return new


class FixedIndex(dict[str, int]):
    """Ids of known tokens (or labels); anything else gets the default."""

    def __init__(self, known: Mapping[str, int], default: int) -> None:
        super().__init__(known)
        self.default = default

    def __missing__(self, token: str) -> int:
        return self.default


class SpellingIndex(dict[str, int]):
    """Ids of known tokens; unknown ones are numbered beyond, up to MOST_SPELLINGS of them."""

    def __init__(self, known: Mapping[str, int], first: int) -> None:
        super().__init__(known)
        self.first = first
        self.unknown: list[str] = []

    def __missing__(self, token: str) -> int:
        if len(self.unknown) == MOST_SPELLINGS:
            return UNK
        self[token] = new = self.first + len(self.unknown)
        self.unknown.append(token)
        return new


class PieceIds(dict[str, bytes]):
    """Ids of the tokens of each piece of text met before, as the bytes of an int32 array."""

    def __init__(self, tokenizer: Tokenizer, index: Mapping[str, int]) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.index = index

    def __missing__(self, piece: str) -> bytes:
        ids = array("i", map(self.index.__getitem__, self.tokenizer.split(piece))).tobytes()
        if len(piece) <= REMEMBERED_LENGTH and len(self) < REMEMBERED_PIECES:
            self[piece] = ids
        return ids

    def encode(self, texts: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[int]]:
        """Return the ids (N,) of the tokens of texts or lists of symbols, and how many each has."""
        look_up = self.__getitem__
        ids = [b"".join(map(look_up, pieces)) for pieces in self.tokenizer.pieces(texts)]
        values = np.frombuffer(b"".join(ids), dtype=np.int32)
        return values, [len(each) // values.itemsize for each in ids]


@dataclass(frozen=True)
class Vocabulary:
    """The tokens that a model knows, by id."""

    tokens: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _grams(self) -> dict[tuple[int, int], WordGrams]:
        return {}

    def grams(self, shortest: int, longest: int) -> WordGrams:
        """Return the n-grams of each word's characters, by id; <pad> and <unk> have none."""
        sizes = shortest, longest
        if sizes not in self._grams:
            words = [""] * len(SPECIAL) + list(self.tokens[len(SPECIAL) :])
            self._grams[sizes] = word_grams(words, *sizes)
        return self._grams[sizes]

    @cached_property
    def index(self) -> FixedIndex:
        """Token to id. A token spelled like <pad> in the data is unknown, never padding."""
        return FixedIndex({token: i for i, token in enumerate(self.tokens) if i != PAD}, UNK)


def provisional_index() -> GrowingIndex:
    """Return an index for reading train before its vocabulary is known; ids 0 and 1 are taken."""
    return GrowingIndex(zip(SPECIAL, (PAD, UNK), strict=True))


def fit_vocabulary(
    tokens: Sequence[str],
    counts: Ints,
    *,
    min_count: int,
    max_size: int,
    known: Vocabulary | None = None,
) -> tuple[Vocabulary, npt.NDArray[np.int32], int]:
    """Choose the vocabulary by frequency in train; equal counts go in order of the token itself.

    Known tokens keep their ids, others follow. `max_size` includes <pad> and <unk>. Returns the
    vocabulary, the final id of each provisional one, and how many tokens could be in it.

    Shape:
        tokens, counts: (V,), by provisional id.
    """
    frequent = np.flatnonzero(counts >= min_count).tolist()
    before = SPECIAL if known is None else known.tokens
    old = {token: i for i, token in enumerate(before) if i != PAD}
    candidates = [i for i in frequent if tokens[i] not in old and tokens[i] not in SPECIAL]
    candidates.sort(key=lambda i: (-counts[i], tokens[i]))
    kept = candidates[: max(0, max_size - len(before))]
    final_ids = np.array([old.get(token, UNK) for token in tokens], dtype=np.int32)
    final_ids[kept] = np.arange(len(before), len(before) + len(kept), dtype=np.int32)
    seen = sum(1 for i in frequent if tokens[i] not in SPECIAL)
    return Vocabulary(before + tuple(tokens[i] for i in kept)), final_ids, seen
