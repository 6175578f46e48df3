"""The data files that a config names: which there are, whether they exist, how each is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seqtrain.config import resolve_format
from seqtrain.config.schema import Config, DataConfig
from seqtrain.data.pieces import Files
from seqtrain.data.readers import ReadOptions
from seqtrain.data.readers.txt import holds_whole_files
from seqtrain.data.sources import files_of
from seqtrain.errors import DataError
from seqtrain.files.reading import nearest_file
from seqtrain.text import quote

SPLITS = ("train", "validation", "test")


def data_files(config: Config) -> list[tuple[str, str]]:
    """Return the key and the path of each data file of a config, in the order they are read in.

    Raises:
        DataError: nothing matches a pattern, or a key names a file twice.
    """
    return [(key, file) for key, named in _named(config) for file in files_of(key, named)]


def _named(config: Config) -> list[tuple[str, object]]:
    """Return each key that names data files, and what it says."""
    named: list[tuple[str, object]] = [
        (f"data.{name}", getattr(config.data, name)) for name in SPLITS
    ]
    more = config.pretraining.data or []
    named += [(f"pretraining.data.{i}", path) for i, path in enumerate(more)]
    return [*named, ("model.vectors", config.model.vectors)]


def check_files(config: Config, beside: Path | None) -> None:
    """Report all data files that don't exist, and where one stands beside the YAML instead.

    Args:
        config: its paths are relative to the current directory.
        beside: folder of the YAML file, if there is one.

    Raises:
        DataError: with a line for each missing file, or what `data_files` raises.
    """
    problems: list[str] = []
    for key, named in _named(config):
        try:
            files = files_of(key, named)
        except DataError as error:
            problems += error.problems
            continue
        problems += [_missing(key, path, beside) for path in files if _is_missing(path)]
    if problems:
        raise DataError(*problems)


def _missing(key: str, path: str, beside: Path | None) -> str:
    problem = f"{key}: no file {quote(path)} (looked for {os.path.abspath(path)})"
    if beside is not None and os.path.exists(beside / path):
        return problem + f"; paths are relative to the current directory: write {beside / path}"
    near = nearest_file(path)
    return problem + (f"; did you mean {near}?" if near else "")


def _is_missing(path: str) -> bool:
    """Whether nothing stands there; what may not be looked at is told when it is read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def read_options(data: DataConfig, path: str) -> ReadOptions:
    """Return how a file of this config is read; each file's format goes by its own name."""
    return ReadOptions(
        format=resolve_format(path, data.format) or data.format,
        kind=data.kind,
        header=data.header,
        quoting=data.quoting,
        delimiter=data.delimiter,
        sequence=list(data.sequence) if isinstance(data.sequence, list) else data.sequence,
        label=data.label,
        group=data.group,
        bad_rows=data.bad_rows,
        by_name=data.format == "auto",
        whole_files=holds_whole_files(path),
    )


def read_with(data: DataConfig, files: Sequence[str]) -> Files:
    """Return files of this config, each with how it is read."""
    return [(path, read_options(data, path)) for path in files]
