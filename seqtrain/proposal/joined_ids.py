"""Ids of sequences in several columns together, such as a subject and the number of a trial."""

from __future__ import annotations

from itertools import combinations

from seqtrain.errors import DataError, marked
from seqtrain.proposal.names import (
    LONG_TERM,
    is_channel,
    is_code_or_owner,
    is_counting,
    is_no_outcome,
    is_part_of_id,
    is_trial,
    level_of,
)
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import IdRows
from seqtrain.proposal.profile import (
    ColumnProfile,
    Columns,
    JoinedColumn,
    determines,
    is_contiguous,
    joined_codes,
    joined_column,
    refines,
    without,
)
from seqtrain.proposal.roles import columns_named, command_naming, likeliest_labels

ROWS_TRIED = 20_000
"""Number of first rows that tell that most columns aren't an id."""
MOST_PARTS, MOST_COLUMNS = 6, 3
"""Most columns that may be parts of an id, and most that are one id together."""


def find_joined_id(
    columns: Columns, options: InitOptions, *, has_labels: bool = True
) -> JoinedColumn | None:
    """Return the columns that are the id of a sequence together, or None if one column may be it.

    At least one is named like ids, owners, trials or dates. The rows with equal cells in all of
    them stand together, or a column counts them. In the rows of any fewer of these columns, a
    column that counts begins again, or the label changes. If a column has another name, the label
    is no reason. A column that begins again on each date is none: a sequence may be longer.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
        has_labels: True if the rows of an id have one label. False if the label changes within it.

    Raises:
        DataError: If several choices of columns may be the id.
    """
    taken = [*columns_named(columns, options, "label"), *columns_named(columns, options, "steps")]
    possible = [x for x in columns if x not in taken and _may_be_part(x)]
    possible = sorted(possible, key=lambda x: not _is_named(x))[:MOST_PARTS]
    finder = _Finder(columns, options, has_labels=has_labels)
    found = list[JoinedColumn]()
    for size in range(2, MOST_COLUMNS + 1):
        for parts in combinations(possible, size):
            if not any(map(_is_named, parts)):
                continue
            if not finder.may_be_id(parts):
                continue
            id = JoinedColumn(*sorted(parts, key=columns.index))
            if all(not determines(id, other) for other in found) and finder.is_id(id):
                found.append(id)
        named = [id for id in found if all(map(_is_named, id.parts))]
        found = named or found
        if len(found) == 1:
            return found[0]
        if found:
            lines = [f"  {command_naming('id', id.parts)}" for id in found]
            raise DataError(
                marked("--id: several columns may be its id together; choose one:"), *lines
            )
    return None


def _may_be_part(column: ColumnProfile) -> bool:
    """Return True if a column may be a part of an id: names, whole numbers or dates that repeat."""
    if column.distinct < 2 or 2 * column.distinct > column.rows or column.is_duration:
        return False
    if is_counting(column) and not _is_named(column):
        return False
    return column.kind == "time" or (column.kind in ("text", "number") and column.can_be_label)


def _is_named(column: ColumnProfile) -> bool:
    """Return True if a column is named like parts of ids, or holds dates."""
    return column.kind == "time" or is_part_of_id(column) or is_code_or_owner(column)


def _is_long_term(column: ColumnProfile) -> bool:
    """Return True for dates, sessions, visits and halves: several may be one sequence."""
    return column.time_type != "" or level_of(column) in LONG_TERM


class _Finder:
    """Checks whether columns are an id together."""

    def __init__(self, columns: Columns, options: InitOptions, *, has_labels: bool) -> None:
        self.has_labels = has_labels
        self.columns = columns
        self.numbers = [x for x in columns if x.kind in ("number", "time") and not x.is_constant]
        self.counters = [x for x in self.numbers if x.kind == "time" or is_counting(x)]
        self.labels = columns_named(columns, options, "label")

    def may_be_id(self, parts: Columns) -> bool:
        """Return False if the first rows tell that some columns aren't an id, which is fast.

        In a million rows, several columns of codes have hundreds of thousands of combinations.
        """
        codes = joined_codes([part.codes[:ROWS_TRIED] for part in parts])
        if 2 * (codes.max(initial=0) + 1) > len(codes):
            return False
        if is_contiguous(codes):
            return True
        others = without(self.numbers, parts)
        return any(IdRows(codes).are_counted_by(x) for x in others)

    def is_id(self, id: JoinedColumn) -> bool:
        """Return True if all of some columns are an id, and no fewer of them."""
        if 2 * id.distinct > id.rows:
            return False
        counters = without(self.counters, id.parts)
        others = without(self.numbers, [*id.parts, *counters, *self.labels])
        within = [x for x in counters if _sorts_rows(x, id)]
        whole = [x for x in others if not x.has_decimals]
        within += filter(IdRows(id.codes).are_counted_by, whole)
        if not within and (counters or not id.is_contiguous or self._has_finer_id(id, whole)):
            return False
        labels = list[ColumnProfile]()
        if self.has_labels:
            is_sparse, possible = bool(self.labels), self._labels(id, within)
            labels = [x for x in possible if refines(id, x, labelled=is_sparse)]
        if self.has_labels and not labels:
            return False
        are_named = all(map(_is_named, id.parts))
        has_trials = any(map(is_trial, id.parts))
        for size in range(1, len(id.parts)):
            for parts in combinations(id.parts, size):
                fewer = joined_column(parts)
                missing = without(id.parts, parts)
                begins_again = any(not _sorts_rows(x, fewer) for x in within)
                is_divided = id.is_contiguous and not fewer.is_contiguous
                changes = any(not determines(fewer, x, labelled=True) for x in labels)
                is_reason = has_trials or not all(map(_is_long_term, missing))
                is_reason = is_reason and not all(map(is_channel, missing))
                if not ((is_reason and (begins_again or is_divided)) or (are_named and changes)):
                    return False
        return True

    def _has_finer_id(self, id: JoinedColumn, numbers: Columns) -> bool:
        """Return True if a number counts the rows of an id with one more column than this one."""
        for column in self.columns:
            if column in id.parts or not (_is_named(column) and _may_be_part(column)):
                continue
            rows = IdRows(JoinedColumn(*id.parts, column).codes)
            if any(rows.are_counted_by(x) for x in numbers if x is not column):
                return True
        return False

    def _labels(self, id: JoinedColumn, within: Columns) -> list[ColumnProfile]:
        """Return the likeliest labels among the columns that are no part of an id.

        Args:
            id: The id.
            within: Columns that sort its rows.
        """
        if self.labels:
            return self.labels
        taken = (*id.parts, *self.counters, *within)
        others = without(self.columns, taken)
        return likeliest_labels([x for x in others if x.can_be_label and not is_no_outcome(x)])


def _sorts_rows(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if a column sorts the rows of each id that stand together, or counts others."""
    rows = IdRows(id.codes)
    if not id.is_contiguous:
        return rows.are_counted_by(column)
    steps = rows.steps(column)
    return bool(len(steps) and ((steps >= 0).all() or (steps <= 0).all()) and steps.any())
