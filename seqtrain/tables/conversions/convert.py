"""Conversion of a file: it is read, given to the function of a form, and written."""

import filecmp
import inspect
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.files.reading import path_problems, uncompressed
from seqtrain.files.writing import UNTOUCHED, replacing, write_new
from seqtrain.tables.blocks import Dialect, UnreadableError, located
from seqtrain.tables.conversions.forms import FORMS, new_ending
from seqtrain.tables.conversions.table import converted_rows
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.opening import TextLines, guess_encoding, open_input, utf_16
from seqtrain.tables.sources import files_below
from seqtrain.text import display_name, listed

Function: TypeAlias = Callable[[Any], Any]
TABLE_MODULES = ("rows", "cells")
"""Modules of functions that get a table."""
TABLE_FORMATS = ("csv", "tsv", "jsonl", "xlsx")


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
        options: Arguments of the form's function. None, False and empty lists aren't given.
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
    module, _, name = FORMS[form].function.partition(".")
    function = getattr(import_module(f"seqtrain.tables.conversions.{module}"), name)
    given = {key: x for key, x in options.items() if x not in (None, []) and x is not False}
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
            function(path, new)
        elif os.path.isdir(path):
            for file in files_below(path):
                root, ending = os.path.splitext(uncompressed(os.path.relpath(file, path)))
                below = new / f"{root}{new_ending(ending, form)}"
                below.parent.mkdir(parents=True, exist_ok=True)
                _write(file, below, form, function, dialect)
        else:
            _write(path, new, form, function, dialect)
        _check_replaced(target, new, force=force)
    return str(target)


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


def _write(path: str, new: Path, form: str, function: Function, dialect: Dialect) -> None:
    """Write what the function of a form makes of a file.

    Raises:
        DataError: If the file can't be read.
    """
    module = FORMS[form].function.partition(".")[0]
    format = dialect.format
    if format == "auto":
        format = resolve_format(path, "auto") or "txt"
    encoding = dialect.encoding
    if encoding == "auto":
        encoding = _encoding_of(path, format)
    if module in TABLE_MODULES and format not in TABLE_FORMATS:
        format = _table_format(path, encoding)
    dialect = replace(dialect, format=format, encoding=encoding)
    read = {"lines": _lines, "objects": _objects}.get(module, converted_rows)
    if FORMS[form].ending == ".csv" and module in TABLE_MODULES:
        read = partial(converted_rows, as_csv=True)
    try:
        with open_input(path, encoding) as stream:
            write_new(new, (text.encode() for text in read(stream, dialect, function)))
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


def _table_format(path: str, encoding: str) -> str:
    """Return the format of a table whose ending names none: tsv if its first line has a tab."""
    with open_input(path, encoding) as stream:
        _, line = next(TextLines(stream, encoding).numbered(), (1, ""))
    if "\t" in line:
        return "tsv"
    return "csv"


def _lines(stream: Any, dialect: Dialect, function: Function) -> Iterator[str]:
    """Yield the lines that a function makes of the lines of a file."""
    lines = TextLines(stream, dialect.encoding)
    for line in function(text for _, text in lines.numbered()):
        yield f"{line}\n"


def _objects(stream: Any, dialect: Dialect, function: Function) -> Iterator[str]:
    """Yield the objects that a function makes of a value of JSON, one a line."""
    try:
        value = json.load(io.TextIOWrapper(stream, "utf-8-sig"))
    except ValueError as error:
        raise UnreadableError(None, f"isn't JSON: {error}") from None
    for row in function(value):
        yield f"{json.dumps(row, ensure_ascii=False)}\n"
