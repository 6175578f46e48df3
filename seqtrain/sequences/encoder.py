"""The encoder: the only way from cells to ids and scaled numbers.

B sequences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.sequences.examples import SHOWN_ROWS, Sequences
from seqtrain.sequences.keys import keys_of
from seqtrain.sequences.labels import UNKNOWN, LabelArray, unknown_rows
from seqtrain.sequences.lengths import EMPTY
from seqtrain.sequences.preprocessing import Preprocessing
from seqtrain.sequences.store import SequenceStore
from seqtrain.sequences.vocabulary import UNK, runs
from seqtrain.tables.blocks import Array, Coded, Ints, Mask, Reasons
from seqtrain.text import counted, quote

WITHOUT_LABEL = "the row has no label, but every row of train has one"


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
        learned_ids: Sequences whose id also has rows in train.
        shown: Messages about the first unreadable or unanswered rows, and the first rows with
            unknown labels, as ``FILE:LINE: …`` lines.
        refused: Messages about the first rows that were left out although no policy leaves them
            out, as ``FILE:LINE: …`` lines.
        num_refused: Number of such rows. A fit would end with an error.
        unknown_names: The labels that train lacks.
        left_out: Number of rows of each label that were left out: empty ones, and bad ones.
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
    learned_ids: int = 0
    num_refused: int = 0
    shown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown_names: set[str] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    def notices(self, name: str) -> list[str]:
        """Return messages about the split, one per line: `shown`, then one per count above 0.

        Args:
            name: Name of the split in the messages.
        """
        if self.held_out:
            name += " (including rows held out for other splits)"
        more = max(0, self.unknown_labels - SHOWN_ROWS)
        share = self.dropped / max(1, self.rows + self.dropped)
        lines = {
            f"skipped {counted(self.unreadable, 'example')} that can't be read": self.unreadable,
            f"cut {counted(self.truncated, 'sequence')} to data.max_length": self.truncated,
            f"skipped {counted(self.dropped, 'empty sequence')} ({share:.1%} of the rows)": (
                self.dropped
            ),
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

    def leave_out(self, labels: Coded | None, rows: Iterable[int]) -> None:
        """Count the labels of sequences that are left out.

        Args:
            labels: Labels of all sequences, or None if they aren't read.
            rows: Indices of the sequences that are left out.
        """
        if labels is not None:
            for row in rows:
                self.left_out.update(labels.value(row) or ())


class Encoder:
    """The one encoder of sequences, for fit, eval, predict and export.

    Before the preprocessing is fitted, tokens and labels get temporary numbers.

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
        self.rules = rules
        self.keeps_texts = keeps_texts or rules.pretrained is not None
        self.sequence: Any = rules.sequence.encoder()
        self.static = None
        if rules.row_features is not None:
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

        Without labels, all rows have the class `UNKNOWN`, and the store has no `keys`. `finalize`
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
            report.leave_out(sequences.labels, np.flatnonzero(~is_kept).tolist())
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
            column = self.rules.sequence
            lowers = column.kind == "text" and column.lowercase
            keys = keys_of(sequences, lowers=lowers)
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

    def finalize(self, store: SequenceStore) -> SequenceStore:
        """Return a store of this encoder with final numbers. The preprocessing must be fitted."""
        rules = self.rules
        if rules.row_features is not None:
            store = rules.row_features.finalize(store)
        return rules.with_vectors(rules.sequence.finalize(store, self.sequence))

    def _apply_policy(
        self, is_odd: Mask, lengths: Ints, problems: Reasons, report: EncodingReport
    ) -> Mask:
        """Return a mask of the sequences that aren't dropped, (B,).

        Args:
            is_odd: Mask of the sequences that are empty or overlong.
            lengths: Number of steps of each sequence.
            problems: Maps the index of each sequence that can't be used to the reason. The method
                adds the sequences that the policy refuses.
            report: Counts, which the method increases.
        """
        policy = self.rules.lengths
        is_kept = np.ones(len(lengths), bool)
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
        names = groups.values
        codes = groups.codes
        used, first = np.unique(codes, return_index=True)
        numbers = np.full(len(names) + 1, -1)
        for code in used[np.argsort(first)].tolist():
            if names[code]:
                numbers[code] = self.groups.setdefault(names[code], len(self.groups))
        found: Ints = numbers[codes]
        if (found >= 0).any():
            return found
        return None


def encode_for_prediction(
    rules: Preprocessing,
    parts: Iterable[Sequences],
    name: str,
    report: EncodingReport | None = None,
    *,
    bad_rows: str | None = None,
    advice: Sequence[str] = (),
) -> Iterator[tuple[Sequences, SequenceStore]]:
    """Encode sequences for prediction, part by part, as they arrive. Labels are ignored.

    Args:
        rules: The fitted preprocessing, as `Preprocessing.for_prediction` returns it.
        parts: Parts of the input.
        name: Name of the input for messages.
        report: Counts, which the method increases. None to count nothing.
        bad_rows: Policy for rows that can't be read: "error", or "blank" for a row without a
            prediction. None is "blank" if training left such rows out (data.bad_rows: drop).
        advice: Further lines of the error for such a row, unless it is the first one.

    Yields:
        A part and its encoded rows, in the same order. A sequence that gets no prediction has a
        problem, and its encoded row is meaningless.

    Raises:
        DataError: If a row can't be used, unless `bad_rows` is "blank". The rows before it are
            yielded first.
    """
    report = EncodingReport() if report is None else report
    groups = dict[str, int]()
    is_first = True
    is_blank = bad_rows == "blank" or (bad_rows is None and rules.schema.bad_rows == "drop")
    for part in parts:
        if not len(part):
            continue
        encoder = Encoder(rules, groups=groups)  # it numbers the unknown words of one part
        store = encoder.finalize(encoder.encode(part, part.lines, report, keep_bad=True))
        ending = [row for row, reason in part.problems.items() if reason != EMPTY]
        fault = None
        if ending and not is_blank:
            first = min(ending)
            fault = DataError(
                f"{part.place(first, name)}: {part.problems[first]}",
                *(advice if first or not is_first else ()),
            )
            rows = np.arange(first)
            part = part.at(rows)
            store = store.__getitems__(rows)
        for index, reason in sorted(part.problems.items()):
            report.unanswered += 1
            if report.unanswered <= SHOWN_ROWS:
                report.shown.append(f"{part.place(index, name)}: {reason}")
        if len(part):
            yield part, store
        if fault is not None:
            raise fault
        is_first = False


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
