"""Assignment of data files to train, validation and test, by their names."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from seqtrain.data.readers.file_source import holds_whole_files
from seqtrain.errors import DataError
from seqtrain.files.formats import resolve_format
from seqtrain.proposal.data_profile import DataProfile
from seqtrain.text import display_name, quote

Splits: TypeAlias = dict[str, Any]
"""Value of each split in the config: files, a fraction of train, or None."""
ROLES = {
    "validation": {"valid", "validation", "val", "dev"},
    "test": {"test"},
    "train": {"train", "training"},
}
"""Words in file names that tell the split, in the order in which they are looked for."""
NUMBER = re.compile("[0-9]+")
MOST_NUMBERED_CLASSES = 10
"""Classes at most whose files may have names that differ only in numbers, as digits have."""
MOST_UNIQUE = 2
"""Largest number of rows that may all have different labels, without a validation file."""


def assign_splits(files: Sequence[str], test: str | None) -> Splits:
    """Return the files of each split.

    Args:
        files: Data files, or a folder that holds them.
        test: The test file, or None to find it by its name.

    Raises:
        DataError: If it isn't clear which file is train.
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
    """Return the files or folders in a folder that are splits, or an empty list."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    paths = {name: os.path.join(folder, name) for name in names}
    folders = [name for name, path in paths.items() if os.path.isdir(path)]
    found = [x for x in names if (x in folders or resolve_format(x, "auto")) and _role(x)]
    is_split = ({*folders} <= {*found} and len(found) > 1) or "dataset_dict.json" in names
    return [paths[name] for name in found] if is_split and "train" in map(_role, found) else []


def check_labels(path: str, profile: DataProfile, *, has_validation: bool) -> Iterator[str]:
    """Yield a warning if the labels of train are probably no classes.

    Raises:
        DataError: If they surely are none: numbered files, or a different label in each row.
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
            expected += "; --label names their column"
        elif is_folder:
            expected += ": each file is a class here; give each class a folder for its files"
        each = f"each of {profile.rows} rows has a different label, such as {quote(labels[0], 40)}"
        raise DataError(f"{name}: {each}; {expected}")
