"""Columns of a time step: which are tokens, numbers, elapsed times, or not used."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.cell_kinds import Floats
from seqtrain.proposal.names import (
    MESSAGE_NAMES,
    is_amount,
    is_code,
    is_code_or_owner,
    is_counter,
    is_time,
    is_trial,
    names_owner,
)
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import (
    NEARLY_ALL,
    IdRows,
    Order,
    are_even,
    begins_again,
    doubtful_orders,
    is_known,
    other_orders,
)
from seqtrain.proposal.prediction import information
from seqtrain.proposal.profile import (
    LIST_KINDS,
    ColumnProfile,
    Columns,
    determines,
    is_contiguous,
    joined_codes,
    without,
)
from seqtrain.proposal.roles import (
    MOST_WORDS_AS_CLASSES,
    Roles,
    columns_named,
    options_naming,
    owner_of,
    owners_of,
    shown_names,
    tells_label,
)
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.step_ids import are_long_numbers
from seqtrain.proposal.time_kinds import (
    has_both_ends,
    has_years_last,
    is_calendar,
    is_dated,
    is_time_of_day,
    problem_of_dates,
)
from seqtrain.sequences.sentinels import sentinels_of
from seqtrain.tables.blocks import FILE, FOLDER, LABEL
from seqtrain.tables.times import DURATION, WEEKDAY
from seqtrain.text import counted, listed, quote

SMOOTH = 0.57
"""Numbers are measurements if neighbours differ by fewer standard deviations on average."""
EXPLAINED = (0.5, 0.98)
"""Smallest and largest share of the variance of a number's ranks that an explaining token has."""
ROWS_PER_TOKEN = 20
"""Fewest rows with a number per distinct token for a token to explain the number."""
SENTENCE_WORDS = 5
"""Fewest words of texts, on average, that are sentences and no names."""
FREQUENT_SHARE, GAPS = 0.01, 3
"""Share of rows of a frequent number. Codes may leave out most numbers between frequent ones: these
are fewer than one of three.
"""
ROUND = 5
"""Numbers of which all are multiples of this one, or of a larger one, are no codes."""
ELAPSED = "elapsed"
"""Name of the step column that holds the increase of the order since the previous row."""
MOSTLY_NEWEST = 0.95
"""Share of neighbouring rows with a falling time from which on the newest row comes first."""
ENDS_OF_PERIODS = {True: ("week", "Monday", "Sunday"), False: ("year", "January", "December")}
"""Maps True for weekdays, False for dates without a year, to what isn't known, and its ends."""
MOST_ORDERS = 3
"""Number of columns that may be the order in a message."""


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
        columns: Columns,
        roles: Roles,
        options: InitOptions,
        *,
        row_features: bool = True,
    ) -> None:
        assert roles.id is not None
        self.row_features = row_features
        self.columns, self.roles = without(columns, roles.id.parts), roles
        self.id, self.label, self.order = roles.id, roles.label, roles.order
        self.is_sorted, self.is_given = not options.leaves_out("order"), options.get("order")
        self.leaves_out_static = options.leaves_out("static")
        self.chosen = columns_named(columns, options, "steps")
        given = options.get("steps")
        self.given_kinds = given if isinstance(given, dict) else {}
        self.finds_id = not options.named("id")
        self.per_id = {column for column in columns if determines(self.id, column)}
        # The others of an order, such as a time of day, tell more than the place of a step.
        self.leading = self.order.columns[:1]
        if self.per_id.intersection(self.leading):
            self.leading = self.order.columns[:2]
        self.rows = IdRows(self.id.codes)
        self.doubtful_codes = list[ColumnProfile]()

    def assign(self) -> None:
        """Add each column to the steps, the row features, or the ignored columns of the roles."""
        roles = self.roles
        for column in self.order.columns:
            if column.unit:
                roles.units[column.name_text] = column.unit
        others = without(self.columns, [self.label, *self.leading])
        self.owners = owners_of([x for x in others if x in self.per_id], self.id)
        folders = []
        if self.id.name == FILE:  # no new recording is in a folder of train
            folders = [x for x in others if x.name == FOLDER and x in self.per_id]
        if self.row_features:
            roles.owner = owner_of(self.owners, self.id) or next(iter(folders), None)
            if len(self.id.parts) > 1:
                labelled = next(iter(self._labelled_parts()), None)
                roles.group = owner_of(self.id.parts, self.id) or labelled
        self.owners += folders
        for column in others:
            reason = self._reason_to_ignore(column)
            if reason is not None:
                roles.ignore(column, reason)
            else:
                self._assign(column)
        if roles.static and not self.leaves_out_static:
            names = listed([quote(name) for name in roles.static])
            roles.warnings.append(
                f"{names}: one value per {self.id.name}, used as row features; leave out what "
                "isn't known when the label is to be predicted, or all: "
                + set_option("data.static=null")
            )
            if self.label.name == LABEL and self.id.name == FILE:  # both of the paths
                roles.warnings += self._labels_of_files()
        tokens = self._steps_of("token")
        for column in self._steps_of("number"):
            by = token_that_explains(column, tokens, self.rows)
            if by is not None:
                roles.steps[column.name_text] = {"number": True, "by": by}
        roles.warnings += self._doubts_about_codes()
        roles.warnings += self._doubts_about_sentences()
        roles.warnings += self._doubts_about_order()
        roles.warnings += self._parts_of_ids()

    def read_turns(self, named: Columns) -> None:
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
                steps = options_naming("steps", [column])
                raise DataError(
                    f"--sequence: with --id, a row is a message, but {column.describe()} holds "
                    f"none; for a time step: {steps}"
                )
        texts = [x for x in self.columns if x.is_free_text and x.describe() in roles.ignored]
        tokens = self._steps_of("token")
        if not texts:  # short ones, such as "ok" and "thank you"
            texts = [x for x in tokens if x.word in MESSAGE_NAMES and x.differs and x.words >= 1.5]
            tokens = without(tokens, texts)
        if not texts and not named:
            return
        numbers = [x for x in self.columns if "number" in roles.steps.get(x.name_text, "")]
        has_numbers = not all(map(self.rows.are_counted_by, numbers))
        if roles.window is not None or ((has_numbers or self.chosen) and not named):
            found = f"{shown_names(texts or named, 3)}: texts that aren't used"
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
            elif column.name_text in roles.steps and not own:
                roles.ignored.append(column.describe())
        roles.kind, roles.steps = "text", {}

    def _steps_of(self, kind: str) -> list[ColumnProfile]:
        """Return the columns of time steps of one kind: token or number."""
        return [x for x in self.columns if self.roles.steps.get(x.name_text) == kind]

    def _labels_of_files(self) -> Iterator[str]:
        """Yield a warning for each column with one value per file that may be the label."""
        for column in self.columns:
            if column.name_text in self.roles.static and column.repeats_as_labels:
                options = options_naming("label", [column])
                yield (
                    f"{column.shown} has one value in all rows of a file, as a label has, but that "
                    f"of its path is read; if it is the label: --id {FILE} {options}"
                )

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
            return "names of splits"
        if column.numbers_folds:
            return "numbers of folds"
        if column in self.per_id:
            reason = tells_label(column, self.label, self.id)
            if column in self.owners and self.row_features and reason != "the label again":
                return f"one of several {self.id.shown} each"
            if reason:
                return reason
            may_be_id = not self._holds_amounts(column)
            may_be_id |= are_long_numbers(column) and not is_amount(column)
            if may_be_id and determines(column, self.id, filled=True):
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
        if column.has_units_of_time:
            self.roles.warnings.append(
                f"{column.shown} has times in several units ({listed(list(column.units), 3)}): not "
                "used as numbers; write all of them in one unit"
            )
            return "times in several units"
        is_date = column.kind == "time" and not column.is_duration
        is_id = column.is_unique and (is_code_or_owner(column) or not column.are_scattered)
        if column.name == "" or is_id or is_date or column.kind in LIST_KINDS:
            return ""
        if column.kind == "text":
            repeated = np.mean(column.counts[column.codes] > 1)
            if repeated == 0 or (column.is_free_text and repeated < 0.5):
                return ""
        return None

    def _assign(self, column: ColumnProfile) -> None:
        """Make a column a time step or a row feature."""
        if column.kind == "amount" and not is_code(column):
            self.roles.units[column.name_text] = column.unit
        if column.name_text in self.given_kinds:
            self.roles.steps[column.name_text] = self.given_kinds[column.name_text]
            return
        kind = "number" if self._holds_amounts(column) else "token"
        if column in self.per_id and self.row_features:
            self.roles.static[column.name_text] = kind
            return
        if column.kind == "number" and kind == "number" and self._are_codes(column):
            kind = "token"
        self.roles.steps[column.name_text] = kind

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
        steps = self.rows.growth(order[column.codes[self.rows.rows]])
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
        numbers, ids = self.rows.numbers(column), self.rows.ids
        keys = [self.rows.numbers(self.order)] if self.order else []
        by_id = np.lexsort((*keys, ids))
        by_id = by_id[np.isfinite(numbers[by_id])]
        numbers, ids = numbers[by_id], ids[by_id]
        changes = np.diff(numbers)[np.diff(ids) == 0]
        changes = changes[changes != 0]
        is_smooth = not len(changes) or np.abs(changes).mean() < SMOOTH * numbers.std()
        is_sorted = len(changes) > 0 and changes.min() > 0
        if is_smooth and not is_sorted:
            return False
        distinct, counts = np.unique(numbers, return_counts=True)
        width, is_frequent = np.ptp(numbers), counts >= FREQUENT_SHARE * len(numbers)
        lengths = {len(value) for value in column.values if value}
        is_sparse = 20 * len(distinct) < width and len(distinct) <= 100
        # Most counts and measurements lie close together: only rare ones leave gaps.
        has_gaps = 2 * counts[is_frequent].sum() >= len(numbers)
        has_gaps = has_gaps and GAPS * is_frequent.sum() < np.ptp(distinct[is_frequent])
        if column.repeats and not is_smooth:
            if is_sparse and len(lengths) == 1:
                return True
            is_number = is_amount(column) or sentinels_of(numbers)
            if is_sparse or (has_gaps and not is_number):
                self.doubtful_codes.append(column)
        if len(distinct) <= 16 or (len(distinct) > 100 and 2 * len(distinct) < width):
            return False
        ranges = np.searchsorted(np.quantile(distinct, np.arange(1, 16) / 16), numbers)
        labels = np.zeros(len(self.id.values), dtype=np.int32)
        known = ~self.label.is_blank  # perhaps only one row of an id has its label
        labels[self.id.codes[known]] = self.label.codes[known]
        by_code = information(np.searchsorted(distinct, numbers), ids, labels)
        by_range = information(ranges, ids, labels)
        return by_code > max(0.02, 1.5 * by_range)

    def _doubts_about_codes(self) -> Iterator[str]:
        """Yield a doubt about few whole numbers far apart that are read as measurements."""
        steps = self.roles.steps
        for column in self.doubtful_codes:
            numbers = column.value_numbers[np.isfinite(column.value_numbers)].astype(np.int64)
            if steps[column.name_text] == "token" or np.gcd.reduce(numbers) >= ROUND:
                continue
            tokens = {**steps, column.name_text: "token"}
            yield (
                f"{column.shown} has {counted(len(numbers), 'whole number')} far apart, such as "
                f"{numbers[0]} and {numbers[-1]}, read as measurements; if they are codes: "
                f"{set_option(f'data.steps={flow(tokens)}')}"
            )

    def _doubts_about_sentences(self) -> Iterator[str]:
        """Yield a doubt about each column of many sentences, of which each is one token."""
        for column in self._steps_of("token"):
            if column.words < SENTENCE_WORDS or column.distinct <= MOST_WORDS_AS_CLASSES:
                continue
            found = (
                f"{column.shown} holds {column.distinct:,} different texts of {column.words:.2g} "
                "words, and each is one token, whose words aren't read"
            )
            if self.roles.window is None and not self.chosen:
                found += f"; to read the rows of one {self.id.shown} as turns of a chat, without "
                found += f"the other columns: {options_naming('id', self.id.parts)} "
                found += options_naming("sequence", [column])
            yield found

    def _doubts_about_order(self) -> Iterator[str]:
        """Yield doubts about the order, and add the increase of an uneven order to the steps."""
        order = self.order
        if not order:
            yield from self._doubts_without_order()
        elif all(is_known(column, self.id) for column in order.columns):
            steps = self.rows.gaps(order.first)
            is_even = not steps.any() or are_even(steps)
            names = [column.name for column in self.columns]
            is_uneven = not (is_even or is_calendar(order.columns[0]))
            if self.is_sorted and is_uneven and ELAPSED not in names:
                self.roles.steps[ELAPSED] = "order"
            steps = self.rows.steps(order)
            yield from self._newest_first(steps)
            ties, falls = self.rows.ties(order), np.count_nonzero(steps < 0)
            is_mixed = (steps > 0).any() and falls > (0 if ties else len(steps) / 10)
            if self.id.is_contiguous and is_mixed and not is_dated(order.columns[0]):
                equal = f", which comes again in {counted(ties, 'row')}" if ties else ""
                option = set_option("data.order=null")
                yield (
                    f"rows of one {self.id.shown} stand together, but not in the order of "
                    f"{order.shown}{equal}; if the file has them in time: {option}"
                )
            yield from self._undecided_ties(order)
            if not self.is_given and self.id.name != "":  # a list of objects has an order
                others = without(self.columns, [self.label, *order.columns])
                possible = other_orders(without(others, self.per_id), order, self.id)
                if possible:
                    options = _order_options([*map(Order, possible)])
                    yield (
                        f"other columns sort rows of one {self.id.shown} in another way than "
                        f"{order.shown}; if one of them is right: {options}"
                    )
            if has_both_ends(order.columns[0], self.id):
                period, first, last = ENDS_OF_PERIODS[order.columns[0].time_type == WEEKDAY]
                yield (
                    f"{order.columns[0].shown} has no {period}: rows of {first} come before those "
                    f"of {last} of one {self.id.shown}; add the date, or keep the order of the "
                    f"file: {set_option('data.order=null')}"
                )
            yield from self._mixed_sequences(order.codes[self.rows.rows])

    def _undecided_ties(self, order: Order) -> Iterator[str]:
        """Yield options by which times of day may sort rows that are equal in the order."""
        ties = self.rows.ties(order)
        for column in self.columns:
            if column in order.columns or not is_time_of_day(column) or is_amount(column):
                continue
            longer = Order(*order.columns, column)
            if 2 * self.rows.ties(longer) < ties:
                options = options_naming("order", longer.columns)
                yield (
                    f"{counted(ties, 'row')} of one {self.id.shown} with an equal {order.shown} "
                    f"stay as in the file; if {column.shown} sorts them: {options}"
                )

    def _newest_first(self, steps: Floats) -> Iterator[str]:
        """Yield a warning if nearly all rows come after a newer one of their id in the file.

        Args:
            steps: Growth of the order from row to row of an id.
        """
        changed = int(np.count_nonzero(steps))
        are_newest = np.count_nonzero(steps < 0) >= MOSTLY_NEWEST * max(1, changed)
        if not (are_newest and self.is_sorted):
            return
        name, ties = self.order.shown, len(steps) - changed
        equal = ""
        if ties:
            equal = f"; {counted(ties, 'row')} with an equal {name} stay as in the file"
        yield (
            f"rows of one {self.id.shown} are newest first in the file, by {name}: data.order "
            f"sorts them from the oldest on{equal}; if it counts down, keep the order of the file: "
            f"{set_option('data.order=null')}"
        )

    def _doubts_without_order(self) -> Iterator[str]:
        """Yield doubts about rows that are used in the order of the file."""
        for column in self.columns:
            if column.are_unread_times and column not in self.per_id:
                cell = quote(next(filter(None, column.values), ""), 30)
                problem = problem_of_dates(column) or f"{cell} can be read in several ways"
                yield (
                    f"{column.shown}: {problem}, so rows are used in the order of the file; to "
                    "sort them, write dates as 2024-03-01 or 2024-03-01T09:51"
                )
            if self.roles.steps.get(column.name_text) == "token" and self._may_be_time(column):
                yield (
                    f"rows are used in the order of the file: the cells of {column.shown}, such as "
                    f"{quote(column.values[0], 30)}, can't be read as times, and are tokens"
                )
            if begins_again(column, self.id):
                commands = shlex.join(["--order", "DATE", "--order", column.name_text])
                place = "at midnight"
                if column.time_type != DURATION:
                    period, first, last = ENDS_OF_PERIODS[column.time_type == WEEKDAY]
                    place = f"with each {period}: {first} comes after {last}"
                yield (
                    f"the times of {column.shown} have no date and begin again {place}; rows "
                    "are used in the order of the file; if that isn't the order in time, add a "
                    f"column with the date, and give {commands}"
                )
        others = without(self.columns, [self.label])
        possible = doubtful_orders(without(others, self.per_id), self.id)
        if possible and self.id.name != "":  # a list of objects has an order
            yield (
                f"rows of one {self.id.shown} are used in the order of the file; if a column "
                f"sorts them: {_order_options(possible)}"
            )

    def _parts_of_ids(self) -> Iterator[str]:
        """Yield a warning for each trial or owner that seems to be a part of the id.

        Its rows within an id stand together, two or more on average. Or it is a part of an id that
        the user didn't name, and its equal rows have one label.
        """
        for part in self._labelled_parts() if self.finds_id else ():
            options = options_naming("id", [part])
            others = without(self.id.parts, [part])
            if self.order and all(x.kind in ("number", "time") for x in others):
                sorting = [*others, *self.order.columns]
                if is_dated(self.order.columns[0]):  # these don't begin again in each part
                    sorting = [*self.order.columns, *others]
                options += f" {options_naming('order', sorting)}"
            yield (
                f"all rows of one {part.shown} have one label; if they are one sequence: {options}"
            )
        for column in self.columns:
            is_part = is_trial(column) or names_owner(column) or not self.id.is_contiguous
            if column is self.label or column in self.per_id or not is_part:
                continue
            parts = [*self.id.parts, column]
            codes = joined_codes([part.codes for part in parts])
            if 2 * (codes.max(initial=0) + 1) <= len(codes) and is_contiguous(codes):
                yield (
                    f"the rows of one {self.id.shown} and one {column.shown} stand together; if "
                    f"these are a sequence: {options_naming('id', parts)}"
                )

    def _labelled_parts(self) -> list[ColumnProfile]:
        """Return the parts of an id of several columns of which each value has one label.

        They are the one with most values, and others that are named like owners.
        """
        most = max(self.id.parts, key=lambda part: part.distinct)
        if len(self.id.parts) < 2:
            return []
        found = [x for x in self.id.parts if x is most or names_owner(x)]
        return [x for x in found if determines(x, self.label, labelled=True)]

    def _mixed_sequences(self, times: npt.NDArray[np.int32]) -> Iterator[str]:
        """Yield a warning for each column that seems to divide the rows of an id into sequences.

        Many rows of an id have an equal order, each with another value in the column.
        """
        ids, name = self.rows.ids, self.id.shown
        rows = len(ids)
        if 2 * distinct_rows(ids, times) > rows:
            return
        for column in self.columns:
            codes = column.codes[self.rows.rows]
            if column in self.leading or 3 * distinct_rows(ids, codes) > rows:
                continue
            if distinct_rows(ids, codes, times) == rows:
                both = (*self.id.parts, column)
                yield (
                    f"rows of one {name} have the same {self.order.shown}, one for each "
                    f"{column.shown}: if a sequence has one {name} and one {column.shown}: "
                    f"{options_naming('id', both)}"
                )


def _order_options(orders: Sequence[Order]) -> str:
    """Return the options of some orders that may be right."""
    shown = [options_naming("order", order.columns) for order in orders]
    return " or ".join(shown[:MOST_ORDERS])


def distinct_rows(*codes: npt.NDArray[Any]) -> int:
    """Return the number of distinct rows of several codes."""
    return int(joined_codes(codes).max(initial=-1)) + 1


def token_that_explains(column: ColumnProfile, tokens: Columns, rows: IdRows) -> str | None:
    """Return the name of the token column on which the meaning of numbers depends, or None.

    Its tokens explain half of the variance of the numbers' ranks or more. Each distinct token has
    twenty numbers or more, on average. Of several such columns, the one that explains most counts.

    Args:
        column: The column of numbers.
        tokens: Columns of tokens from which one is chosen.
        rows: Rows to look at.
    """
    numbers = rows.numbers(column)
    present = np.isfinite(numbers)
    if not present.any():
        return None
    ranks = np.unique(numbers[present], return_inverse=True)[1].astype(np.float64)
    found = {}
    for other in tokens:
        codes = other.codes[rows.rows][present]
        counts = np.bincount(codes)
        means = np.bincount(codes, ranks) / counts.clip(1)
        share = float(np.var(means[codes]) / max(np.var(ranks), 1e-9))
        is_frequent = len(codes) >= ROWS_PER_TOKEN * np.count_nonzero(counts)
        if is_frequent and EXPLAINED[0] <= share <= EXPLAINED[1]:
            found[share] = other.name_text
    if found:
        return found[max(found)]
    return None
