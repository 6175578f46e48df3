"""`seqtrain fit CONFIG`: train, and print the run directory."""

from __future__ import annotations

import signal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqtrain.cli.options import ConfigFile, Device, Overrides
from seqtrain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from seqtrain.config import Config


class Log(str, Enum):
    """What else is written as a run goes on."""

    tensorboard = "tensorboard"


RunDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Run directory; default: runs/<config name>-<time>."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the last checkpoint of --run-dir.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace an earlier run in --run-dir.")]
InitFrom = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Begin with the weights of a run or model folder."),
]
Seeds = Annotated[
    str | None,
    typer.Option(metavar="0,1,2", help="Train once per seed; the runs answer together."),
]
Folds = Annotated[
    int | None,
    typer.Option(metavar="N", help="Train N times, each without one of N parts of train."),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="With --seeds or --folds: runs at the same time."),
]
LogOption = Annotated[
    Log | None, typer.Option(help="Write the figures as event files too, in DIR/tensorboard.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No tables and bars, warnings only.")]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Read the data anew, and keep no encoded copy.")
]
Processes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Train with N processes on this host, as torchrun."),
]
Hosts = Annotated[
    str | None, typer.Option(metavar="N", help="Hosts that train together, or MIN:MAX.")
]
Endpoint = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where several hosts find one another.")
]
Restarts = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="How often lost processes are started again."),
]


def fit(
    config: ConfigFile,
    overrides: Overrides = None,
    device: Device = None,
    run_dir: RunDir = None,
    resume: Resume = False,
    force: Force = False,
    init_from: InitFrom = None,
    seeds: Seeds = None,
    folds: Folds = None,
    jobs: Jobs = None,
    log: LogOption = None,
    quiet: Quiet = False,
    no_cache: NoCache = False,
    nproc_per_node: Processes = None,
    nnodes: Hosts = None,
    rdzv_endpoint: Endpoint = None,
    max_restarts: Restarts = None,
) -> None:
    """Example: seqtrain fit my.yaml --set training.lr=0.002 --seeds 0,1,2"""
    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])
    several = seeds is not None or folds is not None
    launched = {
        "processes": nproc_per_node,
        "hosts": nnodes,
        "endpoint": rdzv_endpoint,
        "restarts": max_restarts,
    }
    together = any(value is not None for value in launched.values())
    if several and together:
        raise ConfigError("--nproc-per-node: trains one run; leave out --seeds and --folds")
    if jobs is not None and not several:
        raise ConfigError("--jobs: trains several runs at a time; give --seeds or --folds with it")
    flags = {"resume": resume, "force": force, "quiet": quiet}
    options: dict[str, Any] = {"device": device, "cache": not no_cache, "init_from": init_from}
    if several:
        from seqtrain.cli.commands.fit_several import fit_several

        fit_several(
            config, settings, run_dir, seeds, folds,
            log=log is not None, jobs=jobs or 1, options=options, **flags,
        )  # fmt: skip
        return
    place = _place(config, run_dir, **flags)
    if together:
        named = {"device": device, "run-dir": run_dir, "init-from": init_from}
        named["log"] = None if log is None else log.value
        _launch(config, overrides or [], named, {**flags, "no-cache": no_cache}, launched)
    _train(config, settings, log=log is not None, run_dir=place, **flags, **options)


def _train(path: str, config: Config, *, quiet: bool, log: bool, **options: Any) -> None:
    """Train, show it, and print the run directory."""
    from pathlib import Path

    from seqtrain.api.fit import fit as run_fit
    from seqtrain.cli.output.console import print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import FitScreen
    from seqtrain.errors import Interrupted
    from seqtrain.processes.place import Place

    name, beside = Path(path).stem, Path(path).parent
    with FitScreen(quiet=quiet) as screen:
        listener = EventLog(screen) if log else screen
        try:
            run = run_fit(config, name=name, beside=beside, listener=listener, **options)
        except KeyboardInterrupt:  # training answers a first one itself
            if screen.training or Place.here().rank:
                raise
            before = "interrupted before training began; nothing was saved"
            raise Interrupted(signal.SIGINT, before) from None
    if Place.here().rank == 0:
        print_path(run.path)


def _place(
    config: str, run_dir: str | None, *, resume: bool, force: bool, quiet: bool
) -> Path | None:
    """Return the run directory that is to be written, or gone on with; None: a new one.

    Raises:
        CheckpointError, ConfigError: it can't be; answered before torch is loaded.
    """
    from pathlib import Path

    from seqtrain.cli.output.console import note
    from seqtrain.processes.place import Place
    from seqtrain.runs.destination import check_destination
    from seqtrain.runs.finding import find

    place = None if run_dir is None else Path(run_dir)
    if Place.here().restarts:
        return place  # the run that the launcher began goes on
    if not resume:
        check_destination(place, "run", "--run-dir", force=force, sources=[config])
    elif place is None and not force:
        place = find(None, Path(config).stem).path
        if not quiet:
            note(f"going on with the newest run of {Path(config).stem}: {place}")
    return place


def _launch(
    config: str,
    overrides: list[str],
    named: dict[str, str | None],
    flags: dict[str, bool],
    launched: dict[str, Any],
) -> None:
    """Start the processes that train together, and end as they do."""
    from seqtrain.processes.launch import launch

    arguments = ["fit", config, *(word for value in overrides for word in ("--set", value))]
    arguments += [word for name, value in named.items() if value for word in (f"--{name}", value)]
    arguments += [f"--{name}" for name, is_set in flags.items() if is_set]
    raise typer.Exit(
        launch(
            arguments,
            processes=launched["processes"] or 1,
            hosts=launched["hosts"],
            endpoint=launched["endpoint"],
            restarts=launched["restarts"] or 0,
        )
    )
