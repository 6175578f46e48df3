"""Specification of a network's inputs and classes, which determines the shapes of its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqtrain.model.standardization import SeriesStandardization
from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.vocabulary import BUCKETS, WordGrams
from seqtrain.tables.blocks import Ints


@dataclass(frozen=True)
class KernelSizes:
    """Numbers of channels and steps that determine the shapes of a bank of kernels.

    Attributes:
        channels: number of channels of a series.
        indicators: True if each channel has an indicator, which is 1 where a value is missing and
            must be left out. False if missing values are carried forward.
        lengths: number of time steps of train's shortest, median and longest sequence.
    """

    channels: int
    indicators: bool
    lengths: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class InputSpec:
    """Facts about inputs and classes from which the modules of a network are built.

    Attributes:
        input_size: size of the vocabulary if a step is a token id, else number of values per step.
        num_classes: number of classes.
        features: True if data.kind is features: time steps are vectors of numbers.
        words: character n-grams of the words of the vocabulary, or None without subwords.
        ngrams: n-grams of tokens in train, or None without model.ngrams.
        series: standardization of each series by itself if data.standardize is "series" or "both",
            else None.
        kernels: sizes for the bank of kernels, or None without model.kernels.
        steps: columns of a time step, or None without data.steps.
        static: columns of row features, or None without data.static.
        vectors: number of layers in the vector of a text, and of numbers of each layer, or None
            without model.pretrained.
        subword_rows: number of rows of the table of subwords.
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
    vectors: tuple[int, int] | None = None
    subword_rows: int = BUCKETS

    @classmethod
    def of(cls, preprocessing: Preprocessing, lengths: Ints | None = None) -> InputSpec:
        """Return the specification for data that a fitted preprocessing encodes.

        Args:
            preprocessing: the fitted preprocessing.
            lengths: number of time steps of each training sequence, from which minimum, median and
                maximum are used. If it is None, `kernels` is None.
        """
        series, kernels, column = None, None, preprocessing.sequence
        vectors, encoder = None, preprocessing.pretrained
        if encoder is not None:
            vectors = encoder.layers, encoder.state_size
        if column.standardize != "train":
            series = SeriesStandardization(
                column.channels,
                both=column.standardize == "both",
                indicators=column.has_indicators,
                ids=len(column.tokens),
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
            vectors=vectors,
            subword_rows=column.subword_rows,
        )
