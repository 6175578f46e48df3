"""Finding runs: one that was named, the newest, and the model in it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from seqtrain.errors import CheckpointError
from seqtrain.files.folder import complete_folder
from seqtrain.files.reading import unreadable
from seqtrain.runs.place import BEST, CONFIG, RUNS
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
            raise CheckpointError(f"{path}: no such run (tried {os.path.abspath(path)})")
        return RunDirectory(path)
    if name is None:
        return RunDirectory(newest_trained()[0])
    return RunDirectory(_newest_first(name)[0])


def newest_trained() -> tuple[Path, list[Path]]:
    """Return the newest run under runs/ that has a model, and newer ones that have none yet.

    Raises:
        CheckpointError: there is no run, or none has a model.
    """
    runs = _newest_first(None)
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


def _newest_first(name: str | None) -> list[Path]:
    """Return the runs under runs/ by when their config was written; at least one.

    Args:
        name: of the config, where a run's name must be exactly what `make` makes of it.

    Raises:
        CheckpointError: there is none.
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
    if not runs:
        of, elsewhere = "", ""
        if name is not None:
            of, elsewhere = f" of {name}", "; name one that stands elsewhere with --run-dir"
        raise CheckpointError(
            f"no run{of} under {os.path.abspath(RUNS)}"
            + (elsewhere or "; name one, or train one with: seqtrain fit CONFIG")
        )
    return [RUNS / run for _, run in sorted(runs, reverse=True)]


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
    raise CheckpointError(
        f"{path}: no model in it (no {BEST}/model.json and no model.json); "
        "expected a run directory or a model folder"
    )
