"""Command `seqtrain init`: write a config for data files that `fit` accepts unchanged."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from seqtrain.cli import options
from seqtrain.cli.options import FORCE, OVERRIDES, argument, option
from seqtrain.tables.formats import TrainingFormat
from seqtrain.text import printable

if TYPE_CHECKING:
    from seqtrain.cli.init_commands import Arguments
    from seqtrain.proposal import InitOptions


DATA = argument(
    "Data file or folder. Several files may be given: one with validation or test in its name is "
    "that split, and names that differ only in a number (part-1.csv, part-2.csv) are one data set.",
    "DATA",
)
LABEL = option(
    "Column of the label. For labels in several columns of 1 and 0 (one-hot), give each column; "
    "their names are the labels. Default: detected.",
    "COLUMN",
)
SEQUENCE = option(
    "Column of the sequence. Can be repeated: the texts are joined. Default: detected.", "COLUMN"
)
ID = option(
    "For a table with a row per time step: column that names the sequence. Can be repeated, if "
    "several columns name it together, such as a subject and a trial. Default: detected.",
    "COLUMN",
)
ORDER = option(
    "Column that sorts the rows within one --id, such as a time. Can be repeated: the next one "
    "sorts rows that are equal in those before. Default: detected.",
    "COLUMN",
)
STEPS = option(
    "Column with a value for each time step. Can be repeated. Default: all whose values change "
    "within an --id.",
    "COLUMN",
)
HEADER = option(
    "The first row names the columns, or doesn't. Default: detected.",
    None,
    "--header/--no-header",
)
TEST = option("Test file, scored once at the end.", "FILE")
PRETRAINED = option(
    "Folder of a frozen encoder of Hugging Face: adds a classifier on its vectors of the texts. "
    "The time that these take is measured with a few rows.",
    "FOLDER",
)
FORMAT = option("Format of DATA. Default: by the ending of its name.")
ENCODING = option("Encoding, such as cp1251. Default: detected from the bytes.", "NAME")
OUTPUT = option(
    "Config file to write. Default: the name of DATA with the ending .yaml; - prints it.",
    "FILE",
    "-o",
    "--output",
)


def init(
    context: typer.Context,
    data: list[str] = DATA,
    label: list[str] | None = LABEL,
    sequence: list[str] | None = SEQUENCE,
    id: list[str] | None = ID,
    order: list[str] | None = ORDER,
    steps: list[str] | None = STEPS,
    header: bool | None = HEADER,
    test: str | None = TEST,
    pretrained: str | None = PRETRAINED,
    overrides: list[str] | None = OVERRIDES,
    format: TrainingFormat | None = FORMAT,
    delimiter: options.Delimiter = options.DELIMITER,
    encoding: str | None = ENCODING,
    output: str | None = OUTPUT,
    force: bool = FORCE,
) -> None:
    """Example: seqtrain init reviews.csv --label stars, then seqtrain fit reviews.yaml"""
    from seqtrain.cli.init_commands import arguments_of, completed
    from seqtrain.errors import DataError
    from seqtrain.proposal import (
        FileLayout,
        InitOptions,
        data_format,
        refuse_files_without_format,
    )

    init_options = InitOptions(
        overrides or (),
        label=label,
        sequence=sequence,
        id=id,
        order=order,
        steps=steps,
        header=header,
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        pretrained=pretrained,
    )
    user = arguments_of(context.obj[1:])
    try:
        if init_options.get("format") is None:
            refuse_files_without_format(data)
        layout = FileLayout({"train": data}, init_options)
        for path in data:
            data_format(path, format or "auto", layout)
        _write_proposal(data, init_options, test, output, user, force=force)
    except DataError as error:
        raise DataError(*completed(error.problems, user)) from None


def _write_proposal(
    data: list[str],
    init_options: InitOptions,
    test: str | None,
    output: str | None,
    user: Arguments,
    *,
    force: bool,
) -> None:
    """Write the config that is proposed for the data, and print its path.

    If `output` is None, `default_name` names the file. If it is "-", the config is printed instead.

    Raises:
        DataError: If no config can be proposed.
        ConfigError: If the file exists and `force` is False, or can't be written.
    """
    from seqtrain.cli.init_commands import completed, default_name
    from seqtrain.cli.screens.console import note, print_path, show_warning
    from seqtrain.cli.screens.init import ReadingScreen
    from seqtrain.files.writing import write_file
    from seqtrain.proposal import propose
    from seqtrain.runs.destination import check_destination

    path = output or default_name(data[0])
    screen = ReadingScreen()
    try:
        command = printable(user.command)
        found = propose(data, init_options, test=test, progress=screen, command=command)
    finally:
        screen.close()
    if output != "-":
        sources = [*data, *([test] if test else [])]
        check_destination(path, "file", "--output", force=force, sources=sources)
    note(*found.uses)
    show_warning(*completed(found.warnings, user, written=path))
    if output == "-":
        print(found.text, end="")
        return
    write_file(Path(path), found.text.encode())
    print_path(path)
    note(f"next: seqtrain fit {quote(path)}")
