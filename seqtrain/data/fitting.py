"""Fitting the preprocessing: train is encoded with provisional ids, which then become final."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import Config
from seqtrain.data.encoding import Encoder
from seqtrain.data.examples import Features
from seqtrain.data.ngram_vocabulary import NgramVocabulary, fit_ngrams
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.spelling import word_grams
from seqtrain.data.store import UNKNOWN_LABEL, Array, Ints, SequenceStore, blocks, concatenate
from seqtrain.data.vocabulary import (
    MOST_SPELLINGS,
    SPECIAL,
    UNK,
    GrowingIndex,
    Vocabulary,
    fit_vocabulary,
    provisional_index,
)
from seqtrain.data.word_vectors import WordVectors, read_vectors
from seqtrain.errors import DataError

ONLY_SCORED = ("validation", "test")
SMALLEST_STD = float(np.finfo(np.float32).tiny)


def provisional_encoder(rules: Preprocessing) -> Encoder:
    """Return an encoder for train, which numbers tokens and labels as they come."""
    return rules.encoder(provisional_index(), GrowingIndex())


def fit(
    config: Config,
    rules: Preprocessing,
    encoder: Encoder,
    parts: dict[str, SequenceStore],
    known: Preprocessing | None,
) -> tuple[Preprocessing, dict[str, SequenceStore], int, WordVectors | None]:
    """Fit labels and scales on train, the vocabulary on unlabelled parts too.

    Args:
        config: of the run.
        rules: how rows are encoded.
        encoder: that the parts were encoded with.
        parts: train, what was held out of it, and unlabelled ones; their ids become final in place.
        known: of an older train, whose ids of tokens and labels, and scales, stay; or None.

    Returns:
        The preprocessing; the parts; how many distinct tokens occur data.min_count times; vectors.
    """
    names, train = [*encoder.labels], parts["train"]
    old = () if known is None else known.labels
    new = {names[i] for i in np.flatnonzero(_counts(train.labels, len(names)))}.difference(old)
    labels = (*old, *sorted(new))
    class_of = {label: i for i, label in enumerate(labels)}
    classes = np.array([*(class_of.get(x, UNKNOWN_LABEL) for x in names), UNKNOWN_LABEL])
    for part in parts.values():
        _renumber(part.labels, classes)  # the last one, at -1, is of unlabelled rows
    fitted = replace(rules, labels=labels)
    if fitted.kind == "features":
        mean, std = _channel_statistics(train.values) if known is None else _scales(train, known)
        fitted = replace(fitted, mean=mean, std=std)
        scaled = {
            name: replace(part, values=concatenate(map(fitted.scale, blocks(part.values))))
            for name, part in parts.items()
        }
        return fitted, scaled, 0, None
    tokens = encoder.tokens
    counts = {name: _counts(part.values, len(tokens)) for name, part in parts.items()}
    vocabulary, ids, eligible = fit_vocabulary(
        [*tokens],
        np.sum([n for name, n in counts.items() if name not in ONLY_SCORED], axis=0),
        min_count=config.data.min_count,
        max_size=config.data.max_vocab_size,
        known=None if known is None else known.vocabulary,
    )
    vectors = None
    if config.model.vectors is not None:
        vocabulary, vectors = _with_vectors(
            config, rules, tokens, (vocabulary, ids), counts["train"]
        )
    if rules.subwords is not None:
        parts = _spelled(parts, rules.subwords, tokens, ids)
    for part in parts.values():
        _renumber(part.values, ids)
    fitted = replace(fitted, vocabulary=vocabulary)
    ngrams = _fit_ngrams(config, parts["train"]) if known is None else known.ngrams
    if ngrams is not None and known is not None and known.vocabulary is not None:
        ngrams = replace(ngrams, tokens=ngrams.tokens or len(known.vocabulary))
    return replace(fitted, ngrams=ngrams), parts, eligible, vectors


def _renumber(numbers: Array, final: Array) -> None:
    """Replace provisional numbers by final ones, in place."""
    for block in blocks(numbers):
        block[...] = final[block]


def _counts(ids: Array, size: int) -> Ints:
    """Return how often each id from 0 to size - 1 occurs."""
    counts = np.zeros(size, dtype=np.int64)
    for block in blocks(ids):
        counts += np.bincount(block, minlength=size)
    return counts


def _with_vectors(
    config: Config,
    rules: Preprocessing,
    tokens: Mapping[str, int],
    fitted: tuple[Vocabulary, npt.NDArray[np.int32]],
    counts: Ints,
) -> tuple[Vocabulary, WordVectors]:
    """Read the file of vectors, whose other words join the vocabulary; ids change with them."""
    vocabulary, ids = fitted
    vectors, more = read_vectors(
        str(config.model.vectors),
        vocabulary,
        keep=config.model.vectors_keep,
        is_token=lambda word: rules.kind == "tokens" or rules.tokens(word) == [word],
    )
    for new, word in enumerate(more, start=len(vocabulary)):
        if word in tokens:
            ids[tokens[word]] = new
    own = vectors.rows[(vectors.rows < len(vocabulary)) & (vectors.rows != UNK)]
    coverage = replace(
        vectors.coverage,
        tokens=len(vocabulary) - len(SPECIAL),
        found=len(own),
        share=float(counts[np.isin(ids, vectors.rows)].sum() / max(1, counts.sum())),
    )
    grown = Vocabulary((*vocabulary.tokens, *more))
    return grown, replace(vectors, coverage=coverage)


def _spelled(
    parts: dict[str, SequenceStore],
    sizes: tuple[int, int],
    tokens: Mapping[str, int],
    ids: npt.NDArray[np.int32],
) -> dict[str, SequenceStore]:
    """Note beside the steps which of the words that the vocabulary leaves out they are."""
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


def _fit_ngrams(config: Config, train: SequenceStore) -> NgramVocabulary | None:
    """Choose the n-grams of model.ngrams."""
    sizes = config.model.ngrams
    if sizes is None or not len(train):
        return None
    try:
        return fit_ngrams(
            train.values,
            train.offsets,
            shortest=sizes[0],
            longest=sizes[1],
            most=config.model.max_ngrams,
        )
    except ValueError:
        raise DataError(
            f"model.ngrams: no sequence of train has {sizes[0] - 2} tokens, as an n-gram of "
            f"{sizes[0]} needs (both ends count); lower it"
        ) from None


def _scales(train: SequenceStore, known: Preprocessing) -> tuple[tuple[float, ...], ...]:
    """Return the known mean and deviation of each channel, if train has as many."""
    found, expected = train.values.shape[1], len(known.mean)
    if found != expected:
        raise DataError(
            f"data.train: found {found} channels; the model to go on from has {expected}"
        )
    return known.mean, known.std


def _channel_statistics(values: Features) -> tuple[tuple[float, ...], ...]:
    """Mean and standard deviation of each channel's present values; constant channels keep 1."""
    count, total, squares = np.zeros((3, values.shape[1]))
    lowest, highest = np.full_like(total, np.inf), np.full_like(total, -np.inf)
    for channel, present in _present(values):
        count[channel] += len(present)
        total[channel] += present.sum(dtype=np.float64)
        lowest[channel] = min(lowest[channel], present.min(initial=np.inf))
        highest[channel] = max(highest[channel], present.max(initial=-np.inf))
    mean = total / np.maximum(count, 1)
    for channel, present in _present(values):
        away = np.subtract(present, mean[channel], dtype=np.float64)
        squares[channel] += np.square(away).sum()
    std = np.maximum(np.sqrt(squares / np.maximum(count, 1)), SMALLEST_STD)
    return tuple(mean.tolist()), tuple(np.where(lowest < highest, std, 1.0).tolist())


def _present(values: Features) -> Iterator[tuple[int, Features]]:
    """Yield each channel's present values, in parts."""
    for block in blocks(values):
        for channel, column in enumerate(block.T):
            yield channel, column[~np.isnan(column)]
