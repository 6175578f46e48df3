"""Preprocessing: how rows are read and encoded. It is fitted on train and saved with the model.

The counts of tokens also include pretraining.data. Validation and test are never used for fitting.
B sequences, N steps of all sequences.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.sequences.columns.tables import ColumnTable
from seqtrain.sequences.columns.tokens import TokenSequence
from seqtrain.sequences.examples import SHOWN_ROWS, Sequences, Steps
from seqtrain.sequences.labels import UNKNOWN, LabelArray, LabelSet, unknown_rows
from seqtrain.sequences.ngram_vocabulary import NgramVocabulary
from seqtrain.sequences.pretrained import PretrainedEncoder
from seqtrain.sequences.saved import Saved, refuse
from seqtrain.sequences.schema import Schema, column_names, token_columns
from seqtrain.sequences.store import Array, Ints, Mask, SequenceStore
from seqtrain.sequences.vocabulary import SPECIAL, UNK, Vocabulary, runs
from seqtrain.tables.blocks import Coded
from seqtrain.text import counted, quote

NO_LIMIT = 2**62
"""Largest number of steps without data.max_length."""
EMPTY = "the sequence is empty"
WITHOUT_LABEL = "the row has no label, but every row of train has one"
NOT_EMPTY = "; data.empty: drop or unk, set before training, accepts such rows"


@dataclass(frozen=True)
class LengthPolicy(Saved):
    """Policy for sequences that are too long or empty. The attributes are keys of data.

    Attributes:
        max_length: Largest number of steps, or None for no limit.
        overlong: Policy for an overlong sequence: "head", "tail" or "middle" is the part that is
            kept. "error" refuses the sequence.
        empty: Policy for an empty sequence: "error" refuses it, "drop" leaves it out, "unk" reads
            it as one <unk>. "blank" is for prediction only: the sequence gets no prediction.
    """

    max_length: int | None
    overlong: Literal["head", "tail", "middle", "error"]
    empty: Literal["error", "drop", "unk", "blank"]

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ValueError("max_length: expected a number from 1, or null")

    @property
    def most(self) -> int:
        """Largest number of steps; `NO_LIMIT` without a limit."""
        return self.max_length or NO_LIMIT

    def refusal(self, length: int) -> str | None:
        """Return the reason why a sequence with `length` steps is refused, or None."""
        if length > self.most and self.overlong == "error":
            advice = "data.overlong: head, tail or middle cuts"
            return f"{length} steps; data.max_length allows {self.max_length} ({advice})"
        if length:
            return None
        refusals = {"error": EMPTY + NOT_EMPTY, "blank": EMPTY}
        return refusals.get(self.empty)

    def starts(self, lengths: Ints) -> Ints:
        """Return the index of the first step that is kept of each sequence, (B,).

        Args:
            lengths: Number of steps of each sequence, (B,).
        """
        surplus = (lengths - self.most).clip(0)
        if self.overlong == "tail":
            return surplus
        if self.overlong == "middle":
            return surplus // 2
        return np.zeros_like(surplus)

    def cut(self, steps: Any) -> Any:
        """Return the part of a list of steps that is kept."""
        start = int(self.starts(np.array([len(steps)]))[0])
        return steps[start : start + self.most]


@dataclass
class EncodingReport:
    """Counts of the rows of one split, by the result of encoding them.

    Attributes:
        rows: Rows that were encoded.
        held_out: Rows of the file that now belong to validation or test.
        truncated: Sequences that were cut to max_length.
        dropped: Empty sequences that were left out.
        filled: Empty sequences that were read as one <unk>.
        unreadable: Rows that were left out because they can't be read (data.bad_rows: drop).
        unanswered: Rows that get no prediction (bad_rows or empty is "blank").
        unknown_labels: Rows with labels that train lacks.
        blank_labels: Rows that can't be used because their label is blank.
        learned_ids: Sequences whose id also has rows in train.
        shown: Messages about the first unreadable or unanswered rows, and the first rows with
            unknown labels, as ``FILE:LINE: …`` lines.
        refused: Messages about the first rows that were left out although no policy leaves them
            out, as ``FILE:LINE: …`` lines.
        num_refused: Number of such rows. A fit would end with an error.
        unknown_names: The labels that train lacks.
        remarks: Lines about the input as a whole, such as labels that are spelled in two ways.
    """

    rows: int = 0
    held_out: int = 0
    truncated: int = 0
    dropped: int = 0
    filled: int = 0
    unreadable: int = 0
    unanswered: int = 0
    unknown_labels: int = 0
    blank_labels: int = 0
    learned_ids: int = 0
    num_refused: int = 0
    shown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown_names: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)

    def notices(self, name: str) -> list[str]:
        """Return messages about the split, one per line: `shown`, then one per count above 0.

        Args:
            name: Name of the split in the messages.
        """
        if self.held_out:
            name += " (including rows held out for other splits)"
        more = max(0, self.unknown_labels - SHOWN_ROWS)
        lines = {
            f"skipped {counted(self.unreadable, 'example')} that can't be read": self.unreadable,
            f"cut {counted(self.truncated, 'sequence')} to data.max_length": self.truncated,
            f"skipped {counted(self.dropped, 'empty sequence')}": self.dropped,
            f"read {counted(self.filled, 'empty sequence')} as one <unk>": self.filled,
            f"no prediction for {counted(self.unanswered, 'example')}; the label stays empty": (
                self.unanswered
            ),
            f"{counted(self.learned_ids, 'sequence')} with an id that is in train, too: their "
            "scores may promise too much": self.learned_ids,
            f"{counted(more, 'more row')} with labels that train lacks": more,
        }
        said = [f"{name}: {line}" for line, count in lines.items() if count]
        return [*self.shown, *said, *(f"{name}: {line}" for line in self.remarks)]


class Encoder:
    """The one encoder of sequences, for fit, eval, predict and export.

    Before the preprocessing is fitted, tokens and labels get provisional numbers.

    Args:
        rules: The preprocessing.
        groups: Maps the name of each group to its number, or None. New groups are added.
        keeps_texts: True to put the texts into the stores, as model.pretrained needs them.

    Attributes:
        sequence: Encoder of the sequence column.
        static: Encoder of the row features, or None without any.
        groups: Maps the name of each group to its number.
    """

    def __init__(
        self,
        rules: Preprocessing,
        *,
        groups: dict[str, int] | None = None,
        keeps_texts: bool = False,
    ) -> None:
        self.rules, self.keeps_texts = rules, keeps_texts or rules.pretrained is not None
        self.sequence: Any = rules.sequence.encoder()
        if rules.row_features is None:
            self.static = None
        else:
            self.static = rules.row_features.encoder()
        self.groups = {} if groups is None else groups

    def encode(
        self,
        sequences: Sequences,
        lines: Ints,
        report: EncodingReport,
        *,
        name: str = "",
        keep_bad: bool = False,
    ) -> SequenceStore:
        """Return sequences as rows of a store. Reasons why some can't be used are added to them.

        Without labels, all rows have the class `UNKNOWN`, and the store has no `keys`. `finish`
        completes the rows of one or several calls.

        Args:
            sequences: The sequences. The method adds to `problems`.
            lines: Line number that each sequence gets in the store, (B,).
            report: Counts, which the method increases.
            name: Name of the input for messages about labels.
            keep_bad: False to leave out sequences that can't be used. True to give each of them a
                meaningless row, so that the store has one row per sequence.
        """
        problems = sequences.problems
        static = groups = texts = keys = left_out = None
        if self.static is not None and sequences.static is not None:
            ones = np.ones(len(lines), np.int64)
            static = self.static.encode_steps(sequences.static, ones, problems)
        values, lengths = self.sequence.encode(sequences)
        is_odd = (lengths == 0) | (lengths > self.rules.lengths.most)
        if problems or is_odd.any():
            is_kept = self._apply_policy(is_odd, lengths, problems, report)
            is_blank = lengths == 0
            is_blank[list(problems)] = True
            if not keep_bad:
                is_kept[list(problems)] = False
            values, kept_lengths = self._cut(values, lengths, is_kept, is_blank)
            left_out = (lengths[is_kept] - kept_lengths).clip(0)
            lengths = kept_lengths
            if not is_kept.all():
                kept = np.flatnonzero(is_kept)
                sequences, lines = sequences.at(kept), lines[kept]
                static = None if static is None else static[kept]
        report.rows += len(lines)
        labels: LabelArray = np.full(len(lines), UNKNOWN)
        if sequences.labels is not None:
            labels = self._labels(sequences, sequences.labels, name, report)
            keys = self._keys(sequences)
        if sequences.groups is not None:
            groups = self._group_numbers(sequences.groups)
        if self.keeps_texts:
            texts = np.empty(len(lines), object)
            texts[:] = list(sequences.content)
        return SequenceStore(
            values=values,
            offsets=np.concatenate(([0], np.cumsum(lengths))),
            labels=labels,
            lines=lines,
            last_lines=sequences.last_lines,
            groups=groups,
            keys=keys,
            static=static,
            weights=sequences.weights,
            texts=texts,
            left_out=left_out,
        )

    def finish(self, store: SequenceStore) -> SequenceStore:
        """Return a store of this encoder with final numbers. The preprocessing must be fitted."""
        rules = self.rules
        if rules.row_features is not None:
            store = rules.row_features.finish(store)
        store = rules.sequence.finish(store, self.sequence)
        if rules.pretrained is None:
            return store
        return rules.with_vectors(store)

    def _apply_policy(
        self, is_odd: Mask, lengths: Ints, problems: dict[int, str], report: EncodingReport
    ) -> Mask:
        """Return a mask of the sequences that aren't dropped, (B,).

        Args:
            is_odd: Mask of the sequences that are empty or overlong.
            lengths: Number of steps of each sequence.
            problems: Maps the index of each sequence that can't be used to the reason. The method
                adds the sequences that the policy refuses.
            report: Counts, which the method increases.
        """
        policy, is_kept = self.rules.lengths, np.ones(len(lengths), bool)
        for row in np.flatnonzero(is_odd).tolist():
            if row in problems:
                continue
            reason = policy.refusal(int(lengths[row]))
            if reason is not None:
                problems[row] = reason
            elif lengths[row]:
                report.truncated += 1
            elif policy.empty == "drop":
                report.dropped += 1
                is_kept[row] = False
            else:
                report.filled += 1
        return is_kept

    def _cut(
        self, values: Array, lengths: Ints, is_kept: Mask, is_blank: Mask
    ) -> tuple[Array, Ints]:
        """Return the steps of the sequences that are kept, cut to data.max_length, and lengths.

        Args:
            values: Steps of all sequences.
            lengths: Number of steps of each sequence.
            is_kept: Mask of the sequences that are kept.
            is_blank: Mask of the sequences that become one blank step.
        """
        policy = self.rules.lengths
        starts = np.cumsum(lengths) - lengths + policy.starts(lengths)
        starts[is_blank] = len(values)  # the blank step is there
        found = lengths.clip(max=policy.most)
        found[is_blank] = 1
        index, _ = runs(starts[is_kept], found[is_kept])
        return np.concatenate([values, self.sequence.blank()])[index], found[is_kept]

    def _labels(
        self, sequences: Sequences, labels: Coded, name: str, report: EncodingReport
    ) -> LabelArray:
        """Return encoded labels, or the codes of labels before the fit. Count unknown ones."""
        classes = self.rules.label_set
        if not classes.classes:
            return labels.codes.astype(np.int64)
        used, inverse = np.unique(labels.codes, return_inverse=True)
        names = [None if code < 0 else labels.values[code] for code in used.tolist()]
        found: LabelArray = classes.encode(names)[inverse]
        for row in np.flatnonzero(unknown_rows(found)).tolist():
            own = names[inverse[row]]
            if own is None:
                continue
            unknown = classes.unknown(own)
            report.unknown_labels += 1
            report.unknown_names.update(unknown)
            if report.unknown_labels <= SHOWN_ROWS:
                shown = ", ".join(map(quote, unknown or own))
                if own:
                    problem = f"label {shown} doesn't occur in train"
                else:
                    problem = WITHOUT_LABEL
                report.shown.append(f"{sequences.place(row, name)}: {problem}; it counts as wrong")
        return found

    def _group_numbers(self, groups: Coded) -> Ints | None:
        """Return the number of each sequence's group, or None if no sequence has a group."""
        names, codes = groups.values, groups.codes
        used, first = np.unique(codes, return_index=True)
        numbers = np.full(len(names) + 1, -1)
        for code in used[np.argsort(first)].tolist():
            if names[code]:
                numbers[code] = self.groups.setdefault(names[code], len(self.groups))
        found: Ints = numbers[codes]
        if (found >= 0).any():
            return found
        return None

    def _keys(self, sequences: Sequences) -> Ints:
        """Return a hash of each sequence with its row features, (B,). Empty sequences have 0.

        Equal sequences have equal keys: texts as the config's own normalization leaves them.
        """
        column = self.rules.sequence
        lowers = column.kind == "text" and column.lowercase
        contents = _contents(sequences, lowers=lowers)
        own = [b""] * len(sequences)
        if sequences.static is not None:
            facts = _step_hashes(sequences.static)
            own = [b"\x1d" + each.tobytes() for each in facts]
        keys = bytearray()
        for content, feature in zip(contents, own, strict=True):
            keys += blake2b(content + feature, digest_size=8).digest() if content else bytes(8)
        return np.frombuffer(bytes(keys), dtype="<i8").astype(np.int64)


def _contents(sequences: Sequences, *, lowers: bool) -> Iterator[bytes]:
    """Yield the content of each sequence as bytes that identify it."""
    if sequences.offsets is not None:
        hashes = _step_hashes(sequences.content)
        for begin, end in pairwise(sequences.offsets.tolist()):
            yield hashes[begin:end].tobytes()
        return
    for content in sequences.content:
        if isinstance(content, str):
            text = content.strip()
            yield (text.lower() if lowers else text).encode("utf-8", "surrogatepass")
        elif isinstance(content, list):
            yield json.dumps(content).encode() if content else b""
        else:
            yield content.tobytes()


def _step_hashes(steps: Steps) -> npt.NDArray[np.uint64]:
    """Return a hash of each step, (N,)."""
    mixed = np.full(len(steps), 0x9E3779B97F4A7C15, np.uint64)
    prime = np.uint64(0x100000001B3)
    for column in steps.tokens:
        texts = [each.encode("utf-8", "surrogatepass") for each in column.values]
        digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
        table = np.frombuffer(digests, "<u8").astype(np.uint64)
        mixed = (mixed ^ table[column.codes]) * prime
    for numbers in np.ascontiguousarray(steps.numbers.T).view(np.uint32):
        spread = numbers.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
        mixed = (mixed ^ spread ^ (spread >> np.uint64(32))) * prime
    return mixed


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
            tokens, names = list[str](), list[str]()
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
        found: dict[str, Any] = {"kind": self.kind, "static": self.schema.static}
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
        if whole is None:
            return None
        return self.lengths.cut(whole) or [SPECIAL[UNK]]

    def with_vectors(self, store: SequenceStore) -> SequenceStore:
        """Return a store with the vector of each text in place of the text, by model.pretrained."""
        if self.pretrained is None or store.texts is None:
            return store
        vectors = self.pretrained.encode(store.texts.tolist())
        return replace(store, texts=None, vectors=vectors)

    def predictable(
        self,
        parts: Iterable[Sequences],
        name: str,
        report: EncodingReport | None = None,
        *,
        bad_rows: str | None = None,
    ) -> Iterator[tuple[Sequences, SequenceStore]]:
        """Encode sequences for prediction, part by part, as they arrive. Labels are ignored.

        Args:
            parts: Parts of the input.
            name: Name of the input for messages.
            report: Counts, which the method increases. None to count nothing.
            bad_rows: Policy for rows that can't be read: "error", or "blank" for a row without a
                prediction. None is "blank" if training left such rows out (data.bad_rows: drop).

        Yields:
            A part and its encoded rows, in the same order. A sequence that gets no prediction has a
            problem, and its encoded row is meaningless.

        Raises:
            DataError: If a row can't be used, unless `bad_rows` is "blank". The rows before it are
                yielded first.
        """
        report = EncodingReport() if report is None else report
        groups = dict[str, int]()
        if bad_rows is None:
            if self.schema.bad_rows == "drop":
                bad_rows = "blank"
            else:
                bad_rows = "error"
        for part in parts:
            if not len(part.lines):
                continue
            encoder = Encoder(self, groups=groups)  # it numbers the unknown words of one part
            store = encoder.finish(encoder.encode(part, part.lines, report, keep_bad=True))
            ending = [row for row, reason in part.problems.items() if reason != EMPTY]
            fault = None
            if ending and bad_rows != "blank":
                first = min(ending)
                fault = DataError(f"{part.place(first, name)}: {part.problems[first]}")
                rows = np.arange(first)
                part, store = part.at(rows), store.__getitems__(rows)
            for index, reason in sorted(part.problems.items()):
                report.unanswered += 1
                if report.unanswered <= SHOWN_ROWS:
                    report.shown.append(f"{part.place(index, name)}: {reason}")
            if len(part.lines):
                yield part, store
            if fault is not None:
                raise fault

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


def unknown_shares(store: SequenceStore, columns: int = 0) -> list[float]:
    """Return the share of each sequence's tokens that are <unk>, in [0, 1].

    Args:
        store: The sequences.
        columns: Number of token columns of a step. It isn't used if a step is a single id. All
            shares are 0 if there are no token columns.
    """
    values: Any = store.values if store.values.ndim == 1 else store.values[:, :columns]
    if not len(store) or not values.size:
        return [0.0] * len(store)
    if values.ndim == 1:
        unknown = values == UNK
    else:
        unknown = (values == UNK).mean(axis=1)
    counts = np.add.reduceat(unknown, store.offsets[:-1], dtype=np.float64)
    shares: list[float] = (counts / store.lengths).tolist()
    return shares
