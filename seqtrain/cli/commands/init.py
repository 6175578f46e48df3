"""`seqtrain init DATA…`: look at a data file and write a config that `fit` takes as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="File or folder to train on; further files are told apart by their names "
            "(…validation…, …test…).",
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
    """Write a commented config for DATA, ready for `seqtrain fit`.

    Example: seqtrain init reviews.csv --label stars, then seqtrain fit reviews.yaml
    """
    from seqtrain.recipes import Wishes, propose

    wishes = Wishes(label=label, sequence=list(sequence) if sequence else None, header=header)
    target = output or _default_name(data[0])
    if target != "-":
        _check_target(Path(target), data, force=force)
    text = propose(data, wishes, test=test)
    if target == "-":
        print(text, end="")
        return
    _write(Path(target), text)
    print(target)


def _default_name(data: str) -> str:
    """Return the config's file for a data file: `reviews.yaml` for `some/reviews.csv.gz`."""
    name = Path(data.rstrip("/")).name.removesuffix(".gz")
    return f"{Path(name).stem or 'config'}.yaml"


def _check_target(target: Path, data: list[str], *, force: bool) -> None:
    """Refuse to write over data, or over another file unless asked to."""
    from seqtrain.errors import ConfigError

    if any(target.resolve() == Path(path).resolve() for path in data):
        raise ConfigError(f"--output: {target} is the data; choose another file")
    if target.is_dir():
        raise ConfigError(f"--output: {target} is a folder; give a file")
    if target.exists() and not force:
        raise ConfigError(f"--output: {target} exists; choose another with -o, or give --force")


def _write(target: Path, text: str) -> None:
    """Write the config whole, or not at all."""
    from seqtrain.errors import ConfigError
    from seqtrain.runs.files import write_atomically

    if not target.parent.is_dir():
        raise ConfigError(f"--output: no folder {target.parent}; make it first")
    write_atomically(target, text.encode())
