"""Files of splits in a folder, and the files of several that are read."""

import os
import re
from collections.abc import Sequence

from seqtrain.files.reading import uncompressed
from seqtrain.proposal.file_names import inside, split_of, words_of
from seqtrain.proposal.options import FileLayout
from seqtrain.proposal.recordings import PARTITION
from seqtrain.tables.formats import resolve_format
from seqtrain.tables.join import for_split
from seqtrain.text import listed, quote

CHANNEL = re.compile("Dimension[0-9]+")
"""Part of the name of a file with one channel, beside the file with all, as in archives of UEA."""
FORM_WORDS = {"submission"}
"""Words in the name of a file that shows how to write predictions, as sample_submission.csv."""


def data_folder(folder: str) -> str:
    """Return the folder whose only data is in it: a folder, or its only sub-folder, at any depth.

    A single folder of texts may be a class, and the name of a partition holds a value.
    """
    files, folders = inside(folder)
    if len(folders) != 1 or any(resolve_format(path, "auto") for path in files):
        return folder
    (only,) = folders
    are_texts = resolve_format(only, "auto") == "txt" and not inside(only)[1]
    if PARTITION.fullmatch(os.path.basename(only)) or (are_texts and not splits_inside(only, None)):
        return folder
    return data_folder(only)


def splits_inside(folder: str, format: str | None) -> list[str]:
    """Return the paths of the splits in a folder, sorted, or an empty list if it has no splits.

    The folder must have a split for train and at least one more. Each of its sub-folders must be a
    split. In a folder that Hugging Face wrote, train is enough.

    Args:
        folder: The folder.
        format: Format that the user gives, or None.
    """
    files, folders = inside(folder)
    data = _files_of_format(files, format)
    found = sorted(path for path in (*data, *folders) if split_of(path))
    is_saved = os.path.join(folder, "dataset_dict.json") in files
    is_split = is_saved or (set(folders) <= set(found) and len(found) > 1)
    if is_split and "train" in map(split_of, found):
        return found
    return []


def _files_of_format(files: Sequence[str], format: str | None) -> list[str]:
    """Return the files whose endings name a format, or the one that the user gives.

    If no ending names that one, these are the files whose ending names no other one.
    """
    if format is None:
        return [path for path in files if resolve_format(path, "auto")]
    own = [path for path in files if resolve_format(path, "auto") == format]
    return own or [path for path in files if resolve_format(path, "auto") in (None, "txt")]


def chosen_files(files: Sequence[str], format: str | None) -> Sequence[str]:
    """Return the files to read of several.

    A form for predictions beside train isn't read, nor a channel beside the file of all. Files of
    splits whose names differ in their endings alone hold the same data: those of one format are
    read, which has all splits.

    Args:
        files: The files.
        format: Format that the user gives, or None for .ts, or else any format.
    """
    files = [path for path in files if not _is_channel(path, files)]
    if "train" in map(split_of, files):
        files = [path for path in files if split_of(path) or not words_of(path) & FORM_WORDS]
    splits = set(map(split_of, files))
    stems = {os.path.splitext(uncompressed(path))[0] for path in files}
    if None in splits or len(stems) == len(files):
        return files
    by_format = dict[str | None, list[str]]()
    for path in files:
        by_format.setdefault(resolve_format(path, "auto"), []).append(path)
    whole = {name: own for name, own in by_format.items() if {*map(split_of, own)} == splits}
    for name in (format, "ts", *whole):
        if name in whole:
            return whole[name]
    return files


def _is_channel(path: str, files: Sequence[str]) -> bool:
    """Return True if a file holds one channel of another file, by its name."""
    whole = CHANNEL.sub("", path)
    return whole != path and whole in files


def about_other_files(given: Sequence[str], layout: FileLayout) -> list[str]:
    """Return a line about the data files beside those of a layout that aren't read, or [].

    Args:
        given: The files that the user gave, or a folder: then those beside the first one count.
        layout: The layout. Of a folder or pattern, nothing is said.
    """
    if not all(map(os.path.isfile, layout.files)):
        return []
    if len(given) == 1 and os.path.isdir(given[0]):
        files, _ = inside(os.path.dirname(layout.files[0]))
        given = _files_of_format(files, layout.options.get("format"))
    joined = [for_split(join["file"], path) for join in layout.joins for path in layout.files]
    used = {os.path.normpath(path) for path in (*layout.files, *joined)}
    left = [path for path in given if os.path.normpath(path) not in used]
    if not left:
        return []
    read = listed(list(map(quote, layout.files)), 4)
    return [f"read: {read}; not read: {listed(list(map(quote, left)), 4)}"]
