"""Times that may count down, such as the clock of a game: doubts with a command that turns them."""

from collections.abc import Iterator

from seqtrain.proposal.conversions import advised, table_conversion_lines
from seqtrain.proposal.names import LEVEL_OF_QUARTERS, PARTS, level_of, may_count_down
from seqtrain.proposal.order import IdRows, Order, is_known
from seqtrain.proposal.profile import ColumnProfile, determines
from seqtrain.proposal.roles import Roles, options_naming
from seqtrain.proposal.table import Table


def countdown_doubts(roles: Roles, table: Table) -> Iterator[str]:
    """Yield a doubt about a column that may count down, unless the user named the order.

    It is the last column of the order, and named so or a time after the number of a part. Without
    an order, it is named so, and the rows of an id don't stand in its falling order.
    """
    if roles.id is None or table.options.named("order"):
        return
    if roles.order:
        *coarse, last = roles.order.columns
        is_after_part = last.is_duration and any(map(_is_part, coarse))
        if may_count_down(last) or is_after_part:
            yield from _doubt(coarse, last, table)
        if coarse or may_count_down(last):
            return
    coarse = list(roles.order.columns)
    if not coarse:
        known = [x for x in roles.columns if _is_part(x) and is_known(x, roles.id)]
        coarse = [x for x in known if not determines(roles.id, x)]
    for column in roles.columns:
        is_time = column.kind in ("number", "time") and may_count_down(column)
        if is_time and is_known(column, roles.id) and _sorts_falling(column, coarse, roles.id):
            yield from _doubt(coarse, column, table)


def _is_part(column: ColumnProfile) -> bool:
    """Return True if the column is named like quarters, halves and other parts of a sequence."""
    return level_of(column) in (LEVEL_OF_QUARTERS, PARTS)


def _sorts_falling(column: ColumnProfile, coarse: list[ColumnProfile], id: ColumnProfile) -> bool:
    """Return True if nearly all numbers of an id differ, and its rows aren't in falling order."""
    rows = IdRows(id.codes)
    if coarse:
        rows = rows.divided_by(Order(*coarse))
    return rows.mostly_differ_in(column) and bool((rows.steps(column) > 0).any())


def _doubt(coarse: list[ColumnProfile], column: ColumnProfile, table: Table) -> Iterator[str]:
    """Yield lines of the doubt about a column that may count down within those before it."""
    found = (
        f"if {column.shown} counts down within a sequence, as the clock of a game does, write a "
        "minus before its cells, and sort by it (--order)"
    )
    lines = list[str]()
    if table.has_named_columns:
        options = {"rule": "minus", "column": [column.name_text]}
        order = options_naming("order", [*coarse, column])
        lines = table_conversion_lines(table, "cells", order, **options)
    yield from advised(found, lines)
