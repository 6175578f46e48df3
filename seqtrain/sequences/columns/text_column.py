"""Column of text, split into tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seqtrain.sequences.columns.token_sequence import (
    TokenSequence,
    saved_subwords,
    saved_vocabulary,
)
from seqtrain.sequences.saved_values import saved_choice, saved_flag
from seqtrain.sequences.tokenizers import BPE, TOKENIZERS, Tokenizer, make_tokenizer, read_merges


@dataclass(frozen=True)
class TextColumn(TokenSequence):
    """Column with a text per example.

    Attributes:
        tokenizer_name: Name of the tokenizer, a value of data.tokenizer.
        lowercase: True if texts are converted to lower case first.
        bpe_model: Trained merges of the tokenizer "bpe" as JSON. None for other tokenizers, and
            before the merges are trained.
    """

    kind = "text"
    tokenizer_name: str = "word"
    lowercase: bool = True
    bpe_model: str | None = None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the texts."""
        return make_tokenizer(
            self.tokenizer_name, lowercase=self.lowercase, bpe_model=self.bpe_model
        )

    def settings(self) -> dict[str, Any]:
        """Return data.tokenizer and data.lowercase: see `Column.settings`."""
        return {"tokenizer": self.tokenizer_name, "lowercase": self.lowercase}

    def to_dict(self) -> dict[str, Any]:
        """Return all but the vocabulary as JSON values."""
        return {
            **super().to_dict(),
            "tokenizer": self.tokenizer_name,
            "lowercase": self.lowercase,
            "bpe_model": self.bpe_model,
        }

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> TextColumn:
        """Build a fitted column from saved values: see `Column.from_dict`."""
        name = saved_choice("tokenizer", values["tokenizer"], (*TOKENIZERS, BPE))
        bpe_model = values["bpe_model"]
        if (name == BPE) != isinstance(bpe_model, str):
            raise ValueError("bpe_model: expected merges if the tokenizer is bpe, else null")
        if bpe_model is not None:
            read_merges(bpe_model)
        return cls(
            vocabulary=saved_vocabulary("tokens", tokens["tokens"]),
            tokenizer_name=name,
            lowercase=saved_flag("lowercase", values["lowercase"]),
            bpe_model=bpe_model,
            **saved_subwords(values),
        )
