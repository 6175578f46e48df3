"""What is fitted on train: classes, vocabularies, n-grams and scales; all rows then have them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import Config
from seqtrain.data.column_coding import fit_columns
from seqtrain.data.encoding import Encoder
from seqtrain.data.labels import LabelSet, ProvisionalLabels
from seqtrain.data.ngram_vocabulary import (
    ONLY,
    GramColumn,
    NgramVocabulary,
    fit_ngrams,
    with_spelling,
)
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.store import (
    SequenceStore,
    blocks,
    concatenate,
    counts_of,
)
from seqtrain.data.vocabulary import (
    MOST_SPELLINGS,
    SPECIAL,
    UNK,
    Vocabulary,
    fit_vocabulary,
    word_grams,
)
from seqtrain.data.word_vectors import WordVectors, read_vectors

ONLY_SCORED = ("validation", "test")
Parts: TypeAlias = dict[str, SequenceStore]
"""Stores by name: train, and what else was read."""


def fit(
    config: Config,
    known: Preprocessing | None,
    rules: Preprocessing,
    encoder: Encoder,
    parts: Parts,
) -> tuple[Parts, Preprocessing, int, WordVectors | None]:
    """Fit the rest of some rules as a config says; `encoder` has encoded the parts.

    Labels, scales and n-grams are fitted on train, vocabularies on unlabelled parts too. What a
    `known` preprocessing has it keeps. Returns the parts as encoded then, all rules, how many
    tokens could be in the vocabulary, and the initial word vectors.
    """
    assert isinstance(encoder.labels, ProvisionalLabels)
    rules, parts = _fit_labels(known, rules, encoder.labels, parts)
    eligible, vectors, train = 0, None, parts["train"]
    columns = ("static", "static", encoder.static), ("cells", "values", encoder.cells)
    for name, attribute, cells in columns:
        if cells is not None:
            given = {key: getattr(part, attribute) for key, part in parts.items()}
            coding, found, more = fit_columns(
                cells,
                given,
                min_count=config.data.min_count,
                max_size=config.data.max_vocab_size,
                known=None if known is None else getattr(known, name),
            )
            for key, array in found.items():
                arrays: dict[str, Any] = {attribute: array}
                parts[key] = replace(parts[key], **arrays)
            fitted: dict[str, Any] = {"steps" if name == "cells" else name: coding}
            if not coding.columns:
                fitted = {"mean": coding.mean, "std": coding.std}
            rules, eligible = replace(rules, **fitted), eligible + more
    if encoder.ids is not None:
        tokens = encoder.ids.index
        vocabulary, ids, own, vectors = _fit_tokens(config, known, rules, tokens, parts)
        eligible += own
        if rules.subwords is not None:
            parts = _spelled(parts, rules.subwords, tokens, ids)
        for block in chain.from_iterable(blocks(part.values) for part in parts.values()):
            block[...] = ids[block]
        rules = replace(rules, vocabulary=vocabulary)
        if known is None and rules.subwords is not None:
            grams = vocabulary.grams(*rules.subwords)
            rules = replace(rules, subword_rows=grams.table_rows())
    elif known is None and config.model.kernels:
        steps = train.lengths
        sizes = int(steps.min()), int(np.median(steps)), int(steps.max())
        rules = replace(rules, kernels=sizes)
    rules = replace(rules, ngrams=_fit_ngrams(config, known, rules, parts["train"]))
    return parts, rules, eligible, vectors


def _fit_labels(
    known: Preprocessing | None, rules: Preprocessing, found: ProvisionalLabels, parts: Parts
) -> tuple[Preprocessing, Parts]:
    """Fit the classes on train, and replace the provisional labels of all parts."""
    combinations = [*found.combinations]
    counts = counts_of(parts["train"].labels, len(combinations))
    label_set = LabelSet.fit(
        [combinations[i] for i in np.flatnonzero(counts)],
        multi_label=rules.reading.label_separator is not None or found.are_multi_label,
        separator=rules.reading.label_separator,
        known=None if known is None else known.label_set,
    )
    reading = replace(rules.reading, label_separator=label_set.separator)
    encoded = label_set.encode([*combinations, None])  # the last row is of rows without labels
    return replace(rules, label_set=label_set, reading=reading), {
        name: replace(part, labels=concatenate(encoded[x] for x in blocks(part.labels)))
        for name, part in parts.items()
    }


def _fit_tokens(
    config: Config,
    known: Preprocessing | None,
    rules: Preprocessing,
    tokens: Mapping[str, int],
    parts: Parts,
) -> tuple[Vocabulary, npt.NDArray[np.int32], int, WordVectors | None]:
    counts = {name: counts_of(part.values, len(tokens)) for name, part in parts.items()}
    model = config.model
    vocabulary, ids, eligible = fit_vocabulary(
        [*tokens],
        np.sum([n for name, n in counts.items() if name not in ONLY_SCORED], axis=0),
        min_count=config.data.min_count,
        max_size=config.data.max_vocab_size,
        known=None if known is None else known.vocabulary,
    )
    if model.vectors is None:
        return vocabulary, ids, eligible, None
    vectors, more = read_vectors(
        model.vectors,
        vocabulary,
        keep=model.vectors_keep,
        is_token=lambda word: rules.kind == "tokens" or rules.tokens(word) == [word],
    )
    for new, word in enumerate(more, start=len(vocabulary)):
        if word in tokens:
            ids[tokens[word]] = new
    own = vectors.rows[(vectors.rows < len(vocabulary)) & (vectors.rows != UNK)]
    steps = counts["train"]
    coverage = replace(
        vectors.coverage,
        tokens=len(vocabulary) - len(SPECIAL),
        found=len(own),
        share=float(steps[np.isin(ids, vectors.rows)].sum() / max(1, steps.sum())),
    )
    grown = Vocabulary((*vocabulary.tokens, *more))
    return grown, ids, eligible, replace(vectors, coverage=coverage)


def _fit_ngrams(
    config: Config, known: Preprocessing | None, rules: Preprocessing, train: SequenceStore
) -> NgramVocabulary | None:
    """Choose the n-grams of train; those of an older one go on to read what is new as <unk>."""
    model, sizes = config.model, config.model.ngrams
    if known is not None:
        return None if known.ngrams is None else _limited(known.ngrams, known)
    if sizes is None or not len(train):
        return None
    if rules.steps is not None and isinstance(sizes, dict):
        columns = [GramColumn(rules.steps.names.index(x), *own) for x, own in sizes.items()]
    else:
        columns = [GramColumn(ONLY if rules.steps is None else 0, *sizes)]
    ngrams = fit_ngrams(train.values, train.offsets, *columns, most=model.max_ngrams)
    spelled, words, more = train.spellings, rules.vocabulary, train.words
    if not (model.ngrams_spelling and model.subwords and words and more is not None):
        return ngrams
    own, beyond = words.grams(*model.subwords), np.array(spelled)
    ids = np.where(beyond < 0, train.values, len(own) + beyond.astype(np.int64))
    return with_spelling(ngrams, ids, train.offsets, own.concatenate([own, more]))


def _limited(ngrams: NgramVocabulary, known: Preprocessing) -> NgramVocabulary:
    """Let ids that a preprocessing lacks count as <unk>."""
    vocabularies = [known.vocabulary or ()] if known.steps is None else known.steps.vocabularies
    limits = [len(vocabulary) for vocabulary in vocabularies]
    columns = (x._replace(tokens=x.tokens or limits[x.column]) for x in ngrams.columns)
    return replace(ngrams, columns=tuple(columns))


def _spelled(
    parts: Parts,
    sizes: tuple[int, int],
    tokens: Mapping[str, int],
    ids: npt.NDArray[np.int32],
) -> Parts:
    left_out = np.flatnonzero(ids == UNK)
    left_out = left_out[left_out >= len(SPECIAL)][:MOST_SPELLINGS]
    names = [*tokens]
    words = word_grams((names[i] for i in left_out), *sizes)
    number = np.full(len(ids), -1, dtype=np.int32)
    number[left_out] = np.arange(len(left_out))
    return {
        name: replace(
            part, spellings=concatenate(map(number.__getitem__, blocks(part.values))), words=words
        )
        for name, part in parts.items()
    }
