"""Command `seqtrain fit`: train once, or once per seed or fold, and print the run directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import join
from typing import Any, Literal

import typer

from seqtrain.cli import options
from seqtrain.cli.options import flag, option
from seqtrain.errors import ConfigError, Interrupted

RUN_DIR = option("Run directory. Default: runs/<config name>-<time>.", "DIR")
RESUME = flag(
    "Continue the run in --run-dir, or the newest run of CONFIG, from its last checkpoint.",
    "--resume",
)
FORCE = flag("Replace an earlier run in --run-dir.", "--force")
INIT_FROM = option("Start from the weights of an earlier run or model folder.", "RUN")
SEEDS = option(
    "Train once per seed, such as 0,1,2. predict and eval use the mean of the runs (an ensemble).",
    "LIST",
)
FOLDS = option(
    "N-fold cross-validation: train N times, each time with another N-th as validation split.", "N"
)
LOG = option("Also write event files for TensorBoard, into tensorboard/ of the run.")
VERBOSE = flag(
    "Also show the share of padding, the share of words that model.vectors contains, and why the "
    "engine was chosen.",
    "--verbose",
    "-v",
)


def fit(
    context: typer.Context,
    config: str = options.CONFIG_FILE,
    overrides: list[str] | None = options.OVERRIDES,
    device: str | None = options.TRAIN_DEVICE,
    run_dir: str | None = RUN_DIR,
    resume: bool = RESUME,
    force: bool = FORCE,
    init_from: str | None = INIT_FROM,
    seeds: str | None = SEEDS,
    folds: int | None = FOLDS,
    log: Literal["tensorboard"] | None = LOG,
    quiet: bool = options.QUIET,
    verbose: bool = VERBOSE,
) -> None:
    """Example: seqtrain fit my.yaml --set training.lr=0.002 --seeds 0,1,2"""
    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])
    is_repeated = seeds is not None or folds is not None
    if is_repeated and resume and run_dir is None:
        raise ConfigError("--resume: with --seeds or --folds it needs --run-dir")
    from seqtrain.api.fit import fit as run_fit
    from seqtrain.cli.screens.console import print_path
    from seqtrain.cli.screens.event_log import EventLog
    from seqtrain.cli.screens.fit import FitScreen, show_repeats
    from seqtrain.runs.run_directory import default_path

    arguments: dict[str, Any] = {"source": Path(config), "resume": resume, "force": force}
    arguments |= {"init_from": init_from}
    path = None if run_dir is None else Path(run_dir)
    screen = FitScreen(
        quiet=quiet, verbose=verbose, hints=not is_repeated, also=EventLog() if log else None
    )
    with closing(screen):
        if not is_repeated:
            run = run_fit(
                settings,
                run_dir=path,
                device=device,
                progress=False,
                listener=screen,
                **arguments,
            )
            if os.environ.get("RANK", "0") == "0":  # the other processes have no directory
                print_path(run.path)
            return
        from seqtrain.api.repeats import fit_repeats, repeats_of, seeds_of
        from seqtrain.config import resolved_config

        numbers = None if seeds is None else seeds_of(seeds)
        configs = repeats_of(resolved_config(settings, device), seeds=numbers, folds=folds)
        directory = path or default_path(Path(config).stem)
        with _resume_command(context.obj, directory, is_named=path is not None):
            runs = fit_repeats(configs, directory, listener=screen.of_run, **arguments)
    if not quiet:
        show_repeats(runs, directory, settings, folds=folds is not None)
    print_path(directory)


@contextmanager
def _resume_command(words: Sequence[str], directory: Path, *, is_named: bool) -> Iterator[None]:
    """Replace the message of an `Interrupted` error in a block by the command to resume.

    Args:
        words: Arguments of this command.
        directory: Directory of the runs.
        is_named: True if the arguments name the directory.
    """
    try:
        yield
    except Interrupted as error:
        kept = [word for word in words if word not in ("--force", "--resume")]
        kept += ["--resume", *([] if is_named else ["--run-dir", str(directory)])]
        raise Interrupted(
            error.exit_code - 128,
            f"stopped; what was trained is saved; continue with: seqtrain {join(kept)}",
        ) from None
