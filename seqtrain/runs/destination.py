"""Checks of output paths (files, export folders, run directories), and removal of old runs."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from seqtrain.errors import CheckpointError, ConfigError, either, parameter
from seqtrain.files.reading import kind_of_path, path_problem, read_json
from seqtrain.files.writing import LOCK, MANIFEST, VerifiedFolder, is_stray, remove, remove_strays
from seqtrain.runs.run_directory import (
    CONFIG,
    ENVIRONMENT,
    FILES,
    FOLDERS,
    LAST_CHECKPOINT,
    MEMBER,
    RUNS,
    TRIALS,
)
from seqtrain.text import quote

SEARCH_FILES = ("base.yaml", "study.journal", "best.yaml")
"""Files that a search for settings (`seqtrain tune`) writes in addition to those of a run."""
SIGNS = {"export": ("an export", "model.onnx"), "model": ("a model", "model.json")}
"""Maps the kind of a folder that is replaced as a whole to its name and to a file that it has."""
Kind: TypeAlias = Literal["file", "stream", "export", "model", "run"]
"""Kind of a result, as `check_destination` describes it."""


def check_destination(
    path: str | Path | None,
    what: Kind,
    name: str,
    *,
    force: bool,
    sources: Sequence[str | Path | None] = (),
) -> None:
    """Check, before any work, that a result can be written without loss of the user's files.

    Args:
        path: Path of the result, or None for a new directory under runs/.
        what: Kind of the result. "file": a file. "stream": a file, pipe or device. "export" and
            "model": a folder that is replaced as a whole. "run": a directory of one or several
            runs, or of a search for settings.
        name: Name of the path in messages, such as ``parameter("output")``.
        force: True if an existing file, export or run at the path may be replaced.
        sources: Paths of the input, which is never replaced. None and missing files are skipped.

    Raises:
        ConfigError: If the path can't be written, or if files would be lost that mustn't be
            replaced.
    """
    target = RUNS / ".new" if path is None else Path(path)
    given = [source for source in sources if source is not None and os.path.exists(source)]
    is_file = what in ("file", "stream")
    try:
        found = nearest_existing(target)
        folder = target.absolute().parent if is_file else found
        if is_file and found == target:
            _check_file(target, what, name, force=force, sources=given)
        if not folder.exists():
            raise ConfigError(f"{name}: no folder {folder}; make it first")
        if not folder.is_dir():
            raise ConfigError(f"{name}: {folder} is {kind_of_path(folder)}; expected a folder")
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise ConfigError(f"{name}: {folder} can't be written to; choose another")
        if what in SIGNS and found == target:
            _check_replaced_folder(target, what, force=force)
        if what == "run" and found == target:
            check_replaceable(target, name, force=force, sources=given)
    except (OSError, ValueError) as error:
        refused = getattr(error, "filename", None) or target
        problem = path_problem(refused, error, ConfigError, "choose another")
        raise type(problem)(f"{name}: {problem.lines[0]}") from None


def nearest_existing(path: Path) -> Path:
    """Return the path if it exists, or else its nearest parent that exists.

    Raises:
        ConfigError: If the path or a parent is a symbolic link to a missing target.
    """
    for above in (path, *path.absolute().parents):
        if above.exists():
            return above
        if above.is_symlink():
            raise ConfigError(f"{above}: is a link that leads nowhere; choose another path")
    raise AssertionError("the root exists")


def _check_file(
    path: Path, what: Kind, name: str, *, force: bool, sources: Sequence[str | Path]
) -> None:
    """Raise a ConfigError if an existing path mustn't be overwritten.

    A file may be overwritten if `force` is True and the file isn't the input. With the kind
    "stream", pipes and devices may be overwritten without `force`.
    """
    kind = kind_of_path(path)
    if kind == "a folder" or (what == "file" and kind != "a file"):
        raise ConfigError(f"{name}: {path} is {kind}; expected a file")
    if any(path.samefile(source) for source in sources):
        raise ConfigError(f"{name}: {path} is the input; choose another file")
    if kind == "a file" and not force:
        advice = f"replace it with {parameter('force', True)}"
        if name == "--output":
            advice += f", or choose another name: {either('-o FILE', 'another path')}"
        raise ConfigError(f"{name}: {path} exists; {advice}")


def _check_replaced_folder(path: Path, what: Kind, *, force: bool) -> None:
    """Raise a ConfigError if an existing folder mustn't be replaced by an export or a model.

    An empty folder may be replaced. With `force`, a folder that holds an export (or a model) and
    nothing else may be replaced. The current directory and mount points are never replaced.
    """
    name, sign = SIGNS[what]
    if path.samefile(os.curdir) or os.path.ismount(path):
        raise ConfigError(
            f"{path}: is the current directory or a mount point, which can't be replaced; "
            f"expected a new folder, such as {path / 'model'}"
        )
    found = sorted(path.iterdir())
    written = {MANIFEST}
    with suppress(CheckpointError):
        written |= VerifiedFolder(path).digests.keys()
    for each in found:
        if each.name not in written or not each.is_file() or sign not in written:
            raise ConfigError(
                f"{path}: holds {quote(each.name)}, which is no part of {name}; choose another"
            )
    if found and not force:
        raise ConfigError(
            f"{path}: holds {name}; replace it with {parameter('force', True)}, or choose another"
        )


def check_replaceable(
    path: Path, name: str, *, force: bool, sources: Sequence[str | Path] = ()
) -> None:
    """Check that a new run can be written into an existing directory.

    - Without `force`, the directory must be empty, except for files of a run that was killed while
      it started: it has no config.yaml and no metrics yet.
    - With `force`, it may hold earlier runs, and files of the user with other names than a run's
      files.

    Args:
        path: The directory.
        name: Name of the directory in messages, such as ``parameter("run_dir")``.
        force: True if earlier runs in it may be replaced.
        sources: Paths of the input, which is never replaced.

    Raises:
        ConfigError: If the directory holds other files, or its config.yaml is the input.
        OSError: If a folder of an earlier run can't be read.
    """
    config = path / CONFIG
    if not force and not all(map(_is_of_start, path.iterdir())):
        raise ConfigError(
            f"{name}: {path} isn't empty; choose another, continue the run in it with "
            f"{parameter('resume', True)}, or use it with {parameter('force', True)} (this "
            "replaces a run in it, and keeps other files)"
        )
    if config.exists() and any(config.samefile(source) for source in sources):
        raise ConfigError(f"{name}: {config} is the input; choose another directory")
    names = [path / name for name in (*FILES, *SEARCH_FILES, *FOLDERS)]
    found = [each for each in names if each.exists() and not each.is_symlink()]
    for folder in filter(Path.is_dir, found):
        os.listdir(folder)  # or it can't be removed
    # This check comes last because a run that begins meanwhile writes environment.json first.
    if found and not _holds_runs(path):
        raise ConfigError(
            f"{name}: no run wrote {found[0]}; move it away, or choose another directory"
        )


def _is_of_start(path: Path) -> bool:
    """Return True if a run writes this file or folder before its config.yaml.

    Such a folder is ``last/`` beside a run's environment.json. It may be unfinished.
    """
    if path.name == LOCK or is_stray(path.name):
        return True
    if path.name == LAST_CHECKPOINT and path.is_dir() and not path.is_symlink():
        return _is_environment(path.with_name(ENVIRONMENT))
    return _is_environment(path)


def _holds_runs(path: Path) -> bool:
    """Return True if a run, repeats or a search for settings wrote into a directory.

    They are recognized by environment.json, the first file that a run writes.
    """
    if (path / ENVIRONMENT).exists():
        return _is_environment(path / ENVIRONMENT)
    return any(_is_environment(run / ENVIRONMENT) for run in _inner_runs(path))


def _inner_runs(path: Path) -> list[Path]:
    """Return the directories of repeats and of a search's trials in a directory, sorted.

    Symbolic links are left out.
    """
    found = [each for each in path.iterdir() if MEMBER.fullmatch(each.name)]
    if (path / TRIALS).is_dir() and not (path / TRIALS).is_symlink():
        found += [each for each in (path / TRIALS).iterdir() if each.name.isdecimal()]
    return [each for each in sorted(found) if each.is_dir() and not each.is_symlink()]


def _is_environment(path: Path) -> bool:
    """Return True if a file has the name and the content of a run's environment.json."""
    with suppress(CheckpointError):
        values = read_json(path) if path.name == ENVIRONMENT else None
        return isinstance(values, dict) and "seqtrain" in values and "data" in values
    return False


def remove_earlier(path: Path) -> None:
    """Remove the files of earlier runs and searches from a directory, and nothing else.

    The directory must have passed `check_replaceable`. Files that can't be removed stay.
    environment.json is removed last, because `check_replaceable` recognizes earlier runs by it.
    config.yaml is removed first, because a directory without it is no run.
    """
    for run in _inner_runs(path):
        remove_earlier(run)
        with suppress(OSError):
            run.rmdir()
    remove_strays(path, FOLDERS)
    links = [each for each in path.iterdir() if MEMBER.fullmatch(each.name) and each.is_symlink()]
    names = [name for name in (*FILES, *SEARCH_FILES, *FOLDERS) if name != ENVIRONMENT]
    logs = path.glob("tensorboard/events.out.tfevents.*")
    for each in (*(path / name for name in names), *links, *logs, path / ENVIRONMENT):
        remove(each)
    with suppress(OSError):
        (path / TRIALS).rmdir()
