"""Roles of the columns of a table: label and sequence of a table with a row per sequence.

The label is the column with most points by short rules. The sequence is what the first rule that
finds one says. If a choice isn't clear, it is left to the user.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError, either, marked
from seqtrain.proposal.names import (
    BODY_NAMES,
    GROUP_NAMES,
    HEADLINE_NAMES,
    ROW_NAMES,
    SHORT_NAMES,
    TEXT_NAMES,
    is_code,
    is_code_or_owner,
    is_no_outcome,
    is_time,
    may_own,
    names_outcome,
    names_owner,
    names_variant,
)
from seqtrain.proposal.options import INIT_COMMAND, InitOptions
from seqtrain.proposal.order import Order
from seqtrain.proposal.prediction import error_by_characters
from seqtrain.proposal.profile import (
    FEWEST_MEASURED,
    FREE_WORDS,
    LABEL_KINDS,
    LIST_KINDS,
    ColumnProfile,
    Floats,
    are_codes,
    determines,
)
from seqtrain.sequences.labels import LabelReader
from seqtrain.sequences.schema import EVERY
from seqtrain.tables.blocks import FILE, FOLDER, Coded
from seqtrain.tables.cells import TRUTH_VALUES, items_of, name_of
from seqtrain.text import counted, listed, quote

FEWEST_WIDE = 8
"""Fewest columns of numbers that can be the time steps of a series."""
MANY_NUMBER_COLUMNS = 32
"""A list of this many numbers per row can be the sequence even next to longer free text."""
MUCH_LONGER = 4
"""A text is the sequence if it is more than this many times as long as each other text."""
PROBED_ROWS = 2000
"""Largest number of rows on which columns of text are compared."""
LONGEST_CODE = 40
"""Most characters of unique words, on average, that are ids of rows, such as UUIDs."""
MOST_LABELS = 4
"""Number of columns that may be the label in a warning."""
MOST_CLASSES = 12
"""Most values of a column named like codes or texts that may be the label in a warning."""
MOST_LISTED = 20
"""Number of columns that a message lists."""
FEWEST_OWNERS, FEWEST_NUMBERED_OWNERS = 10, 3
"""Fewest distinct values of a column that names the owner of each row, such as a customer.

The second number is for values with digits.
"""
MOST_DETAILED = 4
"""A column can give the label away up to this many values per class."""
ARROWS = ("->", "=>", "→", ">>", ">", "»")
"""Marks between symbols that follow one another."""
FEWEST_SYMBOLS = 3
"""Fewest symbols of a list beside a text, on average, that may be a sequence."""
SEQUENCE_KINDS = {"series": "features", "symbols": "tokens"}
"""Maps a kind of column to the kind of its sequences. Other columns hold texts."""

DIGITS_ONLY = re.compile("[0-9]+")
DIGITS = re.compile("[.][0-9]+$|[0-9]+")
"""Digits in the name of a column, and the number of a name that occurs again."""
Points: TypeAlias = tuple[int, Callable[[ColumnProfile], bool]]
LABEL_RULES: tuple[Points, ...] = (
    (4, lambda column: column.word == "label"),
    (4, names_outcome),
    (-4, lambda column: column.word in (*TEXT_NAMES, *GROUP_NAMES)),
    (1, lambda column: column.distinct <= (50 if column.kind == "text" else 12)),
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
        order: Columns that sort them, or None.
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
    columns: Sequence[ColumnProfile] = ()
    all_others: bool = False
    id: ColumnProfile | None = None
    order: Order | None = None
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
        return [column for column in self.columns if str(column.name) in names]

    def numbers_and_order(self) -> list[ColumnProfile]:
        """Return the columns of numbers that sequences hold, and those of the order."""
        order = () if self.order is None else self.order.columns
        return list(dict.fromkeys((*self.number_columns(), *order)))

    def odd_sequences(self) -> list[ColumnProfile]:
        """Return the columns of the sequence in which cells of another kind can't be read.

        Where a sequence is of tokens, every text can, except if others are lists.
        """
        return [x for x in self.sequence if self.kind != "tokens" or x.has_lists]

    def numbers(self) -> dict[str, Floats]:
        """Return the numbers of the used columns, under their names in data.na_values.

        The name of time steps in several columns is `EVERY`, and "" that of lists of numbers.
        """
        found = {str(column.name): column.numbers for column in self.number_columns()}
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


def likeliest_labels(columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns with most points as the label."""
    by_points: dict[int, list[ColumnProfile]] = {}
    for column in columns:
        points = sum(points for points, applies in LABEL_RULES if applies(column))
        by_points.setdefault(points, []).append(column)
    if by_points:
        return by_points[max(by_points)]
    return []


def choose_label(columns: Sequence[ColumnProfile], *, fewest: int = 3) -> ColumnProfile:
    """Return the column of the label: the one with most points that can be a label.

    A table of many columns may hold a series, in which several columns have most points. Text is
    preferred among them, and then the first or last column of the table. If no column can be a
    label, the only column of lists beside a text is the label of a multi-label task.

    Args:
        columns: Columns to choose from.
        fewest: Fewest columns of which a label that is named like codes or times is doubted.

    Raises:
        DataError: If no column can be the label, several columns are equally likely, or the
            likeliest is named like codes or times.
    """
    candidates = [x for x in columns if x.name != "" and (x.can_be_label or x.is_multi_hot)]
    best = likeliest_labels(candidates)
    if len(best) > 1 and len(columns) > FEWEST_WIDE:
        ends = [column for column in best if column in (columns[0], columns[-1])]
        best = [column for column in best if column.kind == "text"] or ends or best
    lists = [column for column in columns if column.holds_names]
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
        raise DataError(
            marked("--label: several columns may hold the label; choose one:"),
            *commands("label", [*best, *(x for x in candidates if x not in best)]),
            *_command_for_marks(best),
        )
    advice = marked("give --label COLUMN")
    if any(column.kind in ("number", "amount") for column in columns):
        advice = f"group numbers into classes, or {advice}"
    raise DataError(
        marked("--label: no column has values that repeat as labels do; ") + f"{advice}; found:",
        *_described(columns),
    )


def other_labels(columns: Sequence[ColumnProfile], label: ColumnProfile) -> list[str]:
    """Return a doubt about a label that its name doesn't tell, if other columns may be it."""
    others = [x for x in columns if x.can_be_label and x is not label and x.name != ""]
    others = [x for x in others if not (is_time(x) or names_variant(x))]
    others = [
        x
        for x in others
        if x.distinct <= MOST_CLASSES or not (is_code_or_owner(x) or x.word in TEXT_NAMES)
    ]
    if (names_outcome(label) and not label.holds_codes) or not others:
        return []
    reason = "no column is named like a label"
    if names_outcome(label):
        reason = "it holds codes"
    shown = [shlex.join(["--label", str(column.name)]) for column in others[:MOST_LABELS]]
    return [
        f"{label.shown} is read as the label, but {reason}; if it is another one: "
        f"{' or '.join(shown)}"
    ]


def _command_for_marks(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a line that advises to read columns of marks such as 0 and 1 as labels, or none."""
    columns = [column for column in columns if _holds_truth_values(column)]
    if len(columns) < 2:
        return []
    setting = f"data.label={flow([column.name for column in columns])}"
    marks = joined_marks(columns).values
    if any("|" in own or not own for own in marks):
        return [f"  {set_command(setting)}  # a row can have several labels"]
    return [f"  {set_command(setting)}  # each row has one of them"]


def _holds_truth_values(column: ColumnProfile) -> bool:
    return all(name_of(str(value)).lower() in TRUTH_VALUES for value in column.values)


def set_command(setting: str) -> str:
    """Return the user's command with a further setting of the config, for a message."""
    return either(f"{INIT_COMMAND} --set {shlex.quote(setting)}", f"settings=[{setting!r}]")


def commands(option: str, columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a line per column for a message, with a command that names the column."""
    return _commands(option, [(x, counted(x.distinct, "value")) for x in columns])


def options_naming(option: str, columns: Sequence[ColumnProfile]) -> str:
    """Return an option for each of several columns, as a shell reads them."""
    return shlex.join([word for x in columns for word in (f"--{option}", str(x.name))])


def command_naming(option: str, columns: Sequence[ColumnProfile]) -> str:
    """Return the user's command with an option for several columns together, for a message."""
    names = [str(column.name) for column in columns]
    return either(f"{INIT_COMMAND} {options_naming(option, columns)}", f"{option}={names!r}")


def _commands(option: str, columns: Sequence[tuple[ColumnProfile, str]]) -> list[str]:
    """Return a line per column with a command that names it, and a comment."""
    lines = []
    for column, comment in columns:
        words = f"{INIT_COMMAND} --{option} {shlex.quote(str(column.name))}"
        lines.append(f"{either(words, f'{option}={column.name!r}')}  # {comment}")
    return _lines(lines)


def _described(columns: Sequence[ColumnProfile]) -> list[str]:
    """Return a line per column for a message, with the kind of its content."""
    return _lines([column.describe() for column in columns])


def _lines(texts: list[str]) -> list[str]:
    """Return texts as lines of a message, and the number of those that aren't shown."""
    if len(texts) > MOST_LISTED:
        more = [f"and {len(texts) - MOST_LISTED:,} more"]
    else:
        more = []
    return [f"  {text}" for text in [*texts[:MOST_LISTED], *more]]


def tells_label(column: ColumnProfile, label: ColumnProfile) -> str | None:
    """Return the way in which a column tells the label of a row, or None if it doesn't."""
    if column.kind not in LABEL_KINDS or column.has_no_labels:
        return None
    if not determines(column, label):
        return None
    if determines(label, column):
        return "the label again"
    is_detail = column.distinct <= MOST_DETAILED * label.distinct
    if is_detail:
        return "the label in more detail"
    return None


# The sequence


def row_table(
    columns: Sequence[ColumnProfile], options: InitOptions, label: ColumnProfile | None = None
) -> Roles:
    """Return the roles of a table with one row per sequence.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
        label: Column of the label, or None to choose it.

    Raises:
        DataError: If the label or the sequence isn't clear.
    """
    doubts = list[str]()
    if label is None:
        label = choose_label(columns)
        doubts = other_labels(columns, label)
    try:
        chosen = columns_named(columns, options, "sequence") or choose_sequence(columns, label)
    except DataError as error:  # another label may be the reason
        raise DataError(*error.lines, *doubts) from None
    found = kind_of_sequence(chosen)
    roles = Roles(options.kind or found, label, chosen, columns, warnings=doubts)
    if options.kind is None and _may_be_codes(chosen):
        if found == "tokens":
            other, kind = "measurements", "features"
        else:
            other, kind = "symbols", "tokens"
        roles.warnings.append(
            f"the sequences are whole numbers, read as {found}; if they are {other}: --set "
            f"data.kind={kind}"
        )
    unused, used = list[ColumnProfile](), {label, *chosen}
    for column in columns:
        if column in used:
            continue
        if column.repeats_as_labels:
            reason = tells_label(column, label)
        else:
            reason = None
        if reason == "the label in more detail" and is_code_or_owner(column):
            reason = None
        roles.ignore(column, reason)
        if column.names_splits:
            roles.warnings.append(about_splits(column))
        if not reason:
            unused.append(column)
    roles.owner = owner_of(unused)
    ids = [column for column in unused if _may_be_id(column, label)]
    is_asked = not options.named("sequence") and not options.get("group")
    if ids and roles.kind == "text" and is_asked:
        name = ids[0].shown
        roles.warnings.append(
            f"all rows of one {name} have one label; if they are one sequence: "
            f"{shlex.join(['--id', str(ids[0].name)])}"
        )
    texts = [column for column in unused if column.is_free_text]
    if texts and roles.kind == "text" and not options.named("sequence"):
        joined = flow([x.name for x in (*chosen, *texts)])
        roles.warnings.append(
            f"{listed([x.shown for x in texts], 3)}: texts that aren't used; to join them: "
            f"{shlex.join(['--set', f'data.sequence={joined}'])}"
        )
    paths = [x for x in unused if _may_be_path(x)]
    if paths and roles.kind == "text" and not options.named("sequence"):
        roles.warnings.append(
            f"{listed([x.shown for x in paths], 3)}: symbols that aren't used; if a sequence is "
            f"made of them: {shlex.join(['--sequence', str(paths[0].name)])}"
        )
    is_wide = len(chosen) > 1 and chosen[0].kind == "number" and roles.kind == "features"
    own = [column for column in columns if column in used and column is not label]
    roles.all_others = (
        is_wide and own == chosen and len(roles.ignored) == sum(x.name == "" for x in unused)
    )
    return roles


def _may_be_path(column: ColumnProfile) -> bool:
    """Return True for symbols with arrows between them, such as a > b > c, or lists of three."""
    has_arrows = column.kind == "symbols" and column.mark in ARROWS
    return has_arrows or (column.kind == "symbols" and column.steps >= FEWEST_SYMBOLS)


def about_splits(column: ColumnProfile) -> str:
    """Return a warning about a column with the names of splits."""
    return (
        f"{column.shown} holds names of splits, but all rows are read as one; to keep those of "
        "test apart, write the rows of each split into a file of its own, such as test.csv"
    )


def _may_be_codes(chosen: Sequence[ColumnProfile]) -> bool:
    """Return True if whole numbers in lists, or in columns, may be codes or measurements."""
    if any(x.main_kind[0] == "numbers" and x.are_whole_lists for x in chosen):
        return True
    is_wide = len(chosen) > 1 and chosen[0].kind == "number"
    return is_wide and not any(column.has_decimals for column in chosen)


@dataclass
class _Candidates:
    """Columns that may hold the sequence.

    Attributes:
        label: Column of the label.
        others: All other columns.
        texts: Those of texts, which are no times and no other names of the label.
        lists: Those of lists. Lists of few numbers or symbols are left out if there is free text,
            except if a column alone has a usual name.
    """

    label: ColumnProfile
    others: list[ColumnProfile]
    texts: list[ColumnProfile]
    lists: list[ColumnProfile]


def choose_sequence(columns: Sequence[ColumnProfile], label: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns of the sequence: one column, texts to join, channels, or time steps.

    Raises:
        DataError: If no column or several columns can be the sequence. Also if the table seems to
            have a row per time step.
    """
    others = [column for column in columns if column is not label and column.name != ""]
    varied = [column for column in others if not column.is_constant] or others
    texts = [x for x in others if x.kind == "text" and not (x.words < FREE_WORDS and x.pattern)]
    texts = [x for x in texts if not _is_synonym(x, label)] or texts
    numbers = [x for x in others if x.kind in ("number", "amount")]
    if numbers:  # beside them, codes are ids of rows
        texts = [x for x in texts if not (x.differs and x.has_one_shape)]
    candidates = _Candidates(label, others, texts, _lists(varied, texts))
    for rule in LIST_RULES if candidates.lists else TEXT_RULES:
        chosen = rule(candidates)
        if chosen:
            return chosen
    if not candidates.lists and not texts and len(others) > 2:
        raise DataError(_few_numbers(numbers or others))
    advice = marked("give --sequence COLUMN, or --id COLUMN if a row is a time step")
    possible = [x for x in others if x in texts or x.kind in LIST_KINDS]
    lines = _described([x for x in others if x not in possible])
    lines = lines if others else ["  the label only"]
    lines += _commands("sequence", [(x, x.describe().rpartition("(")[2][:-1]) for x in possible])
    for column in others:
        if _may_be_id(column, label):
            words = f"{INIT_COMMAND} --id {shlex.quote(str(column.name))}"
            command = either(words, f"id={column.name!r}")
            lines.append(f"  {command}  # the rows of one {column.shown} are a sequence")
    if len(texts) > 1:
        lines.append(f"  {command_naming('sequence', texts[:2])}  # joins both")
    raise DataError(
        f"--sequence: it isn't clear which column holds the sequence; {advice}; found:", *lines
    )


def _may_be_id(column: ColumnProfile, label: ColumnProfile) -> bool:
    """Return True if a column is named like codes or groups, and its equal rows have one label."""
    if not column.can_be_label or not (may_own(column) or is_code(column)):
        return False
    return determines(column, label) and not determines(label, column)


def _lists(others: Sequence[ColumnProfile], texts: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    lists = [column for column in others if column.kind in LIST_KINDS]
    free = [column for column in texts if column.is_free_text]
    if not free:
        return lists
    fewest = max(FEWEST_WIDE, min(max(column.words for column in free), MANY_NUMBER_COLUMNS))
    names = () if any(column.word in TEXT_NAMES for column in free) else TEXT_NAMES
    return [x for x in lists if not x.steps or x.steps >= fewest or x.word in names]


def _channels(found: _Candidates) -> list[ColumnProfile]:
    """Return series of equal lengths, or []."""
    lists = found.lists
    lengths = {round(column.steps, 9) for column in lists}
    is_equal = {column.kind for column in lists} == {"series"} and len(lengths) == 1
    if is_equal or len(lists) == 1:
        return lists
    return []


def _title_and_body(found: _Candidates) -> list[ColumnProfile]:
    """Return the headline and the body, whose texts are joined, or [].

    A column that only has the name of a headline isn't one: its texts differ from row to row.
    """
    titles = [x for x in found.texts if x.word in HEADLINE_NAMES and not x.is_category]
    bodies = [x for x in found.texts if x.word in BODY_NAMES]
    if len(titles) == len(bodies) == 1:
        return [*titles, *bodies]
    return []


def _wide_series(found: _Candidates) -> list[ColumnProfile]:
    """Return the columns of numbers that are more than half of all columns, or []."""
    wide = wide_columns(found.others)
    if 2 * len(wide) > len(found.others):
        return _in_order(wide)
    return []


def _in_order(columns: list[ColumnProfile]) -> list[ColumnProfile]:
    """Return columns in the order of the numbers in their names, if these go up and down.

    Programs sort names by their characters: t_0, t_1, t_10, t_2.
    """
    numbers = [[int(each) for each in DIGITS_ONLY.findall(str(x.name))] for x in columns]
    order = sorted(range(len(columns)), key=numbers.__getitem__)
    if order[::-1] == list(range(len(columns))):
        return columns
    return [columns[at] for at in order]


def wide_columns(columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns of numbers, or of words that repeat, that are the time steps, or [].

    They are eight or more columns without names, or whose names differ only in digits, also in the
    numbers that pandas adds to equal names (x, x.1). Those of words have names. If there are
    several such groups of columns, the list is empty.
    """
    by_stem: dict[tuple[str, bool], list[ColumnProfile]] = {}
    for column in columns:
        name, has_words = str(column.name).lower(), column.kind == "text"
        stem = DIGITS.sub("", name)
        is_word = has_words and column.repeats and stem != name
        if is_word or column.kind in ("number", "amount"):
            by_stem.setdefault((stem, has_words), []).append(column)
    groups = [group for group in by_stem.values() if len(group) >= FEWEST_WIDE]
    if len(groups) == 1:
        return groups[0]
    return []


def _refuse_step_table(found: _Candidates) -> list[ColumnProfile]:
    """Raise a DataError if the table seems to have a row per time step.

    Its texts are then single words that repeat, as ids do. Other columns hold measurements, or the
    only column except the label is named like codes or owners.
    """
    texts, others = found.texts, found.others
    is_table = any(column.is_measured for column in others)
    if texts and is_code_or_owner(texts[0]):
        is_table = is_table or any(column.kind == "time" for column in others)
    if len(others) == 1:
        is_table = is_table or is_code_or_owner(others[0])
    if texts and is_table and all(column.is_category for column in texts):
        values = f"{counted(texts[0].distinct, 'value')} of {quote(str(texts[0].name), 20)}"
        raise DataError(
            f"looks like a row per time step ({values} in {texts[0].rows:,} rows); give --id "
            "COLUMN and --label COLUMN, with one label per sequence (add it, or the file that has "
            "it), or --sequence"
        )
    return []


def _is_synonym(column: ColumnProfile, label: ColumnProfile) -> bool:
    """Return True if a column that repeats has one value per label, and another for each."""
    if column.distinct != label.distinct or 2 * column.distinct > column.rows:
        return False
    return determines(column, label) and determines(label, column)


def _most_telling(found: _Candidates) -> list[ColumnProfile]:
    """Return the text from which naive Bayes on characters tells the label clearly best, or []."""
    label = found.label
    texts = [column for column in found.texts if column.differs and column.word not in ROW_NAMES]
    if len(texts) < 2:
        return []
    rows = np.unique(np.linspace(0, label.rows - 1, PROBED_ROWS).astype(int))
    rows = rows[~label.is_blank[rows]]
    errors = []
    for column in texts:
        cells = [column.values[code] for code in column.codes[rows].tolist()]
        errors.append(error_by_characters(cells, label.codes[rows]))
    best, second = np.argsort(errors, kind="stable")[:2]
    variance = errors[second] * (1 - errors[second]) / max(1, len(rows) / 4)
    limit = min(0.9 * errors[second], errors[second] - 2 * np.sqrt(variance))
    if errors[best] < limit:
        return [texts[best]]
    return []


def _only_likely(found: _Candidates) -> list[ColumnProfile]:
    """Return the only column with a usual name, or else the only one left, or []."""
    candidates = found.lists or found.texts
    named = [column for column in candidates if column.word in TEXT_NAMES]
    if any(column.is_free_text for column in candidates):  # next to it, these are names of things
        named = [x for x in named if x.is_free_text or x.word not in SHORT_NAMES]
    if len(named) == 1:
        return named
    plausible = _plausible(found)
    if len(plausible) == 1:
        return plausible
    return []


def _plausible(found: _Candidates) -> list[ColumnProfile]:
    """Return the columns that aren't named like ids, and aren't one of several unique columns.

    Codes that repeat are ids, unless they are the only column. Long unique words are none.
    """
    plausible = [x for x in found.lists or found.texts if x.word not in ROW_NAMES]
    if len(plausible) > 1:
        plausible = [x for x in plausible if not (is_code(x) and x.repeats_as_labels)]
    unique = [x for x in plausible if x.is_unique and x.characters <= LONGEST_CODE * x.rows]
    return [x for x in plausible if x not in unique or len(found.texts) < 2]


def _longest(found: _Candidates) -> list[ColumnProfile]:
    """Return the text that is much longer than all others, or []."""
    by_length = sorted(_plausible(found), key=lambda column: -column.characters)
    is_longest = len(by_length) > 1 and (
        by_length[0].characters > MUCH_LONGER * by_length[1].characters
    )
    if is_longest:
        return by_length[:1]
    return []


SequenceRule: TypeAlias = Callable[[_Candidates], list[ColumnProfile]]
LIST_RULES: tuple[SequenceRule, ...] = (_channels, _only_likely)
"""Rules of a table with lists. The first one that finds columns decides."""
TEXT_RULES: tuple[SequenceRule, ...] = (
    _title_and_body,
    _wide_series,
    _refuse_step_table,
    _most_telling,
    _only_likely,
    _longest,
)
"""Rules of other tables."""


def _few_numbers(columns: Sequence[ColumnProfile]) -> str:
    """Return an error message: these columns of single numbers are too few for a series."""
    return (
        f"--sequence: found {counted(len(columns), 'column')} of one number each; a series has "
        f"them in one cell or in {FEWEST_WIDE} or more columns; if a row is a time step, "
        "give --id COLUMN (and data.window, for a label per step)"
    )


def kind_of_sequence(chosen: Sequence[ColumnProfile]) -> str:
    """Return the kind of the sequence in the chosen columns: text, tokens, features or events.

    Raises:
        DataError: If columns of single numbers have units, or are too few for a series.
    """
    kinds = {column.kind for column in chosen}
    if "events" in kinds and len(chosen) == 1:
        return "events"
    for column in chosen:
        if column.kind == "events":
            raise DataError(fields_problem(column))
    if len(chosen) > 1 and kinds <= {"number", "amount"}:
        if len(chosen) < FEWEST_WIDE:
            raise DataError(_few_numbers(chosen))
        if are_wide_codes(chosen):
            return "tokens"
        for column in chosen:
            if column.kind == "amount":
                raise DataError(f"--sequence: {column.unit_problem()}")
        return "features"
    if len(chosen) >= FEWEST_WIDE and all(column.repeats for column in chosen):
        return "tokens"
    if len(kinds) == 1:
        return SEQUENCE_KINDS.get(kinds.pop(), "text")
    return "text"


def fields_problem(column: ColumnProfile, text: ColumnProfile | None = None) -> str:
    """Return an error message about lists of objects that are neither events nor turns of a chat.

    Args:
        column: The column of the lists.
        text: Field with the text of a turn, whose name is unusual, or None if there is none.
    """
    names = dict[str, None]()
    for value in column.sampled_values:
        for item in items_of(value) or ():
            names |= dict.fromkeys(item if isinstance(item, dict) else ())
    fields = listed([quote(str(name), 40) for name in names], 8)
    found = f"--sequence: {column.shown} holds objects with the fields {fields}"
    if text is not None:
        return (
            f"{found}, and {text.shown} free text, as turns of a chat do; name this field "
            '"text", or leave it out'
        )
    return (
        f"{found}, none of which varies and repeats, as in events; in turns of a chat, name the "
        'field of their text "text"'
    )


def are_wide_codes(columns: Sequence[ColumnProfile]) -> bool:
    """Return True if whole numbers from 0 on in columns are codes.

    Codes repeat in every column, and neighbours aren't similar. Pixels and sensors are similar.
    """
    if any(column.has_decimal_commas or column.kind == "amount" for column in columns):
        return False
    rows = np.stack([column.numbers[:PROBED_ROWS] for column in columns], axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    return FEWEST_MEASURED < len(np.unique(rows)) <= rows.size / 4 and are_codes(rows)


def owners_of(
    columns: Sequence[ColumnProfile], id: ColumnProfile | None = None
) -> list[ColumnProfile]:
    """Return the columns that seem to name the owner of each row, or of each sequence.

    Such a column is named like ids or owners, or holds codes such as K017. It has a few distinct
    texts or whole numbers, and at most half as many as there are rows, or sequences. They are at
    least ten, or three if all have digits: P1, but not mobile and desktop.

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
        fewest = FEWEST_NUMBERED_OWNERS if are_numbered else FEWEST_OWNERS
        sequences = column.rows if id is None else id.distinct
        is_nested = id is None or (column is not id and determines(id, column))
        if is_nested and fewest <= column.distinct <= sequences / 2:
            found.append(column)
    return found


def owner_of(
    columns: Sequence[ColumnProfile], id: ColumnProfile | None = None
) -> ColumnProfile | None:
    """Return the first of `owners_of`, or None. Names of owners come before ids."""
    found = owners_of(columns, id)
    return next((x for x in found if names_owner(x)), next(iter(found), None))


def columns_named(
    columns: Sequence[ColumnProfile], options: InitOptions, option: str
) -> list[ColumnProfile]:
    """Return the columns that the user gave in an option, by name or index, or [].

    A text that is a name and an index is read as a name. The columns must exist.
    """
    given = options.named(option)
    if not given:
        return []
    by_name = {str(index): column for index, column in enumerate(columns)}
    by_name |= {str(column.name): column for column in columns}
    return [by_name[str(name)] for name in given]


def joined_marks(columns: Sequence[ColumnProfile]) -> ColumnProfile:
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
