"""Names of files and folders: their splits, words and levels, and layouts that they allow."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from seqtrain.files.reading import uncompressed
from seqtrain.proposal.names import OWNER_NAMES
from seqtrain.proposal.options import FileLayout
from seqtrain.tables.arrays import WORD
from seqtrain.tables.blocks import LABEL, SPLIT_NAMES, SPLIT_VALUES
from seqtrain.tables.sources import folder_entries

NUMBER_IN_NAME = re.compile("[0-9]+")
NAME_PART = re.compile(f"{WORD.pattern}|[0-9]+")
FEWEST_FILES = 4
"""Fewest files whose names are compared."""
OWNER_FILE_WORDS = {*OWNER_NAMES, "group", "groups", "subjects", "patients", "users"}
"""Words in the name of a file that may hold the owner of each row."""
RECORDINGS = ("csv", "tsv", "parquet", "npz", "jsonl", "xlsx")
"""Formats of files of which each can be one sequence."""


SPLIT_ENDINGS = {".tra": "train", ".trn": "train", ".tes": "test", ".tst": "test"}
"""Maps endings of files to the split that they name. Others are words: .train, .test."""
SPLIT_IN_WORD = re.compile("|".join(sorted(SPLIT_VALUES, key=len, reverse=True)), re.IGNORECASE)
"""Name of a split in a word, as in datatest.txt."""


class Choice(NamedTuple):
    """A layout that files may have, and the command that chooses it."""

    command: str
    layout: FileLayout


def split_of(path: str) -> str | None:
    """Return the split that the ending or a word of a file's name tells, or None."""
    ending = os.path.splitext(uncompressed(path.lower()))[1]
    if ending in SPLIT_ENDINGS:
        return SPLIT_ENDINGS[ending]
    words = {word.lower() for word in NAME_PART.findall(os.path.basename(path))}
    return next((split for split, known in SPLIT_NAMES.items() if words & known), None)


def splits_of(paths: Sequence[str]) -> list[str]:
    """Return the split of each of several files, by its name; see `split_of`.

    It is train if the name tells none. If the names differ in the names of splits alone, as those
    of datatraining.txt and datatest.txt do, these may be parts of words.
    """
    splits = list(map(split_of, paths))
    names = [os.path.basename(path) for path in paths]
    parts = [SPLIT_IN_WORD.search(name) for name in names]
    rests = {NUMBER_IN_NAME.sub("", SPLIT_IN_WORD.sub("", name)).lower() for name in names}
    if not any(splits) and len(rests) == 1:
        splits = [split_of(part[0]) if part else None for part in parts]
    return [split or "train" for split in splits]


def inside(folder: str) -> tuple[list[str], list[str]]:
    """Return the paths of the files and of the folders in a folder that aren't hidden, sorted."""
    files, folders = list[str](), list[str]()
    for name, is_folder in folder_entries(folder):
        (folders if is_folder else files).append(os.path.join(folder, name))
    return files, folders


def folder_pattern(level: int) -> str:
    """Return the value of data.path if a folder so many levels above a file is its label."""
    return f"(?P<{LABEL}>[^/]+)" + "/[^/]+" * level + "$"


def words_of(path: str) -> set[str]:
    """Return the words and numbers in a file's name, in lower case, without its endings."""
    return {word.lower() for word in NAME_PART.findall(os.path.basename(path).partition(".")[0])}


def odd_name(paths: Sequence[str]) -> list[str]:
    """Return the only path whose name isn't made as those of all others are, or [].

    Names such as walk_01.csv and run_2.csv are made of words and numbers in the same order.
    """
    by_form = dict[str, list[str]]()
    for path in paths:
        words = WORD.sub("a", os.path.basename(path).partition(".")[0])
        by_form.setdefault(NUMBER_IN_NAME.sub("0", words), []).append(path)
    found = sorted(by_form.values(), key=len)
    if len(found) == 2 and len(found[0]) == 1 and len(found[1]) >= FEWEST_FILES:
        return found[0]
    return []


def two_levels(folder: str) -> tuple[list[str], list[str]]:
    """Return the files in a folder and its sub-folders, sorted, and the folders in the latter."""
    files, folders = inside(folder)
    deeper = list[str]()
    for each in folders:
        inner = inside(each)
        files += inner[0]
        deeper += inner[1]
    return sorted(files), deeper


def num_lines(path: str, *, blank: bool = False) -> int:
    """Return the number of lines of a file that aren't blank, or of all lines if `blank`."""
    with open(path, "rb") as file:
        return sum(blank or bool(line.strip()) for line in file)
