"""Fields of the headers of FASTA records, one of which may be the label."""

import os
import re
from collections.abc import Sequence

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.first_lines import LINES, first_lines
from seqtrain.proposal.reading import ReadingProgress, read_alone
from seqtrain.proposal.shell import converting, set_option
from seqtrain.proposal.table import Table
from seqtrain.tables.blocks import Dialect
from seqtrain.tables.conversions.forms import conversion_lines
from seqtrain.tables.conversions.lines import BAR, record_id
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.lines import FASTA_LABEL
from seqtrain.text import counted, display_name

PLACES_OF_IDS = (None, "1", "2", "3")
"""Places of the id of a record: the first word of its header, or a part of it between bars."""
FIELD_OF_HEADER = re.compile(r"\b(\w+)=(.*?)(?=\s+\w+=|\s*$)")
"""A field of a header with its name, such as OS=Homo sapiens."""


def refuse_fields(table: Table) -> None:
    """Raise a DataError if several named fields of FASTA headers may be the label.

    UniProt writes >sp|P1|NAME OS=Homo sapiens OX=9606 PE=1. A field such as class= is the label.

    Raises:
        DataError: The error has a command for each field.
    """
    lines = _commands(_named_fields(_headers(table)), table)
    if len(lines) > 2:
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
    lines = _commands({**_placed_fields(headers), **_named_fields(headers)}, table)
    if lines:
        lines.insert(0, "to make another field of the lines that begin with > the label:")
    return lines


def refuse_labels_of_records(files: Sequence[str], progress: ReadingProgress) -> None:
    """Raise a DataError if one of two files is FASTA, and the other has a row for most records.

    Args:
        files: The files.
        progress: Reports the number of rows.

    Raises:
        DataError: The error has the commands that write the records as rows and join the file.
    """
    formats = [resolve_format(path, "auto") for path in files]
    if len(files) != 2 or formats.count("fasta") != 1 or not all(map(os.path.isfile, files)):
        return
    place = formats.index("fasta")
    records, other = files[place], files[1 - place]
    headers = _headers_in(records)
    for column in read_alone(other, progress).columns:
        known = {*map(str, column.values)}
        for at in PLACES_OF_IDS:
            ids = {record_id(header, at) for header in headers}
            if 2 * len(ids & known) > len(headers) and isinstance(column.name, str):
                join = flow([{"file": other, "on": {"left": "id", "right": column.name}}])
                raise DataError(
                    f"{display_name(other)}: {column.shown} has the ids of records of "
                    f"{display_name(records)}; to write these as rows, and join the file:",
                    *conversion_lines("records", records, set_option(f"data.join={join}"), at=at),
                )


def _headers(table: Table) -> list[str]:
    """Return the first headers of a file of FASTA, or []."""
    if table.format != "fasta" or not os.path.isfile(table.file):
        return []
    return _headers_in(table.file, table.dialect)


def _headers_in(path: str, dialect: Dialect = LINES) -> list[str]:
    return [line.rstrip() for line in first_lines(path, dialect) if line.startswith(">")]


def _placed_fields(headers: list[str]) -> dict[str, int]:
    """Return the number of values of each field between bars by its number, from 1."""
    fields = [header.split(BAR) for header in headers]
    if len({*map(len, fields)}) != 1:
        return {}
    columns = zip(*fields, strict=True)
    return {str(place): len({*values}) for place, values in enumerate(columns, 1)}


def _named_fields(headers: list[str]) -> dict[str, int]:
    """Return the number of values of each field NAME=VALUE that all headers have."""
    fields = [dict(FIELD_OF_HEADER.findall(header)) for header in headers]
    if not fields or any(map(FASTA_LABEL.search, headers)):
        return {}
    names = [name for name in fields[0] if all(name in own for own in fields)]
    return {name: len({own[name] for own in fields}) for name in names}


def _commands(fields: dict[str, int], table: Table) -> list[str]:
    """Return lines with a command for each field whose values repeat as labels do, and `init`.

    Args:
        fields: Maps fields to their numbers of values.
        table: The table of a file of FASTA.
    """
    lines, rows = list[str](), len(_headers(table))
    for name, labels in fields.items():
        if 2 <= labels <= rows / 2:
            line, init = converting("headers", table.layout, table.file, name=name)
            lines += [f"{line}  # {counted(labels, 'label')}"]
    return [*lines, init] if lines else []
