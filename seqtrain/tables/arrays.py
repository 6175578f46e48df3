"""Formats npz and npy: sequences in arrays of numpy, or a row per time step."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from seqtrain.tables.blocks import (
    INPUT_WORDS,
    LABEL,
    ROWS,
    SPLIT_NAMES,
    SPLIT_VALUES,
    TARGET_WORDS,
    TEXT,
    Array,
    Block,
    Cells,
    CellsByName,
    Dialect,
    Mask,
    Selection,
    UnreadableError,
)
from seqtrain.tables.conversions.forms import AdvisedConversion
from seqtrain.tables.opening import refuse_bomb
from seqtrain.text import reason_of

NPY = b"\x93NUMPY"
DAMAGE = (OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError)
OBJECTS = (
    "an array of Python objects can't be read; save values=np.concatenate(sequences), "
    "lengths=[*map(len, sequences)] and labels=labels.astype(str)"
)
"""Message about arrays whose dtype is object."""
TRUSTED = (
    "holds Python objects, which aren't read, for they may run code; if you trust the file, write "
    "its rows as JSON:"
)
"""The same about arrays with known names in a file npz."""
EXPECTED_ARRAYS = (
    "expected values, offsets or lengths, labels; or X, perhaps lengths, and y: "
    "numpy.savez('data.npz', X=X, y=y), or y.npy next to X.npy"
)
FLAT = ("values", "offsets", "lengths", "labels")
NAMES = ("X", "x", "y", "Y", "labels")
"""The plainest names of arrays. Where others have the same meaning, these count."""
LENGTH_WORDS = ("lengths", "length", "lens", "len", "seqlen", "seqlens")
WORDS = {
    **dict.fromkeys(INPUT_WORDS, "X"),
    **dict.fromkeys(TARGET_WORDS, "labels"),
    **dict.fromkeys(LENGTH_WORDS, "lengths"),
}
"""Maps words in the names of arrays to the meaning of the array."""
WORD = re.compile(rf"[xXyY](?=(?:{'|'.join(SPLIT_VALUES)})(?![a-z]))|[A-Z]?[a-z]+|[A-Z]+")
"""Word in the name of an array: two in x_train, trainX and xtrain."""


def read_arrays(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the sequences of a file of arrays, which is read into memory as a whole.

    A file npz has one of two layouts: `values` of all sequences one after another, (N,) or (N, C),
    with `offsets` (B + 1,) or `lengths` (B,); or padded sequences `X`, (B, T) or (B, T, C), whose
    `lengths` may follow. Each sequence is an array in the column `text`.

    A file npy holds `X`, and its labels are in a second file, `labels_file`. If there is none, its
    rows may be time steps, (N,) or (N, C): it also has a column for each index from 0.

    Raises:
        UnreadableError: If the file is damaged, lacks an array, or has one of a wrong type or
            shape.
    """
    arrays = _load(stream)
    columns: CellsByName = {}
    steps = arrays.get("X")
    if steps is not None and steps.ndim in (1, 2) and "labels" not in arrays:
        table = steps if steps.ndim == 2 else steps[:, None]
        for index, numbers in enumerate(table.T):
            columns[index] = columns[str(index)] = numbers
    if steps is not None and steps.ndim == 1:
        columns[LABEL] = _labels(steps, len(steps))
    else:
        columns[TEXT] = _sequences(arrays)
    count = len(next(iter(columns.values())))
    if "labels" in arrays:
        size = steps.shape[1] if steps is not None and steps.ndim > 1 else 0
        columns[LABEL] = _labels(arrays["labels"], count, size)
    if LABEL in (selection.required or ()) and LABEL not in columns:
        raise _missing("labels", arrays)
    names = selection.among(columns)
    if selection.required is None:
        names = [name for name in (TEXT, LABEL) if name in columns]
    yield Block({name: columns[name] for name in names}, np.arange(1, count + 1))


def read_whole_array(
    stream: BinaryIO, dialect: Dialect, selection: Selection, rows: int = ROWS
) -> Iterator[Block]:
    """Yield the array of a file npy as the sequence of one row."""
    arrays = _load(stream)
    if "X" not in arrays or arrays["X"].ndim not in (1, 2):
        raise UnreadableError(None, "expected one array (T,) or (T, C) in a file of a folder")
    columns: CellsByName = {TEXT: [arrays["X"]]}
    yield Block({name: columns[name] for name in selection.among(columns)}, np.ones(1, np.int64))


def step_columns(path: str) -> list[str]:
    """Return the names of the columns of a file npy whose rows are time steps: "0", "1" and so on.

    The list is empty for another file.
    """
    if not path.endswith(".npy") or labels_file(path):
        return []
    try:
        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
    except DAMAGE:
        return []
    width = shape[1] if len(shape) == 2 else 1
    if len(shape) in (1, 2):
        return [str(index) for index in range(width)]
    return []


def labels_file(path: str) -> str:
    """Return the path of the file with the labels of a .npy file, or "" if it doesn't exist.

    Its name has `y`, `labels` or such a word in place of `X`, `features` or such a word.
    """
    if not path.endswith(".npy"):
        return ""
    folder, name = os.path.split(path)
    for word in WORD.finditer(name):
        if word[0].lower() not in INPUT_WORDS:
            continue
        for target in sorted(TARGET_WORDS, key=len):  # y first
            for spelled in (target.capitalize(), target):
                other = os.path.join(folder, name[: word.start()] + spelled + name[word.end() :])
                if os.path.isfile(other):
                    return other
    return ""


def _load(stream: Any) -> dict[str, Array]:
    """Return the arrays in a file, by the names `X`, `values`, `offsets`, `lengths` and `labels`.

    Arrays of Python objects are refused, as their loading could run code.

    Raises:
        UnreadableError: If the file is damaged, too large for memory, or contains Python objects.
    """
    try:
        if not stream.seekable() or not hasattr(stream, "fileno"):  # as compressed or piped
            stream = io.BytesIO(stream.read())
        is_one = stream.read(6) == NPY
        stream.seek(0)
        if is_one:
            arrays = {"X": np.load(stream, allow_pickle=False)}
            labels = labels_file(str(getattr(stream, "name", "")))
            if labels:
                arrays["labels"] = np.load(labels, allow_pickle=False)
            return arrays
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
        packed = sum(entry.compress_size for entry in entries)
        refuse_bomb("the arrays", sum(entry.file_size for entry in entries), packed)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as loaded:
            return _known(loaded)
    except MemoryError:
        raise UnreadableError(None, "the arrays do not fit into memory") from None
    except (*DAMAGE, zipfile.BadZipFile, zlib.error) as error:
        reason = reason_of(error)
        if "allow_pickle" in reason:
            raise UnreadableError(None, OBJECTS) from None
        raise UnreadableError(None, f"not a sound npz file of plain arrays ({reason})") from None


def _known(loaded: Any) -> dict[str, Array]:
    """Return the arrays of an npz file whose names are known.

    Raises:
        UnreadableError: If there are none, or those of several splits, or if they hold Python
            objects. The error has the command that writes a file for each split.
    """
    if "values" in loaded.files:
        return {name: np.asarray(loaded[name]) for name in FLAT if name in loaded.files}
    splits = arrays_of_splits(loaded.files)
    if not splits:
        found = ", ".join(loaded.files) or "none"
        names = [name for name in loaded.files if np.size(loaded[name]) > 1]
        if len(names) == 1 and np.ndim(loaded[names[0]]) in (1, 2):
            raise UnreadableError(
                None,
                f"no array values; found {found}; {EXPECTED_ARRAYS}; if each file of the folder "
                f"is one sequence, {names[0]}, write these arrays as .npy:",
                conversion=AdvisedConversion("array", {"name": names[0]}, of_folder=True),
            )
        raise UnreadableError(None, f"no array values; found {found}; {EXPECTED_ARRAYS}")
    try:
        arrays = [
            {key: np.asarray(loaded[name]) for key, name in x.items()} for x in splits.values()
        ]
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise UnreadableError(None, TRUSTED, conversion=AdvisedConversion("lists")) from None
    if len(arrays) > 1:
        raise UnreadableError(
            None,
            f"found the arrays of {len(splits)} splits ({', '.join(splits)}); expected those of "
            "one; to write a file for each:",
            conversion=AdvisedConversion("tables"),
        )
    return arrays[0]


def arrays_of_splits(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the names of the arrays of each split, by their meaning: X, lengths or labels.

    Names such as `x_test`, `testX` and `test_labels` name a split. The others are of train. A split
    without sequences is left out.

    Args:
        names: Names of the arrays of a file, none of which is `values`.

    Raises:
        UnreadableError: If two arrays of a split have one meaning.
    """
    splits: dict[str, dict[str, str]] = {"train": {}, "validation": {}, "test": {}}
    for name in sorted(names, key=lambda name: name not in NAMES):
        words = [word.lower() for word in WORD.findall(name)]
        found = [split for split, known in SPLIT_NAMES.items() if known.intersection(words)]
        others = [word for word in words if word not in SPLIT_VALUES and word != "seq"]
        meanings = {WORDS.get(word, "") for word in others}
        if meanings in ({"X", "labels"}, {"X", "lengths"}):
            meanings.discard("X")  # train_data_labels are labels, and X_lengths are lengths
        meaning = "".join(meanings)  # X_features are sequences
        if len(meanings) in (1, 2) and meaning in ("X", "lengths", "labels"):
            arrays = splits[found[0] if found else "train"]
            known = arrays.setdefault(meaning, name)
            if known not in (name, *NAMES):
                raise UnreadableError(
                    None, f"both {known} and {name} may be {meaning}; name one of them {meaning}"
                )
    return {split: arrays for split, arrays in splits.items() if "X" in arrays}


def _sequences(arrays: dict[str, Array]) -> list[Array]:
    """Return the sequences of a file, each (T,) or (T, C).

    Raises:
        UnreadableError: If an array is missing or has a wrong type or shape, or the borders don't
            cover all values.
    """
    if "X" in arrays:
        x = _numbers(arrays, "X", "numbers (B, T) or (B, T, C), a series per row", (2, 3))
        is_step = _steps_of(x, arrays)
        values = x[is_step]
        borders = np.append(0, is_step.sum(axis=1).cumsum())
    else:
        values = _numbers(
            arrays, "values", "numbers (N,) or (N, C), the steps of all sequences", (1, 2)
        )
        if "offsets" in arrays and "lengths" in arrays:
            raise UnreadableError(None, "found the arrays offsets and lengths; remove one of them")
        key = "offsets" if "offsets" in arrays else "lengths"
        borders = _numbers(arrays, key, "integers (B,)", (1,), "iu").astype(np.int64)
        if key == "lengths":
            borders = np.append(0, borders.cumsum())
        ends = borders[:1].tolist(), borders[-1:].tolist()
        if ends != ([0], [len(values)]) or (np.diff(borders) < 0).any():
            raise UnreadableError(
                None,
                f"{key}: expected to cover 0 to {len(values)}, the values, row by row; found "
                f"{ends[0]} to {ends[1]}",
            )
    return [values[start:end] for start, end in pairwise(borders.tolist())]


def _steps_of(x: Array, arrays: dict[str, Array]) -> Mask:
    """Return a mask of the steps of padded series that aren't padding, (B, T).

    Without `lengths`, missing values at the end of a row are padding.
    """
    if "lengths" in arrays:
        lengths = _numbers(arrays, "lengths", "integers (B,)", (1,), "iu")
        if len(lengths) != len(x) or (lengths < 0).any() or (lengths > x.shape[1]).any():
            raise _unfit("lengths", f"{len(x)} lengths of at most {x.shape[1]}", lengths)
        return np.arange(x.shape[1]) < lengths[:, None]
    is_known = np.asarray(~np.isnan(x).reshape(*x.shape[:2], -1).all(axis=2))
    return np.cumsum(is_known[:, ::-1], axis=1)[:, ::-1] > 0


def _numbers(
    arrays: dict[str, Array],
    key: str,
    expected: str,
    dimensions: tuple[int, ...],
    kinds: str = "iuf",
) -> Array:
    """Return an array of numbers.

    Args:
        arrays: The arrays of the file.
        key: Name of the array.
        expected: Description of the array, for the message.
        dimensions: Numbers of dimensions that it may have.
        kinds: Kinds of dtypes that it may have.

    Raises:
        UnreadableError: If there is no such array, or it has another type or shape.
    """
    if key not in arrays:
        raise _missing(key, arrays)
    found = arrays[key]
    if found.ndim not in dimensions or found.dtype.kind not in kinds or 0 in found.shape[1:]:
        raise _unfit(key, expected, found)
    return found


def _labels(labels: Array, rows: int, steps: int = 0) -> Cells:
    """Return the label of each row.

    Labels of two dimensions mark classes by 0 and 1. If each row has one 1, as in one-hot arrays,
    its place is the label. Otherwise a label is the list of its marks.

    Args:
        labels: Labels (B,), or marks (B, C).
        rows: Number of rows.
        steps: Number of time steps of padded series: so many marks, several of them 1, may be those
            of time steps.

    Raises:
        UnreadableError: If the labels are neither.
    """
    are_marks = labels.ndim == 2 and len(labels) == rows and labels.shape[1] > 1
    if are_marks and labels.dtype.kind in "iufb" and np.isin(labels, (0, 1)).all():
        marks = labels.astype(np.int64)
        if (marks.sum(axis=1) == 1).all():
            labels = marks.argmax(axis=1)
        elif marks.shape[1] != steps:
            found: list[Any] = marks.tolist()
            return found
    are_whole = labels.dtype.kind != "f" or np.array_equal(labels, np.rint(labels))
    if labels.size != rows or labels.dtype.kind not in "iufbU" or not are_whole:
        raise _unfit(
            "labels",
            f"integers or strings ({rows},), or marks 0 and 1 of classes ({rows}, C)",
            labels,
        )
    try:  # numpy itself fails with a SystemError on numbers that no character has
        found = labels.ravel().tolist()
        "".join(map(str, found)).encode()
    except (SystemError, ValueError):
        raise UnreadableError(None, "labels: a string holds what is no character") from None
    return found


def _unfit(key: str, expected: str, array: Array) -> UnreadableError:
    return UnreadableError(None, f"{key}: expected {expected}, found {array.dtype} {array.shape}")


def _missing(key: str, arrays: dict[str, Array]) -> UnreadableError:
    return UnreadableError(None, f"no array {key}; found {', '.join(arrays)}; {EXPECTED_ARRAYS}")
