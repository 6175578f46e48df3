"""Fitting of the preprocessing on train: classes, columns, n-grams, and initial word vectors.

While files are read, tokens and labels get temporary numbers. Fitting replaces these by final
ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from seqtrain.config.schema import Config
from seqtrain.errors import DataError
from seqtrain.sequences.columns.tokens import Parts, TokenSequence, VocabularyLimits
from seqtrain.sequences.encoder import Encoder
from seqtrain.sequences.labels import LabelReader, LabelSet
from seqtrain.sequences.ngram_vocabulary import (
    NgramVocabulary,
    fit_ngrams,
    gram_columns,
    with_spelling,
    words_of_steps,
)
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore, counts_of
from seqtrain.sequences.vocabulary import SPECIAL, UNK, Vocabulary
from seqtrain.sequences.word_vectors import WordVectors, read_vectors
from seqtrain.text import listed, quote


def fit_preprocessing(
    config: Config,
    known: Preprocessing | None,
    rules: Preprocessing,
    encoder: Encoder,
    labels: LabelReader,
    parts: Parts,
) -> tuple[Preprocessing, Parts, WordVectors | None]:
    """Fit a preprocessing as a config says.

    Args:
        config: The config.
        known: Preprocessing of an earlier model, or None. The result keeps its ids, classes and
            scales.
        rules: The unfitted preprocessing.
        encoder: The encoder of `rules` that encoded the parts.
        labels: Reader of the labels of train.
        parts: Stores with temporary numbers and labels, by name. The preprocessing is fitted on
            "train".

    Returns:
        The fitted preprocessing. The stores with final numbers and labels, by name. The
        initial word vectors, or None without model.vectors.

    Raises:
        DataError: If train has fewer than two classes or no rows, or doesn't fit the earlier model.
    """
    rules, parts = _fit_labels(known, rules, labels, parts)
    vectors = []
    data = config.data
    limits = VocabularyLimits(data.min_count, data.max_vocab_size, data.number_bins)
    if rules.row_features is not None and encoder.static is not None:
        row_features, parts = rules.row_features.fit(
            encoder.static, parts, limits, None if known is None else known.row_features
        )
        rules = replace(rules, row_features=row_features)

    def read_more_words(vocabulary: Vocabulary) -> list[str]:
        assert isinstance(rules.sequence, TokenSequence)
        assert config.model.vectors is not None
        found, words = read_vectors(
            config.model.vectors,
            vocabulary,
            keep=config.model.vectors_keep,
            is_token=rules.sequence.is_token,
        )
        vectors.append(found)
        return words

    if config.model.vectors is not None:
        limits = replace(limits, extend=read_more_words)
    old: Any = None if known is None else known.sequence
    column, parts = rules.sequence.fit(encoder.sequence, parts, limits, old)
    rules = replace(rules, sequence=column)
    train = parts["train"]
    rules = replace(rules, ngrams=_fit_ngrams(config, rules, train))
    initial = _with_coverage(vectors[0], rules, train) if vectors else None
    return rules, parts, initial


def _fit_labels(
    known: Preprocessing | None, rules: Preprocessing, found: LabelReader, parts: Parts
) -> tuple[Preprocessing, Parts]:
    """Collect the classes of train, and replace the codes of labels in all parts.

    Args:
        known: Preprocessing of an earlier model, or None. Its classes keep their indices.
        rules: The unfitted preprocessing.
        found: Reader of the labels, with the tuples of labels.
        parts: Stores with codes of labels, by name.

    Returns:
        The preprocessing with its label set, and the stores with encoded labels.
    """
    multi_hot = found.finalize()
    combinations = found.combinations
    used = np.unique(parts["train"].labels)
    if not len(used):
        raise DataError(
            "data.train: no rows are left, for every sequence is empty (data.empty: drop)"
        )
    label_set = LabelSet.fit(
        [combinations[code] for code in used.tolist() if code >= 0],
        multi_label=rules.schema.label_separator is not None or found.are_multi_label,
        separator=rules.schema.label_separator,
        known=None if known is None else known.label_set,
        type=rules.label_set.type,
        multi_hot=multi_hot,
    )
    if len(label_set) < 2:
        classes = ", ".join(map(quote, label_set.classes)) or "none"
        if rules.schema.one_hot is not None:
            raise DataError(
                f"data.label: of the columns {listed(list(map(str, rules.schema.one_hot)), 8)}, "
                f"these mark rows of train: {classes}; expected at least two; if the 1 and 0 of "
                "one column are the classes, name this column only"
            )
        raise DataError(f"data.label: found one class in train ({classes}); expected at least two")
    encoded = label_set.encode([*combinations, None])  # the last row is of rows without labels
    return replace(rules, label_set=label_set), {
        name: replace(part, labels=encoded[part.labels]) for name, part in parts.items()
    }


def _with_coverage(vectors: WordVectors, rules: Preprocessing, train: SequenceStore) -> WordVectors:
    """Return word vectors with a complete `coverage`: this function adds the counts in train.

    Args:
        vectors: The vectors as read from their file.
        rules: The fitted preprocessing, which has the vocabulary.
        train: The training split with final ids, for the counts of tokens.
    """
    assert rules.vocabulary is not None
    more = vectors.coverage.more
    size = len(rules.vocabulary)
    own = vectors.rows[(vectors.rows < size - more) & (vectors.rows != UNK)]
    counts = counts_of(train.values, size)
    coverage = replace(
        vectors.coverage,
        tokens=size - more - len(SPECIAL),
        found=len(own),
        share=float(counts[vectors.rows].sum() / max(1, len(train.values))),
    )
    return replace(vectors, coverage=coverage)


def _fit_ngrams(
    config: Config, rules: Preprocessing, train: SequenceStore
) -> NgramVocabulary | None:
    """Return the n-grams of train, or None without model.ngrams.

    Args:
        config: The config.
        rules: The preprocessing with fitted columns.
        train: The training split with final ids.
    """
    model = config.model
    sizes = config.model.ngrams
    if sizes is None:
        return None
    columns = gram_columns(sizes, rules.token_names)
    ngrams = fit_ngrams(train.values, train.offsets, *columns, most=model.max_ngrams)
    known = rules.sequence.words
    if known is None or not model.ngrams_spelling:
        return ngrams
    ids, words = words_of_steps(train.values, train.spellings, known, train.words)
    return with_spelling(ngrams, ids, train.offsets, words)
