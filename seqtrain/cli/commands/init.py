"""`seqtrain init DATA…`: look at a data file and write a config that `fit` takes as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from seqtrain.files.compressed import uncompressed


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="File or folder to train on; further files are told apart by their names "
            "(…validation…, …test…); pieces have names that differ in numbers alone.",
        ),
    ],
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="Column of the label.")
    ] = None,
    sequence: Annotated[
        list[str] | None,
        typer.Option(
            "--sequence", metavar="COLUMN", help="Column of the sequence; repeated: joined."
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first row names the columns."),
    ] = None,
    test: Annotated[
        str | None, typer.Option("--test", metavar="FILE", help="File scored once at the end.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where to; - prints the config."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Example: seqtrain init reviews.csv --label stars, then seqtrain fit reviews.yaml"""
    from seqtrain.cli.output.console import print_path
    from seqtrain.files.writing import write_file
    from seqtrain.proposal import Wishes, propose
    from seqtrain.runs.destination import check_destination

    wishes = Wishes(label=label, sequence=list(sequence) if sequence else None, header=header)
    target = output or _default_name(data[0])
    if target == "-":
        print(propose(data, wishes, test=test), end="")
        return
    sources = [*data, *([test] if test else [])]
    check_destination(target, "file", "--output", force=force, sources=sources)
    write_file(Path(target), propose(data, wishes, test=test).encode())
    print_path(target)


def _default_name(data: str) -> str:
    """Return the config's file for a data file: `reviews.yaml` for `some/reviews-*.csv.gz`."""
    name = re.sub(r"[-_.]?[*?\[\]]+", "", uncompressed(Path(data.rstrip("/")).name))
    return f"{Path(name).stem or 'config'}.yaml"
