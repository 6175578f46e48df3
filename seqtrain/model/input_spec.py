"""Facts about inputs and classes that determine the shapes of a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqtrain.data.columns.column_table import ColumnTable
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import Ints
from seqtrain.data.vocabulary import BUCKETS, WordGrams
from seqtrain.model.standardization import SeriesStandardization


@dataclass(frozen=True)
class KernelSizes:
    """Shapes of a bank of kernels.

    Attributes:
        channels: number of channels of a series.
        indicators: True if as many more columns mark missing values.
        lengths: time steps of the shortest, the median and the longest sequence of train.
    """

    channels: int
    indicators: bool
    lengths: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class InputSpec:
    """Facts that a network takes from the preprocessing.

    Attributes:
        input_size: number of ids of the vocabulary if steps are tokens, or of columns of a step.
        num_classes: number of classes.
        features: True if time steps are vectors of numbers, False if they are token ids.
        words: character n-grams of the words of the vocabulary, or None without subwords.
        ngrams: n-grams of tokens in train, or None without model.ngrams.
        series: standardization of each series by itself, or None.
        kernels: shapes of the bank of kernels, or None without model.kernels.
        steps: columns of a time step in a step table, or None for other data.
        static: columns of row features, or None if there are none.
        subword_rows: rows of the table of subwords.
    """

    input_size: int
    num_classes: int
    features: bool = False
    words: WordGrams | None = None
    ngrams: NgramVocabulary | None = None
    series: SeriesStandardization | None = None
    kernels: KernelSizes | None = None
    steps: ColumnTable | None = None
    static: ColumnTable | None = None
    subword_rows: int = BUCKETS

    @classmethod
    def of(cls, preprocessing: Preprocessing, lengths: Ints | None = None) -> InputSpec:
        """Return the facts about inputs and classes for a fitted preprocessing.

        Args:
            preprocessing: the fitted preprocessing.
            lengths: time steps of each training sequence, or None without model.kernels. The
                shortest, the median and the longest of them are used.
        """
        series, kernels, column = None, None, preprocessing.sequence
        if column.standardize != "train":
            series = SeriesStandardization(
                column.channels,
                both=column.standardize == "both",
                indicators=column.has_indicators,
                ids=preprocessing.token_columns,
            )
        if lengths is not None:
            # Numbers that were carried forward count as any others.
            indicators = column.has_indicators and not column.carries
            found = int(np.min(lengths)), int(np.median(lengths)), int(np.max(lengths))
            kernels = KernelSizes(column.channels, indicators, found)
        return cls(
            input_size=preprocessing.input_size,
            num_classes=len(preprocessing.labels),
            features=preprocessing.kind == "features",
            words=column.words,
            ngrams=preprocessing.ngrams,
            series=series,
            kernels=kernels,
            steps=preprocessing.steps,
            static=preprocessing.row_features,
            subword_rows=column.subword_rows,
        )
