"""`seqtrain fit CONFIG`: train, once or once per seed or fold, and print the run directory."""

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from seqtrain.cli import options
from seqtrain.cli.options import flag, option, refuse


def fit(
    context: typer.Context,
    config: str = options.CONFIG,
    overrides: list[str] | None = options.OVERRIDES,
    device: str | None = options.TRAIN_DEVICE,
    run_dir: str | None = option("Run directory. Default: runs/<config name>-<time>.", "DIR"),
    resume: bool = flag(
        "Go on from the last checkpoint in --run-dir, or of the newest run of CONFIG.", "--resume"
    ),
    force: bool = flag("Replace an earlier run in --run-dir.", "--force"),
    init_from: str | None = option("Start from the weights of a run or model folder.", "RUN"),
    seeds: str | None = option("Train once per seed; the runs form an ensemble.", "0,1,2"),
    folds: int | None = option(
        "Train N times, each time with another N-th of train held out.", "N"
    ),
    jobs: int | None = option(
        "With --seeds or --folds: train N runs at the same time. Default: 1.", "N", min=1
    ),
    log: Literal["tensorboard"] | None = option(
        "Also write event files for TensorBoard, in tensorboard/ of the run."
    ),
    quiet: bool = options.QUIET,
    verbose: bool = flag("Also show padding, word vectors, and the engine.", "--verbose", "-v"),
    no_cache: bool = options.NO_CACHE,
    nproc_per_node: int | None = option("Train with N processes on this host.", "N", min=1),
    nnodes: str | None = option("Train with N hosts, or with MIN:MAX of them.", "N"),
    rdzv_endpoint: str | None = option(
        "With --nnodes: address of one host, which all others call.", "HOST:PORT"
    ),
    max_restarts: int | None = option(
        "Restart all processes up to N times if one is lost. Default: 0.", "N", min=0
    ),
) -> None:
    """Example: seqtrain fit my.yaml --set training.lr=0.002 --seeds 0,1,2"""
    from shlex import join

    from seqtrain.config import load_config, resolved_config
    from seqtrain.errors import Interrupted
    from seqtrain.runs.destination import check_destination
    from seqtrain.runs.run_directory import default_path, find

    settings, source = load_config(config, overrides or []), Path(config)
    is_launched = "TORCHELASTIC_RUN_ID" in os.environ
    launches = (nproc_per_node, nnodes, rdzv_endpoint, max_restarts) != (None,) * 4
    several = seeds is not None or folds is not None
    path = None if run_dir is None else Path(run_dir)
    given: dict[str, Any] = {"source": source, "resume": resume, "force": force}
    given |= {"cache": not no_cache, "init_from": init_from}
    refuse(
        ("--jobs: trains runs side by side; give --seeds or --folds with it", jobs and not several),
        ("--nproc-per-node: trains one run; leave out --seeds and --folds", several and launches),
        ("--log: shows runs one after another; leave out --jobs", log and (jobs or 1) > 1),
        ("--resume: --seeds and --folds need --run-dir", several and resume and path is None),
    )
    if launches and not is_launched:
        from seqtrain.training.distributed import launch

        if resume and path is None:
            path = find(None, source.stem).path
        check_destination(None if resume else path, "run", "--run-dir", force=force)
        path = path or default_path(source.stem)  # so that processes started again find the run
        words = [*context.obj, "--run-dir", str(path)]
        counts = {"processes": nproc_per_node or 1, "restarts": max_restarts or 0}
        raise typer.Exit(launch(words, hosts=nnodes, endpoint=rdzv_endpoint, **counts))
    from seqtrain.api.fit import fit as run_fit
    from seqtrain.api.repeats import fit_repeats, repeats_of, seeds_of
    from seqtrain.cli.output.console import print_path
    from seqtrain.cli.output.event_log import EventLog
    from seqtrain.cli.output.fit_screen import FitScreen, show_line, show_repeats

    also = EventLog() if log else lambda event: None
    made = FitScreen(quiet=quiet, verbose=verbose, hints=not several, also=also)
    with closing(made) as screen:
        if not several:
            run = run_fit(settings, run_dir=path, device=device, listener=screen, **given)
            if os.environ.get("RANK", "0") == "0":
                print_path(run.path)
            return
        numbers = None if seeds is None else seeds_of(seeds)
        configs = repeats_of(resolved_config(settings, device), seeds=numbers, folds=folds)
        path, side_by_side = path or default_path(source.stem), (jobs or 1) > 1
        lines = partial(partial, show_line, settings.training.monitor, quiet)
        given |= {"jobs": jobs or 1, "listener": lines if side_by_side else screen.of_run}
        try:
            runs = fit_repeats(configs, path, **given)
        except Interrupted as error:
            words = [word for word in context.obj if word not in ("--force", "--resume")]
            words += ["--resume", *([] if run_dir else ["--run-dir", str(path)])]
            how = f"what was trained is saved; go on with: seqtrain {join(words)}"
            raise Interrupted(error.exit_code - 128, f"stopped; {how}") from None
    if not quiet:
        show_repeats(runs, path, settings, folds=folds is not None)
    print_path(path)
