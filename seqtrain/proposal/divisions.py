"""Lines that no delimiter of csv divides: blanks, blocks, several marks, and frames."""

import os
import re
from collections import Counter
from dataclasses import replace
from itertools import takewhile

from seqtrain.errors import DataError
from seqtrain.proposal.first_lines import LINES, filled_lines, first_blocks, first_lines
from seqtrain.proposal.options import COLUMN_OPTIONS, FileLayout
from seqtrain.proposal.shell import converting, init_line
from seqtrain.tables.blocks import TEXT, Dialect, as_list
from seqtrain.tables.cells import is_number
from seqtrain.tables.conversions.lines import LABELS_LAST, PLACES, RULE
from seqtrain.tables.delimited import find_delimiter
from seqtrain.tables.opening import guess_encoding
from seqtrain.text import display_name, listed, quote

FEWEST_LINES_OF_LABEL = 4
"""Fewest lines per first word, on average, if the first words of lines may be labels."""
FEWEST_BLOCKS = 3
"""Fewest blank lines that divide a file into blocks."""
FEWEST_FIELDS, FEWEST_TABLE_LINES = 3, 8
"""Fewest fields of each line, and fewest lines, of a table whose columns blanks separate."""
SHARE_OF_NUMBERS = 0.25
"""Smallest share of columns of numbers in such a table."""
NUMBER_OR_TIME = re.compile(
    r"[-+]?[0-9](?:[-+./0-9eE]|:[0-9]{2})*(?:,[0-9]+)?|[-+]?\.[0-9]+|(?i:na|nan)|[?.-]"
)
"""Cell of a column of numbers, dates or times, also with a decimal comma, or a missing one."""
OTHER_MARK = re.compile(r"[;|]|(?<![0-9]),|,(?![0-9]+(?:\s|$))")
"""Mark between columns that is no blank, and no decimal comma."""
MARK_RUNS = re.compile(r"(?:[^\w\s]|_)+")
"""Marks without letters, digits and blanks between."""
SINGLE_MARKS = set("~^§¦¬\x01")
"""Single marks that may divide columns. Texts hardly hold them."""
OTHER_MARKS = re.compile(r"[\",;|'()\[\]{}]|//")
"""A delimiter, a quote, a bracket, or a mark of addresses."""
BEGINNINGS = {
    "fasttext": "__label__",
    "jsonl": r"\{|\[\s*(?:[\[{0-9\"-]|$)",
    "fasta": ">.*",
    "arff": "(?i:@relation).*",
}
"""Maps formats without columns to patterns of the first line of a file of an unknown ending."""
LOG = "#separator "
"""Beginning of a log of Zeek."""
NO_COLUMNS = re.compile(r'"[^"]*"|(?<=:[0-9]{2}),[0-9]+')
"""Text in quotes, or decimals of a second: their marks divide no columns."""
NAME_OF_CLASS = re.compile(r"[-+\w]+(?::[-+\w]+)?[:)]?")
"""First word of a line that may be its label, also with a finer one, as DESC:manner."""


def refuse_blocks(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError if blank lines divide lines of equally many words or numbers.

    Such as in CoNLL files.

    A user who names a column wants rows as they are.
    """
    lines = first_lines(path, replace(dialect, blank_lines=True))
    lines = "\n".join(line for line in lines if not line.startswith("#")).strip().split("\n")
    rows = [line.split() for line in lines if line.strip(" ")]  # tabs alone are a row of a sheet
    blanks, has_commas = len(lines) - len(rows), 2 * sum("," in line for line in lines) > len(rows)
    are_blocks = FEWEST_BLOCKS <= blanks < len(rows) / 2 and len(set(map(len, rows))) == 1
    if not are_blocks or has_commas or len(rows[0]) < 2:
        return
    if any(layout.options.named(option) for option in COLUMN_OPTIONS):
        return
    name = display_name(path)
    if all(map(is_number, rows[0])):
        raise DataError(
            f"{name}: blank lines divide its lines of numbers into blocks; if a block is a "
            "sequence, number the blocks:",
            *converting("blocks", layout, path, "--id block", name="block"),
            "if labels are elsewhere, give a csv file with a row for each, below block,label, too",
            "or, if blank lines mean nothing:",
            *converting("columns", layout, path),
        )
    raise DataError(
        f"{name}: blank lines divide its lines into blocks, as in CoNLL files, which have a tag "
        "per token; seqtrain learns a label per sequence",
        f"{name}: if the lines of a block have one label, number the blocks:",
        *converting("blocks", layout, path, "--id 0"),
    )


def refuse_blanks(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError with a command if blanks separate the columns of a text file.

    All lines then have equally many fields, without comments, and a quarter of the columns numbers
    below the first line: lines of a log may have equally many words. The names may be in a comment,
    or lack that of the first column, as R writes them.
    Lines with one tab each are label<TAB>text.
    """
    if not os.path.isfile(path):
        return
    written = first_lines(path, replace(dialect, blank_lines=True))
    lines = [line for line in written if line.strip()]
    below = [line for line in lines if not line.startswith("#")]
    rows = [line.split() for line in below[1:]]
    width = len(rows[0]) if rows else 0
    if len(rows) < FEWEST_TABLE_LINES or width < FEWEST_FIELDS or {*map(len, rows)} != {width}:
        return
    is_divided = all(line.count("\t") == 1 for line in below)
    is_divided |= all(len(line.split("\t")) == width for line in below)
    numbers = [x for x in zip(*rows, strict=True) if all(map(NUMBER_OR_TIME.fullmatch, x))]
    if is_divided or len(numbers) < SHARE_OF_NUMBERS * width or OTHER_MARK.search(below[1]):
        return
    comments = list(takewhile(lambda line: not line.strip() or line.startswith("#"), written))
    names = (comments[-1] if comments else lines[0]).lstrip("# ").split()
    if not comments and len(names) not in (width, width - 1):
        return
    raise DataError(
        f"{display_name(path)}: {width} columns between blanks; to write commas there:",
        *converting("columns", layout, path),
    )


def refuse_marks(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError with a command if several marks, such as ::, divide the columns of a file.

    They stand equally often in all lines. Of several such strings, the most frequent one counts.
    """
    if not os.path.isfile(path):
        return
    lines = filled_lines(path, dialect)
    if len(lines) < FEWEST_TABLE_LINES:
        return
    found = [mark for mark in dict.fromkeys(MARK_RUNS.findall(lines[0])) if _may_divide(mark)]
    found = [mark for mark in found if len({line.count(mark) for line in lines}) == 1]
    if not found:
        return
    mark = max(found, key=lambda mark: (lines[0].count(mark), len(mark)))
    raise DataError(
        f"{display_name(path)}: {quote(mark)} stands in each line {lines[0].count(mark)} times; if "
        "it divides columns, to write csv:",
        *converting("columns", layout, path, mark=mark),
    )


def _may_divide(mark: str) -> bool:
    """Return True for marks that are neither those of csv, nor those of sentences and addresses."""
    if len(mark) == 1:
        return mark in SINGLE_MARKS
    if set(mark) <= set(".!?") or set(mark) == {"_"}:
        return False
    return set(mark) == {"|"} or not OTHER_MARKS.search(mark)


def refuse_frames(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError with a command if a table has bars between columns, and lines of dashes.

    Databases, SAP and Markdown write tables so. Lines without bars are titles or sums.
    """
    lines = [line.strip() for line in filled_lines(path, dialect)]
    others = [line for line in lines if not RULE.fullmatch(line)]
    rows = [line for line in others if "|" in line]
    are_rows = FEWEST_TABLE_LINES <= len(rows) > len(others) / 2
    if len(others) == len(lines) or not are_rows or len({line.count("|") for line in rows}) > 1:
        return
    raise DataError(
        f"{display_name(path)}: bars stand between its columns, and lines of dashes; to write "
        "commas there, without these lines:",
        *converting("columns", layout, path, mark="pipe"),
    )


def command_for_unknown(path: str, layout: FileLayout) -> list[str]:
    """Return a line with the command that reads a file whose ending tells no format, or [].

    Args:
        path: The file.
        layout: The layout of all files, which the command reads, too.

    Raises:
        DataError: If blanks separate its columns, with the command that writes commas there.
    """
    if not os.path.isfile(path):
        return []
    dialect = replace(LINES, encoding=guess_encoding(path) or LINES.encoding)
    try:
        blocks = [*first_blocks(path, dialect)]
    except DataError:
        return []
    lines = [str(text) for block in blocks for text in as_list(block.columns[TEXT])]
    if not lines or 2 * sum(len(block.problems) for block in blocks) > len(lines):
        return []
    if lines[0].startswith(LOG):
        return ["it is a log of Zeek; to write a table:", *converting("logs", layout, path)]
    refuse_blocks(path, dialect, layout)
    refuse_blanks(path, dialect, layout)
    refuse_frames(path, dialect, layout)
    format = next((x for x, pattern in BEGINNINGS.items() if re.match(pattern, lines[0])), None)
    if format is None:
        refuse_marks(path, dialect, layout)
        mark = find_delimiter(lines)
        if not all(mark in NO_COLUMNS.sub("", line) for line in lines if line.strip()):
            refuse_labels_before_blanks(path, dialect, layout)
            return ["if its lines are no table, write one as csv: values, an id, and a label"]
        format = "tsv" if mark == "\t" else "csv"
    files = layout.files_with(path)
    return [f"it seems to be {format}; to read it so:", init_line(*files, "--format", format)]


def refuse_labels_before_blanks(path: str, dialect: Dialect, layout: FileLayout) -> None:
    """Raise a DataError with a command if the first or last words of lines may be their labels.

    Of labels with a finer one behind a colon, a further command takes the first part.
    """
    if not os.path.isfile(path):
        return
    lines = filled_lines(path, dialect)
    if not all(len(line.split()) > 1 for line in lines):
        return
    if 2 * sum(bool(LABELS_LAST.fullmatch(line)) for line in lines) > len(lines):
        raise DataError(
            f"{display_name(path)}: labels such as __label__x end its lines; to move them to the "
            "front:",
            *converting("labelled", layout, path, "--format fasttext"),
        )
    if all(map(PLACES["tree"].fullmatch, lines)):
        raise DataError(
            f"{display_name(path)}: its lines are trees with a label at each branch; to write the "
            "first label and the words:",
            *converting("labelled", layout, path, at="tree"),
        )
    for place, at in {"first": 0, "last": -1}.items():
        words = Counter(line.split()[at] for line in lines)
        if not all(map(NAME_OF_CLASS.fullmatch, words)):  # such as the dates of a log
            continue
        if not 2 <= len(words) <= len(lines) / FEWEST_LINES_OF_LABEL:
            continue
        shown = listed([quote(word) for word, _ in words.most_common()])
        commands = converting("labelled", layout, path, at=place)
        if all(":" in word[:-1] for word in words):
            commands.append("or, if its label is what comes before the colon:")
            commands += converting("labelled", layout, path, at=place, mark=":")
        raise DataError(
            f"{display_name(path)}: no tab or comma is between labels and texts; if the {place} "
            f"word of a line is its label ({shown}):",
            *commands,
        )
