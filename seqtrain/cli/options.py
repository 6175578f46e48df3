"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer


def _check_device(name: str | None) -> str | None:
    """Check the spelling before torch is loaded."""
    if name is not None:
        from seqtrain.config.loading import check_device

        check_device(name)
    return name


Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        callback=_check_device,
        help="auto, cpu, cuda, cuda:N or mps.",
    ),
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
