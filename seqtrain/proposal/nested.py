"""Nested values of JSON: strokes of drawings, annotations, and rows that hold several sequences."""

import json
import os
import shlex
from collections.abc import Sequence

from seqtrain.config.document import flow
from seqtrain.errors import DataError
from seqtrain.files.reading import NotJSONError, parse_json
from seqtrain.proposal.first_lines import filled_lines
from seqtrain.proposal.number_forms import numbers_in_columns
from seqtrain.proposal.profile import LIST_KINDS, REPEATS, ColumnProfile, Columns
from seqtrain.proposal.roles import FEWEST_WIDE, Roles, set_command
from seqtrain.proposal.shell import rewritten
from seqtrain.proposal.table import Table
from seqtrain.tables.cells import items_of
from seqtrain.text import listed, quote

OBJECT_PER_LINE = "import json, sys; r = map(json.loads, sys.stdin); "
ONE_VALUE = (
    "import json, sys; t = json.load(sys.stdin); "
    "r = t if isinstance(t, list) else next(x for x in t.values() if isinstance(x, list)); "
)
"""Beginnings of programs of Python that read an object per line, or a list of all objects."""
ANNOTATIONS = ("annotations", "completions")
"""Names of the lists of annotations of a task, as Label Studio writes them."""
CHOICES_IN_TASKS = (
    '[print(json.dumps({**x["data"], **{a["from_name"]: "|".join(a["value"]["choices"]) '
    'for a in y["result"] if "choices" in a["value"]}})) for x in r for y in x[sys.argv[1]][:1]]'
)
"""Program that writes the data of each task, and the choices of its first annotation."""
ANSWERS = ({"assistant", "model", "gpt", "bot"}, ("role", "from"), ("content", "value", "text"))
"""Names of roles that answer in chats, and of the fields of a turn's role and of its text."""
LAST_AS_LABEL = (
    "k, t = sys.argv[1], %s; "
    '[print(json.dumps({**x, k: x[k][:-1], "label": x[k][-1][t].strip()})) for x in r if x[k]]'
)
"""Program that writes the text of the last turn as the label, and the chat without it."""
LABEL_OPTION = "--label label"
"""Option that names the column of labels that a program wrote."""
CATEGORIES = "cats"
"""Name of the object with a mark for each class, as spaCy writes them."""
CATEGORIES_AS_LABEL = (
    "k = sys.argv[1]; [print(json.dumps({**{n: y for n, y in x.items() if n != k}, "
    '"label": "|".join(n for n, y in x[k].items() if y >= 0.5)})) for x in r]'
)
"""Program that writes the names of the classes with at least a half as the label."""
ITEMS = "[print(json.dumps({**x, sys.argv[1]: y})) for x in r for y in x[sys.argv[1]]]"
"""Program that writes a row for each item of a list."""
WRITING_NUMBERS = (
    "k = sys.argv[1]; [print(json.dumps({n: y for n, y in x.items() if n != k} "
    '| {f"{k}_{i}": y for i, y in enumerate(x[k] or ())})) for x in r]'
)
"""Program that writes the numbers of a list as fields."""
FLAT_OBJECTS = (
    'f = lambda x, n: {p: q for a, y in x.items() for p, q in f(y, f"{n}_{a}").items()} '
    "if isinstance(x, dict) else f({str(i): y for i, y in enumerate(x)}, n) "
    "if isinstance(x, list) else {n[1:]: x}; k = sys.argv[1]; "
    '[print(json.dumps({**x, k: [f(y, "") for y in x.get(k) or ()]})) for x in r]'
)
"""Program that writes the values of objects inside the objects of a list as fields of these."""
FIELDS_AS_TURNS = (
    'k = sys.argv[1]; n = NAMES; t = lambda v: " ".join(v) if isinstance(v, list) else v; '
    "o = lambda y: {b: v for b, v in y.items() if b not in n}; "
    '[print(json.dumps({**x, k: [{**o(y), ROLE"text": t(y[a])} '
    "for y in x.get(k) or () for a in n if y.get(a)]})) for x in r]"
)
"""Program that writes the fields NAMES of the objects of a list as turns of a chat.

ROLE is their role, if it is the name of the field.
"""


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
        steps = "[[*step, int(at == 0)] for part in row[k] for at, step in enumerate(zip(*part))]"
        code = f"k = sys.argv[1]; [print(json.dumps({{**row, k: {steps}}})) for row in r]"
        lines += [
            f"{table.name}: if each of its parts has a list per channel, as strokes do, this joins "
            "them, and marks where one begins:",
            *rewritten_objects(table, code, column.name_text, "steps"),
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
            *rewritten_objects(table, CHOICES_IN_TASKS, column.name_text, "rows"),
        )


def refuse_answers(table: Table, columns: Columns) -> None:
    """Raise a DataError if the last turns of chats seem to be the labels, as in fine-tuning.

    They are of the role that answers, and come again. No column may hold labels.
    """
    if any(column.can_be_label for column in columns):
        return
    roles, role_fields, text_fields = ANSWERS
    for column in columns:
        chats = [items_of(value) or () for value in column.sampled_values]
        last = [chat[-1] for chat in chats if chat and isinstance(chat[-1], dict)]
        field = next((x for x in text_fields if last and x in last[0]), None)
        if column.kind not in LIST_KINDS or len(last) < len(chats) or field is None:
            continue
        are_answers = all(any(x.get(name) in roles for name in role_fields) for x in last)
        answers = [str(x.get(field)) for x in last]
        if not are_answers or REPEATS * len({*answers}) > len(answers):
            continue
        code = LAST_AS_LABEL % json.dumps(field)
        raise DataError(
            f"{table.name}: the last turns of {column.shown} come again, such as "
            f"{quote(answers[0], 30)}; if they are the labels, write them as a column:",
            *rewritten_objects(table, code, column.name_text, "labelled", LABEL_OPTION),
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
        *rewritten_objects(table, CATEGORIES_AS_LABEL, CATEGORIES, "labelled", LABEL_OPTION),
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
        return [f"{found}, {hint}", *lines]
    if table.format != "jsonl":  # beside an id, those of csv are measurements
        return []
    return [
        f"{found}, write each number as a column:",
        *rewritten_objects(table, WRITING_NUMBERS, column.name_text, "points"),
    ]


def commands_for_fields(table: Table, column: ColumnProfile) -> list[str]:
    """Return lines with a command that writes what the objects of a list hold as their fields."""
    if not _holds_objects(table, column):
        return []
    lines = rewritten_objects(table, FLAT_OBJECTS, column.name_text, "fields")
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
    code = FIELDS_AS_TURNS.replace("NAMES", json.dumps(list(names)))
    code = code.replace("ROLE", '"role": a, ' if len(names) > 1 else "")
    lines = rewritten_objects(table, code, column.name_text, "turns")
    return [f"to write each {' and each '.join(names)} as a turn:", *lines]


def _holds_objects(table: Table, column: ColumnProfile) -> bool:
    """Return True if a program of Python can read the lists of objects in a column of a file."""
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
        *rewritten_objects(table, ITEMS, column.name_text, "rows", options),
    ]


def rewritten_objects(
    table: Table, code: str, argument: str, suffix: str, *options: str
) -> list[str]:
    """Return two lines of a message: a command that writes an object per line, and one for these.

    Args:
        table: Table of a file of JSON.
        code: Program of Python that prints objects for the rows `r`.
        argument: Argument of the program, such as the name of a column.
        suffix: Word of the new name.
        options: Options of `seqtrain init` for the new file, as a shell reads them.
        arguments: Further arguments of the program.
    """
    command = ["python3", "-c", beginning_of_objects(table) + code, argument]
    return rewritten(command, table.file, suffix, *options, ending=".jsonl")


def beginning_of_objects(table: Table) -> str:
    """Return the beginning of a program of Python that reads the objects `r` of a file of JSON."""
    lines = filled_lines(table.file, table.dialect)
    try:
        if len(lines) > 1 and isinstance(parse_json(lines[0]), dict):
            return OBJECT_PER_LINE
    except NotJSONError:  # a list or an object over several lines
        pass
    return ONE_VALUE


def _items(column: ColumnProfile) -> int:
    """Return the number of items of all different lists of a column."""
    return sum(len(items_of(value) or ()) for value in column.values)
