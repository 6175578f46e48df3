"""Windows: roles of a table whose rows of an id are cut into sequences."""

from typing import Any

import numpy as np

from seqtrain.proposal.cell_kinds import Integers
from seqtrain.proposal.joined_ids import find_joined_id
from seqtrain.proposal.names import is_code_or_owner, is_id_or_owner, is_time
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import Order, find_order
from seqtrain.proposal.profile import ColumnProfile, Columns, determines, without
from seqtrain.proposal.roles import (
    MOST_CLASSES,
    Roles,
    columns_named,
    likeliest_labels,
    options_naming,
)
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.step_columns import distinct_rows
from seqtrain.proposal.step_ids import (
    FEWEST_ROWS,
    MOST_CANDIDATES,
    SHORTEST_RUN,
    given_ids,
    have_names,
    may_name_sequences,
)

SHORTEST, LONGEST = 4, 128
"""Fewest and most time steps of a proposed window."""
LONGEST_BEFORE_EVENTS = 32
"""Most time steps of a proposed window that ends at nearly each row."""
SHORT_RUNS = 0.1
"""Share of the runs of a rare label that may be too short for a window to end in each."""
RARE_STATE = 0.2
"""Share of rows below which the rarer of two labels is a state that sets in, such as a failure."""
WINDOW_RULES = {
    "last": "a window has the label of its last row",
    "constant": "a window ends where the label changes",
}
"""Maps values of `label` in data.window to words for them."""


def windowed_roles(columns: Columns, options: InitOptions) -> Roles | None:
    """Return the roles of a table whose rows are cut into windows, or None if it isn't one.

    Such a table has an id with many rows each, in time, measured numbers, and a label that changes
    within an id, but seldom. If the user names no id, it is named like codes or owners, or its rows
    have times that never repeat within it. Of several possible ids, it is the one whose rows follow
    each other, or the only one of numbers.
    """
    given = given_ids(columns, options)
    joined = None if given else find_joined_id(columns, options, has_labels=False)
    if joined is not None:
        roles = _windows_of(columns, joined, options, is_named=True)
        if roles is not None:  # otherwise its parts may hold the label, such as an activity
            return roles
    possible = [x for x in columns if x.can_be_label and x.rows >= FEWEST_ROWS * x.distinct]
    taken = [*columns_named(columns, options, "label"), *columns_named(columns, options, "order")]
    possible = without(possible, taken)
    possible = [x for x in possible if may_name_sequences(x, columns)]
    named = [x for x in possible if is_code_or_owner(x)]
    candidates = given or list(filter(is_id_or_owner, named)) or named or possible
    if not given and not have_names(columns):
        candidates = [x for x in candidates if x.is_contiguous or x.kind == "number"]
    found = []
    for id in candidates[:MOST_CANDIDATES]:
        is_named = id in given or is_code_or_owner(id)
        roles = _windows_of(columns, id, options, is_named=is_named)
        if roles is not None:
            found.append(roles)
    follow = [roles for roles in found if roles.id is not None and roles.id.is_contiguous]
    found = follow or found
    numbered = [roles for roles in found if roles.id is not None and roles.id.kind == "number"]
    if len(found) > 1:
        found = numbered or found
    if len(found) != 1:
        return None
    roles = found[0]
    if candidates is named:  # codes of a property, such as a category, may be no id
        roles.warnings += _other_ids(columns, roles)
    return roles


def _other_ids(columns: Columns, roles: Roles) -> list[str]:
    """Return a doubt if further columns are named like ids or owners, or an empty list."""
    others = [x for x in columns if is_id_or_owner(x) and x.can_be_label and x is not roles.label]
    if not others or roles.id is None:
        return []
    options = " or ".join(options_naming("id", [column]) for column in others)
    return [f"{roles.id.shown} is read as the id; if it is another column: {options}"]


def _windows_of(
    columns: Columns, id: ColumnProfile, options: InitOptions, *, is_named: bool
) -> Roles | None:
    """Return the roles of a table that is cut into windows, with an id, or None.

    Args:
        columns: All columns.
        id: Column of the id.
        options: Options of the user, whose columns exist.
        is_named: True if the user or its name says that the column is an id.
    """
    others = without(columns, id.parts)
    named = columns_named(columns, options, "order")
    order = Order(*named) or find_order(others, id)
    if is_named:
        is_id = bool(order) or id.is_contiguous
    else:
        is_id = bool(order) and distinct_rows(id.codes, order.codes) == id.rows
        is_id = is_id and not _is_state_of_recording(id, order)
    if not is_id:
        return None
    rows = order.sort(id.codes)
    possible = columns_named(columns, options, "label")
    if not possible:
        possible = [x for x in others if x not in order.columns and _may_be_state(x, id, rows)]
        possible = likeliest_labels(possible)
    if len(possible) > 1:
        possible = [column for column in possible if column.distinct == 2]
    if len(possible) != 1:
        return None
    label = possible[0]
    runs = label_runs(id.codes[rows], label.codes[rows])
    taken = (*order.columns[:1], label)
    is_measured = any(x.is_measured for x in others if x not in taken)
    window = options.get("window")
    if window is None and (not is_measured or runs.mean() < SHORTEST_RUN):
        return None
    roles = Roles("steps", label, columns=columns, id=id, order=order)
    if isinstance(window, dict) and "steps" in window:
        steps = window["steps"]
        roles.window = {"stride": steps, "label": "last", **window}
        return roles
    if window == {"label": "constant"}:
        roles.window = window
        roles.warnings.append(
            f"{label.shown} isn't read by predict, so that a {id.shown} has one prediction there, "
            "however often it changes; steps in data.window divide it: "
            f"{set_option('data.window={steps: 16, label: constant}')}"
        )
        return roles
    roles.window = _window(id, label, rows)
    rule = WINDOW_RULES[roles.window["label"]]
    roles.reasons["window"] = rule
    roles.warnings.append(
        f"{label.shown} changes within one {id.shown}, after {runs.mean():.0f} rows on average, so "
        f"the rows are cut into windows of {roles.window['steps']}; to choose another number: "
        "steps in data.window"
    )
    return roles


def _is_state_of_recording(id: ColumnProfile, order: Order) -> bool:
    """Return True for few values that come back in rows which a file has in the order of time.

    They are states of one recording, such as on and off.
    """
    if id.is_contiguous or id.distinct > MOST_CLASSES:
        return False
    return bool((np.diff(order.numbers) > 0).all())


def _may_be_state(column: ColumnProfile, id: ColumnProfile, rows: Integers) -> bool:
    """Return True if a column may be a label that changes within an id, but seldom."""
    if not column.can_be_label or is_code_or_owner(column) or is_time(column):
        return False
    is_missing = column.is_blank.any() or column.is_mostly_nan
    if is_missing or column.is_measured or determines(id, column):
        return False
    return bool(label_runs(id.codes[rows], column.codes[rows]).mean() >= SHORTEST_RUN)


def label_runs(ids: Integers, labels: Integers) -> Integers:
    """Return the lengths of the runs of rows with equal id and label."""
    is_start = (np.diff(ids, prepend=-1) != 0) | (np.diff(labels, prepend=-1) != 0)
    return np.diff(np.flatnonzero(is_start), append=len(ids))


def _window(id: ColumnProfile, label: ColumnProfile, rows: Integers) -> dict[str, Any]:
    """Return the value of data.window.

    A label that sets in once per id, or is rare, such as a failure, is that of the last row, and
    windows follow each other closely: a window ends within each run of the rarer label. If these
    runs are short, windows are short too, for the first rows of an id end no window. Otherwise a
    window lies within one label, such as an activity.

    Args:
        id: Column of the id.
        label: Column of the label.
        rows: Rows in the order of ids and times.
    """
    codes = label.codes[rows]
    runs = label_runs(id.codes[rows], codes)
    rarer = int(label.counts.argmin())
    is_rare = len(runs) <= 2 * len(id.values) or label.counts[rarer] < RARE_STATE * label.rows
    if label.distinct != 2 or not is_rare:
        run_of_row = np.repeat(runs, runs)  # runs of few rows may be many, but hold little
        steps = _power_of_two(np.median(run_of_row) / 2, LONGEST)  # several windows in each
        return {"steps": steps, "stride": steps // 2, "label": "constant"}
    size = np.median(id.counts)
    steps = _power_of_two(size / 2, LONGEST)
    stride = steps // 4
    run_starts = np.cumsum(runs) - runs
    rare_runs = runs[codes[run_starts] == rarer]
    shortest = int(np.quantile(rare_runs, SHORT_RUNS))
    if shortest < stride:
        steps, stride = _power_of_two(size / 10, LONGEST_BEFORE_EVENTS), shortest
    return {"steps": steps, "stride": stride, "label": "last"}


def _power_of_two(length: float, most: int) -> int:
    """Return the largest power of two from `SHORTEST` to `most` that is at most a length."""
    steps = most
    while steps > max(SHORTEST, length):
        steps //= 2
    return steps
