"""Fields of the headers of FASTA records, one of which may be the label."""

import os
import re
from collections.abc import Iterator

from seqtrain.errors import DataError
from seqtrain.proposal.first_lines import first_lines
from seqtrain.proposal.shell import rewritten_at_once
from seqtrain.proposal.table import Table
from seqtrain.tables.lines import FASTA_LABEL
from seqtrain.text import counted

FIELD_OF_HEADER = re.compile(r"\b(\w+)=(.*?)(?=\s+\w+=|\s*$)")
"""A field of a header with its name, such as OS=Homo sapiens."""
NAMED_FIELD = (
    r"if (/^>(\S+).*?\b%s=(.*?)(?=\s+\w+=|\s*$)/) "
    r'{($i, $x) = ($1, $2); $x =~ tr/ /_/; $_ = ">$i $x\n"}'
)
"""Program of perl that writes headers with an id and the value of such a field."""
PLACED_FIELD = r'/^>/ {sub(/\r$/, ""); print $1 "|" $%d; next} 1'
"""Program of awk that writes headers with the first field and another one, between bars."""


def refuse_fields(table: Table) -> None:
    """Raise a DataError if several named fields of FASTA headers may be the label.

    UniProt writes >sp|P1|NAME OS=Homo sapiens OX=9606 PE=1. A field such as class= is the label.

    Raises:
        DataError: The error has a command for each field.
    """
    lines = [*_commands_for_names(_headers(table), table)]
    if len(lines) > 1:
        raise DataError(
            f"{table.name}: several fields of the lines that begin with > may be the label; choose "
            "one:",
            *lines,
        )


def commands_for_header_fields(table: Table) -> list[str]:
    """Return lines with a command for each field of FASTA headers that may be the label.

    Fields have bars between them, `>id|species|gene`, or names. The label is the last one.
    """
    headers = _headers(table)
    lines = [*_commands_for_places(headers, table), *_commands_for_names(headers, table)]
    if lines:
        lines.insert(0, "to make another field of the lines that begin with > the label:")
    return lines


def _headers(table: Table) -> list[str]:
    """Return the first headers of a file of FASTA, or []."""
    if table.format != "fasta" or not os.path.isfile(table.file):
        return []
    lines = first_lines(table.file, table.dialect)
    return [line.rstrip() for line in lines if line.startswith(">")]


def _commands_for_places(headers: list[str], table: Table) -> Iterator[str]:
    """Yield a line with a command for each field between bars that repeats as labels do."""
    fields = [header.split("|") for header in headers]
    if len({*map(len, fields)}) != 1:
        return
    for place, values in enumerate(zip(*fields, strict=True), 1):
        command = ["awk", "-F|", PLACED_FIELD % place]
        yield from _line(command, table, f"field-{place}", len({*values}), len(headers))


def _commands_for_names(headers: list[str], table: Table) -> Iterator[str]:
    """Yield a line with a command for each field NAME=VALUE that repeats as labels do."""
    fields = [dict(FIELD_OF_HEADER.findall(header)) for header in headers]
    if not fields or any(map(FASTA_LABEL.search, headers)):
        return
    for name in fields[0]:
        values = [own.get(name) for own in fields]
        if None not in values:
            command = ["perl", "-pe", NAMED_FIELD % name]
            yield from _line(command, table, name, len({*values}), len(headers))


def _line(command: list[str], table: Table, suffix: str, labels: int, rows: int) -> Iterator[str]:
    """Yield the line of a command that makes a field the label, if it repeats as labels do."""
    if 2 <= labels <= rows / 2:
        line = rewritten_at_once(command, table.file, suffix)
        yield f"  {line}  # {counted(labels, 'label')}"
