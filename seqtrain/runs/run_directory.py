"""The directory of one run: its config, environment, metrics, scores, and two model folders."""

from __future__ import annotations

import glob
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

from seqtrain.errors import CheckpointError, ConfigError, RunError, reading_fault
from seqtrain.runs.files import (
    complete_folder,
    is_stray,
    remove_strays,
    to_json,
    write_all,
    write_atomically,
)
from seqtrain.runs.lock import LOCK, RunLock, check_unlocked
from seqtrain.runs.saved_folder import parse_json

RUNS = Path("runs")
CONFIG, ENVIRONMENT, METRICS, TEST = "config.yaml", "environment.json", "metrics.jsonl", "test.json"
BEST, LAST, PREVIOUS, PRETRAINED = "best", "last", "previous", "pretrained"
FOLDERS = (BEST, LAST, PREVIOUS, PRETRAINED)


class RunDirectory:
    """Where the files of one run stand.

    Args:
        path: the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def best(self) -> Path:
        """The model folder of the best epoch."""
        return self.path / BEST

    @property
    def last(self) -> Path:
        """The model folder of the last checkpoint, with the training state."""
        return self.path / LAST

    @property
    def pretrained(self) -> Path:
        """The model folder that training started from, with the decoder where there is one."""
        return self.path / PRETRAINED

    @property
    def previous(self) -> Path:
        """The checkpoint before the last one."""
        return self.path / PREVIOUS

    def lock(self) -> RunLock:
        """Return the lock of this directory, for a `with` statement."""
        return RunLock(self.path)

    def clear(self, *, force: bool) -> None:
        """Remove an earlier run's files; other files stay.

        Raises:
            ConfigError: there are files, and no force; or the directory can't be changed.
        """
        _refuse_files(self.path, force=force)
        try:
            remove_strays(self.path, FOLDERS)
            (self.path / CONFIG).unlink(missing_ok=True)  # without it there is no run here
            for name in FOLDERS:
                if (self.path / name).exists():
                    shutil.rmtree(self.path / name)
            for name in (ENVIRONMENT, METRICS, TEST):
                (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise _not_writable(self.path, error) from None

    def write(self, name: str, content: bytes) -> None:
        """Write one of the run's files, atomically."""
        write_atomically(self.path / name, content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file of the run, atomically."""
        self.write(name, to_json(value))

    def append_metrics(self, event: dict[str, Any]) -> int:
        """Append one line to metrics.jsonl; return the length of the file afterwards, in bytes."""
        line = json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
        path = self.path / METRICS
        try:
            with open(path, "ab", buffering=0) as file:
                length = file.tell()
                try:
                    write_all(file.write, line.encode())
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(length)
                    raise
                return file.tell()
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}; the lines before are untouched") from None

    def check_metrics(self, length: int) -> None:
        """Refuse metrics that are shorter than they were at a checkpoint.

        Raises:
            CheckpointError: as said.
        """
        path = self.path / METRICS
        size = path.stat().st_size if path.exists() else 0
        if size < length:
            raise CheckpointError(
                f"{path}: shortened: found {size} bytes, the checkpoint was saved after {length}; "
                "restore it from a copy, or start anew with --force"
            )

    def cut_metrics(self, length: int) -> None:
        """Forget metrics written after a checkpoint that training goes on from; as above."""
        self.check_metrics(length)
        path = self.path / METRICS
        if path.exists() and path.stat().st_size > length:
            os.truncate(path, length)

    def environment(self) -> dict[str, Any]:
        """Return what environment.json holds.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        path = self.path / ENVIRONMENT
        try:
            values = parse_json(path, path.read_bytes())
        except OSError as error:
            wrong = CheckpointError(f"{path}: {error.strerror} (tried {path.absolute()})")
            raise reading_fault(path, error) or wrong from None
        if not isinstance(values, dict) or not isinstance(values.get("data"), dict):
            raise CheckpointError(f"{path}: expected an object with the digests of the data files")
        return values

    def remove_strays(self) -> list[Path]:
        """Clean up after a process that was killed while writing here; return what has to stay.

        Raises:
            RunError: the directory can't be changed.
        """
        try:
            return remove_strays(self.path, FOLDERS)
        except OSError as error:
            raise RunError(f"{error.filename or self.path}: {error.strerror}") from None


def make(path: Path | None, config_name: str) -> RunDirectory:
    """Make the directory of a new run.

    Args:
        path: where; None: runs/<config name>-<time>, with a number where that exists.
        config_name: for the default name.

    Raises:
        ConfigError: nothing can be written there.
    """
    wanted = path or RUNS / f"{config_name}-{time.strftime('%Y%m%d-%H%M%S')}"
    chosen, number = wanted, 1
    try:
        while True:
            try:
                chosen.mkdir(parents=True, exist_ok=path is not None)
                return RunDirectory(chosen)
            except FileExistsError:
                if path is not None:
                    raise
            number += 1
            chosen = wanted.with_name(f"{wanted.name}-{number}")
    except OSError as error:
        raise _not_writable(chosen, error) from None


def _not_writable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"--run-dir: {error.filename or path}: {error.strerror}; choose another directory"
    )


def check_free(path: Path | None, *, force: bool) -> None:
    """Refuse a path that can't be a directory, one in use, or one with files in it unless forced.

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
        _refuse_files(path, force=force)


def nearest_existing(path: Path) -> Path:
    """Return the path itself, or the nearest one above it that exists.

    Raises:
        ConfigError: no path can be like that.
    """
    try:
        return next(place for place in (path, *path.absolute().parents) if place.exists())
    except OSError as error:
        raise _not_writable(path, error) from None


def _refuse_files(path: Path, *, force: bool) -> None:
    if force or all(_is_early(entry) for entry in path.iterdir()):
        return
    what = "go on with --resume, replace the run in it with --force"
    if not (path / CONFIG).exists():
        what = "it holds no run; write into it with --force"
    raise ConfigError(f"--run-dir: {path} isn't empty; {what}, or choose another")


def _is_early(entry: Path) -> bool:
    """Whether it is what a run leaves that ended before its first checkpoint."""
    if entry.name != ENVIRONMENT:
        return entry.name == LOCK or is_stray(entry.name)
    try:
        return "seqtrain" in RunDirectory(entry.parent).environment()
    except CheckpointError:
        return False


def find(path: Path | None, name: str | None = None) -> RunDirectory:
    """Return a run's directory; None means the newest under runs/, of this config name if given.

    Raises:
        CheckpointError: there is none.
    """
    if path is not None:
        if not os.path.exists(path):
            raise CheckpointError(f"{path}: no such run (tried {path.absolute()})")
        return RunDirectory(path)
    pattern = "*" if name is None else f"{glob.escape(name)}-[0-9]*"
    runs = [p.parent for p in RUNS.glob(f"{pattern}/{CONFIG}")] if RUNS.is_dir() else []
    if not runs:
        of = "" if name is None else f" of {name}"
        raise CheckpointError(
            f"no run{of} under {RUNS.absolute()}; name one, or train one with: seqtrain fit CONFIG"
        )
    return RunDirectory(max(runs, key=lambda run: ((run / CONFIG).stat().st_mtime_ns, run.name)))


def model_folder(path: Path) -> Path:
    """Return the model folder that a path means: a run's best, or the folder itself.

    Raises:
        CheckpointError: there is no model.
    """
    for folder in (path / BEST, path):
        if (complete_folder(folder) / "model.json").is_file():
            return folder
    raise CheckpointError(
        f"{path}: no model in it (no {BEST}/model.json and no model.json); "
        "expected a run directory or a model folder"
    )
