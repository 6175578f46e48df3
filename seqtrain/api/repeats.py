"""Repeats: training one config once per seed or once per fold.

The runs are trained one after another, or at the same time in worker processes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path

from seqtrain.api.fit import fit
from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import Listener
from seqtrain.config import Config
from seqtrain.errors import ConfigError, Interrupted, RunError
from seqtrain.files.writing import to_json, write_file
from seqtrain.runs.destination import check_destination, remove_earlier
from seqtrain.runs.run_directory import CONFIG, ENSEMBLE, FORMAT_VERSION, MOST_RUNS
from seqtrain.sequences.cache import default_folder
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.sources import check_files
from seqtrain.signals import StopSignals
from seqtrain.text import quote
from seqtrain.training.workers import WorkerPool

LARGEST_SEED = 2**63 - 1
POLL_SECONDS = 0.2
"""Seconds between two checks for signals."""


def seeds_of(text: str) -> list[int]:
    """Return the seeds in a text such as "0,1,2".

    The text must have 2 to `MOST_RUNS` different seeds, from 0 to `LARGEST_SEED`.

    Raises:
        ConfigError: If the text isn't of this form.
    """
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch("[0-9]{1,19}", part) for part in parts):
        seeds = [int(part) for part in parts]
        if 2 <= len({*seeds}) == len(seeds) <= MOST_RUNS and max(seeds) <= LARGEST_SEED:
            return seeds
    raise ConfigError(
        f"--seeds: found {quote(text)}; expected 2 to {MOST_RUNS:,} different numbers such as 0,1,2"
    )


def repeats_of(
    config: Config, *, seeds: Sequence[int] | None, folds: int | None
) -> dict[str, Config]:
    """Return the config of each repeat by its name, such as "seed-1" or "fold-3".

    The configs of folds have no refit, because it would train on the rows to be scored.

    Args:
        config: Config to repeat.
        seeds: Seed of each repeat, or None.
        folds: Number of folds, or None. Each fold is the validation split of one repeat.

    Raises:
        ConfigError: If `seeds` and `folds` are both None or both set, or if the number of folds is
            out of range.
    """
    if (seeds is None) == (folds is None):
        raise ConfigError("--folds: trains on parts of train, --seeds on all; give one of them")
    if folds is not None and not 2 <= folds <= MOST_RUNS:
        raise ConfigError(f"--folds: found {folds}; expected 2 to {MOST_RUNS:,}")
    if seeds is not None:
        return {f"seed-{s}": config.model_copy(update={"seed": s}) for s in seeds}
    parts = ({"fold": number, "of": folds} for number in range(1, int(folds or 0) + 1))
    no_refit = config.with_keys(training={"refit": False})
    return {f"fold-{part['fold']}": no_refit.with_keys(data={"validation": part}) for part in parts}


def fit_repeats(
    configs: Mapping[str, Config],
    path: Path,
    *,
    resume: bool = False,
    force: bool = False,
    jobs: int = 1,
    listener: Callable[[str], Listener] = lambda name: lambda event: None,
    cache: bool = True,
    source: Path | None = None,
    init_from: str | Path | None = None,
) -> list[Run]:
    """Train runs into folders of one directory, which is an ensemble when all have finished.

    The directory's file ensemble.json is removed at the start, and written at the end.

    Args:
        configs: Maps the name of each run to its config. All train on the same data.
        path: Directory of the ensemble. The runs are in folders with their names.
        resume: Resume the runs that have a config already, and start the others.
        force: Replace earlier runs. They are only removed once the data are read.
        jobs: Number of runs to train at the same time, in worker processes that share the threads.
            With 1, the runs are trained in this process, one after another.
        listener: Function that returns the listener of a run, given the run's name. With several
            jobs, the listeners are called in the worker processes.
        cache: Store encoded data in the user's cache folder, and load it from there.
        source: YAML file of the config, or None.
        init_from: Run directory or model folder with the initial weights, or None.

    Returns:
        The finished runs, in the order of `configs`.

    Raises:
        ConfigError, DataError, CheckpointError: If `fit` raises it for a run.
        RunError: If a run failed. The other runs can be resumed.
        Interrupted: If a signal came. All runs can be resumed.
    """
    first = next(iter(configs.values()))
    if not resume:
        check_destination(path, "run", "--run-dir", force=force, sources=[source])
    check_files(first, None if source is None else source.parent)
    if force and path.exists():
        prepare(first, cache_folder=default_folder() if cache else None)
        remove_earlier(path)  # the data can be read
    with suppress(OSError):
        (path / ENSEMBLE).unlink()  # it may only name finished runs
    each = partial(fit, cache=cache, source=source, force=force)
    fits = {}
    for name, config in configs.items():
        begun = resume and (path / name / CONFIG).exists()
        start = None if begun else init_from
        fits[name] = partial(each, config, run_dir=path / name, resume=begun, init_from=start)
    if jobs > 1:
        heard = [partial(train, listener=listener(name)) for name, train in fits.items()]
        runs = _train_side_by_side(heard, jobs)
    else:
        runs = [train(listener=listener(name)) for name, train in fits.items()]
    ensemble = {"format_version": FORMAT_VERSION, "members": list(configs)}
    write_file(path / ENSEMBLE, to_json(ensemble))
    return runs


def _train_side_by_side(fits: Sequence[Callable[[], Run]], jobs: int) -> list[Run]:
    """Train runs in worker processes, and return them in order.

    If a signal comes or one of the runs fails, all others save a checkpoint and stop.

    Args:
        fits: Function that trains each run.
        jobs: Number of worker processes.

    Raises:
        RunError: If a process was killed. An error of a run is raised as it is.
        Interrupted: If a signal came.
    """
    with StopSignals() as signals, WorkerPool(jobs) as workers:
        calls = [workers.submit(train) for train in fits]
        waiting = {*calls}
        while waiting and not (workers.has_lost_worker or any(map(_failed, calls))):
            _, waiting = wait(waiting, POLL_SECONDS, FIRST_EXCEPTION)
            if signals.received:
                workers.stop()
                raise Interrupted(signals.received, "stopped; every run is saved")
        if waiting:
            workers.stop()
        errors = [error for call in calls if (error := _failed(call))]
        if not waiting and not errors:
            return [call.result() for call in calls]
    # The errors of runs that were stopped for this reason say nothing about the cause.
    own = [e for e in errors if not isinstance(e, Interrupted | BrokenProcessPool)]
    if own:
        raise own[0]
    if errors and isinstance(errors[0], Interrupted):
        raise errors[0]
    problem = "a run's process was killed; memory may have run out"
    raise RunError(f"{problem}; the others are saved; continue all with --resume")


def _failed(call: Future[Run]) -> BaseException | None:
    """Return the error with which a call ended, or None if it succeeded or is still running."""
    return call.exception() if call.done() and not call.cancelled() else None
