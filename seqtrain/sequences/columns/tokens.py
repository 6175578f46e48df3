"""Sequences of tokens: texts with a tokenizer, or lists of symbols, which are tokens already.

A token that the vocabulary lacks is encoded as <unk>. With subwords, the store also holds the
character n-grams of such an unknown word, by which the model can tell it from others.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from seqtrain.sequences.examples import Sequences
from seqtrain.sequences.saved import Saved
from seqtrain.sequences.store import SequenceStore, counts_of
from seqtrain.sequences.tokenizers import BPE, SYMBOLS, Tokenizer, make_tokenizer
from seqtrain.sequences.vocabulary import (
    BUCKETS,
    UNFITTED,
    UNK,
    TokenIndex,
    Vocabulary,
    WordGrams,
    fit_vocabulary,
    word_grams,
)
from seqtrain.tables.blocks import Array, Codes, Ints

Parts: TypeAlias = dict[str, SequenceStore]
"""Stores by name: train, the other splits, and files of pretraining.data."""
REMEMBERED_CHARACTERS = 2**22
"""Largest total length of the pieces of text whose ids an encoder remembers: about 30 MB."""
MOST_SPELLINGS = 2**20
"""Largest number of different unknown words of an encoder whose character n-grams are stored."""
LONGEST_NGRAM = 16
HELD_OUT_SPLITS = ("validation", "test")


@dataclass(frozen=True)
class VocabularyLimits:
    """Settings by which vocabularies and bins are fitted.

    Attributes:
        min_count: Smallest number of occurrences of a token in the vocabulary.
        max_size: Largest size of a vocabulary, including <pad> and <unk>.
        bins: Largest number of bins of each number column of a table, or None for no bins.
        extend: Function that is called with the chosen vocabulary and returns words to add. Their
            ids follow the ids of the vocabulary. The attribute is None if no words are added.
    """

    min_count: int
    max_size: int
    bins: int | None = None
    extend: Callable[[Vocabulary], list[str]] | None = None


class TokenEncoder:
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

    def encode(self, sequences: Sequences) -> tuple[Array, Ints]:
        """Return the token ids of all sequences, (N,) int32, and the number of tokens of each.

        A sequence that can't be used has none.

        Args:
            sequences: Texts, or lists of symbols.
        """
        cells = sequences.content
        problems = sequences.problems
        if problems:
            cells = [cell if row not in problems else cell[:0] for row, cell in enumerate(cells)]
        if self._characters > REMEMBERED_CHARACTERS:
            self._ids = {}
            self._characters = 0
        of_cells = []
        known = self._ids.__getitem__
        for pieces in self._tokenizer.pieces(cells):
            try:
                of_cells.append(b"".join(map(known, pieces)))
            except KeyError:
                for piece in pieces:
                    if piece not in self._ids:
                        ids = self.index.ids(self._tokenizer.split(piece))
                        self._ids[piece] = array("i", ids).tobytes()
                        self._characters += len(piece)
                of_cells.append(b"".join(map(known, pieces)))
        values = np.frombuffer(b"".join(of_cells), dtype=np.int32)
        sizes = np.fromiter(map(len, of_cells), np.int64, len(of_cells))
        return values, sizes // values.itemsize

    def blank(self) -> Array:
        """Return the step that replaces an empty sequence: the id of <unk>, (1,)."""
        return np.array([UNK], dtype=np.int32)


@dataclass(frozen=True)
class TokenSequence(Saved):
    """Column whose sequences are tokens.

    Attributes:
        tokenizer_name: Name of the tokenizer of texts, a value of data.tokenizer. None if a
            sequence is a list of symbols, which are tokens already.
        lowercase: True if texts are converted to lower case first.
        bpe_model: Trained merges of the tokenizer "bpe" as JSON. None for other tokenizers, and
            before the merges are trained.
        subwords: Lengths of the shortest and of the longest character n-gram, or None without
            subwords.
        subword_rows: Number of rows of the embedding table of these n-grams.
        vocabulary: Tokens of the training split, or None before the fit.
    """

    tokenizer_name: Literal["word", "whitespace", "char", "byte", "bpe"] | None
    lowercase: bool = True
    bpe_model: str | None = None
    subwords: tuple[int, ...] | None = None
    subword_rows: int = BUCKETS
    vocabulary: Vocabulary | None = None

    def __post_init__(self) -> None:
        if self.bpe_model is not None and self.tokenizer_name != BPE:
            raise ValueError("bpe_model: expected merges if the tokenizer is bpe, else null")
        if self.bpe_model is not None:
            _ = self.tokenizer  # raises a ValueError if the merges aren't valid
        if self.subwords is not None and not _are_sizes(self.subwords):
            raise ValueError("subwords: expected two sizes, the shorter one first, or null")
        if not 1 <= self.subword_rows <= BUCKETS:
            raise ValueError(f"subword_rows: expected a number from 1 to {BUCKETS}")

    @property
    def kind(self) -> Literal["text", "tokens"]:
        """Kind of the sequences, a value of data.kind."""
        if self.tokenizer_name is None:
            return "tokens"
        return "text"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that splits a cell into tokens."""
        if self.tokenizer_name is None:
            return SYMBOLS
        return make_tokenizer(
            self.tokenizer_name, lowercase=self.lowercase, bpe_model=self.bpe_model
        )

    @property
    def input_size(self) -> int:
        """Size of the vocabulary, or 0 before the fit."""
        return len(self.vocabulary or ())

    @property
    def words(self) -> WordGrams | None:
        """Character n-grams of the words of the vocabulary, or None without subwords."""
        if self.vocabulary is None or self.subwords is None:
            return None
        return self.vocabulary.grams(self.subwords[0], self.subwords[1])

    # A step is an id: it has no numbers.
    tokens: ClassVar[tuple[Any, ...]] = ()
    channels = 0
    has_indicators = False
    carries = False
    standardize = "train"

    @cached_property
    def _encoder(self) -> TokenEncoder:
        return TokenEncoder(self.tokenizer, TokenIndex(self.vocabulary or UNFITTED))

    def encoder(self) -> TokenEncoder:
        """Return an encoder of cells.

        Before the fit its ids are temporary. A fitted column without subwords always returns the
        same encoder. With subwords, each call returns a new encoder, which numbers the unknown
        words that it meets.
        """
        if self.vocabulary is None:
            return TokenEncoder(self.tokenizer, TokenIndex(UNFITTED, inf))
        if self.subwords is None:
            return self._encoder
        return TokenEncoder(self.tokenizer, TokenIndex(self.vocabulary, MOST_SPELLINGS))

    def fit(
        self,
        encoder: TokenEncoder,
        parts: Parts,
        limits: VocabularyLimits,
        known: TokenSequence | None = None,
    ) -> tuple[TokenSequence, Parts]:
        """Choose the vocabulary by the counts in train and in the files of pretraining.data.

        Args:
            encoder: Encoder that encoded all parts.
            parts: Stores with temporary ids, by name.
            limits: Limits of the vocabulary.
            known: Column of an earlier model, or None. Its tokens keep their ids.

        Returns:
            The fitted column, and the stores with final ids.
        """
        index = encoder.index
        counted = [part for name, part in parts.items() if name not in HELD_OUT_SPLITS]
        counts = np.sum([counts_of(part.values, index.size) for part in counted], axis=0)
        vocabulary, ids = fit_vocabulary(
            index,
            counts,
            min_count=limits.min_count,
            max_size=limits.max_size,
            known=None if known is None else known.vocabulary,
        )
        if limits.extend is not None:
            more = limits.extend(vocabulary)
            numbers = {word: number for number, word in enumerate(more, start=len(vocabulary))}
            for temporary, token in enumerate(index.others, start=index.first):
                ids[temporary] = numbers.get(token, ids[temporary])
            vocabulary = Vocabulary((*vocabulary.tokens, *more))
        rows = self.subword_rows if known is None else known.subword_rows
        if known is None and self.subwords is not None:
            rows = vocabulary.grams(self.subwords[0], self.subwords[1]).table_rows()
        fitted = replace(self, vocabulary=vocabulary, subword_rows=rows)
        return fitted, self._renumbered(parts, index, ids)

    def finalize(self, store: SequenceStore, encoder: TokenEncoder) -> SequenceStore:
        """Return the store with final ids. With subwords, add the n-grams of unknown words.

        Args:
            store: Rows that `encoder` encoded.
            encoder: An encoder of this column.
        """
        if self.subwords is None:
            return store
        ids = np.arange(encoder.index.size, dtype=np.int32)
        ids[encoder.index.first :] = UNK
        return self._renumbered({"rows": store}, encoder.index, ids)["rows"]

    def _renumbered(self, parts: Parts, index: TokenIndex, ids: Codes) -> Parts:
        """Return stores with final ids. With subwords, add the n-grams of unknown words.

        The attribute `words` has the n-grams of the first MOST_SPELLINGS unknown words. It is the
        same for all stores.

        Args:
            parts: Stores with temporary ids, by name.
            index: Index by which the stores were encoded.
            ids: Maps each temporary id to its final id.
        """
        found = {name: replace(part, values=ids[part.values]) for name, part in parts.items()}
        if self.subwords is None:
            return found
        unknown = np.flatnonzero(ids[index.first :] == UNK)[:MOST_SPELLINGS]
        words = word_grams((index.others[i] for i in unknown.tolist()), *self.subwords)
        number = np.full(len(ids), -1, dtype=np.int32)
        number[index.first + unknown] = np.arange(len(unknown))
        for name, part in parts.items():
            found[name] = replace(found[name], spellings=number[part.values], words=words)
        return found

    def token_lists(self) -> dict[str, Any]:
        """Return the tokens of the vocabulary, as a list under the name "tokens"."""
        return {"tokens": list((self.vocabulary or UNFITTED).tokens)}

    def with_vocabularies(self, lists: Mapping[str, Any]) -> TokenSequence:
        """Return the column with the vocabulary of `token_lists`.

        Raises:
            ValueError: If the list is missing, or isn't a vocabulary.
        """
        return replace(self, vocabulary=Vocabulary(tuple(lists.get("tokens") or ())))

    def step_texts(self, cell: Any) -> list[str]:
        """Return the tokens of a cell."""
        return self.tokenizer(cell)

    def is_token(self, word: str) -> bool:
        """Return True if the tokenizer leaves a word as it is, so that it can be a token."""
        return self.tokenizer_name is None or self.tokenizer(word) == [word]

    def settings(self) -> dict[str, Any]:
        """Return the config settings that fix the meaning of the ids: keys of data, and values."""
        if self.tokenizer_name is None:
            return {}
        return {"tokenizer": self.tokenizer_name, "lowercase": self.lowercase}

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return {}: a step has no numbers."""
        return {}


def _are_sizes(sizes: Sequence[int]) -> bool:
    return len(sizes) == 2 and 1 <= sizes[0] <= sizes[1] <= LONGEST_NGRAM
