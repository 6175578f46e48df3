"""Choice of the sequence: a list of rules, each for one kind of columns, tried in order."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.cell_kinds import LIST_KINDS
from seqtrain.proposal.column_names import BODY_NAMES, HEADLINE_NAMES, ROW_NAMES, TEXT_NAMES
from seqtrain.proposal.columns import ColumnProfile
from seqtrain.proposal.label_column import described
from seqtrain.proposal.naive_bayes import HELD_OUT, character_ngrams, naive_bayes_error
from seqtrain.text import counted, quote

FEWEST_STEPS = 8
"""Fewest columns of numbers that can be the time steps of a series."""
MANY_NUMBERS = 32
"""A list of this many numbers per row can be the sequence even next to longer free text."""
MUCH_LONGER = 4
"""A text is the sequence if it is more than this many times as long as each other text."""
PROBED_ROWS = 2000
"""Largest number of rows on which columns of text are compared."""
CLEARLY_BETTER, STANDARD_ERRORS = 0.9, 2
"""A text is the sequence if naive Bayes errs less from it than from the second-best text.

Its error is below this share of the second-best error, and lower by this many standard errors.
"""


@dataclass
class Candidates:
    """Columns that can be the sequence.

    Attributes:
        others: All columns except the label and a column without a name.
        lists: Columns whose cells are lists. `_lists` leaves out some of them.
        texts: Columns of text.
        label: The label column.
    """

    others: list[ColumnProfile]
    lists: list[ColumnProfile]
    texts: list[ColumnProfile]
    label: ColumnProfile

    @cached_property
    def plausible(self) -> list[ColumnProfile]:
        """Columns of lists, or of texts if there are no lists, that may be the only sequence.

        Columns with a name in `ROW_NAMES` are left out. If there are several columns of text, those
        whose values are ids of the rows are also left out.
        """
        columns = self.lists or self.texts
        is_only = len(self.texts) < 2
        return [c for c in columns if (is_only or not c.is_id) and c.name not in ROW_NAMES]


Rule = Callable[[Candidates], list[ColumnProfile]]


def _channels(found: Candidates) -> list[ColumnProfile]:
    """Return the columns of lists if they are the channels of a series, else [].

    All of them must be series of equal total length, and there must be at least two.
    """
    kinds = {(column.kind, column.steps) for column in found.lists}
    is_series = len(kinds) == 1 and found.lists[0].kind == "series"
    return found.lists if is_series and len(found.lists) > 1 else []


def _only_list(found: Candidates) -> list[ColumnProfile]:
    return found.lists if len(found.lists) == 1 else []


def _title_and_body(found: Candidates) -> list[ColumnProfile]:
    """Return the headline column and the body column, whose texts are joined, or [].

    The result is [] unless there is exactly one of each. It is also [] if there are lists.
    """
    titles = [column for column in found.texts if column.name in HEADLINE_NAMES]
    bodies = [column for column in found.texts if column.name in BODY_NAMES]
    is_pair = not found.lists and len(titles) == len(bodies) == 1
    return [*titles, *bodies] if is_pair else []


def _wide_series(found: Candidates) -> list[ColumnProfile]:
    """Return the columns of numbers that are the time steps of a series, or [].

    They must be more than half of all columns except the label. The result is also [] if there are
    lists.
    """
    steps = [] if found.lists else wide_columns(found.others)
    return steps if len(steps) > len(found.others) / 2 else []


def _tells_the_classes(found: Candidates) -> list[ColumnProfile]:
    """Return a list with the text column from which naive Bayes predicts the label clearly best.

    The first characters of at most `PROBED_ROWS` labelled rows are used. The result is [] if no
    column is clearly best. It is also [] if there are lists, or fewer than two columns of text that
    differ from row to row.
    """
    texts = [column for column in found.texts if column.differs and column.name not in ROW_NAMES]
    if found.lists or len(texts) < 2:
        return []
    rows = np.linspace(0, len(found.label.cells) - 1, PROBED_ROWS).astype(int)
    rows = np.unique(rows[np.array(found.label.cells)[rows] != ""])
    labels = [found.label.cells[row] for row in rows]
    errors = [
        naive_bayes_error(character_ngrams([c.cells[row] for row in rows], 3), labels)
        for c in texts
    ]
    best, second = np.argsort(errors, kind="stable")[:2]
    variance = errors[second] * (1 - errors[second]) / max(1, len(rows) / HELD_OUT)
    limit = min(
        CLEARLY_BETTER * errors[second], errors[second] - STANDARD_ERRORS * np.sqrt(variance)
    )
    return [texts[best]] if errors[best] < limit else []


def _only_named(found: Candidates) -> list[ColumnProfile]:
    named = [column for column in found.lists or found.texts if column.name in TEXT_NAMES]
    return named if len(named) == 1 else []


def _only_plausible(found: Candidates) -> list[ColumnProfile]:
    return found.plausible if len(found.plausible) == 1 else []


def _longest_text(found: Candidates) -> list[ColumnProfile]:
    if found.lists or len(found.plausible) < 2:
        return []
    first, second = sorted(found.plausible, key=lambda column: -column.characters)[:2]
    return [first] if first.characters > MUCH_LONGER * second.characters else []


RULES: tuple[Rule, ...] = (
    _channels,
    _only_list,
    _title_and_body,
    _wide_series,
    _tells_the_classes,
    _only_named,
    _only_plausible,
    _longest_text,
)
"""Rules in order. The first rule that returns columns decides."""


def choose_sequence(columns: Sequence[ColumnProfile], label: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns of the sequence: one column, texts to join, channels, or time steps.

    Args:
        columns: Profiles of all columns.
        label: The label column, one of `columns`.

    Raises:
        DataError: If no column or several columns can be the sequence. Also if the table seems to
            have a row per time step.
    """
    others = [column for column in columns if column is not label and column.column != ""]
    texts = [column for column in others if column.kind == "text"]
    found = Candidates(others, _lists(others, texts), texts, label)
    for rule in RULES:
        chosen = rule(found)
        if chosen:
            return chosen
        if rule is _wide_series:
            _refuse_step_table(found)
    if not found.lists and not texts and len(others) > 2:
        raise DataError(no_series_problem(others))
    advice = "give --sequence COLUMN, or --id COLUMN if a row is a time step"
    raise DataError(
        f"--sequence: it isn't clear which column holds the sequence; {advice}; found:",
        *(described(others) or ["  the label only"]),
    )


def _lists(others: Sequence[ColumnProfile], texts: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns of lists. Lists of few numbers are left out if there is free text.

    A column with a name in `TEXT_NAMES` is kept, unless a column of free text also has such a name.

    Args:
        others: All columns except the label.
        texts: The columns of text among them.
    """
    lists = [column for column in others if column.kind in LIST_KINDS]
    free = [column for column in texts if column.is_free_text]
    if not free:
        return lists
    words = max(column.words / column.rows for column in free)
    fewest = max(FEWEST_STEPS, min(words, MANY_NUMBERS))
    names = () if any(column.name in TEXT_NAMES for column in free) else TEXT_NAMES
    return [
        column
        for column in lists
        if not column.steps or column.steps >= fewest * column.rows or column.name in names
    ]


def _refuse_step_table(found: Candidates) -> None:
    """Raise a DataError if the table seems to have a row per time step.

    Such a table meets all of these conditions:

    - It has columns of text. They all hold single words that repeat, as ids do.
    - It has no lists.
    - A column holds measurements, or the only column except the label is named like codes or
      owners.
    """
    texts = found.texts
    is_table = any(column.is_measured for column in found.others) or (
        len(found.others) == 1 and (found.others[0].is_code or found.others[0].names_owner)
    )
    if found.lists or not texts or not is_table or not all(c.is_category for c in texts):
        return
    values = f"{counted(len(texts[0].values), 'value')} of {quote(str(texts[0].column), 20)}"
    raise DataError(
        f"looks like a row per time step ({values} in {texts[0].rows:,} rows); give --id COLUMN "
        "and --label COLUMN, with one label per sequence (add it if there is none), or --sequence"
    )


def no_series_problem(columns: Sequence[ColumnProfile]) -> str:
    """Return an error message: these columns of single numbers are too few for a series."""
    return (
        f"--sequence: found {counted(len(columns), 'column')} of one number each; a series needs "
        "all its numbers in one row: in a cell such as [0.1, 0.2], or in "
        f"{FEWEST_STEPS} or more columns such as t0, t1, …"
    )


def wide_columns(columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return the columns of numbers that are the time steps of a series, or an empty list.

    They are `FEWEST_STEPS` or more columns without names, or whose names differ only in digits. If
    there are several such groups of columns, the list is empty.
    """
    by_stem: dict[str, list[ColumnProfile]] = {}
    for column in columns:
        if column.kind == "number":
            by_stem.setdefault(re.sub("[0-9]+", "", column.name), []).append(column)
    found = [group for group in by_stem.values() if len(group) >= FEWEST_STEPS]
    return found[0] if len(found) == 1 else []
