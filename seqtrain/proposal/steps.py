"""A table with a row per time step: which column is the id, the order, the label, a step."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from seqtrain.data.readers import Column
from seqtrain.data.readers.time_steps import seconds_of
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    DECIMAL_COMMA,
    LISTS,
    REPEATS,
    TEXT_NAMES,
    ColumnFacts,
    Wishes,
    choose_label,
    wide_columns,
)
from seqtrain.proposal.texts import bayes_error
from seqtrain.text import listed, quote

COMPARED_ROWS = 100_000
"""First rows of a table that show which columns hang together, at most."""
PROBED_SEQUENCES = 2000
"""Sequences whose label is guessed from whole numbers: are they codes or measurements?"""
RANGES = 16
"""Ranges that whole numbers are sorted into for that guess; no more different ones are numbers."""
CODES_BETTER = 0.9
"""Whole numbers are codes where their error is below this share of the error of their ranges."""
SMOOTH = 0.5
"""Neighbours of an id are measured where they differ by less than this share of any two's."""
SPARSE = 20
"""Whole numbers that repeat are codes where less than one in so many between them occurs."""
ORDER_NAME = re.compile(r"(^|[^a-z])(time|timestamp|date|datetime|step|order|frame|t)$")
"""At the end of names of columns that sort the rows of an id, though these be numbers."""
PER_ID = "one for each id"
"""What is said of columns that `data.static` can take."""
ELAPSED = "elapsed"
"""Name of the numbers that say what the order grew by."""


@dataclass(frozen=True)
class StepTable:
    """What the columns of a table with a row per time step are.

    Attributes:
        steps: as `data.steps` takes them.
        ignored: the columns left out, each with the reason.
        doubts: what may be wrong, a line each.
    """

    id: Column
    label: Column
    order: Column | None
    steps: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


class _Cells:
    """The first rows of a table by column, and which columns hang together."""

    def __init__(
        self, rows: Iterable[Iterable[tuple[Column, object]]], columns: Sequence[ColumnFacts]
    ) -> None:
        first = [dict(row) for row in islice(rows, COMPARED_ROWS)]
        self.texts: dict[Column, list[str]] = {}
        self.codes: dict[Column, npt.NDArray[np.intp]] = {}
        for column in (each.column for each in columns):
            cells, known = (row.get(column) for row in first), dict[str, int]()
            texts = ["" if cell is None else str(cell).strip() for cell in cells]
            codes = [known.setdefault(text, len(known)) for text in texts]
            self.texts[column], self.codes[column] = texts, np.array(codes, dtype=np.intp)

    def fixes(self, one: Column, other: Column) -> bool:
        """Whether all rows with one value of a column have one value of another."""
        left, right = self.codes[one], self.codes[other]
        return bool(len(np.unique(left * (right.max() + 1) + right)) == left.max() + 1)

    def is_contiguous(self, column: Column) -> bool:
        """Whether the rows of each value follow one another."""
        codes = self.codes[column]
        return bool(np.count_nonzero(np.diff(codes)) == codes.max())

    def growth(self, id: Column, column: Column) -> npt.NDArray[np.float64] | None:
        """Return what numbers or ISO dates grow by within the rows of an id; None of others."""
        texts = self.texts[column]
        try:
            values = [float(text) for text in texts]
        except ValueError:
            values = [seconds_of(text) for text in texts]
        if not np.isfinite(values).all():
            return None
        by_id = np.argsort(self.codes[id], kind="stable")
        growth = np.diff(np.array(values)[by_id])
        growth[np.diff(self.codes[id][by_id]) != 0] = np.nan
        return growth[~np.isnan(growth)]


def find_steps(
    rows: Iterable[Iterable[tuple[Column, object]]],
    columns: Sequence[ColumnFacts],
    wishes: Wishes,
) -> StepTable | None:
    """Return what the columns are, if rows are time steps by their looks or by the user's word.

    Raises:
        DataError: they are, and it isn't clear of which sequences, or what their label is.
    """
    has_names = all(isinstance(column.column, str) for column in columns)
    if wishes.by_step and (wishes.sequence or not has_names):
        raise DataError(
            "--sequence: leave it out where a row is a time step"
            if has_names
            else "--id: the columns have no names; where the first row has some: --header"
        )
    is_sequence = wishes.sequence or wishes.kind or any(c.may_be_sequence for c in columns)
    if not wishes.by_step and (is_sequence or not has_names):
        return None
    cells = _Cells(rows, columns)
    ids = _ids(cells, columns, wishes)
    finest = [one for one in ids if all(cells.fixes(one, other) for other in ids)]
    if ids and not finest:
        shown = listed([quote(str(each)) for each in ids])
        raise DataError(f"--id: a row is a time step, of {shown}; choose one with --id COLUMN")
    if not ids:
        return _no_id(cells, wishes) if wishes.by_step else None
    id, label, order = finest[0], wishes.label, wishes.order
    if label is None:
        fixed = [c for c in columns if cells.fixes(id, c.column)]
        label = choose_label([c for c in fixed if not cells.fixes(c.column, id)])
    if order is None:
        order = _order(cells, columns, id)
        if order is None and not wishes.by_step and wide_columns(columns):
            return None
    found = StepTable(id, label, order)
    for column in (c for c in columns if c.column not in (id, label, order)):
        reason = _reason(cells, column, found, wishes.steps)
        if reason is None:
            found.steps[str(column.column)] = _kind(cells, column, found)
        else:
            found.ignored.append(reason)
    if not found.steps:
        if wishes.by_step:
            raise DataError(f"--steps: no column is left; found {listed(found.ignored)}")
        return None
    growth = None if order is None else cells.growth(id, order)
    if growth is not None and len(np.unique(np.abs(growth))) > 1 and ELAPSED not in cells.texts:
        found.steps[ELAPSED] = "order"
    return found


def _no_id(cells: _Cells, wishes: Wishes) -> NoReturn:
    """Say why no column can be the id, though the user says that rows are time steps."""
    known: dict[str, str] = {}
    names, labels = (cells.texts.get(x or "", ()) for x in (wishes.id, wishes.label))
    for name, found in zip(names, labels, strict=False):
        if known.setdefault(name, found) != found:
            raise DataError(
                f"--id: rows of {quote(name)} have the labels {quote(known[name])} and "
                f"{quote(found)}; the rows of one id are a sequence, with one label"
            )
    raise DataError(
        "--id: no such column has values that repeat, each with one label, and several of each "
        "label; give --id and --label"
    )


def _ids(cells: _Cells, columns: Sequence[ColumnFacts], wishes: Wishes) -> list[Column]:
    """Return the columns whose values repeat, each in rows of one label alone; the likeliest."""
    named = {wishes.label, wishes.order, *(wishes.steps or ())}
    labels = [c.column for c in columns if c.can_be_label and wishes.label in (None, c.column)]
    found = [
        c
        for c in columns
        if (c.can_be_label and c.name) or c.column == wishes.id
        if c.column not in named and wishes.id in (None, c.column)
        if any(cells.fixes(c.column, y) and not cells.fixes(y, c.column) for y in labels)
    ]
    if wishes.id is None:
        contiguous = [c for c in found if cells.is_contiguous(c.column)]
        codes = [c for c in found if c.is_code]
        names = [c for c in found if c.is_category and c.name not in TEXT_NAMES]
        names = names if any(c.is_measured for c in columns) else []
        found = [c for c in codes if c in contiguous] or codes or contiguous or names
    return [c.column for c in found]


def _order(cells: _Cells, columns: Sequence[ColumnFacts], id: Column) -> Column | None:
    """Return the column that sorts the rows of an id: ISO dates, times, or 0, 1, 2, …"""
    found = {}
    for column in columns:
        growth = None if cells.fixes(id, column.column) else cells.growth(id, column.column)
        if growth is None or column.column == id:
            continue
        is_named = ORDER_NAME.search(column.name) and (growth >= 0).all()
        if column.kind == "date" or is_named or (growth == 1).all():
            found[column.column] = (column.kind == "date", cells.codes[column.column].max())
    return max(found, key=lambda name: found[name], default=None)


def _reason(
    cells: _Cells, column: ColumnFacts, table: StepTable, given: Sequence[Column] | None
) -> str | None:
    """Return a column's description with why it is left out; None if it is a part of steps."""
    name, shown = column.column, quote(str(column.column))
    if given is not None:
        return None if name in given else f"{shown} (not among --steps)"
    if len(column.values) == 1 and not column.too_many:
        return f"{shown} (one value)"
    if cells.fixes(table.id, name):
        if cells.fixes(name, table.label) and cells.fixes(table.label, name):
            table.doubts.append(f"{shown} gives the label away, one value for each: left out")
            return f"{shown} (the label again)"
        return f"{shown} ({'the id again' if cells.fixes(name, table.id) else PER_ID})"
    if column.is_id or column.is_free_text or column.kind in ("date", *LISTS) or name == "":
        return column.describe()
    return None


def _kind(cells: _Cells, column: ColumnFacts, table: StepTable) -> str:
    """Return token or number; whole numbers may be codes of something."""
    if column.kinds["decimal"]:
        raise DataError(DECIMAL_COMMA.format("--steps"))
    if column.kind != "number" or column.is_code:
        return "token"
    texts, ids = np.array(cells.texts[column.column]), cells.codes[table.id]
    by_id = np.argsort(ids, kind="stable")
    by_id = by_id[texts[by_id] != ""]
    ids, texts, values = ids[by_id], texts[by_id], texts[by_id].astype(np.float64)
    changes, known = (
        np.diff(values)[(np.diff(ids) == 0) & (np.diff(values) != 0)],
        np.unique(values),
    )
    if column.too_many or not len(changes):
        return "number"
    apart = np.abs(values - np.random.default_rng(0).permutation(values))
    if np.abs(changes).mean() < SMOOTH * apart.mean():
        return "number"
    if SPARSE * len(known) < known[-1] - known[0] and REPEATS * len(known) < len(values):
        return "token"
    if len(known) <= RANGES:
        return "number"
    ranges = np.searchsorted(np.quantile(known, np.arange(1, RANGES) / RANGES), values).astype(str)
    starts = np.flatnonzero(np.diff(ids, prepend=-1, append=-1))[: PROBED_SEQUENCES + 1]
    labels = [cells.texts[table.label][by_id[start]] for start in starts[:-1]]

    def error(cells: npt.NDArray[np.str_]) -> float:
        joined = [" ".join(cells[start:end]) for start, end in pairwise(starts)]
        return bayes_error(list(zip(joined, labels, strict=True)), str.split)

    return "token" if error(texts) < CODES_BETTER * error(ranges) else "number"
