"""Many input files at once: which there are, and where the predictions for each go."""

import os
import re
from pathlib import Path

from seqtrain.data.sources import matching_files
from seqtrain.errors import ConfigError, DataError
from seqtrain.files.reading import path_problem
from seqtrain.text import display_name
from seqtrain.training.distributed import Processes

SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def matching(pattern: str) -> list[str]:
    """Return the files that a pattern such as in/*.jsonl.gz names, in the order of their names."""
    files = [path for path in matching_files(pattern) if os.path.isfile(path)]
    if not files:
        raise DataError(
            f"{display_name(pattern)}: no such file (looked in {os.path.abspath(os.curdir)}); "
            "expected a file, or a pattern in quotes such as 'in/*.jsonl'"
        )
    return files


def shard_of(files: list[str], shard: str | None) -> list[str]:
    """Return every N-th file from the K-th on, of K/N: those of one of N processes.

    None: as a launcher set RANK and WORLD_SIZE, else all files.
    """
    if shard is None:
        processes = Processes.launched()
        return files[processes.rank :: processes.size]
    parts = SHARD.fullmatch(shard)
    if parts is None or not int(parts[1]) < int(parts[2]):
        raise ConfigError(f"--shard: found {shard}; expected K/N, with K from 0 to N - 1")
    return files[int(parts[1]) :: int(parts[2])]


def output_paths(files: list[str], folder: Path, format: str) -> dict[str, Path]:
    """Return where the predictions for each file go: in a folder, under its name with the format.

    Raises:
        ConfigError: two files have one name, the folder holds input, or it can't be made.
    """
    paths = {file: folder / f"{os.path.basename(file)}.{format}" for file in files}
    by_name: dict[Path, str] = {}
    for file, path in paths.items():
        other = by_name.setdefault(path, file)
        if other != file:
            raise ConfigError(f"--output-dir: {other} and {file} would both be written to {path}")
        if os.path.realpath(os.path.dirname(file) or ".") == os.path.realpath(folder):
            raise ConfigError(f"--output-dir: {folder} holds {file}; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise path_problem(f"--output-dir: {folder}", error, ConfigError) from None
    return paths
