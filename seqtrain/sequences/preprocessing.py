"""Preprocessing: how rows are read and encoded. It is fitted on train and saved with the model.

The counts of tokens also include pretraining.data. Validation and test are never used for fitting.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from os import PathLike, fspath
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.columns import column_from_dict
from seqtrain.sequences.columns.column import Column
from seqtrain.sequences.columns.column_table import ColumnTable, RowFeatures
from seqtrain.sequences.encoding import EMPTY, EncodingReport, LengthPolicy, RowEncoder
from seqtrain.sequences.examples import SHOWN_ROWS, Example
from seqtrain.sequences.labels import LabelSet, ProvisionalLabels
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary
from seqtrain.sequences.read_options import FileFormat, PredictionOptions, Schema
from seqtrain.sequences.readers import FileSource, Source, TableSource
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import SPECIAL, UNK, Vocabulary

CHUNK_ROWS = 4096


@dataclass(frozen=True)
class Preprocessing:
    """Rules for reading and encoding rows.

    Attributes:
        file_format: Format of the training files.
        schema: Meaning of the columns of the files.
        sequence: Column of the sequences.
        lengths: Policy for overlong and empty sequences.
        label_set: Classes of train. Empty before the fit.
        row_features: Columns with one value per row, or None.
        ngrams: Vocabulary of n-grams for the n-gram branch, or None without model.ngrams.
        bad_rows: Policy for rows that can't be read: "error" or "drop" in training, "error" or
            "blank" in prediction.
    """

    file_format: FileFormat
    schema: Schema
    sequence: Column
    lengths: LengthPolicy
    label_set: LabelSet = field(default_factory=LabelSet)
    row_features: RowFeatures | None = None
    ngrams: NgramVocabulary | None = None
    bad_rows: str = "error"

    @property
    def kind(self) -> str:
        """Kind of the sequences, a value of data.kind."""
        return self.sequence.kind

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
        """Size of the vocabulary if a step is a token id, else the number of values per step."""
        return self.sequence.input_size

    @property
    def steps(self) -> ColumnTable | None:
        """Columns of a step if data.steps is set, else None."""
        return self.sequence if isinstance(self.sequence, ColumnTable) else None

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Vocabulary of the sequences if their steps are token ids, else None."""
        return self.sequence.vocabulary

    @property
    def token_columns(self) -> int:
        """Number of token columns if data.steps is set, else 0."""
        return 0 if self.steps is None else len(self.steps.tokens)

    @property
    def reads_tables(self) -> bool:
        """True if data.steps or data.static is set, so that only a table can hold an example."""
        return self.steps is not None or self.row_features is not None

    def data_settings(self) -> dict[str, Any]:
        """Return the config settings that fix the meaning of a model's weights.

        The result maps keys of the section data to their values.
        """
        found = {"kind": self.kind, "static": self.schema.static}
        if self.row_features is not None:
            found["missing"] = self.row_features.missing
        found |= self.sequence.settings()
        if self.steps is not None:
            found["steps"] = self.schema.steps
        return found

    def pieces(self, sequence: Any) -> list[str] | None:
        """Return the steps of a sequence as texts for people, cut as they are for encoding.

        Args:
            sequence: A sequence as read.

        Returns:
            One text per step, or None if steps are vectors of numbers. An empty sequence is <unk>.
        """
        whole = self.sequence.pieces(sequence)
        return None if whole is None else self.lengths.cut(whole) or [SPECIAL[UNK]]

    def encode_files(
        self,
        sources: Sequence[Source],
        *,
        labelled: bool = True,
        learned: Container[str] = (),
    ) -> tuple[SequenceStore, EncodingReport]:
        """Read at least one source and encode its rows.

        Args:
            sources: Files or tables.
            labelled: True if every row must have a label.
            learned: Ids of train. The report counts the sequences with one of these ids.

        Returns:
            The encoded rows, and counts of them.

        Raises:
            DataError: If rows can't be used.
        """
        encoder = self.encoder()
        store, report = encoder.encode_files(sources, labelled=labelled, learned=learned)
        return self._finished(store, encoder), report

    def encode_chunks(
        self,
        bursts: Iterable[Iterable[Example]],
        source: str,
        report: EncodingReport | None = None,
        *,
        rows: int = CHUNK_ROWS,
    ) -> Iterator[tuple[list[Example], SequenceStore]]:
        """Encode examples for prediction in chunks, as they arrive. Labels are ignored.

        Args:
            bursts: Groups of examples that arrive together. A chunk has examples of only one group,
                so that no group waits for the next one.
            source: Name of the input for messages.
            report: Counts, which the method increases. None to count nothing.
            rows: Largest number of rows of a chunk.

        Yields:
            The examples of a chunk and their encoded rows, in the same order. An example that gets
            no prediction has a `problem`, and its encoded row is meaningless.

        Raises:
            DataError: If a row can't be used, unless `bad_rows` is "blank". If reading fails. The
                rows before the error are yielded first.
        """
        report, groups = report or EncodingReport(), dict[str, int]()
        for chunk, fault in chain.from_iterable(chunked(burst, rows) for burst in bursts):
            encoder, lines = self.encoder(), [example.line for example in chunk]
            store, bad = encoder.encode(
                chunk, lines, source, report, groups, keep_bad=True, labelled=False
            )
            for i in sorted(bad):
                message = f"{chunk[i].file or source}:{chunk[i].line}: {bad[i]}"
                if bad[i] != EMPTY and self.bad_rows != "blank":
                    fault, store = DataError(message), store.__getitems__(np.arange(i))
                    break
                chunk[i] = chunk[i]._replace(problem=bad[i], group=None)
                report.unanswered += 1
                report.shown += [message] if report.unanswered <= SHOWN_ROWS else []
            if len(store):
                yield chunk[: len(store)], self._finished(store, encoder)
            if fault is not None:
                raise fault

    def encoder(self) -> RowEncoder:
        """Return an encoder of rows. Before the fit its ids and labels are provisional."""
        labels = self.label_set if len(self.label_set) else ProvisionalLabels()
        static = None if self.row_features is None else self.row_features.encoder()
        return RowEncoder(self.lengths, self.sequence.encoder(), labels, static)

    def _finished(self, store: SequenceStore, encoder: RowEncoder) -> SequenceStore:
        if self.row_features is not None:
            store = self.row_features.finish(store)
        return self.sequence.finish(store, encoder.sequence)

    def for_prediction(self, *, empty: str | None = None, bad_rows: str = "error") -> Preprocessing:
        """Return a copy for prediction, in which no row is left out.

        Args:
            empty: Policy for empty sequences: "error", "unk" or "blank". None to use the policy of
                training, where "unk" replaces "drop".
            bad_rows: Policy for rows that can't be read: "error" or "blank".
        """
        trained = "unk" if self.lengths.empty == "drop" else self.lengths.empty
        lengths = replace(self.lengths, empty=empty or trained)
        return replace(self, bad_rows=bad_rows, lengths=lengths)

    def input_source(self, given: Any, options: PredictionOptions | None = None) -> Source:
        """Return a source that reads an input of prediction.

        Args:
            given: Path of a file, or a table.
            options: Options of the prediction, or None for the defaults.

        Raises:
            DataError: As `PredictionOptions.file_format` and `TableSource`.
        """
        options = options or PredictionOptions()
        if not isinstance(given, str | PathLike):
            return TableSource(given, self.schema, keep=options.keep, bad_rows=options.bad_rows)
        path = fspath(given)
        format = options.file_format(path, self.file_format, self.schema)
        return FileSource(path, format, self.schema, options.keep, options.bad_rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the preprocessing as JSON values, without its vocabularies and arrays."""
        return {
            "file_format": asdict(self.file_format),
            "schema": asdict(self.schema),
            "bad_rows": self.bad_rows,
            "sequence": self.sequence.to_dict(),
            "row_features": None if self.row_features is None else self.row_features.to_dict(),
            "lengths": self.lengths.to_dict(),
            "label_set": self.label_set.to_dict(),
            "ngrams": None if self.ngrams is None else self.ngrams.description(),
        }

    def token_lists(self) -> dict[str, Any]:
        """Return the vocabularies of all columns as JSON values: see `Column.vocabulary_dict`."""
        own = {} if self.row_features is None else self.row_features.vocabulary_dict()
        return {**self.sequence.vocabulary_dict(), **own}

    @classmethod
    def from_dict(
        cls, values: Any, tokens: Any, ngrams: NgramVocabulary | None = None
    ) -> Preprocessing:
        """Build a preprocessing from saved values, which may come from anyone.

        Args:
            values: Result of `to_dict`.
            tokens: Result of `token_lists`.
            ngrams: The attribute `ngrams`.

        Raises:
            ValueError: If values contradict each other or are out of range.
            KeyError: If a value is missing.
            TypeError: If a value has the wrong type.
        """
        static = values["row_features"]
        return cls(
            file_format=FileFormat(**values["file_format"]),
            schema=Schema(**values["schema"]),
            bad_rows=values["bad_rows"],
            sequence=column_from_dict(values["sequence"], tokens),
            lengths=LengthPolicy.from_dict(values["lengths"]),
            label_set=LabelSet.from_dict(values["label_set"]),
            row_features=None if static is None else RowFeatures.from_dict(static, tokens),
            ngrams=ngrams,
        )


def chunked(
    examples: Iterable[Example], rows: int
) -> Iterator[tuple[list[Example], DataError | None]]:
    """Yield pairs of a list of at most `rows` examples, and None.

    If reading raises a DataError, the last pair has this error in place of None. Its list has the
    examples before the error.
    """
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
