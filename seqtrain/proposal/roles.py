"""Roles of columns of a table with a row per sequence: label and sequence.

Each choice is a list of short rules with points. The column with most points is chosen. If several
have most points, the choice is left to the user.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from seqtrain.config.document import flow
from seqtrain.errors import DataError, either, marked
from seqtrain.proposal.label_forms import MARKS, repeats_multi_hot
from seqtrain.proposal.names import (
    BODY_NAMES,
    GROUP_NAMES,
    HEADLINE_NAMES,
    LABEL_NAMES,
    ROW_NAMES,
    TEXT_NAMES,
    is_code,
    is_code_or_owner,
    is_time,
    names_owner,
)
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.prediction import error_by_characters
from seqtrain.proposal.profile import (
    FEWEST_MEASURED,
    FREE_WORDS,
    LIST_KINDS,
    Column,
    are_smooth,
    fields_of,
)
from seqtrain.text import counted, listed, quote

FEWEST_WIDE = 8
"""Fewest columns of numbers that can be the time steps of a series."""
MANY_NUMBERS = 32
"""A list of this many numbers per row can be the sequence even next to longer free text."""
MUCH_LONGER = 4
"""A text is the sequence if it is more than this many times as long as each other text."""
PROBED_ROWS = 2000
"""Largest number of rows on which columns of text are compared."""
MOST_LISTED = 20
"""Number of columns that a message lists."""
FEWEST_OWNERS = 10
"""Fewest distinct values of a column that names the owner of each row, such as a customer."""
MOST_DETAILED = 4
"""A column can give the label away up to this many values per class."""
FIRST_ROWS = 4096
"""Rows that are compared first: most columns that don't determine another are told by them."""
LIST_TYPES = {"series": "features", "symbols": "tokens"}
"""Maps a kind of column to the kind of its sequences. Other columns hold texts."""

Points: TypeAlias = tuple[int, Callable[[Column], bool]]


@dataclass
class Roles:
    """Roles of the columns of a table.

    Attributes:
        kind: text, tokens, features, or steps.
        label: Column of the label, or None if the format has no columns to name.
        sequence: Columns of the sequence: one, texts to join, channels, or time steps.
        columns: All columns of the table.
        all_others: True if the sequence is all other columns: `data.sequence` is null.
        id: Column whose equal values mark the rows of one sequence, or None.
        order: Column that sorts them, or None.
        steps: Maps each column of time steps to its type.
        static: Maps each column with one value per id to "token" or "number".
        group: Column whose rows stay on one side of a split, or None.
        owner: Unused column that names the owner of each row, such as a customer, or None.
        has_names: True if a config can name the columns.
        window: Value of `data.window`, or None.
        reasons: Maps keys of the data section to the reason for their value.
        ignored: Descriptions of the columns that aren't used.
        warnings: Doubts about the columns, one line each.
        one_hot: Label columns that mark a label each. Their names are joined in `label`.
    """

    kind: str
    label: Column | None = None
    sequence: list[Column] = field(default_factory=list)
    columns: Sequence[Column] = ()
    all_others: bool = False
    id: Column | None = None
    order: Column | None = None
    steps: dict[str, Any] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    group: Column | None = None
    owner: Column | None = None
    has_names: bool = True
    window: dict[str, Any] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    one_hot: list[Column] = field(default_factory=list)


def has_few_values(column: Column) -> bool:
    """Return True if the column has as few values as labels usually have."""
    return column.distinct <= (12 if column.kind == "number" else 50)


LABEL_RULES: tuple[Points, ...] = (
    (4, lambda column: column.word == "label"),
    (4, lambda column: column.word in LABEL_NAMES),
    (-4, lambda column: column.word in (*TEXT_NAMES, *GROUP_NAMES)),
    (1, has_few_values),
    (-1, lambda column: is_code(column) or is_time(column)),
)


def points_of(column: Column, rules: Sequence[Points]) -> int:
    """Return the points of a column."""
    return sum(points for points, applies in rules if applies(column))


def likeliest(columns: Sequence[Column], rules: Sequence[Points]) -> list[Column]:
    """Return the columns with most points."""
    by_points: dict[int, list[Column]] = {}
    for column in columns:
        by_points.setdefault(points_of(column, rules), []).append(column)
    return by_points[max(by_points)] if by_points else []


def choose_label(columns: Sequence[Column]) -> Column:
    """Return the column of the label: the one with most points that can be a label.

    A table of many columns may hold a series, in which several columns have most points. Text is
    preferred among them, and then the first or last column of the table. If no column can be a
    label, the only column of lists beside a text is the label of a multi-label task.

    Raises:
        DataError: If no column can be the label, or several columns are equally likely.
    """
    candidates = [x for x in columns if x.name != "" and (x.can_be_label or repeats_multi_hot(x))]
    best = likeliest(candidates, LABEL_RULES)
    if len(best) > 1 and len(columns) > FEWEST_WIDE:
        ends = [column for column in best if column in (columns[0], columns[-1])]
        best = [column for column in best if column.kind == "text"] or ends or best
    lists = [column for column in columns if column.kind == "symbols"]
    if not candidates and len(lists) == 1 and any(x.kind == "text" for x in columns):
        best = lists
    if len(best) == 1:
        return best[0]
    if candidates:
        raise DataError(
            marked("--label: several columns may hold the label; choose one:"),
            *commands("label", best),
            *_command_for_marks(best),
        )
    advice = marked("give --label COLUMN")
    if any(column.kind == "number" for column in columns):
        advice = f"group numbers into classes, or {advice}"
    raise DataError(
        marked("--label: no column has values that repeat as labels do; ") + f"{advice}; found:",
        *described(columns),
    )


def _command_for_marks(columns: Sequence[Column]) -> list[str]:
    """Return a line that advises to read columns of marks such as 0 and 1 as labels, or none."""
    if not all({str(x).lower() for x in column.values} <= MARKS for column in columns):
        return []
    setting = f"data.label={flow([column.name for column in columns])}"
    chosen = either(f"{INIT_COMMAND} --set {shlex.quote(setting)}", f"settings=[{setting!r}]")
    return [f"  {chosen}  # a row can have several labels"]


def commands(option: str, columns: Sequence[Column]) -> list[str]:
    """Return a line per column for a message, with a command that names the column."""
    listed = columns[:MOST_LISTED]
    shell = [f"{INIT_COMMAND} --{option} {shlex.quote(str(each.name))}" for each in listed]
    python = [f"{option}={each.name!r}" for each in listed]
    widths = max(map(len, shell)), max(map(len, python))
    lines = []
    for one, other, column in zip(shell, python, listed, strict=True):
        chosen = either(one.ljust(widths[0]), other.ljust(widths[1]))
        lines.append(f"  {chosen}  # {counted(column.distinct, 'value')}")
    return [*lines, *_more(columns)]


def described(columns: Sequence[Column]) -> list[str]:
    """Return a line per column for a message, with the kind of its content."""
    lines = [f"  {column.describe()}" for column in columns[:MOST_LISTED]]
    return [*lines, *_more(columns)]


def _more(columns: Sequence[Column]) -> list[str]:
    more = len(columns) - MOST_LISTED
    return [f"  and {more:,} more"] if more > 0 else []


def row_table(
    columns: Sequence[Column], options: InitOptions, label: Column | None = None
) -> Roles:
    """Return the roles of a table with one row per sequence.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
        label: Column of the label, or None to choose it.

    Raises:
        DataError: If the label or the sequence isn't clear.
    """
    label = label or choose_label(columns)
    chosen = columns_named(columns, options, "sequence") or choose_sequence(columns, label)
    found = kind_of_sequence(chosen)
    roles = Roles(options.kind or found, label, chosen, columns)
    if options.kind is None:
        _doubt_codes(roles)
    ignored = [column for column in columns if column is not label and column not in chosen]
    for column in ignored:
        reason = _gives_away(column, label)
        roles.ignored.append(f"{column.shown} ({reason})" if reason else column.describe())
        if reason:
            roles.warnings.append(f"{column.shown} gives the label away ({reason}): not used")
    is_wide = len(chosen) > 1 and all(column.kind == "number" for column in chosen)
    if is_wide and roles.kind == "features" and all(column.name == "" for column in ignored):
        roles.all_others = True
    roles.owner = owner_of([x for x in ignored if not _gives_away(x, label)])
    return roles


def _gives_away(column: Column, label: Column) -> str | None:
    """Return the way in which a column tells the label of a row, or None if it doesn't."""
    if not column.can_be_label or not determines(column, label):
        return None
    if determines(label, column):
        return "the label again"
    is_detail = column.distinct <= MOST_DETAILED * label.distinct and not is_code_or_owner(column)
    return "the label in more detail" if is_detail else None


def determines(one: Column, other: Column, *, labelled: bool = False) -> bool:
    """Return True if rows with equal values in `one` always have equal values in `other`.

    Rows with an odd cell, such as ERR among numbers, don't count.

    Args:
        one: The column that may determine the other.
        other: The column that may be determined.
        labelled: True to ignore rows in which `other` is blank. Perhaps only one row of an id holds
            its label.
    """
    left, right = one.codes, other.codes
    used = ~(one.is_odd | other.is_odd)
    is_plain = not labelled and bool(used[:FIRST_ROWS].all())
    if is_plain and not _determines(left[:FIRST_ROWS], right[:FIRST_ROWS]):
        return False
    if labelled:
        used &= ~other.is_blank
    if not used.all():
        left, right = left[used], right[used]
    return len(left) > 0 and _determines(left, right)


def _determines(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> bool:
    some = np.zeros(left.max(initial=0) + 1, dtype=right.dtype)
    some[left] = right
    return bool((some[left] == right).all())


def _doubt_codes(roles: Roles) -> None:
    """Warn that whole numbers in lists, or in columns, may be codes or measurements."""
    lists = [x for x in roles.sequence if x.cell_kind == "numbers" and x.are_whole_lists]
    is_wide = len(roles.sequence) > 1 and not any(x.has_decimals for x in roles.sequence)
    if not lists and not (is_wide and roles.sequence[0].kind == "number"):
        return
    other, kind = "symbols", "tokens"
    if roles.kind == "tokens":
        other, kind = "measurements", "features"
    roles.warnings.append(
        f"the sequences are whole numbers, read as {roles.kind}; if they are {other}: --set "
        f"data.kind={kind}"
    )


def choose_sequence(columns: Sequence[Column], label: Column) -> list[Column]:
    """Return the columns of the sequence: one column, texts to join, channels, or time steps.

    Raises:
        DataError: If no column or several columns can be the sequence. Also if the table seems to
            have a row per time step.
    """
    others = [column for column in columns if column is not label and column.name != ""]
    texts = [x for x in others if x.kind == "text" and not looks_like_time(x)]
    texts = [x for x in texts if not _is_synonym(x, label)] or texts
    lists = _lists(others, texts)
    if len(lists) > 1 and are_channels(lists):
        return lists
    if len(lists) == 1:
        return lists
    chosen = [] if lists else _title_and_body(texts) or _wide_series(others)
    if chosen:
        return chosen
    if not lists:
        _refuse_step_table(others, texts)
    chosen = [] if lists else _most_telling(texts, label)
    chosen = chosen or _only_likely(lists, texts)
    if chosen:
        return chosen
    if not lists and not texts and len(others) > 2:
        raise DataError(no_series_problem(others))
    advice = marked("give --sequence COLUMN, or --id COLUMN if a row is a time step")
    raise DataError(
        f"--sequence: it isn't clear which column holds the sequence; {advice}; found:",
        *(described(others) or ["  the label only"]),
    )


def looks_like_time(column: Column) -> bool:
    """Return True for texts of one pattern of digits and separators, as times are."""
    return column.words < FREE_WORDS and column.pattern is not None


def _lists(others: Sequence[Column], texts: Sequence[Column]) -> list[Column]:
    """Return the columns of lists. Lists of few numbers are left out if there is free text.

    A column with a usual name is kept, unless a column of free text also has such a name.
    """
    lists = [column for column in others if column.kind in LIST_KINDS]
    free = [column for column in texts if column.is_free_text]
    if not free:
        return lists
    fewest = max(FEWEST_WIDE, min(max(column.words for column in free), MANY_NUMBERS))
    names = () if any(column.word in TEXT_NAMES for column in free) else TEXT_NAMES
    return [x for x in lists if not x.steps or x.steps >= fewest or x.word in names]


def are_channels(lists: Sequence[Column]) -> bool:
    """Return True if columns of lists are series of equal lengths."""
    return {x.kind for x in lists} == {"series"} and len({round(x.steps, 9) for x in lists}) == 1


def _title_and_body(texts: Sequence[Column]) -> list[Column]:
    """Return the headline and the body, whose texts are joined, or [].

    A column that only has the name of a headline isn't one: its texts differ from row to row.
    """
    titles = [x for x in texts if x.word in HEADLINE_NAMES and not x.is_category]
    bodies = [x for x in texts if x.word in BODY_NAMES]
    return [*titles, *bodies] if len(titles) == len(bodies) == 1 else []


def _wide_series(others: Sequence[Column]) -> list[Column]:
    """Return the columns of numbers that are more than half of all columns, or []."""
    wide = wide_columns(others)
    return wide if 2 * len(wide) > len(others) else []


def wide_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns of numbers that are the time steps of a series, or [].

    They are eight or more columns without names, or whose names differ only in digits. If there are
    several such groups of columns, the list is empty.
    """
    by_stem: dict[str, list[Column]] = {}
    for column in columns:
        if column.kind == "number":
            by_stem.setdefault(re.sub("[0-9]+", "", column.word), []).append(column)
    groups = [group for group in by_stem.values() if len(group) >= FEWEST_WIDE]
    return groups[0] if len(groups) == 1 else []


def _is_synonym(column: Column, label: Column) -> bool:
    """Return True if a column that repeats has one value per label, and another for each."""
    if column.distinct != label.distinct or 2 * column.distinct > column.rows:
        return False
    return len({*zip(column.codes.tolist(), label.codes.tolist(), strict=True)}) == label.distinct


def _most_telling(texts: Sequence[Column], label: Column) -> list[Column]:
    """Return the text from which naive Bayes on characters tells the label clearly best, or [].

    Args:
        texts: Columns of text.
        label: Column of the label.
    """
    texts = [column for column in texts if column.differs and column.word not in ROW_NAMES]
    if len(texts) < 2:
        return []
    rows = np.unique(np.linspace(0, label.rows - 1, PROBED_ROWS).astype(int))
    rows = rows[[label.values[code] != "" for code in label.codes[rows].tolist()]]
    errors = []
    for column in texts:
        cells = [column.values[code] for code in column.codes[rows].tolist()]
        errors.append(error_by_characters(cells, label.codes[rows]))
    best, second = np.argsort(errors, kind="stable")[:2]
    variance = errors[second] * (1 - errors[second]) / max(1, len(rows) / 4)
    limit = min(0.9 * errors[second], errors[second] - 2 * np.sqrt(variance))
    return [texts[best]] if errors[best] < limit else []


def _only_likely(lists: Sequence[Column], texts: Sequence[Column]) -> list[Column]:
    """Return the only column with a usual name, or the only one left, or the longest text."""
    candidates = lists or texts
    named = [column for column in candidates if column.word in TEXT_NAMES]
    if len(named) == 1:
        return named
    plausible = [x for x in candidates if x.word not in ROW_NAMES]
    if len(texts) > 1:
        plausible = [x for x in plausible if not x.is_unique]
    if len(plausible) == 1:
        return plausible
    by_length = sorted(plausible, key=lambda column: -column.characters)
    is_longest = len(by_length) > 1 and not lists
    if is_longest and by_length[0].characters > MUCH_LONGER * by_length[1].characters:
        return by_length[:1]
    return []


def _refuse_step_table(others: Sequence[Column], texts: Sequence[Column]) -> None:
    """Raise a DataError if the table seems to have a row per time step.

    Its texts are then single words that repeat, as ids do. Other columns hold measurements, or the
    only column except the label is named like codes or owners.
    """
    is_table = any(column.is_measured for column in others)
    if len(others) == 1:
        is_table = is_table or is_code_or_owner(others[0])
    if not texts or not is_table or not all(column.is_category for column in texts):
        return
    values = f"{counted(texts[0].distinct, 'value')} of {quote(str(texts[0].name), 20)}"
    raise DataError(
        f"looks like a row per time step ({values} in {texts[0].rows:,} rows); give --id COLUMN "
        "and --label COLUMN, with one label per sequence (add it if there is none), or --sequence"
    )


def no_series_problem(columns: Sequence[Column]) -> str:
    """Return an error message: these columns of single numbers are too few for a series."""
    return (
        f"--sequence: found {counted(len(columns), 'column')} of one number each; a series has "
        f"them in one cell or in {FEWEST_WIDE} or more columns; if a row is a time step, "
        "give --id COLUMN (and data.window, for a label per step)"
    )


def kind_of_sequence(chosen: Sequence[Column]) -> str:
    """Return the kind of the sequence in the chosen columns: text, tokens or features.

    Raises:
        DataError: If columns of single numbers have units, or are too few for a series.
    """
    for column in chosen:
        if column.kind == "events":
            raise DataError(_events_problem(column))
    kinds = {LIST_TYPES.get(column.kind, "text") for column in chosen}
    kind = kinds.pop() if len(kinds) == 1 else "text"
    if len(chosen) > 1 and all(column.kind == "number" for column in chosen):
        if len(chosen) < FEWEST_WIDE:
            raise DataError(no_series_problem(chosen))
        kind = "tokens" if are_wide_codes(chosen) else "features"
    with_units = [column for column in chosen if column.has_refused_units]
    if with_units and kind == "features":
        raise DataError(f"--sequence: {with_units[0].unit_problem()}")
    return kind


def _events_problem(column: Column) -> str:
    """Return an error message about lists of objects that aren't turns of a chat."""
    names = dict.fromkeys(name for value in column.sampled_values for name in fields_of(value))
    fields = listed([quote(str(name), 40) for name in names], 8)
    turn = '{"role": …, "content": …}'
    return (
        f"--sequence: {column.shown} holds objects with the fields {fields}; no turns such as "
        f"{turn}; write a row per object, with an id of the list, and give --id"
    )


def are_wide_codes(columns: Sequence[Column]) -> bool:
    """Return True if whole numbers from 0 on in columns are codes.

    Codes repeat in every column, and neighbours aren't similar. Pixels and sensors are similar.
    """
    known = columns[0].values[:FEWEST_MEASURED] and [x for x in columns if x.has_decimals]
    if known or any(x.has_decimal_commas or x.units for x in columns):
        return False
    rows = np.stack([column.numbers[:PROBED_ROWS] for column in columns], axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows) or rows.min() < 0:
        return False
    distinct = len(np.unique(rows))
    return FEWEST_MEASURED < distinct <= rows.size / 4 and not are_smooth(rows)


def owner_of(columns: Sequence[Column]) -> Column | None:
    """Return the first column that seems to name the owner of each row, or None.

    The column is named like codes or owners. It has ten or more distinct texts or whole numbers,
    and at most half as many as rows.
    """
    for column in columns:
        is_value = column.kind in ("text", "number") and not column.has_no_labels
        is_named = is_code(column) or names_owner(column)
        if is_named and is_value and FEWEST_OWNERS <= column.distinct <= column.rows / 2:
            return column
    return None


def columns_named(columns: Sequence[Column], options: InitOptions, option: str) -> list[Column]:
    """Return the columns that the user gave in an option, by name or index, or [].

    A text that is a name and an index is read as a name. The columns must exist.
    """
    given = options.named(option)
    if not given:
        return []
    by_name = {str(index): column for index, column in enumerate(columns)}
    by_name |= {str(column.name): column for column in columns}
    return [by_name[str(name)] for name in given]
