"""From examples to a store: split, cut, look up. Fit and predict share it, so they can't differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from seqtrain.data.examples import SHOWN_ROWS, BadRow, Example, RowProblems
from seqtrain.data.joining import StoreJoiner
from seqtrain.data.store import UNKNOWN_LABEL, Ints, SequenceStore
from seqtrain.data.tokenizers import Tokenizer
from seqtrain.data.vocabulary import UNK, PieceIds
from seqtrain.errors import DataError
from seqtrain.text import counted, located, quote

SHOWN_LABELS = 5
CHUNK_SIZE = 2**14
"""Characters, symbols or numbers from which on rows are encoded at once."""
EMPTY = "the sequence is empty"
NOT_EMPTY = "; data.empty: drop or unk, set before training, accepts such rows"


@dataclass(frozen=True)
class LengthPolicy:
    """What happens to sequences that are too long or empty; the keys are the config's.

    Attributes:
        max_length: steps at most, or None.
        overlong: head, tail, middle (the part kept) or error.
        empty: error, drop or unk; in prediction also blank: they keep their places unanswered.
    """

    max_length: int | None
    overlong: str
    empty: str

    @property
    def most(self) -> int:
        """Steps that a sequence may have."""
        return self.max_length or 2**62

    def cut(self, steps: Any) -> Any:
        """Return the part of an overlong sequence that is kept."""
        limit, length = self.max_length or len(steps), len(steps)
        start = {"head": 0, "tail": length - limit, "middle": (length - limit) // 2}[self.overlong]
        return steps[start : start + limit]


@dataclass
class EncodingReport:
    """What encoding one split did to its rows, for the screen and the metrics.

    Attributes:
        rows: rows kept.
        held_out: rows among these, and among those counted below, that now are validation's
            or test's.
        truncated, dropped, filled: rows cut at max_length; empty rows left out or read as <unk>.
        unanswered: rows that keep their places without an answer (prediction).
        unanswered_rows: why, of the first of them, as `FILE:LINE: …` lines.
        problems: the same of all rows just encoded, by place among them.
        unreadable: rows left out because they couldn't be read (data.bad_rows: drop).
        unreadable_rows: the first of them, as `FILE:LINE: …` lines.
        unknown_labels: rows whose label train doesn't have.
        unknown_label_rows: the first of them, as `FILE:LINE: …` lines.
    """

    rows: int = 0
    held_out: int = 0
    truncated: int = 0
    dropped: int = 0
    filled: int = 0
    unanswered: int = 0
    unanswered_rows: list[str] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    unreadable: int = 0
    unreadable_rows: list[str] = field(default_factory=list)
    unknown_labels: int = 0
    unknown_label_rows: list[str] = field(default_factory=list)

    @classmethod
    def joined(cls, reports: Sequence[EncodingReport]) -> EncodingReport:
        """Return what was done to the rows of several files, of which none keeps a bad row."""
        whole = cls()
        for report in reports:
            for name in ("rows", "truncated", "dropped", "filled", "unreadable", "unknown_labels"):
                setattr(whole, name, getattr(whole, name) + getattr(report, name))
            whole.unreadable_rows += report.unreadable_rows
            whole.unknown_label_rows += report.unknown_label_rows
        del whole.unreadable_rows[SHOWN_ROWS:], whole.unknown_label_rows[SHOWN_LABELS:]
        return whole

    def notices(self, name: str) -> list[str]:
        """Say what was done to the rows of the split of this name, a line each."""
        lines = list(self.unreadable_rows)
        if self.held_out:
            name += " with its held-out rows"
        if self.unreadable:
            lines.append(f"{name}: left out {counted(self.unreadable, 'row')} that can't be read")
        if self.truncated:
            lines.append(f"{name}: cut {counted(self.truncated, 'sequence')} at data.max_length")
        if self.dropped:
            lines.append(f"{name}: left out {counted(self.dropped, 'empty sequence')}")
        if self.filled:
            lines.append(f"{name}: read {counted(self.filled, 'empty sequence')} as one <unk>")
        if self.unanswered:
            lines += self.unanswered_rows
            have = "row has" if self.unanswered == 1 else "rows have"
            lines.append(f"{name}: {self.unanswered:,} {have} no answer, each an empty one instead")
        lines += self.unknown_label_rows
        more = self.unknown_labels - len(self.unknown_label_rows)
        if more:
            lines.append(f"{name}: {counted(more, 'more row')} with labels that train lacks")
        return lines


class Encoder:
    """Turns examples into flat ids or feature vectors, one by one.

    Args:
        policy: what happens to overlong and empty sequences.
        tokenizer: splits what was read; None: feature vectors were read.
        index: id of each token; its `__missing__` decides about new ones.
        label_index: class index of each label; the same.
        channels: width of a feature vector (features); 0: as the first series with steps has it.
        missing: error or mask, for missing feature values.
        keeps_places: a row that can't be used keeps its place, without an answer (prediction).
    """

    def __init__(
        self,
        *,
        policy: LengthPolicy,
        tokenizer: Tokenizer | None,
        index: Mapping[str, int],
        label_index: Mapping[str, int],
        channels: int = 0,
        missing: str = "error",
        keeps_places: bool = False,
    ) -> None:
        self.policy = policy
        self.keeps_places = keeps_places
        self.ids = PieceIds(tokenizer, index) if tokenizer else None
        self.label_index = label_index
        self.channels = channels
        self.missing = missing

    def encode(
        self,
        examples: Iterable[Example],
        source: str,
        *,
        stop_at_first: bool = False,
        groups: dict[str, int] | None = None,
    ) -> tuple[SequenceStore, EncodingReport]:
        """Encode all examples of one file.

        Args:
            examples: in file order.
            source: the file's name, for messages.
            stop_at_first: raise at the first bad row instead of gathering five.
            groups: numbers of the groups known so far, which grow.

        Returns:
            The store, and what was done to the rows.

        Raises:
            DataError: rows that can't be used, by line.
        """
        report = EncodingReport()
        problems = RowProblems(source, stop_at_first=stop_at_first)
        if self.ids is None and not self.channels:
            examples = self._find_channels(examples, source)
        numbers = {} if groups is None else groups
        whole = StoreJoiner(grouped=True)
        for chunk in _chunks(examples):
            whole.add(self._chunk(chunk, problems, report, numbers))
        problems.raise_if_any()
        return whole.build(), report

    def _chunk(
        self,
        examples: list[Example],
        problems: RowProblems,
        report: EncodingReport,
        groups: dict[str, int],
    ) -> SequenceStore:
        """Encode some examples: all at once, unless one of them needs a decision."""
        row = report.rows + report.dropped + 1
        # Of a folder's many files, a row is known by its number through all of them.
        lines = [e.line if e.file is None else row + i for i, e in enumerate(examples)]
        plain = self._plain(examples)
        if plain is None:
            rows = list(self._steps(examples, problems, report))
            places = [place for place, _ in rows]
            lines, examples = [lines[i] for i in places], [examples[i] for i in places]
            values = np.concatenate([steps for _, steps in rows] or [self._blank()[:0]])
            lengths = [len(steps) for _, steps in rows]
        else:
            values, lengths = plain
            report.rows += len(examples)
        labels = self._labels(examples, problems.name, report)
        names = [example.group for example in examples]
        alone = names.count(None) == len(names)
        return SequenceStore(
            values,
            np.cumsum([0, *lengths]),
            np.array(labels, dtype=np.int64),
            np.array(lines, dtype=np.int64),
            None if alone else number_groups(names, groups),
        )

    def _plain(self, examples: list[Example]) -> tuple[Any, list[int]] | None:
        """Return steps and lengths of examples that all can be used as they are, else None."""
        if self.ids is None or any(example.problem for example in examples):
            return None
        values, lengths = self.ids.encode_all([example.sequence for example in examples])
        shortest, longest = min(lengths, default=1), max(lengths, default=1)
        return (values, lengths) if shortest > 0 and longest <= self.policy.most else None

    def _find_channels(self, examples: Iterable[Example], source: str) -> Iterator[Example]:
        """Take the width from the first series that has steps; return all examples."""
        remaining = iter(examples)
        leading: list[Example] = []
        for example in remaining:
            leading.append(example)
            vectors: Any = example.sequence
            if len(vectors):
                self.channels = vectors.shape[1]
                return chain(leading, remaining)
        raise DataError(f"{source}: every sequence is empty; expected feature vectors")

    def _steps(
        self, examples: Iterable[Example], problems: RowProblems, report: EncodingReport
    ) -> Iterator[tuple[int, Any]]:
        """Yield the place of each usable example with its ids or vectors, policies applied."""
        empty = self.policy.empty
        for place, example in enumerate(examples):
            problems.file = example.file or problems.name
            problem, stays = None, empty == "blank"
            try:
                steps = self._cut(example, report)
                if not len(steps) and empty in ("error", "blank"):
                    problem = EMPTY if stays else EMPTY + NOT_EMPTY
            except BadRow as bad:
                problem, stays = str(bad), self.keeps_places
            if problem is not None and not stays:
                problems.add(example.line, problem)
                continue
            if problem is not None:
                report.problems[report.rows] = problem
                steps = self._blank()
            elif not len(steps) and empty == "drop":
                report.dropped += 1
                continue
            elif not len(steps):
                report.filled += 1
                steps = self._blank()
            report.rows += 1
            yield place, steps

    def _cut(self, example: Example, report: EncodingReport) -> Any:
        """Return the ids or vectors of an example, cut where the policy says so.

        Raises:
            BadRow: it can't be used.
        """
        if example.problem is not None:
            raise BadRow(example.problem)
        steps: Any = example.sequence
        if self.ids is None:
            self._check_features(steps)
        else:
            steps = self.ids.encode(steps)
        limit = self.policy.most
        if len(steps) > limit:
            if self.policy.overlong == "error":
                raise BadRow(
                    f"{len(steps)} steps; data.max_length allows {limit} "
                    "(data.overlong: head, tail or middle cuts)"
                )
            steps = self.policy.cut(steps)
            report.truncated += 1
        return steps

    def _check_features(self, vectors: Any) -> None:
        """Refuse a series of another width, or with values that the model can't take."""
        if not len(vectors):
            return
        if vectors.shape[1] != self.channels:
            raise BadRow(f"{vectors.shape[1]} channels; expected {self.channels}")
        infinite = np.isinf(vectors).any(axis=1)
        if infinite.any():
            step = int(infinite.argmax()) + 1
            raise BadRow(f"step {step}: infinite value; expected finite numbers")
        absent = np.isnan(vectors).any(axis=1)
        if self.missing == "error" and absent.any():
            step = int(absent.argmax()) + 1
            raise BadRow(f"step {step}: missing value; data.missing: mask accepts them")

    def _blank(self) -> Any:
        """Return the one step that an empty sequence is read as: all missing, so 0 once scaled."""
        if self.ids is not None:
            return np.array([UNK], dtype=np.int32)
        return np.full((1, self.channels), np.nan, dtype=np.float32)

    def _labels(self, examples: list[Example], source: str, report: EncodingReport) -> list[int]:
        """Return the class index of each example, and note labels that train doesn't have."""
        index = self.label_index
        labels = [UNKNOWN_LABEL if e.label is None else index[e.label] for e in examples]
        if UNKNOWN_LABEL not in labels:
            return labels
        for example, label in zip(examples, labels, strict=True):
            if label == UNKNOWN_LABEL and example.label is not None:
                report.unknown_labels += 1
                if report.unknown_labels <= SHOWN_LABELS:
                    place = f"{example.file or source}:{example.line}"
                    problem = f"label {quote(example.label)} doesn't occur in train"
                    said = located(place, f"{problem}; it counts as wrong")
                    report.unknown_label_rows.append(said)
        return labels


def _chunks(examples: Iterable[Example]) -> Iterator[list[Example]]:
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
    """Return the number of each row's group, (B,); -1 for rows that stand alone.

    Args:
        names: of the groups.
        numbers: of the names known so far; grows.
    """
    rows = [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]
    return np.array(rows, dtype=np.int64)


def unknown_shares(store: SequenceStore) -> list[float]:
    """Return the share of each sequence's steps that are <unk>, in [0, 1]; 0 for features."""
    if store.values.ndim != 1 or not len(store):
        return [0.0] * len(store)
    counts = np.add.reduceat(store.values == UNK, store.offsets[:-1], dtype=np.int64)
    shares: list[float] = (counts / store.lengths).tolist()
    return shares
