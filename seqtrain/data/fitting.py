"""Fitting the preprocessing: train is read once with provisional ids, then these are settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import DataConfig
from seqtrain.data.encoding import EncodingReport, LengthPolicy
from seqtrain.data.examples import Example
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.store import Ints, SequenceStore
from seqtrain.data.vocabulary import GrowingIndex, fit_vocabulary, provisional_index


class Fitting:
    """Reads the train file, then fits vocabulary, labels and scales on a part of its rows.

    Args:
        data: the config's section.
        reading: how train's rows are read.
        bpe_model: the trained merges, for tokenizer bpe.
    """

    def __init__(self, data: DataConfig, reading: ReadOptions, bpe_model: str | None) -> None:
        self._data = data
        self._tokens = provisional_index()
        self._labels = GrowingIndex()
        self._rules = Preprocessing(
            reading=reading,
            tokenizer=data.tokenizer,
            lowercase=data.lowercase,
            bpe_model=bpe_model,
            lengths=LengthPolicy(data.max_length, data.overlong, data.empty),
            missing=data.missing,
        )

    def read(
        self, examples: Iterable[Example], source: str
    ) -> tuple[SequenceStore, EncodingReport]:
        """Encode the rows of the train file with provisional ids of tokens and labels."""
        return self._rules.encoder(self._tokens, self._labels).encode(examples, source)

    def fit(self, read: SequenceStore, rows: Ints) -> tuple[Preprocessing, SequenceStore]:
        """Settle everything on some rows, the training part.

        Args:
            read: what `read` returned.
            rows: the rows to fit on.

        Returns:
            The fitted preprocessing, and all rows with their final ids and class indices.
        """
        train = read if len(rows) == len(read) else read.__getitems__(rows)
        names = list(self._labels)
        labels = tuple(sorted(names[i] for i in np.unique(train.labels)))
        class_of = {label: i for i, label in enumerate(labels)}
        classes = np.array([class_of.get(name, -1) for name in names], dtype=np.int64)
        fitted = replace(self._rules, labels=labels)
        values: npt.NDArray[Any]
        if fitted.kind == "features":
            mean, std = _channel_statistics(train.values)
            fitted = replace(fitted, mean=mean, std=std)
            values = fitted.scale(read.values)
        else:
            vocabulary, final_ids = fit_vocabulary(
                list(self._tokens),
                np.bincount(train.values, minlength=len(self._tokens)),
                min_count=self._data.min_count,
                max_size=self._data.max_vocab_size,
            )
            fitted = replace(fitted, vocabulary=vocabulary)
            values = final_ids[read.values]
        return fitted, replace(read, values=values, labels=classes[read.labels])


def _channel_statistics(
    values: npt.NDArray[np.float32],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over present values; constant channels keep 1."""
    present = ~np.isnan(values)
    count = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, values, 0).sum(axis=0, dtype=np.float64) / count
    deviation = np.where(present, values - mean, 0)
    std = np.sqrt(np.square(deviation).sum(axis=0) / count)
    std = np.where(std > 1e-12, std, 1.0)
    return tuple(np.float32(mean).tolist()), tuple(np.float32(std).tolist())
