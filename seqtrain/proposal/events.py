"""Lists of objects whose fields are the columns of a time step, such as the events of a visit."""

from collections.abc import Iterator, Sequence

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.nested import commands_for_fields, commands_for_turns
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import IdRows, Order, find_order
from seqtrain.proposal.profile import ColumnProfile, Columns
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.row_roles import fields_problem
from seqtrain.proposal.step_columns import StepColumns
from seqtrain.proposal.table import Table
from seqtrain.proposal.time_kinds import is_dated
from seqtrain.sequences.content import TEXT_FIELDS
from seqtrain.tables.blocks import BadCellError
from seqtrain.tables.cells import items_of, text_of
from seqtrain.text import quote

LOOKED_AT = 20_000
"""Largest number of lists whose objects are looked at, spread evenly over all of them."""


def fields_of(column: ColumnProfile) -> tuple[list[ColumnProfile], list[str]]:
    """Return the fields of the objects in lists, as columns with a row for each object.

    Args:
        column: Column of kind events.

    Returns:
        The columns, and the names of the fields that hold lists or objects, which are left out.
    """
    rows = np.arange(0, column.rows, -(-column.rows // LOOKED_AT))
    owners, objects = list[int](), list[dict[str, object]]()
    for row in rows.tolist():
        items = items_of(column.values[column.codes[row]]) or []
        own = [item for item in items if isinstance(item, dict)]
        owners += [row] * len(own)
        objects += own
    rows_of = np.array(owners, dtype=np.intp)
    names = dict.fromkeys(str(name) for each in objects for name in each)
    columns, nested = list[ColumnProfile](), list[str]()
    for name in names:
        try:
            cells = [text_of(each.get(name)).strip() for each in objects]
        except BadCellError:
            nested.append(name)
            continue
        values, codes = np.unique(np.array(cells, dtype=object), return_inverse=True)
        columns.append(ColumnProfile(name, values.tolist(), codes.astype(np.int32), rows_of))
    return columns, nested


def assign_fields(roles: Roles, options: InitOptions, table: Table) -> None:
    """Make the fields of lists of objects the columns of a time step.

    The objects are used in the order of their list, so a field of dates, or one that only counts
    them, isn't used.

    Args:
        roles: Roles of a table whose sequence is one column of kind events.
        options: Options of the user.
        table: The table, for commands.

    Raises:
        DataError: If no field can be used, or one holds free text, as a chat does.
    """
    (column,) = roles.sequence
    fields, nested = fields_of(column)
    roles.kind, roles.columns = "steps", fields
    for name in nested:
        if name in TEXT_FIELDS:
            raise DataError(
                f"--sequence: {column.shown} holds objects whose field {quote(name, 40)} holds "
                "lists or objects in place of a text; write the text itself there"
            )
    texts = [field for field in fields if field.is_free_text] or _lists_of_texts(column, nested)
    if texts:
        lines = commands_for_turns(table, column, [text.name_text for text in texts])
        raise DataError(fields_problem(column, texts[0]), *lines)
    if not fields:
        raise DataError(fields_problem(column))
    id, order = _ids_and_order(fields)
    label = ColumnProfile(roles.label.name, roles.label.values, roles.label.codes[fields[0].owners])
    inner = Roles("steps", label, columns=fields, id=id)
    others = [x for x in fields if not (order and x is order.columns[0])]
    StepColumns(others, inner, options, row_features=False).assign()
    roles.steps = inner.steps
    roles.ignored += [f"{column.shown}: {each}" for each in inner.ignored]
    roles.warnings += inner.warnings
    if order:
        roles.ignored.append(f"{column.shown}: {order.shown} (the order of the objects)")
    roles.warnings += object_doubts(column, fields, nested, table)
    if not roles.steps:
        raise DataError(fields_problem(column))


def object_doubts(
    column: ColumnProfile, fields: Columns, nested: Sequence[str], table: Table
) -> Iterator[str]:
    """Yield warnings about objects that time doesn't sort, and about fields that aren't used.

    Args:
        column: Column of lists of objects.
        fields: Their fields, as `fields_of` returns them.
        nested: Names of the fields that hold lists or objects.
        table: The table, for commands.
    """
    if fields:
        id, order = _ids_and_order(fields)
        if order and (IdRows(id.codes).steps(order) < 0).any():
            yield (
                f"the objects in {column.shown} aren't sorted by {order.shown}; they are used in "
                "the order of their list, so sort them if that isn't the order in time"
            )
    if nested:
        names = ", ".join(nested)
        yield (
            f"the objects in {column.shown} have fields that hold lists or objects, which aren't "
            f"used: {names}; write their content as fields of their own"
        )
        yield from commands_for_fields(table, column)


def _ids_and_order(fields: Columns) -> tuple[ColumnProfile, Order]:
    """Return the list of each object as an id, and the order by dates or counts, or none."""
    used, row_of = np.unique(fields[0].owners, return_inverse=True)
    id = ColumnProfile("", list(map(str, used)), row_of.astype(np.int32))
    order = find_order(fields, id)
    if order and (is_dated(order.columns[0]) or _counts_evenly(order, id)):
        return id, order
    return id, Order()


def _lists_of_texts(column: ColumnProfile, names: Sequence[str]) -> list[ColumnProfile]:
    """Return the fields whose lists hold free texts, such as the parts of a message."""
    items = [item for value in column.sampled_values for item in items_of(value) or ()]
    found = list[ColumnProfile]()
    for name in names:
        cells = [x[name] for x in items if isinstance(x, dict) and isinstance(x.get(name), list)]
        if not all(isinstance(text, str) for cell in cells for text in cell):
            continue
        texts = [" ".join(cell) for cell in cells]
        field = ColumnProfile(name, texts, np.arange(len(texts), dtype=np.int32))
        if texts and field.is_free_text:
            found.append(field)
    return found


def _counts_evenly(order: Order, id: ColumnProfile) -> bool:
    steps = IdRows(id.codes).steps(order)
    return len(steps) > 0 and bool(steps.min() == steps.max())
