"""From examples to a store: split, look up, cut. Fit and predict share it, so they can't differ."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.column_coding import CellEncoder
from seqtrain.data.examples import (
    SHOWN_ROWS,
    Example,
    Features,
    RowProblems,
    Steps,
)
from seqtrain.data.labels import LabelArray, LabelEncoder, unknown_rows
from seqtrain.data.readers import Files, read_rows
from seqtrain.data.store import Ints, SequenceStore, stacked
from seqtrain.data.vocabulary import UNK, FixedIndex, PieceIds
from seqtrain.errors import DataError
from seqtrain.text import counted, display_name, quote

CHUNK_SIZE = 2**14
"""Characters, symbols or numbers from which on rows are encoded at once."""
EMPTY = "the sequence is empty"
NOT_EMPTY = "; data.empty: drop or unk, set before training, accepts such rows"


@dataclass(frozen=True)
class LengthPolicy:
    """What happens to sequences that are too long or empty; the keys are the config's.

    In prediction `empty` may also be blank: a row without a prediction.
    """

    max_length: int | None
    overlong: str
    empty: str

    @property
    def most(self) -> int:
        """Steps that a sequence may have."""
        return self.max_length or 2**62

    def refusal(self, length: int) -> str | None:
        """Say why a sequence of so many steps can't be used; None: it can."""
        if length > self.most and self.overlong == "error":
            advice = "data.overlong: head, tail or middle cuts"
            return f"{length} steps; data.max_length allows {self.most} ({advice})"
        if not length and self.empty in ("error", "blank"):
            return EMPTY if self.empty == "blank" else EMPTY + NOT_EMPTY
        return None

    def cut(self, steps: Any) -> Any:
        """Return the steps that are kept: of an overlong sequence a part."""
        beyond = max(0, len(steps) - self.most)
        start = {"tail": beyond, "middle": beyond // 2}.get(self.overlong, 0)
        return steps[start : start + self.most]


@dataclass
class EncodingReport:
    """What encoding one split did to its rows, for the screen and the metrics.

    Attributes:
        rows: rows kept.
        held_out: rows read that now are validation's or test's.
        truncated, dropped, filled: rows cut at max_length; empty rows left out or read as <unk>.
        unreadable: rows left out because they couldn't be read (data.bad_rows: drop).
        unanswered: rows without a prediction.
        unknown_labels: rows whose label train doesn't have.
        shown: the first of the last three, as `FILE:LINE: …` lines.
    """

    rows: int = 0
    held_out: int = 0
    truncated: int = 0
    dropped: int = 0
    filled: int = 0
    unreadable: int = 0
    unanswered: int = 0
    unknown_labels: int = 0
    shown: list[str] = field(default_factory=list)

    def notices(self, name: str) -> list[str]:
        """Say what was done to the rows of the split of this name, a line each."""
        if self.held_out:
            name += " with its held-out rows"
        more, none = max(0, self.unknown_labels - SHOWN_ROWS), counted(self.unanswered, "row")
        lines = {
            f"left out {counted(self.unreadable, 'row')} that can't be read": self.unreadable,
            f"cut {counted(self.truncated, 'sequence')} at data.max_length": self.truncated,
            f"left out {counted(self.dropped, 'empty sequence')}": self.dropped,
            f"read {counted(self.filled, 'empty sequence')} as one <unk>": self.filled,
            f"no prediction for {none}; the label stays empty": self.unanswered,
            f"{counted(more, 'more row')} with labels that train lacks": more,
        }
        return [*self.shown, *(f"{name}: {line}" for line, count in lines.items() if count)]


@dataclass
class Encoder:
    """Turns examples into rows of a store.

    Attributes:
        ids: of tokens, by piece; None: steps have columns.
        labels: encoding of labels, as fitted or still provisional.
        cells, static: code columns of time steps, and beside sequences.
    """

    policy: LengthPolicy
    ids: PieceIds | None
    labels: LabelEncoder
    cells: CellEncoder | None = None
    static: CellEncoder | None = None

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
        """Encode some examples at once; return a store, and why some can't be used, by index.

        The report counts up what was done, and groups grow by new names. With keep_bad an example
        that can't be used has a row too, which means nothing, and rows have no keys. Without
        labelled, labels are ignored.
        """
        problems = {i: x.problem for i, x in enumerate(examples) if x.problem is not None}
        values: Any
        facts = list[Steps]()
        if self.static is not None:
            facts = [*_accepted(self.static, (x.static for x in examples), problems)]
        if self.ids is not None:
            values, lengths = self.ids.encode([example.sequence for example in examples])
        else:
            assert self.cells is not None
            sequences = (example.sequence for example in examples)
            found = [self.cells.nothing(), *_accepted(self.cells, sequences, problems)]
            values, lengths = self.cells.encode(found), [*map(len, found[1:])]
        kept: Iterable[int] = range(len(examples))
        if problems or min(lengths, default=1) < 1 or max(lengths, default=1) > self.policy.most:
            steps = np.split(values, np.cumsum(lengths)[:-1])
            rows = dict(self._kept(steps, problems, report, keep_bad))
            values = np.concatenate([*rows.values(), self._blank()[:0]])
            kept, lengths = list(rows), [len(steps) for steps in rows.values()]
        names = [None if i in problems else examples[i].group for i in kept]
        examples, lines = [examples[i] for i in kept], [lines[i] for i in kept]
        report.rows += len(examples)
        spellings, index = None, getattr(self.ids, "index", None)
        if isinstance(index, FixedIndex) and index.first is not None:
            spellings = np.maximum(values - index.first, -1).astype(np.int32)
            values = np.where(spellings < 0, values, UNK).astype(np.int32)
        store = SequenceStore(
            values,
            np.cumsum([0, *lengths]),
            self._labels(examples, source, report, labelled=labelled),
            np.array(lines, dtype=np.int64),
            keys=None if keep_bad else row_keys(examples),
            groups=None if names.count(None) == len(names) else number_groups(names, groups),
            spellings=spellings,
            static=None if self.static is None else _side_by_side(self.static, facts, kept),
        )
        return store, problems

    def encode_files(
        self, files: Files, *, labelled: bool = True
    ) -> tuple[SequenceStore, EncodingReport]:
        """Read files, at least one, and encode their rows; bad ones are a DataError."""
        report, starts = EncodingReport(), list[tuple[str, int]]()
        whole = stacked(self._encoded(files, report, starts, labelled=labelled))
        return replace(whole, files=tuple(starts)), report

    def _encoded(
        self, files: Files, report: EncodingReport, starts: list[tuple[str, int]], *, labelled: bool
    ) -> Iterator[SequenceStore]:
        """Yield the rows of files; `starts` get each name, and how many lines stand before it."""
        groups, ids, end = dict[str, int](), dict[str, str](), 0
        for path, options in files:
            name, start, number = display_name(path), end, end
            problems, left_out = RowProblems(name), RowProblems(name)
            starts.append((name, start))
            rows = read_rows(path, options, problems, labelled=labelled)
            if options.steps is not None and len(files) > 1:
                rows = _in_one_file(rows, name, ids)
            for chunk in chunks(self._with_width(rows, name)):
                lines = [start + example.line for example in chunk]
                if chunk and chunk[0].file is not None:
                    lines = [number := number + (x.problem is None) for x in chunk]
                store, bad = self.encode(chunk, lines, name, report, groups, labelled=labelled)
                for i, problem in bad.items():
                    is_left_out = options.bad_rows == "drop" and chunk[i].problem is not None
                    noted = left_out if is_left_out else problems
                    noted.add(chunk[i].line, problem, chunk[i].file)
                yield store
                end = max(end, int(store.lines.max(initial=0)))
            problems.raise_if_any()
            if end == start:
                left_out.raise_if_any()
            report.shown += left_out.shown[: max(0, SHOWN_ROWS - report.unreadable)]
            report.unreadable += left_out.count

    def _kept(
        self, found: list[Any], problems: dict[int, str], report: EncodingReport, keep_bad: bool
    ) -> Iterator[tuple[int, Any]]:
        policy = self.policy
        for i, steps in enumerate(found):
            said = None if i in problems else policy.refusal(len(steps))
            if said is not None:
                problems[i] = said
            if i in problems:
                if keep_bad:
                    yield i, self._blank()
            elif len(steps):
                report.truncated += len(steps) > policy.most
                yield i, policy.cut(steps)
            elif policy.empty == "drop":
                report.dropped += 1
            else:
                report.filled += 1
                yield i, self._blank()

    def _with_width(self, examples: Iterator[Example], source: str) -> Iterator[Example]:
        """Return all examples; take the width of features from the first series with steps."""
        leading, problems = list[Example](), RowProblems(source)
        while self.cells is not None and self.cells.channels is None:
            example = next(examples, None)
            if example is None:
                problems.raise_if_any()
                raise DataError(f"{source}: every sequence is empty; expected feature vectors")
            leading.append(example)
            if example.problem is not None:
                problems.add(example.line, example.problem, example.file)
            elif len(example.sequence):
                self.cells.channels = example.sequence.shape[1]  # type: ignore[union-attr]
        return chain(leading, examples)

    def _blank(self) -> Any:
        """Return the one step that an empty sequence is read as: all missing, so 0 once scaled."""
        return np.array([UNK], dtype=np.int32) if self.cells is None else self.cells.blank()

    def _labels(
        self, examples: list[Example], source: str, report: EncodingReport, *, labelled: bool
    ) -> LabelArray:
        """Return the encoded labels of examples; the report counts those that are no class."""
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
                said = f"label {names} doesn't occur in train; it counts as wrong"
                report.shown.append(f"{where}: {said}")
        return labels


def _accepted(cells: CellEncoder, given: Iterable[Any], problems: dict[int, str]) -> Iterator[Any]:
    """Yield sequences, nothing in place of those that can't be used; their problems grow."""
    for i, steps in enumerate(given):
        is_there = i not in problems and steps is not None and len(steps)
        problem = cells.refusal(steps) if is_there else None
        if problem is not None:
            problems[i] = problem
        yield steps if is_there and problem is None else cells.nothing()


def _side_by_side(cells: CellEncoder, found: list[Steps], kept: Iterable[int]) -> Features:
    """Return the vectors of one step each, (B, K), of those that are kept; blank of no step."""
    chosen = [found[i] for i in kept]
    values = cells.blank().repeat(len(chosen), axis=0)
    values[[len(steps) > 0 for steps in chosen]] = cells.encode([cells.nothing(), *chosen])
    return values


def chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    """Part examples into lists, at least one, that are encoded at once."""
    chunk: list[Example] = []
    size = 0
    for example in examples:
        chunk.append(example)
        size += getattr(example.sequence, "size", len(example.sequence)) + 1
        if size >= CHUNK_SIZE:
            yield chunk
            chunk, size = [], 0
    yield chunk


def number_groups(names: Sequence[str | None], numbers: dict[str, int]) -> Ints:
    """Return the number of each row's group, (B,), by names that grow; -1: alone."""
    rows = [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(rows, dtype=np.int64)


def _in_one_file(rows: Iterator[Example], name: str, files: dict[str, str]) -> Iterator[Example]:
    """Refuse an id whose rows stand in two files; `files` gets the file of each."""
    for row in rows:
        other = name if row.id is None else files.setdefault(row.id, name)
        if other != name and row.problem is None:
            problem = f"id {quote(str(row.id))} is in {other} too; put all its rows into one file"
            row = row._replace(sequence="", problem=problem)
        yield row


def row_keys(examples: Iterable[Example]) -> Ints:
    """Return a key of each sequence with the facts beside it, (B,) int64; blank: 0.

    Texts are equal but for case and outer blanks.
    """
    keys = []
    for example in examples:
        content = _content(example.sequence)
        beside = b"" if example.static is None else b"\x1d" + _content(example.static)
        keys.append(blake2b(content + beside, digest_size=8).digest() if content else bytes(8))
    return np.frombuffer(b"".join(keys), dtype="<i8").astype(np.int64)


def _content(sequence: Any) -> bytes:
    if isinstance(sequence, str):
        return sequence.strip().lower().encode("utf-8", "surrogatepass")
    if isinstance(sequence, Steps):
        cells = "\x1e".join(map("\x1f".join, sequence.tokens))
        return cells.encode("utf-8", "surrogatepass") + sequence.numbers.tobytes()
    if isinstance(sequence, list):
        return "\x1f".join(sequence).encode("utf-8", "surrogatepass")
    numbers: bytes = sequence.tobytes()
    return numbers


def unknown_shares(store: SequenceStore, columns: int = 0) -> list[float]:
    """Return the share of each sequence's tokens that are <unk>, in [0, 1]; 0 for features.

    `columns` are how many columns of tokens a step has, where it has several.
    """
    values: Any = store.values if store.values.ndim == 1 else store.values[:, :columns]
    if not len(store) or not values.size:
        return [0.0] * len(store)
    unknown = values == UNK if values.ndim == 1 else (values == UNK).mean(axis=1)
    counts = np.add.reduceat(unknown, store.offsets[:-1], dtype=np.float64)
    shares: list[float] = (counts / store.lengths).tolist()
    return shares
