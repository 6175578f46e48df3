"""`seqtrain init DATA…`: look at a data file and write a config that `fit` takes as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="File or folder to train on. Further files are recognized by their names: "
            "validation or test in them, or names that differ only in numbers.",
        ),
    ],
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the label. Default: found.")
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the sequence. Can be repeated: the columns are joined. Default: found.",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first row names the columns. Default: found."
        ),
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Test file, scored once at the end.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Where to write. Default: DATA.yaml; - prints."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Example: seqtrain init reviews.csv --label stars, then seqtrain fit reviews.yaml"""
    from seqtrain.cli.output.console import print_path
    from seqtrain.files.writing import write_file
    from seqtrain.proposal import Wishes, propose
    from seqtrain.runs.destination import check_destination

    wishes = Wishes(label=label, sequence=[*sequence] if sequence else None, header=header)
    sources = [*data, *([test] if test else [])]
    _check_readable(sources)
    if output == "-":
        print(propose(data, wishes, test=test), end="")
        return
    target = output or default_name(data[0])
    check_destination(target, "file", "--output", force=force, sources=sources)
    write_file(Path(target), propose(data, wishes, test=test).encode())
    print_path(target)


def _check_readable(paths: Sequence[str]) -> None:
    """Refuse files that are missing, or that can't be read as they are, before anything else.

    Raises:
        DataError: as said.
    """
    from glob import glob

    from seqtrain.config.formats import advice
    from seqtrain.errors import DataError
    from seqtrain.files.reading import path_problem
    from seqtrain.text import display_name

    for path in paths:
        try:
            if not glob(path, recursive=True):
                os.lstat(path)
        except (OSError, ValueError) as error:
            raise path_problem(path, error, DataError) from None
        how = advice(path)
        if how is not None:
            raise DataError(f"{display_name(path)}: {how}")


def default_name(data: str) -> str:
    """Return the config's file for a data file: `reviews.yaml` for `some/reviews-*.csv.gz`."""
    from seqtrain.files.compressed import uncompressed

    name = re.sub(r"[-_.]?[*?\[\]]+", "", uncompressed(Path(data.rstrip("/")).name))
    return f"{Path(name).stem or 'config'}.yaml"
