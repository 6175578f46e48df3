"""Several runs in one directory that answer together: ensemble.json names them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from seqtrain.errors import CheckpointError
from seqtrain.files.directory import Directory
from seqtrain.files.reading import LARGEST_JSON, json_of, read_regular, unreadable
from seqtrain.runs.destination import ENSEMBLE
from seqtrain.runs.run_directory import RunDirectory

FORMAT_VERSION = 1
MEMBER = re.compile(r"(seed|fold)-[0-9]{1,19}")
"""Name of a run among several."""
MOST_RUNS = 1000
"""Runs that may answer together."""


def write_ensemble(path: Path, names: Sequence[str]) -> None:
    """Say in a directory which of its runs answer together."""
    RunDirectory(path).write_json(
        ENSEMBLE, {"format_version": FORMAT_VERSION, "members": list(names)}
    )


def members(path: Path) -> list[Path]:
    """Return the runs in a directory that answer together; none: it is no ensemble.

    Raises:
        CheckpointError: ensemble.json is damaged.
    """
    if not os.path.lexists(path / ENSEMBLE):
        return []
    try:
        with Directory(path) as here:
            values = json_of(path / ENSEMBLE, read_regular(here, ENSEMBLE, LARGEST_JSON))
    except OSError as error:
        raise unreadable(path / ENSEMBLE, error) from None
    names = values.get("members") if isinstance(values, dict) else None
    known = isinstance(values, dict) and values.get("format_version") == FORMAT_VERSION
    if (
        not known
        or not isinstance(names, list)
        or not 2 <= len(names) <= MOST_RUNS
        or not all(isinstance(name, str) and MEMBER.fullmatch(name) for name in names)
        or len({*names}) < len(names)
    ):
        raise CheckpointError(
            f"{path / ENSEMBLE}: expected format_version 1 and different names of runs"
        )
    for name in names:
        check_member(path / name)
    return [path / name for name in names]


def name_one(path: Path) -> str:
    """Say that one of the runs in a directory is to be named."""
    names = sorted(name for name in os.listdir(path) if MEMBER.fullmatch(name))
    such = f", such as {path / names[0]}" if names else ""
    return f"{path}: holds several runs; name one of them{such}"


def check_member(path: Path) -> None:
    """Refuse a link in the place of a run among several: it may lead to somebody else's.

    Raises:
        CheckpointError: as said.
    """
    if os.path.islink(path):
        raise CheckpointError(f"{path}: is a link; expected a run's own directory")
