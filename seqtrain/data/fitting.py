"""Fitting the preprocessing: train is read once with provisional ids, then these are settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.config.schema import DataConfig
from seqtrain.data.encoding import EncodingReport, LengthPolicy
from seqtrain.data.examples import Features
from seqtrain.data.growing import blocks, joined
from seqtrain.data.pieces import Files, Piece, PieceReader, joined_pieces, numbers_in, read_pieces
from seqtrain.data.preprocessing import Preprocessing
from seqtrain.data.readers import ReadOptions
from seqtrain.data.spelling import word_grams
from seqtrain.data.store import UNKNOWN_LABEL, SequenceStore
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


@dataclass(frozen=True)
class Fitted:
    """What was settled on the training part.

    Attributes:
        preprocessing: fitted.
        parts: what was read, with final ids and class indices.
        eligible_tokens: distinct tokens that occur data.min_count times, those that
            data.max_vocab_size left out included; 0 for features.
        vectors: of a file, where there is one.
    """

    preprocessing: Preprocessing
    parts: dict[str, SequenceStore]
    eligible_tokens: int
    vectors: WordVectors | None = None


class Fitting:
    """Reads the train files and unlabelled ones, then fits vocabulary, labels and scales.

    Args:
        data: the config's section.
        reading: how train's rows are read.
        bpe_model: the trained merges, for tokenizer bpe.
        subwords: characters of n-grams of words, at least and at most, where spelling counts.
        known: of an older train, whose ids of tokens and labels, and scales, stay; or None.
        vectors: path of a file of word vectors, or None, and how many words that train lacks are
            kept of it.
    """

    def __init__(
        self,
        data: DataConfig,
        reading: ReadOptions,
        bpe_model: str | None,
        subwords: tuple[int, int] | None = None,
        known: Preprocessing | None = None,
        vectors: tuple[str | None, int] = (None, 0),
    ) -> None:
        self._data = data
        self._vectors = vectors
        self._known = known
        self._tokens = provisional_index()
        self._labels = GrowingIndex()
        self._groups = GrowingIndex()
        self._rules = Preprocessing(
            reading=reading,
            tokenizer=data.tokenizer,
            lowercase=data.lowercase,
            bpe_model=bpe_model,
            lengths=LengthPolicy(data.max_length, data.overlong, data.empty),
            missing=data.missing,
            standardize=data.standardize,
            subwords=subwords,
        )

    def read(self, files: Files, *, labelled: bool = True) -> tuple[SequenceStore, EncodingReport]:
        """Encode the rows of files, one after another, with provisional ids of tokens and labels.

        Args:
            files: at least one.
            labelled: every row must have its label; else labels and groups are left out.

        Raises:
            DataError: rows that can't be used, by line.
        """
        reader = PieceReader(self._rules, labelled=labelled)
        pieces = read_pieces(reader, files)
        return joined_pieces((self._numbered(piece), piece.report) for piece in pieces)

    def _numbered(self, piece: Piece) -> SequenceStore:
        """Give a file's tokens, labels and groups the ids that they have in all files together."""
        store = piece.store
        if self._data.kind != "features":
            ids = numbers_in(piece.tokens, self._tokens).astype(np.int32)
            if not _counts_up(ids):
                store = replace(store, values=joined(map(ids.__getitem__, blocks(store.values))))
        labels = np.append(numbers_in(piece.labels, self._labels), UNKNOWN_LABEL)
        if not _counts_up(labels[:-1]):
            store = replace(store, labels=joined(map(labels.__getitem__, blocks(store.labels))))
        if store.groups is not None:
            groups = np.append(numbers_in(piece.groups, self._groups), -1)
            store = replace(store, groups=groups[store.groups])
        return store

    def fit(self, parts: dict[str, SequenceStore]) -> Fitted:
        """Settle labels and scales on the training part, the vocabulary on unlabelled ones too.

        Args:
            parts: train, what was held out of it, and unlabelled ones, of what `read` returned.
        """
        train = parts["train"]
        names = list(self._labels)
        old = () if self._known is None else self._known.labels
        new = {names[i] for i in np.flatnonzero(_counts(train.labels, len(names)))}.difference(old)
        labels = (*old, *sorted(new))
        class_of = {label: i for i, label in enumerate(labels)}
        known = [class_of.get(name, UNKNOWN_LABEL) for name in names]
        classes = np.array([*known, UNKNOWN_LABEL])  # the last one, at -1, is of unlabelled rows
        fitted = replace(self._rules, labels=labels)
        eligible, vectors = 0, None
        settle: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
        if fitted.kind == "features":
            mean, std = self._scales(train)
            fitted = replace(fitted, mean=mean, std=std)
            settle = fitted.scale
        else:
            learned_from = [part for name, part in parts.items() if name not in ONLY_SCORED]
            counts = [_counts(part.values, len(self._tokens)) for part in learned_from]
            vocabulary, final_ids, eligible = fit_vocabulary(
                list(self._tokens),
                np.sum(counts, axis=0),
                min_count=self._data.min_count,
                max_size=self._data.max_vocab_size,
                known=None if self._known is None else self._known.vocabulary,
            )
            path, keep = self._vectors
            if path is not None:
                vocabulary, vectors = self._with_vectors(
                    path, keep, vocabulary, final_ids, counts[0]
                )
            fitted = replace(fitted, vocabulary=vocabulary)
            settle = final_ids.__getitem__
            parts = self._spelled(parts, final_ids)
        settled = {
            name: replace(
                part,
                values=joined(map(settle, blocks(part.values))),
                labels=joined(map(classes.__getitem__, blocks(part.labels))),
            )
            for name, part in parts.items()
        }
        return Fitted(fitted, settled, eligible, vectors)

    def _with_vectors(
        self,
        path: str,
        keep: int,
        vocabulary: Vocabulary,
        final_ids: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int64],
    ) -> tuple[Vocabulary, WordVectors]:
        """Read the file of vectors, whose other words join the vocabulary.

        Args:
            path: the file.
            keep: how many other words.
            vocabulary: of train.
            final_ids: by provisional id; changed where a token of train joins again.
            counts: occurrences in train by provisional id.
        """
        symbols = self._rules.kind == "tokens"
        vectors, more = read_vectors(
            path,
            vocabulary,
            keep=keep,
            is_token=lambda word: symbols or self._rules.tokens(word) == [word],
        )
        for new, word in enumerate(more, start=len(vocabulary)):
            if word in self._tokens:
                final_ids[self._tokens[word]] = new
        has_vector = np.isin(final_ids, vectors.rows)
        own = vectors.rows[(vectors.rows < len(vocabulary)) & (vectors.rows != UNK)]
        coverage = replace(
            vectors.coverage,
            tokens=len(vocabulary) - len(SPECIAL),
            found=len(own),
            share=float(counts[has_vector].sum() / max(1, counts.sum())),
        )
        grown = Vocabulary((*vocabulary.tokens, *more))
        return grown, replace(vectors, coverage=coverage)

    def _scales(self, train: SequenceStore) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and deviation of each channel: known ones, or train's."""
        if self._known is None:
            return _channel_statistics(train.values)
        found, expected = train.values.shape[1], len(self._known.mean)
        if found != expected:
            raise DataError(
                f"data.train: found {found} channels; the model to go on from has {expected}"
            )
        return self._known.mean, self._known.std

    def _spelled(
        self, parts: dict[str, SequenceStore], final_ids: npt.NDArray[np.int32]
    ) -> dict[str, SequenceStore]:
        """Note beside the steps which of the words that the vocabulary leaves out they are."""
        sizes = self._rules.subwords
        if sizes is None:
            return parts
        left_out = np.flatnonzero(final_ids == UNK)
        left_out = left_out[left_out >= len(SPECIAL)][:MOST_SPELLINGS]
        names = list(self._tokens)
        words = word_grams((names[i] for i in left_out), *sizes)
        number = np.full(len(final_ids), -1, dtype=np.int32)
        number[left_out] = np.arange(len(left_out))
        return {
            name: replace(
                part, spellings=joined(map(number.__getitem__, blocks(part.values))), words=words
            )
            for name, part in parts.items()
        }


def _counts_up(numbers: npt.NDArray[Any]) -> bool:
    """Whether each number is its place, so that it can stay."""
    return bool((numbers == np.arange(len(numbers))).all())


def _counts(ids: npt.NDArray[Any], size: int) -> npt.NDArray[np.int64]:
    """Return how often each id from 0 to size - 1 occurs."""
    counts = np.zeros(size, dtype=np.int64)
    for block in blocks(ids):
        counts += np.bincount(block, minlength=size)
    return counts


def _channel_statistics(values: Features) -> tuple[tuple[float, ...], tuple[float, ...]]:
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
