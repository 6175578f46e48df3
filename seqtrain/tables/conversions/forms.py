"""Registry of the forms that `seqtrain convert` writes, and its commands for messages.

To add a form, add an entry to `FORMS`, and the function that it names. Parameters of the function
are options of the command.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seqtrain.files.reading import uncompressed


@dataclass(frozen=True, slots=True)
class Form:
    """A form that `seqtrain convert` writes.

    Attributes:
        function: Module of this folder and its function, such as "rows.filled". The module decides
            how the file is read: `lines` gets lines of text, `rows` and `cells` the rows of a
            table, `objects` a value of JSON, and `folders` the path of the file and that of the new
            one.
        help: What the command writes.
        ending: Ending of the new name, or None for that of the old one. "" is a folder.
    """

    function: str
    help: str
    ending: str | None = None


FORMS = {
    "cells": Form("cells.rewritten", "Cells of columns are rewritten by a rule."),
    "channels": Form("rows.channels", "Columns of a channel are joined in time.", ".csv"),
    "columns": Form("rows.columns", "Only some columns are kept, without their names."),
    "contents": Form("rows.contents", "Names of text files become their texts."),
    "dates": Form("cells.dated", "Dates get the year first."),
    "filled": Form("rows.filled", "Blank cells of columns get the cell above, or a text."),
    "joined": Form("rows.joined", "The cells of columns are joined in a new first column."),
    "named": Form("rows.named", "Each column gets a name of its own."),
    "numbers": Form("rows.numbers", "Each number of a cell gets a column of its own."),
    "parts": Form("rows.parts", "A new last column numbers the parts of a recording."),
    "rows": Form("rows.kept", "Blank rows, and those with some cells, are left out."),
    "spelled": Form("cells.spelled", "Labels are spelled in one way each."),
    "table": Form("lines.table", "The lines above a table are left out."),
    "texts": Form("rows.texts", "Columns of texts become rows with a label.", ".csv"),
    "turned": Form("rows.turned", "Each column becomes a row with a series.", ".csv"),
}
"""Maps the name of each form, which also ends the name of the new file, to the form."""
ENDINGS = {".json": ".jsonl", ".xlsx": ".csv"}
"""Maps endings of files whose format isn't written to that of the new file."""


def converted_name(path: str, form: str) -> str:
    """Return the name of the file that is written by default, in the current directory."""
    path = os.path.normpath(path)
    if os.path.isdir(path):
        return f"{os.path.basename(path)}-{form}"
    stem, ending = os.path.splitext(os.path.basename(written_name(path, form)))
    return f"{stem}-{form}{ending}"


def written_name(path: str, form: str) -> str:
    """Return the path of a file with the ending of the format in which a form is written."""
    root, own = os.path.splitext(uncompressed(path))
    ending = FORMS[form].ending
    if ending is None:
        ending = ENDINGS.get(own.lower(), own)
    return f"{root}{ending}"


def conversion(form: str, path: str | Sequence[str], **options: object) -> tuple[str, str]:
    """Return a command that converts a file, and the name of the file that it writes.

    Both are written as a shell reads them.

    Args:
        form: Name of the form.
        path: The file, or several, of which the new names are returned with blanks between.
        options: Options of the command. True is an option without a value, and False leaves it
            out, as None does. A list repeats an option. `output` is the name of the new file.
    """
    paths = [path] if isinstance(path, str) else list(path)
    words = ["seqtrain", "convert", *map(_as_path, paths), "--to", form]
    for name, value in options.items():
        words += _option_words(name, value)
    targets = [str(options.get("output") or converted_name(each, form)) for each in paths]
    return shlex.join(words), shlex.join(map(_as_path, targets))


def conversion_lines(
    form: str, path: str | Sequence[str], *init_options: str, **options: object
) -> list[str]:
    """Return two lines of a message: the command that converts a file, and one that reads it.

    Args:
        form: Name of the form.
        path: The file, or several.
        init_options: Options of `seqtrain init` for the new file, as a shell reads them.
        options: Options of `seqtrain convert`, as those of `conversion`.
    """
    command, target = conversion(form, path, **options)
    return [f"  {command}", " ".join(["  seqtrain init", target, *init_options])]


def _option_words(name: str, value: object) -> Iterator[str]:
    """Yield the words of an option in a command."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        yield option
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _option_words(name, item)
    elif value is not None and value is not False:
        text = str(value)
        if text.startswith("-"):
            yield f"{option}={text}"
        else:
            yield from (option, text)


def _as_path(path: str) -> str:
    """Return a path that isn't taken for an option."""
    if path.startswith("-"):
        return f"./{path}"
    return path
