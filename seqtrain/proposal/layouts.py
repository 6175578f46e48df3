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


INPUT_WORDS = {"x", "features", "inputs", "input", "signals", "data", "sensors", "series"}
"""Words in the name of a file that holds sequences without their labels."""
TARGET_WORDS = {"y", "label", "labels", "target", "targets", "classes"}
"""Words in the name of a file that holds labels."""
WORD = re.compile(r"[A-Za-z]+|[0-9]+")


def words_of(path: str) -> list[str]:
    """Return the words and numbers in a file's name, in lower case, without its endings."""
    stem = os.path.basename(path).partition(".")[0]
    return [word.lower() for word in WORD.findall(stem)]


def is_target(path: str) -> bool:
    """Return True if a file's name says that it holds labels."""
    return not TARGET_WORDS.isdisjoint(words_of(path))


def targets_of(path: str) -> list[str]:
    """Return the files beside a data file that hold its labels, by their names.

    Of `X_train.csv` this is `y_train.csv`, of `train.csv` it is `train_labels.csv`. If there is no
    such file, it is a file whose name only says that it holds labels, such as `labels.csv`.
    """
    own = {*words_of(path)} - INPUT_WORDS
    exact, loose = list[str](), list[str]()
    for name in sorted(os.listdir(os.path.dirname(path) or ".")):
        words = {*words_of(name)} - TARGET_WORDS - INPUT_WORDS
        is_data = resolve_format(name, "auto") is not None and name != os.path.basename(path)
        if is_data and is_target(name) and words == own:
            exact.append(os.path.join(os.path.dirname(path), name))
        elif is_data and is_target(name) and words <= ROLES["train"]:
            loose.append(os.path.join(os.path.dirname(path), name))
    return exact or loose


def holds_inputs_only(path: str) -> bool:
    """Return True if the name of a file begins with X, so that its labels are elsewhere."""
    return words_of(path)[:1] == ["x"]


SUBJECT = "subject"
"""Name of the column of letters with a number in the names of recordings, such as s07."""
FEWEST_FILES = 4
"""Fewest files whose names are compared."""
KINDS_OF_PART = {"label": r"[A-Za-z]+", "number": r"[0-9]+", "code": r"[A-Za-z]+[0-9]+"}


def name_patterns(files: Sequence[str]) -> list[str]:
    """Return the ways to read labels from the names of recordings, as values of data.path.

    Names must have equally many parts, such as
    `walking_003.csv`. A label is a part of letters that several files share.
    """
    stems = [os.path.basename(file).partition(".")[0] for file in files]
    split = [re.split("[_ -]+", stem) for stem in stems]
    if len(files) < FEWEST_FILES or len({len(parts) for parts in split}) != 1:
        return []
    columns = [[*part] for part in zip(*split, strict=True)]
    if len(columns) == 1:  # walking003
        found = [re.fullmatch("([A-Za-z]+)([0-9]+)", stem) for stem in stems]
        if not all(found):
            return []
        columns = [[each[group] for each in found if each] for group in (1, 2)]
        return [r"(?P<label>[A-Za-z]+)[0-9]+"] if _is_label(columns[0]) else []
    kinds = [_kind_of_part(part) for part in columns]
    labels = [at for at, kind in enumerate(kinds) if kind == "label" and _is_label(columns[at])]
    separators = re.findall("[_ -]+", stems[0])
    patterns = []
    for label in labels:
        pattern = ""
        for at, kind in enumerate(kinds):
            name = _name_of_part(kind, at, label)
            text = KINDS_OF_PART.get(kind, "[^_ -]+")
            pattern += f"(?P<{name}>{text})" if name else text
            pattern += re.escape(separators[at]) if at < len(separators) else ""
        patterns.append(pattern)
    return patterns


def _kind_of_part(values: Sequence[str]) -> str:
    for kind, pattern in KINDS_OF_PART.items():
        if all(re.fullmatch(pattern, value) for value in values):
            return kind
    return "other"


def _is_label(values: Sequence[str]) -> bool:
    """Return True if several files share each of a few values."""
    return 2 <= len({*values}) <= len(values) / 2


def _name_of_part(kind: str, at: int, label: int) -> str | None:
    """Return the name of the column of a part, or None if it isn't one."""
    if at == label:
        return "label"
    return SUBJECT if kind == "code" else None
