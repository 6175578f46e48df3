"""A search for better settings. Its best trial becomes a run like any other."""

import os
import socket
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from glob import escape
from hashlib import sha256
from pathlib import Path
from shlex import join

from seqtrain.api.fit import fit, resolved_config
from seqtrain.api.run_events import Run
from seqtrain.config import Config, load_config, render_config
from seqtrain.data.cache import default_folder
from seqtrain.data.dataset import prepare
from seqtrain.data.sources import check_files
from seqtrain.errors import CheckpointError, ConfigError, Interrupted, RunError
from seqtrain.files.lock import locked
from seqtrain.files.writing import remove, write_file
from seqtrain.runs.destination import (
    CONFIG,
    FILES,
    FOLDERS,
    RUNS,
    check_destination,
    remove_earlier,
)
from seqtrain.runs.run_directory import make
from seqtrain.signals import StopSignals
from seqtrain.text import counted
from seqtrain.tuning.search import FOLDER, Limits, Search, TrialListener, remove_runs
from seqtrain.tuning.space import Space, changed, space_of
from seqtrain.tuning.trials import Study, Trial, best_of, import_optuna

BASE, JOURNAL = "base.yaml", "study.log"
"""Files of a search: the config that is tuned; Optuna's journal, where no other is given."""
JOURNAL_BEGINS = b'{"op_code"'
HELD_OUT = 0.1
"""Share of train that chooses nothing, where the config has no test split."""


@dataclass(frozen=True)
class Tuned:
    """The best trial and its finished run, all trials that are over, and other searches'."""

    run: Run
    best: Trial
    trials: list[Trial]
    config: Config
    others: list[Trial]


def tune(
    config: Config | str | Path,
    limits: Limits,
    *,
    source: Path | None = None,
    run_dir: Path | None = None,
    device: str | None = None,
    resume: bool = False,
    force: bool = False,
    cache: bool = True,
    storage: Path | None = None,
    listener: TrialListener = lambda trial, is_best: None,
) -> Tuned:
    """Train a config with other settings, trial by trial, and finish the best trial's run.

    Args:
        config: a Config, or the path of a YAML file.
        limits: when the search ends.
        source: the config's YAML file, for the run's default name and for messages.
        run_dir: of the search and of the best run. None: runs/<name>-tuned-<time>.
        device: in place of training.device.
        resume: go on with the search in run_dir (None: the newest one of this name).
        force: replace what is in run_dir.
        cache: keep encoded data between trials.
        storage: file of Optuna's study, which other searches may share; None: in run_dir.
        listener: receives each trial that is over.

    Raises:
        ConfigError, DataError, CheckpointError: what was given is wrong; nothing was written.
        RunError: no trial came to its end.
        Interrupted: a signal stopped it; all trials that were over are kept.
    """
    import_optuna()
    config = _with_test_split(resolved_config(config, device))
    space = space_of(config)
    name = "run" if source is None else source.stem
    begun = _begun(run_dir, name, config) if resume else None
    if begun is None:
        check_destination(run_dir, "run", "--run-dir", force=force)
    check_files(config, None if source is None else source.parent)
    if storage is not None:
        _check_journal(storage)
    digests = prepare(config, cache_folder=default_folder() if cache else None).digests
    with ExitStack() as held:
        signals = held.enter_context(StopSignals())
        directory = begun or make(run_dir, f"{name}-tuned").path
        held.enter_context(locked(directory))
        if begun is None:
            remove_earlier(directory)
            write_file(directory / BASE, render_config(config).encode())
        own = f"{socket.gethostname()}:{directory.resolve()}"
        journal = storage or directory / JOURNAL
        study = Study(journal, _study_name(config, digests, space), own, config, space)
        study.end_lost(None)
        best = _search(Search(study, directory, limits, listener, cache), signals, storage)
        _move(directory / FOLDER / str(best.number), directory)
    run = fit(changed(config, best.settings), run_dir=directory, resume=True, cache=cache)
    return Tuned(run, best, study.trials(), config, study.trials(of_others=True))


def _search(search: Search, signals: StopSignals, storage: Path | None) -> Trial:
    directory = search.directory
    try:
        search.run(signals)
    except Interrupted as error:
        how = ["tune", str(directory / BASE), "--resume", "--run-dir", str(directory)]
        how += [] if storage is None else ["--storage", str(storage)]
        done = f"stopped after {counted(len(search.study.trials()), 'trial')}, kept"
        line = f"{done}; go on with: seqtrain {join(how)}"
        raise Interrupted(error.exit_code - 128, line) from None
    trials = search.study.trials()
    best = best_of(trials)
    if best is None:
        problems = [trial.problem for trial in trials if trial.problem]
        why = [*problems, "there was no time left"][0]
        raise RunError(f"{directory}: no trial came to its end; {why}")
    return best


def _study_name(config: Config, digests: dict[str, str], space: Space) -> str:
    anywhere = render_config(changed(config, {"training.device": "auto"}))
    same = repr((anywhere, sorted(digests.values()), sorted(space.items())))
    return f"seqtrain-{sha256(same.encode()).hexdigest()[:16]}"


def _check_journal(path: Path) -> None:
    """Refuse what can't be a journal of Optuna's, which would append to any file."""
    try:
        is_known = path.read_bytes()[: len(JOURNAL_BEGINS)] in (b"", JOURNAL_BEGINS)
    except OSError:
        is_known = path.parent.is_dir() and not path.exists()
    if not is_known or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError(
            f"--storage: found {path}; expected the file of a search's trials, or a new file in a "
            "folder that exists"
        )


def _with_test_split(config: Config) -> Config:
    """Hold out rows that choose nothing, where the config has no test split."""
    if config.data.validation is None:
        raise ConfigError(
            "data.validation: null; a search chooses by rows that aren't learned; set "
            "data.validation: 0.1"
        )
    if config.data.test is not None or config.data.group is not None:
        return config
    return changed(config, {"data.test": HELD_OUT})


def _begun(run_dir: Path | None, name: str, config: Config) -> Path:
    found = RUNS.glob(f"{escape(name)}-tuned-*/{BASE}") if run_dir is None else [run_dir / BASE]
    bases = [path for path in found if path.is_file()]
    if not bases:
        where = f"{run_dir}: no {BASE} in it" if run_dir else f"no search of {name} under {RUNS}"
        raise CheckpointError(f"{where}; name the directory of a search with --run-dir")
    base = max(bases, key=lambda path: path.stat().st_mtime_ns)
    before, now = (render_config(each).splitlines() for each in (load_config(base), config))
    for was, is_ in zip(before, now, strict=False):
        if was != is_:
            raise CheckpointError(
                f"{base.parent}: the search is of another config: found {is_.strip()}, then "
                f"{was.strip()}; start a new search in another --run-dir"
            )
    return base.parent


def _move(source: Path, directory: Path) -> None:
    """Make the best trial's run the run of the directory; where it is already, do nothing."""
    if source.is_dir():
        if (directory / CONFIG).exists():
            for name in (*FILES, *FOLDERS):
                remove(directory / name)
        for path in sorted(source.iterdir(), key=lambda path: path.name == CONFIG):
            os.replace(path, directory / path.name)  # the config last: it makes a run of the rest
    remove_runs((directory / FOLDER).glob("*"))
    with suppress(OSError):  # what no search left stays
        source.parent.rmdir()
