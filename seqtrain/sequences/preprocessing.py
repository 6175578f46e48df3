"""Preprocessing: how rows are read and encoded. It is fitted on train and saved with the model.

The counts of tokens also include pretraining.data. Validation and test are never used for fitting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.columns.tokens import TokenSequence
from seqtrain.sequences.labels import LabelSet
from seqtrain.sequences.lengths import LengthPolicy
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary
from seqtrain.sequences.pretrained import PretrainedEncoder
from seqtrain.sequences.saved import Saved, refuse
from seqtrain.sequences.schema import Schema, column_names, token_columns
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import SPECIAL, UNK, Vocabulary

IN_OTHER_FILES: dict[str, Any] = {
    "sequence": {"vocabulary": True, "tokens": {"__all__": {"vocabulary"}}},
    "row_features": {"tokens": {"__all__": {"vocabulary"}}},
    "ngrams": True,
    "pretrained": True,
}
"""Attributes of `Preprocessing` with files of their own, as pydantic's `exclude` names them."""


@dataclass(frozen=True)
class Preprocessing(Saved):
    """Rules for reading and encoding rows.

    Attributes:
        schema: Form of the training files, and meaning of their columns.
        sequence: Column of the sequences: tokens, or a table of steps or channels.
        lengths: Policy for overlong and empty sequences.
        label_set: Classes of train. Empty before the fit.
        row_features: Columns with one value per row, or None.
        ngrams: Vocabulary of n-grams for the n-gram branch, or None without model.ngrams.
        pretrained: Frozen encoder of texts, or None without model.pretrained.
    """

    schema: Schema
    sequence: TokenSequence | ColumnTable
    lengths: LengthPolicy
    label_set: LabelSet = field(default_factory=LabelSet)
    row_features: ColumnTable | None = None
    ngrams: NgramVocabulary | None = None
    pretrained: PretrainedEncoder | None = None

    def __post_init__(self) -> None:
        for key, table in (("steps", self.steps), ("static", self.row_features)):
            kinds = getattr(self.schema, key)
            tokens = []
            names = []
            if table is not None:
                tokens = [column.name for column in table.tokens]
                names = table.names
            expected = (token_columns(kinds), column_names(kinds))
            if (table is None) != (kinds is None) or (tokens, names) != expected:
                raise ValueError(f"{key}: expected the same columns in the schema and the table")

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
        is_table = isinstance(self.sequence, ColumnTable) and self.sequence.kind == "steps"
        return self.sequence if is_table else None  # type: ignore[return-value]

    @property
    def vocabulary(self) -> Vocabulary | None:
        """Vocabulary of the sequences if their steps are token ids, else None."""
        return self.sequence.vocabulary

    @property
    def token_names(self) -> list[str] | None:
        """Names of the columns of tokens of a step, or None if a step is a single id."""
        if isinstance(self.sequence, TokenSequence):
            return None
        return [column.name for column in self.sequence.tokens]

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

    def step_texts(self, sequence: Any) -> list[str] | None:
        """Return the steps of a sequence as texts for people, cut as they are for encoding.

        Args:
            sequence: A sequence as read.

        Returns:
            One text per step, or None if steps are vectors of numbers. An empty sequence is <unk>.
        """
        whole = self.sequence.step_texts(sequence)
        if whole is None:
            return None
        return self.lengths.cut(whole) or [SPECIAL[UNK]]

    def with_vectors(self, store: SequenceStore) -> SequenceStore:
        """Return a store with the vector of each text in place of the text, by model.pretrained."""
        if self.pretrained is None or store.texts is None:
            return store
        vectors = self.pretrained.encode(store.texts.tolist())
        return replace(store, texts=None, vectors=vectors)

    def for_prediction(
        self, *, empty: Literal["error", "unk", "blank"] | None = None
    ) -> Preprocessing:
        """Return a copy for prediction, in which no row is left out.

        Args:
            empty: Policy for empty sequences. None to use the policy of training, where "unk"
                replaces "drop".
        """
        trained = "unk" if self.lengths.empty == "drop" else self.lengths.empty
        lengths = replace(self.lengths, empty=empty or trained)
        return replace(self, lengths=lengths)

    def vocabularies(self) -> dict[str, Any]:
        """Return the vocabularies of all columns as JSON values.

        The result maps "tokens" to a list of tokens in the order of their ids. For tables it maps
        "steps" or "static" to a dict with such a list for each token column.
        """
        found = self.sequence.token_lists()
        if self.row_features is not None:
            found |= self.row_features.token_lists()
        return found

    def completed(
        self,
        vocabularies: Mapping[str, Any],
        ngrams: NgramVocabulary | None = None,
        pretrained: PretrainedEncoder | None = None,
    ) -> Preprocessing:
        """Return a saved preprocessing with the parts that have files of their own.

        Args:
            vocabularies: Result of `vocabularies`, whose lists hold texts.
            ngrams: The attribute `ngrams`.
            pretrained: The attribute `pretrained`.

        Raises:
            ValueError: If a vocabulary is missing, or parts contradict each other.
        """
        sequence = self.sequence.with_vocabularies(vocabularies)
        features = self.row_features
        if features is not None:
            features = features.with_vocabularies(vocabularies)
        found = replace(
            self, sequence=sequence, row_features=features, ngrams=ngrams, pretrained=pretrained
        )
        found.check()
        return found

    def check(self) -> None:
        """Raise ValueError if parts of a fitted preprocessing contradict each other."""
        schema, labels, column = self.schema, self.label_set, self.sequence
        lacks_merges = column.tokenizer_name == "bpe" and getattr(column, "bpe_model", 0) is None
        faults = {
            "schema.join: expected names of files without folders": (
                schema.join != schema.join_names()
            ),
            "schema.kind: expected that of the sequence": schema.kind != self.kind,
            "label_set.separator: expected a text if multi_label is true": (
                labels.multi_label and not labels.separator
            ),
            "label_set.separator: expected null unless multi_label is true": (
                labels.separator is not None and not labels.multi_label
            ),
            "label_set.classes: expected at least 2 classes": len(labels) < 2,
            "lengths.empty: expected error, drop or unk": (
                self.lengths.empty == "blank" or schema.bad_rows == "blank"
            ),
            "sequence.bpe_model: expected merges": lacks_merges,
        }
        refuse(faults)
        for table in (self.sequence, self.row_features):
            if isinstance(table, ColumnTable):
                _check_scales(table)


def _check_scales(table: ColumnTable) -> None:
    """Raise ValueError if a number column lacks its scale."""
    sizes = {column.name: len(column.vocabulary or ()) for column in table.tokens}
    if not table.tokens and not table.numbers:
        raise ValueError(f"{table.kind}: expected at least one column")
    for column in table.numbers:
        if len(column.scale) != 1:
            raise ValueError(f"{column.name}: expected one mean and one std")
        by_token = column.scale_by_token
        expected = None if column.by is None else sizes[column.by]
        if (None if by_token is None else len(by_token)) != expected:
            raise ValueError(f"{column.name}: expected one mean and one std for each token")
    if len(table.since) != (table.channels if table.carries else 0):
        raise ValueError("since: expected one mean and one std for each column of numbers")
