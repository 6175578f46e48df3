"""A search for better settings, whose best trial is finished as a run like any other."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from glob import escape as glob_escape
from pathlib import Path

from seqtrain.api.events import Run
from seqtrain.api.fit import fit, resolved_config
from seqtrain.config import Config, load_config, render_config
from seqtrain.data.cache import default_folder
from seqtrain.data.configured import check_files
from seqtrain.data.preparation import prepare
from seqtrain.errors import CheckpointError, ConfigError, RunError
from seqtrain.files.atomic import write_atomically
from seqtrain.files.directory import Directory
from seqtrain.files.lock import FolderLock
from seqtrain.runs.destination import CONFIG, FILES, FOLDERS, RUNS, check_free, check_removable
from seqtrain.runs.run_directory import RunDirectory, make
from seqtrain.signals import StopSignals
from seqtrain.tuning.best_config import BEST_CONFIG
from seqtrain.tuning.proposal import import_optuna
from seqtrain.tuning.search import BASE, Limits, Listener, Search
from seqtrain.tuning.shared import SharedTrials, check_storage, name_of
from seqtrain.tuning.space import changed, space_of
from seqtrain.tuning.trials import FOLDER, TRIALS, Trial, remove_runs

HELD_OUT = 0.1
"""Share of train that chooses nothing, where the config has no test split."""


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        run: the best trial, finished: its test rows chose nothing.
        best: its record.
        trials: all that are over, in order.
        config: that was tuned.
        others: trials of the searches that share theirs, each with host and folder of its search.
    """

    run: Run
    best: Trial
    trials: list[Trial]
    config: Config
    others: list[tuple[str, Trial]]


def tune(
    config: Config | str | Path,
    limits: Limits,
    *,
    run_dir: Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    name: str = "run",
    beside: Path | None = None,
    listener: Listener = lambda trial, is_best: None,
    storage: str | None = None,
    warn: Callable[[str], None] = lambda line: None,
) -> Tuned:
    """Run trials of a config with other settings, and finish the best one.

    Args:
        config: a Config, or the path of a YAML file.
        limits: when it ends.
        run_dir: of the best trial, which also gets trials.jsonl and best.yaml.
        device: in place of training.device.
        resume: go on with the search in run_dir (None: the newest one of this name).
        force: replace what is in run_dir.
        cache: keep encoded data between trials.
        name: first part of the run's default name.
        beside: folder of the YAML file, for the message where a data file is missing.
        listener: is told of each trial.
        storage: file or database that shares trials with other searches; None: none.
        warn: is told when that fails.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: no trial came to its end.
        Interrupted: a signal stopped it; all trials that were over are kept.
    """
    import_optuna()
    config = _with_honest_rows(resolved_config(config, device))
    space = space_of(config)
    begun = _begun(run_dir, name, config, resume=resume, force=force)
    check_files(config, beside)
    check_storage(storage)
    digests = prepare(config, cache_folder=default_folder() if cache else None).digests
    shared = None if storage is None else SharedTrials(storage, config, digests, space, warn)
    with ExitStack() as held:
        signals = held.enter_context(StopSignals())
        directory = begun or make(run_dir, f"{name}-tuned").path
        held.enter_context(FolderLock(directory))
        if begun is None:
            _clear(directory)
            write_atomically(directory / BASE, render_config(config).encode())
        search = Search(config, space, directory, limits, cache, listener, shared)
        held.callback(search.end)
        search.run(signals)
        best = _best_of(search)
        search.end()
    _move(directory / FOLDER / str(best.number), directory)
    run = fit(changed(config, best.settings), run_dir=directory, resume=True, cache=cache)
    others = [] if shared is None else shared.others(name_of(directory))
    return Tuned(run, best, [search.trials[n] for n in sorted(search.trials)], config, others)


def _begun(
    run_dir: Path | None, name: str, config: Config, *, resume: bool, force: bool
) -> Path | None:
    """Return the directory of the search that goes on; None: a new one, whose place is free."""
    if not resume:
        check_free(run_dir, force=force)
        _check_removable(run_dir)
        return None
    directory = run_dir or _newest(name)
    _check_unchanged(directory, config)
    return directory


def _best_of(search: Search) -> Trial:
    """Return the best trial.

    Raises:
        RunError: none came to its end.
    """
    if search.best is None:
        problems = [trial.problem for trial in search.trials.values() if trial.problem]
        why = problems[0] if problems else "no time was left"
        raise RunError(f"{search.directory}: no trial came to its end; {why}")
    return search.best


def _with_honest_rows(config: Config) -> Config:
    """Hold out rows that choose nothing, where the config has no test split.

    Raises:
        ConfigError: it has no validation split to choose by.
    """
    if config.data.validation is None:
        raise ConfigError(
            "data.validation: null; a search chooses by rows that aren't learned; set "
            "data.validation: 0.1"
        )
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": HELD_OUT})


def _newest(name: str) -> Path:
    """Return the newest folder of a search of this name.

    Raises:
        CheckpointError: there is none.
    """
    found = list(RUNS.glob(f"{glob_escape(name)}-tuned-*/{BASE}"))
    if not found:
        raise CheckpointError(f"no search of {name} under {RUNS}; name one with --run-dir")
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent


def _check_unchanged(directory: Path, config: Config) -> None:
    """Refuse to go on with another config.

    Raises:
        CheckpointError: there is no search, or it is of another config.
    """
    if not (directory / BASE).is_file():
        raise CheckpointError(f"{directory}: no {BASE} in it, so no search to go on with")
    before, now = render_config(load_config(directory / BASE)), render_config(config)
    if before != now:
        lines = zip(before.splitlines(), now.splitlines(), strict=False)
        was, is_ = next(((a, b) for a, b in lines if a != b), ("", ""))
        raise CheckpointError(
            f"{directory}: the search is of another config: found {is_.strip()}, then "
            f"{was.strip()}; search anew in another --run-dir"
        )


def _clear(directory: Path) -> None:
    """Remove what an earlier run or search left."""
    _check_removable(directory)
    RunDirectory(directory).clear(force=True)
    remove_runs(directory, lambda number: True)
    with Directory(directory) as here:
        for name in (TRIALS, BEST_CONFIG, BASE):
            here.remove(name)


def _check_removable(directory: Path | None) -> None:
    """Refuse what no search left under the names of one, before anything is removed.

    Raises:
        ConfigError: as said.
    """
    if directory is not None and directory.is_dir():
        check_removable(directory, files=(TRIALS, BEST_CONFIG, BASE), folders=(FOLDER,))
        if (directory / FOLDER).is_symlink():
            raise ConfigError(
                f"--run-dir: {directory / FOLDER} is a link, so no search's; move it away, or "
                "choose another"
            )


def _move(source: Path, directory: Path) -> None:
    """Make the best trial's run the run of the directory; done again, it does what is left."""
    remove_runs(directory, lambda number: str(number) != source.name)  # and refuse a link there
    if source.is_symlink() or not source.is_dir():
        return
    if (directory / CONFIG).exists():
        RunDirectory(directory).clear(force=True)
    with Directory(directory) as here:
        for name in (*FOLDERS, *FILES[::-1]):  # the config last: without it there is no run here
            if (source / name).exists():
                here.remove(name)
                os.replace(source / name, directory / name)
    remove_runs(directory, lambda number: True)
    with suppress(OSError):  # what no search left stays
        source.parent.rmdir()
