"""Sequences of tokens: the common base of text columns and symbol columns.

A token that the vocabulary lacks is encoded as <unk>. With subwords, the store also holds the
character n-grams of such an unknown word, by which the model can tell it from others.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.columns.column import CellEncoder, Column, FitOptions, Parts
from seqtrain.sequences.saved_values import saved_integer, saved_texts
from seqtrain.sequences.store import Array, SequenceStore, blocks, concatenate, counts_of
from seqtrain.sequences.tokenizers import Tokenizer
from seqtrain.sequences.vocabulary import (
    BUCKETS,
    MOST_SPELLINGS,
    SPECIAL,
    UNK,
    GrowingTokens,
    KnownTokens,
    SpelledTokens,
    TokenIndex,
    Vocabulary,
    WordGrams,
    fit_vocabulary,
    word_grams,
)

REMEMBERED_CHARACTERS = 2**22
"""Largest total length of the pieces of text whose ids an encoder remembers: about 30 MB."""
LONGEST_NGRAM = 16
SCORED_SPLITS = ("validation", "test")
SomeSequence = TypeVar("SomeSequence", bound="TokenSequence")


class TokenEncoder(CellEncoder):
    """Encoder of texts, or of lists of symbols, as token ids.

    It remembers the ids of each piece of text, so that a frequent piece is split only once.

    Attributes:
        index: Object that turns tokens into ids.
    """

    def __init__(self, tokenizer: Tokenizer, index: TokenIndex) -> None:
        self.index = index
        self._tokenizer = tokenizer
        self._ids: dict[str, bytes] = {}
        self._characters = 0

    def encode(self, cells: Sequence[Any]) -> tuple[Array, list[int]]:
        """Return the token ids of all cells, (N,) int32, and the number of tokens of each cell.

        Args:
            cells: Texts, or lists of symbols.
        """
        if self._characters > REMEMBERED_CHARACTERS:
            self._ids, self._characters = {}, 0
        of_cells, known = list[bytes](), self._ids.__getitem__
        for pieces in self._tokenizer.pieces(cells):
            try:
                of_cells.append(b"".join(map(known, pieces)))
            except KeyError:
                self._learn(pieces)
                of_cells.append(b"".join(map(known, pieces)))
        values = np.frombuffer(b"".join(of_cells), dtype=np.int32)
        return values, [len(own) // values.itemsize for own in of_cells]

    def _learn(self, pieces: Iterable[str]) -> None:
        """Store the ids of each piece that isn't remembered yet."""
        for piece in pieces:
            if piece not in self._ids:
                ids = self.index.ids(self._tokenizer.split(piece))
                self._ids[piece] = array("i", ids).tobytes()
                self._characters += len(piece)

    def blank(self) -> Array:
        """Return the step that replaces an empty sequence: the id of <unk>, (1,)."""
        return np.array([UNK], dtype=np.int32)

    def arrays(self, values: Array) -> dict[str, Array]:
        """Return the arrays "values" and, with subwords, "spellings", each of shape (N,).

        "values" has the ids, with <unk> for unknown words. "spellings" has the number of the
        unknown word at each step, counted from 0. It is -1 at a step without such a number.

        Args:
            values: Results of `encode`, (N,): ids, or numbers of unknown words.
        """
        if not isinstance(self.index, SpelledTokens):
            return {"values": values}
        spellings = np.maximum(values - self.index.first, -1).astype(np.int32)
        ids = np.where(spellings < 0, values, UNK).astype(np.int32)
        return {"values": ids, "spellings": spellings}


@dataclass(frozen=True)
class TokenSequence(Column):
    """Base of the columns whose steps are token ids.

    Attributes:
        vocabulary: Tokens of the training split, or None before `fit`.
        subwords: Lengths of the shortest and of the longest character n-gram, or None without
            subwords.
        subword_rows: Number of rows of the embedding table of these n-grams.
    """

    vocabulary: Vocabulary | None = None
    subwords: tuple[int, int] | None = None
    subword_rows: int = BUCKETS

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that splits a cell into tokens."""

    @property
    def input_size(self) -> int:
        """Size of the vocabulary, or 0 before `fit`."""
        return len(self.vocabulary or ())

    @property
    def words(self) -> WordGrams | None:
        """Character n-grams of the words of the vocabulary, or None.

        None is returned before `fit`, and without subwords.
        """
        if self.vocabulary is None or self.subwords is None:
            return None
        return self.vocabulary.grams(*self.subwords)

    @cached_property
    def _encoder(self) -> TokenEncoder:
        return TokenEncoder(self.tokenizer, KnownTokens(self.vocabulary or Vocabulary(SPECIAL)))

    def encoder(self) -> CellEncoder:
        """Return an encoder of cells.

        Before `fit` the ids are provisional. A fitted column without subwords always returns the
        same encoder. With subwords, each call returns a new encoder, which numbers the unknown
        words that it meets.
        """
        if self.vocabulary is None:
            return TokenEncoder(self.tokenizer, GrowingTokens(SPECIAL))
        if self.subwords is None:
            return self._encoder
        return TokenEncoder(self.tokenizer, SpelledTokens(self.vocabulary))

    def fit(
        self: SomeSequence,
        encoder: TokenEncoder,
        parts: Parts,
        options: FitOptions,
        known: SomeSequence | None = None,
    ) -> tuple[SomeSequence, Parts, int]:
        """Choose the vocabulary by the counts in train and in the files of pretraining.data.

        See `Column.fit`. The method changes the arrays `values` of the stores in place.
        """
        tokens = encoder.index.tokens
        counts = [
            counts_of(part.values, len(tokens))
            for name, part in parts.items()
            if name not in SCORED_SPLITS
        ]
        vocabulary, ids, eligible = fit_vocabulary(
            tokens,
            np.sum(counts, axis=0),
            min_count=options.min_count,
            max_size=options.max_size,
            known=None if known is None else known.vocabulary,
        )
        if options.extend is not None:
            more = options.extend(vocabulary)
            numbers = {word: number for number, word in enumerate(more, start=len(vocabulary))}
            for provisional, token in enumerate(tokens):
                ids[provisional] = numbers.get(token, ids[provisional])
            vocabulary = Vocabulary((*vocabulary.tokens, *more))
        if self.subwords is not None:
            parts = _spelled(parts, self.subwords, tokens, ids)
        for block in chain.from_iterable(blocks(part.values) for part in parts.values()):
            block[...] = ids[block]
        rows = self.subword_rows if known is None else known.subword_rows
        if known is None and self.subwords is not None:
            rows = vocabulary.grams(*self.subwords).table_rows()
        return replace(self, vocabulary=vocabulary, subword_rows=rows), parts, eligible

    def finish(self, store: SequenceStore, encoder: TokenEncoder) -> SequenceStore:
        """Return the store with the character n-grams of unknown words in its attribute `words`.

        Without subwords the store is returned unchanged.

        Args:
            store: Rows that `encoder` encoded.
            encoder: An encoder of this column.
        """
        if self.subwords is None or not isinstance(encoder.index, SpelledTokens):
            return store
        return replace(store, words=word_grams(encoder.index.tokens, *self.subwords))

    def pieces(self, cell: Any) -> list[str]:
        """Return the tokens of a cell."""
        return self.tokenizer(cell)

    def is_token(self, word: str) -> bool:
        """Return True if the tokenizer leaves a word as it is, so that it can be a token."""
        return self.tokenizer(word) == [word]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the vocabulary as JSON values."""
        sizes = None if self.subwords is None else list(self.subwords)
        return {"kind": self.kind, "subwords": sizes, "subword_rows": self.subword_rows}

    def vocabulary_dict(self) -> dict[str, list[str]]:
        """Return {"tokens": tokens in the order of their ids}, or {} before `fit`."""
        return {} if self.vocabulary is None else {"tokens": list(self.vocabulary.tokens)}


def saved_subwords(values: Any) -> dict[str, Any]:
    """Return the attributes `subwords` and `subword_rows` of a saved token sequence.

    Args:
        values: Result of `TokenSequence.to_dict`.

    Raises:
        ValueError: If they aren't valid.
    """
    sizes = values["subwords"]
    if sizes is not None:
        if not isinstance(sizes, list) or len(sizes) != 2:
            raise ValueError("subwords: expected two sizes or null")
        shortest = saved_integer("subwords", sizes[0], 1, LONGEST_NGRAM)
        sizes = (shortest, saved_integer("subwords", sizes[1], shortest, LONGEST_NGRAM))
    rows = saved_integer("subword_rows", values["subword_rows"], 1, BUCKETS)
    return {"subwords": sizes, "subword_rows": rows}


def saved_vocabulary(key: str, tokens: Any) -> Vocabulary:
    """Return the vocabulary of a saved column.

    Args:
        key: Name of the column in error messages.
        tokens: List of tokens in the order of their ids.

    Raises:
        ValueError: If it isn't a list of different strings that starts with `SPECIAL`.
    """
    found = saved_texts(key, tokens, least=len(SPECIAL), lone_surrogates=True)
    if found[: len(SPECIAL)] != SPECIAL:
        raise ValueError(f"{key}: expected {', '.join(SPECIAL)} first")
    return Vocabulary(found)


def _spelled(
    parts: Parts, sizes: tuple[int, int], tokens: Sequence[str], ids: npt.NDArray[np.int32]
) -> Parts:
    """Return copies of the stores with the character n-grams of unknown words.

    Args:
        parts: Stores with provisional ids, by name.
        sizes: Lengths of the shortest and of the longest n-gram.
        tokens: Maps each provisional id to its token.
        ids: Maps each provisional id to its final id.

    Returns:
        Stores by name. Their attribute `words` has the n-grams of the first MOST_SPELLINGS unknown
        words. It is the same for all stores. Their attribute `spellings` has the index in `words`
        of the unknown word at each step, or -1 at other steps.
    """
    unknown = np.flatnonzero(ids == UNK)
    unknown = unknown[unknown >= len(SPECIAL)][:MOST_SPELLINGS]
    words = word_grams((tokens[i] for i in unknown.tolist()), *sizes)
    number = np.full(len(ids), -1, dtype=np.int32)
    number[unknown] = np.arange(len(unknown))
    found = {}
    for name, part in parts.items():
        spellings = concatenate(number[block] for block in blocks(part.values))
        found[name] = replace(part, spellings=spellings, words=words)
    return found
