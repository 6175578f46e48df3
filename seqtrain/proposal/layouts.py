"""Layouts of data files: splits by name, files of labels, and names of files that hold labels."""

import os
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from seqtrain.errors import DataError
from seqtrain.tables.formats import resolve_format
from seqtrain.text import quote

Splits: TypeAlias = dict[str, Any]
"""Maps each split to its value in the config.

The value is the path of one file, a list of paths, a fraction or a fold of train, or None.
"""
ROLES = {
    "validation": {"valid", "validation", "val", "dev"},
    "test": {"test"},
    "train": {"train", "training"},
}
"""Maps each split to the words in file names that tell it. The first match decides."""
NUMBER = re.compile("[0-9]+")


def assign_splits(files: Sequence[str], test: str | None) -> Splits:
    """Return a dictionary that maps train, validation and test to their data files.

    The split of a file is the one that its name contains as a word. A file without such a word, or
    a single file, is train. Files of one split must have paths that differ only in numbers.

    Args:
        files: Data files, or one folder. The splits in the folder are used. A folder without splits
            is train itself.
        test: The test file, or None to recognize it by its name.

    Returns:
        Maps a split to its path, or to a list of paths if it has several. Splits without files are
        left out.

    Raises:
        DataError: If no file is train, or several files may be the same split.
    """
    found: dict[str, list[str]] = {} if test is None else {"test": [test]}
    if len(files) == 1 and os.path.isdir(files[0]):
        files = _splits_inside(files[0]) or files
    for path in files:
        role = split_of(os.path.basename(path)) or "train"
        known = found.setdefault("train" if len(files) == 1 else role, [])
        if known and NUMBER.sub("0", known[0]) != NUMBER.sub("0", path):
            raise DataError(
                f"{role}: both {quote(known[0])} and {quote(path)} may be it; give the file to "
                "train on, name the others …validation… and …test…, or give --test FILE"
            )
        known.append(path)
    if "train" not in found:
        raise DataError(
            "train: all names are those of validation or test files; give one file to train on"
        )
    return {name: known if len(known) > 1 else known[0] for name, known in found.items()}


def split_of(name: str) -> str | None:
    """Return the split that a word of a file's name tells, or None."""
    words = {*re.findall("[a-z]+", name.lower())}
    return next((role for role, known in ROLES.items() if words & known), None)


def _splits_inside(folder: str) -> list[str]:
    """Return the paths of the splits in a folder, sorted, or an empty list if it has no splits.

    The folder must have a split for train and at least one more. Each of its sub-folders must be a
    split. In a folder that Hugging Face wrote, train is enough.
    """
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    paths = {name: os.path.join(folder, name) for name in names}
    folders = [name for name, path in paths.items() if os.path.isdir(path)]
    found = [x for x in names if (x in folders or resolve_format(x, "auto")) and split_of(x)]
    is_split = ({*folders} <= {*found} and len(found) > 1) or "dataset_dict.json" in names
    return [paths[name] for name in found] if is_split and "train" in map(split_of, found) else []
