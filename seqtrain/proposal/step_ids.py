"""Ids of a table with a row per time step: the columns that name the sequence of each row."""

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.names import (
    TEXT_NAMES,
    is_code,
    is_code_or_owner,
    is_counter,
    is_counting,
    is_part_of_id,
    is_time,
    names_outcome,
)
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import IdRows, find_order
from seqtrain.proposal.profile import (
    FREE_WORDS,
    SAMPLE,
    ColumnProfile,
    Columns,
    determines,
    joined_codes,
    joined_column,
    refines,
    without,
)
from seqtrain.proposal.roles import MOST_CLASSES, columns_named, commands, likeliest_labels
from seqtrain.tables.blocks import FOLDER
from seqtrain.tables.conversions.cells import likely_meaning

MOST_CANDIDATES = 50
"""Largest number of columns that are compared as ids, and as labels."""
FEWEST_ROWS = 8
"""Fewest rows per id, on average, that can be cut into windows."""
FEW_MISTAKEN, MOST_MISTAKEN = 2, 0.05
"""Largest number and share of ids of which some rows have another label by mistake.

The share is that of the rows of such an id, too.
"""
DIGITS_OF_ID = 5
"""Fewest digits of numbers that are ids beside times, whatever their name."""
FEWEST_PER_TIME = 3
"""Fewest rows per time, on average, that are a sequence."""
SHORTEST_RUN = 3
"""Fewest rows in which a label stays, on average. If it changes faster, rows aren't in time."""


def have_names(columns: Columns) -> bool:
    """Return True if columns have names, and not only indexes."""
    return all(isinstance(column.name, str) for column in columns)


def given_ids(columns: Columns, options: InitOptions) -> list[ColumnProfile]:
    """Return the id in the columns that the user names as one, or []."""
    given = columns_named(columns, options, "id")
    return [joined_column(given)] if given else []


def find_id(columns: Columns, options: InitOptions) -> ColumnProfile | None:
    """Return the column of the sequence id, or None if there is none.

    The values of an id repeat, and all rows of one id have one label. At least one label has
    several ids. Of nested columns, the finest is the id. If there is none, a few labels may be
    mistakes where no windows are asked for. Texts of several words are no ids where another column
    names each row.

    Raises:
        DataError: If several columns may be the id.
    """
    given, labels = given_ids(columns, options), columns_named(columns, options, "label")
    if given and labels:  # the reader reports an id with several labels
        return given[0]
    taken = list(labels)
    for option in ("order", "steps"):
        taken += columns_named(columns, options, option)
    possible = [column for column in columns if column.can_be_label]
    if any(names_outcome(x) for x in possible if x.name != FOLDER):  # a folder is an owner then
        possible = [x for x in possible if x.name != FOLDER]
    targets = labels or possible
    names_rows = any(x.is_unique and (x.kind == "text" or is_code(x)) for x in columns)
    possible = [x for x in possible if x.words < FREE_WORDS or not names_rows]
    candidates = given or [
        x for x in possible if x.name != "" and x.kind != "amount" and x not in taken
    ]
    if len(candidates) > MOST_CANDIDATES:
        candidates = [x for x in candidates if is_code(x)] or candidates[:MOST_CANDIDATES]
    found = []
    for column in candidates:
        for label in targets[:MOST_CANDIDATES]:
            is_sparse = bool(labels) or says_nothing_if_blank(label)
            if label not in column.parts and refines(column, label, labelled=is_sparse):
                found.append(column)
                break
    if not found and options.get("window") is None:
        targets = labels or likeliest_labels(targets)
        pairs = [(x, label) for x in candidates for label in targets[:MOST_CANDIDATES]]
        found = [x for x, label in pairs if label not in x.parts and has_mistakes(label, x)]
    ids = found if given else _likeliest_ids(found, columns)
    ids = ids or _moments(without(columns, taken), targets)
    for column in ids:
        if all(determines(column, other) for other in ids):
            return column
    if ids:
        raise DataError(
            "--id: a row is a time step, but several columns may name its sequence; choose one:",
            *commands("id", ids),
        )
    return None


def _moments(columns: Columns, labels: Columns) -> list[ColumnProfile]:
    """Return columns of times that name sequences, such as a day whose rows have one label.

    Another column sorts the rows of each time: it is named like times or counters. Numbers of
    machines or places sort them, too, but then the rows of one machine are the sequence.
    """
    found = []
    for column in columns:
        if column.kind != "time" or FEWEST_PER_TIME * column.distinct > column.rows:
            continue
        has_label = any(refines(column, x) for x in labels if x is not column)
        counters = [x for x in columns if x.kind == "time" or is_counting(x)]
        if has_label and _sorts_rows_of(counters, column):
            found.append(column)
    return found


def has_mistakes(label: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if few rows of few ids have another label than the others of their id.

    More rows of such an id may have one that is another spelling. At least two labels are those of
    all rows of several ids, for a failure in few rows is none.
    """
    for rows in (slice(SAMPLE), slice(None)):
        ids, labels = id.codes[rows], label.codes[rows]
        known = ~(label.is_blank | id.is_blank)[rows]
        pairs = ids[known].astype(np.int64) * len(label.values) + labels[known]
        pairs, counts = np.unique(pairs, return_counts=True)
        owners = pairs // len(label.values)
        total = np.bincount(owners, counts)
        most = np.zeros(len(total), np.int64)
        np.maximum.at(most, owners, counts)
        mixed = most < total
        is_few = mixed.sum() <= max(FEW_MISTAKEN, MOST_MISTAKEN * np.count_nonzero(total))
        if not is_few:
            return False
        many = mixed & (total - most > np.maximum(1, MOST_MISTAKEN * total))
        for owner in np.flatnonzero(many).tolist():
            names = [str(label.values[pair % len(label.values)]) for pair in pairs[owners == owner]]
            if len({*map(likely_meaning, names)}) > 1:
                return False
    whole = pairs[~mixed[owners]] % len(label.values)
    return bool(mixed.any() and np.count_nonzero(np.bincount(whole) > 1) > 1)


def says_nothing_if_blank(label: ColumnProfile) -> bool:
    """Return True if a blank label says nothing, so that its sequence has that of the other rows.

    Most cells are blank, as if only one row of each id has its label, or few are, by mistake.
    """
    blank = np.count_nonzero(label.is_blank)
    return bool(2 * blank > label.rows or blank <= MOST_MISTAKEN * label.rows)


def _likeliest_ids(found: Columns, columns: Columns) -> list[ColumnProfile]:
    """Return the possible ids that are likeliest: the first of these groups that isn't empty.

    Codes whose equal values are contiguous; codes; columns whose equal values are contiguous; names
    and numbers that repeat, if another column holds measurements or times, or sorts their rows.
    These numbers are named like parts of ids, or counted. So are names of few values, which may be
    properties of rows.
    """
    rules = (lambda x: is_code(x) and x.is_contiguous, is_code, lambda x: x.is_contiguous)
    for rule in rules:
        likely = [column for column in found if rule(column)]
        if likely:
            return likely
    measured = {x for x in columns if x.is_measured}
    times = [column for column in columns if is_time(column)]
    measured |= {x for x in times if x.kind in ("number", "time") or x.pattern}
    names = [x for x in found if x.kind == "text" and x.repeats]
    names = [x for x in names if x.word == "name" or x.word not in TEXT_NAMES]
    numbers = [x for x in found if x.kind == "number" and x.repeats and not is_ordinal(x)]
    names += [x for x in numbers if may_name_sequences(x, columns)]
    names = [x for x in names if measured - {x} or _sorts_rows_of(columns, x)]
    names = [x for x in names if not _may_be_property(x, columns)]
    ids = [x for x in columns if x in found or is_code_or_owner(x)]
    return [x for x in names if not any(_counts(x, other) for other in ids)]


def _sorts_rows_of(columns: Columns, id: ColumnProfile) -> bool:
    """Return True if other columns sort the rows of an id, such as dates do."""
    return bool(find_order(without(columns, [id]), id))


def _may_be_property(column: ColumnProfile, columns: Columns) -> bool:
    """Return True for few scattered values, such as grades, whose rows no other column sorts."""
    if column.distinct > MOST_CLASSES or is_code_or_owner(column) or is_part_of_id(column):
        return False
    return not column.is_contiguous and not _sorts_rows_of(columns, column)


def may_name_sequences(column: ColumnProfile, columns: Columns) -> bool:
    """Return False for numbers that may be measured: that come back, whatever their name says.

    Numbers are ids if their rows stand together, if another column counts these, or if they are
    named like parts of ids, or have no name. So are equally long numbers of many digits, such as
    those of ships, whose rows all have another time.
    """
    if column.kind != "number" or column.is_contiguous or isinstance(column.name, int):
        return True
    others = [x for x in columns if x is not column and x.kind == "number"]
    is_named = is_code_or_owner(column) or is_part_of_id(column)
    if is_named or any(map(IdRows(column.codes).are_counted_by, others)):
        return True
    times = [x for x in columns if (x.kind == "time" or is_time(x)) and not x.is_constant]
    if not are_long_numbers(column):
        return False
    pairs = (joined_codes([column.codes, x.codes]) for x in times)
    return any(codes.max(initial=0) + 1 == column.rows for codes in pairs)


def are_long_numbers(column: ColumnProfile) -> bool:
    """Return True for equally long whole numbers of many digits, such as those of ships."""
    sizes = {len(str(value)) for value in column.values if value}
    return not column.has_decimals and len(sizes) == 1 and min(sizes) >= DIGITS_OF_ID


def is_ordinal(column: ColumnProfile) -> bool:
    """Return True if the column is named like times or counters, which are no ids."""
    return is_time(column) or is_counter(column)


def _counts(column: ColumnProfile, id: ColumnProfile) -> bool:
    """Return True if a column counts the rows of an id that follow each other."""
    is_id = column is not id and id.can_be_label and id.is_contiguous
    return is_id and bool(find_order([column], id))
