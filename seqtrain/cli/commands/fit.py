"""`seqtrain fit CONFIG`: train, once or once per seed or fold, and print the run directory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seqtrain.cli.options import (
    ConfigFile,
    ConfiguredDevice,
    ForceRun,
    NoCache,
    Overrides,
    Quiet,
)

if TYPE_CHECKING:
    from pathlib import Path

    from seqtrain.api.repeats import Repeats
    from seqtrain.api.run_events import Run
    from seqtrain.config import Config

RunDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Run directory. Default: runs/<config name>-<time>."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on from the last checkpoint in --run-dir. Default: of the newest run of CONFIG.",
    ),
]
InitFrom = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Start from the weights of a run or model folder."),
]
Seeds = Annotated[
    str | None,
    typer.Option(metavar="0,1,2", help="Train once per seed; the runs together are an ensemble."),
]
Folds = Annotated[
    int | None,
    typer.Option(metavar="N", help="Train N times, each time with another N-th of train held out."),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="With --seeds or --folds: runs at the same time."),
]
Log = Annotated[
    Literal["tensorboard"] | None,
    typer.Option(help="Also write event files for TensorBoard, in tensorboard/ of the run."),
]
Processes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Train with N processes on this host.")
]
Hosts = Annotated[
    str | None, typer.Option(metavar="N", help="Train with N hosts, or with MIN:MAX of them.")
]
Endpoint = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="With --nnodes: where the hosts meet.")
]
Restarts = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="How often to restart the processes if one is lost."),
]


def fit(
    config: ConfigFile,
    overrides: Overrides = None,
    device: ConfiguredDevice = None,
    run_dir: RunDir = None,
    resume: Resume = False,
    force: ForceRun = False,
    init_from: InitFrom = None,
    seeds: Seeds = None,
    folds: Folds = None,
    jobs: Jobs = None,
    log: Log = None,
    quiet: Quiet = False,
    no_cache: NoCache = False,
    nproc_per_node: Processes = None,
    nnodes: Hosts = None,
    rdzv_endpoint: Endpoint = None,
    max_restarts: Restarts = None,
) -> None:
    """Example: seqtrain fit my.yaml --set training.lr=0.002 --seeds 0,1,2"""
    from pathlib import Path

    from seqtrain.config import load_config

    settings, source = load_config(config, overrides or []), Path(config)
    launched = (nproc_per_node, nnodes, rdzv_endpoint, max_restarts) != (None,) * 4
    together = seeds is not None or folds is not None
    _check_together(together, launched, jobs, log, unnamed=resume and run_dir is None)
    if together:
        from seqtrain.api.fit import resolved_config
        from seqtrain.api.repeats import fit_repeats, repeats_of, seeds_of
        from seqtrain.runs.run_directory import default_path

        numbers = None if seeds is None else seeds_of(seeds)
        several = partial(
            fit_repeats,
            repeats_of(resolved_config(settings, device), seeds=numbers, folds=folds),
            default_path(source.stem) if run_dir is None else Path(run_dir),
            resume=resume,
            force=force,
            jobs=jobs or 1,
            cache=not no_cache,
            source=source,
            init_from=init_from,
        )
        return _fit_several(
            several, settings, folds=folds, jobs=jobs or 1, quiet=quiet, log=log is not None
        )
    path = _run_path(source, run_dir, resume=resume, force=force, quiet=quiet)
    if launched:
        from seqtrain.runs.run_directory import default_path
        from seqtrain.training.distributed import launch

        where = path or default_path(source.stem)  # so that processes started again find the run
        values = {"device": device, "run-dir": str(where), "init-from": init_from, "log": log}
        flags = {"resume": resume, "force": force, "quiet": quiet, "no-cache": no_cache}
        code = launch(
            ["fit", config, *_options(overrides or [], values, flags)],
            processes=nproc_per_node or 1,
            hosts=nnodes,
            endpoint=rdzv_endpoint,
            restarts=max_restarts or 0,
        )
        raise typer.Exit(code)
    from seqtrain.api.fit import fit as run_fit

    once = partial(
        run_fit,
        settings,
        run_dir=path,
        source=source,
        resume=resume,
        force=force,
        device=device,
        cache=not no_cache,
        init_from=init_from,
    )
    return _fit_once(once, quiet=quiet, log=log is not None)


def _check_together(
    together: bool, launched: bool, jobs: int | None, log: str | None, *, unnamed: bool
) -> None:
    """Refuse options that don't go with several runs, or with one.

    Raises:
        ConfigError: as said.
    """
    from seqtrain.errors import ConfigError

    if not together and jobs is not None:
        raise ConfigError("--jobs: trains several runs at a time; give --seeds or --folds with it")
    if together and launched:
        raise ConfigError("--nproc-per-node: trains one run; leave out --seeds and --folds")
    if together and jobs is not None and jobs > 1 and log:
        raise ConfigError("--log: shows runs one after another; leave out --jobs")
    if together and unnamed:
        raise ConfigError("--resume: of several runs needs --run-dir, which holds them")


def _options(
    overrides: list[str], values: dict[str, str | None], flags: dict[str, bool]
) -> list[str]:
    """Write options as words, to start the program again with them."""
    words = [word for each in overrides for word in ("--set", each)]
    words += [word for name, value in values.items() if value for word in (f"--{name}", value)]
    return words + [f"--{name}" for name, is_set in flags.items() if is_set]


def _run_path(
    config: Path, run_dir: str | None, *, resume: bool, force: bool, quiet: bool
) -> Path | None:
    """Return the run directory to write or to go on with; None: a new one.

    Raises:
        CheckpointError, ConfigError: it can't be; found before torch is loaded.
    """
    from pathlib import Path

    from seqtrain.cli.output.console import note
    from seqtrain.runs.destination import check_destination
    from seqtrain.runs.finding import find

    path = None if run_dir is None else Path(run_dir)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return path  # processes of a launcher: the first of them looks
    if not resume:
        check_destination(path, "run", "--run-dir", force=force, sources=[config])
    elif path is None and not force:
        path = find(None, config.stem).path
        if not quiet:
            note(f"going on with the newest run of {config.stem}: {path}")
    return path


def _fit_once(once: Callable[..., Run], *, quiet: bool, log: bool) -> None:
    """Train, show it, and print the run directory."""
    from seqtrain.cli.output.console import print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import FitScreen
    from seqtrain.errors import Interrupted

    is_first = os.environ.get("RANK", "0") == "0"
    with FitScreen(quiet=quiet) as screen:
        try:
            run = once(listener=EventLog(screen) if log else screen)
        except KeyboardInterrupt:  # training answers a first one itself
            if screen.training or not is_first:
                raise
            before = "interrupted before training began; nothing was saved"
            raise Interrupted(signal.SIGINT, before) from None
    if is_first:
        print_path(run.path)


def _fit_several(
    several: Callable[..., Repeats],
    config: Config,
    *,
    folds: int | None,
    jobs: int,
    quiet: bool,
    log: bool,
) -> None:
    """Train several runs, show their mean scores, and print the directory that holds them."""
    from seqtrain.api.run_events import Listener
    from seqtrain.cli.output.console import note, print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import EpochLines, FitScreen, show_figures

    epoch_lines = EpochLines(config.training.monitor, quiet=quiet)
    with ExitStack() as screens:

        def listener(name: str) -> Listener:
            if jobs > 1:
                return partial(epoch_lines, name)
            if not quiet:
                note(f"{name}:")
            screen = screens.enter_context(FitScreen(quiet=quiet, hints=False))
            return EventLog(screen) if log else screen

        done = several(listener=listener)
    if not quiet:
        show_figures(done.figures)
        data, refit = config.data, config.training.refit
        named = data.test or (None if refit else data.validation)
        # Rows that all runs score, or each its own fold, and none of them was trained on.
        alike = folds is not None or isinstance(named, str | list)
        scored = f", seqtrain eval {done.path}" if alike else ""
        note(f"next: seqtrain predict FILE {done.path}{scored}")
    print_path(done.path)
