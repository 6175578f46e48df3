"""Finding runs: one that was named, the newest, and the model in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from seqtrain.errors import CheckpointError
from seqtrain.files.folder import complete_folder
from seqtrain.files.reading import unreadable
from seqtrain.runs.destination import BEST, CONFIG, ENSEMBLE, RUNS
from seqtrain.runs.members import name_one
from seqtrain.runs.run_directory import RunDirectory


def find(path: Path | None, name: str | None = None) -> RunDirectory:
    """Return a run's directory.

    Args:
        path: of it; None: the newest under runs/.
        name: of a config, to find the newest of its runs, finished or not; None: the newest of all
            that has a model.

    Raises:
        CheckpointError: there is none.
    """
    if path is not None:
        if not os.path.exists(path):
            raise CheckpointError(f"{path}: no such run (looked for {os.path.abspath(path)})")
        return RunDirectory(path)
    if name is None:
        return RunDirectory(newest_trained()[0])
    runs = newest_first(name)
    if not runs:
        raise _no_run(name)
    return RunDirectory(runs[0])


def newest_trained() -> tuple[Path, list[Path]]:
    """Return the newest run under runs/ that has a model, and newer ones that have none yet.

    Raises:
        CheckpointError: there is no run, or none has a model.
    """
    runs = newest_first(None)
    if not runs:
        raise _no_run(None)
    for place, run in enumerate(runs):
        try:
            model_folder(run)
        except CheckpointError:
            continue
        return run, runs[:place]
    raise CheckpointError(
        f"{runs[0]}: no model in it yet; a run has one after its first epoch; go on with it by "
        "seqtrain fit CONFIG --resume, or name another run"
    )


def newest_first(name: str | None) -> list[Path]:
    """Return the runs under runs/ by when their config was written.

    Args:
        name: of the config, where a run's name must be exactly what `make` makes of it.
    """
    pattern = None if name is None else re.escape(name) + r"-[0-9]{8}-[0-9]{6}(-[0-9]+)?"
    runs = []
    try:
        names = os.listdir(RUNS) if os.path.isdir(RUNS) else []
    except OSError as error:
        raise unreadable(RUNS, error) from None
    for run in names:
        if pattern is not None and not re.fullmatch(pattern, run):
            continue
        try:
            runs.append((os.lstat(RUNS / run / CONFIG).st_mtime_ns, run))
        except OSError:
            continue  # no run, or none that may be read
    return [RUNS / run for _, run in sorted(runs, reverse=True)]


def _no_run(name: str | None) -> CheckpointError:
    """Say that there is no run, and what to do."""
    of, then = "", "name one, or train one with: seqtrain fit CONFIG"
    if name is not None:
        of, then = f" of {name}", "name one that stands elsewhere with --run-dir"
    return CheckpointError(f"no run{of} under {os.path.abspath(RUNS)}; {then}")


def model_folder(path: Path) -> Path:
    """Return the model folder that a path means: a run's best, or the folder itself.

    Raises:
        CheckpointError: there is no model, or it may not be read.
    """
    for folder in (path / BEST, path):
        try:
            os.lstat(complete_folder(folder) / "model.json")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise unreadable(folder, error) from None
        if folder == path and os.path.islink(folder):
            return Path(os.path.realpath(folder))  # the user named it; in a run it is refused
        return folder
    if os.path.lexists(path / ENSEMBLE):
        raise CheckpointError(name_one(path))
    raise CheckpointError(
        f"{path}: no model in it (no {BEST}/model.json and no model.json); "
        "expected a run directory or a model folder"
    )
