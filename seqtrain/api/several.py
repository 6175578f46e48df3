"""Training one config several times: by several seeds, or on several parts of train."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote as shell_quote
from typing import Any

import numpy as np
import torch

from seqtrain.api.events import Listener, Run
from seqtrain.api.fit import fit, resolved_config
from seqtrain.api.side_by_side import Reporter, train_side_by_side
from seqtrain.api.training_process import TrainingTask
from seqtrain.config import Config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import prepare
from seqtrain.data.sources import check_files
from seqtrain.errors import ConfigError
from seqtrain.files.reading import path_problem
from seqtrain.runs.destination import CONFIG, ENSEMBLE, RUNS, check_destination, remove_earlier
from seqtrain.runs.finding import MOST_RUNS, write_ensemble
from seqtrain.runs.run_directory import TIME
from seqtrain.text import quote

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Figure:
    """A figure over several runs.

    Attributes:
        name: of it.
        values: of each run.
    """

    name: str
    values: list[float]

    @property
    def mean(self) -> float:
        """Return the mean over the runs."""
        return float(np.mean(self.values))

    @property
    def standard_error(self) -> float:
        """Return the standard error of the mean."""
        return float(np.std(self.values, ddof=1) / np.sqrt(len(self.values)))


@dataclass(frozen=True)
class Several:
    """What several runs came to.

    Attributes:
        path: the directory that holds them; as a RUN, it answers by all of them.
        runs: in order.
        figures: the monitored value, and scores of the test split where there is one.
    """

    path: Path
    runs: list[Run]
    figures: list[Figure]


def seeds_of(text: str) -> list[int]:
    """Read `0,1,2`.

    Raises:
        ConfigError: it isn't two or more different whole numbers from 0.
    """
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch("[0-9]{1,19}", part) for part in parts):
        seeds = [int(part) for part in parts]
        if 2 <= len({*seeds}) == len(seeds) <= MOST_RUNS and max(seeds) <= LARGEST_SEED:
            return seeds
    raise ConfigError(
        f"--seeds: found {quote(text)}; expected 2 to {MOST_RUNS:,} different numbers such as 0,1,2"
    )


def variants(
    config: Config, *, seeds: Sequence[int] | None, folds: int | None
) -> dict[str, Config]:
    """Return the config of each run by the run's name.

    Folds are scored on what they hold out, so none is trained anew on it (training.refit).

    Raises:
        ConfigError: both are asked for, or neither.
    """
    if (seeds is None) == (folds is None):
        raise ConfigError("--folds: trains on parts of train, --seeds on all; give one of them")
    if folds is not None and not 2 <= folds <= MOST_RUNS:
        raise ConfigError(f"--folds: found {folds}; expected 2 to {MOST_RUNS:,}")
    if seeds is not None:
        return {f"seed-{s}": config.model_copy(update={"seed": s}) for s in seeds}
    found = {}
    training = config.training.model_copy(update={"refit": False})
    for number in range(1, int(folds or 0) + 1):
        data = config.data.model_copy(update={"validation": {"fold": number, "of": folds}})
        found[f"fold-{number}"] = config.model_copy(update={"data": data, "training": training})
    return found


def fit_several(
    config: Config,
    *,
    seeds: Sequence[int] | None = None,
    folds: int | None = None,
    run_dir: Path | None = None,
    name: str = "run",
    resume: bool = False,
    force: bool = False,
    beside: Path | None = None,
    listener: Callable[[str], Listener] = lambda name: lambda event: None,
    jobs: int = 1,
    reporter: Reporter = lambda name, report: None,
    **options: Any,
) -> Several:
    """Train a config once per seed, or once per part of train that is held out.

    Args:
        config: resolved or not.
        seeds: of each run.
        folds: parts of train; each run holds out one of them, stratified, as data.validation.
        run_dir: directory that will hold the runs; None: runs/<name>-<time>.
        name: of the config.
        resume: go on where these runs were stopped.
        force: replace earlier runs.
        beside: as for `fit`.
        listener: returns what is called with the events of the run of this name, with one job.
        jobs: runs at the same time, each in a process of its own with its share of the threads.
        reporter: with several jobs, is told of each epoch and each warning.
        options: others of `fit`: device, cache, init_from.

    Raises:
        ConfigError, DataError, CheckpointError, RunError, Interrupted: as `fit`.
    """
    config = resolved_config(config, options.pop("device", None))
    configs = variants(config, seeds=seeds, folds=folds)
    if resume and run_dir is None:
        raise ConfigError(
            "--resume: of several runs needs --run-dir, the directory that holds them"
        )
    path = run_dir or RUNS / f"{name}-{time.strftime(TIME)}"
    if not resume:
        check_destination(path, "run", "--run-dir", force=force)
    check_files(config, beside)
    begun = _begun(path, list(configs), resume=resume, force=force)
    if force and path.exists():
        prepare(config, cache_folder=default_folder() if options.get("cache", True) else None)
        remove_earlier(path)  # the data can be read
    places: dict[str, dict[str, Any]] = {
        member: {"run_dir": path / member, "resume": begun[member], "force": force, **options}
        for member in configs
    }
    if jobs > 1:
        share: dict[str, Any] = {"threads": max(1, torch.get_num_threads() // jobs)}
        tasks = {one: TrainingTask(configs[one], **places[one], **share) for one in configs}
        runs = train_side_by_side(tasks, jobs, reporter, _how_to_go_on(path))
    else:
        runs = [
            fit(settings, beside=beside, listener=listener(member), **places[member])
            for member, settings in configs.items()
        ]
    write_ensemble(path, list(configs))
    return Several(path, runs, _figures(config, runs))


def _how_to_go_on(path: Path) -> str:
    return f"stopped; every run is saved; go on with --resume --run-dir {shell_quote(str(path))}"


def _begun(path: Path, members: Sequence[str], *, resume: bool, force: bool) -> dict[str, bool]:
    """Return which runs are gone on with; the place of every other one is free.

    Raises:
        ConfigError, CheckpointError: one is not, or links elsewhere; nothing was changed.
    """
    begun = {}
    for member in members:
        begun[member] = resume and (path / member / CONFIG).exists()
        if not begun[member]:
            check_destination(path / member, "run", "--run-dir", force=force)
    try:
        (path / ENSEMBLE).unlink(missing_ok=True)  # it names runs that are whole
    except OSError as error:
        raise path_problem(path / ENSEMBLE, error, ConfigError) from None
    return begun


def _figures(config: Config, runs: list[Run]) -> list[Figure]:
    figures = [Figure(f"best {config.training.monitor}", [run.best_value for run in runs])]
    for name in ("accuracy", "macro_f1", "loss"):
        values = [getattr(run.test, name) for run in runs if run.test is not None]
        figures += [Figure(f"test {name.replace('_', ' ')}", values)] if values else []
    return figures
