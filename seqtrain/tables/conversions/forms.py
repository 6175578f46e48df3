"""Registry of the forms that `seqtrain convert` writes, and its commands for messages.

To add a form, add an entry to `CONVERSIONS`, and the function that it names. Parameters of the
function are options of the command.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seqtrain.files.reading import uncompressed


@dataclass(frozen=True, slots=True)
class Target:
    """A form that `seqtrain convert` writes.

    Attributes:
        function: Module of this folder and its function, such as "rows.filled". The module decides
            how the file is read: `lines` gets lines of text, `rows` and `cells` the rows of a
            table, `objects` the values of JSON or the rows of a file of another program, `arrays`
            the arrays of numpy, and `folders` the path of the file and that of the new one. A form
            of `objects` may have a function of the same name in `arrays`.
        help: What the command writes.
        ending: Ending of the new name, or None for that of the old one. "" is a folder.
        replaces_columns: True if the new file lacks columns that options of the command name, or
            has columns in other places.
    """

    function: str
    help: str
    ending: str | None = None
    replaces_columns: bool = False


CONVERSIONS = {
    "array": Target("arrays.array", "One array of each file npz becomes a file npy.", ".npy"),
    "bands": Target("folders.bands", "Sound becomes bands of frequency.", ""),
    "blocks": Target(
        "lines.numbered_blocks", "Blocks between blank lines get a number each.", ".csv"
    ),
    "cells": Target("cells.rewritten", "Cells of columns are rewritten by a rule."),
    "channels": Target("rows.channels", "Columns of a channel are joined in time.", ".csv"),
    "chosen": Target(
        "rows.chosen", "Only some columns are kept, without their names.", replaces_columns=True
    ),
    "columns": Target("lines.columns", "Blanks or marks between columns become commas.", ".csv"),
    "contents": Target("rows.contents", "Names of text files become their texts."),
    "copied": Target("folders.copied", "A file or a folder is copied without some files."),
    "dates": Target("cells.dated", "Dates get the year first."),
    "fields": Target("objects.fields", "Inner values of a field become fields.", ".jsonl"),
    "filled": Target("rows.filled", "Blank cells of columns get the cell above, or a text."),
    "headers": Target("lines.headers", "A field of headers of FASTA becomes the label."),
    "joined": Target(
        "rows.with_joined",
        "The cells of columns are joined in a new first column.",
        replaces_columns=True,
    ),
    "label": Target("objects.label", "What a field tells about the class is the label.", ".jsonl"),
    "labelled": Target("lines.labelled", "A word of each line becomes its label.", ".txt"),
    "lists": Target("folders.lists", "Arrays of objects that you trust become rows.", ""),
    "logs": Target("lines.logs", "A log of Zeek becomes a table.", ".csv"),
    "marked": Target("lines.with_marks", "Blank lines get a mark."),
    "measured": Target("lines.measured", "Lines of numbers become csv.", ".csv"),
    "messages": Target("lines.messages", "Messages of a chat become rows.", ".csv"),
    "moved": Target(
        "lines.moved", "The last field of each row moves to the front.", replaces_columns=True
    ),
    "named": Target("rows.named", "Each column gets a name of its own."),
    "numbers": Target(
        "rows.split_numbers",
        "Each number of a cell gets a column of its own.",
        replaces_columns=True,
    ),
    "objects": Target("objects.rows", "Each row becomes an object of JSON.", ".jsonl"),
    "parts": Target("rows.parts", "A new last column numbers the parts of a recording."),
    "quoted": Target("lines.quoted", "Texts with delimiters or line breaks get quotes.", ".csv"),
    "reads": Target("folders.reads", "Files of FASTQ become lines of a file for each class.", ""),
    "records": Target("lines.records", "Records of FASTA become rows with an id.", ".csv"),
    "rows": Target("rows.kept", "Blank rows, and those with some cells, are left out."),
    "shortened": Target("lines.shortened", "One line is left out."),
    "spelled": Target("cells.spelled", "Labels are spelled in one way each."),
    "stacked": Target(
        "folders.stacked_channels", "Files of a channel each become one array.", ".npz"
    ),
    "steps": Target("objects.steps", "Lists or arrays of channels become time steps.", ".jsonl"),
    "table": Target("lines.table", "The lines above a table are left out."),
    "tables": Target("folders.tables", "Each table inside a file becomes a file.", ""),
    "texts": Target(
        "rows.texts", "Columns of texts become rows with a label.", ".csv", replaces_columns=True
    ),
    "turned": Target(
        "rows.turned", "Each column becomes a row with a series.", ".csv", replaces_columns=True
    ),
    "turns": Target("objects.turns", "Fields of the objects of a list become turns.", ".jsonl"),
    "unpickled": Target("folders.unpickled", "A pickle that you trust becomes rows.", ".jsonl"),
}
"""Maps the name of each form, which also ends the name of the new file, to the form."""
NEW_ENDINGS = {".json": ".jsonl", ".xlsx": ".csv"}
"""Maps endings of files whose format isn't written to that of the new file."""


def converted_name(path: str, form: str) -> str:
    """Return the name of the file that is written by default, in the current directory.

    The files of a folder keep their names, in a folder of a new name.
    """
    if os.path.isdir(path):
        ending = ""
        if CONVERSIONS[form].function.startswith("folders."):
            ending = CONVERSIONS[form].ending or ""
        return f"{os.path.basename(os.path.abspath(path))}-{form}{ending}"
    stem, own = os.path.splitext(os.path.basename(uncompressed(path)))
    return f"{stem}-{form}{new_ending(own, form)}"


def form_in_name(path: str) -> str | None:
    """Return the form whose name ends that of a file or folder, as `converted_name` gives it."""
    stem, _ = os.path.splitext(uncompressed(os.path.basename(path.rstrip("/"))))
    _, mark, form = stem.rpartition("-")
    return form if mark and form in CONVERSIONS else None


def new_ending(own: str, form: str) -> str:
    """Return the ending of the new file of a file with an ending. Arrays remain arrays."""
    ending = CONVERSIONS[form].ending
    if ending == ".jsonl" and own in (".npy", ".npz"):
        return own
    if ending is None:
        return NEW_ENDINGS.get(own, own)
    return ending


def converted_names(paths: Sequence[str], form: str) -> list[str]:
    """Return the name of each new file. Files of equal names get those of their folders, too."""
    names = [converted_name(path, form) for path in paths]
    if len(set(names)) == len(names):
        return names
    folders = [os.path.basename(os.path.dirname(os.path.abspath(path))) for path in paths]
    return [f"{folder}-{name}" for folder, name in zip(folders, names, strict=True)]


def conversion(form: str, paths: str | Sequence[str], **options: object) -> tuple[str, str]:
    """Return a command that converts files, and the names of the files that it writes.

    Both are written as a shell reads them.

    Args:
        form: Name of the form.
        paths: The file, or several.
        options: Options of the command. True is an option without a value. A list repeats an
            option. None and False leave it out. An option `output` is the name of the new file.
    """
    given = _listed(paths)
    words = ["seqtrain", "convert", *map(as_path, given), "--to", form]
    for name, value in options.items():
        words += _option_words(name, value)
    names = converted_names(given, form)
    if "output" in options:
        names = [str(options["output"])]
    return shlex.join(words), shlex.join(map(as_path, names))


def conversion_lines(
    form: str,
    paths: str | Sequence[str],
    *init_options: str,
    test: str | None = None,
    **options: object,
) -> list[str]:
    """Return two lines of a message: the command that converts files, and one that reads them.

    Args:
        form: Name of the form.
        paths: The file, or several.
        init_options: Options of `seqtrain init` for the new files, as a shell reads them.
        test: The file among several that is the one of test, or None.
        options: Options of `seqtrain convert`, as those of `conversion`.
    """
    command, new = conversion(form, paths, **options)
    words = shlex.split(new)
    for path, name in zip(_listed(paths), list(words), strict=True):
        if path == test:
            words.insert(words.index(name), "--test")
    return [f"  {command}", " ".join(["  seqtrain init", shlex.join(words), *init_options])]


@dataclass(frozen=True, slots=True)
class AdvisedConversion:
    """A conversion that a message advises.

    Attributes:
        form: Name of the form.
        options: Options of `seqtrain convert`, as those of `conversion`.
        files: Names of the files in the new folder that are read. Empty for all of it.
        of_folder: True if all files of the folder are converted.
    """

    form: str
    options: Mapping[str, object] = field(default_factory=dict)
    files: Sequence[str] = ()
    of_folder: bool = False

    def lines(self, path: str) -> list[str]:
        """Return two lines of a message: the command that converts a file, and one for `init`."""
        if self.of_folder:
            path = os.path.dirname(path) or os.curdir
        command, new = conversion(self.form, path, **self.options)
        if self.files:
            (folder,) = shlex.split(new)
            new = shlex.join(os.path.join(folder, name) for name in self.files)
        return [f"  {command}", f"  seqtrain init {new}"]


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


def _listed(paths: str | Sequence[str]) -> Sequence[str]:
    if isinstance(paths, str):
        return [paths]
    return paths


def as_path(path: str) -> str:
    """Return a path that isn't taken for an option."""
    if path.startswith("-"):
        return f"./{path}"
    return path
