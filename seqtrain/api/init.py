"""`seqtrain.init`: a config for a data file or a table in memory."""

import sys
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.config import Config, parse_config
from seqtrain.errors import DataError, parameter, warn
from seqtrain.files.writing import write_file
from seqtrain.proposal import InitOptions, propose
from seqtrain.runs.destination import check_destination
from seqtrain.sequences.inputs import Input
from seqtrain.sequences.schema import Schema
from seqtrain.sequences.sources import remember_table
from seqtrain.tables.memory import TableSource
from seqtrain.text import printable

ColumnOption: TypeAlias = str | int
"""Name of a column, or its index from 0."""
EXPECTED_INPUT = "a file, or a table: a DataFrame, a Dataset, a dict of lists, or a list of dicts"
"""Description of allowed data for an error message."""


def init(
    data: Any,
    *,
    label: ColumnOption | Sequence[ColumnOption] | None = None,
    sequence: ColumnOption | Sequence[ColumnOption] | None = None,
    id: ColumnOption | Sequence[ColumnOption] | None = None,
    order: ColumnOption | Sequence[ColumnOption] | None = None,
    steps: Sequence[ColumnOption] | None = None,
    header: bool | None = None,
    test: Any = None,
    settings: Sequence[str] = (),
    format: str = "auto",
    delimiter: str = "auto",
    encoding: str | None = None,
    output: str | PathLike[str] | None = None,
    force: bool = False,
) -> Config:
    """Return a config that suits the data, as the command ``seqtrain init`` writes it.

    The columns that were chosen are printed on stderr. If a choice is uncertain, a
    `SeqtrainWarning` is issued.

    Args:
        data: File or folder, a list of these, or a table as `fit` takes it. Pass a table to `fit`
            again: ``fit(init(table), train=table)``.
        label: Column of the label. Several columns have 1 or 0 in each row, and each column is a
            label. None to detect the column.
        sequence: Column of the sequence. A list names columns whose texts are joined. None to
            detect the column.
        id: Column with the id of a sequence, if each row is a time step, or a list of columns that
            are one id together. None to detect if rows are time steps, and the column.
        order: Column that sorts the rows of one id. Of several columns, the next one sorts rows
            that are equal in those before. None to detect it.
        steps: Columns of a time step, or None for all columns that vary within an id.
        header: True if the first row names the columns, False if it doesn't, or None to detect it.
        test: File or table to score once at the end of training, or None.
        settings: Further keys of the config, such as ``["training.lr=0.01"]``.
        format: Format of the files, such as csv, or auto.
        delimiter: Delimiter of a csv file: comma, semicolon, tab or pipe, or auto.
        encoding: Encoding of the files, or None to detect it.
        output: File to write the config to, with a reason for each choice, or None to write none.
        force: Replace the file `output` if it exists.

    Raises:
        ConfigError: If a setting is wrong, or `output` exists.
        DataError: If the data can't be read, or a column can't be detected.
        RunError: If `output` can't be written.
    """
    _check_not_empty(data)
    if output is not None:
        check_destination(Path(output), "file", parameter("output"), force=force)
    tables = list[Input]()  # held until the config is written
    train = _files_of("train", data, tables)
    if test is None:
        test_file = None
    else:
        test_file = next(iter(_files_of("test", test, tables)))
    options = InitOptions(
        settings, label=_listed(label), sequence=_listed(sequence), id=_listed(id),
        order=_listed(order),
        steps=_listed(steps), header=header, format=format, delimiter=delimiter, encoding=encoding,
    )  # fmt: skip
    proposal = propose(train, options, test=test_file)
    print(*map(printable, proposal.uses), sep="\n", file=sys.stderr)
    warn(*proposal.warnings)
    if output is not None:
        write_file(Path(output), proposal.text.encode())
    return parse_config(proposal.text)


def _check_not_empty(data: Any) -> None:
    """Raise DataError if `data` is a list, a dict or a table of length 0.

    A dict of empty columns passes.
    """
    if not isinstance(data, str | PathLike) and hasattr(data, "__len__") and not len(data):
        raise DataError(f"data: found an empty {type(data).__name__}; expected {EXPECTED_INPUT}")


def _listed(columns: ColumnOption | Sequence[ColumnOption] | None) -> list[ColumnOption] | None:
    """Return one column or several columns as a list, or None for None."""
    if isinstance(columns, str | int):
        return [columns]
    if columns is None:
        return None
    return list(columns)


def _files_of(name: str, data: Any, tables: list[Input]) -> list[str]:
    """Return the paths of the files of a split.

    For a table in memory, return one path that refers to it, and append the table to `tables`.

    Args:
        name: Name of the split.
        data: File or folder, a list of these, or a table.
        tables: List that receives a table in memory. The path of the table is valid while this list
            exists.
    """
    files = list(data) if isinstance(data, list | tuple) else [data]
    if all(isinstance(file, str | PathLike) for file in files):
        return list(map(fspath, files))
    source = TableSource(data, name)
    # What its columns mean isn't known yet, so all of them count.
    tables.append(remember_table(Input(name, Schema(), source), source.digest()))
    return [tables[-1].path]
