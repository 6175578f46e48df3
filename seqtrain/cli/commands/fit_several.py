"""`seqtrain fit CONFIG --seeds …` and `--folds …`: several runs in one directory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqtrain.api.events import Listener
    from seqtrain.config import Config


def fit_several(
    path: str,
    config: Config,
    run_dir: str | None,
    seeds: str | None,
    folds: int | None,
    *,
    resume: bool,
    force: bool,
    quiet: bool,
    log: bool,
    jobs: int,
    options: dict[str, Any],
) -> None:
    """Train several runs, show their mean scores, and print the directory that holds them."""
    from seqtrain.api import several
    from seqtrain.cli.output.console import note, print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import FitScreen
    from seqtrain.cli.output.several_table import EpochLines, show_figures
    from seqtrain.errors import ConfigError

    if jobs > 1 and log:
        raise ConfigError("--log: shows runs one after another; leave out --jobs")

    with ExitStack() as screens:

        def listener(name: str) -> Listener:
            if not quiet:
                note(f"{name}:")
            screen = screens.enter_context(FitScreen(quiet=quiet, hints=False))
            return EventLog(screen) if log else screen

        done = several.fit_several(
            config,
            seeds=None if seeds is None else several.seeds_of(seeds),
            folds=folds,
            run_dir=None if run_dir is None else Path(run_dir),
            name=Path(path).stem,
            resume=resume,
            force=force,
            beside=Path(path).parent,
            listener=listener,
            jobs=jobs,
            reporter=EpochLines(config.training.monitor, quiet=quiet),
            **options,
        )
    if not quiet:
        show_figures(done.figures)
        data, refit = config.data, config.training.refit
        named = data.test or (None if refit else data.validation)
        # Rows that all runs score, or each its own fold, and none of them learned.
        alike = folds is not None or isinstance(named, str | list)
        scored = f", seqtrain eval {done.path}" if alike else ""
        note(f"next: seqtrain predict FILE {done.path}{scored}")
    print_path(done.path)
