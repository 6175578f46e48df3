"""Conversions of lines of text. Each function gets lines without their ends, and yields lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from seqtrain.errors import ConfigError
from seqtrain.tables.delimited import COMMENTS, DELIMITERS
from seqtrain.tables.opening import LINE_BYTES
from seqtrain.text import one_of, quote

MOST_ABOVE = 1000
"""Largest number of lines above a table."""
RULE = re.compile(r"[-+|:=\s]*[-=]{3}[-+|:=\s]*")
"""A line of dashes above, in or below a table."""
BAR = "|"
"""Mark between columns of tables that may have frames."""
BETWEEN_NUMBERS = re.compile(r"[\s,;|]+")
"""What stands between numbers of a line."""
LABELS_LAST = re.compile(r"(.*?\S)\s+((?:__label__\S+\s*)+)")
"""A line of a text with its labels, as fastText writes them, after it."""
PLACES = {
    "first": re.compile(r"\s*(?P<label>\S+)\s+(?P<text>.*)"),
    "last": re.compile(r"(?P<text>.*\S)\s+(?P<label>\S+)\s*"),
    "tree": re.compile(r"\s*\((?P<label>[^\s()]+)\s+(?P<text>.*)\)\s*"),
}
"""Maps places of the word of a line that is its label to a pattern of the line."""
BRANCH = re.compile(r"\([^\s()]+ |\)")
"""Beginning of a branch of a tree with its label, or its end."""
LOG_MARK = re.compile("\t| {3}")
"""Mark between columns of a log of Zeek. Those of labels that others added may have blanks."""
MESSAGE = re.compile(
    r"\u200e?\[?([0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4},? [0-9]{1,2}:[0-9]{2}[^]\n-]{0,12}?)"
    r"(?:\]| -) ([^:\n]+): (.*)",
    re.DOTALL,
)
"""A message of a chat: `12/31/23, 9:15 PM - Anna: Hello` or `[31.12.23, 21:15:03] Anna: Hello`."""
MESSAGE_START = re.compile(r"\u200e?\[?[0-9]{1,4}[./-][0-9]{1,2}[./-]")
"""Beginning of a message, or of a line about the chat itself."""


def numbered_blocks(lines: Iterable[str], *, name: str | None = None) -> Iterator[str]:
    """Yield the words of each line as csv, with the number of its block before them.

    Args:
        lines: The lines. Blank ones divide the blocks. Comments are left out.
        name: Name of the column of numbers, in a first row of names. None writes no names.
    """

    def rows() -> Iterator[list[str]]:
        block, has_names = 0, name is None
        for line in lines:
            words = line.split()
            if not words:
                block += 1
                continue
            if line.startswith("#"):
                continue
            if not has_names:
                yield [str(name), *(f"x{place}" for place in range(len(words)))]
                has_names = True
            yield [str(block), *words]

    return as_csv(rows())


def columns(lines: Iterable[str], *, mark: str | None = None) -> Iterator[str]:
    """Yield lines of csv for lines of a table.

    Args:
        lines: The lines. Blank ones are left out. So are comments and quotes, if blanks separate
            the columns; then the last comment above the table may name them. If bars separate
            them, lines without any, and those of dashes, are left out.
        mark: What separates the columns. None for blanks. All lines remain if none has it.
    """
    if mark is None:
        return as_csv(_words_of_lines(lines))
    mark = DELIMITERS.get(mark, mark)
    lines = iter(lines)
    first = list[str]()
    for line in lines:
        first.append(line)
        if mark in line:
            return as_csv(_divided(chain(first, lines), mark))
    return iter(first)


def _words_of_lines(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each line of a table, below names for all of them."""
    filled = (line.replace('"', "") for line in lines if line.strip())
    names = list[str]()
    for line in filled:
        if not line.startswith("#"):
            break
        names = line.lstrip("# ").split()
    else:
        return
    rows = (line.split() for line in filled if not line.startswith("#"))
    first = line.split()
    second = list(islice(rows, 1))
    if len(names) == len(first):
        yield names
    elif not names and second and len(second[0]) == len(first) + 1:  # as R writes row names
        first = ["row", *first]
    yield from chain([first], second, rows)


def _divided(lines: Iterable[str], mark: str) -> Iterator[list[str]]:
    """Yield the columns of each line between marks."""
    has_frame = None
    for line in lines:
        row = line.strip()
        if not row or (mark == BAR and (BAR not in row or RULE.fullmatch(row))):
            continue
        if has_frame is None:
            has_frame = mark == BAR and row.startswith(BAR)
        if has_frame:
            row = row.removeprefix(BAR).removesuffix(BAR)
        yield [cell.strip() for cell in row.split(mark)]


def headers(lines: Iterable[str], *, name: str) -> Iterator[str]:
    """Yield lines of FASTA with a field of each header as its label, in place of the others.

    Args:
        lines: The lines. A header begins with >, and an id follows.
        name: Name of a field as in OS=Homo sapiens, which ends before the next name; or the
            number, from 1, of a field between bars. Headers without this field remain.
    """
    named = re.compile(rf">(\S+).*?\b{re.escape(name)}=(.*?)(?:\s+\w+=.*)?\s*")
    for line in lines:
        fields = line.rstrip().split(BAR)
        found = named.fullmatch(line)
        if not line.startswith(">"):
            yield line
        elif name.isdecimal() and 0 < int(name) <= len(fields):
            yield f"{fields[0]}{BAR}{fields[int(name) - 1]}"
        elif found is not None:
            yield f">{found[1]} {found[2].replace(' ', '_')}"
        else:
            yield line


def labelled(lines: Iterable[str], *, at: str = "last", mark: str | None = None) -> Iterator[str]:
    """Yield lines whose label is before the text.

    Args:
        lines: The lines. Blank ones are left out.
        at: Place of the label in the old lines: first or last. It is a word, without a colon or a
            bracket at its end, and a tab is written behind it. Labels such as `__label__x` at the
            end of a line remain as they are. Of a tree, `(3 (2 so) (3 good))`, it is that of all
            words.
        mark: What ends a label before the end of the word, such as the colon of DESC:manner.

    Raises:
        ConfigError: If there is no such place.
    """
    if at not in PLACES:
        raise ConfigError(f"--at: found {quote(at)}; expected {one_of(list(PLACES))}")
    for line in lines:
        found = LABELS_LAST.fullmatch(line)
        if found is not None:
            yield f"{found[2].strip()} {found[1]}"
            continue
        words = PLACES[at].fullmatch(line)
        if words is None:  # a text without words, or blank
            continue
        label = re.sub(r"[:)]$", "", words["label"])
        if mark is not None:
            label = label.partition(mark)[0]
        text = words["text"]
        if at == "tree":
            text = BRANCH.sub("", text)
        yield f"{label}\t{text}"


def logs(lines: Iterable[str]) -> Iterator[str]:
    """Yield csv for a log of Zeek: the comment `#fields` names the columns."""

    def rows() -> Iterator[list[str]]:
        for line in lines:
            fields = LOG_MARK.split(line)
            if fields[0] == "#fields":
                yield fields[1:]
            elif not line.startswith("#"):
                yield fields

    return as_csv(rows())


def with_marks(lines: Iterable[str], *, mark: str = "-") -> Iterator[str]:
    """Yield lines with a mark in place of blank lines."""
    for line in lines:
        yield line if line.strip() else mark


def measured(lines: Iterable[str], *, points: bool = False) -> Iterator[str]:
    """Yield csv for lines of numbers with blanks, semicolons or bars between.

    Args:
        lines: The lines. Blank ones and comments are left out.
        points: True if commas separate numbers, too. Otherwise they are decimal marks.
    """
    for line in lines:
        if not line.strip() or line.startswith(COMMENTS):
            continue
        if not points:
            line = line.replace(",", ".")
        yield ",".join(BETWEEN_NUMBERS.split(line.strip()))


def messages(lines: Iterable[str]) -> Iterator[str]:
    """Yield csv with the time, the sender and the text of each message of a chat.

    A text may have several lines. Lines about the chat itself are left out.
    """

    def rows() -> Iterator[Sequence[str]]:
        yield "time", "sender", "text"
        parts = list[str]()
        for line in chain(lines, [None]):
            if parts and (line is None or MESSAGE_START.match(line)):
                found = MESSAGE.match("\n".join(parts).strip())
                if found is not None:
                    yield found.groups()
                parts.clear()
            if line is not None:
                parts.append(line)

    return as_csv(rows())


def moved(lines: Iterable[str], *, mark: str = ",") -> Iterator[str]:
    """Yield rows whose last field is moved to the front.

    Args:
        lines: Rows of csv, perhaps of different lengths.
        mark: Character between the fields, or its name, such as tab.
    """
    mark = DELIMITERS.get(mark, mark)
    divided = re.compile(rf'(.*){re.escape(mark)}("(?:[^"]|"")*"|[^{re.escape(mark)}"]*)')
    for line in lines:
        found = divided.fullmatch(line)
        if found is None:  # one field
            yield line
        else:
            yield f"{found[2]}{mark}{found[1]}"


def quoted(
    lines: Iterable[str], *, mark: str = ",", before: int | None = None, after: int = 0
) -> Iterator[str]:
    """Yield rows of csv whose text is in one field, though it holds delimiters or line breaks.

    Args:
        lines: Rows of csv.
        mark: Character between the fields, or its name, such as tab.
        before: Number of fields before the text: all fields between these and those after it are
            the text. None if only line breaks divide it: rows with fewer fields than the first one
            go on in the next line, and a blank is put between.
        after: Number of fields after the text.
    """
    mark = DELIMITERS.get(mark, mark)
    csv.field_size_limit(LINE_BYTES)
    rows: Iterable[list[str]] = csv.reader((f"{line}\n" for line in lines), delimiter=mark)
    if mark == "\t":  # there, quotes are plain characters
        rows = (line.split(mark) for line in lines)
    filled = (row for row in rows if any(row))
    if before is None:
        return as_csv(_whole_rows(filled))
    return as_csv(_with_text(row, mark, before, after) for row in filled)


def _whole_rows(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield rows with at least as many fields as the first one."""
    width, whole = 0, list[str]()
    for row in rows:
        width = width or len(row)
        if whole:
            row[0] = f"{whole.pop()} {row[0]}"
        whole += row
        if len(whole) >= width:
            yield whole
            whole = []
    if whole:
        yield whole


def _with_text(row: Sequence[str], mark: str, before: int, after: int) -> list[str]:
    """Return a row with one field between the first and the last ones."""
    end = max(before, len(row) - after)
    return [*row[:before], mark.join(row[before:end]), *row[end:]]


def records(lines: Iterable[str], *, at: str | None = None) -> Iterator[str]:
    """Yield csv with the id and the sequence of each record of FASTA.

    Args:
        lines: The lines. A header begins with >, and comments with `;`.
        at: Number, from 1, of the part between bars that is the id: "2" for >sp|P1|NAME. None for
            the first word of the header.
    """

    def rows() -> Iterator[Sequence[str]]:
        yield "id", "text"
        id, parts = "", list[str]()
        for line in chain(lines, [">"]):
            if not line.startswith((">", ";")):
                parts.append(line.strip())
            elif line.startswith(">"):
                if parts:
                    yield id, "".join(parts)
                id, parts = record_id(line, at), []

    return as_csv(rows())


def record_id(header: str, at: str | None) -> str:
    """Return the first word of a header of FASTA, or a part of it; see `records`."""
    word = "".join(header.removeprefix(">").split()[:1])
    parts = word.split(BAR)
    if at is not None and at.isdecimal() and 0 < int(at) <= len(parts):
        return parts[int(at) - 1]
    return word


def shortened(lines: Iterable[str], *, line: int) -> Iterator[str]:
    """Yield all lines but one, counted from 1."""
    for number, text in enumerate(lines, start=1):
        if number != line:
            yield text


def table(
    lines: Iterable[str], *, line: int | None = None, header_line: str | None = None
) -> Iterator[str]:
    """Yield the lines of a table, without those above it.

    Args:
        lines: The lines.
        line: First line of the table, counted from 1.
        header_line: The first line of the table, with the names of columns. Blanks and tabs in it
            count alike. All lines remain if it isn't there, as in some files of a folder.

    Raises:
        ConfigError: If neither is given.
    """
    if header_line is None:
        if line is None:
            raise ConfigError("--line: is missing; give it, or --header-line")
        yield from islice(lines, line - 1, None)
        return
    lines = iter(lines)
    above = list[str]()
    names = header_line.split()
    for each in islice(lines, MOST_ABOVE):
        if each.split() == names:
            above = [each]
            break
        above.append(each)
    yield from chain(above, lines)


def as_csv(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield rows of csv, without line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        yield text.getvalue()[:-1]
        text.seek(0)
        text.truncate()
