"""Roles of columns of a table with a row per time step: id, label, order, steps, row features."""

from collections.abc import Iterator

import numpy as np

from seqtrain.errors import DataError, marked
from seqtrain.proposal.joined_ids import find_joined_id
from seqtrain.proposal.names import (
    TEXT_NAMES,
    is_channel,
    is_code,
    is_counting,
    is_no_outcome,
    is_time,
    is_trial,
    names_language,
    names_outcome,
    names_owner,
    names_property,
)
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.order import IdRows, Order, after_date, find_order
from seqtrain.proposal.profile import (
    LIST_KINDS,
    ColumnProfile,
    Columns,
    JoinedColumn,
    determines,
    joined_column,
    refines,
    without,
)
from seqtrain.proposal.roles import (
    MOST_CLASSES,
    Roles,
    choose_label,
    columns_named,
    commands,
    likeliest_labels,
    options_naming,
    other_labels,
    set_command,
)
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.step_columns import StepColumns, distinct_rows
from seqtrain.proposal.step_ids import (
    FEWEST_ROWS,
    SHORTEST_RUN,
    find_id,
    given_ids,
    has_mistakes,
    have_names,
    is_ordinal,
    says_nothing_if_blank,
)
from seqtrain.proposal.time_kinds import is_time_of_day
from seqtrain.proposal.wide import wide_columns
from seqtrain.proposal.window_roles import label_runs, windowed_roles
from seqtrain.text import counted, listed

LONGEST_SYMBOL = 24
"""Most characters of a word that can be a symbol, such as a product number."""
VERY_WIDE = 1000
"""Fewest columns that differ only in their numbers of which one is searched for ids and times."""
MOST_CONFLICTS = 0.05
"""Share of rows with another label than most rows of their id up to which they may be mistakes."""


def step_table(columns: Columns, options: InitOptions, key: Columns = ()) -> Roles | None:
    """Return the roles of a table with one row per time step, or None if it isn't one.

    Rows are time steps if the user gave --id, --order or --steps. Without these options, the
    columns decide. If the label changes within an id, the rows of the id are cut into windows.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
        key: Columns of the key by which another file is joined.

    Raises:
        DataError: If the id or the label isn't clear, the options don't fit the table, or numbers
            have units.
    """
    is_requested = any(options.named(option) for option in ("id", "order", "steps"))
    wide = wide_columns(columns)
    if not _may_be_step_table(columns, wide, options, is_requested=is_requested):
        return None
    given, roles = given_ids(columns, options), None
    named = columns_named(columns, options, "label")
    searched = columns
    if len(wide) >= VERY_WIDE and not is_requested:
        searched = without(columns, set(wide[1:]).difference(named))
    joined = None
    if not given:
        joined = _id_of_key(key, columns, named) or find_joined_id(searched, options)
    id = joined or find_id(searched, options)
    label = next(iter(named), None)
    if id is None or (label is not None and not _is_label_of(id, label, options)):
        roles = windowed_roles(searched, options)
    if roles is None and id is not None and label is not None:
        _check_labels(id, label, searched, options)
    if roles is None and id is not None:
        roles = _roles(searched, id, options)
        may_be_wide = wide or not have_names(columns)
        if not (roles.order or is_requested) and may_be_wide:
            return None
    if roles is None and is_requested:
        taken = [x for option in ("id", "order") for x in columns_named(columns, options, option)]
        possible = [x for x in columns if x.can_be_label and x not in taken]
        likely = [label] if label is not None else likeliest_labels(possible)
        if given and len(likely) == 1:
            _check_labels(given[0], likely[0], columns, options)
        elif given and likely:
            raise DataError(
                f"--label: several columns may hold the label of one {given[0].shown}, or of its "
                "windows; choose one:",
                *commands("label", likely),
            )
        raise DataError(
            "--id: no such column names sequences: its values must repeat, each with one label, "
            "and several for each label; name the columns: --id COLUMN --label COLUMN"
        )
    if roles is None:
        _refuse_without_names(columns, options)
        return None
    if not is_requested and not have_names(columns):
        roles.warnings.append(_roles_by_values(roles))
    roles.columns = columns
    assigned = StepColumns(columns, roles, options)
    assigned.assign()
    assigned.read_turns(columns_named(columns, options, "sequence"))
    if not roles.steps and not roles.sequence and is_requested:
        if roles.ignored:
            ignored = f"; ignored: {listed(roles.ignored)}"
        else:
            ignored = ""
        used = (*roles.id.parts, *roles.order.columns, roles.label) if roles.id else ()
        advice = "add one whose values differ from row to row"
        if not options.named("steps") and not all(x.is_constant for x in without(columns, used)):
            advice = "name it"
        raise DataError(
            f"--steps: no column is left for a time step, which needs one{ignored}; {advice}"
        )
    if roles.steps or roles.sequence:
        return roles
    return None


def _id_of_key(key: Columns, columns: Columns, labels: Columns) -> JoinedColumn | None:
    """Return several columns of a key together if these rows have one label, or else None."""
    if len(key) < 2:
        return None
    id = JoinedColumn(*key)
    others = [x for x in without(columns, key) if x.can_be_label]
    labels = labels or likeliest_labels(others)
    if 2 * id.distinct <= id.rows and any(refines(id, x, labelled=True) for x in labels):
        return id
    return None


def _may_be_step_table(
    columns: Columns, wide: Columns, options: InitOptions, *, is_requested: bool
) -> bool:
    """Return True if the user says that rows are time steps, or no column can hold a sequence.

    Args:
        columns: All columns.
        wide: Those that may be the time steps of a row.
        options: Options of the user.
        is_requested: True if the user says that rows are time steps.

    Raises:
        DataError: If the user says so, but --sequence is given, too.
    """
    if not is_requested:
        is_told = options.get("sequence") or options.kind
        most = len(columns) - 2 if have_names(columns) else 0  # an id and a label are beside them
        is_wide = len(wide) > most
        return not (is_told or is_wide or _holds_sequence(columns))
    if options.get("sequence") and (options.get("steps") or not options.get("id")):
        raise DataError(
            "--sequence: a row is a time step with --order or --steps; leave out --sequence, or "
            "give it with --id alone, if a row is a message"
        )
    return True


def _holds_sequence(columns: Columns) -> bool:
    """Return True if a column can be the sequence of a row, and not a symbol of a step.

    Symbols such as SKU-120934 are short single words, most of which differ but not all. They are
    steps beside an id of several rows each that has one label. A point is no sequence.
    """
    possible = [x for x in columns if can_be_sequence(x) and not x.holds_points]
    possible = [column for column in possible if not column.has_one_shape]
    if not possible:
        return False
    ids = [x for x in columns if x.can_be_label and is_code(x) and x.is_contiguous]
    labels = [x for x in columns if x.can_be_label and not is_code(x)]
    has_id = any(refines(id, label) for id in ids for label in labels)
    return not (has_id and all(map(_are_symbols, possible)))


def _are_symbols(column: ColumnProfile) -> bool:
    """Return True for short single words of which some come again."""
    if column.kind != "text" or column.word in TEXT_NAMES or column.words >= 1.5:
        return False
    return column.longest <= LONGEST_SYMBOL and column.distinct < column.rows


def can_be_sequence(column: ColumnProfile) -> bool:
    """Return True for lists, and for texts most of which differ.

    Codes, times and measurements aren't sequences.
    """
    if column.kind in LIST_KINDS:
        return True
    if column.kind != "text" or not column.differs or is_code(column):
        return False
    is_value = column.pattern or column.holds_measurements
    return not (is_value or (is_time(column) and column.words <= 1))


def _is_label_of(id: ColumnProfile, label: ColumnProfile, options: InitOptions) -> bool:
    """Return True if each id has one label, but for few mistakes where the user asks no windows."""
    if determines(id, label, labelled=True):
        return True
    return options.get("window") is None and has_mistakes(label, id)


def _roles(columns: Columns, id: ColumnProfile, options: InitOptions) -> Roles:
    """Return the roles with this id, a label and an order. Other columns have no role yet.

    Raises:
        DataError: If the label isn't clear.
    """
    others = without(columns, id.parts)
    per_id = [x for x in others if determines(id, x, labelled=says_nothing_if_blank(x))]
    named, doubts = columns_named(columns, options, "label"), list[str]()
    if named:
        label = named[0]
    else:
        possible = [x for x in per_id if not determines(x, id)]
        possible += [
            x for x in others if x.can_be_label and x not in per_id and has_mistakes(x, id)
        ]
        if any(map(names_owner, id.parts)):
            possible = _without_languages(possible, others)
        outcomes = _outcomes_of_steps(without(others, per_id))
        windows = _windows_by_outcome(columns, id, possible, outcomes, options)
        if windows is not None:
            return windows
        try:
            label = choose_label(possible, fewest=1)
        except DataError as error:
            raise DataError(*error.lines, *commands("label", outcomes)) from None
        doubts = other_labels(possible, label)
        if not names_outcome(label):
            doubts += [
                f"{column.shown} changes within {id.shown}, so {label.shown} is read as the label; "
                f"if the label is that of each row: {options_naming('label', [column])}"
                for column in outcomes
            ]
    varying = [x for x in others if x.name != "" and x not in per_id and x is not label]
    given = columns_named(columns, options, "order")
    order = Order(*given)
    if not order and not _is_only_measurement(varying):
        order = find_order(varying, id)
        has_unread_dates = any(x.are_unread_times for x in varying)
        if order and all(map(is_time_of_day, order.columns)) and has_unread_dates:
            order = Order()  # a time of day comes again on each of the dates
        order = after_date(order, columns)
        if not order:
            order = _order_of_channels(varying, id)
    return Roles("steps", label, columns=columns, id=id, order=order, warnings=doubts)


def _windows_by_outcome(
    columns: Columns, id: ColumnProfile, possible: Columns, outcomes: Columns, options: InitOptions
) -> Roles | None:
    """Return the roles of windows whose label is the only column named like one, or None.

    Args:
        columns: All columns.
        id: Column of the id.
        possible: Columns with one value per id, which may be the label.
        outcomes: Columns that are named like labels and change within an id, such as is_fraud.
        options: Options of the user.
    """
    if len(outcomes) != 1 or not possible or any(map(names_outcome, possible)):
        return None
    named = {"id": [part.name for part in id.parts], "label": [outcomes[0].name]}
    roles = windowed_roles(columns, options.with_given(**named))
    if roles is not None:
        others = options_naming("label", possible[:1])
        roles.warnings.append(
            f"{roles.label.shown} is read as the label, for it is named like one; if it is a "
            f"property of each {id.shown}, name that, such as {others}"
        )
    return roles


def _outcomes_of_steps(columns: Columns) -> list[ColumnProfile]:
    """Return the columns that change within an id and are named like labels."""
    found = [x for x in columns if names_outcome(x) and not names_property(x)]
    return [x for x in found if x.can_be_label and x.distinct <= MOST_CLASSES]


def _without_languages(columns: Columns, others: Columns) -> list[ColumnProfile]:
    """Return the columns that may be the label of a person, but no languages: they are traits.

    Args:
        columns: Columns with one value per person.
        others: All columns but the id.

    Raises:
        DataError: If only languages may be the label, or a column that changes from step to step.
            It has a command for each.
    """
    found = [x for x in columns if not names_language(x)]
    if any(x.can_be_label for x in found) or len(found) == len(columns):
        return found
    changing = [x for x in others if x.can_be_label and x not in columns]
    changing = [x for x in changing if not (is_no_outcome(x) or is_counting(x))]
    if not changing:
        return list(columns)
    few = [x for x in changing if x.distinct <= MOST_CLASSES]
    raise DataError(
        marked("--label: only a language of each person may be the label; choose one, or add it:"),
        *commands("label", [*few, *filter(names_language, columns)]),
    )


def _order_of_channels(varying: Columns, id: ColumnProfile) -> Order:
    """Return the order of rows that hold a number of one channel each, empty if there is none.

    The order begins again in each channel of an id, so it sorts the rows of both together.
    """
    for channel in filter(is_channel, varying):
        others = without(varying, [channel])
        order = find_order(others, joined_column([*id.parts, channel]))
        if order:
            return order
    return Order()


def _is_only_measurement(varying: Columns) -> bool:
    """Return True for one column of numbers that isn't named like times or counters.

    Without it a time step is empty, so it isn't the order, even if it grows evenly.
    """
    return len(varying) == 1 and varying[0].kind == "number" and not is_ordinal(varying[0])


def _check_labels(
    id: ColumnProfile,
    label: ColumnProfile,
    columns: Columns,
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
    mean = label_runs(id.codes[rows], label.codes[rows]).mean()
    changes = (
        f"--id: the rows of one {id.shown} have several labels, for {label.shown} changes after "
        f"{mean:.1f} of them on average"
    )
    others = without(columns, [*id.parts, label])
    has_sequence = any(map(can_be_sequence, others))
    is_sorted = bool(options.named("order") or id.is_contiguous or find_order(others, id))
    if mean >= SHORTEST_RUN or (is_sorted and not has_sequence):
        window = set_command("data.window={steps: 16, stride: 8, label: last}")
        lines = ["to cut them into windows of 16 rows, with the label of the last one:"]
        lines.append(f"  {window}")
    elif has_sequence:
        group = set_option(f"data.group={id.parts[0].name}")
        lines = [f"if each row is a sequence, give in place of --id: {group}"]
    else:
        lines = [
            "if they aren't in the order of time, name the column that sorts them: --order COLUMN",
            "if one holds several sequences, name the column that tells these apart, too: "
            f"{options_naming('id', id.parts)} --id COLUMN",
        ]
    raise DataError(changes, *lines)


def _refuse_without_names(columns: Columns, options: InitOptions) -> None:
    """Raise a DataError if rows of a table without names seem to be time steps of several ids.

    Their numbers increase within an id, but the label isn't clear. The error lists the commands.
    """
    if have_names(columns) or not any(column.has_decimals for column in columns):
        return
    possible = [x for x in columns if x.can_be_label and x.rows >= FEWEST_ROWS * x.distinct]
    choices, is_sorted = list[tuple[bool, str]](), False
    for id in possible:
        order = find_order(without(columns, [id]), id)
        is_sorted |= bool(order)
        sorting = order.columns[:1]
        option = "".join(f" --order {column.name}" for column in sorting)
        for label in possible:
            may_be = label is not id and label not in sorting
            if may_be and (order or id.is_contiguous):
                choice = f"  {INIT_COMMAND} --id {id.name} --label {label.name}{option}"
                choices.append((not id.is_contiguous, choice))
    lines = [choice for _, choice in sorted(choices)] if is_sorted else []
    if lines and not options.named("label"):
        raise DataError(
            marked("--id: rows seem to be time steps; choose the column that names a sequence:"),
            *lines,
        )


def refuse_unlabelled_steps(columns: Columns) -> None:
    """Raise a DataError if rows are time steps of several ids, and no column may be the label.

    Another column sorts the rows of each id, and begins again in the next one: the cycles of
    engines, the days of shares. Numbers of trials count examples instead. Such an id is no label.
    """
    possible = [x for x in columns if x.can_be_label and not x.is_constant]
    if _holds_sequence(columns) or any(map(names_outcome, possible)):
        return
    for id, order in _counted_ids(possible, columns):
        others = without(possible, [id, *order.columns])
        if not any(x.kind == "text" or x.distinct <= MOST_CLASSES for x in others):
            raise DataError(
                f"--label: {_about_steps(id, order)}; the label is missing",
                marked("add it, or the file that has it, and name the columns:")
                + f" {_naming(id, order)} --label COLUMN",
            )


def refuse_steps_without_names(columns: Columns, label: ColumnProfile) -> None:
    """Raise a DataError if rows without names are time steps that hold words or codes.

    Other rows may be series of an owner and a trial. The label isn't that of an id.
    """
    others = without(columns, [label])
    if have_names(columns) or _holds_sequence(others):
        return
    for id, order in _counted_ids([x for x in others if x.can_be_label], others):
        if not any(x.is_measured for x in without(others, [id, *order.columns])):
            raise DataError(
                f"--id: {_about_steps(id, order)}; name both columns:",
                f"  {INIT_COMMAND} {_naming(id, order)}",
            )


def _counted_ids(possible: Columns, columns: Columns) -> Iterator[tuple[ColumnProfile, Order]]:
    """Yield the ids of rows that another column sorts, and whose numbers begin again in each."""
    for id in possible:
        if id.rows >= FEWEST_ROWS * id.distinct and not is_counting(id):
            order = find_order(without(columns, [id]), id)
            if order and _begins_again_in_each(order, id):
                yield id, order


def _about_steps(id: ColumnProfile, order: Order) -> str:
    """Return words for a message about rows that seem to be time steps."""
    return (
        f"it looks like a row per time step, for {order.shown} sorts the rows of each {id.shown} "
        f"({counted(id.distinct, 'value')}) and begins again"
    )


def _naming(id: ColumnProfile, order: Order) -> str:
    """Return the options that name an id and an order."""
    return f"{options_naming('id', [id])} {options_naming('order', order.columns)}"


def _begins_again_in_each(order: Order, id: ColumnProfile) -> bool:
    """Return True if the rows of each id stand in an order whose values come again in other ids."""
    if any(map(is_trial, order.columns)) or 2 * len(np.unique(order.numbers)) > id.rows:
        return False
    if not (id.is_contiguous or (np.diff(order.numbers) >= 0).all()):
        return False
    is_sorted = IdRows(id.codes).are_sorted_by(order)
    return is_sorted and distinct_rows(id.codes, order.codes) == id.rows


def _roles_by_values(roles: Roles) -> str:
    """Return a warning about the roles of columns without names."""
    assert roles.id is not None
    order = ""
    if roles.order:
        order = f", {roles.order.shown} as the time"
    return (
        f"the columns have no names; by their values, {roles.id.shown} is read as the id{order}, "
        f"{roles.label.shown} as the label; to choose others: --id, --order, --label"
    )
