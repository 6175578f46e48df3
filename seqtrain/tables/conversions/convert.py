"""Conversion of a file: it is read, given to the function of a form, and written."""

import filecmp
import inspect
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from seqtrain.errors import ConfigError, DataError, RunError
from seqtrain.files.reading import path_problems, uncompressed
from seqtrain.files.writing import UNTOUCHED, remove, replacing, write_new
from seqtrain.tables.blocks import Dialect, UnreadableError, located
from seqtrain.tables.conversions.arrays import ARRAY_FILES, arrays_in, saved_arrays
from seqtrain.tables.conversions.forms import CONVERSIONS, new_ending
from seqtrain.tables.conversions.objects import as_json
from seqtrain.tables.conversions.programs import READERS, reader_for, rows_of_program
from seqtrain.tables.conversions.table import converted_rows
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.json_lines import json_values
from seqtrain.tables.opening import TextLines, guess_encoding, is_pipe, open_input, utf_16
from seqtrain.tables.sources import files_below
from seqtrain.text import display_name, listed, quote


class UnchangedError(ConfigError):
    """A conversion would change nothing."""


Function: TypeAlias = Callable[[Any], Any]
TABLE_MODULES = ("rows", "cells")
"""Modules of functions that get a table."""
TEXT_MODULES = ("lines", *TABLE_MODULES)
"""Modules of functions that change the text of a file. Others may write an equal file."""
TABLE_FORMATS = ("csv", "tsv", "jsonl", "xlsx")


def convert(
    path: str,
    form: str,
    options: Mapping[str, Any],
    dialect: Dialect,
    output: str,
    *,
    force: bool = False,
    may_be_equal: bool = False,
) -> str:
    """Write a data file, or each file of a folder, in another form.

    Args:
        path: The file or folder.
        form: Name of the form, a key of `CONVERSIONS`.
        options: Arguments of the form's function. None, False and empty lists aren't given.
        dialect: How the file is written. The format and encoding "auto" are detected.
        output: The new file or folder.
        force: True if another file there may be replaced. Without it, only an equal one may exist.
        may_be_equal: True if a text may remain as it is, because others are converted with it.

    Returns:
        The path of the new file or folder.

    Raises:
        ConfigError: If an option isn't one of the form, or the new file exists.
        UnchangedError: If no text would change.
        DataError: If the file can't be read.
        RunError: If the new file can't be written.
    """
    module, function = _function(form, path)
    given = {key: x for key, x in options.items() if x not in (None, []) and x is not False}
    _check_options(form, function, given)
    target = Path(output)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and os.path.samefile(path, target):
        raise ConfigError(f"--output: {target} is the input; choose another file")
    with path_problems(path, DataError):
        os.stat(path)
    function = partial(function, **given)
    is_changed = may_be_equal or module not in TEXT_MODULES
    with path_problems(target, RunError, UNTOUCHED), replacing(target) as new:
        if module == "folders":
            with _located(path):
                function(path, new)
        elif os.path.isdir(path):
            for file in files_below(path):
                name = os.path.relpath(file, path)
                root, ending = os.path.splitext(uncompressed(name))
                below = new / f"{root}{new_ending(ending, form)}"
                below.parent.mkdir(parents=True, exist_ok=True)
                if module != "arrays":
                    is_changed |= _write(file, below, form, function, dialect)
                elif _has_arrays(file):
                    _write_arrays(file, below, function, below.suffix)
                else:
                    shutil.copyfile(file, new / name)
        elif module == "arrays":
            _write_arrays(path, new, function, target.suffix)
        else:
            is_changed |= _write(path, new, form, function, dialect)
        if not is_changed:
            raise UnchangedError(_nothing_found(path, form, given))
        _check_replaced(target, new, force=force)
    return str(target)


def _function(form: str, path: str) -> tuple[str, Callable[..., Any]]:
    """Return the module and the function of a form. Arrays have functions of their own.

    Raises:
        ConfigError: If the form has none for arrays.
    """
    module, _, name = CONVERSIONS[form].function.partition(".")
    if module == "objects" and _has_arrays(path):
        module = "arrays"
    function = getattr(import_module(f"seqtrain.tables.conversions.{module}"), name, None)
    if function is None:
        raise ConfigError(f"--to {form}: {path} holds arrays; expected JSON")
    return module, function


def _has_arrays(path: str) -> bool:
    """Return True for a file of arrays, and for a folder with such files."""
    files = files_below(path) if os.path.isdir(path) else [path]
    return any(file.lower().endswith(ARRAY_FILES) for file in files)


def _check_options(form: str, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise a ConfigError if options aren't those of a form, or if one is missing."""
    taken = options_taken(function)
    for name in given:
        if name not in taken:
            expected = listed([_option(each) for each in taken]) or "no option of a form"
            raise ConfigError(f"{_option(name)}: not for --to {form}; expected {expected}")
    for name, is_needed in taken.items():
        if is_needed and name not in given:
            raise ConfigError(f"{_option(name)}: is missing; --to {form} needs it")


def options_taken(function: Callable[..., Any]) -> dict[str, bool]:
    """Return True for each option that the function of a form needs, and False for the others."""
    return {
        name: parameter.default is parameter.empty
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _nothing_found(path: str, form: str, given: Mapping[str, Any]) -> str:
    """Return the message for a conversion that would change nothing."""
    words = [f"{_option(name)} {quote(str(value), 80)}" for name, value in given.items()]
    options = f" by {listed(words)}" if words else ""
    return (
        f"{display_name(path)}: --to {form} found nothing to change{options}, and wrote no file; "
        "correct the options, or use the file as it is"
    )


def _check_replaced(target: Path, new: Path, *, force: bool) -> None:
    """Raise a ConfigError if another file or folder than an equal one would be replaced.

    An equal folder is removed: a folder can't be renamed to one that exists.
    """
    if not target.exists() or (target.is_file() and force):
        return
    if target.is_dir() and new.is_dir() and _are_equal(target, new):
        remove(target)
        return
    if target.is_file() and new.is_file() and filecmp.cmp(target, new, shallow=False):
        return
    advice = "remove it, or give -o with another name"
    if target.is_file():
        advice = "replace it with --force, or give -o with another name"
    raise ConfigError(f"--output: {target} exists, with other content; {advice}")


def _are_equal(first: Path, second: Path) -> bool:
    """Return True if two folders hold files of equal names and contents, and no others."""
    names, others = (
        {path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()}
        for folder in (first, second)
    )
    if names != others:
        return False
    return all(filecmp.cmp(first / name, second / name, shallow=False) for name in names)


def _write_arrays(path: str, new: Path, function: Function, ending: str) -> None:
    """Write what a function makes of the arrays of a file.

    Args:
        path: The file.
        new: Path of the new file, until it is renamed.
        function: The function, with its options.
        ending: Ending of the name that the new file gets: .npy or .npz.

    Raises:
        DataError: If the file can't be read.
    """
    with _located(path), open_input(path) as stream:
        write_new(new, saved_arrays(function(arrays_in(stream, path)), ending))


def _write(path: str, new: Path, form: str, function: Function, dialect: Dialect) -> bool:
    """Write what the function of a form makes of a file.

    Returns:
        True if the new file has other lines, or if this can't be compared.

    Raises:
        DataError: If the file can't be read.
    """
    module = CONVERSIONS[form].function.partition(".")[0]
    reader = reader_for(path)
    if module == "objects" and reader is not None:
        with _located(path):
            write_new(new, as_json(function(rows_of_program(path, *reader))))
        return True
    format = dialect.format
    if format == "auto":
        format = resolve_format(path, "auto") or "txt"
    encoding = dialect.encoding
    if encoding == "auto":
        encoding = _encoding_of(path, format)
    if module in TABLE_MODULES and format not in TABLE_FORMATS:
        format = _table_format(path, encoding)
    dialect = replace(dialect, format=format, encoding=encoding)
    with _located(path), open_input(path, encoding) as stream:
        if module == "objects":
            write_new(new, as_json(function(json_values(stream, dialect, *READERS))))
            return True
        read = _lines if module == "lines" else converted_rows
        if CONVERSIONS[form].ending == ".csv" and module in TABLE_MODULES:
            read = partial(converted_rows, as_csv=True)
        write_new(new, (text.encode() for text in read(stream, dialect, function)))
    can_be_compared = format != "xlsx" and not is_pipe(path)
    return not can_be_compared or _has_other_lines(path, new, encoding)


def _has_other_lines(path: str, new: Path, encoding: str) -> bool:
    """Return True if a new file, in UTF-8, has other lines than a file. Line ends don't count."""
    with open_input(path, encoding) as old, new.open("rb") as written:
        lines = TextLines(old, encoding).numbered()
        others = TextLines(written).numbered()
        return any(line != other for line, other in zip_longest(lines, others))


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
