"""`seqtrain tune CONFIG`: search for better settings; the last line of output is the best run."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from seqtrain.cli.options import ConfigFile, Device, Overrides

UNITS = {"s": 1, "m": 60, "h": 3600}
DEFAULT_BUDGET = 600.0


Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time for the search: 90s, 10m or 2h. Default: 10m; none where --trials is given.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Largest number of trials; the config itself is one."),
]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Trials side by side. Default: 1.")]
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Keep the trials in this file. Searches of CONFIG that name the same file learn from "
        "each other. Default: a file in --run-dir.",
    ),
]
RunDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Run directory. Default: runs/<config name>-tuned-<time>."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the search in --run-dir.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is in --run-dir.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no tables.")]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Encode the data again, and keep no copy of it.")
]


def tune(
    config: ConfigFile,
    overrides: Overrides = None,
    budget: Budget = None,
    trials: Trials = None,
    jobs: Jobs = 1,
    storage: Storage = None,
    device: Device = None,
    run_dir: RunDir = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    no_cache: NoCache = False,
) -> None:
    """Example: seqtrain tune my.yaml --budget 10m"""
    from pathlib import Path

    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])
    seconds = _seconds(budget)
    if seconds is None and trials is None:
        seconds = DEFAULT_BUDGET

    from seqtrain.cli.output.console import note, print_path
    from seqtrain.cli.output.fit_screen import note_next
    from seqtrain.cli.output.tune_screen import CHART, TuneScreen, draw_trials
    from seqtrain.files.writing import write_file
    from seqtrain.tuning.search import Limits
    from seqtrain.tuning.tune import tune as run_tune

    screen = TuneScreen(settings, quiet=quiet)
    if not quiet:
        note(_limits(seconds, trials))
    found = run_tune(
        settings,
        Limits(seconds, trials, jobs),
        source=Path(config),
        run_dir=None if run_dir is None else Path(run_dir),
        device=device,
        resume=resume,
        force=force,
        cache=not no_cache,
        storage=None if storage is None else Path(storage),
        listener=screen,
    )
    write_file(found.run.path / CHART, draw_trials(found, Path(config).stem).encode())
    screen.show_end(found)
    if not quiet:
        note_next(found.run.path, "predict FILE", "eval", "report")
    print_path(found.run.path)


def _limits(seconds: float | None, trials: int | None) -> str:
    """Say how long the search goes on."""
    from seqtrain.text import counted

    limits = [] if seconds is None else [f"{seconds:g} s"]
    limits += [] if trials is None else [counted(trials, "trial")]
    return f"at most {' and '.join(limits)} (--budget, --trials)"


def _seconds(text: str | None) -> float | None:
    """Return a time in seconds.

    Raises:
        ConfigError: it isn't a time.
    """
    if text is None:
        return None
    parts = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smh])", text.strip())
    if parts is None or not float(parts[1]):
        from seqtrain.errors import ConfigError

        raise ConfigError(f"--budget: found {text}; expected a time such as 90s, 10m or 2h")
    return float(parts[1]) * UNITS[parts[2]]
