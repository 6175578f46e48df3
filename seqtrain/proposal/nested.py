"""Nested values of JSON: strokes of drawings, annotations, and rows that hold several sequences."""

import json
import os
import shlex
from collections.abc import Sequence

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.proposal.conversions import advised
from seqtrain.proposal.number_forms import numbers_in_columns
from seqtrain.proposal.profile import LIST_KINDS, REPEATS, ColumnProfile, Columns
from seqtrain.proposal.roles import FEWEST_WIDE, Roles, set_command
from seqtrain.proposal.shell import converting
from seqtrain.proposal.table import Table
from seqtrain.tables.cells import items_of
from seqtrain.tables.conversions.objects import TEXTS_OF_PARTS
from seqtrain.text import listed, quote

OBJECT_PER_LINE = "import json, sys; r = map(json.loads, sys.stdin); "
ONE_VALUE = (
    "import json, sys; t = json.load(sys.stdin); "
    "r = t if isinstance(t, list) else next(x for x in t.values() if isinstance(x, list)); "
)
"""Beginnings of programs of Python that read an object per line, or a list of all objects."""
ANNOTATIONS = ("annotations", "completions")
"""Names of the lists of annotations of a task, as Label Studio writes them."""
ANSWERS = {"assistant", "model", "gpt", "bot"}
"""Names of roles that answer in chats."""
ROLE_FIELDS = ("role", "from")
"""Names of the field with the role of a turn."""
LABEL_OPTION = "--label label"
"""Option that names the new column of labels."""
CATEGORIES = "cats"
"""Name of the object with a mark for each class, as spaCy writes them."""


def refuse_nested(table: Table, columns: Columns) -> None:
    """Raise a DataError if nested lists, such as the strokes of drawings, are the only sequences.

    If each part of a list is a list of numbers for each channel, as in [[x, …], [y, …]], the error
    has a command that joins the parts: a time step is [x, y, 1 if a part begins].
    """
    nested = [column for column in columns if column.kind == "nested"]
    others = [x for x in columns if x.kind in LIST_KINDS or x.is_free_text]
    if not nested or others:
        return
    column = nested[0]
    lines = [
        f"{table.name}: {column.shown} holds nested lists, such as {quote(str(column.values[0]))}; "
        "expected a list of numbers or of time steps: [[x, y], [x, y]]"
    ]
    parts = [part for value in column.sampled_values for part in value or ()]
    widths = {len(part) if isinstance(part, list) else 0 for part in parts}
    have_channels = len(widths) == 1 and all(isinstance(x, list) for part in parts for x in part)
    if have_channels and table.format == "jsonl":
        lines += [
            f"{table.name}: if each of its parts has a list per channel, as strokes do, this joins "
            "them, and marks where one begins:",
            *converted_objects("steps", table, column.name_text),
        ]
    raise DataError(*lines)


def refuse_annotations(table: Table, columns: Columns) -> None:
    """Raise a DataError if the labels are choices in annotations, as Label Studio writes them.

    The error has a command that writes a row with the data and the choices of each task.
    """
    for column in columns:
        if column.name not in ANNOTATIONS or column.kind not in LIST_KINDS:
            continue
        objects = [each for value in column.sampled_values for each in items_of(value) or ()]
        results = [x.get("result") for x in objects if isinstance(x, dict)]
        if '"choices"' not in json.dumps(results):
            continue
        raise DataError(
            f"{table.name}: {column.shown} holds choices of annotators; to write them as a column:",
            *converted_objects("label", table, column.name_text),
        )


def refuse_answers(table: Table, columns: Columns) -> None:
    """Raise a DataError if the last turns of chats seem to be the labels, as in fine-tuning.

    They are of the role that answers, and come again. No column may hold labels.
    """
    if any(column.can_be_label for column in columns):
        return
    for column in columns:
        chats = [items_of(value) or () for value in column.sampled_values]
        last = [chat[-1] for chat in chats if chat and isinstance(chat[-1], dict)]
        field = next((x for x in TEXTS_OF_PARTS if last and x in last[0]), None)
        if column.kind not in LIST_KINDS or len(last) < len(chats) or field is None:
            continue
        are_answers = all(any(x.get(name) in ANSWERS for name in ROLE_FIELDS) for x in last)
        answers = [str(x.get(field)) for x in last]
        if not are_answers or REPEATS * len({*answers}) > len(answers):
            continue
        raise DataError(
            f"{table.name}: the last turns of {column.shown} come again, such as "
            f"{quote(answers[0], 30)}; if they are the labels, write them as a column:",
            *converted_objects("label", table, column.name_text, LABEL_OPTION),
        )


def refuse_categories(table: Table, columns: Columns) -> None:
    """Raise a DataError with a command if an object has a number for each class, as in spaCy.

    Marks 0 and 1 are read as they are. Of probabilities, a command writes the names of the classes.
    """
    fields = [x for x in columns if str(x.name).startswith(f"{CATEGORIES}.")]
    if len(fields) < 2:
        return
    found = f"{table.name}: {quote(CATEGORIES)} has a number for each of {len(fields)} classes"
    values = {str(value).lower() for field in fields for value in field.values}
    if values <= {"0", "1", "true", "false"}:
        setting = f"data.label={flow([field.name for field in fields])}"
        raise DataError(f"{found}; to read all of them:", f"  {set_command(setting)}")
    raise DataError(
        f"{found}; to write the names of those with at least a half as the label:",
        *converted_objects("label", table, CATEGORIES, LABEL_OPTION),
    )


def points_of_steps(table: Table, roles: Roles) -> list[str]:
    """Return lines with a command that writes the numbers of points as columns, or [].

    Such as the place of an event. They are time steps, or are read as a sequence each.
    """
    points = [x for x in table.columns if x.holds_points and "." not in x.name_text]
    are_read = 0 < len(points) < FEWEST_WIDE and roles.sequence == points
    if not os.path.isfile(table.path) or not (are_read or (roles.id is not None and points)):
        return []
    shown, column = listed([each.shown for each in points]), points[0]
    found = f"each row has {column.steps:.0f} numbers in {shown}; if a row is a time step"
    if table.is_delimited and are_read:
        hint, *lines = numbers_in_columns(points, table)
        return advised(f"{found}, {hint}", lines)
    if table.format != "jsonl":  # beside an id, those of csv are measurements
        return []
    return [
        f"{found}, write each number as a column:",
        *converted_objects("fields", table, column.name_text),
    ]


def commands_for_fields(table: Table, column: ColumnProfile) -> list[str]:
    """Return lines with a command that writes what the objects of a list hold as their fields."""
    if not _holds_objects(table, column):
        return []
    lines = converted_objects("fields", table, column.name_text)
    return ["to write it as fields:", *lines]


def commands_for_turns(table: Table, column: ColumnProfile, names: Sequence[str]) -> list[str]:
    """Return lines with a command that writes fields of the objects of a list as turns of a chat.

    Args:
        table: Table of a file of JSON. For others, the list is empty.
        column: Column of the lists.
        names: The fields, which hold texts or lists of texts.
    """
    if not _holds_objects(table, column):
        return []
    lines = converted_objects("turns", table, column.name_text, field=names)
    return [f"to write each {' and each '.join(names)} as a turn:", *lines]


def _holds_objects(table: Table, column: ColumnProfile) -> bool:
    """Return True if the lists of objects in a column of a file can be converted."""
    is_file = table.format == "jsonl" and os.path.isfile(table.path)
    return is_file and "." not in column.name_text


def commands_for_items(table: Table) -> list[str]:
    """Return lines with a command that writes a row for each text of a list, or an empty list.

    The label of such a list is a text in the same row, which no other row has. There is no
    further free text.
    """
    labels = [x for x in table.columns if x.kind == "text" and x.distinct == x.rows]
    lists = [x for x in table.columns if x.kind == "turns"]
    if table.format != "jsonl" or not labels or not lists:
        return []
    if any(x.is_free_text for x in table.columns if x is not labels[0]):
        return []
    column = max(lists, key=_items)
    options = shlex.join(["--label", labels[0].name_text, "--sequence", column.name_text])
    return [
        f"if {labels[0].shown} is the label of each text of {column.shown}, write a row for each:",
        *converted_objects("objects", table, column.name_text, options),
    ]


def converted_objects(
    form: str, table: Table, column: str, *init_options: str, field: Sequence[str] = ()
) -> list[str]:
    """Return two lines of a message: a command that converts files of JSON, and one for these.

    Args:
        form: Name of the form.
        table: Table of a file of JSON.
        column: The field that is converted.
        init_options: Options of `seqtrain init` for the new file, as a shell reads them.
        field: Inner fields that are converted.
    """
    options = {"column": [column], "field": list(field)}
    return converting(form, table.layout, table.file, *init_options, **options)


def _items(column: ColumnProfile) -> int:
    """Return the number of items of all different lists of a column."""
    return sum(len(items_of(value) or ()) for value in column.values)
