"""Windows of step tables whose label changes within an id, as in recordings of activities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.proposal.names import is_code_or_owner, is_time
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.profile import Column
from seqtrain.proposal.roles import LABEL_RULES, Roles, columns_named, likeliest
from seqtrain.proposal.step_roles import StepColumns, find_order, is_contiguous, may_be_step_table
from seqtrain.text import listed, quote

FEWEST_ROWS = 8
"""Fewest rows per id, on average, that can be cut into windows."""
SHORTEST_RUN = 3
"""Fewest rows in which a label stays, on average. If it changes faster, rows aren't in time."""
SHORTEST, LONGEST = 4, 128
"""Fewest and most time steps of a proposed window."""


def window_table(columns: Sequence[Column], options: InitOptions) -> Roles | None:
    """Return the roles of a table whose rows are cut into windows, or None if it isn't one.

    Such a table has an id with many rows each, in time, measured numbers, and a label that changes
    within an id, but seldom.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
    """
    if not may_be_step_table(columns, options):
        return None
    id = _find_id(columns, options)
    if id is None:
        return None
    named = columns_named(columns, options, "order")
    order = named[0] if named else find_order([x for x in columns if x is not id], id)
    if order is None and not is_contiguous(id):
        return None
    label = _find_label(columns, options, id, order)
    if label is None:
        return None
    others = [column for column in columns if column not in (id, order, label)]
    rows = np.lexsort((_places(order, id), id.codes))
    runs = runs_of(id.codes[rows], label.codes[rows])
    if not any(column.is_measured for column in others) or runs.mean() < SHORTEST_RUN:
        return None
    roles = Roles("steps", label, columns=columns, id=id, order=order)
    roles.window = window_of(id, label, rows, runs)
    StepColumns(columns, roles, options).assign()
    if not roles.steps:
        return None
    _explain(roles, runs)
    return roles


def _find_id(columns: Sequence[Column], options: InitOptions) -> Column | None:
    """Return the column whose values have many rows each: the one that the user names, or codes."""
    given = columns_named(columns, options, "id")
    if given:
        return given[0]
    possible = [x for x in columns if x.can_be_label and x.rows >= FEWEST_ROWS * x.distinct]
    named = [column for column in possible if is_code_or_owner(column)]
    return named[0] if len(named) == 1 else None


def _find_label(
    columns: Sequence[Column], options: InitOptions, id: Column, order: Column | None
) -> Column | None:
    """Return the column of the label, or None if it isn't clear."""
    given = columns_named(columns, options, "label")
    if given:
        return given[0]
    possible = []
    for column in columns:
        is_other = column in (id, order) or is_code_or_owner(column) or is_time(column)
        if column.can_be_label and not is_other and not column.is_measured:
            possible.append(column)
    best = likeliest(possible, LABEL_RULES)
    return best[0] if len(best) == 1 else None


def _places(order: Column | None, id: Column) -> npt.NDArray[Any]:
    return np.arange(id.rows) if order is None else order.numbers


def runs_of(ids: npt.NDArray[np.int32], labels: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Return the lengths of the runs of rows with equal id and label."""
    is_start = (np.diff(ids, prepend=-1) != 0) | (np.diff(labels, prepend=-1) != 0)
    return np.diff(np.flatnonzero(is_start), append=len(ids))


def window_of(
    id: Column, label: Column, rows: npt.NDArray[np.intp], runs: npt.NDArray[np.intp]
) -> dict[str, Any]:
    """Return the value of data.window.

    A label that sets in once per id, such as a failure, is that of the last row, and windows follow
    each other closely. Otherwise a window lies within one label, such as an activity.

    Args:
        id: Column of the id.
        label: Column of the label.
        rows: Rows in their order, id by id.
        runs: Lengths of the runs of rows with equal id and label.
    """
    ids = len(id.values)
    last_is_few = label.distinct == 2 and len(runs) <= 2 * ids
    length = np.median(id.counts) / 2 if last_is_few else np.median(runs)
    steps = LONGEST
    while steps > max(SHORTEST, length):
        steps //= 2
    if last_is_few:
        return {"steps": steps, "stride": max(1, steps // 4), "label": "last"}
    return {"steps": steps, "stride": max(1, steps // 2), "label": "constant"}


def _explain(roles: Roles, runs: npt.NDArray[np.intp]) -> None:
    """Set the reason for the windows, and say it."""
    assert roles.id is not None
    assert roles.label is not None
    assert roles.window is not None
    label, id = quote(str(roles.label.name)), quote(str(roles.id.name))
    rule = {
        "last": "a window has the label of its last row",
        "constant": "a window ends where the label changes",
    }[roles.window["label"]]
    changes = f"{label} changes within {id}, after {runs.mean():.0f} rows on average"
    roles.reasons["window"] = f"{label} changes within {id}; {rule}"
    steps = listed([f"{name}: {value}" for name, value in roles.window.items()], 3)
    roles.warnings.append(
        f"{changes}: its rows are cut into windows ({steps}), and {rule}; windows of one "
        f"{roles.id.name} stay on one side of a split. Fit the steps to your sampling rate"
    )
