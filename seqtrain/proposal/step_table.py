"""Tables with one row per time step: the roles of their columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.proposal.cell_kinds import LIST_KINDS
from seqtrain.proposal.column_names import TEXT_NAMES
from seqtrain.proposal.columns import TIME_NAME, ColumnProfile, columns_named
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.proposal.label_column import choose_label, commands, label_score
from seqtrain.proposal.number_codes import are_codes, token_that_explains
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.sequence_columns import wide_columns
from seqtrain.sequences.read_options import FileFormat, Schema
from seqtrain.text import listed, quote

MOST_CANDIDATES = 50
"""Largest number of columns that are compared as ids, and as labels."""
NEARLY_UNIQUE = 0.9
"""Numbers can be times if, sorted within each id, at least this share of neighbours differs."""
EPOCH_SECONDS = (1e8, 5e9)
"""Range of plausible Unix times in seconds. Milliseconds and so on are multiples of it."""
REPEATED_TEXT = 0.5
"""Free texts are tokens if at least this share of the rows have a text that occurs again."""
MOST_LABEL_VALUES = 4
"""A column with one value per id can give the label away up to this many values per class."""
ELAPSED = "elapsed"
"""Name of the step column that holds the increase of the order since the previous row."""


@dataclass
class StepTable:
    """Roles of the columns of a table with one row per time step.

    Attributes:
        columns: All columns.
        id: Column of the sequence id.
        label: Column of the label.
        order: Column that sorts the rows of an id, or None if the file is in order.
        chosen: Columns of time steps that the user chose, or an empty sequence.
        steps: Maps the name of each step column to its type: "token", "number", "order", or a
            dictionary for a number whose meaning a token decides.
        static: Maps the name of each row feature to its type, "token" or "number".
        ignored: Names of columns that are left out, each with its content or the reason.
        warnings: Doubts about the columns, one line each.
    """

    columns: Sequence[ColumnProfile]
    id: ColumnProfile
    label: ColumnProfile
    order: ColumnProfile | None
    chosen: Sequence[ColumnProfile]
    steps: dict[str, Any] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def per_id(self) -> set[ColumnProfile]:
        """Columns whose value is equal in all rows of an id, such as the id itself."""
        return {column for column in self.columns if determines(self.id, column)}

    @property
    def others(self) -> list[ColumnProfile]:
        """Columns except the id, the label and the order."""
        return [x for x in self.columns if x not in (self.id, self.label, self.order)]


def find_step_table(
    columns: Sequence[ColumnProfile], options: InitOptions, format: FileFormat
) -> DataProfile | None:
    """Return a profile with the roles of columns if rows are time steps, or None if they aren't.

    Rows are time steps if the user gave --id, --order or --steps. Without these options, the
    columns decide. The profile has no counts yet.

    Args:
        columns: Profiles of all columns.
        options: Options of the user, whose columns exist.
        format: How the file is written.

    Raises:
        DataError: If the id or the label isn't clear, the options don't fit the table, or numbers
            have units.
    """
    is_requested = any(options.named(option) for option in ("id", "order", "steps"))
    if not is_requested and not _may_be_step_table(columns, options):
        return None
    _check_request(columns, options, is_requested=is_requested)
    id = _find_id(columns, options)
    if id is None:
        if is_requested:
            raise DataError(
                "--id: no such column has values that repeat, each with one label, and several of "
                "each label; give --id and --label"
            )
        return None
    table = _assign_roles(columns, id, options)
    if table.order is None and not is_requested and wide_columns(columns):
        return None
    _assign_columns(table)
    if not table.steps:
        if is_requested:
            ignored = f"; ignored: {listed(table.ignored)}" if table.ignored else ""
            raise DataError(
                f"--steps: no column is left{ignored}; a step needs at least one; name others"
            )
        return None
    _check_order(table)
    order = None if table.order is None else table.order.column
    schema = Schema(
        "steps",
        id=id.column,
        order=order,
        **table.label.as_label,
        steps=table.steps,
        static=table.static or None,
    )
    numbers = {name for name, kind in (table.steps | table.static).items() if kind == "number"}
    tokens = [x for x in columns if table.steps.get(str(x.column)) == "token"]
    for column in columns:
        name = str(column.column)
        by = token_that_explains(column, tokens) if table.steps.get(name) == "number" else None
        if by is not None:
            table.steps[name] = {"number": True, "by": by}
    if any(x.has_decimal_commas and x.column in numbers for x in columns):
        format = replace(format, decimal=",")
    return DataProfile(format, schema, table.ignored, table.warnings)


def _may_be_step_table(columns: Sequence[ColumnProfile], options: InitOptions) -> bool:
    """Return True if all columns have names, and none can hold whole sequences.

    The result is False if the user gave the sequence or the kind.
    """
    has_names = all(isinstance(column.column, str) for column in columns)
    has_sequence = any(column.can_be_sequence for column in columns)
    return has_names and not (options.get("sequence") or options.kind or has_sequence)


def _check_request(
    columns: Sequence[ColumnProfile], options: InitOptions, *, is_requested: bool
) -> None:
    """Raise a DataError if the user requests a step table, but columns or options don't allow it.

    Args:
        columns: All columns, which must have names.
        options: Options of the user, which must not name the sequence.
        is_requested: True if the user gave --id, --order or --steps.
    """
    if is_requested and not all(isinstance(column.column, str) for column in columns):
        raise DataError("--id: the columns have no names; if the first row has some: --header")
    if is_requested and options.get("sequence"):
        raise DataError(
            "--sequence: a row is a time step with --id, --order or --steps; leave out --sequence"
        )


def _assign_roles(
    columns: Sequence[ColumnProfile], id: ColumnProfile, options: InitOptions
) -> StepTable:
    """Return a table with this id, a label and an order. Its other columns have no role yet.

    The label and the order are those that the options name. If the options name none, they are
    chosen from the columns.

    Raises:
        DataError: If the label isn't clear.
    """
    per_id = [column for column in columns if determines(id, column)]
    named = columns_named(columns, options, "label")
    candidates = [column for column in per_id if not determines(column, id)]
    label = named[0] if named else choose_label(candidates)
    varying = [column for column in columns if column.column and column not in per_id]
    order = next(iter(columns_named(columns, options, "order")), None) or _find_order(varying, id)
    return StepTable(columns, id, label, order, columns_named(columns, options, "steps"))


def determines(one: ColumnProfile, other: ColumnProfile, *, labelled: bool = False) -> bool:
    """Return True if rows with equal values in `one` always have equal values in `other`.

    Only the kept rows are compared. The result is False if there are none.

    Args:
        one: The column that may determine the other.
        other: The column that may be determined.
        labelled: True to ignore rows in which `other` is blank. Perhaps only one row of an id holds
            its label.
    """
    left, right = one.codes, other.codes
    if labelled:
        is_known = np.array(other.cells) != ""
        left, right = np.unique(left[is_known], return_inverse=True)[1], right[is_known]
    pairs = np.unique(left * (right.max(initial=0) + 1) + right)
    return len(left) > 0 and len(pairs) == left.max() + 1


def _find_id(columns: Sequence[ColumnProfile], options: InitOptions) -> ColumnProfile | None:
    """Return the column of the sequence id, or None if there is none.

    The values of an id repeat, and all rows of one id have one label. At least one label has
    several ids. `_likeliest_ids` chooses among such columns. If it returns several, the one that
    determines all others is the id.

    If the user names an id, only this column is tried. If the user also names a label, the id is
    returned without a check.

    Raises:
        DataError: If several columns may be the id.
    """
    given, labels = columns_named(columns, options, "id"), columns_named(columns, options, "label")
    if given and labels:  # the reader reports an id with several labels
        return given[0]
    others = [
        *labels,
        *columns_named(columns, options, "order"),
        *columns_named(columns, options, "steps"),
    ]
    targets = labels or sorted(
        (column for column in columns if column.can_be_label), key=lambda x: -label_score(x)
    )
    candidates = given or [
        column
        for column in columns
        if column.can_be_label and column.name and not column.units and column not in others
    ]
    if len(candidates) > MOST_CANDIDATES:
        candidates = [x for x in candidates if x.is_code] or candidates[:MOST_CANDIDATES]
    found = [
        column
        for column in candidates
        if any(
            determines(column, label, labelled=bool(labels)) and not determines(label, column)
            for label in targets[:MOST_CANDIDATES]
            if label is not column
        )
    ]
    ids = found if given else _likeliest_ids(found, columns)
    finest = next((one for one in ids if all(determines(one, other) for other in ids)), None)
    if ids and finest is None:
        raise DataError(
            "--id: a row is a time step, but several columns may hold its id; choose one:",
            *commands("id", ids),
        )
    return finest


def _likeliest_ids(
    found: Sequence[ColumnProfile], columns: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    """Return the possible ids that are likeliest: the first of these groups that isn't empty.

    1. Columns named like codes whose equal values are contiguous.
    2. Columns named like codes.
    3. Columns whose equal values are contiguous.
    4. Names and numbers that repeat, if another column holds measurements.

    Args:
        found: The possible ids.
        columns: All columns.

    Returns:
        The columns of the group, or an empty list if all groups are empty.
    """
    contiguous = [x for x in found if np.count_nonzero(np.diff(x.codes)) == x.codes.max()]
    codes = [x for x in found if x.is_code]
    names = [x for x in found if x.is_category and x.name not in TEXT_NAMES]
    names += [x for x in found if x.kind == "number" and x.repeats and not x.is_time]
    measured = [x for x in columns if x.is_measured]
    names = [x for x in names if any(other is not x for other in measured)]
    return [x for x in codes if x in contiguous] or codes or contiguous or names


def _growth(
    id: ColumnProfile, column: ColumnProfile, *, sort: bool = False
) -> npt.NDArray[np.float64]:
    """Return the differences of a column between consecutive rows of the same id, (N,), id by id.

    Args:
        id: The id column.
        column: The column, which holds numbers or dates.
        sort: True to sort the values of each id first.
    """
    values = column.times
    by_id = np.lexsort((values if sort else np.arange(len(values)), id.codes))
    growth: npt.NDArray[np.float64] = np.diff(values[by_id])[np.diff(id.codes[by_id]) == 0]
    return growth


def _find_order(columns: Sequence[ColumnProfile], id: ColumnProfile) -> ColumnProfile | None:
    """Return the column that sorts the rows of an id, or None if no column does.

    No cell of the column may be blank or unreadable. It holds one of:

    - Dates.
    - Times and durations that never decrease within an id, or that `_are_times` accepts.
    - Numbers that grow by the same amount from row to row of each id.

    Of several such columns, dates are preferred, then the column with most distinct values.

    Args:
        columns: Columns that vary within an id.
        id: The id column.
    """
    found = {}
    for number, column in enumerate(c for c in columns if np.isfinite(c.times).all()):
        growth = _growth(id, column)
        is_date = column.kind == "date" and not column.is_duration
        is_even = len(growth) > 0 and growth.min() == growth.max() > 0
        is_time = (column.is_time or column.is_duration) and (
            (growth >= 0).all() or _are_times(column, id)
        )
        if is_date or is_time or is_even:
            found[is_date, column.codes.max(), -number] = column
    return found[max(found)] if found else None


def _are_times(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if a column holds times that need not grow from row to row.

    Dates such as 20240301 always are times. Other numbers are times if nearly all of them differ
    within an id (`NEARLY_UNIQUE`), and one of these conditions is met:

    - They are in the range of Unix times.
    - They are whole, and the column's name is just a word of `TIME_NAME`.

    Args:
        column: A column of durations, or one named like times.
        id: The id column.
    """
    growth, values = _growth(id, column, sort=True), column.times
    differ = np.count_nonzero(growth) >= NEARLY_UNIQUE * len(growth)
    low, high = EPOCH_SECONDS
    units = (1, 1e3, 1e6, 1e9)
    is_epoch = any(low * k <= values.min() and values.max() <= high * k for k in units)
    is_named = TIME_NAME.fullmatch(column.name) and (values == np.rint(values)).all()
    return bool(column.is_calendar or (differ and (is_epoch or is_named)))


def _reason_to_ignore(table: StepTable, column: ColumnProfile) -> str | None:
    """Return the reason why a column is ignored, or None if it is used.

    If the user chose columns, exactly these are used. If not, these columns are ignored:

    - Columns of one value, and columns that repeat the id or tell the label.
    - Lists, dates, unique values, texts that hardly repeat, and columns without a name. Their
      reason is "", as `ColumnProfile.describe` gives it.

    Times of day and durations are used.
    """
    if table.chosen:
        return None if column in table.chosen else "not among --steps"
    if len(column.values) < 2 and not column.has_no_labels:
        return "one value" if column.values else "blank"
    if column in table.per_id and determines(column, table.label):
        most = MOST_LABEL_VALUES * len(table.label.values)
        is_detail = column.kind in ("text", "number") and len(column.values) <= most
        if determines(table.label, column):
            return "the label again"
        if is_detail and not column.has_no_labels:
            return "the label in more detail"
    is_number = column.is_duration or (column.kind == "number" and not column.is_code)
    if column in table.per_id and not is_number and determines(column, table.id):
        return "the id again"
    least = REPEATED_TEXT if column.is_free_text else 1 / column.rows
    is_text = column.kind == "text" and column.share_repeated < least
    is_other = column.is_id or is_text or column.kind in ("date", *LIST_KINDS)
    return "" if not column.column or (is_other and not column.is_duration) else None


def _assign_columns(table: StepTable) -> None:
    """Add each column of `table.others` to `steps`, `static` or `ignored` of the table.

    Add warnings about columns that give the label away, and about row features.

    Raises:
        DataError: If numbers have units, or commas that aren't all decimal commas.
    """
    for column in table.others:
        reason = _reason_to_ignore(table, column)
        if reason is None:
            role = table.static if column in table.per_id else table.steps
            role[str(column.column)] = _token_or_number(table, column)
            continue
        shown = quote(str(column.column))
        table.ignored.append(f"{shown} ({reason})" if reason else column.describe())
        if reason.startswith("the label"):
            table.warnings.append(f"{shown} gives the label away ({reason}): not used")
    if table.static:
        names = listed([quote(name) for name in table.static])
        table.warnings.append(
            f"{names}: one value per {table.id.column}, used as row features (data.static); leave "
            "out what isn't known when the label is to be predicted"
        )


def _check_order(table: StepTable) -> None:
    """Add the increase of an uneven order to `steps`, and warnings about a doubtful order.

    The increase isn't added for dates such as 20240301, or if a column is named `ELAPSED`. If the
    table has no order, the warnings are about dates that can't be read.
    """
    order, id = table.order, table.id
    if order is None:
        dates = [x for x in table.columns if x.kind == "date" and x not in table.per_id]
        table.warnings += _unsorted(dates)
    elif np.isfinite(order.times).all():
        is_even = len(np.unique(_growth(id, order, sort=True))) < 2
        if not (is_even or order.is_calendar or ELAPSED in [x.column for x in table.columns]):
            table.steps[ELAPSED] = "order"
        table.warnings += _mixed(table, order)


def _unsorted(dates: Sequence[ColumnProfile]) -> Iterator[str]:
    """Yield a warning for each column that can't sort rows because its dates can't be read.

    Args:
        dates: Columns of dates.
    """
    for column in dates:
        if np.isnan(column.times).all():
            cell = next(filter(None, column.cells), "")
            yield (
                f"rows are used in the order of the file: the dates of {column.shown}, such as "
                f"{quote(cell, 30)}, can be read in several ways or in none; write them as "
                "2024-03-01 or 2024-03-01T09:51, or sort the file"
            )


def _mixed(table: StepTable, order: ColumnProfile) -> Iterator[str]:
    """Yield a warning for each column that seems to divide the rows of an id into sequences.

    Many rows of an id have an equal order, and each of these rows has another value in the column.
    """

    def distinct(*arrays: npt.NDArray[np.generic]) -> int:
        return len(np.unique(np.stack(arrays, axis=1), axis=0))

    id = table.id
    rows, name = len(id.codes), quote(str(id.column))
    if 2 * distinct(id.codes, order.times) > rows:
        return
    for column in table.columns:
        if column in (id, order) or 3 * distinct(id.codes, column.codes) > rows:
            continue
        if distinct(id.codes, column.codes, order.times) == rows:
            other = quote(str(column.column))
            yield (
                f"rows of one {name} have the same {quote(str(order.column))}, one for each "
                f"{other}: if a sequence has one {name} and one {other}, join the two into a "
                "column, and name it with --id"
            )


def _token_or_number(table: StepTable, column: ColumnProfile) -> str:
    """Return "number" if a column holds measurements or durations, else "token".

    Numbers are tokens if the column is named like codes, or if `are_codes` returns True.

    Raises:
        DataError: If numbers have units, or commas that aren't all decimal commas.
    """
    if column.is_duration:
        return "number"
    if column.kind != "number" or column.is_code:
        return "token"
    if column.units and not column.has_decimal_commas:
        raise DataError(f"--steps: {column.unit_problem()}")
    if column in table.per_id or not are_codes(column, table.id, table.label, table.order):
        return "number"
    return "token"
