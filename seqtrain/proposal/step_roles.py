"""Roles of columns of a table with a row per time step: id, label, order, steps, row features."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.errors import DataError, marked
from seqtrain.proposal.joined_ids import find_joined_id
from seqtrain.proposal.names import (
    MESSAGE_NAMES,
    TEXT_NAMES,
    is_amount,
    is_code,
    is_code_or_owner,
    is_counter,
    is_part_of_id,
    is_time,
    is_trial,
    names_owner,
)
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.order import (
    NEARLY_ALL,
    Order,
    RowSelection,
    are_equal,
    counts_rows,
    crosses_midnight,
    doubtful_orders,
    find_order,
    growth,
    has_years_last,
    is_calendar,
    is_known,
    is_time_of_day,
    sampled_ids,
)
from seqtrain.proposal.prediction import information
from seqtrain.proposal.profile import (
    LIST_KINDS,
    SCALES,
    ColumnProfile,
    Floats,
    JoinedColumn,
    determines,
    joined_codes,
    joined_column,
)
from seqtrain.proposal.roles import (
    Roles,
    about_splits,
    choose_label,
    columns_named,
    commands,
    likeliest_labels,
    options_naming,
    other_labels,
    owner_of,
    owners_of,
    tells_label,
    wide_columns,
)
from seqtrain.text import counted, listed, quote

MOST_CANDIDATES = 50
"""Largest number of columns that are compared as ids, and as labels."""
SMOOTH = 0.57
"""Numbers are measurements if neighbours differ by fewer standard deviations on average."""
EXPLAINED = (0.5, 0.98)
"""Smallest and largest share of the variance of a number's ranks that an explaining token has."""
ROWS_PER_TOKEN = 20
"""Fewest rows with a number per distinct token for a token to explain the number."""
ELAPSED = "elapsed"
"""Name of the step column that holds the increase of the order since the previous row."""
FEWEST_ROWS = 8
"""Fewest rows per id, on average, that can be cut into windows."""
SHORTEST_RUN = 3
"""Fewest rows in which a label stays, on average. If it changes faster, rows aren't in time."""
SHORTEST, LONGEST = 4, 128
"""Fewest and most time steps of a proposed window."""
LONGEST_BEFORE_EVENTS = 32
"""Most time steps of a proposed window that ends at nearly each row."""
LONGEST_SYMBOL = 24
"""Most characters of a word that can be a symbol, such as a product number."""
SHORT_RUNS = 0.1
"""Share of the runs of a rare label that may be too short for a window to end in each."""
MOST_CONFLICTS = 0.05
"""Share of rows with another label than most rows of their id up to which they may be mistakes."""
RARE_STATE = 0.2
"""Share of rows below which the rarer of two labels is a state that sets in, such as a failure."""
MOSTLY_NEWEST = 0.95
"""Share of neighbouring rows with a falling time from which on the newest row comes first."""
MOST_ORDERS = 3
"""Number of columns that may be the order in a message."""
WINDOW_RULES = {
    "last": "a window has the label of its last row",
    "constant": "a window ends where the label changes",
}
"""Maps values of `label` in data.window to words for them."""


def step_table(columns: Sequence[ColumnProfile], options: InitOptions) -> Roles | None:
    """Return the roles of a table with one row per time step, or None if it isn't one.

    Rows are time steps if the user gave --id, --order or --steps. Without these options, the
    columns decide. If the label changes within an id, the rows of the id are cut into windows.

    Raises:
        DataError: If the id or the label isn't clear, the options don't fit the table, or numbers
            have units.
    """
    is_requested = any(options.named(option) for option in ("id", "order", "steps"))
    if not _may_be_step_table(columns, options, is_requested=is_requested):
        return None
    given, roles = _given_ids(columns, options), None
    joined = None if given else find_joined_id(columns, options)
    id = joined or _find_id(columns, options)
    label = next(iter(columns_named(columns, options, "label")), None)
    if id is None or (label is not None and not determines(id, label, labelled=True)):
        roles = _windowed_roles(columns, options)
    if roles is None and id is not None and label is not None:
        _check_labels(id, label, columns, options)
    if roles is None and id is not None:
        roles = _roles(columns, id, options)
        may_be_wide = wide_columns(columns) or not _have_names(columns)
        if roles.order is None and not is_requested and may_be_wide:
            return None
    if roles is None and is_requested:
        taken = given[0].parts if given else ()
        possible = [x for x in columns if x.can_be_label and x not in taken]
        likely = [label] if label is not None else likeliest_labels(possible)
        if given and len(likely) == 1:
            _check_labels(given[0], likely[0], columns, options)
        raise DataError(
            "--id: no such column has values that repeat, each with one label, and several of each "
            "label; give --id and --label"
        )
    if roles is None:
        _refuse_without_names(columns, options)
        return None
    if not is_requested and not _have_names(columns):
        roles.warnings.append(_roles_by_values(roles))
    assigned = StepColumns(columns, roles, options)
    assigned.assign()
    assigned.read_turns(columns_named(columns, options, "sequence"))
    if not roles.steps and not roles.sequence and is_requested:
        if roles.ignored:
            ignored = f"; ignored: {listed(roles.ignored)}"
        else:
            ignored = ""
        raise DataError(
            f"--steps: no column is left{ignored}; a step needs at least one; name others"
        )
    if roles.steps or roles.sequence:
        return roles
    return None


def _may_be_step_table(
    columns: Sequence[ColumnProfile], options: InitOptions, *, is_requested: bool
) -> bool:
    """Return True if the user says that rows are time steps, or no column can hold a sequence.

    Raises:
        DataError: If the user says so, but --sequence is given, too.
    """
    if not is_requested:
        is_told = options.get("sequence") or options.kind
        wide = wide_columns(columns)  # an id and a label are beside them
        is_wide = len(wide) > (len(columns) - 2 if _have_names(columns) else 0)
        return not (is_told or is_wide or _holds_sequence(columns))
    if options.get("sequence") and (options.get("steps") or not options.get("id")):
        raise DataError(
            "--sequence: a row is a time step with --order or --steps; leave out --sequence, or "
            "give it with --id alone, if a row is a message"
        )
    return True


def _holds_sequence(columns: Sequence[ColumnProfile]) -> bool:
    """Return True if a column can be the sequence of a row, and not a symbol of a step.

    Symbols such as SKU-120934 are short single words, most of which differ but not all. They are
    steps beside an id of several rows each that has one label.
    """
    possible = [column for column in columns if can_be_sequence(column)]
    if any(column.is_measured for column in columns):
        possible = [column for column in possible if not column.has_one_shape]
    if not possible:
        return False
    ids = [x for x in columns if x.can_be_label and is_code(x) and x.is_contiguous]
    labels = [x for x in columns if x.can_be_label and not is_code(x)]
    has_id = any(
        determines(id, label) and not determines(label, id) for id in ids for label in labels
    )
    return not (has_id and all(map(_are_symbols, possible)))


def _are_symbols(column: ColumnProfile) -> bool:
    """Return True for short single words of which some come again."""
    if column.kind != "text" or column.word in TEXT_NAMES or column.words >= 1.5:
        return False
    return column.longest <= LONGEST_SYMBOL and column.distinct < column.rows


def _have_names(columns: Sequence[ColumnProfile]) -> bool:
    """Return True if columns have names, and not only indexes."""
    return all(isinstance(column.name, str) for column in columns)


def can_be_sequence(column: ColumnProfile) -> bool:
    """Return True for lists, and for texts most of which differ and that aren't codes or times."""
    if column.kind in LIST_KINDS:
        return True
    if column.kind != "text" or not column.differs or is_code(column):
        return False
    return not (is_time(column) and column.words <= 1) and not column.pattern


# Ids with one label each


def _given_ids(columns: Sequence[ColumnProfile], options: InitOptions) -> list[ColumnProfile]:
    """Return the id in the columns that the user names as one, or []."""
    given = columns_named(columns, options, "id")
    return [joined_column(given)] if given else []


def _find_id(columns: Sequence[ColumnProfile], options: InitOptions) -> ColumnProfile | None:
    """Return the column of the sequence id, or None if there is none.

    The values of an id repeat, and all rows of one id have one label. At least one label has
    several ids. Of nested columns, the finest is the id.

    Raises:
        DataError: If several columns may be the id.
    """
    given, labels = _given_ids(columns, options), columns_named(columns, options, "label")
    if given and labels:  # the reader reports an id with several labels
        return given[0]
    taken = list(labels)
    for option in ("order", "steps"):
        taken += columns_named(columns, options, option)
    possible = [column for column in columns if column.can_be_label]
    targets = labels or possible
    candidates = given or [
        x for x in possible if x.name != "" and x.kind != "amount" and x not in taken
    ]
    if len(candidates) > MOST_CANDIDATES:
        candidates = [x for x in candidates if is_code(x)] or candidates[:MOST_CANDIDATES]
    found = []
    for column in candidates:
        for label in targets[:MOST_CANDIDATES]:
            is_sparse = bool(labels) or _is_sparse(label)
            is_id = label not in column.parts and determines(column, label, labelled=is_sparse)
            if is_id and not determines(label, column):
                found.append(column)
                break
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


def _is_sparse(column: ColumnProfile) -> bool:
    """Return True if most cells are blank, as if only one row of each id has its label."""
    return bool(2 * np.count_nonzero(column.is_blank) > column.rows)


def _likeliest_ids(
    found: Sequence[ColumnProfile], columns: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    """Return the possible ids that are likeliest: the first of these groups that isn't empty.

    Codes whose equal values are contiguous; codes; columns whose equal values are contiguous; names
    and numbers that repeat, if another column holds measurements or times. These numbers are named
    like parts of ids, or counted.
    """
    rules = (lambda x: is_code(x) and x.is_contiguous, is_code, lambda x: x.is_contiguous)
    for rule in rules:
        likely = [column for column in found if rule(column)]
        if likely:
            return likely
    measured = {x for x in columns if x.is_measured}
    times = [column for column in columns if is_time(column)]
    measured |= {x for x in times if x.kind in ("number", "time") or x.pattern}
    names = [x for x in found if x.is_category and x.word not in TEXT_NAMES]
    numbers = [x for x in found if x.kind == "number" and x.repeats and not _is_ordinal(x)]
    names += [x for x in numbers if _may_be_id(x, columns)]
    names = [x for x in names if measured - {x}]
    return [x for x in names if not any(_counts(x, other) for other in columns)]


def _may_be_id(column: ColumnProfile, columns: Sequence[ColumnProfile]) -> bool:
    """Return False for numbers that may be measured: that come back, whatever their name says.

    Numbers are ids if their rows stand together, if another column counts these, or if they are
    named like parts of ids, or have no name.
    """
    if column.kind != "number" or column.is_contiguous or isinstance(column.name, int):
        return True
    others = [x for x in columns if x is not column and x.kind == "number"]
    is_named = is_code_or_owner(column) or is_part_of_id(column)
    return is_named or any(counts_rows(x.numbers, column.codes) for x in others)


def _is_ordinal(column: ColumnProfile) -> bool:
    """Return True if the column is named like times or counters, which are no ids."""
    return is_time(column) or is_counter(column)


def _counts(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if a column counts the rows of an id that follow each other."""
    is_id = column is not id and id.can_be_label and id.is_contiguous
    return is_id and find_order([column], id) is not None


def _roles(columns: Sequence[ColumnProfile], id: ColumnProfile, options: InitOptions) -> Roles:
    """Return the roles with this id, a label and an order. Other columns have no role yet.

    Raises:
        DataError: If the label isn't clear.
    """
    others = [x for x in columns if x not in id.parts]
    per_id = [x for x in others if determines(id, x, labelled=_is_sparse(x))]
    named, doubts = columns_named(columns, options, "label"), list[str]()
    if named:
        label = named[0]
    else:
        possible = [x for x in per_id if not determines(x, id)]
        label = choose_label(possible, fewest=1)
        doubts = other_labels(possible, label)
    varying = [x for x in others if x.name != "" and x not in per_id and x is not label]
    given = columns_named(columns, options, "order")
    order = Order(*given) if given else None
    if order is None and not _is_only_measurement(varying):
        order = find_order(varying, id)
    return Roles("steps", label, columns=columns, id=id, order=order, warnings=doubts)


def _is_only_measurement(varying: Sequence[ColumnProfile]) -> bool:
    """Return True for one column of numbers that isn't named like times or counters.

    Without it a time step is empty, so it isn't the order, even if it grows evenly.
    """
    return len(varying) == 1 and varying[0].kind == "number" and not _is_ordinal(varying[0])


# Ids within which the label changes


def _windowed_roles(columns: Sequence[ColumnProfile], options: InitOptions) -> Roles | None:
    """Return the roles of a table whose rows are cut into windows, or None if it isn't one.

    Such a table has an id with many rows each, in time, measured numbers, and a label that changes
    within an id, but seldom. If the user names no id, it is named like codes or owners, or its rows
    have times that never repeat within it. Of several possible ids, it is the one whose rows follow
    each other, or the only one of numbers.
    """
    given = _given_ids(columns, options)
    if not given:
        joined = find_joined_id(columns, options, has_labels=False)
        given = [joined] if joined else []
    possible = [x for x in columns if x.can_be_label and x.rows >= FEWEST_ROWS * x.distinct]
    taken = [*columns_named(columns, options, "label"), *columns_named(columns, options, "order")]
    possible = [x for x in possible if x not in taken]
    possible = [x for x in possible if _may_be_id(x, columns)]
    candidates = given or [x for x in possible if is_code_or_owner(x)] or possible
    if not given and not _have_names(columns):
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
    if len(found) == 1:
        return found[0]
    return None


def _windows_of(
    columns: Sequence[ColumnProfile], id: ColumnProfile, options: InitOptions, *, is_named: bool
) -> Roles | None:
    """Return the roles of a table that is cut into windows, with an id, or None.

    Args:
        columns: All columns.
        id: Column of the id.
        options: Options of the user, whose columns exist.
        is_named: True if the user or its name says that the column is an id.
    """
    others = [column for column in columns if column not in id.parts]
    named = columns_named(columns, options, "order")
    order = Order(*named) if named else find_order(others, id)
    if is_named:
        is_id = order is not None or id.is_contiguous
    else:
        is_id = order is not None and _distinct(id.codes, order.codes) == id.rows
    if not is_id:
        return None
    times = np.arange(id.rows) if order is None else order.numbers
    rows = np.lexsort((times, id.codes))
    possible = columns_named(columns, options, "label")
    if not possible:
        sorting = () if order is None else order.columns
        possible = [x for x in others if x not in sorting and _may_be_state(x, id, rows)]
        possible = likeliest_labels(possible)
    if len(possible) > 1:
        possible = [column for column in possible if column.distinct == 2]
    if len(possible) != 1:
        return None
    label = possible[0]
    runs = _runs(id.codes[rows], label.codes[rows])
    first = None if order is None else order.columns[0]
    is_measured = any(x.is_measured for x in others if x not in (first, label))
    window = options.get("window")
    if window is None and (not is_measured or runs.mean() < SHORTEST_RUN):
        return None
    roles = Roles("steps", label, columns=columns, id=id, order=order)
    if isinstance(window, dict) and "steps" in window:
        steps = window["steps"]
        roles.window = {"stride": steps, "label": "last", **window}
        return roles
    roles.window = _window(id, label, rows)
    rule = WINDOW_RULES[roles.window["label"]]
    changes = f"{label.shown} changes within {id.shown}"
    roles.reasons["window"] = f"{changes}; {rule}"
    steps = listed([f"{name}: {value}" for name, value in roles.window.items()], 3)
    roles.warnings.append(
        f"{changes}, after {runs.mean():.0f} rows on average: its rows are cut into windows "
        f"({steps}), and {rule}; windows of one {id.shown} stay on one side of a split. Fit the "
        "steps to your sampling rate"
    )
    return roles


def _may_be_state(column: ColumnProfile, id: ColumnProfile, rows: npt.NDArray[np.intp]) -> bool:
    """Return True if a column may be a label that changes within an id, but seldom."""
    if not column.can_be_label or is_code_or_owner(column) or is_time(column):
        return False
    if column.is_blank.any() or column.is_measured or determines(id, column):
        return False
    return bool(_runs(id.codes[rows], column.codes[rows]).mean() >= SHORTEST_RUN)


def _runs(ids: npt.NDArray[np.int32], labels: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
    """Return the lengths of the runs of rows with equal id and label."""
    is_start = (np.diff(ids, prepend=-1) != 0) | (np.diff(labels, prepend=-1) != 0)
    return np.diff(np.flatnonzero(is_start), append=len(ids))


def _window(id: ColumnProfile, label: ColumnProfile, rows: npt.NDArray[np.intp]) -> dict[str, Any]:
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
    runs = _runs(id.codes[rows], codes)
    rarer = int(label.counts.argmin())
    is_rare = len(runs) <= 2 * len(id.values) or label.counts[rarer] < RARE_STATE * label.rows
    if label.distinct != 2 or not is_rare:
        steps = _power_of_two(np.median(runs) / 2, LONGEST)  # several windows in each
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


def _check_labels(
    id: ColumnProfile,
    label: ColumnProfile,
    columns: Sequence[ColumnProfile],
    options: InitOptions,
) -> None:
    """Raise a DataError if many rows have another label than most rows of their id.

    If only a few have, the reader names their lines. Windows are advised if the label stays for
    some rows, or a column sorts them. Otherwise a row is a sequence, if it has one, or rows aren't
    in time.
    """
    rows = np.flatnonzero(~label.is_blank)
    pairs = id.codes[rows].astype(np.int64) * len(label.values) + label.codes[rows]
    pairs, counts = np.unique(pairs, return_counts=True)
    most = np.zeros(len(id.values), dtype=np.int64)
    np.maximum.at(most, pairs // len(label.values), counts)
    if most.sum() >= (1 - MOST_CONFLICTS) * len(rows):
        return
    rows = rows[np.argsort(id.codes[rows], kind="stable")]
    mean = _runs(id.codes[rows], label.codes[rows]).mean()
    changes = f"--label: {label.shown} changes within {id.shown}, after {mean:.1f} rows on average"
    others = [column for column in columns if column not in (*id.parts, label)]
    has_sequence = any(map(can_be_sequence, others))
    is_sorted = bool(options.named("order")) or find_order(others, id) is not None
    if mean >= SHORTEST_RUN or (is_sorted and not has_sequence):
        window = shlex.quote("data.window={steps: 16, stride: 8, label: last}")
        advice = f"for a label of the last row of each 16 of them, add the option: --set {window}"
    elif has_sequence:
        group = shlex.join(["--set", f"data.group={id.parts[0].name}"])
        advice = f"so each row is a sequence: leave out --id; {group} keeps those of one together"
    else:
        advice = (
            "so they aren't in time, or belong to several sequences: name the column that sorts "
            "them (--order), or that tells these apart (--id)"
        )
    raise DataError(f"{changes}; {advice}")


def _refuse_without_names(columns: Sequence[ColumnProfile], options: InitOptions) -> None:
    """Raise a DataError if rows of a table without names seem to be time steps of several ids.

    Their numbers increase within an id, but the label isn't clear. The error lists the commands.
    """
    if _have_names(columns) or not any(column.has_decimals for column in columns):
        return
    possible = [x for x in columns if x.can_be_label and x.rows >= FEWEST_ROWS * x.distinct]
    lines = []
    for id in possible:
        order = find_order([x for x in columns if x is not id], id)
        for label in possible:
            if order is not None and label is not id and label not in order.columns:
                given = f"--id {id.name} --label {label.name} --order {order.columns[0].name}"
                lines.append(f"  {INIT_COMMAND} {given}")
    if lines and not options.named("label"):
        raise DataError(
            marked("--id: rows seem to be time steps, but not which column is the id; choose one:"),
            *lines,
        )


def _roles_by_values(roles: Roles) -> str:
    """Return a warning about the roles of columns without names."""
    assert roles.id is not None
    if roles.order is None:
        order = ""
    else:
        order = f", {roles.order.shown} as the time"
    return (
        f"the columns have no names; by their values, {roles.id.shown} is read as the id{order}, "
        f"{roles.label.shown} as the label; if they are others, give --id, --order, --label"
    )


# The other columns


class StepColumns:
    """Assignment of the columns of a step table that are neither id, label nor order.

    Args:
        columns: All columns.
        roles: Roles with the id, the label and the order. It receives the other columns.
        options: Options of the user.
        row_features: False if columns with one value per id are time steps, too.
    """

    def __init__(
        self,
        columns: Sequence[ColumnProfile],
        roles: Roles,
        options: InitOptions,
        *,
        row_features: bool = True,
    ) -> None:
        assert roles.id is not None
        self.row_features = row_features
        self.columns, self.roles = [x for x in columns if x not in roles.id.parts], roles
        self.id, self.label, self.order = roles.id, roles.label, roles.order
        # The others of an order, such as a time of day, tell more than the place of a step.
        self.first = None if self.order is None else self.order.columns[0]
        self.chosen = columns_named(columns, options, "steps")
        self.per_id = {column for column in columns if determines(self.id, column)}
        self.rows = sampled_ids(self.id)
        self.ids = self.id.codes[self.rows]

    def assign(self) -> None:
        """Add each column to the steps, the row features, or the ignored columns of the roles."""
        roles = self.roles
        others = [x for x in self.columns if x not in (self.label, self.first)]
        self.owners = owners_of([x for x in others if x in self.per_id], self.id)
        if self.row_features:
            roles.owner = owner_of(self.owners, self.id)
            if len(self.id.parts) > 1:
                roles.group = owner_of(self.id.parts, self.id)
        for column in others:
            reason = self._reason_to_ignore(column)
            if reason is not None:
                roles.ignore(column, reason)
            else:
                self._assign(column)
        if roles.static:
            names = listed([quote(name) for name in roles.static])
            roles.warnings.append(
                f"{names}: one value per {self.id.name}, used as row features (data.static); "
                "leave out what isn't known when the label is to be predicted"
            )
        tokens = [column for column in others if roles.steps.get(str(column.name)) == "token"]
        for column in others:
            if roles.steps.get(str(column.name)) == "number":
                by = token_that_explains(column, tokens, self.rows)
                if by is not None:
                    roles.steps[str(column.name)] = {"number": True, "by": by}
        roles.warnings += self._doubts_about_order()
        roles.warnings += self._parts_of_ids()

    def read_turns(self, named: Sequence[ColumnProfile]) -> None:
        """Read the rows of an id as turns of a chat, if their columns are free texts and tokens.

        If there are numbers, too, or windows, a warning says that the texts aren't used.

        Args:
            named: Columns that the user names as the sequence, or [].

        Raises:
            DataError: If these hold no texts.
        """
        roles = self.roles
        for column in named:
            if column.kind != "text" or (column.is_category and len(named) == 1):
                steps = shlex.join(["--steps", str(column.name)])
                raise DataError(
                    f"--sequence: with --id, a row is a message, but {column.describe()} holds "
                    f"none; for a time step: {steps}"
                )
        texts = [x for x in self.columns if x.is_free_text and x.describe() in roles.ignored]
        tokens = [x for x in self.columns if roles.steps.get(str(x.name)) == "token"]
        if not texts:  # short ones, such as "ok" and "thank you"
            texts = [x for x in tokens if x.word in MESSAGE_NAMES and x.differs and x.words >= 1.5]
            tokens = [x for x in tokens if x not in texts]
        if not texts and not named:
            return
        has_numbers = any("number" in kind for kind in roles.steps.values())
        if roles.window is not None or ((has_numbers or self.chosen) and not named):
            found = f"{listed([x.shown for x in texts or named], 3)}: texts that aren't used"
            if roles.window is None:
                turns = options_naming("sequence", [*tokens[:1], *texts])
                found += f"; to read the rows of one {self.id.shown} as turns of a chat: "
                found += f"{options_naming('id', self.id.parts)} {turns}"
            roles.warnings.append(found)
            return
        roles.sequence = list(named) or [*tokens, *texts]
        for column in self.columns:
            own = [line for line in roles.ignored if line.startswith(f"{column.shown} ")]
            if column in roles.sequence:
                roles.ignored = [line for line in roles.ignored if line not in own]
            elif str(column.name) in roles.steps and not own:
                roles.ignored.append(column.describe())
        roles.kind, roles.steps = "text", {}

    def _reason_to_ignore(self, column: ColumnProfile) -> str | None:
        """Return the reason why a column is ignored, or None if it is used.

        If the user chose columns, exactly these are used. The reason is "" if the kind of content
        is the reason.
        """
        if self.chosen:
            if column in self.chosen:
                return None
            return "not among --steps"
        if column.distinct < 2:
            if column.distinct:
                return "one value"
            return "blank"
        if column.names_splits:
            self.roles.warnings.append(about_splits(column))
            return "names of splits"
        if column in self.per_id:
            reason = tells_label(column, self.label)
            if column in self.owners and self.row_features and reason != "the label again":
                return f"one of several {self.id.shown} each"
            if reason:
                return reason
            if not self._holds_amounts(column) and determines(column, self.id):
                return "the id again"
        is_text = column.kind == "text" and column not in self.per_id
        if (is_text and self._is_unread_time(column)) or has_years_last(column):
            example = quote(str(next(x for x in column.values if x)), 30)
            self.roles.warnings.append(
                f"{column.shown} looks like a time that can't be read, such as {example}: not "
                "used, and rows stay in the order of the file; write it as "
                "2024-03-01T09:51:00, or sort the file"
            )
            return "a time that can't be read"
        is_date = column.kind == "time" and not column.is_duration
        if column.name == "" or column.is_unique or is_date or column.kind in LIST_KINDS:
            return ""
        if column.kind == "text":
            repeated = np.mean(column.counts[column.codes] > 1)
            if repeated == 0 or (column.is_free_text and repeated < 0.5):
                return ""
        return None

    def _assign(self, column: ColumnProfile) -> None:
        """Make a column a time step or a row feature.

        Raises:
            DataError: If numbers have units such as k for thousands.
        """
        if column.kind == "amount" and not is_code(column):
            if column.unit in SCALES and column.kind_counts["number"]:
                raise DataError(f"--steps: {column.unit_problem()}")
            self.roles.units[str(column.name)] = column.unit
        kind = "number" if self._holds_amounts(column) else "token"
        if column in self.per_id and self.row_features:
            self.roles.static[str(column.name)] = kind
            return
        if column.kind == "number" and kind == "number" and self._are_codes(column):
            kind = "token"
        self.roles.steps[str(column.name)] = kind

    def _holds_amounts(self, column: ColumnProfile) -> bool:
        """Return True for durations, and numbers that the column's name doesn't call codes."""
        is_number = column.kind in ("number", "amount")
        is_number &= column.has_decimals or not is_code(column)
        return column.is_duration or is_number

    def _is_unread_time(self, column: ColumnProfile) -> bool:
        """Return True for texts of one pattern of digits that are named or behave like times."""
        if not column.pattern or is_code(column):
            return False
        if is_time(column) and not column.word.endswith("order"):
            return True
        order = np.argsort(np.argsort(np.array(list(map(str, column.values)))))
        steps = growth(order[column.codes[self.rows]].astype(np.float64), self.ids)
        return bool(len(steps) and (steps >= 0).all() and (steps > 0).mean() > NEARLY_ALL)

    def _may_be_time(self, column: ColumnProfile) -> bool:
        """Return True for texts with digits that are named like times, and not like steps."""
        if column.kind != "text" or not is_time(column) or is_counter(column):
            return False
        has_digits = [any(map(str.isdigit, value)) for value in column.values if value]
        return not column.word.endswith("order") and 2 * sum(has_digits) > len(has_digits)

    def _are_codes(self, column: ColumnProfile) -> bool:
        """Return True if whole numbers of time steps are codes, and not measurements.

        Codes change abruptly from row to row, or rows are sorted by them. They are sparse and
        equally long, or tell the label better than sixteen ranges of them do.
        """
        if column.has_decimals:
            return False
        numbers, ids = column.numbers[self.rows], self.ids
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
        labels = np.zeros(len(self.id.values), dtype=np.int32)
        known = ~self.label.is_blank  # perhaps only one row of an id has its label
        labels[self.id.codes[known]] = self.label.codes[known]
        by_code = information(np.searchsorted(distinct, numbers), ids, labels)
        by_range = information(ranges, ids, labels)
        return by_code > max(0.02, 1.5 * by_range)

    def _doubts_about_order(self) -> Iterator[str]:
        """Yield doubts about the order, and add the increase of an uneven order to the steps."""
        order = self.order
        if order is None:
            yield from self._doubts_without_order()
        elif all(is_known(column, self.id) for column in order.columns):
            steps = growth(order.keys[0][self.rows], self.ids, sort=True)
            is_even = not len(steps) or are_equal(steps)
            names = [column.name for column in self.columns]
            if not (is_even or is_calendar(order.columns[0]) or ELAPSED in names):
                self.roles.steps[ELAPSED] = "order"
            yield from self._newest_first(growth(order.numbers[self.rows], self.ids))
            yield from self._undecided_ties(order)
            yield from self._mixed_sequences(order.codes[self.rows])

    def _undecided_ties(self, order: Order) -> Iterator[str]:
        """Yield options by which times of day may sort rows that are equal in the order."""
        ties = order.ties(self.ids, self.rows)
        for column in self.columns:
            if column in order.columns or not is_time_of_day(column) or is_amount(column):
                continue
            longer = Order(*order.columns, column)
            if 2 * longer.ties(self.ids, self.rows) < ties:
                names = [word for each in longer.columns for word in ("--order", str(each.name))]
                yield (
                    f"{counted(ties, 'row')} of one {self.id.shown} with an equal {order.shown} "
                    f"stay as in the file; if {column.shown} sorts them: {shlex.join(names)}"
                )

    def _newest_first(self, steps: Floats) -> Iterator[str]:
        """Yield a warning if nearly all rows come after a newer one of their id in the file.

        Args:
            steps: Growth of the order from row to row of an id.
        """
        changed = int(np.count_nonzero(steps))
        assert self.order is not None
        if np.count_nonzero(steps < 0) < MOSTLY_NEWEST * max(1, changed):
            return
        name, ties = self.order.shown, len(steps) - changed
        equal = ""
        if ties:
            equal = f"; {counted(ties, 'row')} with an equal {name} stay as in the file"
        yield (
            f"rows of one {self.id.shown} are newest first in the file, by {name}: data.order "
            f"sorts them from the oldest on{equal}"
        )

    def _doubts_without_order(self) -> Iterator[str]:
        """Yield doubts about rows that are used in the order of the file."""
        for column in self.columns:
            is_date = column.kind == "time" and column not in self.per_id
            if is_date and np.isnan(column.numbers).all():
                cell = next(filter(None, column.values), "")
                yield (
                    f"rows are used in the order of the file: the dates of {column.shown}, "
                    f"such as {quote(cell, 30)}, can be read in several ways or in none; write "
                    "them as 2024-03-01 or 2024-03-01T09:51, or sort the file"
                )
            if self.roles.steps.get(str(column.name)) == "token" and self._may_be_time(column):
                yield (
                    f"rows are used in the order of the file: the cells of {column.shown}, such as "
                    f"{quote(column.values[0], 30)}, can't be read as times, and are tokens"
                )
            if crosses_midnight(column, self.id):
                commands = shlex.join(["--order", "DATE", "--order", str(column.name)])
                yield (
                    f"the times of {column.shown} have no date and begin again at midnight: rows "
                    "are used in the order of the file; if that isn't the order in time, add a "
                    f"column with the date, and give {commands}"
                )
        others = [x for x in self.columns if x is not self.label]
        possible = doubtful_orders([x for x in others if x not in self.per_id], self.id)
        if possible:
            shown = [shlex.join(["--order", str(column.name)]) for column in possible]
            yield (
                f"rows of one {self.id.shown} are used in the order of the file; if a column "
                f"sorts them: {' or '.join(shown[:MOST_ORDERS])}"
            )

    def _parts_of_ids(self) -> Iterator[str]:
        """Yield a warning for each trial or owner that seems to be a part of the id.

        Its rows within an id stand together, two or more on average.
        """
        for column in self.columns:
            is_named = is_trial(column) or names_owner(column)
            if column is self.label or column in self.per_id or not is_named:
                continue
            both = JoinedColumn(*self.id.parts, column)
            if both.is_contiguous and 2 * both.distinct <= both.rows:
                yield (
                    f"{column.shown} changes within {self.id.shown}, and its rows stand together: "
                    f"if each {column.shown} is a sequence: {options_naming('id', both.parts)}"
                )

    def _mixed_sequences(self, times: npt.NDArray[np.int32]) -> Iterator[str]:
        """Yield a warning for each column that seems to divide the rows of an id into sequences.

        Many rows of an id have an equal order, each with another value in the column.
        """
        ids, rows, name = self.ids, len(self.ids), self.id.shown
        if 2 * _distinct(ids, times) > rows:
            return
        for column in self.columns:
            codes = column.codes[self.rows]
            if column is self.first or 3 * _distinct(ids, codes) > rows:
                continue
            if _distinct(ids, codes, times) == rows:
                order = "" if self.order is None else self.order.shown
                both = (*self.id.parts, column)
                yield (
                    f"rows of one {name} have the same {order}, one for each {column.shown}: if a "
                    f"sequence has one {name} and one {column.shown}: {options_naming('id', both)}"
                )


def _distinct(*codes: npt.NDArray[Any]) -> int:
    """Return the number of distinct rows of several codes."""
    return int(joined_codes(codes).max(initial=-1)) + 1


def token_that_explains(
    column: ColumnProfile, tokens: Sequence[ColumnProfile], rows: RowSelection
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
        if len(codes):
            share = float(np.var(means[codes]) / max(np.var(ranks), 1e-9))
        else:
            share = 0.0
        is_frequent = len(codes) >= ROWS_PER_TOKEN * np.count_nonzero(counts)
        if is_frequent and EXPLAINED[0] <= share <= EXPLAINED[1]:
            found[share] = str(other.name)
    if found:
        return found[max(found)]
    return None
