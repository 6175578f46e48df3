"""Column of lists of symbols, which are tokens already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqtrain.sequences.columns.token_sequence import (
    TokenSequence,
    saved_subwords,
    saved_vocabulary,
)
from seqtrain.sequences.tokenizers import SYMBOLS, Tokenizer


@dataclass(frozen=True)
class SymbolColumn(TokenSequence):
    """Column with a list of symbols per example."""

    kind = "tokens"

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that leaves symbols as they are."""
        return SYMBOLS

    def is_token(self, word: str) -> bool:
        """Return True: every word can be a symbol."""
        return True

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> SymbolColumn:
        """Build a fitted column from saved values: see `Column.from_dict`."""
        return cls(
            vocabulary=saved_vocabulary("tokens", tokens["tokens"]), **saved_subwords(values)
        )
