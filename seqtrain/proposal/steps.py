"""A table with a row per time step: which column is the id, the order, the label, a step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seqtrain.data.read_options import FileFormat, Schema
from seqtrain.data.readers.times import seconds_of
from seqtrain.errors import DataError
from seqtrain.proposal.columns import (
    LISTS,
    REPEATS,
    TEXT_NAMES,
    TIME_NAME,
    ColumnFacts,
    choose_label,
    wide_columns,
)
from seqtrain.proposal.contents import Facts
from seqtrain.proposal.naive_bayes import naive_bayes_error, token_ngrams
from seqtrain.text import listed, quote

PROBED_SEQUENCES = 2000
"""Sequences whose label is guessed from whole numbers: are they codes or measurements?"""
RANGES = 16
"""Ranges that whole numbers are sorted into for that guess; no more different ones are numbers."""
CODES_BETTER, SURE = 0.9, 2
"""Whole numbers are codes where their error is below this share of the error of their ranges, and
lower by so many standard errors."""
SMOOTH = 0.57
"""Neighbours of an id are measured where they differ by less standard deviations of all values."""
SPARSE = 20
"""Whole numbers that repeat are codes where less than one in so many between them occurs."""
MOST_CODES = 100
"""Whole numbers, more different ones than this and fewer than half of those between, are numbers
unless their column is named as codes are."""
NEARLY_UNIQUE = 0.9
"""Share of the rows of an id from which on numbers that differ may be times, if named so."""
EPOCHS = (1e8, 5e9)
"""Seconds since 1970 of times in data, from 1973 on; or 1000 times as many, and so on."""
PER_ID = "one for each id"
"""What is said of columns that `data.static` can take."""
ELAPSED = "elapsed"
"""Name of the numbers that say what the order grew by."""


def find_steps(
    columns: Sequence[ColumnFacts],
    named: Mapping[str, list[ColumnFacts]],
    kind: str | None,
    format: FileFormat,
) -> Facts | None:
    """Return how a table is read, if rows are time steps by their looks or by the user's word.

    `named` has the columns that the user names, by option; `kind` is what sequences are said to be.

    Raises:
        DataError: they are, and it isn't clear of which sequences, or what their label is.
    """
    has_names = all(isinstance(column.column, str) for column in columns)
    by_step = any(named[option] for option in ("id", "order", "steps"))
    if by_step and not has_names:
        raise DataError("--id: the columns have no names; where the first row has some: --header")
    if by_step and named["sequence"]:
        raise DataError("--sequence: leave it out where a row is a time step")
    is_sequence = named["sequence"] or kind or any(c.may_be_sequence for c in columns)
    if not by_step and (is_sequence or not has_names):
        return None
    id = _the_id(columns, **named)
    if id is None:
        if by_step:
            raise DataError(
                "--id: no such column has values that repeat, each with one label, and several of "
                "each label; give --id and --label"
            )
        return None
    fixed = [c for c in columns if _fixes(id, c)]
    (label,) = named["label"] or [choose_label([c for c in fixed if not _fixes(c, id)])]
    varying = [c for c in columns if c.column and c not in fixed]
    order = next(iter(named["order"]), None) or _order(varying, id)
    if order is None and not by_step and wide_columns(columns):
        return None
    steps, ignored, doubts = dict[str, str](), list[str](), list[str]()
    for column in (c for c in columns if c not in (id, label, order)):
        reason = _reason(column, id, label, fixed, named["steps"])
        if reason is None:
            steps[str(column.column)] = _kind(column, id, label, order)
            continue
        shown = quote(str(column.column))
        ignored.append(f"{shown} ({reason})" if reason else column.describe())
        if reason == "the label again":
            doubts.append(f"{shown} gives the label away, one value for each: left out")
    if not steps:
        if by_step:
            raise DataError(f"--steps: no column is left; found {listed(ignored)}")
        return None
    if order is None:
        doubts.extend(_unsorted(c for c in columns if c.kind == "date" and c not in fixed))
    elif np.isfinite(order.times).all():
        is_even = len(np.unique(_growth(id, order, sort=True))) < 2
        if not (is_even or order.is_calendar or ELAPSED in [c.column for c in columns]):
            steps[ELAPSED] = "order"
        doubts.extend(_mixed(id, order, (c for c in columns if c not in (id, order))))
    by = None if order is None else order.column
    schema = Schema("steps", id=id.column, order=by, label=label.column, steps=steps)
    return Facts(format, schema, ignored, doubts)


def _mixed(id: ColumnFacts, order: ColumnFacts, columns: Iterable[ColumnFacts]) -> Iterator[str]:
    """Doubt an id whose rows are several sequences side by side, told apart by a column."""

    def distinct(*given: npt.NDArray[np.generic]) -> int:
        return len(np.unique(np.stack(given, axis=1), axis=0))

    rows, own = len(id.codes), quote(str(id.column))
    are_tied = 2 * distinct(id.codes, order.times) <= rows
    for column in columns if are_tied else ():
        are_long = 3 * distinct(id.codes, column.codes) <= rows
        if are_long and distinct(id.codes, column.codes, order.times) == rows:
            other = quote(str(column.column))
            yield (
                f"rows of one {own} have the same {quote(str(order.column))}, one for each "
                f"{other}: if a sequence is of one {own} and one {other}, join the two into a "
                "column, and name it by --id"
            )


def _fixes(one: ColumnFacts, other: ColumnFacts, *, labelled: bool = False) -> bool:
    """Whether all rows with one value of a column have one value of another.

    With `labelled` rows count where the other isn't blank: one of an id may have its label.
    """
    left, right = one.codes, other.codes
    if labelled:
        known = np.array(other.cells) != ""
        left, right = np.unique(left[known], return_inverse=True)[1], right[known]
    pairs = np.unique(left * (right.max(initial=0) + 1) + right)
    return len(left) > 0 and len(pairs) == left.max() + 1


def _growth(id: ColumnFacts, column: ColumnFacts, *, sort: bool = False) -> npt.NDArray[np.float64]:
    """Return what numbers or ISO dates grow by within the rows of an id; NaN of others.

    With `sort` within the values of an id from the least on, wherever its rows stand.
    """
    values = column.times
    by_id = np.lexsort((values if sort else np.arange(len(values)), id.codes))
    growth: npt.NDArray[np.float64] = np.diff(values[by_id])[np.diff(id.codes[by_id]) == 0]
    return growth


def _the_id(
    columns: Sequence[ColumnFacts],
    id: list[ColumnFacts],
    label: list[ColumnFacts],
    **named: list[ColumnFacts],
) -> ColumnFacts | None:
    """Return the likeliest of the columns whose values repeat, each in rows of one label alone.

    Rows of one of its values have one value of all others of these; None: there are none.
    """
    if id and label:  # the reader says where an id has several labels
        return id[0]
    labels = [c for c in label or columns if c.can_be_label]
    found = [
        c
        for c in id or columns
        if c in id or (c.can_be_label and c.name and not c.odd)
        if c not in (*label, *named["order"], *named["steps"])
        if any(_fixes(c, y, labelled=bool(label)) and not _fixes(y, c) for y in labels)
    ]
    contiguous = [c for c in found if np.count_nonzero(np.diff(c.codes)) == c.codes.max()]
    codes = [c for c in found if c.is_code]
    names = [c for c in found if c.is_category and c.name not in TEXT_NAMES]
    names += [c for c in found if c.kind == "number" and c.repeats and not c.is_time]
    names = [c for c in names if any(x.is_measured for x in columns if x is not c)]
    likeliest = [c for c in codes if c in contiguous] or codes or contiguous or names
    ids = found if id else likeliest
    finest = next((one for one in ids if all(_fixes(one, other) for other in ids)), None)
    if ids and finest is None:
        shown = listed([quote(str(each.column)) for each in ids])
        raise DataError(f"--id: a row is a time step, of {shown}; choose one with --id COLUMN")
    return finest


def _order(columns: Sequence[ColumnFacts], id: ColumnFacts) -> ColumnFacts | None:
    """Return the column that sorts the rows of an id: ISO dates, times, or 0, 1, 2, …"""
    found = {}
    for number, column in enumerate(c for c in columns if np.isfinite(c.times).all()):
        growth, is_date = _growth(id, column), column.kind == "date"
        is_named = column.is_time and ((growth >= 0).all() or _are_times(column, id))
        if is_date or is_named or (growth == 1).all():
            found[is_date, column.codes.max(), -number] = column
    return found[max(found)] if found else None


def _are_times(column: ColumnFacts, id: ColumnFacts) -> bool:
    """Whether numbers of a column named so are times, though the rows aren't sorted by them."""
    growth, values = _growth(id, column, sort=True), column.times
    differ = np.count_nonzero(growth) >= NEARLY_UNIQUE * len(growth)
    low, high = EPOCHS
    scaled = any(low * k <= values.min() and values.max() <= high * k for k in (1, 1e3, 1e6, 1e9))
    named = TIME_NAME.fullmatch(column.name) and (values == np.rint(values)).all()
    return bool(column.is_calendar or (differ and (scaled or named)))


def _unsorted(dates: Iterable[ColumnFacts]) -> Iterator[str]:
    """Say that dates can't sort the rows of an id."""
    for column in dates:
        odd = next((cell for cell in column.cells if np.isnan(seconds_of(cell))), "")
        yield (
            "the rows of an id are taken as they stand in the file: "
            f"{quote(str(column.column), 40)} holds dates that aren't ISO, such as {quote(odd, 30)}"
            "; write them all so (2024-03-01 or 2024-03-01T09:51), or sort the file"
        )


def _reason(
    column: ColumnFacts,
    id: ColumnFacts,
    label: ColumnFacts,
    fixed: Sequence[ColumnFacts],
    given: Sequence[ColumnFacts],
) -> str | None:
    """Return why a column is left out, blank where its description says it, or None."""
    if given:
        return None if column in given else "not among --steps"
    if column.kind in LISTS:
        return ""
    if len(column.values) <= 1 and not column.too_many:
        return "one value" if column.values else "blank"
    if column in fixed:
        if _fixes(column, label) and _fixes(label, column):
            return "the label again"
        return "the id again" if _fixes(column, id) else PER_ID
    is_other = column.is_id or column.is_free_text or column.kind == "date" or not column.column
    return "" if is_other else None


def _kind(
    column: ColumnFacts, id: ColumnFacts, label: ColumnFacts, order: ColumnFacts | None
) -> str:
    """Return token or number; whole numbers may be codes of something."""
    if column.kind != "number" or column.is_code:
        return "token"
    if column.odd:
        raise DataError(f"--steps: {column.oddness}")
    by_id = np.lexsort((np.arange(len(id.codes)) if order is None else order.times, id.codes))
    by_id = by_id[np.isfinite(column.times[by_id])]
    ids, texts, values = id.codes[by_id], np.array(column.cells)[by_id], column.times[by_id]
    changes, known = np.diff(values), np.unique(values)
    changes = changes[(np.diff(ids) == 0) & (changes != 0)]
    if column.too_many or not len(changes) or np.abs(changes).mean() < SMOOTH * values.std():
        return "number"
    width, repeat = known[-1] - known[0], REPEATS * len(known) < len(values)
    alike = len({len(text) for text in {*texts.tolist()}}) == 1
    if SPARSE * len(known) < width and repeat and alike and len(known) <= MOST_CODES:
        return "token"
    if len(known) <= RANGES or (len(known) > MOST_CODES and 2 * len(known) < width):
        return "number"
    ranges = np.searchsorted(np.quantile(known, np.arange(1, RANGES) / RANGES), values).astype(str)
    labels = {i: cell for i, cell in zip(id.codes.tolist(), label.cells, strict=True) if cell}
    rows = np.split(np.arange(len(ids)), np.flatnonzero(np.diff(ids)) + 1)
    # Neither the names of ids nor the order of rows may change what is learned from.
    rows.sort(key=lambda row: " ".join(sorted(texts[row])))
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:PROBED_SEQUENCES]]
    by_code, by_range = (
        naive_bayes_error(
            token_ngrams([cells[row].tolist() for row in rows], 1),
            [labels.get(ids[row[0]], "") for row in rows],
        )
        for cells in (texts, ranges)
    )
    margin = SURE * np.sqrt(by_range * (1 - by_range) / max(1, len(rows) / 4))
    return "token" if by_code < min(CODES_BETTER * by_range, by_range - margin) else "number"
