"""The base of columns: encoding of one input of an example as numbers.

A column is the sequence of an example (text, symbols, series, or steps of several columns) or its
row features. Each kind is one file in this folder and one entry of `COLUMNS`.

The life of a column:

1. `column_from_config` builds it unfitted.
2. `encoder()` returns an encoder that turns cells into provisional numbers while files are read.
   For an unfitted column it assigns a new id to each new token.
3. `fit` decides on the training split (the vocabulary, the scale of numbers), and returns a fitted
   column and the stores with their final numbers.
4. Later `encoder()` and `finish` encode other rows in the same way.
5. `to_dict`, `vocabulary_dict` and `from_dict` save it with the model.

N steps of all sequences of a store or chunk, K numbers of a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from seqtrain.sequences.store import Array, SequenceStore
from seqtrain.sequences.vocabulary import BUCKETS, Vocabulary, WordGrams

Parts: TypeAlias = dict[str, SequenceStore]
"""Stores by name: train, the other splits, and files of pretraining.data."""


class CellEncoder(ABC):
    """Encoder of the cells of one column, in the order in which rows are read."""

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Any]:
        """Return the cells. An empty cell replaces each cell that can't be encoded.

        The base class accepts all cells.

        Args:
            cells: One cell for each row.
            problems: Maps the index of each row that can't be used to the reason. The method adds
                an entry for each cell that it refuses.
        """
        return list(cells)

    @abstractmethod
    def encode(self, cells: Sequence[Any]) -> tuple[Array, list[int]]:
        """Return the provisional numbers of cells that `check` returned.

        Returns:
            The numbers of all steps, cell after cell: (N,) int32 ids, or (N, K) float32. Then the
            number of steps of each cell.
        """

    @abstractmethod
    def blank(self) -> Array:
        """Return the step that replaces an empty sequence, of shape (1,) or (1, K)."""

    def arrays(self, values: Array) -> dict[str, Array]:
        """Return the arrays of a `SequenceStore` that hold the results of `encode`.

        Args:
            values: Provisional numbers, as `encode` returns them.

        Returns:
            A dict that maps the name of an attribute of the store, such as "values", to its array.
        """
        return {"values": values}


@dataclass(frozen=True)
class FitOptions:
    """Settings of `Column.fit`.

    Attributes:
        min_count: Smallest number of occurrences of a token in the vocabulary.
        max_size: Largest size of a vocabulary, including <pad> and <unk>.
        extend: Function that is called with the chosen vocabulary and returns words to add. Their
            ids follow the ids of the vocabulary. The attribute is None if no words are added.
        bins: Largest number of bins of each number column of a table, or None for no bins.
    """

    min_count: int
    max_size: int
    extend: Callable[[Vocabulary], list[str]] | None = None
    bins: int | None = None


class Column(ABC):
    """Encoding of one input of an example as numbers. Immutable: `fit` returns a new column.

    Attributes:
        kind: Name of the kind of column, a value of data.kind.
        vocabulary: Vocabulary if steps are token ids, else None.
        tokenizer_name: Name of the tokenizer of texts, else None.
        standardize: ``"train"`` for numbers standardized by the training split. With ``"series"``
            and ``"both"`` the model also standardizes the numbers of each sequence by itself.
        subword_rows: Number of rows of the embedding table of subwords.
    """

    kind: ClassVar[str]
    vocabulary: Vocabulary | None = None
    tokenizer_name: str | None = None
    standardize: str = "train"
    subword_rows: int = BUCKETS

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Size of the vocabulary if a step is a single id, else the number K of values per step."""

    @property
    def channels(self) -> int:
        """Number of measured values per step; 0 if steps are ids.

        Values that encoding adds don't count, such as marks of missing numbers.
        """
        return 0

    @property
    def has_indicators(self) -> bool:
        """True if a step also has an indicator for each number: 1 if the number is missing."""
        return False

    @property
    def carries(self) -> bool:
        """True if a missing number is replaced by the last one that was seen in its sequence.

        If True, a step also has the time since each number was seen, after the indicators.
        """
        return False

    @property
    def words(self) -> WordGrams | None:
        """Character n-grams of the words of the vocabulary, or None without subwords."""
        return None

    @abstractmethod
    def encoder(self) -> CellEncoder:
        """Return an encoder of cells. If the column isn't fitted, its ids are provisional."""

    @abstractmethod
    def fit(
        self, encoder: Any, parts: Parts, options: FitOptions, known: Any = None
    ) -> tuple[Any, Parts, int]:
        """Fit the column on the training split, and give all stores their final numbers.

        Args:
            encoder: Encoder that was used for all stores.
            parts: Stores by name. They have the provisional numbers that `encoder` returned. The
                column is fitted on ``parts["train"]``. Arrays of the stores may be changed in
                place.
            options: Limits of vocabularies.
            known: Column of an earlier model, or None. The result keeps its ids and scales, and
                adds new tokens to its vocabularies.

        Returns:
            A tuple of three values:

            - The fitted column.
            - The stores with final numbers, by name.
            - The number of distinct tokens that are frequent enough for a vocabulary. It counts
              tokens for which the vocabulary has no room.

        Raises:
            DataError: If the column of the earlier model doesn't fit the data.
        """

    @abstractmethod
    def finish(self, store: SequenceStore, encoder: Any) -> SequenceStore:
        """Return the store with final numbers. The column must be fitted.

        Args:
            store: Store with the provisional numbers that `encoder` returned.
            encoder: An encoder of this column.
        """

    def settings(self) -> dict[str, Any]:
        """Return the config settings that fix the meaning of the encoded numbers.

        The result maps keys of the config's section data, such as "missing", to their values.
        """
        return {}

    def pieces(self, cell: Any) -> list[str] | None:
        """Return the steps of a cell as texts for people, or None if steps are numbers."""
        return None

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return mean and standard deviation of each number of a step in train.

        The result maps the name of each number, for messages, to the pair (mean, std). It is empty
        if steps are ids.
        """
        return {}

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the fitted column without its vocabularies as JSON values, with its `kind`."""

    def vocabulary_dict(self) -> dict[str, Any]:
        """Return the vocabularies as JSON values, or {} if the column has none.

        The result maps a name to a list of tokens in the order of their ids. For a table it maps
        the name to a dict with such a list for each token column.
        """
        return {}

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Any, tokens: Any) -> Column:
        """Build a fitted column from saved values.

        The values may come from anyone. Invalid ones are refused here, so that encoding rows
        doesn't fail later.

        Args:
            values: Result of `to_dict`.
            tokens: Result of `vocabulary_dict`.

        Raises:
            ValueError: If values contradict each other or are out of range.
            KeyError: If a value is missing.
            TypeError: If a value has the wrong type.
        """
