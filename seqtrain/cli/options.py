"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from seqtrain.cli.completion import complete_override


def _check_device(name: str) -> str:
    """Check the spelling before torch is loaded."""
    if name != "auto":
        from seqtrain.config.loading import check_device

        check_device(name)
    return name


ConfigFile = Annotated[str, typer.Argument(metavar="CONFIG", help="YAML file of the run.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        autocompletion=complete_override,
        help="Set a key of the config, such as training.lr=3e-4. Can be repeated.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE",
        callback=_check_device,
        help="Device to compute on: cpu, cuda, cuda:N, mps, or auto (cuda, else mps, else cpu).",
    ),
]
ConfiguredDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        callback=lambda name: name and _check_device(name),
        help="Device to train on, as training.device. Default: that of the config.",
    ),
]
Sequences = Annotated[
    str, typer.Argument(metavar="INPUT", help="File of sequences, or - for standard input.")
]
RunOrNewest = Annotated[
    str | None,
    typer.Argument(metavar="RUN", help="Run directory or model folder. Default: the newest run."),
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="The same as the argument RUN.")
]
Split = Annotated[
    Literal["test", "validation", "train"] | None,
    typer.Option(help="Split of the run's config. Default: test, or validation without a test."),
]
DataFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Labelled file to use instead of a split.")
]
StepScores = Annotated[
    bool, typer.Option("--steps", help="Score also after 10 %, 20 % … of each sequence.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show warnings only.")]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Read and encode the data again, and keep no copy of it."),
]
ForceFile = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
ForceRun = Annotated[bool, typer.Option("--force", help="Replace an earlier run in --run-dir.")]


def chosen_run(run: str | None, named: str | None = None) -> str:
    """Return the run that a command is for; if none is named, the newest that has a model.

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


def check_split(split: str | None, data: str | None) -> None:
    """Refuse a split beside a file.

    Raises:
        ConfigError: both were given.
    """
    if split and data:
        from seqtrain.errors import ConfigError

        raise ConfigError("--split: --data names the file to score on; give one of them")
