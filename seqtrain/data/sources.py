"""The files that a config names: which there are, whether they exist, how each is read."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from seqtrain.config.formats import MEMORY, WIDE_FORMATS, names_of, resolve_format
from seqtrain.config.schema import Config, DataConfig
from seqtrain.data.examples import EVERY_COLUMN, Column, Example, ReadOptions
from seqtrain.data.readers import Digests, Files, digest_of, read_rows, was_changed
from seqtrain.data.readers.memory import held_table
from seqtrain.data.readers.time_steps import time_of
from seqtrain.data.readers.txt import holds_whole_files
from seqtrain.errors import DataError
from seqtrain.files.reading import nearest_file
from seqtrain.text import listed, quote

SPLITS = ("train", "validation", "test")
SAME_KEYS = (
    *("kind", "header", "quoting", "delimiter", "encoding"),
    *("sequence", "label", "label_separator", "group", "id", "order", "steps", "static"),
    "bad_rows",
)
"""Keys of a config that say how rows are read, as they are."""


def data_files(config: Config) -> list[tuple[str, str]]:
    """Return the key and the path of each data file of a config; raises as `files_of`."""
    return [(key, file) for key, named in _named(config) for file in files_of(key, named)]


def check_files(config: Config, beside: Path | None) -> None:
    """Report all data files that don't exist, and where one stands beside the YAML instead."""
    problems: list[str] = []
    for key, named in _named(config):
        try:
            files = files_of(key, named)
        except DataError as error:
            problems += error.problems
        else:
            gone = (path for path in files if not path.startswith(MEMORY) and _is_missing(path))
            problems += [_missing(key, path, beside) for path in gone]
    if problems:
        raise DataError(*problems)


def files_of(key: str, named: object) -> list[str]:
    """Return the files that a key names, in its order, those of a pattern in the order of names."""
    if isinstance(named, str) and named.startswith(MEMORY):
        return [held_table(named, key).path]
    files: list[str] = []
    for name in names_of(named):
        found = matching_files(name)
        if not found:
            looked = os.path.abspath(name)
            raise DataError(f"{key}: no file matches {quote(name)} (looked for {looked})")
        files += found
    known: dict[str, str] = {}
    for file in files:
        if len(files) > 1 and known.setdefault(os.path.realpath(file), file) is not file:
            raise DataError(f"{key}: names {quote(file)} twice; expected each file once")
    return files


def matching_files(name: str) -> list[str]:
    """Return the files of a pattern, sorted; a path that exists is none, whatever it looks like.

    `**` stands for any number of folders; it follows no links.
    """
    if not glob.has_magic(name) or os.path.lexists(name):
        return [name]
    if "**" not in name:
        return sorted(glob.glob(name))
    own, root = Path(name).parts, Path(Path(name).anchor)
    found = root.glob(os.path.relpath(name, root) if root.anchor else name)
    return sorted(
        str(path)
        for path in found
        if not any(part.startswith(".") for part in path.parts if part not in own)
    )


def named_text(named: str | Sequence[str]) -> str:
    """Return how messages and screens name a path, a pattern, or a list of these."""
    return named if isinstance(named, str) else listed(list(named))


def read_options(data: DataConfig, path: str) -> ReadOptions:
    """Return how a file of this config is read; each file's format goes by its own name."""
    return ReadOptions(
        format=resolve_format(path, data.format) or data.format,
        by_name=data.format == "auto" or path.startswith(MEMORY),
        whole_files=holds_whole_files(path),
        **{name: getattr(data, name) for name in SAME_KEYS},
    )


def split_files(data: DataConfig, split: str) -> Files:
    """Return the files of a split, each with how it is read; none where rows are held out."""
    paths = files_of(f"data.{split}", getattr(data, split))
    return [(path, read_options(data, path)) for path in paths]


def by_first_row(path: str, options: ReadOptions) -> ReadOptions:
    """Return how files are read where train's first row says it: columns, and an order of dates.

    Where each column but the label's is a time step, all files have train's columns, by name.
    """
    is_named = options.header is True or isinstance(options.label, str)
    is_wide = options.kind == "features" and options.sequence is None and is_named
    is_wide = is_wide and options.format in WIDE_FORMATS
    if not is_wide and options.order is None:
        return options
    alone = replace(options, kind="text", sequence=[], id=None, order=None, steps=None)
    alone = replace(alone, static=None, label=None, group=None, keep=(EVERY_COLUMN,))
    alone = replace(alone, header=is_wide or isinstance(options.order, str) or options.header)
    row = next(iter(read_rows(path, alone, labelled=False)), None)
    kept = {} if row is None or row.kept is None else row.kept
    if is_wide:
        names: list[Column] = [
            name for name in kept if name not in ("", options.label, options.group)
        ]
        return replace(options, sequence=names or None)
    time, is_date = time_of(kept.get(str(options.order)))
    return replace(options, dated=is_date if time == time else None)


def numbered_rows(
    path: str, options: ReadOptions, start: int, digests: Digests
) -> Iterator[tuple[int, Example]]:
    """Yield the rows of a file that was read before, each with its line as in that store.

    `start` is where its lines begin; the file still has its digest.
    """
    if digest_of(path) != digests[path]:
        raise was_changed(path)
    number = start
    for example in read_rows(path, options):
        number += example.problem is None
        yield (start + example.line if example.file is None else number), example


def _named(config: Config) -> list[tuple[str, object]]:
    named: list[tuple[str, object]] = [
        (f"data.{name}", getattr(config.data, name)) for name in SPLITS
    ]
    more = config.pretraining.data or []
    named += [(f"pretraining.data.{i}", path) for i, path in enumerate(more)]
    return [*named, ("model.vectors", config.model.vectors)]


def _missing(key: str, path: str, beside: Path | None) -> str:
    problem = f"{key}: no file {quote(path)} (looked for {os.path.abspath(path)})"
    if beside is not None and os.path.exists(beside / path):
        return problem + f"; paths are relative to the current directory: write {beside / path}"
    near = nearest_file(path)
    return problem + (f"; did you mean {near}?" if near else "")


def _is_missing(path: str) -> bool:
    """Whether nothing stands there; what may not be looked at is found when it is read."""
    try:
        os.lstat(path)
    except PermissionError:
        return False
    except (OSError, ValueError):
        return True
    return False
