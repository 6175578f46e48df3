"""Assignment of data files to train, validation and test, by their names."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from seqtrain.errors import DataError, marked
from seqtrain.files.formats import resolve_format
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.sequences.readers.file_source import holds_whole_files
from seqtrain.text import display_name, quote

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
MOST_NUMBERED_CLASSES = 10
"""Largest number of files of a class each whose names may differ only in numbers, as for digits."""
MOST_UNIQUE = 2
"""Largest number of rows that may all have different labels, without a validation file."""


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
        role = _role(os.path.basename(path)) or "train"
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


def _role(name: str) -> str | None:
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
    found = [x for x in names if (x in folders or resolve_format(x, "auto")) and _role(x)]
    is_split = ({*folders} <= {*found} and len(found) > 1) or "dataset_dict.json" in names
    return [paths[name] for name in found] if is_split and "train" in map(_role, found) else []


def check_labels(path: str, profile: DataProfile, *, has_validation: bool) -> Iterator[str]:
    """Yield a warning if the labels of train are probably no classes.

    Args:
        path: The first training file or folder.
        profile: Profile of train.
        has_validation: True if there is a validation file. Labels may then all differ in train.

    Raises:
        DataError: If all labels differ in more than `MOST_UNIQUE` rows without a validation file.
            Also if there is one file per class, with more than `MOST_NUMBERED_CLASSES` files whose
            names are all numbers.
    """
    name, labels = display_name(path), [*profile.classes]
    stems = {NUMBER.sub("", label) for label in labels}
    is_folder = profile.format.name == "txt" and os.path.isdir(path)
    is_file_per_class = is_folder and not holds_whole_files(path)
    if is_file_per_class and len(labels) > MOST_NUMBERED_CLASSES and len(stems) == 1:
        found = f"one file per class, {labels[0]}, {labels[1]} and {len(labels) - 2} more"
        if stems == {""}:
            raise DataError(f"{name}: this folder holds {found}; did you mean its parent?")
        yield f"this folder holds {found}; if the folder is a class, give its parent"
    is_unique = max(profile.classes.values()) == 1 and profile.rows > MOST_UNIQUE
    if is_unique and not has_validation:
        expected = "expected labels that several rows share"
        if profile.schema.label_columns:
            expected += marked("; --label names their column")
        elif is_folder:
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {profile.rows} rows has a different label, such as {quote(labels[0], 40)}"
        raise DataError(f"{name}: {each}; {expected}")
