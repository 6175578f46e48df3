"""Command `seqtrain tune`: search for better settings, and print the directory of the best run."""

import re
from pathlib import Path

from seqtrain.cli import options
from seqtrain.cli.options import flag, option
from seqtrain.errors import ConfigError
from seqtrain.text import counted, duration

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
DEFAULT_BUDGET = 600.0


def tune(
    config: str = options.CONFIG_FILE,
    overrides: list[str] | None = options.OVERRIDES,
    budget: str | None = option(
        "Time for the search, such as 90s, 10m or 2h. Default: 10m.", "TIME"
    ),
    trials: int | None = option(
        "Stop when the search has N trials. The first is CONFIG unchanged.", "N", min=1
    ),
    device: str | None = options.TRAIN_DEVICE,
    run_dir: str | None = option(
        "Directory of the search. Default: runs/<config name>-tuned.", "DIR"
    ),
    resume: bool = flag("Fail if no such search was begun before.", "--resume"),
    force: bool = flag("Replace an earlier search in --run-dir.", "--force"),
    quiet: bool = options.QUIET,
) -> None:
    """Example: seqtrain tune my.yaml --budget 10m"""
    from seqtrain.api.study import import_optuna
    from seqtrain.config import load_config

    import_optuna()
    settings = load_config(config, overrides or [])
    seconds = DEFAULT_BUDGET if budget is None and trials is None else _seconds(budget)

    from seqtrain.api.tune import tune as run_tune
    from seqtrain.cli.screens.console import note, print_path
    from seqtrain.cli.screens.tune import TuneScreen

    screen = TuneScreen(settings)
    if not quiet:
        limits = [] if seconds is None else [duration(seconds)]
        limits += [] if trials is None else [counted(trials, "trial")]
        if budget is not None and budget.strip()[-1].isdigit():
            limits[0] += f" (a number is seconds; for minutes: --budget {budget.strip()}m)"
        note(
            f"at most {' and '.join(limits)} (--budget, --trials); a line for each trial at its end"
        )
    found = run_tune(
        settings,
        seconds=seconds,
        trials=trials,
        source=Path(config),
        run_dir=run_dir,
        device=device,
        resume=resume,
        force=force,
        listener=(lambda trial, is_best: None) if quiet else screen,
    )
    if not quiet:
        screen.show_end(found)
    print_path(found.run.path)


def _seconds(text: str | None) -> float | None:
    """Return the seconds of a text such as 90, 10m or 2h, or None if the text is None.

    Raises:
        ConfigError: If the text is no time above 0.
    """
    if text is None:
        return None
    parts = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smh]?)", text.strip())
    if parts is None or not float(parts[1]):
        raise ConfigError(
            f"--budget: found {text}; expected a number and its unit, such as 90s, 10m or 2h"
        )
    return float(parts[1]) * UNITS[parts[2]]
