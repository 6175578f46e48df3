"""Roles of columns of a table with a row per time step: id, label, order, steps, row features."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError
from seqtrain.proposal.names import TEXT_NAMES, TIME_NAME, TIME_WORD, is_code, is_time
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.prediction import information
from seqtrain.proposal.profile import LIST_KINDS, Column, Floats
from seqtrain.proposal.roles import (
    LABEL_RULES,
    Roles,
    choose_label,
    columns_named,
    commands,
    determines,
    points_of,
    wide_columns,
)
from seqtrain.text import listed, quote

CALENDAR = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])(\d{4}(\d\d)?)?")
"""Pattern of a date written as a whole number, such as 20240301, with a time of day or without."""
MOST_CANDIDATES = 50
"""Largest number of columns that are compared as ids, and as labels."""
SAMPLED_ROWS = 200_000
"""Number of rows of whole ids from which kinds of steps are told."""
NEARLY_ALL = 0.9
"""Numbers can be times if, sorted within each id, at least this share of neighbours differs."""
SMOOTH = 0.57
"""Numbers are measurements if neighbours differ by fewer standard deviations on average."""
EXPLAINED = (0.5, 0.98)
"""Smallest and largest share of the variance of a number's ranks that an explaining token has."""
ROWS_PER_TOKEN = 20
"""Fewest rows with a number per distinct token for a token to explain the number."""
TIME_KINDS = ("number", "time")
"""Kinds of columns that can hold the times of steps."""
EVEN = 1e-6
"""Times are even if their differences differ by at most this share: 0.1 isn't a float."""
ELAPSED = "elapsed"
"""Name of the step column that holds the increase of the order since the previous row."""


def can_be_sequence(column: Column) -> bool:
    """Return True for lists, and for texts most of which differ and that aren't codes or times."""
    if column.kind in LIST_KINDS:
        return True
    if column.kind != "text" or not column.differs or is_code(column):
        return False
    return not (is_time(column) and column.words <= 1) and column.pattern is None


def step_table(columns: Sequence[Column], options: InitOptions) -> Roles | None:
    """Return the roles of a table with one row per time step, or None if it isn't one.

    Rows are time steps if the user gave --id, --order or --steps. Without these options, the
    columns decide.

    Raises:
        DataError: If the id or the label isn't clear, the options don't fit the table, or numbers
            have units.
    """
    is_requested = is_step_request(options)
    if not may_be_step_table(columns, options):
        return None
    id = _find_id(columns, options)
    if id is None and is_requested:
        raise DataError(
            "--id: no such column has values that repeat, each with one label, and several of each "
            "label; give --id and --label"
        )
    if id is None:
        return None
    roles = _roles(columns, id, options)
    if roles.order is None and not is_requested and wide_columns(columns):
        return None
    StepColumns(columns, roles, options).assign()
    if not roles.steps and is_requested:
        ignored = f"; ignored: {listed(roles.ignored)}" if roles.ignored else ""
        raise DataError(
            f"--steps: no column is left{ignored}; a step needs at least one; name others"
        )
    return roles if roles.steps else None


def is_step_request(options: InitOptions) -> bool:
    """Return True if the user gave --id, --order or --steps."""
    return any(options.named(option) for option in ("id", "order", "steps"))


def may_be_step_table(columns: Sequence[Column], options: InitOptions) -> bool:
    """Return True if the user says that rows are time steps, or no column can hold a sequence.

    Raises:
        DataError: If the user says so, but --sequence is given, too.
    """
    has_names = all(isinstance(column.name, str) for column in columns)
    if not is_step_request(options):
        is_told = options.get("sequence") or options.kind
        return has_names and not is_told and not any(map(can_be_sequence, columns))
    if options.get("sequence"):
        raise DataError(
            "--sequence: a row is a time step with --id, --order or --steps; leave out --sequence"
        )
    return True


def _find_id(columns: Sequence[Column], options: InitOptions) -> Column | None:
    """Return the column of the sequence id, or None if there is none.

    The values of an id repeat, and all rows of one id have one label. At least one label has
    several ids. Of nested columns, the finest is the id.

    Raises:
        DataError: If several columns may be the id.
    """
    given, labels = columns_named(columns, options, "id"), columns_named(columns, options, "label")
    if given and labels:  # the reader reports an id with several labels
        return given[0]
    others = [*labels]
    for option in ("order", "steps"):
        others += columns_named(columns, options, option)
    possible = [column for column in columns if column.can_be_label]
    targets = labels or sorted(possible, key=lambda column: -points_of(column, LABEL_RULES))
    candidates = given
    if not given:
        candidates = [x for x in possible if x.name and not x.units and x not in others]
        if len(candidates) > MOST_CANDIDATES:
            candidates = [x for x in candidates if is_code(x)] or candidates[:MOST_CANDIDATES]
    found = []
    for column in candidates:
        if any(
            determines(column, label, labelled=bool(labels)) and not determines(label, column)
            for label in targets[:MOST_CANDIDATES]
            if label is not column
        ):
            found.append(column)
    ids = found if given else _likeliest_ids(found, columns)
    for column in ids:
        if all(determines(column, other) for other in ids):
            return column
    if ids:
        raise DataError(
            "--id: a row is a time step, but several columns may hold its id; choose one:",
            *commands("id", ids),
        )
    return None


def is_contiguous(column: Column) -> bool:
    """Return True if the rows of each value follow each other."""
    return bool(np.count_nonzero(np.diff(column.codes)) == len(column.values) - 1)


def _likeliest_ids(found: Sequence[Column], columns: Sequence[Column]) -> list[Column]:
    """Return the possible ids that are likeliest: the first of these groups that isn't empty.

    Codes whose equal values are contiguous; codes; columns whose equal values are contiguous; names
    and numbers that repeat, if another column holds measurements or times.
    """
    codes = [column for column in found if is_code(column)]
    contiguous = [column for column in found if is_contiguous(column)]
    names = [x for x in found if x.is_category and x.word not in TEXT_NAMES]
    names += [x for x in found if x.kind == "number" and x.repeats and not is_time(x)]
    measured = [x for x in columns if x.is_measured or (is_time(x) and x.kind in TIME_KINDS)]
    names = [x for x in names if any(other is not x for other in measured)]
    return [x for x in codes if x in contiguous] or codes or contiguous or names


def _roles(columns: Sequence[Column], id: Column, options: InitOptions) -> Roles:
    """Return the roles with this id, a label and an order. Other columns have no role yet.

    Raises:
        DataError: If the label isn't clear.
    """
    per_id = [column for column in columns if determines(id, column)]
    named = columns_named(columns, options, "label")
    label = named[0] if named else choose_label([x for x in per_id if not determines(x, id)])
    order = columns_named(columns, options, "order")
    if not order:
        varying = [x for x in columns if x.name and x not in per_id and x is not label]
        found = find_order(varying, id)
        order = [found] if found else []
    return Roles("steps", label, columns=columns, id=id, order=order[0] if order else None)


def sampled_ids(id: Column) -> npt.NDArray[np.intp] | slice:
    """Return the rows of whole ids, spread over all ids, or a slice of all rows if they are few."""
    if id.rows <= SAMPLED_ROWS:
        return slice(None)
    every = -(-id.rows // SAMPLED_ROWS)
    return np.flatnonzero(id.codes % every == 0)


def growth(column: Column, id: Column, *, sort: bool = False) -> Floats:
    """Return the differences of numbers between neighbouring rows of an id, id by id.

    Args:
        column: A column of numbers or times.
        id: The id column.
        sort: True to sort the numbers of each id first.
    """
    rows = sampled_ids(id)
    numbers, ids = column.numbers[rows], id.codes[rows]
    by_id = np.lexsort((numbers if sort else np.arange(len(ids)), ids))
    steps: Floats = np.diff(numbers[by_id])[np.diff(ids[by_id]) == 0]
    return steps[np.isfinite(steps)]


def find_order(columns: Sequence[Column], id: Column) -> Column | None:
    """Return the column that sorts the rows of an id, or None if no column does.

    Dates come before times and numbers, and then the column with most distinct values.
    """
    found = {}
    for number, column in enumerate(columns):
        if column.kind in LIST_KINDS or not (np.isfinite(column.numbers) | column.is_odd).all():
            continue
        if _sorts(column, id):
            is_date = column.kind == "time" and not column.is_duration
            found[is_date, len(column.values), -number] = column
    return found[max(found)] if found else None


def _sorts(column: Column, id: Column) -> bool:
    """Return True if numbers or times within an id are its order.

    Dates are. Numbers that count up evenly are. Times of day, durations, and numbers that are named
    like times are if they never decrease. If they do, numbers must be dates, or differ within an id
    and be Unix times, or whole numbers in a column with just a word for times as its name.
    """
    if column.kind == "time" and not column.is_duration:
        return True
    steps = growth(column, id)
    if len(steps) and steps.min() == steps.max() > 0:
        return True
    if not (is_time(column) or column.is_duration):
        return False
    if (steps >= 0).all() or is_calendar(column):
        return True
    differ = np.count_nonzero(growth(column, id, sort=True)) >= NEARLY_ALL * len(steps)
    is_word = TIME_WORD.fullmatch(column.word) and not column.has_decimals
    return bool(differ and (is_word or _are_epochs(column.value_numbers)))


def is_calendar(column: Column) -> bool:
    """Return True if all cells are dates written as whole numbers, such as 20240301."""
    return all(isinstance(x, str) and CALENDAR.fullmatch(x) for x in column.values)


def _are_epochs(numbers: Floats) -> bool:
    """Return True if numbers are Unix times of 1973 to 2128, in seconds or a smaller unit."""
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    return any(1e8 * unit <= low and high <= 5e9 * unit for unit in (1, 1e3, 1e6, 1e9))


class StepColumns:
    """Assignment of the columns of a step table that are neither id, label nor order.

    Args:
        columns: All columns.
        roles: Roles with the id, the label and the order. It receives the other columns.
        options: Options of the user.
    """

    def __init__(self, columns: Sequence[Column], roles: Roles, options: InitOptions) -> None:
        assert roles.id is not None
        assert roles.label is not None
        self.columns, self.roles = columns, roles
        self.id, self.label, self.order = roles.id, roles.label, roles.order
        self.chosen = columns_named(columns, options, "steps")
        self.per_id = {column for column in columns if determines(self.id, column)}
        self.rows = sampled_ids(self.id)

    def assign(self) -> None:
        """Add each column to the steps, the row features, or the ignored columns of the roles."""
        roles = self.roles
        for column in self.columns:
            if column not in (self.id, self.label, self.order):
                self._assign(column)
        if roles.static:
            names = listed([quote(name) for name in roles.static])
            roles.warnings.append(
                f"{names}: one value per {self.id.name}, used as row features (data.static); leave "
                "out what isn't known when the label is to be predicted"
            )
        self._explain_numbers()
        self._add_elapsed()

    def _assign(self, column: Column) -> None:
        """Make a column a time step, a row feature, or ignored.

        Raises:
            DataError: If numbers have units.
        """
        roles, is_static = self.roles, column in self.per_id
        reason = self._reason_to_ignore(column, is_static=is_static)
        if not (reason or self.chosen or is_static) and self._is_unread_time(column):
            example = next(x for x in column.values if x)
            roles.warnings.append(
                f"{column.shown} looks like a time that can't be read, such as "
                f"{quote(str(example), 30)}: not used, and rows stay in the order of the file; "
                "write it as 2024-03-01T09:51:00, or sort the file"
            )
            reason = "a time that can't be read"
        if reason is not None:
            shown = f"{column.shown} ({reason})" if reason else column.describe()
            roles.ignored.append(shown)
            if reason.startswith("the label"):
                roles.warnings.append(f"{column.shown} gives the label away ({reason}): not used")
            return
        if column.has_refused_units and not is_code(column):
            raise DataError(f"--steps: {column.unit_problem()}")
        kind = "number" if self._holds_amounts(column) else "token"
        if is_static:
            roles.static[str(column.name)] = kind
            return
        if kind == "number" and not column.is_duration and self._are_codes(column):
            kind = "token"
        roles.steps[str(column.name)] = kind

    def _holds_amounts(self, column: Column) -> bool:
        """Return True for durations, and numbers that the column's name doesn't call codes."""
        return column.is_duration or (column.kind == "number" and not is_code(column))

    def _reason_to_ignore(self, column: Column, *, is_static: bool) -> str | None:
        """Return the reason why a column is ignored, or None if it is used.

        If the user chose columns, exactly these are used. The reason is "" if the kind of content
        is the reason.
        """
        if self.chosen:
            return None if column in self.chosen else "not among --steps"
        if column.distinct < 2:
            return "one value" if column.distinct else "blank"
        if is_static and determines(column, self.label):
            is_detail = column.distinct <= 4 * self.label.distinct and not column.has_no_labels
            if determines(self.label, column):
                return "the label again"
            if is_detail and column.kind in ("text", "number"):
                return "the label in more detail"
        if is_static and not self._holds_amounts(column) and determines(column, self.id):
            return "the id again"
        if not column.name or column.is_unique:
            return ""
        if column.kind in LIST_KINDS or (column.kind == "time" and not column.is_duration):
            return ""
        least = 0.5 if column.is_free_text else 1 / column.rows
        return "" if column.kind == "text" and column.share_repeated < least else None

    def _is_unread_time(self, column: Column) -> bool:
        """Return True for texts of one pattern of digits that are named or behave like times."""
        if column.kind != "text" or column.pattern is None:
            return False
        if re.search(TIME_NAME.pattern.replace("order|", ""), column.word):
            return True
        order = np.argsort(np.argsort(np.array([*map(str, column.values)])))
        ranks = replace_numbers(column, order[column.codes].astype(np.float64))
        steps = growth(ranks, self.id)
        return bool(len(steps) and (steps >= 0).all() and (steps > 0).mean() > NEARLY_ALL)

    def _are_codes(self, column: Column) -> bool:
        """Return True if whole numbers of time steps are codes, and not measurements.

        Codes change abruptly from row to row, or rows are sorted by them. They are sparse and
        equally long, or tell the label better than sixteen ranges of them do.
        """
        if column.has_decimals:
            return False
        numbers, ids = column.numbers[self.rows], self.id.codes[self.rows]
        within = np.arange(len(ids)) if self.order is None else self.order.numbers[self.rows]
        by_id = np.lexsort((within, ids))
        by_id = by_id[np.isfinite(numbers[by_id])]
        numbers, ids = numbers[by_id], ids[by_id]
        changes = np.diff(numbers)[np.diff(ids) == 0]
        changes = changes[changes != 0]
        is_smooth = not len(changes) or np.abs(changes).mean() < SMOOTH * numbers.std()
        is_sorted = len(changes) > 0 and changes.min() > 0
        if is_smooth and not is_sorted:
            return False
        distinct, width = np.unique(numbers), np.ptp(numbers)
        lengths = {len(value) for value in column.values if value}
        is_sparse = 20 * len(distinct) < width and len(distinct) <= 100
        if is_sparse and len(lengths) == 1 and column.repeats and not is_smooth:
            return True
        if len(distinct) <= 16 or (len(distinct) > 100 and 2 * len(distinct) < width):
            return False
        ranges = np.searchsorted(np.quantile(distinct, np.arange(1, 16) / 16), numbers)
        labels = self._labels()
        by_code = information(np.searchsorted(distinct, numbers), ids, labels)
        by_range = information(ranges, ids, labels)
        return by_code > max(0.02, 1.5 * by_range)

    def _labels(self) -> npt.NDArray[np.int32]:
        """Return the code of the label of each id. Perhaps only one of its rows has the label."""
        labels = np.zeros(len(self.id.values), dtype=np.int32)
        known = ~self.label.is_blank
        labels[self.id.codes[known]] = self.label.codes[known]
        return labels

    def _explain_numbers(self) -> None:
        """Set the type of numbers whose meaning depends on a token of the step."""
        steps = self.roles.steps
        tokens = [column for column in self.columns if steps.get(str(column.name)) == "token"]
        for column in self.columns:
            name = str(column.name)
            if steps.get(name) != "number":
                continue
            by = token_that_explains(column, tokens, self.rows)
            if by is not None:
                steps[name] = {"number": True, "by": by}

    def _add_elapsed(self) -> None:
        """Add the increase of an uneven order to the steps, and doubts about the order."""
        roles, order = self.roles, self.order
        if order is None:
            roles.warnings += self._unsorted()
            return
        if (np.isfinite(order.numbers) | order.is_odd).all():
            steps = growth(order, self.id, sort=True)
            is_even = not len(steps) or np.ptp(steps) <= EVEN * np.abs(steps).max()
            names = [column.name for column in self.columns]
            if not (is_even or is_calendar(order) or ELAPSED in names):
                roles.steps[ELAPSED] = "order"
            roles.warnings += self._mixed(order)

    def _unsorted(self) -> Iterator[str]:
        """Yield a warning for each column of dates that can't sort rows: none can be read."""
        for column in self.columns:
            if column.kind != "time" or column in self.per_id or column.is_duration:
                continue
            if np.isnan(column.numbers).all():
                cell = next(filter(None, column.values), "")
                yield (
                    f"rows are used in the order of the file: the dates of {column.shown}, such as "
                    f"{quote(cell, 30)}, can be read in several ways or in none; write them as "
                    "2024-03-01 or 2024-03-01T09:51, or sort the file"
                )

    def _mixed(self, order: Column) -> Iterator[str]:
        """Yield a warning for each column that seems to divide the rows of an id into sequences.

        Many rows of an id have an equal order, each with another value in the column.
        """
        ids, times = self.id.codes[self.rows], order.codes[self.rows]
        rows, name = len(ids), quote(str(self.id.name))
        if 2 * _distinct(ids, times) > rows:
            return
        for column in self.columns:
            codes = column.codes[self.rows]
            if column in (self.id, order) or 3 * _distinct(ids, codes) > rows:
                continue
            if _distinct(ids, codes, times) == rows:
                other = quote(str(column.name))
                yield (
                    f"rows of one {name} have the same {quote(str(order.name))}, one for each "
                    f"{other}: if a sequence has one {name} and one {other}, join the two into a "
                    "column, and name it with --id"
                )


def replace_numbers(column: Column, numbers: Floats) -> Column:
    """Return the column with other numbers per row."""
    found = Column(column.name, column.values, column.codes)
    found.__dict__["numbers"] = numbers
    return found


def _distinct(*codes: npt.NDArray[Any]) -> int:
    """Return the number of distinct rows of several codes."""
    joined = np.zeros(len(codes[0]), dtype=np.int64)
    for each in codes:
        joined = np.unique(joined * (int(each.max(initial=0)) + 1) + each, return_inverse=True)[1]
    return int(joined.max(initial=-1)) + 1


def token_that_explains(
    column: Column, tokens: Sequence[Column], rows: npt.NDArray[np.intp] | slice
) -> str | None:
    """Return the name of the token column on which the meaning of numbers depends, or None.

    Its tokens explain half of the variance of the numbers' ranks or more. Each distinct token has
    twenty numbers or more, on average. Of several such columns, the one that explains most counts.

    Args:
        column: The column of numbers.
        tokens: Columns of tokens from which one is chosen.
        rows: Rows to look at.
    """
    numbers = column.numbers[rows]
    present = np.isfinite(numbers)
    ranks = np.unique(numbers[present], return_inverse=True)[1].astype(np.float64)
    found = {}
    for other in tokens:
        codes = other.codes[rows][present]
        counts = np.bincount(codes)
        means = np.bincount(codes, ranks) / counts.clip(1)
        share = float(np.var(means[codes]) / max(np.var(ranks), 1e-9)) if len(codes) else 0.0
        is_frequent = len(codes) >= ROWS_PER_TOKEN * np.count_nonzero(counts)
        if is_frequent and EXPLAINED[0] <= share <= EXPLAINED[1]:
            found[share] = str(other.name)
    return found[max(found)] if found else None
