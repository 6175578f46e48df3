"""Notes of `seqtrain init`: uses of columns, and doubts about labels, windows and few rows."""

import math
import os
import shlex
from collections.abc import Iterator

import numpy as np

from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.facts import Facts
from seqtrain.proposal.file_names import NUMBER_IN_NAME, inside, split_of, words_of
from seqtrain.proposal.findings import Findings
from seqtrain.proposal.options import INIT_COMMAND
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.settings import Settings, share_to_hold_out
from seqtrain.proposal.shell import set_option
from seqtrain.proposal.table import Table
from seqtrain.proposal.write import GROWTH, shown_labels
from seqtrain.sequences.examples import MOST_DROPPED
from seqtrain.tables.blocks import FILE, SPLIT_VALUES
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.formats import names_of, resolve_format
from seqtrain.text import counted, listed, quote

FEW_PER_CLASS = 30
"""Rows per class below which a warning says that the accuracy is uncertain."""
SEQUENCE_NAMES = {
    "text": "text",
    "tokens": "symbols",
    "features": "series",
    "steps": "a time step",
}
"""Maps kinds of sequences to words for the user."""
FEW_ROWS_OF_LABEL = 100
"""Largest number of rows of a label for which a message always has its number of windows."""
MOST_NUMBERED_CLASSES = 10
"""Largest number of files of a class each whose names may differ only in numbers, as for digits."""
MOST_SHEETS = 4
"""Largest number of sheets in commands."""
MOST_RARE = 2
"""Rows of a class up to which a warning names it."""


def about_sheets(table: Table) -> Iterator[str]:
    """Yield a line about the sheet that is read, if the workbook has several."""
    if len(table.sheets) > 1:
        first, *others = table.sheets
        names = listed([quote(name) for name in others], 4)
        option = set_option(f"data.sheet={flow(others[0])}")
        yield f"the first sheet, {quote(first)}, is read; others are {names}; to read one: {option}"


def commands_for_sheets(table: Table) -> list[str]:
    """Return lines with commands that read other sheets of a workbook, or all of them."""
    if len(table.sheets) < 2:
        return []
    first, *others = table.sheets
    lines = [f"the first sheet, {quote(first)}, is read; to read another:"]
    for name in others[:MOST_SHEETS]:
        lines.append(f"  {INIT_COMMAND} {set_option(f'data.sheet={flow(name)}')}")
    lines.append("or, to write each sheet to a file, if each is a class, or they share a key:")
    return [*lines, *conversion_lines("tables", table.file)]


def doubts_about_labels(found: Findings) -> Iterator[str]:
    """Yield a warning if the labels of train are probably no classes.

    Raises:
        DataError: If there is one file per class, with many files whose names are all numbers.
    """
    facts, table, labels = found.facts, found.table, list(found.facts.classes)
    stems = {NUMBER_IN_NAME.sub("", label) for label in labels}
    is_folder = table.format == "txt" and os.path.isdir(table.path)
    are_numbered = len(labels) > MOST_NUMBERED_CLASSES and len(stems) == 1
    if are_numbered and is_folder and not table.has_whole_files:
        held = f"one file per class, {labels[0]}, {labels[1]} and {len(labels) - 2} more"
        if stems == {""}:
            raise DataError(f"{table.name}: this folder holds {held}; did you mean its parent?")
        yield f"this folder holds {held}; if the folder is a class, give its parent"
    yield from facts.variants


def rare_classes(found: Findings, unit: str) -> Iterator[str]:
    """Yield a warning about classes of one or two rows, which can't be learned and scored."""
    facts, table, label = found.facts, found.table, found.roles.label
    rare = sorted((count, name) for name, count in facts.classes.items() if count <= MOST_RARE)
    if not rare:
        return
    names = listed([f"{quote(name, 30)} ({count})" for count, name in rare], 3)
    noun = "class has" if len(rare) == 1 else "classes have"
    first = str(label.values[label.codes[0]])
    if table.header is False and table.lines[0] == 1 and (1, first) in rare:
        yield f"{table.name}:1: if this line names the columns, such as {quote(first)}: --header"
    yield (
        f"{len(rare)} {noun} one or two {unit}: {names}; so few can't be both learned and scored: "
        f"correct these labels, add {unit}, or leave them out"
    )


def rows_of_windows(roles: Roles, facts: Facts) -> Iterator[str]:
    """Yield a warning with the rows and windows of the rarest label, if it has few of them."""
    window, label = roles.window, roles.label
    if window is None or window["label"] == "constant":
        return
    present = np.flatnonzero(np.arange(len(label.values)) != label.blank)
    rarest = int(present[label.counts[present].argmin()])
    name, rows = str(label.values[rarest]), int(label.counts[rarest])
    windows = facts.classes[name]
    are_enough = rows > FEW_ROWS_OF_LABEL and 2 * windows >= rows / window["stride"]
    if are_enough or windows == rows:
        return
    advice = "stride: 1 in data.window ends a window at each row"
    if window["stride"] == 1:
        advice = "the first rows of an id end no window, so fewer steps in data.window keep more"
    found = f"{quote(name)} is the label of {counted(rows, 'row')} and {counted(windows, 'window')}"
    yield f"{label.shown}: {found}; {advice}"


def uses(found: Findings, settings: Settings) -> Iterator[str]:
    """Yield the lines of `Proposal.uses`.

    They are about the sequence and the label, other settings of the data, ignored columns, and rows
    left out.
    """
    roles, facts = found.roles, found.facts
    used = SEQUENCE_NAMES[roles.kind]
    if facts.channels > 1 and roles.kind == "features":
        used += f" of {facts.channels} channels"
    median, _, longest = facts.lengths
    if roles.kind == "features" and median == longest and not roles.has_names:
        used += f" of {median} time steps each"
    shown = {name: GROWTH if kind == "order" else flow(kind) for name, kind in roles.steps.items()}
    columns = [f"{name} ({kind})" for name, kind in shown.items()]
    if roles.all_others:
        columns = ["all other columns"]
    elif not columns and roles.has_names:
        columns = [column.name_text for column in roles.sequence]
    if columns:
        used += f" = {listed(columns, 8)}"
    kind = "several labels per row" if facts.multi_label else "label"
    if roles.has_names:
        kind += f" = {listed([x.name_text for x in roles.one_hot or [roles.label]], 4)}"
    elif found.table.format == "fasta":
        kind += " in the lines that begin with >"
    yield f"{used}, {kind} ({len(facts.classes)} classes: {shown_labels(facts)})"
    if facts.positions is not None:
        yield (
            f"labels are lists of {facts.positions} marks, read as multi-hot: "
            "a row has the class 0 if its first mark is 1, the class 1 if its second is, and so on"
        )
    if found.table.format == "csv" and roles.id is not None and roles.id.name == FILE:
        ending = os.path.splitext(found.table.file)[1]
        if ending == ".txt":
            yield "format = csv: the lines of a file are rows; if a file is one text: --format txt"
    for key in ("join", "sequence", "id", "order", "window", "group", "static"):
        if f"data.{key}" in settings and (key != "sequence" or roles.steps):
            value, reason = settings[f"data.{key}"]
            yield f"{key} = {flow(value)}: {reason}"
        elif key == "order" and roles.id is not None:
            yield "order: as the rows stand in the file, for no column is known to sort them"
    if settings["data.validation"].value is None and "validation" not in found.options.given:
        advice = ""
        is_one = roles.id is not None and roles.id.distinct == 1
        if not is_one and share_to_hold_out(facts.family.name, facts.rows) is None:
            advice = "; to hold out a fifth of them: --set data.validation=0.2"
        yield f"validation = null: {settings['data.validation'].reason}{advice}"
    yield from found.table.layout.notes
    if found.encoding:
        yield f"pretrained encoder: {found.encoding}"
    if roles.ignored:
        yield f"ignored: {listed(roles.ignored, 8)}"
    unit = "row" if roles.id is None else "sequence"
    if facts.unlabelled:
        yield f"{counted(facts.unlabelled, unit)} with a blank label left out"
    if facts.unreadable:
        yield f"{counted(facts.unreadable, unit)} that can't be read left out"
    if facts.empty:
        yield f"{counted(facts.empty, 'row')} without a sequence left out"


def empty_rows(facts: Facts) -> Iterator[str]:
    """Yield a warning if many rows of train have no sequence."""
    total = facts.rows + facts.empty
    if facts.empty > MOST_DROPPED * total:
        yield (
            f"{facts.empty:,} of {total:,} rows ({facts.empty / total:.0%}) have an empty sequence "
            "and are left out (data.empty: drop); if another column holds it: --sequence COLUMN"
        )


def files_of_other_splits(found: Findings) -> list[str]:
    """Return lines about the files beside the only file of train that may be other splits.

    Their names differ only in the words of splits: test.csv, reviews_dev.csv. There is none beside
    a file that is train though its own name is that of another split. The last line is the command
    of the user with these files.
    """
    train = found.splits["train"]
    if not isinstance(train, str) or not os.path.isfile(train):
        return []
    if split_of(train) not in (None, "train"):
        return []
    own, format = words_of(train) - SPLIT_VALUES, resolve_format(train, "auto")
    others, chosen = list[str](), dict[str, str]()
    for path in inside(os.path.dirname(train))[0]:
        split = split_of(path) or "train"
        if split in ("train", *found.splits) or words_of(path) - SPLIT_VALUES != own:
            continue
        if resolve_format(path, "auto") == format:
            others.append(path)
            chosen.setdefault(split, path)
    if not others:
        return []
    verb = "isn't" if len(others) == 1 else "aren't"
    unused = f"{listed(others)} {verb} used"
    command = found.command
    if not command.startswith("seqtrain init"):  # a call in Python
        given = [path for split in found.splits.values() for path in names_of(split)]
        command = shlex.join(["seqtrain", "init", *given])
    return [
        f"{unused}; to score each, or predict it if it has no labels:",
        f"  {command} {shlex.join(chosen.values())} --force",
    ]


def few_rows(found: Findings, config: Config) -> Iterator[str]:
    """Yield a warning that the accuracy is uncertain, if there are few rows per class.

    Rows are few if train has fewer than `FEW_PER_CLASS` of them per class, on average.
    """
    facts, rows, share = found.facts, found.rows, config.data.validation
    few = facts.rows / len(facts.classes)
    if few >= FEW_PER_CLASS:
        return
    are_few = f"{few:.0f} rows per class are few" if round(few) > 1 else "1 row per class is few"
    held_out = rows.get("validation", 0)
    if not held_out and isinstance(share, float):
        held_out = round(share * facts.rows)
    split, scored = ("test" if "test" in rows else "validation"), rows.get("test", held_out)
    if not scored:
        advice = "none are held out: fit --folds 5 measures an accuracy"
        yield f"{are_few}, and {advice}"
        return
    points = 196 * math.sqrt(0.09 / scored)
    yield (
        f"{are_few}: an accuracy of 90 % on {counted(scored, 'row')} of "
        f"{split} would have an uncertainty of ± {points:.0f} points; fit --folds 5 scores all rows"
    )
