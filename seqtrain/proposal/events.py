"""Lists of objects whose fields are the columns of a time step, such as the events of a visit."""

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.order import IdRows, Order, find_order
from seqtrain.proposal.profile import ColumnProfile
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.row_roles import fields_problem
from seqtrain.proposal.step_columns import StepColumns
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


def assign_fields(roles: Roles, options: InitOptions) -> None:
    """Make the fields of lists of objects the columns of a time step.

    The objects are used in the order of their list, so a field of dates, or one that only counts
    them, isn't used.

    Args:
        roles: Roles of a table whose sequence is one column of kind events.
        options: Options of the user.

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
    texts = [field for field in fields if field.is_free_text]
    if texts:
        raise DataError(fields_problem(column, texts[0]))
    if not fields:
        raise DataError(fields_problem(column))
    owners = fields[0].owners
    used, row_of = np.unique(owners, return_inverse=True)
    id = ColumnProfile("", list(map(str, used)), row_of.astype(np.int32))
    label = ColumnProfile(roles.label.name, roles.label.values, roles.label.codes[owners])
    inner = Roles("steps", label, columns=fields, id=id)
    order = find_order(fields, id)
    counts = bool(order) and (is_dated(order.columns[0]) or _counts_evenly(order, id))
    others = [x for x in fields if not (counts and x is order.columns[0])]
    StepColumns(others, inner, options, row_features=False).assign()
    roles.steps = inner.steps
    roles.ignored += [f"{column.shown}: {each}" for each in inner.ignored]
    roles.warnings += inner.warnings
    if counts:
        roles.ignored.append(f"{column.shown}: {order.shown} (the order of the objects)")
        if (IdRows(id.codes).steps(order) < 0).any():
            roles.warnings.append(
                f"the objects in {column.shown} aren't sorted by {order.shown}; they are used in "
                "the order of their list, so sort them if that isn't the order in time"
            )
    if nested:
        names = ", ".join(nested)
        roles.warnings.append(
            f"the objects in {column.shown} have fields that hold lists or objects, which aren't "
            f"used: {names}; write their content as fields of their own"
        )
    if not roles.steps:
        raise DataError(fields_problem(column))


def _counts_evenly(order: Order, id: ColumnProfile) -> bool:
    steps = IdRows(id.codes).steps(order)
    return len(steps) > 0 and bool(steps.min() == steps.max())
