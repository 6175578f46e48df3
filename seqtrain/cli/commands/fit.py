"""`seqtrain fit CONFIG`: train, and print the run directory."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from seqtrain.cli.options import ConfigFile, Device, Overrides


class Log(str, Enum):
    """What else is written as a run goes on."""

    tensorboard = "tensorboard"


def fit(
    config: ConfigFile,
    overrides: Overrides = None,
    device: Device = None,
    run_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run directory; default: runs/<config name>-<time>."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the last checkpoint of --run-dir.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier run in --run-dir.")
    ] = False,
    init_from: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Begin with the weights of a run or model folder."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="0,1,2", help="Train once a seed; the runs answer together."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(metavar="N", help="Train N times, each without one of N parts of train."),
    ] = None,
    log: Annotated[
        Log | None, typer.Option(help="Write the figures as event files too, in DIR/tensorboard.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No tables and bars, warnings only.")
    ] = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read the data anew, and keep no encoded copy.")
    ] = False,
    nproc_per_node: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Train with N processes on this host, as torchrun."),
    ] = None,
    nnodes: Annotated[
        str | None, typer.Option(metavar="N", help="Hosts that train together, or MIN:MAX.")
    ] = None,
    rdzv_endpoint: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where several hosts find one another.")
    ] = None,
    max_restarts: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="How often lost processes are started again."),
    ] = None,
) -> None:
    """Train a classifier as CONFIG says; the last line of output is its run directory."""
    from pathlib import Path

    from seqtrain.config import load_config

    settings = load_config(config, overrides or [])

    if seeds is not None or folds is not None:
        from seqtrain.cli.commands.fit_several import fit_several

        if {nproc_per_node, nnodes, rdzv_endpoint, max_restarts} != {None}:
            from seqtrain.errors import ConfigError

            raise ConfigError("--nproc-per-node: trains one run; leave out --seeds and --folds")
        fit_several(
            config,
            settings,
            run_dir,
            seeds,
            folds,
            resume=resume,
            force=force,
            quiet=quiet,
            log=log is not None,
            options={"device": device, "cache": not no_cache, "init_from": init_from},
        )
        return

    from seqtrain.processes.place import Place
    from seqtrain.runs.finding import find
    from seqtrain.runs.place import check_free

    place = None if run_dir is None else Path(run_dir)
    if Place.here().restarts:
        pass  # the run that the launcher began goes on
    elif not resume:
        check_free(place, force=force)  # answered before torch is loaded
    elif place is None and not force:
        from seqtrain.cli.output.console import note

        place = find(None, Path(config).stem).path
        if not quiet:
            note(f"going on with the newest run of {Path(config).stem}: {place}")

    if {nproc_per_node, nnodes, rdzv_endpoint, max_restarts} != {None}:
        from seqtrain.processes.launch import launch

        arguments = ["fit", config, *(word for o in overrides or [] for word in ("--set", o))]
        options = {"--device": device, "--run-dir": run_dir, "--init-from": init_from}
        options["--log"] = None if log is None else log.value
        arguments += [word for name, o in options.items() if o for word in (name, o)]
        flags = {"--resume": resume, "--force": force, "--quiet": quiet, "--no-cache": no_cache}
        arguments += [name for name, is_set in flags.items() if is_set]
        raise typer.Exit(
            launch(
                arguments,
                processes=nproc_per_node or 1,
                hosts=nnodes,
                endpoint=rdzv_endpoint,
                restarts=max_restarts or 0,
            )
        )

    from seqtrain.cli.output.console import print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import FitScreen
    from seqtrain.workflows.fit import fit as run_fit

    with FitScreen(quiet=quiet) as screen:
        run = run_fit(
            settings,
            run_dir=place,
            device=device,
            resume=resume,
            force=force,
            cache=not no_cache,
            name=Path(config).stem,
            beside=Path(config).parent,
            init_from=init_from,
            listener=screen if log is None else EventLog(screen),
        )
    if Place.here().rank == 0:
        print_path(run.path)
