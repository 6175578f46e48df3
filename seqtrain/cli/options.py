"""Options that several verbs share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from seqtrain.cli.completion import complete_override


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
        autocompletion=complete_override,
        help="Set a key of the config, as --set training.lr=3e-4; may be repeated.",
    ),
]
Sequences = Annotated[
    str, typer.Argument(metavar="INPUT", help="File of sequences, or - for standard input.")
]
ConfigFile = Annotated[str, typer.Argument(metavar="CONFIG", help="YAML file of the run.")]
RunOrNewest = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help="Run directory or model folder; default: the newest."),
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="The same as the argument RUN.")
]


class SplitName(str, Enum):
    """The splits of a run's config."""

    test = "test"
    validation = "validation"
    train = "train"


Split = Annotated[
    SplitName | None,
    typer.Option(
        "--split",
        help="Which split of the run's config; default: test, else validation.",
    ),
]
DataFile = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="A labelled file in the split's place."),
]


def chosen_run(run: str | None, named: str | None = None) -> str:
    """Return the run that a command is for; where none is named, the newest that has a model.

    Args:
        run: the argument.
        named: the option, which says the same.

    Raises:
        CheckpointError: there is none.
        ConfigError: both were given.
    """
    if run is not None and named is not None:
        from seqtrain.errors import ConfigError

        raise ConfigError(f"--run: {run} is named already; give one of them")
    if run is not None or named is not None:
        return run if run is not None else str(named)
    from seqtrain.cli.output.console import note
    from seqtrain.runs.finding import newest_trained

    path, newer = newest_trained()
    for other in newer[:1]:
        more = f" and {len(newer) - 1} more" if len(newer) > 1 else ""
        note(f"newer, but without a model yet: {other}{more}")
    return str(path)


def chosen_split(split: SplitName | None, data: str | None) -> str | None:
    """Return the name of the split that was asked for; refuse one beside a file.

    Raises:
        ConfigError: both were given.
    """
    if split and data:
        from seqtrain.errors import ConfigError

        raise ConfigError("--split: --data names the file to score on; give one of them")
    return split.value if split else None
