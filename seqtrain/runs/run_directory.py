"""The directory of one run: its config, environment, metrics, scores, and two model folders."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

from seqtrain.config import Config, load_config
from seqtrain.errors import CheckpointError, RunError
from seqtrain.files.atomic import write_all, write_atomically
from seqtrain.files.directory import Directory
from seqtrain.files.folder import remove_strays
from seqtrain.files.lock import FolderLock
from seqtrain.files.reading import LARGEST_JSON, json_of, read_regular, unreadable
from seqtrain.files.regular import wrong_kind
from seqtrain.files.strict_json import to_json
from seqtrain.runs.destination import (
    BEST,
    CONFIG,
    ENVIRONMENT,
    FILES,
    FOLDERS,
    LAST,
    METRICS,
    PRETRAINED,
    PREVIOUS,
    RUNS,
    TEST,
    not_writable,
    refuse_files,
)

__all__ = ["CONFIG", "ENVIRONMENT", "RUNS", "TEST", "RunDirectory", "make"]

TIME = "%Y%m%d-%H%M%S"
"""Of the start of a run, in the name of its directory."""


class RunDirectory:
    """Where the files of one run stand.

    Everything right in the directory is opened relative to it, and as what it has to be: a link,
    pipe or device in a file's place, or a link in a folder's, is refused.

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
        """The checkpoint before the last one; a finished run has none."""
        return self.path / PREVIOUS

    def lock(self) -> FolderLock:
        """Return the lock of this directory, for a `with` statement."""
        return FolderLock(self.path)

    def clear(self, *, force: bool) -> None:
        """Remove an earlier run's files; other files stay.

        Raises:
            ConfigError: there are files, and no force; or the directory can't be changed.
        """
        refuse_files(self.path, force=force)
        try:
            remove_strays(self.path, FOLDERS)
            with Directory(self.path) as here:
                for name in (CONFIG, *FOLDERS, *FILES):  # without the config there is no run here
                    here.remove(name)
        except OSError as error:
            raise not_writable(self.path, error) from None

    def write(self, name: str, content: bytes) -> None:
        """Write one of the run's files, atomically."""
        write_atomically(self.path / name, content)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file of the run, atomically."""
        self.write(name, to_json(value))

    def append_metrics(self, event: dict[str, Any]) -> int:
        """Append one line to metrics.jsonl; return the length of the file afterwards, in bytes."""
        line = (json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n").encode()
        try:
            with Directory(self.path) as here:
                descriptor = here.open(METRICS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                length = os.fstat(descriptor).st_size
                try:
                    write_all(lambda rest: os.write(descriptor, rest), line)
                    os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, length)
                    raise
            finally:
                os.close(descriptor)
        except OSError as error:
            raise RunError(
                f"{self.path / METRICS}: {error.strerror}; the lines before are untouched"
            ) from None
        return length + len(line)

    def check_metrics(self, length: int) -> None:
        """Refuse metrics that can't be written on, or are shorter than they were at a checkpoint.

        Raises:
            CheckpointError: as said.
        """
        self._metrics(length, cut=False)

    def cut_metrics(self, length: int) -> None:
        """Forget metrics written after a checkpoint that training goes on from; as above."""
        self._metrics(length, cut=True)

    def _metrics(self, length: int, *, cut: bool) -> None:
        path, size = self.path / METRICS, 0
        try:
            with Directory(self.path) as here:
                if here.status_of(METRICS) is not None:
                    descriptor = here.open(METRICS, os.O_WRONLY)
                    size = os.fstat(descriptor).st_size
                    if cut and size > length:
                        os.ftruncate(descriptor, length)
                    os.close(descriptor)
        except OSError as error:
            raise unreadable(path, error) from None
        if size < length:
            raise CheckpointError(
                f"{path}: shortened: found {size} bytes, the checkpoint was saved after {length}; "
                "restore it from a copy, or start anew with --force"
            )

    def holds(self, name: str) -> bool:
        """Whether anything stands under a name in it.

        Raises:
            CheckpointError: the directory may not be read.
        """
        return self._status_of(name) is not None

    def _status_of(self, name: str) -> os.stat_result | None:
        try:
            with Directory(self.path) as here:
                return here.status_of(name)
        except OSError as error:
            raise unreadable(self.path, error) from None

    def config(self) -> Config:
        """Return the config that the run was trained with.

        Raises:
            CheckpointError: there is none, or it is a link or no file.
            ConfigError: it is damaged.
        """
        path = self.path / CONFIG
        found = self._status_of(CONFIG)
        if found is None:
            raise CheckpointError(
                f"{self.path}: no {CONFIG} in it, so it is no run; name another directory"
            )
        if not stat.S_ISREG(found.st_mode):
            raise unreadable(path, wrong_kind(path, found.st_mode, "regular file"))
        return load_config(path)

    def environment(self) -> dict[str, Any]:
        """Return what environment.json holds.

        Raises:
            CheckpointError: it is missing or damaged.
        """
        path = self.path / ENVIRONMENT
        try:
            with Directory(self.path) as here:
                content = read_regular(here, ENVIRONMENT, LARGEST_JSON)
        except OSError as error:
            raise unreadable(path, error) from None
        values = json_of(path, content)
        if not isinstance(values, dict) or not isinstance(values.get("data"), dict):
            raise CheckpointError(f"{path}: expected an object with the digests of the data files")
        return values

    def remove_previous(self) -> Path | None:
        """Remove the checkpoint before the last one; return it where it has to stay.

        It may be gone in part where this is stopped: nobody looks at it while the last is whole.
        """
        try:
            with Directory(self.path) as here:
                gone = here.try_to_remove(PREVIOUS)
        except OSError:
            gone = False
        return None if gone else self.previous

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
    wanted = path or RUNS / f"{config_name}-{time.strftime(TIME)}"
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
        raise not_writable(chosen, error) from None
