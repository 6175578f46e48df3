"""Encoding of examples as rows of a store. Training and prediction share it."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from seqtrain.sequences.columns.column import CellEncoder
from seqtrain.sequences.columns.column_table import TableEncoder
from seqtrain.sequences.examples import BLANK_LABEL, SHOWN_ROWS, Example, RowProblems, Steps
from seqtrain.sequences.labels import LabelArray, LabelSet, ProvisionalLabels, unknown_rows
from seqtrain.sequences.readers import Source, read_rows
from seqtrain.sequences.saved_values import saved_choice, saved_integer
from seqtrain.sequences.store import Ints, SequenceStore, stacked, true_rows
from seqtrain.sequences.vocabulary import UNK
from seqtrain.text import counted, quote

CHUNK_SIZE = 2**14
"""Approximate size of a chunk of rows, in characters, symbols or numbers."""
EMPTY = "the sequence is empty"
WITHOUT_LABEL = "the row has no label, but every row of train has one"
NOT_EMPTY = "; data.empty: drop or unk, set before training, accepts such rows"
OVERLONG = ("head", "tail", "middle", "error")
TRAINED_EMPTY = ("error", "drop", "unk")


@dataclass(frozen=True)
class LengthPolicy:
    """Policy for sequences that are too long or empty. The attributes are keys of data.

    Attributes:
        max_length: Largest number of steps, or None for no limit.
        overlong: Policy for an overlong sequence: "head", "tail" or "middle" is the part that is
            kept. "error" refuses the sequence.
        empty: Policy for an empty sequence: "error" refuses it, "drop" leaves it out, "unk" reads
            it as one <unk>. "blank" is for prediction only: the sequence gets no prediction.
    """

    max_length: int | None
    overlong: str
    empty: str

    @property
    def most(self) -> int:
        """Largest number of steps, or a huge number without a limit."""
        return self.max_length or 2**62

    def refusal(self, length: int) -> str | None:
        """Return the reason why a sequence with `length` steps is refused, or None."""
        if length > self.most and self.overlong == "error":
            advice = "data.overlong: head, tail or middle cuts"
            return f"{length} steps; data.max_length allows {self.most} ({advice})"
        if not length and self.empty in ("error", "blank"):
            return EMPTY if self.empty == "blank" else EMPTY + NOT_EMPTY
        return None

    def cut(self, steps: Any) -> Any:
        """Return the part of a sequence that is kept: at most `max_length` steps.

        Args:
            steps: The steps, a list or an array.
        """
        surplus = max(0, len(steps) - self.most)
        start = {"tail": surplus, "middle": surplus // 2}.get(self.overlong, 0)
        return steps[start : start + self.most]

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> LengthPolicy:
        """Build a policy from the result of `to_dict`.

        Raises:
            ValueError: If the values aren't valid.
            KeyError: If a value is missing.
        """
        longest = values["max_length"]
        if longest is not None:
            saved_integer("lengths.max_length", longest, 1)
        return cls(
            longest,
            saved_choice("lengths.overlong", values["overlong"], OVERLONG),
            saved_choice("lengths.empty", values["empty"], TRAINED_EMPTY),
        )


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
    shown: list[str] = field(default_factory=list)

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
        return [*self.shown, *(f"{name}: {line}" for line, count in lines.items() if count)]


@dataclass
class RowEncoder:
    """Encoder of examples as rows of a store.

    Attributes:
        policy: Policy for overlong and empty sequences.
        sequence: Encoder of the sequence column.
        labels: Encoding of labels. Before the classes are known, it is provisional.
        row_features: Encoder of the row features, or None without any.
    """

    policy: LengthPolicy
    sequence: CellEncoder
    labels: LabelSet | ProvisionalLabels
    row_features: TableEncoder | None = None

    def encode(
        self,
        examples: list[Example],
        lines: Sequence[int],
        source: str,
        report: EncodingReport,
        groups: dict[str, int],
        *,
        keep_bad: bool = False,
        labelled: bool = True,
    ) -> tuple[SequenceStore, dict[int, str]]:
        """Encode a chunk of examples.

        Args:
            examples: The examples.
            lines: Line number that each example gets in the store.
            source: Name of the input for messages.
            report: Counts, which the method increases.
            groups: Maps the name of each group to its number. The method adds new groups.
            keep_bad: False to leave out examples that can't be used. True to give each of them a
                meaningless row, so that the store has one row per example. With True, the store has
                no `keys`.
            labelled: False to ignore labels.

        Returns:
            The store, and a dict that maps the index of each example that can't be used to the
            reason.
        """
        problems = {i: x.problem for i, x in enumerate(examples) if x.problem is not None}
        features = list[Steps]()
        if self.row_features is not None:
            features = self.row_features.check([x.static for x in examples], problems)
        cells = self.sequence.check([x.sequence for x in examples], problems)
        values, lengths = self.sequence.encode(cells)
        kept: Iterable[int] = range(len(examples))
        if problems or min(lengths, default=1) < 1 or max(lengths, default=1) > self.policy.most:
            steps = np.split(values, np.cumsum(lengths)[:-1])
            rows = dict(self._kept_rows(steps, problems, report, keep_bad=keep_bad))
            values = np.concatenate([*rows.values(), self.sequence.blank()[:0]])
            kept, lengths = list(rows), [len(row) for row in rows.values()]
        names = [None if i in problems else examples[i].group for i in kept]
        examples, lines = [examples[i] for i in kept], [lines[i] for i in kept]
        report.rows += len(examples)
        static = None
        if self.row_features is not None:
            static = self.row_features.encode_rows([features[i] for i in kept])
        arrays: dict[str, Any] = self.sequence.arrays(values)
        numbers = [-1 if name is None else groups.setdefault(name, len(groups)) for name in names]
        store = SequenceStore(
            **arrays,
            offsets=np.cumsum([0, *lengths]),
            labels=self._labels(examples, source, report, labelled=labelled),
            lines=np.array(lines, dtype=np.int64),
            keys=None if keep_bad else row_keys(examples),
            groups=None if names.count(None) == len(names) else np.array(numbers, dtype=np.int64),
            static=static,
        )
        return store, problems

    def encode_files(
        self,
        sources: Sequence[Source],
        *,
        labelled: bool = True,
        ids: dict[str, int] | None = None,
        learned: Container[str] = (),
    ) -> tuple[SequenceStore, EncodingReport]:
        """Read at least one source and encode its rows.

        Args:
            sources: Files or tables.
            labelled: True if every row must have a label.
            ids: A dict to which the method adds ids if rows are time steps. It maps each id to the
                line of its first row in the store.
            learned: Ids of train. The report counts the sequences with one of these ids.

        Returns:
            The encoded rows, and counts of them.

        Raises:
            DataError: If rows can't be used.
        """
        report, starts, divided = EncodingReport(), list[tuple[str, int]](), set[int]()
        ids = {} if ids is None else ids
        parts = self._encoded(sources, report, starts, ids, divided, learned, labelled=labelled)
        whole = stacked(parts)
        if divided:
            left = whole.selection(true_rows(~np.isin(whole.lines, [*divided])))
            report.unreadable += len(whole) - len(left)
            report.rows, whole = len(left), left
        return replace(whole, files=tuple(starts)), report

    def _encoded(
        self,
        sources: Sequence[Source],
        report: EncodingReport,
        starts: list[tuple[str, int]],
        ids: dict[str, int],
        divided: set[int],
        learned: Container[str],
        *,
        labelled: bool,
    ) -> Iterator[SequenceStore]:
        """Yield the encoded rows of sources, chunk by chunk: see `encode_files`.

        Args:
            sources: Files or tables.
            report: Counts, which the method increases.
            starts: Receives the name of each source and the number of lines before it.
            ids: As for `encode_files`.
            divided: Receives the line of the first row of each id that is in two sources.
            learned: As for `encode_files`.
            labelled: True if every row must have a label.
        """
        groups, end = dict[str, int](), 0
        for source in sources:
            name, start, number, rows_before = source.name, end, end, report.rows
            problems, left_out = RowProblems(name), RowProblems(name)
            starts.append((name, start))
            rows = read_rows(source, problems, labelled=labelled)
            if source.schema.steps is not None:
                rows = _in_one_file(rows, starts, ids, divided)
            for chunk in chunks(rows):
                lines = [start + example.line for example in chunk]
                if chunk and chunk[0].file is not None:
                    lines = [number := number + (x.problem is None) for x in chunk]
                store, bad = self.encode(chunk, lines, name, report, groups, labelled=labelled)
                report.learned_ids += sum(x.id in learned for x in chunk if x.id is not None)
                for i, problem in bad.items():
                    report.blank_labels += problem == BLANK_LABEL
                    is_left_out = source.bad_rows == "drop" and chunk[i].problem is not None
                    noted = left_out if is_left_out else problems
                    noted.add(chunk[i].line, problem, chunk[i].file)
                yield store
                end = max([end, *lines])
            problems.raise_if_any()
            if report.rows == rows_before:
                left_out.raise_if_any()
            report.shown += left_out.shown[: max(0, SHOWN_ROWS - report.unreadable)]
            report.unreadable += left_out.count

    def _kept_rows(
        self,
        rows: list[Any],
        problems: dict[int, str],
        report: EncodingReport,
        *,
        keep_bad: bool,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the index and the steps of each row that is kept, cut by the policy.

        Args:
            rows: Encoded steps of each row.
            problems: Maps the index of each row that can't be used to the reason. The method adds
                the rows that the policy refuses.
            report: Counts, which the method increases.
            keep_bad: As for `encode`.
        """
        policy = self.policy
        for i, steps in enumerate(rows):
            refusal = None if i in problems else policy.refusal(len(steps))
            if refusal is not None:
                problems[i] = refusal
            if i in problems:
                if keep_bad:
                    yield i, self.sequence.blank()
            elif len(steps):
                report.truncated += len(steps) > policy.most
                yield i, policy.cut(steps)
            elif policy.empty == "drop":
                report.dropped += 1
            else:
                report.filled += 1
                yield i, self.sequence.blank()

    def _labels(
        self, examples: list[Example], source: str, report: EncodingReport, *, labelled: bool
    ) -> LabelArray:
        """Return the encoded labels of examples, and count unknown labels in the report.

        Args:
            examples: The examples.
            source: Name of the input for messages.
            report: Counts, which the method increases.
            labelled: False to encode all examples as not labelled.
        """
        rows = [example.labels if labelled else None for example in examples]
        labels = self.labels.encode(rows)
        for number in np.flatnonzero(unknown_rows(labels)).tolist():
            example, row = examples[number], rows[number]
            if row is None:
                continue
            report.unknown_labels += 1
            if report.unknown_labels <= SHOWN_ROWS:
                where = f"{example.file or source}:{example.line}"
                names = ", ".join(map(quote, self.labels.unknown(row) or row))
                problem = f"label {names} doesn't occur in train" if row else WITHOUT_LABEL
                report.shown.append(f"{where}: {problem}; it counts as wrong")
        return labels


def chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Yield at least one list of examples. A list has about CHUNK_SIZE cells.

    The first list has at least one example that isn't empty, unless all examples are empty.
    """
    chunk, size, has_steps = list[Example](), 0, False
    for example in examples:
        chunk.append(example)
        cells = getattr(example.sequence, "size", len(example.sequence))
        size, has_steps = size + cells + 1, has_steps or cells > 0
        if size >= CHUNK_SIZE and has_steps:
            yield chunk
            chunk, size = [], 0
    yield chunk


def _in_one_file(
    rows: Iterator[Example], files: list[tuple[str, int]], ids: dict[str, int], divided: set[int]
) -> Iterator[Example]:
    """Yield the rows of a file. A row whose id is also in an earlier file gets a problem.

    Args:
        rows: The rows.
        files: Name of each file up to this one, with the number of lines of the files before it.
        ids: Maps each id to the line in the store of its first row. The function adds new ids.
        divided: Receives the line in `ids` of each id that is in two files.
    """
    start = files[-1][1]
    for row in rows:
        line = start + 1 if row.id is None else ids.setdefault(row.id, start + row.line)
        if line <= start:
            divided.add(line)
            other = [name for name, before in files if before < line][-1]
            problem = f"id {quote(str(row.id))} is in {other} too; put all its rows into one file"
            row = row._replace(sequence="", problem=row.problem or problem)
        yield row


def row_keys(examples: Iterable[Example]) -> Ints:
    """Return a hash of each sequence and its row features, (B,) int64. Empty sequences have 0.

    Equal examples have equal keys. Texts that differ only in case or outer whitespace have equal
    keys, too.
    """
    keys = []
    for example in examples:
        content, row_features = _content(example.sequence), b""
        if example.static is not None:
            row_features = b"\x1d" + _content(example.static)
        key = blake2b(content + row_features, digest_size=8) if content else None
        keys.append(bytes(8) if key is None else key.digest())
    return np.frombuffer(b"".join(keys), dtype="<i8").astype(np.int64)


def _content(sequence: Any) -> bytes:
    """Return the content of a sequence of any kind as bytes that identify it."""
    if isinstance(sequence, str):
        return sequence.strip().lower().encode("utf-8", "surrogatepass")
    if isinstance(sequence, Steps):
        return b"".join(map(_content, sequence.tokens)) + sequence.numbers.tobytes()
    if isinstance(sequence, list | tuple):
        lengths = array("q", map(len, sequence)).tobytes()
        return "".join(sequence).encode("utf-8", "surrogatepass") + lengths
    numbers: bytes = sequence.tobytes()
    return numbers


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
    unknown = values == UNK if values.ndim == 1 else (values == UNK).mean(axis=1)
    counts = np.add.reduceat(unknown, store.offsets[:-1], dtype=np.float64)
    shares: list[float] = (counts / store.lengths).tolist()
    return shares
