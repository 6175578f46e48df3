"""What turns a user's rows into a model's input: fitted on train, saved with the weights.

The vocabulary also counts pretraining.data; nothing looks at validation or test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from seqtrain.data.encoding import Encoder, EncodingReport, LengthPolicy
from seqtrain.data.examples import Example, Features
from seqtrain.data.growing import blocks, joined
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.readers import ReadOptions
from seqtrain.data.spelling import word_grams
from seqtrain.data.store import UNKNOWN_LABEL, SequenceStore
from seqtrain.data.tokenizers import SYMBOLS, Tokenizer, make_tokenizer
from seqtrain.data.vocabulary import SPECIAL, UNK, FixedIndex, SpellingIndex, Vocabulary


@dataclass(frozen=True)
class Preprocessing:
    """Reading, tokenizing, lookup and scaling, as fitted.

    Attributes:
        reading: how rows are read from a file.
        tokenizer, lowercase, bpe_model: how a text is split.
        lengths: what happens to overlong and empty sequences.
        missing: error or mask, for missing feature values.
        labels: label of each class index, in sorted order.
        vocabulary: tokens by id (text, tokens).
        mean, std: of each channel in train (features).
        standardize: train, series or both (features); by series is the model's work.
        subwords: characters of n-grams of words, at least and at most, where spelling counts.
        ngrams: the n-grams of tokens that train chose, where the model counts them.
    """

    reading: ReadOptions
    tokenizer: str
    lowercase: bool
    bpe_model: str | None
    lengths: LengthPolicy
    missing: str
    labels: tuple[str, ...] = ()
    vocabulary: Vocabulary | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    standardize: str = "train"
    subwords: tuple[int, int] | None = None
    ngrams: NgramVocabulary | None = None

    @property
    def kind(self) -> str:
        """Return text, tokens or features."""
        return self.reading.kind

    @property
    def input_size(self) -> int:
        """Return the size of the vocabulary, or the width of the stored feature vectors."""
        if self.vocabulary is not None:
            return len(self.vocabulary)
        return len(self.mean) * (2 if self.missing == "mask" else 1)

    @property
    def num_ngrams(self) -> int:
        """Return how many n-grams of tokens train chose; 0 where none were asked for."""
        return 0 if self.ngrams is None else len(self.ngrams)

    @cached_property
    def _tokenizer(self) -> Tokenizer | None:
        """What splits a sequence into tokens; None for feature vectors."""
        if self.kind != "text":
            return SYMBOLS if self.kind == "tokens" else None
        return make_tokenizer(self.tokenizer, lowercase=self.lowercase, bpe_model=self.bpe_model)

    def tokens(self, sequence: Any) -> list[str] | None:
        """Return the tokens that `encode` reads of a sequence, cut; None for feature vectors."""
        if self._tokenizer is None:
            return None
        tokens = self._tokenizer(sequence)
        if self.lengths.max_length and len(tokens) > self.lengths.max_length:
            tokens = self.lengths.cut(tokens)
        return tokens or [SPECIAL[UNK]]

    def length(self, sequence: Any) -> int:
        """Return the steps of a sequence before any cut."""
        return len(sequence if self._tokenizer is None else self._tokenizer(sequence))

    def encode(
        self,
        examples: Iterable[Example],
        source: str,
        *,
        stop_at_first: bool = False,
        groups: dict[str, int] | None = None,
    ) -> tuple[SequenceStore, EncodingReport]:
        """Encode examples as the model expects them.

        Args:
            examples: sequences as read; labels may be None.
            source: name for messages, such as the file's.
            stop_at_first: raise at the first bad row.
            groups: numbers of the groups known so far, which grow.

        Raises:
            DataError: rows that can't be used, by line.
        """
        if self.subwords is not None and self.vocabulary is not None:
            index = SpellingIndex(self.vocabulary.index, len(self.vocabulary))
            encode = self.encoder(index, self._known_labels).encode
            store, report = encode(examples, source, stop_at_first=stop_at_first, groups=groups)
            return spelled(store, index, self.subwords), report
        encode = self._fitted.encode
        store, report = encode(examples, source, stop_at_first=stop_at_first, groups=groups)
        if self.kind == "features":
            store = replace(store, values=joined(map(self.scale, blocks(store.values))))
        return store, report

    @cached_property
    def _fitted(self) -> Encoder:
        """The encoder for other rows than train's, which remembers what it looked up."""
        tokens = self.vocabulary.index if self.vocabulary else FixedIndex({}, UNK)
        return self.encoder(tokens, self._known_labels)

    @cached_property
    def _known_labels(self) -> FixedIndex:
        return FixedIndex({label: i for i, label in enumerate(self.labels)}, UNKNOWN_LABEL)

    def encoder(self, index: dict[str, int], label_index: dict[str, int]) -> Encoder:
        """Return an encoder of these rules that looks ids up in the given indexes."""
        return Encoder(
            policy=self.lengths,
            tokenizer=self._tokenizer,
            index=index,
            label_index=label_index,
            channels=len(self.mean),
            missing=self.missing,
            keeps_places=self.reading.bad_rows == "blank",
        )

    def scale(self, values: Features) -> Features:
        """Standardise each channel; missing values become 0, under mask with an indicator beside.

        Shape:
            values: (N, C). Returns: (N, C), or (N, 2 C) under mask, the indicators (0 or 1) last.
        """
        limit = np.finfo(np.float32).max
        exact = (values - np.array(self.mean)) / np.array(self.std)
        scaled: Features = np.clip(exact, -limit, limit).astype(np.float32)
        absent = np.isnan(scaled)
        scaled[absent] = 0
        if self.missing != "mask":
            return scaled
        return np.concatenate((scaled, absent), axis=1, dtype=np.float32)

    def for_prediction(self, *, empty: str | None = None, bad_rows: str = "error") -> Preprocessing:
        """Return the same, with no row left out: each gets an answer, or an empty one, or fails.

        Args:
            empty: what happens to empty sequences: error, unk or blank; None: as in training, and
                unk where they were left out there.
            bad_rows: what happens to rows that can't be used: error or blank.
        """
        trained = "unk" if self.lengths.empty == "drop" else self.lengths.empty
        return replace(
            self,
            reading=replace(self.reading, bad_rows=bad_rows),
            lengths=replace(self.lengths, empty=empty or trained),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all but the vocabularies as JSON values; `from_json` reads them back.

        Of the n-grams they tell the sizes and the number.
        """
        values = asdict(replace(self, vocabulary=None, ngrams=None))
        del values["vocabulary"], values["reading"]["keep"]
        if self.ngrams is not None:
            sizes = {"shortest": self.ngrams.shortest, "longest": self.ngrams.longest}
            values["ngrams"] = {**sizes, "number": len(self.ngrams)}
        return values

    @classmethod
    def from_json(
        cls,
        values: dict[str, Any],
        tokens: Sequence[str] | None,
        ngrams: NgramVocabulary | None = None,
    ) -> Preprocessing:
        """Build from `to_json`'s values and the vocabularies.

        Raises:
            ValueError: what should be a list is none.
            LookupError, TypeError: values are missing, or there are others.
        """
        sizes = values.get("subwords")
        fields: dict[str, Any] = {
            **values,
            **{name: _listed(name, values[name]) for name in ("labels", "mean", "std")},
            "reading": ReadOptions(**values["reading"]),
            "lengths": LengthPolicy(**values["lengths"]),
            "vocabulary": None if tokens is None else Vocabulary(_listed("tokens", tokens)),
            "subwords": None if sizes is None else _listed("subwords", sizes),
            "ngrams": ngrams,
        }
        return cls(**fields)


def spelled(store: SequenceStore, index: SpellingIndex, sizes: tuple[int, int]) -> SequenceStore:
    """Return a store in which unknown words are <unk>, and their spelling stands beside.

    Args:
        store: of ids by `index`.
        index: numbers unknown words beyond the vocabulary.
        sizes: characters of their n-grams, at least and at most.
    """
    known = (np.where(ids < index.first, ids, UNK) for ids in blocks(store.values))
    beyond = (np.maximum(ids - index.first, -1) for ids in blocks(store.values))
    return replace(
        store,
        values=joined(ids.astype(np.int32) for ids in known),
        spellings=joined(ids.astype(np.int32) for ids in beyond),
        words=word_grams(index.unknown, *sizes),
    )


def _listed(name: str, values: Any) -> tuple[Any, ...]:
    """Return a list of JSON as a tuple; a text or an object has items too, but isn't one."""
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name}: expected a list")
    return tuple(values)
