"""Registry of the forms that `seqtrain convert` writes, and its commands for messages.

To add a form, add an entry to `FORMS`, and the function that it names. Parameters of the function
are options of the command.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from seqtrain.files.reading import uncompressed


@dataclass(frozen=True, slots=True)
class Form:
    """A form that `seqtrain convert` writes.

    Attributes:
        function: Module of this folder and its function, such as "rows.filled". The module decides
            how the file is read: `lines` gets lines of text, `rows` the rows of a table, `objects`
            a value of JSON, and `folders` the path of the file and that of the new one.
        help: What the command writes.
        ending: Ending of the new name, or None for that of the old one. "" is a folder.
    """

    function: str
    help: str
    ending: str | None = None


FORMS = {
    "filled": Form("rows.filled", "Blank cells of columns get the cell above."),
    "table": Form("lines.table", "The lines above a table are left out."),
    "turned": Form("rows.turned", "Each column becomes a row with a series.", ".csv"),
}
"""Maps the name of each form, which also ends the name of the new file, to the form."""


def converted_name(path: str, form: str) -> str:
    """Return the name of the file that is written by default, in the current directory."""
    stem, own = os.path.splitext(os.path.basename(uncompressed(path)))
    ending = FORMS[form].ending
    return f"{stem}-{form}{own if ending is None else ending}"


def conversion(form: str, path: str, **options: object) -> tuple[str, str]:
    """Return a command that converts a file, and the name of the file that it writes.

    Both are written as a shell reads them.

    Args:
        form: Name of the form.
        path: The file.
        options: Options of the command. True is an option without a value. A list repeats an
            option. None leaves it out.
    """
    words = ["seqtrain", "convert", _as_path(path), "--to", form]
    for name, value in options.items():
        words += _option_words(name, value)
    return shlex.join(words), shlex.quote(_as_path(converted_name(path, form)))


def conversion_lines(form: str, path: str, *init_options: str, **options: object) -> list[str]:
    """Return two lines of a message: the command that converts a file, and one that reads it.

    Args:
        form: Name of the form.
        path: The file.
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
    elif value is not None:
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
