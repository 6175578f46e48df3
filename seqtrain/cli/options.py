"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

Device = Annotated[
    str | None,
    typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Set a key of the config, as --set training.lr=3e-4; may be repeated.",
    ),
]
Sequences = Annotated[
    str, typer.Argument(metavar="INPUT", help="File of sequences, or - for standard input.")
]
ConfigFile = Annotated[str, typer.Argument(metavar="CONFIG", help="YAML file of the run.")]
