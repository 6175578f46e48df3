"""Roles of the columns of a table with a row per sequence: its label and its sequence."""

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from seqtrain.config.document import flow
from seqtrain.errors import DataError, marked
from seqtrain.proposal.cell_kinds import are_codes, are_whole, text_field
from seqtrain.proposal.names import (
    BODY_NAMES,
    HEADLINE_NAMES,
    ROW_NAMES,
    SHORT_NAMES,
    TEXT_NAMES,
    is_code,
    is_code_or_owner,
    is_counting,
    is_id_or_owner,
    last_word,
    may_own,
    names_owner,
)
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.prediction import error_by_characters, telling_words
from seqtrain.proposal.profile import (
    FEWEST_MEASURED,
    FREE_WORDS,
    LIST_KINDS,
    ColumnProfile,
    Columns,
    JoinedColumn,
    determines,
    refines,
    without,
)
from seqtrain.proposal.roles import (
    FEWEST_OWNERS,
    FEWEST_WIDE,
    MOST_LISTED,
    Roles,
    choose_label,
    columns_named,
    command_naming,
    listed_commands,
    options_naming,
    other_labels,
    owner_of,
    set_command,
    shown_names,
    tells_label,
)
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.wide import doubts_about_steps, in_order, largest_groups, wide_columns
from seqtrain.tables.cells import items_of
from seqtrain.text import counted, listed, quote

MANY_NUMBER_COLUMNS = 32
"""A list of this many numbers per row can be the sequence even next to longer free text."""
FEWEST_GIVEN = 3
"""Fewest columns of single numbers that are a series if the user names them."""
MUCH_LONGER = 4
"""A text is the sequence if it is more than this many times as long as each other text."""
PROBED_ROWS = 2000
"""Largest number of rows on which columns of text are compared."""
LONGEST_CODE = 40
"""Most characters of unique words, on average, that are ids of rows, such as UUIDs."""
FEWEST_LETTERS = 15
"""Fewest characters of words, on average, that may be sequences of letters."""
ADDRESS = re.compile(r"[0-9a-fA-F-]*|[a-z]+://.*|[^\s@]+@[^\s@]+|.*\.[a-z0-9]{2,4}|")
"""A hash, or the address of a page, a person or a file, or a blank cell."""
ARROWS = ("->", "=>", "→", ">>", ">", "»")
"""Marks between symbols that follow one another."""
FEWEST_WORDS_OF_TURN = 2
"""Fewest words of a turn of a chat, on average."""
FEWEST_SYMBOLS = 3
"""Fewest symbols of a list beside a text, on average, that may be a sequence."""
PAIRS = (("premise", "hypothesis"), ("claim", "evidence"), ("question", "passage"))
"""Names of two texts that a row relates."""
SEQUENCE_KINDS = {"series": "features", "symbols": "tokens"}
"""Maps a kind of column to the kind of its sequences. Other columns hold texts."""


def row_table(columns: Columns, options: InitOptions, label: ColumnProfile | None = None) -> Roles:
    """Return the roles of a table with one row per sequence.

    Args:
        columns: All columns.
        options: Options of the user, whose columns exist.
        label: Column of the label, or None to choose it.

    Raises:
        DataError: If the label or the sequence isn't clear.
    """
    doubts = list[str]()
    columns = [column for column in columns if column.name_text not in options.used_otherwise]
    if label is None:
        label = choose_label(columns)
        doubts = other_labels(columns, label)
    is_detected = not options.named("sequence")
    try:
        chosen = columns_named(columns, options, "sequence") or choose_sequence(columns, label)
    except DataError as error:  # another label may be the reason
        raise DataError(*error.lines, *doubts) from None
    found = kind_of_sequence(chosen, is_given=not is_detected)
    if found == "text" and len(chosen) == 1 and chosen[0].joined_by:
        found = "tokens"
    roles = Roles(options.kind or found, label, chosen, columns, warnings=doubts)
    if is_detected and len(chosen) >= FEWEST_WIDE:
        others = [column for column in columns if column is not label]
        roles.warnings += doubts_about_steps(others, chosen)
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
        reason = None
        if column.repeats_as_labels:
            reason = tells_label(column, label)
        elif is_detected and column.is_free_text:
            words = telling_words(column, label)
            reason = next((f"the label as its {found.place} word" for found in words), None)
        if reason == "the label in more detail" and is_code_or_owner(column):
            reason = None
        roles.ignore(column, reason)
        if not reason:
            unused.append(column)
    ids = [x for x in unused if _may_be_id(x, label) or _may_be_moment(x, label)]
    roles.owner = next(iter(ids), None) or owner_of(unused)  # an id tells the label
    if roles.kind == "text" and is_detected:
        if ids and not options.get("group"):
            roles.warnings.append(
                f"all rows of one {ids[0].shown} have one label; if they are one sequence: "
                f"{options_naming('id', [ids[0]])}"
            )
        roles.warnings += _doubts_beside_text(roles, unused)
    is_wide = len(chosen) > 1 and chosen[0].is_number and roles.kind == "features"
    own = [column for column in columns if column in used and column is not label]
    roles.all_others = (
        is_wide and own == chosen and len(roles.ignored) == sum(x.name == "" for x in unused)
    )
    return roles


def _doubts_beside_text(roles: Roles, unused: Columns) -> Iterator[str]:
    """Yield doubts about a text that no option names, and other columns that may be sequences.

    Args:
        roles: Roles with the columns of the text.
        unused: Columns that aren't used, and don't tell the label.
    """
    chosen = roles.sequence
    if chosen[0].is_category:
        yield (
            f"the sequence of each row is one word of {chosen[0].shown}, so the model sees no "
            "other words; to label a text by all its words, write it in one cell"
        )
    if len(chosen) == 2 and _are_pair(*chosen):
        alone = options_naming("sequence", chosen[:1])
        yield f"the texts of {shown_names(chosen)} are joined; to read one alone: {alone}"
        unused = _without_forms(unused, chosen)
    texts = [column for column in unused if column.is_free_text]
    spelled = [column for column in unused if _may_be_spelled_out(column)]
    if any(map(_may_be_spelled_out, chosen)):  # such as two chains of a protein
        texts, spelled = [*texts, *spelled], []
    if texts:
        joined = flow([x.name for x in roles.columns if x in chosen or x in texts])
        option = set_option(f"data.sequence={joined}")
        yield f"{shown_names(texts, 3)}: texts that aren't used; to join them: {option}"
    paths = [column for column in unused if _may_be_path(column)]
    for others, found in (
        (spelled, "long words that aren't used; if they are the sequence"),
        (paths, "symbols that aren't used; if a sequence is made of them"),
    ):
        if others:
            option = options_naming("sequence", others[:1])
            yield f"{shown_names(others, 3)}: {found}: {option}"


def _may_be_spelled_out(column: ColumnProfile) -> bool:
    """Return True for long words that differ, such as proteins and tunes, but not for hashes."""
    if column.kind != "text" or column.words >= 1.5 or not column.differs or column.holds_codes:
        return False
    is_long = column.characters >= FEWEST_LETTERS * column.rows
    return is_long and not all(map(ADDRESS.fullmatch, column.sampled_values))


def _may_be_path(column: ColumnProfile) -> bool:
    """Return True for symbols with arrows between them, such as a > b > c, or lists of three."""
    is_path = column.mark in ARROWS or column.steps >= FEWEST_SYMBOLS
    return column.kind == "symbols" and is_path


def _may_be_codes(chosen: Columns) -> bool:
    """Return True if whole numbers from 0 on, in lists or columns, may be codes or measurements.

    Lists of points are none.
    """
    if all(x.main_kind[0] == "numbers" and x.are_whole_lists for x in chosen):
        return not any(_holds_points(x) for x in chosen)
    is_wide = len(chosen) > 1 and chosen[0].kind == "number"
    return is_wide and are_whole([x.numbers[np.isfinite(x.numbers)] for x in chosen])


def _holds_points(column: ColumnProfile) -> bool:
    """Return True for lists of lists of numbers."""
    items = map(items_of, column.sampled_values)
    return any(isinstance(item, list) for own in items for item in own or ())


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


def choose_sequence(columns: Columns, label: ColumnProfile) -> list[ColumnProfile]:
    """Return the columns of the sequence: one column, texts to join, channels, or time steps.

    Raises:
        DataError: If no column or several columns can be the sequence. Also if the table seems to
            have a row per time step.
    """
    others = [column for column in columns if column is not label and column.name != ""]
    others = [column for column in others if not column.numbers_folds]
    varied = [column for column in others if not column.is_constant] or others
    texts = [x for x in varied if x.kind == "text" and not (x.words < FREE_WORDS and x.pattern)]
    texts = [x for x in texts if not (x.names_splits or _is_synonym(x, label))] or texts
    texts = [x for x in texts if not x.holds_measurements]
    if any(map(_may_be_spelled, texts)):  # words that repeat say more about the rows' owners
        texts = [x for x in texts if not (x.is_category or (x.repeats and names_owner(x)))]
        texts = [x for x in texts if not x.has_one_shape]
    free = [x for x in texts if x.is_free_text]
    if len(free) > 1:
        telling = [x for x in free if any(telling_words(x, label))]
        texts = without(texts, telling if len(telling) < len(free) else [])
    numbers = [x for x in others if x.kind in ("number", "amount")]
    if numbers:  # beside them, codes are ids of rows
        texts = [x for x in texts if not (x.differs and x.has_one_shape)]
    candidates = _Candidates(label, others, texts, _lists(varied, texts))
    for rule in LIST_RULES if candidates.lists else TEXT_RULES:
        chosen = rule(candidates)
        if chosen:
            return chosen
    if not candidates.lists and not texts and len(others) > 2:
        raise DataError(*_few_numbers(numbers or others, others, label))
    raise DataError(*_unclear_sequence(candidates))


def _unclear_sequence(found: _Candidates) -> list[str]:
    """Return the lines of an error: a command for each column that may be the sequence or the id.

    Other columns are named at the end.
    """
    label, others = found.label, found.others
    ids = [x for x in others if _may_be_id(x, label) or _repeats_with_label(x, label)]
    possible = [x for x in without(others, ids) if x in found.texts or x.kind in LIST_KINDS]
    lines = list[str]()
    for column in ids:
        rows = f"the rows of one {column.shown} are a sequence"
        lines += listed_commands("id", [(column, rows)])
    lines += listed_commands(
        "sequence", [(x, x.describe().rpartition("(")[2][:-1]) for x in possible]
    )
    texts = [x for x in found.texts if x in possible]
    numbered = [columns for columns in largest_groups(texts) if len(columns) > 2]
    spelled = [column for column in texts if _may_be_spelled(column)]
    for columns in numbered or _pairs(spelled)[:1] or [spelled[:2]]:
        if len(columns) > 1:
            lines.append(f"  {command_naming('sequence', columns)}  # joins them")
    problem = "it isn't clear which column holds the sequence; choose one:"
    if not lines:
        problem = "no other column holds a sequence"
    if not ids:
        lines.append(marked("if a row is a time step, name the column of the id: --id COLUMN"))
    rest = [column.describe() for column in without(others, [*ids, *possible])]
    if rest:
        lines.append(f"other columns: {listed(rest, MOST_LISTED)}")
    return [f"--sequence: {label.shown} is read as the label, but {problem}", *lines]


def _pairs(texts: Columns) -> list[list[ColumnProfile]]:
    """Return pairs of texts, shortest names first: of sentence1, sentence2, and parses of both."""
    if len(texts) > MOST_LISTED:
        return []
    pairs = [list(pair) for pair in combinations(texts, 2) if _are_pair(*pair)]
    return sorted(pairs, key=lambda pair: len(pair[0].name_text))


def _are_pair(one: ColumnProfile, other: ColumnProfile) -> bool:
    """Return True for names that differ in one character, as text_a and text_b, or usual pairs."""
    if (one.word, other.word) in PAIRS:
        return True
    names = one.name_text, other.name_text
    different = [pair for pair in zip(*names, strict=False) if len(set(pair)) > 1]
    return len(names[0]) == len(names[1]) and len(different) == 1


def _may_be_spelled(column: ColumnProfile) -> bool:
    """Return True for free texts, and for words such as addresses or molecules, but not for ids."""
    is_id = is_code_or_owner(column) or column.has_one_shape or column.word in ROW_NAMES
    return column.is_free_text or (column.differs and not is_id)


def _may_be_id(column: ColumnProfile, label: ColumnProfile) -> bool:
    """Return True if the equal rows of a column have one label, and it may name sequences.

    It is named like codes or groups, or its equal rows stand together.
    """
    is_block = column.is_contiguous and FEWEST_OWNERS <= column.distinct <= column.rows / 2
    if not column.can_be_label or not (may_own(column) or is_code(column) or is_block):
        return False
    return refines(column, label)


def _repeats_with_label(column: ColumnProfile, label: ColumnProfile) -> bool:
    """Return True for names of several rows each with one label, whatever the column is named."""
    return column.is_category and column.distinct >= FEWEST_OWNERS and refines(column, label)


def _lists(others: Columns, texts: Columns) -> list[ColumnProfile]:
    lists = [column for column in others if column.kind in LIST_KINDS]
    free = [column for column in texts if column.is_free_text]
    if not free:
        return lists
    fewest = max(FEWEST_WIDE, min(max(column.words for column in free), MANY_NUMBER_COLUMNS))
    names = () if any(column.word in TEXT_NAMES for column in free) else TEXT_NAMES
    return [x for x in lists if x.word in names or _size_of_lists(x) >= fewest or _is_chat(x)]


def _size_of_lists(column: ColumnProfile) -> float:
    """Return the mean number of items of the lists of a column."""
    if column.kind != "events":
        return column.steps
    return float(np.mean([len(items_of(value) or ()) for value in column.sampled_values]))


def _is_chat(column: ColumnProfile) -> bool:
    """Return True for sentences, and for objects with them, but not for those of custom fields."""
    if column.kind != "turns":
        return False
    words = list[int]()
    for value in column.sampled_values:
        for item in items_of(value) or ():
            text = item[text_field(item)] if isinstance(item, dict) else item
            words.append(len(str(text).split()))
    return sum(words) >= FEWEST_WORDS_OF_TURN * len(words)


def _channels(found: _Candidates) -> list[ColumnProfile]:
    """Return series of equal lengths, or []."""
    lists = found.lists
    lengths = {round(column.steps, 9) for column in lists}
    if (are_channels(lists) and len(lengths) == 1) or len(lists) == 1:
        return lists
    return []


def are_channels(columns: Columns) -> bool:
    """Return True for lists of numbers, of which some have decimals, or are similar to the next."""
    are_lists = all(x.kind in LIST_KINDS and x.main_kind[0] == "numbers" for x in columns)
    return are_lists and any(column.kind == "series" for column in columns)


def _title_and_body(found: _Candidates) -> list[ColumnProfile]:
    """Return the headline and the body, whose texts are joined, or [].

    A column that only has the name of a headline isn't one: its texts differ from row to row. The
    body has a usual name, or is the only other free text.
    """
    texts = [x for x in found.texts if not x.is_category]
    possible = [x for x in texts if last_word(x) in HEADLINE_NAMES]
    titles = [x for x in possible if x.word in HEADLINE_NAMES]
    titles = titles or [x for x in possible if x.differs]
    bodies = [x for x in found.texts if last_word(x) in BODY_NAMES]
    if not bodies:
        bodies = [x for x in texts if x.is_free_text and x not in possible]
    if len(titles) == len(bodies) == 1:
        return [*titles, *bodies]
    return []


def _pair_of_texts(found: _Candidates) -> list[ColumnProfile]:
    """Return two texts that a row relates, such as question1 and question2, or [].

    Other texts may only be forms of both, as parses are. One of the two may come again in several
    pairs.
    """
    texts = [x for x in found.texts if x.words >= FREE_WORDS]
    for pair in _pairs(texts)[:1]:
        if any(x.is_free_text for x in pair) and not _without_forms(texts, pair):
            return pair
    return []


def _without_forms(texts: Columns, pair: Columns) -> list[ColumnProfile]:
    """Return texts but those of a pair, and others that are named after these: sentence1_parse."""
    names = tuple(column.name_text for column in pair)
    return [x for x in texts if not x.name_text.startswith(names)]


def _wide_series(found: _Candidates) -> list[ColumnProfile]:
    """Return the columns of numbers that are more than half of all columns, or [].

    Numbered columns of words are attributes of a row beside a free text.
    """
    wide = wide_columns(found.others)
    if wide and wide[0].kind == "text" and any(x.is_free_text for x in found.texts):
        return []
    if 2 * len(wide) > len(found.others):
        return in_order(wide)
    return []


def _refuse_step_table(found: _Candidates) -> list[ColumnProfile]:
    """Raise a DataError if the table seems to have a row per time step.

    Its texts are then single words that repeat, as ids do. Other columns hold measurements, or the
    only column except the label is named like codes or owners.
    """
    texts, others = found.texts, found.others
    names = others
    is_table = any(column.is_measured for column in others)
    if is_table and len(texts) == 1:  # ids such as C4J4GwkD beside numbers alone
        names = [column for column in texts if column.words == 1]
    if len(names) == 1 and is_code_or_owner(names[0]) and names[0].is_unique:
        name = names[0].name_text
        raise DataError(
            f"--sequence: {names[0].shown} names each row, but no column holds a sequence; give "
            f"the file that has it, too, or, to read the names: {shlex.join(['--sequence', name])}"
        )
    if texts and is_code_or_owner(texts[0]):
        is_table = is_table or any(column.kind == "time" for column in others)
    if len(others) == 1:
        is_table = is_table or is_code_or_owner(others[0])
    if texts and is_table and all(x.repeats and x.words < FREE_WORDS for x in texts):
        values = f"{counted(texts[0].distinct, 'value')} of {quote(texts[0].name_text, 20)}"
        numbers = [x for x in others if x.kind == "number" and not x.is_unique]
        windows = [*_commands_for_windows(others, found.label)]
        raise DataError(
            f"--id: it looks like a row per time step ({values} in {texts[0].rows:,} rows), but no "
            "column has the same label in all rows of a sequence",
            marked("add it, or the file that has it, and name both: --id COLUMN --label COLUMN"),
            *(windows or _command_for_numbers(numbers)),
        )
    return []


def _commands_for_windows(columns: Columns, label: ColumnProfile) -> Iterator[str]:
    """Yield a command for each column whose rows stand together while the label changes.

    It is one of words that repeat, or named like ids or owners, or has no name.
    """
    for column in columns:
        may_be_id = is_id_or_owner(column) or isinstance(column.name, int)
        is_id = column.is_category or (may_be_id and column.repeats)
        is_id = is_id and column.is_contiguous and not column.is_constant
        if is_id and not determines(column, label):
            yield from listed_commands("id", [(column, "its rows are cut into windows")])


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
    if len(named) > 1:  # next to a sequence, these are names of things
        named = [x for x in named if x.word not in SHORT_NAMES] or named
    if any(map(_is_long, candidates)):
        named = [x for x in named if _is_long(x) or x.word not in SHORT_NAMES]
    tunes = [x for x in candidates if _may_be_spelled_out(x) and x not in named]
    if named and len(tunes) == 1:
        shorter = [x for x in named if 2 * x.characters < tunes[0].characters]
        if all(x in shorter and x.word in SHORT_NAMES for x in named):
            return tunes
    if len(named) == 1:
        return named
    plausible = _plausible(found)
    if len(plausible) == 1:
        return plausible
    return []


def _is_long(column: ColumnProfile) -> bool:
    """Return True for free texts, and for other texts of many characters, such as a tune."""
    is_tune = column.kind == "text" and column.characters > LONGEST_CODE * column.rows
    return column.is_free_text or (is_tune and column.differs)


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
    """Return the text that is much longer than all others, but no words that repeat, or []."""
    by_length = sorted(_plausible(found), key=lambda column: -column.characters)
    is_longest = len(by_length) > 1 and (
        by_length[0].characters > MUCH_LONGER * by_length[1].characters
    )
    if is_longest and not by_length[0].is_category:
        return by_length[:1]
    return []


SequenceRule: TypeAlias = Callable[[_Candidates], list[ColumnProfile]]
LIST_RULES: tuple[SequenceRule, ...] = (_channels, _only_likely)
"""Rules of a table with lists. The first one that finds columns decides."""
TEXT_RULES: tuple[SequenceRule, ...] = (
    _title_and_body,
    _pair_of_texts,
    _wide_series,
    _refuse_step_table,
    _most_telling,
    _only_likely,
    _longest,
)
"""Rules of other tables."""


def _few_numbers(
    numbers: Columns,
    others: Columns = (),
    label: ColumnProfile | None = None,
) -> list[str]:
    """Return the lines of an error: no columns of single numbers are clearly a series.

    Args:
        numbers: The columns.
        others: All columns but the label, of which some may be the id of time steps.
        label: Column of the label.
    """
    lines = [
        f"--sequence: found {counted(len(numbers), 'column')} of one number each, but no sequence; "
        + marked("if a row is a time step, name the column of the id: --id COLUMN")
    ]
    for column in others:
        if label is not None and _may_be_moment(column, label):
            lines += listed_commands("id", [(column, "the rows of one value are a sequence")])
            machines = [x for x in others if x is not label and _has_row_per_time(x, column)]
            rows = f"its rows, sorted by {column.shown}, are cut into windows"
            lines += listed_commands("id", [(x, rows) for x in machines])
    if label is not None:
        lines += [*_commands_for_windows(others, label)] or _command_for_numbers(numbers)
    return lines


def _may_be_moment(column: ColumnProfile, label: ColumnProfile) -> bool:
    """Return True for times of several rows each, which stand together and have one label."""
    if column.kind != "time" or 2 * column.distinct > column.rows or not column.is_contiguous:
        return False
    return refines(column, label)


def _has_row_per_time(column: ColumnProfile, times: ColumnProfile) -> bool:
    """Return True for values that have one row each at every time, as machines and places have."""
    if not column.can_be_label or column.distinct * times.distinct != column.rows:
        return False
    return JoinedColumn(column, times).distinct == column.rows


def _command_for_numbers(numbers: Columns) -> list[str]:
    """Return lines with commands that read few columns of numbers as a series, or [].

    The columns are those of `largest_groups`, and all. There is none if one is named like times or
    counters: a row is a time step.
    """
    if any(column.holds_measurements or is_counting(column) for column in numbers):
        return []
    others = [x for x in numbers if x.has_decimals or not x.is_unique]  # no ids of rows
    groups = {len(columns): columns for columns in (*largest_groups(numbers), others)}
    lines = list[str]()
    for columns in groups.values():
        if FEWEST_GIVEN <= len(columns) <= MOST_LISTED:
            setting = f"data.sequence={flow([column.name for column in columns])}"
            lines.append(f"  {set_command(setting)}  # if these are the time steps of a row")
    return lines


def kind_of_sequence(chosen: Columns, *, is_given: bool = False) -> str:
    """Return the kind of the sequence in the chosen columns: text, tokens, features or events.

    Args:
        chosen: The columns.
        is_given: True if the user named them, so that few columns can be a series, too.

    Raises:
        DataError: If columns of single numbers have units, or are too few for a series.
    """
    kinds = {column.kind for column in chosen}
    if "events" in kinds and len(chosen) == 1:
        return "events"
    for column in chosen:
        if column.kind == "events":
            raise DataError(fields_problem(column))
    if len(chosen) > 1 and all(x.is_number or x.kind == "amount" for x in chosen):
        fewest = FEWEST_GIVEN if is_given else FEWEST_WIDE
        if len(chosen) < fewest:
            raise DataError(*_few_numbers(chosen))
        if are_wide_codes(chosen):
            return "tokens"
        for column in chosen:
            if column.kind == "amount":
                raise DataError(f"--sequence: {column.unit_problem()}")
        return "features"
    if len(chosen) >= FEWEST_WIDE and all(column.repeats for column in chosen):
        return "tokens"
    if are_channels(chosen):
        return "features"
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


def are_wide_codes(columns: Columns) -> bool:
    """Return True if whole numbers from 0 on in columns are codes.

    Codes repeat in every column, and neighbours aren't similar. Pixels and sensors are similar. So
    are the marks of a student, compared with those of others.
    """
    if any(column.has_decimal_commas or column.kind != "number" for column in columns):
        return False
    rows = np.stack([column.numbers[:PROBED_ROWS] for column in columns], axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not FEWEST_MEASURED < len(np.unique(rows)) <= rows.size / 4:
        return False
    return bool((np.diff(rows) ** 2).mean() >= rows.var()) and are_codes(rows)
