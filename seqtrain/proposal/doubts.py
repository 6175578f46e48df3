"""Doubts about the columns of a config's training data, for `seqtrain data`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from seqtrain.config import Config
from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.options import FileLayout, InitOptions
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.proposal import odd_cells, shared_owner
from seqtrain.proposal.reading import ReadingProgress, read_table
from seqtrain.proposal.roles import owner_of, tells_label
from seqtrain.sequences.schema import EVERY
from seqtrain.sequences.sources import files_of
from seqtrain.tables.blocks import LABEL
from seqtrain.tables.cells import WHOLE
from seqtrain.text import counted, listed

MOST_COLUMNS = 3
"""Largest number of columns with numbers such as -999 that are named one by one."""


def column_doubts(config: Config) -> Iterator[str]:
    """Yield doubts about the columns of train.

    They are about nearly numeric columns, whose other cells are named with their lines, about
    numbers such as -999 that may stand for missing ones, about owners of rows that a split can
    divide, and about columns that give the label away.

    Args:
        config: The config.

    """
    data = config.data
    keys = ("header", "format", "delimiter", "encoding", "quoting", "sheet")
    options = InitOptions(**{key: getattr(data, key) for key in keys})
    joins = [dict(join) for join in data.join or ()]
    layout = FileLayout({"train": data.train}, options, data.path, joins)
    try:
        files = files_of("train", data.train)
        table = read_table(files, layout, ReadingProgress(), is_train=False)
    except DataError:  # the config reads them in another way
        return
    sequence = data.sequence if isinstance(data.sequence, list) else [data.sequence]
    used = {*map(str, sequence), *(data.steps or ()), *(data.static or ())}
    for column in table.columns:
        if column.is_odd.any():
            yield f"{odd_cells(column, table)}; the others are {column.kind}s"
    if isinstance(data.label, list):
        label = None
    else:
        label = table.column(LABEL if data.label is None else data.label)
    order = data.order if isinstance(data.order, list) else [data.order]
    others = (data.label, data.id, data.group, *order, "file", "folder")
    unused = [x for x in table.columns if x.name not in others and str(x.name) not in used]
    if data.id is None:
        yield from shared_owner(owner_of(unused), config)
    is_wide = data.kind == "features" and data.sequence is None
    read = [x for x in table.columns if str(x.name) in used or (is_wide and x in unused)]
    yield from _sentinels(read, data.na_values or {})
    for column in table.columns:
        if label is None or column is label or column.name in others:
            continue
        if not column.repeats_as_labels:
            continue
        reason = tells_label(column, label)
        if reason:
            if str(column.name) in used:
                use = "it is used"
            else:
                use = "it isn't used"
            yield f"{column.shown} gives the label away ({reason}); {use}"


def _sentinels(
    columns: Sequence[ColumnProfile], known: Mapping[str, Sequence[Any]]
) -> Iterator[str]:
    """Yield doubts about numbers of columns that may stand for missing ones, such as -999.

    Args:
        columns: Columns that are read as numbers, or as other cells.
        known: Value of data.na_values.
    """
    named = {str(cell) for cells in known.values() for cell in cells}
    found = {x.name: [each for each in x.sentinels if str(each) not in named] for x in columns}
    own = [column for column in columns if found[column.name]]
    if len(own) > MOST_COLUMNS:
        cells = list(dict.fromkeys(each for column in own for each in found[column.name]))
        shown = f"{own[0].shown} and {len(own) - 1} more columns"
        yield _sentinel(EVERY, cells, shown, own)
        return
    for column in own:
        yield _sentinel(str(column.name), found[column.name], column.shown, [column])


def _sentinel(name: str, cells: list[Any], shown: str, columns: list[ColumnProfile]) -> str:
    """Return the doubt about some cells of columns, with the keys that make them missing.

    Args:
        name: Name of the columns in data.na_values.
        cells: The cells.
        shown: Names of the columns for the message.
        columns: The columns.
    """
    values = np.concatenate([column.numbers for column in columns])
    is_cell = np.isin(values, np.array(cells, np.float64))
    others = values[~is_cell]
    numbers = [int(cell) if WHOLE.fullmatch(str(cell)) else float(cell) for cell in cells]
    keys = f"data.na_values: {flow({name: numbers})} and data.missing: mask"
    return (
        f"{listed(list(map(str, cells)))} in {counted(int(is_cell.sum()), 'cell')} of {shown}, "
        f"where the others are {np.nanmin(others):g} to {np.nanmax(others):g}; if it stands for a "
        f"missing number, set {keys}"
    )
