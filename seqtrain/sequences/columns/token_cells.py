"""Token columns of a table: one symbol per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.sequences.columns.column import FitOptions
from seqtrain.sequences.columns.token_sequence import saved_vocabulary
from seqtrain.sequences.saved_values import saved_integer, saved_text
from seqtrain.sequences.vocabulary import (
    SPECIAL,
    GrowingTokens,
    KnownTokens,
    TokenIndex,
    Vocabulary,
    fit_vocabulary,
)


@dataclass(frozen=True)
class TokenCells:
    """A column whose cells are tokens.

    Attributes:
        name: Name of the column.
        min_count: Smallest number of occurrences of a token in the vocabulary, or None to use
            data.min_count.
        vocabulary: Tokens of train, or None before `fit`.
    """

    kind = "token"
    name: str
    min_count: int | None = None
    vocabulary: Vocabulary | None = None

    def index(self) -> TokenIndex:
        """Return an object that turns tokens into ids.

        Before `fit` it assigns a provisional id to each new token. Afterwards it uses the
        vocabulary.
        """
        if self.vocabulary is None:
            return GrowingTokens(SPECIAL)
        return KnownTokens(self.vocabulary)

    def fit(
        self,
        tokens: Sequence[str],
        counts: npt.NDArray[np.int64],
        options: FitOptions,
        known: Vocabulary | None,
    ) -> tuple[TokenCells, npt.NDArray[np.int32], int]:
        """Choose the vocabulary.

        Args:
            tokens: All tokens, by provisional id, (V,).
            counts: Number of occurrences in train, by provisional id, (V,).
            options: Limits of the vocabulary. The column's `min_count` takes precedence.
            known: Vocabulary of an earlier model, or None. Its tokens keep their ids.

        Returns:
            The fitted column. The final id of each provisional id, (V,). The number of distinct
            tokens that are frequent enough for the vocabulary.
        """
        vocabulary, ids, eligible = fit_vocabulary(
            tokens,
            counts,
            min_count=options.min_count if self.min_count is None else self.min_count,
            max_size=options.max_size,
            known=known,
        )
        return replace(self, vocabulary=vocabulary), ids, eligible

    def to_dict(self) -> dict[str, Any]:
        """Return the column without its vocabulary as JSON values."""
        return {"kind": self.kind, "name": self.name, "min_count": self.min_count}

    @classmethod
    def from_dict(cls, values: Any, tokens: Any) -> TokenCells:
        """Build a fitted column from saved values.

        Args:
            values: Result of `to_dict`.
            tokens: Maps the name of each token column of the table to its tokens.

        Raises:
            ValueError: If the values aren't valid.
            KeyError: If a value is missing.
        """
        name, count = saved_text("name", values["name"]), values["min_count"]
        if name is None:
            raise ValueError("name: expected the name of a column")
        least = None if count is None else saved_integer(f"{name}.min_count", count, 1)
        return cls(name, least, saved_vocabulary(name, tokens[name]))
