"""Lists of objects in cells: events whose fields are the columns of time steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqtrain.errors import DataError
from seqtrain.proposal.options import InitOptions
from seqtrain.proposal.profile import SAMPLE, Column
from seqtrain.proposal.roles import Roles
from seqtrain.proposal.step_roles import StepColumns
from seqtrain.tables.cells import items_of
from seqtrain.text import listed, quote


def assign_events(roles: Roles, options: InitOptions) -> None:
    """Set the steps of a table whose sequences are lists of objects, from their fields.

    Raises:
        DataError: If the objects have no field that a time step can hold.
    """
    assert roles.label is not None
    column = roles.sequence[0]
    rows = np.flatnonzero([bool(value) for value in column.values])
    used = rows[:: max(1, len(rows) // SAMPLE)].tolist()
    first_row = np.full(len(column.values), 0)
    first_row[column.codes[::-1]] = np.arange(column.rows)[::-1]
    events, ids, labels = list[dict[str, Any]](), list[int](), list[str]()
    for code in used:
        label = roles.label.values[roles.label.codes[first_row[code]]]
        for event in objects_of(column.values[code]):
            events.append(event)
            ids.append(code)
            labels.append(str(label))
    table = _columns(events)
    id, label_column = Column.of("", ids), Column.of("", labels)
    found = Roles("steps", label_column, columns=table, id=id)
    StepColumns(table, found, InitOptions(steps=options.get("steps"))).assign()
    roles.steps = found.static | found.steps
    if not roles.steps:
        fields = listed([quote(str(each.name)) for each in table], 8)
        raise DataError(
            f"--sequence: {column.shown} holds lists of objects with the fields {fields}; none is "
            "a text of a turn, or repeats as the values of events do; name fields with --steps"
        )
    roles.kind = "steps"
    roles.ignored += found.ignored


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list, also of one written in a cell of text."""
    items = value if isinstance(value, list) else items_of(value) or []
    return [each for each in items if isinstance(each, dict)]


def _columns(events: Sequence[dict[str, Any]]) -> list[Column]:
    """Return a column for each field of objects."""
    names = dict.fromkeys(name for event in events for name in event)
    return [Column.of(name, [event.get(name) for event in events]) for name in names]
