"""What turns a user's rows into a model's input: fitted on train, saved with the weights.

The vocabulary also counts pretraining.data; nothing looks at validation or test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from seqtrain.data.column_coding import ColumnCoding
from seqtrain.data.encoding import EMPTY, Encoder, EncodingReport, LengthPolicy
from seqtrain.data.examples import SHOWN_ROWS, Example, ReadOptions
from seqtrain.data.labels import LabelEncoder, LabelSet
from seqtrain.data.ngram_vocabulary import NgramVocabulary
from seqtrain.data.readers import Files
from seqtrain.data.store import SequenceStore, blocks, concatenate
from seqtrain.data.tokenizers import SYMBOLS, Tokenizer, make_tokenizer
from seqtrain.data.vocabulary import (
    BUCKETS,
    SPECIAL,
    UNK,
    FixedIndex,
    PieceIds,
    Vocabulary,
    word_grams,
)
from seqtrain.errors import DataError

CHUNK_ROWS = 4096


@dataclass(frozen=True)
class Preprocessing:
    """Reading, tokenizing, lookup and scaling, as fitted.

    Attributes:
        missing: error or mask, for missing feature values.
        label_set: classes of train.
        mean, std: of each channel in train (features).
        standardize: train, series or both (features); by series is the model's work.
        subwords: least and most characters of n-grams of words, where spelling counts.
        subword_rows: of the table of these n-grams.
        steps, static: how the columns of a time step, and beside a sequence, are coded.
        kernels: time steps of train's shortest, median and longest sequence, for a bank of kernels.
    """

    reading: ReadOptions
    tokenizer: str
    lowercase: bool
    bpe_model: str | None
    lengths: LengthPolicy
    missing: str
    label_set: LabelSet = field(default_factory=LabelSet)
    vocabulary: Vocabulary | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    standardize: str = "train"
    subwords: tuple[int, int] | None = None
    subword_rows: int = BUCKETS
    ngrams: NgramVocabulary | None = None
    kernels: tuple[int, int, int] | None = None
    steps: ColumnCoding | None = None
    static: ColumnCoding | None = None

    @property
    def kind(self) -> str:
        return self.reading.kind

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names, by class index."""
        return self.label_set.classes

    @property
    def multi_label(self) -> bool:
        """True if a row can have any number of the labels."""
        return self.label_set.multi_label

    @property
    def input_size(self) -> int:
        """The size of the vocabulary, or the width of the stored vectors."""
        return len(self.vocabulary or ()) if self.cells is None else self.cells.width

    @property
    def cells(self) -> ColumnCoding | None:
        """How the columns of a step are coded, or the channels of a series; None of tokens."""
        if self.kind == "features":
            return ColumnCoding({}, self.missing, (), self.mean, self.std)
        return self.steps

    @property
    def token_columns(self) -> int:
        """How many columns of tokens a step has; 0 where it isn't of columns."""
        return 0 if self.steps is None else self.steps.num_tokens

    @cached_property
    def split(self) -> Tokenizer | None:
        """What splits a sequence into tokens; None for feature vectors."""
        if self.kind != "text":
            return SYMBOLS if self.kind == "tokens" else None
        return make_tokenizer(self.tokenizer, lowercase=self.lowercase, bpe_model=self.bpe_model)

    def tokens(self, sequence: Any) -> list[str] | None:
        """Return the tokens that are encoded of a sequence, cut; None for feature vectors.

        A step of several columns is one text.
        """
        if self.split is None and self.steps is None:
            return None
        whole = map(",".join, sequence.cells()) if self.split is None else self.split(sequence)
        return self.lengths.cut([*whole]) or [SPECIAL[UNK]]

    def encode_files(
        self, files: Files, *, labelled: bool = True
    ) -> tuple[SequenceStore, EncodingReport]:
        """Read files, at least one, and encode their rows; bad ones are a DataError."""
        encoder = self._encoder()
        store, report = encoder.encode_files(files, labelled=labelled)
        return self._finished(store, encoder), report

    def encode_chunks(
        self,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None = None,
        *,
        rows: int = CHUNK_ROWS,
    ) -> Iterator[tuple[list[Example], SequenceStore]]:
        """Encode examples for prediction, chunk by chunk of at most `rows`, as they come.

        A burst of examples doesn't wait for the next one. Yields the examples of a chunk and their
        store, row for row; where an example has a problem, its row of the store means nothing.
        Labels that the examples have are ignored.

        Raises:
            DataError: a row can't be used; the rows before it come first.
        """
        report, groups = report or EncodingReport(), dict[str, int]()
        for chunk, fault in chain.from_iterable(chunked(burst, rows) for burst in bursts):
            encoder, lines = self._encoder(), [example.line for example in chunk]
            given = chunk, lines, source, report, groups
            store, bad = encoder.encode(*given, keep_bad=True, labelled=False)
            for i in sorted(bad):
                said = f"{chunk[i].file or source}:{chunk[i].line}: {bad[i]}"
                if bad[i] != EMPTY and self.reading.bad_rows != "blank":
                    fault, store = DataError(said), store.__getitems__(np.arange(i))
                    break
                chunk[i] = chunk[i]._replace(problem=bad[i], group=None)
                report.unanswered += 1
                report.shown += [said] if report.unanswered <= SHOWN_ROWS else []
            if len(store):
                yield chunk[: len(store)], self._finished(store, encoder)
            if fault is not None:
                raise fault

    def encoder(self, tokens: Mapping[str, int], labels: LabelEncoder) -> Encoder:
        """Return an encoder of these rules that looks ids up in the given indexes."""
        ids = None if self.split is None else PieceIds(self.split, tokens)
        cells, static = (None if x is None else x.encoder() for x in (self.cells, self.static))
        return Encoder(self.lengths, ids, labels, cells, static)

    def _encoder(self) -> Encoder:
        if self.subwords is None or self.vocabulary is None:
            return self._known
        tokens = FixedIndex(self.vocabulary.index, UNK, first=len(self.vocabulary))
        return self.encoder(tokens, self.label_set)

    @cached_property
    def _known(self) -> Encoder:
        """The encoder by the vocabulary alone, which remembers what it looked up."""
        tokens = FixedIndex({}, UNK) if self.vocabulary is None else self.vocabulary.index
        return self.encoder(tokens, self.label_set)

    def _finished(self, store: SequenceStore, encoder: Encoder) -> SequenceStore:
        if self.static is not None and store.static is not None:
            store = replace(store, static=concatenate(map(self.static.scale, blocks(store.static))))
        if self.cells is not None:
            return replace(store, values=concatenate(map(self.cells.scale, blocks(store.values))))
        tokens = None if encoder.ids is None else encoder.ids.index
        if self.subwords is None or not isinstance(tokens, FixedIndex):
            return store
        return replace(store, words=word_grams(tokens.unknown, *self.subwords))

    def for_prediction(self, *, empty: str | None = None, bad_rows: str = "error") -> Preprocessing:
        """Return the same, with no row left out: each has a prediction, or none, or fails.

        `empty` is error, unk or blank; None: as in training, and unk where they were dropped there.
        `bad_rows` is error or blank.
        """
        trained = "unk" if self.lengths.empty == "drop" else self.lengths.empty
        reading = replace(self.reading, bad_rows=bad_rows)
        return replace(self, reading=reading, lengths=replace(self.lengths, empty=empty or trained))

    def to_json(self) -> dict[str, Any]:
        """Return all but the vocabularies as JSON values; of n-grams the sizes and the number."""
        values = asdict(replace(self, vocabulary=None, ngrams=None, steps=None, static=None))
        del values["vocabulary"], values["reading"]["keep"]
        values["label_set"] = self.label_set.to_dict()
        for name, coding in self.codings.items():
            values[name] = coding.to_json()
        if self.ngrams is not None:
            values["ngrams"] = self.ngrams.description()
        return values

    @property
    def codings(self) -> dict[str, ColumnCoding]:
        """Codings of columns, by name."""
        both = {"steps": self.steps, "static": self.static}
        return {name: coding for name, coding in both.items() if coding is not None}

    def token_lists(self) -> dict[str, Any]:
        """Return the vocabularies: the tokens in the order of their ids, by name."""
        own = {} if self.vocabulary is None else {"tokens": list(self.vocabulary.tokens)}
        return own | {name: coding.tokens() for name, coding in self.codings.items()}

    @classmethod
    def from_json(
        cls,
        values: dict[str, Any],
        tokens: Mapping[str, Any],
        ngrams: NgramVocabulary | None = None,
    ) -> Preprocessing:
        """Build from `to_json`'s values and `token_lists`; raises where that can't be."""
        lists = ["mean", "std"]
        lists += [name for name in ("subwords", "kernels") if values.get(name) is not None]
        coded = [name for name in ("steps", "static") if values.get(name) is not None]
        vocabulary = Vocabulary(tuple(tokens["tokens"])) if "tokens" in tokens else None
        fields: dict[str, Any] = {
            **values,
            **{name: tuple(values[name]) for name in lists},
            **{name: ColumnCoding.from_json(values[name], tokens[name]) for name in coded},
            "label_set": LabelSet.from_dict(values["label_set"]),
            "reading": ReadOptions(**values["reading"]),
            "lengths": LengthPolicy(**values["lengths"]),
            "vocabulary": vocabulary,
            "ngrams": ngrams,
        }
        return cls(**fields)


def chunked(
    examples: Iterable[Example], rows: int
) -> Iterator[tuple[list[Example], DataError | None]]:
    """Yield lists of examples; where reading fails, the last one comes with the complaint."""
    iterator = iter(examples)
    while True:
        chunk: list[Example] = []
        try:
            chunk.extend(islice(iterator, rows))
        except DataError as fault:
            yield chunk, fault
            return
        if not chunk:
            return
        yield chunk, None
