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

from seqtrain.data.store import Array, SequenceStore
from seqtrain.data.vocabulary import BUCKETS, Vocabulary, WordGrams

Parts: TypeAlias = dict[str, SequenceStore]
"""Stores by name: train, the other splits, and files of pretraining.data."""


class CellEncoder(ABC):
    """Encoder of the cells of one column, in the order in which rows are read."""

    def check(self, cells: Sequence[Any], problems: dict[int, str]) -> list[Any]:
        """Return the cells, and an empty cell for each one that can't be encoded.

        Args:
            cells: One cell for each row.
            problems: Reasons by row number. The method adds a reason for each cell that it refuses.
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
        """Return the one step as which an empty sequence is read: (1,) or (1, K)."""

    def arrays(self, values: Array) -> dict[str, Array]:
        """Return the arrays of a store that hold these provisional numbers, by their names."""
        return {"values": values}


@dataclass(frozen=True)
class FitOptions:
    """Settings of `Column.fit`.

    Attributes:
        min_count: Smallest number of occurrences of a token in the vocabulary.
        max_size: Largest size of a vocabulary, including <pad> and <unk>.
        extend: Function that returns more words for a vocabulary, or None. Their ids follow.
        bins: Largest number of bins of a number of a table, or None for none.
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
        standardize: ``"series"`` or ``"both"`` if the model also standardizes the numbers of each
            sequence by itself, else ``"train"``.
        subword_rows: Rows of the table of subwords.
    """

    kind: ClassVar[str]
    vocabulary: Vocabulary | None = None
    tokenizer_name: str | None = None
    standardize: str = "train"
    subword_rows: int = BUCKETS

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Size of the vocabulary if steps are ids, else the numbers K of a step."""

    @property
    def channels(self) -> int:
        """Numbers of a step that are neither ids nor indicators of missing numbers."""
        return 0

    @property
    def has_indicators(self) -> bool:
        """True if indicators of missing numbers follow the numbers."""
        return False

    @property
    def carries(self) -> bool:
        """True if missing numbers have the last value seen in their sequence.

        The time since then follows the indicators.
        """
        return False

    @property
    def words(self) -> WordGrams | None:
        """Character n-grams of the words of the vocabulary, or None without subwords."""
        return None

    @abstractmethod
    def encoder(self) -> CellEncoder:
        """Return an encoder of cells."""

    @abstractmethod
    def fit(
        self, encoder: Any, parts: Parts, options: FitOptions, known: Any = None
    ) -> tuple[Any, Parts, int]:
        """Fit the column on the training split.

        Args:
            encoder: Encoder that encoded all parts.
            parts: Stores with provisional numbers; ``parts["train"]`` decides.
            options: Limits of vocabularies.
            known: The column of an earlier model, or None. It keeps its ids and scales;
                vocabularies grow.

        Returns:
            The fitted column, the stores with final numbers, and how many distinct tokens could be
            in the vocabularies.
        """

    @abstractmethod
    def finish(self, store: SequenceStore, encoder: Any) -> SequenceStore:
        """Return a store with final numbers, of rows that an encoder of a fitted column encoded."""

    def settings(self) -> dict[str, Any]:
        """Return the keys of the data section that fix the meaning of the encoded numbers."""
        return {}

    def pieces(self, cell: Any) -> list[str] | None:
        """Return the steps of a cell as texts for people, or None if they are bare numbers."""
        return None

    def scales(self) -> dict[str, tuple[float, float]]:
        """Return mean and standard deviation in train of each number, by its name for people."""
        return {}

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the fitted column without its vocabularies as JSON values, with its `kind`."""

    def vocabulary_dict(self) -> dict[str, Any]:
        """Return the tokens of each vocabulary in the order of their ids, as a model saves them."""
        return {}

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Any, tokens: Any) -> Column:
        """Build a column from `to_dict`'s and `vocabulary_dict`'s values.

        The values may come from anyone: a column that it returns encodes rows without errors.

        Raises:
            ValueError: If no fit returns such a column.
            KeyError: If a value is missing.
            TypeError: If a value has the wrong type.
        """
