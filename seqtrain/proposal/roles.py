"""Roles of the columns of a table: label and sequence of a table with a row per sequence.

The label is the column with most points by short rules. The sequence is what the first rule that
finds one says. If a choice isn't clear, it is left to the user.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError, either, marked
from seqtrain.proposal.cell_kinds import Floats
from seqtrain.proposal.names import (
    ACCEPTED,
    GROUP_NAMES,
    LABEL_NAMES,
    LANGUAGE_NAMES,
    SORTING_NAMES,
    TEXT_NAMES,
    is_code_or_owner,
    is_decision,
    is_no_outcome,
    last_word,
    may_own,
    names_outcome,
    names_outcomes,
    names_owner,
    names_person,
    names_property,
    names_variant,
    tells_time,
)
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.order import Order
from seqtrain.proposal.profile import (
    FREE_WORDS,
    LABEL_KINDS,
    ColumnProfile,
    Columns,
    determines,
    without,
)
from seqtrain.proposal.shell import set_option
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.schema import EVERY
from seqtrain.tables.blocks import FILE, FOLDER, Coded
from seqtrain.tables.cells import TRUTH_VALUES, name_of
from seqtrain.text import LISTED, counted, listed, quote

FEWEST_WIDE = 8
"""Fewest columns of numbers that can be the time steps of a series."""
NUMBER_IN_TITLE = re.compile("[0-9]+")
"""Number in the name of a column, such as that of a week."""
FEWEST_ALIKE = 5
"""Fewest columns whose names differ in numbers only that are no labels if others may be."""
MOST_LABELS = 4
"""Number of columns that may be the label in a warning."""
MOST_CLASSES, MOST_WORDS_AS_CLASSES = 12, 50
"""Most values of a likely label: numbers, or a column named like codes or texts; others."""
MOST_LISTED = 20
"""Number of columns that a message lists."""
FEWEST_OWNERS, FEWEST_NUMBERED_OWNERS = 10, 3
"""Fewest distinct values of a column that names the owner of each row, such as a customer.

The second number is for values with digits, and for persons.
"""
MOST_DETAILED = 4
"""A column can give the label away up to this many values per class."""
FEWEST_AGREEING = 20
"""With this many more sequences than values, equal labels of equal values aren't by chance."""
Points: TypeAlias = tuple[int, Callable[[ColumnProfile], bool]]
LABEL_RULES: tuple[Points, ...] = (
    (4, lambda column: column.word == "label"),
    (4, names_outcome),
    (-1, names_property),
    (2, lambda column: column.word in LANGUAGE_NAMES),
    (-4, lambda column: column.word in (*TEXT_NAMES, *GROUP_NAMES)),
    (1, lambda column: _has_few_values(column)),
    (-1, is_no_outcome),
)
"""Points of a column as the label."""


@dataclass
class Roles:
    """Roles of the columns of a table.

    Attributes:
        kind: text, tokens, features, or steps.
        label: Column of the label.
        sequence: Columns of the sequence: one, texts to join, channels, or time steps.
        columns: All columns of the table; or, if a sequence is a list of objects, their fields.
        all_others: True if the sequence is all other columns: `data.sequence` is null.
        id: Column whose equal values mark the rows of one sequence, or None.
        order: Columns that sort them.
        steps: Maps each column of time steps, or each field of the objects, to its type.
        static: Maps each column with one value per id to "token" or "number".
        group: Column whose rows stay on one side of a split, or None.
        owner: Unused column that names the owner of each row, such as a customer, or None.
        has_names: True if a config can name the columns.
        units: Maps columns of numbers to the unit that is written with them.
        window: Value of `data.window`, or None.
        reasons: Maps keys of the data section to the reason for their value.
        ignored: Descriptions of the columns that aren't used.
        warnings: Doubts about the columns, one line each.
        one_hot: Label columns that mark a label each. Their names are joined in `label`.
    """

    kind: str
    label: ColumnProfile
    sequence: list[ColumnProfile] = field(default_factory=list)
    columns: Columns = ()
    all_others: bool = False
    id: ColumnProfile | None = None
    order: Order = field(default_factory=Order)
    steps: dict[str, Any] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    group: ColumnProfile | None = None
    owner: ColumnProfile | None = None
    has_names: bool = True
    units: dict[str, str] = field(default_factory=dict)
    window: dict[str, Any] | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    one_hot: list[ColumnProfile] = field(default_factory=list)

    def number_columns(self) -> list[ColumnProfile]:
        """Return the columns of numbers that sequences hold."""
        names = {name for name, kind in (self.steps | self.static).items() if "number" in kind}
        if not names:  # a series may have many columns
            return []
        return [column for column in self.columns if column.name_text in names]

    def numbers_and_order(self) -> list[ColumnProfile]:
        """Return the columns of numbers that sequences hold, and those of the order."""
        return list(dict.fromkeys((*self.number_columns(), *self.order.columns)))

    def odd_sequences(self) -> list[ColumnProfile]:
        """Return the columns of the sequence in which cells of another kind can't be read.

        Where a sequence is of tokens, every text can, except if others are lists.
        """
        return [x for x in self.sequence if self.kind != "tokens" or x.has_lists]

    def numbers(self) -> dict[str, Floats]:
        """Return the numbers of the used columns, under their names in data.na_values.

        The name of time steps in several columns is `EVERY`, and "" that of lists of numbers.
        """
        found = {column.name_text: column.numbers for column in self.number_columns()}
        if self.kind == "features":
            wide = [column.numbers for column in self.sequence if column.kind == "number"]
            lists = [own for column in self.sequence for own in column.lists]
            found |= {EVERY: np.concatenate(wide)} if wide else {}
            found |= {"": np.concatenate(lists)} if lists else {}
        return found

    def ignore(self, column: ColumnProfile, reason: str | None = None) -> None:
        """Note a column that isn't used, and warn if it gives the label away.

        Args:
            column: The column.
            reason: The reason. None or "" if the kind of its content is the reason.
        """
        self.ignored.append(f"{column.shown} ({reason})" if reason else column.describe())
        if reason and reason.startswith("the label") and column.name not in (FILE, FOLDER):
            self.warnings.append(f"{column.shown} gives the label away ({reason}): not used")


# The label


def _has_few_values(column: ColumnProfile) -> bool:
    """Return True if a column has as few values as most tasks have classes.

    Texts of several words are rarely names of many classes.
    """
    if column.kind == "text" and column.words < FREE_WORDS:
        return column.distinct <= MOST_WORDS_AS_CLASSES
    return column.distinct <= MOST_CLASSES


def likeliest_labels(columns: Columns) -> list[ColumnProfile]:
    """Return the columns with most points as the label."""
    by_points: dict[int, list[ColumnProfile]] = {}
    for column in columns:
        points = sum(points for points, applies in LABEL_RULES if applies(column))
        by_points.setdefault(points, []).append(column)
    if by_points:
        return by_points[max(by_points)]
    return []


def choose_label(columns: Columns, *, fewest: int = 3) -> ColumnProfile:
    """Return the column of the label: the one with most points that can be a label.

    A table of many columns may hold a series, in which several columns have most points. Text is
    preferred among them, and then the first or last column of the table, if they aren't marks of
    several labels beside a text. If no column can be a label, the only column of lists beside a
    text is the label of a multi-label task.

    Args:
        columns: Columns to choose from.
        fewest: Fewest columns of which a label that is named like codes or times is doubted.

    Raises:
        DataError: If no column can be the label, several columns are equally likely, or the
            likeliest is named like codes or times.
    """
    candidates = [x for x in columns if x.name != "" and (x.can_be_label or x.is_multi_hot)]
    if any(column.is_free_text for column in columns):
        lists = [x for x in columns if names_outcome(x) and not names_property(x)]
        candidates += [x for x in lists if holds_lists_of_labels(x) and x not in candidates]
    if any(x.word == ACCEPTED and x.holds_names for x in columns):  # those that are accepted
        candidates = [x for x in candidates if not is_decision(x)]
    unlikely = _numbered(columns)
    unlikely |= {x for x in candidates if x.is_mostly_nan and not names_outcome(x)}
    candidates = [x for x in candidates if x not in unlikely] or candidates
    best = likeliest_labels(candidates)
    marks = _marks(best)
    are_marks = len(marks) >= FEWEST_ALIKE and 2 * len(marks) > len(best)
    are_marks = are_marks and any(map(_may_be_text, columns))
    if len(best) > 1 and len(columns) > FEWEST_WIDE and not are_marks:
        ends = [column for column in best if column in (columns[0], columns[-1])]
        best = [column for column in best if column.kind == "text"] or ends or best
    lists = [column for column in columns if column.holds_names and not column.is_constant]
    if not candidates and len(lists) == 1 and any(x.kind == "text" for x in columns):
        best = lists
    if len(best) == 1:
        is_doubtful = is_no_outcome(best[0]) and not names_outcome(best[0])
        if is_doubtful and len(columns) >= fewest:
            raise DataError(
                marked("--label: no column is named like a label; choose one, or add it:"),
                *commands("label", sorted(candidates, key=lambda x: x is not best[0])),
            )
        return best[0]
    if candidates:
        others = [x for x in candidates if not (x in best or x.is_measured or _names_many(x))]
        lines = commands("label", [*best, *others])
        command = _command_for_marks(best)
        # Beside other columns, two flags of a row are rarely its labels.
        are_marks = are_marks or all(map(_holds_truth_values, best))
        lines = [*command, *lines] if are_marks else [*lines, *command]
        for column in without(columns, candidates):
            if column.is_number and last_word(column) in LABEL_NAMES:
                lines.append(f"if it is {column.shown}, write classes in place of its numbers")
        raise DataError(marked("--label: several columns may hold the label; choose one:"), *lines)
    repeated = [x for x in columns if x.repeats_as_labels and x.kind in ("number", "time")]
    if repeated:
        raise DataError(
            marked("--label: only numbers or dates repeat as labels do; if one is the label:"),
            *commands("label", repeated),
        )
    advice = marked("add a column of labels, or name it (--label COLUMN)")
    if any(column.kind in ("number", "amount") for column in columns):
        advice = f"{advice}; group numbers into classes"
    for column in columns:
        if names_outcome(column) and column.distinct == 1 and column.rows > 1:
            one = quote(str(column.values[0]), 40)
            raise DataError(f"{column.shown}: one label, {one}; expected two or more")
    raise DataError(
        marked("--label: no column has values that repeat as labels do; ") + f"{advice}; found:",
        *described_columns(columns),
        *_command_for_marks([column for column in columns if column.marks_rows]),
    )


def holds_lists_of_labels(column: ColumnProfile) -> bool:
    """Return True for lists of names without repetitions, below a name such as labels or tags.

    Objects are labels with a number, a colour and so on, as those of issues.
    """
    if column.kind not in ("symbols", "events") or not names_outcomes(column):
        return False
    if column.kind == "events":
        return True
    lists = map(column.strings_of, column.sampled_values)
    return all(len(set(own)) == len(own) for own in lists)


def _by_stem(columns: Columns) -> dict[str, list[ColumnProfile]]:
    """Return columns by their names without numbers."""
    found: dict[str, list[ColumnProfile]] = {}
    for column in columns:
        found.setdefault(NUMBER_IN_TITLE.sub("", column.name_text), []).append(column)
    return found


def _numbered(columns: Columns) -> set[ColumnProfile]:
    """Return columns whose names differ in a number only, as weeks do, but no columns of marks."""
    groups = [own for stem, own in _by_stem(columns).items() if stem and len(own) >= FEWEST_ALIKE]
    return {x for own in groups if not all(map(_holds_truth_values, own)) for x in own}


def other_labels(columns: Columns, label: ColumnProfile) -> list[str]:
    """Return a doubt about a label that its name doesn't tell, if other columns may be it.

    If its name does, these are columns named like labels or like queues of cases, and those that
    the label determines, as a grade tells who passed. A class may be a property of a row, so others
    may be the label, too.
    """
    others = [x for x in columns if x.can_be_label and x is not label and x.name != ""]
    others = [x for x in others if not (tells_time(x) or names_variant(x) or is_decision(x))]
    others = [x for x in others if _has_few_values(x) and not tells_label(x, label)]
    others = [x for x in others if not _names_many(x)]
    if label.word == "label":  # beside it, a type or a category is a property
        others = [x for x in others if not (names_property(x) or x.word in SORTING_NAMES)]
    numbered = _numbered(columns) if others else set()
    others = [x for x in others if x not in numbered]
    reason = "no column is named like a label"
    if names_outcome(label):
        reason = "others may be the label, too"
        if not (label.holds_codes or names_property(label)):
            is_detail = label.can_be_label  # lists all differ
            named = {x for x in others if names_outcome(x) or x.word in SORTING_NAMES}
            others = [x for x in others if x in named or (is_detail and determines(label, x))]
    else:  # an x beside blank cells may mark a class
        others += [x for x in columns if x.marks_rows and x.name != ""]
        others += [x for x in columns if holds_lists_of_labels(x) and x is not label]
    if not others:
        return []
    shown = [options_naming("label", [column]) for column in others[:MOST_LABELS]]
    return [
        f"{label.shown} is read as the label, but {reason}; if it is another one: "
        f"{' or '.join(shown)}"
    ]


def _names_many(column: ColumnProfile) -> bool:
    """Return True for many values below a name of codes, owners or texts, such as player_id."""
    is_name = is_code_or_owner(column) or column.word in TEXT_NAMES
    return is_name and column.distinct > MOST_CLASSES


def _command_for_marks(columns: Columns) -> list[str]:
    """Return a line that advises to read columns of marks such as 0 and 1 as labels, or none."""
    columns = _marks(columns)
    if len(columns) < 2:
        return []
    setting = f"data.label={flow([column.name for column in columns])}"
    marks = joined_marks(columns).values
    if any("|" in own or not own for own in marks):
        return [f"  {set_command(setting)}  # a row can have several labels"]
    return [f"  {set_command(setting)}  # each row has one of them"]


def _marks(columns: Columns) -> list[ColumnProfile]:
    """Return the columns of marks such as 0 and 1: those that have them in the commonest form."""
    marks = [column for column in columns if _holds_truth_values(column)]
    for kind, _ in Counter(column.kind for column in marks).most_common(1):
        return [column for column in marks if column.kind == kind]
    return []


def _may_be_text(column: ColumnProfile) -> bool:
    """Return True for texts that differ from row to row, and are no codes."""
    is_text = column.kind == "text" and column.differs
    return is_text and not (column.has_one_shape or is_code_or_owner(column))


def _holds_truth_values(column: ColumnProfile) -> bool:
    return all(name_of(str(value)).lower() in TRUTH_VALUES for value in column.values)


def set_command(setting: str) -> str:
    """Return the user's command with a further setting of the config, for a message."""
    return either(f"{INIT_COMMAND} {set_option(setting)}", f"settings=[{setting!r}]")


def commands(option: str, columns: Columns) -> list[str]:
    """Return a line per column for a message, with a command that names the column."""
    return listed_commands(option, [(x, counted(x.distinct, "value")) for x in columns])


def options_naming(option: str, columns: Columns) -> str:
    """Return an option for each of several columns, as a shell reads them."""
    return shlex.join([word for x in columns for word in (f"--{option}", x.name_text)])


def command_naming(option: str, columns: Columns) -> str:
    """Return the user's command with an option for several columns together, for a message."""
    names = [column.name_text for column in columns]
    return either(f"{INIT_COMMAND} {options_naming(option, columns)}", f"{option}={names!r}")


def listed_commands(option: str, columns: Sequence[tuple[ColumnProfile, str]]) -> list[str]:
    """Return a line per column with a command that names it, and a comment."""
    lines = []
    for column, comment in columns:
        words = f"{INIT_COMMAND} --{option} {shlex.quote(column.name_text)}"
        lines.append(f"{either(words, f'{option}={column.name!r}')}  # {comment}")
    return _lines(lines)


def shown_names(columns: Columns, limit: int = LISTED) -> str:
    """Return the names of columns for a message, at most so many."""
    return listed([column.shown for column in columns], limit)


def described_columns(columns: Columns) -> list[str]:
    """Return a line per column for a message, with the kind of its content."""
    return _lines([column.describe() for column in columns])


def _lines(texts: list[str]) -> list[str]:
    """Return texts as lines of a message, and the number of those that aren't shown."""
    if len(texts) > MOST_LISTED:
        more = [f"and {len(texts) - MOST_LISTED:,} more"]
    else:
        more = []
    return [f"  {text}" for text in [*texts[:MOST_LISTED], *more]]


def tells_label(
    column: ColumnProfile, label: ColumnProfile, id: ColumnProfile | None = None
) -> str | None:
    """Return the way in which a column tells the label, or None if it doesn't.

    Args:
        column: The column.
        label: Column of the label.
        id: Column whose equal values mark the rows of a sequence, or None if each row is one.
    """
    if column.kind not in LABEL_KINDS or column.has_no_labels:
        return None
    if not determines(column, label):
        return None
    if determines(label, column):
        return "the label again"
    is_detail = column.distinct <= MOST_DETAILED * label.distinct
    # Rows in blocks, such as the lines of a play, have one label without giving it away.
    if id is not None and id.distinct - column.distinct >= FEWEST_AGREEING:
        is_detail |= 2 * column.distinct <= id.distinct
    if is_detail:
        return "the label in more detail"
    return None


def owners_of(columns: Columns, id: ColumnProfile | None = None) -> list[ColumnProfile]:
    """Return the columns that seem to name the owner of each row, or of each sequence.

    Such a column is named like ids or owners, or holds codes such as K017. It has a few distinct
    texts or whole numbers, and at most half as many as there are rows, or sequences. They are at
    least ten; or three if all have digits, as P1, or the column is named like persons: but not
    the mobile and desktop of a device.

    Args:
        columns: Columns to choose from.
        id: Column whose equal values mark the rows of a sequence, or None if each row is one.
    """
    found = []
    for column in columns:
        is_value = column.kind in LABEL_KINDS and not column.has_no_labels
        if not is_value or not (may_own(column) or column.holds_codes):
            continue
        are_numbered = all(any(map(str.isdigit, str(x))) for x in column.values)
        is_sure = are_numbered or names_person(column)
        fewest = FEWEST_NUMBERED_OWNERS if is_sure else FEWEST_OWNERS
        sequences = column.rows if id is None else id.distinct
        is_nested = id is None or (column is not id and determines(id, column))
        if is_nested and fewest <= column.distinct <= sequences / 2:
            found.append(column)
    return found


def owner_of(columns: Columns, id: ColumnProfile | None = None) -> ColumnProfile | None:
    """Return the first of `owners_of`, or None. Names of owners come before ids."""
    found = owners_of(columns, id)
    return next((x for x in found if names_owner(x)), next(iter(found), None))


def columns_named(columns: Columns, options: InitOptions, option: str) -> list[ColumnProfile]:
    """Return the columns that the user gave in an option, by name or index, or [].

    A text that is a name and an index is read as a name. The columns must exist.
    """
    given = options.named(option)
    if not given:
        return []
    by_name = {str(index): column for index, column in enumerate(columns)}
    by_name |= {column.name_text: column for column in columns}
    return [by_name[str(name)] for name in given]


def joined_marks(columns: Columns) -> ColumnProfile:
    """Return a column of the names of the columns that mark a label in a row, joined by |.

    Raises:
        DataError: If a cell of a label column isn't a mark such as 0, 1, true or false.
    """
    reader = LabelReader(None)
    cells = {column.name: Coded(column.codes, column.values) for column in columns}
    codes, problems = reader.read_marks(cells)
    if problems:
        raise DataError(f"--label: column {next(iter(problems.values()))}")
    name = str([column.name for column in columns])
    return ColumnProfile(name, ["|".join(names) for names in reader.combinations], codes)


def odd_numbers(roles: Roles) -> Iterator[ColumnProfile]:
    """Yield each used column of numbers with cells of another kind."""
    for column in (*roles.numbers_and_order(), *roles.odd_sequences()):
        if column.is_odd.any():
            yield column
