"""Finding a run: one that was named, the newest, or the members of an ensemble."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from seqtrain.errors import CheckpointError
from seqtrain.files.folder import complete_folder
from seqtrain.files.reading import path_problem, read_json
from seqtrain.files.writing import to_json, write_file
from seqtrain.runs.destination import BEST, CONFIG, ENSEMBLE, MEMBER, RUNS
from seqtrain.runs.run_directory import RunDirectory

FORMAT_VERSION = 1
"""Of ensemble.json."""
MOST_RUNS = 1000
"""Largest number of members of an ensemble."""


def find(path: Path | None, name: str | None = None) -> RunDirectory:
    """Return a run's directory: of a path, with runs/ before it or not, or the newest of a config.

    Without both it is the newest of all that has a model.
    """
    if path is not None:
        if not os.path.exists(path) and ".." not in path.parts and os.path.exists(RUNS / path):
            path = RUNS / path
        if not os.path.exists(path):
            raise CheckpointError(f"{path}: no such run (looked for {os.path.abspath(path)})")
        return RunDirectory(path)
    if name is None:
        return RunDirectory(newest_trained()[0])
    for run in newest_first(name):
        return RunDirectory(run)
    where = os.path.abspath(RUNS)
    raise CheckpointError(f"no run of {name} under {where}; name one with --run-dir")


def newest_trained() -> tuple[Path, list[Path]]:
    """Return the newest run under runs/ that has a model, and newer ones that have none yet."""
    runs = newest_first(None)
    for index, run in enumerate(runs):
        with suppress(CheckpointError):
            if not members(run):
                model_folder(run)
            return run, runs[:index]
    what, then = f"no run under {os.path.abspath(RUNS)}", "train one with: seqtrain fit CONFIG"
    if runs:
        what = f"{runs[0]}: no model in it yet; a run has one after its first epoch"
        then = "go on with it by seqtrain fit CONFIG --resume"
    raise CheckpointError(f"{what}; {then}, or name another run")


def newest_first(name: str | None) -> list[Path]:
    """Return the runs under runs/ by when their config was written.

    None: of all configs, and folders of several runs, by the newest of these.
    """
    pattern = ".*" if name is None else re.escape(name) + r"-[0-9]{8}-[0-9]{6}(-[0-9]+)?"
    runs = []
    try:
        names = os.listdir(RUNS) if RUNS.is_dir() else []
    except OSError as error:
        raise path_problem(RUNS, error) from None
    for run in (RUNS / name for name in names if re.fullmatch(pattern, name, re.DOTALL)):
        with suppress(OSError):  # no run, or none that may be read
            own = [run]
            if name is None:
                own += [run / each for each in os.listdir(run) if MEMBER.fullmatch(each)]
            configs = [each / CONFIG for each in own if (each / CONFIG).exists()]
            runs += [(max(each.stat().st_mtime_ns for each in configs), run)] if configs else []
    return [run for _, run in sorted(runs, reverse=True)]


def model_folder(path: Path) -> Path:
    """Return the model folder that a path means: a run's best, or the folder itself."""
    for folder in (path / BEST, path):
        try:
            os.stat(complete_folder(folder) / "model.json")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise path_problem(folder, error) from None
        return folder
    if (path / ENSEMBLE).exists():
        raise CheckpointError(name_one(path))
    missing = f"no model in it (no {BEST}/model.json and no model.json)"
    raise CheckpointError(f"{path}: {missing}; expected a run directory or a model folder")


def write_ensemble(path: Path, names: Sequence[str]) -> None:
    """Write down which runs of a directory are an ensemble."""
    values = {"format_version": FORMAT_VERSION, "members": list(names)}
    write_file(path / ENSEMBLE, to_json(values))


def members(path: Path) -> list[Path]:
    """Return the members of the ensemble in a directory; none: it is no ensemble."""
    if not os.path.lexists(path / ENSEMBLE):
        return []
    values = read_json(path / ENSEMBLE)
    names = values.get("members") if isinstance(values, dict) else None
    if (
        not isinstance(names, list)
        or values.get("format_version") != FORMAT_VERSION
        or not 2 <= len(names) <= MOST_RUNS
        or not all(isinstance(name, str) and MEMBER.fullmatch(name) for name in names)
        or len({*names}) < len(names)
    ):
        expected = "format_version 1 and different names of runs"
        raise CheckpointError(f"{path / ENSEMBLE}: expected {expected}")
    return [path / name for name in names]


def name_one(path: Path) -> str:
    """Say that one of the runs in a directory is to be named."""
    names = sorted(name for name in os.listdir(path) if MEMBER.fullmatch(name))
    such = f", such as {path / names[0]}" if names else ""
    return f"{path}: holds several runs; name one of them{such}"
