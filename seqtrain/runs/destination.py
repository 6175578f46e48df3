"""The place of a new run: a directory that may be made, or taken from an earlier run."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from seqtrain.errors import MACHINE_FAULTS, CheckpointError, ConfigError, RunError
from seqtrain.files.directory import Directory, is_stray
from seqtrain.files.lock import LOCK, check_unlocked
from seqtrain.files.reading import LARGEST_JSON, json_of, read_regular
from seqtrain.files.regular import wrong_kind

RUNS = Path("runs")
CONFIG, ENVIRONMENT, METRICS, TEST = "config.yaml", "environment.json", "metrics.jsonl", "test.json"
ENSEMBLE = "ensemble.json"
BEST, LAST, PREVIOUS, PRETRAINED = "best", "last", "previous", "pretrained"
FILES, FOLDERS = (CONFIG, ENVIRONMENT, METRICS, TEST, ENSEMBLE), (BEST, LAST, PREVIOUS, PRETRAINED)


def not_writable(path: Path, error: OSError) -> ConfigError | RunError:
    """Say why a run directory, or an entry of it, can't be written: it is wrong, or the machine."""
    place, name = path, os.fsdecode(error.filename or "")
    if os.sep in name:
        place = Path(name)
    elif name not in ("", path.name):  # of an entry of the directory
        place = path / name
    if error.errno in MACHINE_FAULTS:
        return RunError(f"{place}: {error.strerror}")
    return ConfigError(f"--run-dir: {place}: {error.strerror}; choose another directory")


def check_free(path: Path | None, *, force: bool) -> None:
    """Refuse a path that can't be a directory, one in use, or one with files in it unless forced.

    Nothing is written.

    Args:
        path: where; None: under runs/, by a name that is free.
        force: whether an earlier run may be replaced.

    Raises:
        ConfigError, CheckpointError: as said.
    """
    place = nearest_existing(path or RUNS)
    if not place.is_dir():
        raise ConfigError(f"--run-dir: {place} is a file; expected a directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"--run-dir: {place} can't be written to; choose another directory")
    if place == path:
        check_unlocked(path)
        refuse_files(path, force=force)


def nearest_existing(path: Path) -> Path:
    """Return the path itself, or the nearest one above it that exists.

    Raises:
        ConfigError: no path can be like that.
    """
    try:
        for place in (path, *path.absolute().parents):
            if place.exists():
                return place
            if os.path.islink(place):
                raise ConfigError(
                    f"--run-dir: {place} is a link that leads nowhere; choose another directory"
                )
    except OSError as error:
        raise not_writable(path, error) from None
    raise AssertionError("the root exists")


def refuse_files(path: Path, *, force: bool) -> None:
    """Refuse a directory that a new run can't take, before anything in it is changed."""
    try:
        with Directory(path) as here:
            if not force and not all(_is_early(here, name) for name in here.names()):
                what = "go on with --resume, replace the run in it with --force"
                if here.status_of(CONFIG) is None:
                    what = "it holds no run; write into it with --force"
                raise ConfigError(f"--run-dir: {path} isn't empty; {what}, or choose another")
    except OSError as error:
        raise not_writable(path, error) from None
    check_removable(path)


def check_removable(
    path: Path, *, files: Sequence[str] = FILES, folders: Sequence[str] = FOLDERS
) -> None:
    """Refuse a folder in a file's place, a file in a folder's, and what may not be changed.

    Raises:
        ConfigError: as said.
    """
    try:
        with Directory(path) as here:
            for name in (*files, *folders):
                _check_kind(here, name, is_wanted_folder=name in folders)
    except OSError as error:
        raise not_writable(path, error) from None


def _check_kind(here: Directory, name: str, *, is_wanted_folder: bool) -> None:
    found = here.status_of(name)
    if found is None or stat.S_ISLNK(found.st_mode):
        return
    is_folder, path = stat.S_ISDIR(found.st_mode), here.path / name
    if is_folder != is_wanted_folder:
        kind = wrong_kind(path, found.st_mode, "run's").found
        raise ConfigError(
            f"--run-dir: {path} is {kind}, so no run's; move it away, or choose another"
        )
    if is_folder and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(f"--run-dir: {path} can't be written to; choose another directory")


def _is_early(here: Directory, name: str) -> bool:
    """Whether it is what a run leaves that ended before its first checkpoint."""
    if name != ENVIRONMENT:
        return name == LOCK or is_stray(name)
    try:
        values = json_of(here.path / name, read_regular(here, name, LARGEST_JSON))
    except CheckpointError:
        return False
    return isinstance(values, dict) and "seqtrain" in values and "data" in values
