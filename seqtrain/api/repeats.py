"""Repeats: training one config once per seed or once per fold.

The runs are trained one after another.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from seqtrain.api.fit import fit
from seqtrain.api.named_runs import Run
from seqtrain.api.run_events import Listener
from seqtrain.config import Config
from seqtrain.errors import ConfigError, parameter
from seqtrain.files.writing import write_file
from seqtrain.runs.destination import check_destination, remove_earlier
from seqtrain.runs.run_directory import CONFIG, ENSEMBLE, MOST_RUNS, Ensemble
from seqtrain.sequences.dataset import prepare
from seqtrain.sequences.sources import check_files
from seqtrain.text import quote

LARGEST_SEED = 2**63 - 1


def seeds_of(text: str) -> list[int]:
    """Return the seeds in a text such as "0,1,2".

    The text must have 2 to `MOST_RUNS` different seeds, from 0 to `LARGEST_SEED`.

    Raises:
        ConfigError: If the text isn't of this form.
    """
    parts = [part.strip() for part in text.split(",")]
    if all(re.fullmatch("[0-9]{1,19}", part) for part in parts):
        seeds = [int(part) for part in parts]
        if 2 <= len(set(seeds)) == len(seeds) <= MOST_RUNS and max(seeds) <= LARGEST_SEED:
            return seeds
    raise ConfigError(
        f"{parameter('seeds')}: found {quote(text)}; expected 2 to {MOST_RUNS:,} different numbers "
        "such as 0,1,2"
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
        raise ConfigError(
            f"{parameter('folds')}: trains on parts of train, {parameter('seeds')} on all; give "
            "one of them"
        )
    if folds is not None and not 2 <= folds <= MOST_RUNS:
        raise ConfigError(f"{parameter('folds')}: found {folds}; expected 2 to {MOST_RUNS:,}")
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
    listener: Callable[[str], Listener] = lambda name: lambda event: None,
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
        listener: Function that returns the listener of a run, given the run's name.
        source: YAML file of the config, or None.
        init_from: Run directory or model folder with the initial weights, or None.

    Returns:
        The finished runs, in the order of `configs`.

    Raises:
        ConfigError, DataError, CheckpointError: If `fit` raises it for a run.
        RunError: If a run failed. It can be resumed.
        Interrupted: If a signal came. The runs can be resumed.
    """
    first = next(iter(configs.values()))
    if not resume:
        check_destination(path, "run", parameter("run_dir"), force=force, sources=[source])
    check_files(first, None if source is None else source.parent)
    if force and path.exists():
        prepare(first)
        remove_earlier(path)  # the data can be read
    with suppress(OSError):
        (path / ENSEMBLE).unlink()  # it may only name finished runs
    runs = []
    for name, config in configs.items():
        begun = resume and (path / name / CONFIG).exists()
        run = fit(
            config,
            run_dir=path / name,
            resume=begun,
            force=force,
            source=source,
            init_from=None if begun else init_from,
            progress=False,
            listener=listener(name),
        )
        runs.append(run)
    write_file(path / ENSEMBLE, Ensemble(members=list(configs)).to_json())
    return runs
