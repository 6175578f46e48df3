"""Conversion of a file: it is read, given to the function of a form, and written."""

import csv
import filecmp
import inspect
import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.files.reading import path_problems, uncompressed
from seqtrain.files.writing import UNTOUCHED, replacing, write_new
from seqtrain.tables.blocks import Dialect, UnreadableError, located
from seqtrain.tables.conversions.arrays import ENDINGS as ARRAY_ENDINGS
from seqtrain.tables.conversions.arrays import read_arrays, saved_arrays
from seqtrain.tables.conversions.forms import FORMS, new_ending
from seqtrain.tables.conversions.objects import as_json
from seqtrain.tables.conversions.programs import reader_of, rows_of_program
from seqtrain.tables.conversions.rows import Table
from seqtrain.tables.delimited import Record, open_records
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.json_lines import json_values
from seqtrain.tables.opening import TextLines, guess_encoding, open_input, utf_16
from seqtrain.tables.sources import files_below
from seqtrain.tables.xlsx import sheet_rows
from seqtrain.text import display_name, listed

Function: TypeAlias = Callable[[Any], Any]


def convert(
    path: str,
    form: str,
    options: Mapping[str, Any],
    dialect: Dialect,
    output: str,
    *,
    force: bool = False,
) -> str:
    """Write a data file, or each file of a folder, in another form.

    Args:
        path: The file or folder.
        form: Name of the form, a key of `FORMS`.
        options: Arguments of the form's function. None and empty lists aren't given.
        dialect: How the file is written. The format and encoding "auto" are detected.
        output: The new file or folder.
        force: True if another file there may be replaced. Without it, only an equal one may exist.

    Returns:
        The path of the new file or folder.

    Raises:
        ConfigError: If an option isn't one of the form, or the new file exists.
        DataError: If the file can't be read.
        RunError: If the new file can't be written.
    """
    module, function = _function(form, path)
    given = {key: value for key, value in options.items() if value not in (None, [])}
    _check_options(form, function, given)
    target = Path(output)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and os.path.samefile(path, target):
        raise ConfigError(f"--output: {target} is the input; choose another file")
    with path_problems(path, DataError):
        os.stat(path)
    function = partial(function, **given)
    with path_problems(target, RunError, UNTOUCHED), replacing(target) as new:
        if module == "folders":
            with _located(path):
                function(path, new)
        elif os.path.isdir(path):
            for file in files_below(path):
                root, ending = os.path.splitext(uncompressed(os.path.relpath(file, path)))
                below = new / f"{root}{new_ending(ending, form)}"
                below.parent.mkdir(parents=True, exist_ok=True)
                if module == "arrays" and not _has_arrays(file):
                    shutil.copyfile(file, below)
                    continue
                _write(file, below, below.suffix, module, function, dialect)
        else:
            _write(path, new, target.suffix, module, function, dialect)
        _check_replaced(target, new, force=force)
    return str(target)


def _function(form: str, path: str) -> tuple[str, Callable[..., Any]]:
    """Return the module and the function of a form. Arrays have functions of their own.

    Raises:
        ConfigError: If the form has none for arrays.
    """
    module, _, name = FORMS[form].function.partition(".")
    if module == "objects" and _has_arrays(path):
        module = "arrays"
    function = getattr(import_module(f"seqtrain.tables.conversions.{module}"), name, None)
    if function is None:
        raise ConfigError(f"--to {form}: {path} holds arrays; expected JSON")
    return module, function


def _has_arrays(path: str) -> bool:
    """Return True for a file of arrays, and for a folder with such files."""
    files = files_below(path) if os.path.isdir(path) else [path]
    return any(file.lower().endswith(ARRAY_ENDINGS) for file in files)


def _check_options(form: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise a ConfigError if options aren't those of a form, or if one is missing."""
    taken = {
        name: parameter
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    for name in given:
        if name not in taken:
            expected = listed([_option(each) for each in taken]) or "no option of a form"
            raise ConfigError(f"{_option(name)}: not for --to {form}; expected {expected}")
    for name, parameter in taken.items():
        if parameter.default is parameter.empty and name not in given:
            raise ConfigError(f"{_option(name)}: is missing; --to {form} needs it")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_replaced(target: Path, new: Path, *, force: bool) -> None:
    """Raise a ConfigError if another file or folder than an equal one would be replaced."""
    if not target.exists() or (target.is_file() and force):
        return
    if target.is_file() and new.is_file() and filecmp.cmp(target, new, shallow=False):
        return
    advice = "remove it, or give -o with another name"
    if target.is_file():
        advice = "replace it with --force, or give -o with another name"
    raise ConfigError(f"--output: {target} exists, with other content; {advice}")


def _write(
    path: str, new: Path, ending: str, module: str, function: Function, dialect: Dialect
) -> None:
    """Write what a function makes of a file.

    Args:
        path: The file.
        new: Path of the new file, until it is renamed.
        ending: Ending of the name that it gets then.
        module: Module of the function.
        function: The function of the form, with its options.
        dialect: How the file is written.

    Raises:
        DataError: If the file can't be read.
    """
    if module == "arrays":
        with _located(path), open_input(path) as stream:
            write_new(new, saved_arrays(function(read_arrays(stream, path)), ending))
        return
    reader = reader_of(path)
    if module == "objects" and reader is not None:
        with _located(path):
            write_new(new, as_json(function(rows_of_program(path, *reader))))
        return
    format = dialect.format
    if format == "auto":
        format = resolve_format(path, "auto") or "txt"
    encoding = dialect.encoding
    if encoding == "auto":
        encoding = _encoding_of(path, format)
    dialect = replace(dialect, format=format, encoding=encoding)
    with _located(path), open_input(path, encoding) as stream:
        if module == "objects":
            write_new(new, as_json(function(json_values(stream, dialect))))
            return
        read = {"lines": _lines, "rows": _rows}[module]
        write_new(new, (text.encode() for text in read(stream, dialect, function)))


@contextmanager
def _located(path: str) -> Iterator[None]:
    """Convert an UnreadableError in the `with` block to one with the place, for the user."""
    try:
        yield
    except UnreadableError as error:
        raise located(display_name(path), error) from None


def _encoding_of(path: str, format: str) -> str:
    """Return the encoding of a file by its bytes."""
    if format == "xlsx":
        return "utf-8"
    with open_input(path) as stream:
        if utf_16(stream.read(4)) is not None:
            return "utf-16"
    return guess_encoding(path) or "utf-8"


def _lines(stream: Any, dialect: Dialect, function: Function) -> Iterator[str]:
    """Yield the lines that a function makes of the lines of a file."""
    lines = TextLines(stream, dialect.encoding)
    for line in function(text for _, text in lines.numbered()):
        yield f"{line}\n"


def _rows(stream: Any, dialect: Dialect, function: Function) -> Iterator[str]:
    """Yield the rows that a function makes of a table, as csv with the file's delimiter."""
    if dialect.format == "xlsx":
        delimiter, rows = ",", sheet_rows(stream, dialect)
    else:
        form, records = open_records(stream, dialect)
        delimiter, rows = form.delimiter, _fields(records)
    names = next(rows, None) if dialect.header else None
    table = function(Table(names, rows))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    for row in table.with_names():
        writer.writerow(row)
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _fields(records: Iterator[Record]) -> Iterator[list[str]]:
    """Yield the fields of each record that isn't a blank line."""
    for line, fields, problem in records:
        if problem is not None:
            raise UnreadableError(line, problem)
        if fields != [""]:
            yield fields
