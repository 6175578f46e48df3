"""A table with a row per time step: which column is the id, the order, the label, a step."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, pairwise
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from seqtrain.data.readers import Column
from seqtrain.data.readers.time_steps import seconds_of
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    LISTS,
    ORDER_NAME,
    REPEATS,
    TEXT_NAMES,
    ColumnFacts,
    Wishes,
    choose_label,
    is_missing,
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
MOST_CODES = 100
"""Whole numbers, more different ones than this and fewer than half of those between, are numbers
unless their column is named as codes are."""
SURE = 2
"""Standard errors that codes must be better by than their ranges."""
NEARLY_UNIQUE = 0.9
"""Share of the rows of an id from which on numbers that differ may be times, if named so."""
EPOCHS = (1e8, 5e9)
"""Seconds since 1970 of times in data, from 1973 on; or 1000 times as many, and so on."""
CALENDAR = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Dates that are written as whole numbers, by their digits."""
ISO = "2024-03-01 or 2024-03-01T09:51"
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

    def fixes(self, one: Column, other: Column, *, labelled: bool = False) -> bool:
        """Whether all rows with one value of a column have one value of another.

        With `labelled` rows count where the other isn't blank: one of an id may have its label.
        """
        left, right = self.codes[one], self.codes[other]
        if labelled:
            known = np.array(self.texts[other]) != ""
            left, right = np.unique(left[known], return_inverse=True)[1], right[known]
        if not len(left):
            return False
        return bool(len(np.unique(left * (right.max() + 1) + right)) == left.max() + 1)

    def is_contiguous(self, column: Column) -> bool:
        """Whether the rows of each value follow one another."""
        codes = self.codes[column]
        return bool(np.count_nonzero(np.diff(codes)) == codes.max())

    def times(self, column: Column) -> npt.NDArray[np.float64]:
        """Return numbers, or the seconds of ISO dates; NaN for others."""
        texts = self.texts[column]
        try:
            return np.array([float(text) for text in texts])
        except ValueError:
            return np.array([seconds_of(text) for text in texts])

    def growth(
        self, id: Column, column: Column, *, sort: bool = False
    ) -> npt.NDArray[np.float64] | None:
        """Return what numbers or ISO dates grow by within the rows of an id; None of others.

        With `sort` within the values of an id from the least on, wherever its rows stand.
        """
        values = self.times(column)
        if not np.isfinite(values).all():
            return None
        by_id = np.argsort(self.codes[id], kind="stable")
        if sort:
            by_id = np.lexsort((values, self.codes[id]))
        growth = np.diff(values[by_id])
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
    if order is None:
        found.doubts.extend(_unsorted(cells, columns, id))
    growth = None
    if order is not None and not _are_dates(cells.texts[order]):
        growth = cells.growth(id, order, sort=True)
    if growth is not None and len(np.unique(growth)) > 1 and ELAPSED not in cells.texts:
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
    given = wishes.label is not None
    found = [
        c
        for c in columns
        if (c.can_be_label and c.name) or c.column == wishes.id
        if c.column not in named and wishes.id in (None, c.column)
        if any(
            cells.fixes(c.column, y, labelled=given) for y in labels if not cells.fixes(y, c.column)
        )
    ]
    if wishes.id is None:
        contiguous = [c for c in found if cells.is_contiguous(c.column)]
        codes = [c for c in found if c.is_code]
        numbers = [c for c in found if c.is_number_that_repeats and not c.is_time]
        names = [c for c in found if c.is_category and c.name not in TEXT_NAMES] + numbers
        names = [c for c in names if any(x.is_measured for x in columns if x is not c)]
        found = [c for c in codes if c in contiguous] or codes or contiguous or names
    return [c.column for c in found]


def _order(cells: _Cells, columns: Sequence[ColumnFacts], id: Column) -> Column | None:
    """Return the column that sorts the rows of an id: ISO dates, times, or 0, 1, 2, …"""
    found = {}
    for column in columns:
        growth = None if cells.fixes(id, column.column) else cells.growth(id, column.column)
        if growth is None or column.column == id:
            continue
        is_named = column.is_time and ((growth >= 0).all() or _are_times(cells, column, id))
        if column.kind == "date" or is_named or (growth == 1).all():
            found[column.column] = (column.kind == "date", cells.codes[column.column].max())
    return max(found, key=lambda name: found[name], default=None)


def _are_times(cells: _Cells, column: ColumnFacts, id: Column) -> bool:
    """Whether numbers of a column named so are times, though the rows aren't sorted by them."""
    growth, values = cells.growth(id, column.column, sort=True), cells.times(column.column)
    if growth is None or np.count_nonzero(growth) < NEARLY_UNIQUE * len(growth):
        return _are_dates(cells.texts[column.column])
    low, high = EPOCHS
    scaled = any(low * k <= values.min() and values.max() <= high * k for k in (1, 1e3, 1e6, 1e9))
    named = ORDER_NAME.fullmatch(column.name) is not None
    whole = bool((values == np.rint(values)).all())
    return scaled or (named and whole) or _are_dates(cells.texts[column.column])


def _are_dates(texts: Sequence[str]) -> bool:
    """Whether whole numbers such as 20240301 are dates."""
    digits = {len(text) for text in texts}
    format = CALENDAR.get(max(digits)) if len(digits) == 1 else None
    if format is None or not all(text.isdigit() for text in texts):
        return False
    try:
        years = [datetime.strptime(text, format).year for text in {*texts}]
    except ValueError:
        return False
    return min(years) > 1900 and max(years) < 2100


def _unsorted(cells: _Cells, columns: Sequence[ColumnFacts], id: Column) -> Iterator[str]:
    """Say that dates can't sort the rows of an id."""
    for column in columns:
        texts = cells.texts[column.column]
        odd = next((text for text in texts if text and np.isnan(seconds_of(text))), None)
        if column.kind != "date" or cells.fixes(id, column.column):
            continue
        name = quote(str(column.column), 40)
        why = f"{name} holds dates that aren't ISO, such as {quote(odd or '', 30)}; write them so"
        why += f" ({ISO})"
        if odd is None:
            why = f"{name} is blank in {texts.count(''):,} of them; fill these in"
        yield f"the rows of an id are taken as they stand in the file: {why}, or sort the file"


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
    if column.kind == "number" and column.kinds["decimal"]:
        raise DataError(f"--steps: {column.decimal_comma}")
    if column.kind != "number" or column.is_code:
        return "token"
    given, ids = cells.texts[column.column], cells.codes[table.id]
    times = None if table.order is None else cells.times(table.order)
    by_id = np.lexsort((np.arange(len(ids)) if times is None else times, ids))
    texts = np.array(["" if is_missing(text) else text for text in given])
    by_id = by_id[texts[by_id] != ""]
    ids, texts, values = ids[by_id], texts[by_id], texts[by_id].astype(np.float64)
    changes, known = np.diff(values), np.unique(values)
    changes = changes[(np.diff(ids) == 0) & (changes != 0)]
    if column.too_many or not len(changes):
        return "number"
    if np.abs(changes).mean() < SMOOTH * _apart(values):
        return "number"
    width = known[-1] - known[0]
    alike = len({len(text) for text in {*texts.tolist()}}) == 1
    repeat = REPEATS * len(known) < len(values)
    if SPARSE * len(known) < width and repeat and alike and len(known) <= MOST_CODES:
        return "token"
    if len(known) <= RANGES or (len(known) > MOST_CODES and 2 * len(known) < width):
        return "number"
    ranges = np.searchsorted(np.quantile(known, np.arange(1, RANGES) / RANGES), values).astype(str)
    starts = np.flatnonzero(np.diff(ids, prepend=-1, append=-1))
    # Neither the names of ids nor the order of rows may change what is learned from.
    rows = sorted(
        (" ".join(sorted(texts[start:end])), start, end) for start, end in pairwise(starts)
    )
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:PROBED_SEQUENCES]]
    labels = [cells.texts[table.label][by_id[start]] for _, start, _ in rows]

    def error(cells: npt.NDArray[np.str_]) -> float:
        joined = [" ".join(cells[start:end]) for _, start, end in rows]
        return bayes_error(list(zip(joined, labels, strict=True)), str.split)

    by_code, by_range = error(texts), error(ranges)
    margin = SURE * np.sqrt(by_range * (1 - by_range) / max(1, len(rows) / 4))
    return "token" if by_code < min(CODES_BETTER * by_range, by_range - margin) else "number"


def _apart(values: npt.NDArray[np.float64]) -> float:
    """Return how far any two values are apart on average."""
    count, ordered = len(values), np.sort(values)
    ranks = 2 * np.arange(count) - count + 1
    return float(2 * (ranks * ordered).sum() / count**2)
